/** An expression times out on many objects of one namespace: the effect on the objects of other tenants. */

import { describe, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { LIMITS, TestSandbox } from '../expressions/test-sandbox.ts';
import { HOSTILE, HOSTILE_EXPRESSIONS, Tenants } from './tenants.ts';

const UPDATES = 10;
const EVIL = `${'a'.repeat(32)}b`;

describe.each(Object.entries(HOSTILE_EXPRESSIONS))('%s', (_what, expression) => {
  test.concurrent.for(['created once', 'updated all the time'])(
    `${HOSTILE} hostile objects, %s`,
    async (how, { expect }) => {
      await using sandbox = await TestSandbox.open({
        limits: { ...LIMITS, expressionTimeoutMs: 100, memoBytes: 2 ** 20 },
      });
      using tenants = new Tenants(sandbox, sandbox.define(expression));
      const other = { namespace: 'other', name: 'web' };
      const neighbour = { namespace: 'hostile', name: 'web' };
      await Promise.all([other, neighbour].map((object) => tenants.sync(object, () => 'first')));
      tenants.attack({ isUpdated: how !== 'created once' });
      const isEnough = (latencies: readonly number[]): boolean => latencies.length >= UPDATES;
      await Promise.all([
        tenants.probe(other, isEnough),
        tenants.probe(neighbour, isEnough),
        tenants.sync({ namespace: 'hostile', name: 'new' }, () => 'fine'),
      ]);
      // The updates did not wait until the expression had been stopped on each hostile object. Latencies: `npm run bench -- neighbours`.
      const stops = (): number =>
        sandbox.log.filter(({ message }) => message === 'an expression was stopped').length;
      expect(stops()).toBeLessThan(HOSTILE / 2);
      await eventually(stops, (count) => count > 0, { what: 'the first stop' });
    },
  );
});

/** Each is stopped for the first time, so no quarantine knows its object. */
const PROGRAMS = 12;

test.for(Object.entries(HOSTILE_EXPRESSIONS))(
  `${PROGRAMS} expressions, each with one hostile object of the same namespace: %s`,
  async ([, expression], { expect }) => {
    await using sandbox = await TestSandbox.open();
    const plain = sandbox.define('value + "!"');
    await sandbox.ask(plain, ['first']);
    const stops = (): number =>
      sandbox.log.filter(({ message }) => message === 'an expression was stopped').length;
    const hostile = Array.from({ length: PROGRAMS }, (_, at) =>
      sandbox.ask(sandbox.define(`${expression} + "${at}"`), [EVIL], {
        object: { namespace: 'hostile', name: `evil-${at}` },
        postpone: () => undefined,
      }),
    );
    await eventually(stops, (count) => count > 0, { what: 'the first stop' });
    const waited: number[] = [];
    for (let at = 0; at < 3; at++) {
      const before = stops();
      const object = { namespace: 'other', name: `web-${at}` };
      expect(await sandbox.ask(plain, [`update ${at}`], { object })).toMatchObject({
        values: [`update ${at}!`],
      });
      waited.push(stops() - before);
    }
    // All of them, without turns.
    expect(Math.max(...waited)).toBeLessThan(6);
    await Promise.all(hostile);
    expect(stops()).toBe(PROGRAMS);
  },
);
