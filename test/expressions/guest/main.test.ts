/** The process keeps its limits in processor time, and ends with the daemon. */

import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { processorMs } from '../../../src/expressions/child.ts';
import { isAlive } from '../is-alive.ts';
import { LIMITS, MIB, outcomeOf, TestSandbox } from '../test-sandbox.ts';

test('an expression that gets little processor time has an extended timeout', async () => {
  await using sandbox = await TestSandbox.open({
    limits: { ...LIMITS, expressionTimeoutMs: 500, batchTimeoutMs: 10_000 },
  });
  const busy = sandbox.define(
    '(() => { let n = value; for (let i = 0; i < 3e7; i++) n = (n + i) % 7; return n; })()',
  );
  expect((await sandbox.ask(sandbox.define('value'), [1])).values).toEqual([1]);
  const [pid = 0] = sandbox.pids;
  const idleMs = processorMs(pid) ?? 0;
  const asked = sandbox.ask(busy, [0]);
  await expect.poll(() => processorMs(pid), { interval: 1 }).toBeGreaterThan(idleMs);
  // As on a machine that gives the process nothing for three times its limit.
  process.kill(pid, 'SIGSTOP');
  await sleep(1500);
  process.kill(pid, 'SIGCONT');
  const answer = await asked;
  expect(outcomeOf(answer, 0)).toEqual({ value: 1 });
});

test('the limit of one second applies to all matches of an object together', async () => {
  const limits = { expressionTimeoutMs: 60, batchTimeoutMs: 150, memoryBytes: 128 * MIB, memoBytes: 0 };
  await using sandbox = await TestSandbox.open({ limits });
  // A few milliseconds each: fine alone, too much together.
  const slow = sandbox.define(
    '(() => { let n = 0; for (let i = 0; i < 1e6; i++) n = (n + i) % 7; return value; })()',
  );
  const good = sandbox.define('value');
  const [much, other] = await Promise.all([
    sandbox.ask(
      slow,
      Array.from({ length: 200 }, (_, i) => i),
    ),
    sandbox.ask(good, [1]),
  ]);
  expect(other?.values).toEqual([1]);
  expect(much?.errors?.get(199)?.message).toMatch(/150 ms/);
  expect(much?.errors?.get(199)?.kind).toBe('timeout');
  expect(much?.values[0]).toBe(0);
});

test.each(['idle', 'wedged'])('ends with the daemon when it is %s', async (state) => {
  const script = join(import.meta.dirname, 'daemon-to-kill.ts');
  const daemon = spawn(process.execPath, ['--no-node-snapshot', script, state], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const pids = await new Promise<number[]>((resolve) => {
    daemon.stdout.once('data', (line: Buffer) => resolve(JSON.parse(line.toString()) as number[]));
  });
  expect(pids.filter(isAlive)).toEqual(pids);
  daemon.kill('SIGKILL');
  // Less than the limits of the expression.
  await expect.poll(() => pids.filter(isAlive), { timeout: 15_000 }).toEqual([]);
});
