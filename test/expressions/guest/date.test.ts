/** `Date` inside the sandbox: the texts that ECMAScript defines, compared with Node.js, and no other. */

import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { TestSandbox, textOf } from '../test-sandbox.ts';

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await TestSandbox.open();
});
afterAll(() => sandbox[Symbol.asyncDispose]());

async function parsed(texts: readonly string[]): Promise<unknown> {
  const program = sandbox.define(
    'Date.parse(value) === new Date(value).getTime() ? Date.parse(value) : null',
  );
  return (await sandbox.ask(program, texts)).values;
}

const SECONDS_MAX = 8.64e12;

test('what toISOString and toUTCString write is read again', async () => {
  const times = fc.array(fc.integer({ min: -SECONDS_MAX, max: SECONDS_MAX }), {
    minLength: 1,
    maxLength: 50,
  });
  await fc.assert(
    fc.asyncProperty(times, async (seconds) => {
      const dates = seconds.map((each) => new Date(each * 1000));
      const expected = dates.map((date) => date.getTime());
      expect(await parsed(dates.map((date) => date.toISOString()))).toEqual(expected);
      expect(await parsed(dates.map((date) => date.toUTCString()))).toEqual(expected);
    }),
    { numRuns: 50 },
  );
});

test('the day of the week is not compared with the date', async () => {
  expect(await parsed(['Mon, 28 Nov 2026 10:00:00 GMT', 'Sat, 28 Nov 2026 10:00:00 GMT'])).toEqual(
    Array(2).fill(Date.UTC(2026, 10, 28, 10)),
  );
});

test.each([
  '2026-11-28 10:00',
  'Sat, 28 Nov 2026 10:00:00',
  'Sat, 28 Nov 2026 10:00:00 CET',
  'Sat, 28 Nov 2026 25:00:00 GMT',
  'Sat, 28 Nov 2026 10:00:00 GMT+1',
  'Sat, 00 Nov 2026 10:00:00 GMT',
  'Sam, 28 Nov 2026 10:00:00 GMT',
  '28 Nov 2026 10:00:00 GMT',
  'Nov 28 2026',
  '7',
  '',
])('%j is no date, whatever V8 makes of it', async (text) => {
  expect(textOf(await sandbox.run('new Date(value)', text))).toContain(
    'result: the result is an invalid Date: ',
  );
});
