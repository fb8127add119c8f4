/** An expression times out on many objects of one namespace: the effect on the objects of other tenants. */

import { describe, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { LIMITS, TestSandbox } from '../syncer/sandbox/test-sandbox.ts';
import { HOSTILE, HOSTILE_EXPRESSIONS, Tenants } from './tenants.ts';

const UPDATES = 10;

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
