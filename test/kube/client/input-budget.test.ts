/** The limit that connections share: which of them is ended. */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { InputBudget, type InputShare } from '../../../src/kube/client/input-budget.ts';

class Connections {
  readonly budget: InputBudget;
  readonly ended: number[] = [];
  readonly #shares: InputShare[] = [];
  readonly bytes: number[] = [];

  constructor(bytesMax: number, count: number) {
    this.budget = new InputBudget(bytesMax);
    for (let at = 0; at < count; at++) {
      this.bytes.push(0);
      const share = this.budget.open(() => {
        this.ended.push(at);
        this.bytes[at] = 0;
        share.release();
      });
      this.#shares.push(share);
    }
  }

  hold(at: number, bytes: number): void {
    if (!this.ended.includes(at)) this.bytes[at] = bytes;
    this.#shares[at]?.hold(bytes);
  }

  release(at: number): void {
    this.#shares[at]?.release();
  }
}

test('the connection with most is ended, whichever exceeds the limit', () => {
  const connections = new Connections(100, 3);
  connections.hold(0, 60);
  connections.hold(1, 30);
  expect(connections.ended).toEqual([]);
  connections.hold(2, 11);
  expect(connections.ended).toEqual([0]);
  expect(connections.budget.bytes).toBe(41);
  connections.hold(2, 71);
  expect(connections.ended).toEqual([0, 2]);
  connections.release(1);
  expect(connections.budget.bytes).toBe(0);
});

test('the total never exceeds the limit, and is what the connections hold that have not ended', () => {
  const step = fc.tuple(fc.nat(4), fc.nat(60));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const connections = new Connections(100, 5);
      for (const [at, bytes] of steps) {
        const before = [...connections.bytes];
        const endedBefore = connections.ended.length;
        connections.hold(at, bytes);
        const total = connections.bytes.reduce((sum, one) => sum + one, 0);
        expect(connections.budget.bytes).toBe(total);
        expect(total).toBeLessThanOrEqual(100);
        const asked = before.map((one, index) => (index === at ? bytes : one));
        const victims = connections.ended.slice(endedBefore, endedBefore + 1);
        expect(victims.map((victim) => asked[victim])).toEqual(victims.map(() => Math.max(...asked)));
      }
    }),
  );
});
