/** Batches of many requests to one process, which is replaced when it exits and ends when it has no work. */

import { describe, expect, test } from 'vitest';
import { FakeClock } from '../support/fake-clock.ts';
import { LIMITS, sharedProcesses, TestSandbox } from './test-sandbox.ts';

const limits = { ...LIMITS, expressionTimeoutMs: 1000 };

test('requests of several programs, with and without objects, return to their callers', async () => {
  await using sandbox = await TestSandbox.open({ limits });
  const programs = [
    sandbox.define('value + 1'),
    sandbox.define('context.virtualObject.metadata.name + value'),
    sandbox.define('context.path'),
    sandbox.define('context.virtualObject.metadata?.labels?.a ?? value'),
  ];
  const asked = Array.from({ length: 3000 }, (_, i) => {
    const program = programs[i % programs.length];
    if (program === undefined) throw new Error('no program');
    const virtualObject = {
      metadata: { name: `n${i}`, ...(i % 8 === 3 ? { labels: { a: `l${i}` } } : {}) },
    };
    const count = 1 + (i % 3);
    const values = Array.from({ length: count }, (_value, m) => i * 10 + m);
    return sandbox.ask(program, values, { virtualObject, paths: values.map((value) => `p${value}`) });
  });
  const responses = await Promise.all(asked);
  for (const [i, response] of responses.entries()) {
    const values = Array.from({ length: 1 + (i % 3) }, (_value, m) => i * 10 + m);
    const expected = values.map((value) =>
      [value + 1, `n${i}${value}`, `p${value}`, i % 8 === 3 ? `l${i}` : value].at(i % 4),
    );
    expect(response).toEqual({ values: expected, errors: undefined });
  }
});

test('large values and results are transferred in chunks', async () => {
  await using sandbox = await TestSandbox.open({ limits });
  const program = sandbox.define('value + "!"');
  const values = Array.from({ length: 20 }, (_, i) => String(i).repeat(400_000));
  const { values: results } = await sandbox.ask(program, values);
  expect(results).toEqual(values.map((value) => `${value}!`));
});

test('a child that exits is replaced, and its requests are repeated', async () => {
  await using sandbox = await TestSandbox.open({ limits });
  const program = sandbox.define('value + "!"');
  await sandbox.ask(program, ['warm']);
  const [pid] = sandbox.pids;
  const asked = sandbox.ask(program, ['after']);
  process.kill(pid ?? 0, 'SIGKILL');
  expect((await asked).values).toEqual(['after!']);
  expect((await sandbox.ask(program, ['later'])).values).toEqual(['later!']);
  expect(sandbox.pids).not.toContain(pid);
});

test('without work for a while, a shared process ends, and the next work starts another', async () => {
  const clock = new FakeClock();
  using processes = sharedProcesses(clock);
  await using sandbox = await TestSandbox.open({ clock, shared: { processes, owner: 'team-a' } });
  expect(await sandbox.run('value.toUpperCase()', 'a')).toEqual({ value: 'A' });
  const [first] = sandbox.pids;
  clock.advance(29_000);
  expect(sandbox.pids).toEqual([first]);
  clock.advance(1000);
  expect(sandbox.pids).toEqual([]);
  expect(await sandbox.run('value.toUpperCase()', 'b')).toEqual({ value: 'B' });
  expect(sandbox.pids).not.toContain(first);
  expect(sandbox.log).toEqual([]);
});

test('the process ends as well when its last expression had to be stopped', async () => {
  const clock = new FakeClock();
  using processes = sharedProcesses(clock);
  await using sandbox = await TestSandbox.open({ clock, shared: { processes, owner: 'team-a' } });
  expect(await sandbox.run('(() => { for (;;) value; })()', 1)).toMatchObject({ error: 'timeout' });
  expect(sandbox.pids).toHaveLength(1);
  clock.advance(30_000);
  expect(sandbox.pids).toEqual([]);
});

/** A tenth of the turn of a batch, or more. */
const SLOW = '(() => { let n = 0; while (n < 5e7) n++; return value; })()';
const slowLimits = { ...LIMITS, expressionTimeoutMs: 10_000, batchTimeoutMs: 60_000 };

describe.each(['one request for each object', 'one request of many matches'])('%s that takes long', (how) => {
  test('gives way to other namespaces, and its caller need not wait', async () => {
    await using sandbox = await TestSandbox.open({ limits: slowLimits });
    const [slow, fast] = [sandbox.define(SLOW), sandbox.define('value + "!"')];
    await sandbox.ask(fast, ['warm']);
    const values = Array.from({ length: 100 }, (_, at) => at);
    const requests = how.includes('many matches') ? [values] : values.map((value) => [value]);
    let [answered, postponed] = [0, 0];
    const slowOnes = requests.map(async (each, at) => {
      const object = { namespace: 'slow', name: `web-${at}` };
      const context = { hostObject: null, virtualObject: null };
      const postpone = (): void => void (postponed += 1);
      const request = { program: slow.id, object, context, values: each, paths: undefined, postpone };
      const { values: results } = await sandbox.evaluate(request);
      answered += each.length;
      return results;
    });
    const other = { namespace: 'other', name: 'web' };
    const answeredBefore: number[] = [];
    for (let at = 0; at < 3; at++) {
      const { values: results } = await sandbox.ask(fast, [at], { object: other });
      expect(results).toEqual([`${at}!`]);
      answeredBefore.push(answered);
    }
    expect(answeredBefore.at(-1)).toBeLessThan(values.length);
    expect((await Promise.all(slowOnes)).flat()).toEqual(values);
    expect(postponed).toBeGreaterThan(0);
    expect(sandbox.log).toEqual([]);
  });
});

test('what gives way and is withdrawn is not evaluated', async () => {
  await using sandbox = await TestSandbox.open({ limits: slowLimits });
  const slow = sandbox.define(SLOW);
  const context = { hostObject: null, virtualObject: null };
  const responses = await Promise.all(
    Array.from({ length: 100 }, async (_, at) => {
      const object = { namespace: 'slow', name: `web-${at}` };
      const request = { program: slow.id, object, context, values: [at], paths: undefined };
      return sandbox.evaluate({ ...request, postpone: (withdraw) => withdraw() });
    }),
  );
  const messages = responses.map(({ errors }) => errors?.get(0)?.message);
  expect(new Set(messages)).toEqual(new Set([undefined, 'the request was withdrawn']));
});
