/** Tenants that share one sandbox: one creates objects on which an expression times out, the others keep updating their own objects. */

import type { ObjectIdentity, Program } from '../../src/expressions/types.ts';
import type { TestSandbox } from '../expressions/test-sandbox.ts';

export const HOSTILE = 100;
export const HOSTILE_EXPRESSIONS = {
  'a regular expression that no engine runs in linear time': 'value.replace(/^(a+)+$/i, "x")',
  'a loop': 'value.startsWith("aaa") ? (() => { for (;;) {} })() : value + "!"',
  'a builtin that nothing interrupts':
    'value.startsWith("aaa") ? [].indexOf.call({ length: 2 ** 53 - 1 }, 1) : value + "!"',
};

/** Syncs objects as the engine does: a failure is retried after its `retryAfterMs`, or with exponential backoff. */
export class Tenants implements Disposable {
  readonly #sandbox: TestSandbox;
  readonly #program: Program;
  #serial = 0;
  #isOver = false;

  constructor(sandbox: TestSandbox, program: Program) {
    this.#sandbox = sandbox;
    this.#program = program;
  }

  [Symbol.dispose](): void {
    this.#isOver = true;
  }

  /** Returns how long it took until the object was patched, milliseconds. */
  async sync(object: ObjectIdentity, value: () => string): Promise<number> {
    const startedMs = performance.now();
    for (let failures = 0; !this.#isOver; failures++) {
      const response = await this.#sandbox.ask(this.#program, [value()], { object });
      const error = response.errors?.get(0);
      if (error === undefined) break;
      await sleep(error.retryAfterMs ?? 5 * 2 ** Math.min(failures, 16));
    }
    return performance.now() - startedMs;
  }

  /** The latencies of updates that follow each other, milliseconds. */
  async probe(
    object: ObjectIdentity,
    isEnough: (latencies: readonly number[]) => boolean,
  ): Promise<number[]> {
    const latencies: number[] = [];
    while (!isEnough(latencies)) {
      latencies.push(await this.sync(object, () => `update ${this.#serial++}`));
      await sleep(20);
    }
    return latencies;
  }

  attack({ isUpdated }: { readonly isUpdated: boolean }): void {
    const evil = `${'a'.repeat(32)}b`;
    for (let i = 0; i < HOSTILE; i++) {
      const object = { namespace: 'hostile', name: `evil-${i}` };
      if (isUpdated) void this.#update(object, evil);
      else void this.sync(object, () => `${evil}${i}`);
    }
  }

  /** Each event of an object is a new attempt, also while it is quarantined. */
  async #update(object: ObjectIdentity, evil: string): Promise<void> {
    while (!this.#isOver) {
      await this.#sandbox.ask(this.#program, [`${evil}${this.#serial++}`], { object });
      await sleep(100);
    }
  }
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
