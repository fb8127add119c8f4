/** Objects of a namespace in which an expression had to be stopped: they share a process that gets little time. */

import { expect, test } from 'vitest';
import type { EvaluateRequest } from '../../src/expressions/types.ts';
import { LIMITS, outcomeOf, TestSandbox, textOf } from './test-sandbox.ts';

/** A process that is stopped by the system evaluates nothing, and uses no time. */
async function withThrottled() {
  const sandbox = await TestSandbox.open({ limits: { ...LIMITS, expressionTimeoutMs: 200 } });
  const program = sandbox.define('value === "evil" ? (() => { for (;;) {} })() : value');
  const ask = (
    name: string,
    { value = name, postpone }: { value?: string; postpone?: EvaluateRequest['postpone'] } = {},
  ) =>
    sandbox.ask(program, [value], { object: { namespace: 'hostile', name }, ...(postpone && { postpone }) });
  await ask('evil');
  const [main] = sandbox.pids;
  await ask('first');
  const throttled = sandbox.pids.find((pid) => pid !== main) ?? 0;
  const signal = (name: 'SIGSTOP' | 'SIGCONT') => process.kill(throttled, name);
  return { ask, signal, [Symbol.asyncDispose]: () => sandbox[Symbol.asyncDispose]() };
}

test('the time limit of quarantined objects is measured in processor time, not in elapsed time on a busy machine', async () => {
  await using world = await withThrottled();
  world.signal('SIGSTOP');
  const delayed = world.ask('second');
  setTimeout(() => world.signal('SIGCONT'), 2000);
  expect((await delayed).values).toEqual(['second']);
  const startedMs = performance.now();
  expect((await world.ask('third')).values).toEqual(['third']);
  // Charged for the two seconds, it would wait 13 s.
  expect(performance.now() - startedMs).toBeLessThan(12_000);
});

test('one that is withdrawn fails, and its successor has its place', async () => {
  await using world = await withThrottled();
  world.signal('SIGSTOP');
  const first = world.ask('0');
  const ended: string[] = [];
  const withdrawing = Promise.withResolvers<() => void>();
  const outdated = world.ask('changed', { value: 'before', postpone: withdrawing.resolve });
  const others = Array.from({ length: 3 }, async (_, at) => {
    await world.ask(`other ${at}`);
    ended.push(`other ${at}`);
  });
  const successor = world.ask('changed', { value: 'after' }).then((response) => {
    ended.push('changed');
    return response;
  });
  (await withdrawing.promise)();
  expect(textOf(outcomeOf(await outdated, 0))).toBe('killed: the request was withdrawn');
  world.signal('SIGCONT');
  await Promise.all([first, ...others]);
  expect((await successor).values).toEqual(['after']);
  // The newest come first, but each fourth is the oldest.
  expect(ended).toEqual(['other 2', 'changed', 'other 1', 'other 0']);
});

test('while nothing progresses, 64 objects wait, and those that came before them are to try again', async () => {
  await using world = await withThrottled();
  world.signal('SIGSTOP');
  const asked = Array.from({ length: 100 }, async (_, i) => textOf(outcomeOf(await world.ask(`${i}`), 0)));
  // The first one is in the process, the next 35 make room.
  const rejected = await Promise.all(asked.slice(1, 36));
  expect(new Set(rejected)).toEqual(
    new Set(['killed: too many objects wait for the throttled sandbox process']),
  );
  world.signal('SIGCONT');
  expect(await Promise.all([...asked.slice(0, 1), ...asked.slice(36)])).toEqual(
    [0, ...Array.from({ length: 64 }, (_, i) => i + 36)].map((i) => JSON.stringify({ value: `${i}` })),
  );
});
