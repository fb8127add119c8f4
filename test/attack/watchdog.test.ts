/** Attacks that only SIGKILL stops, and the patches of other objects meanwhile. */

import { spawn } from 'node:child_process';
import { existsSync, readFileSync, readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { processorMs } from '../../src/syncer/sandbox/child.ts';
import { LIMITS, MIB, outcomeOf, TestSandbox, textOf } from '../syncer/sandbox/test-sandbox.ts';

const WEDGES = ['(() => { while (true) {} })()', '[].indexOf.call({ length: 2 ** 53 - 1 }, 1)'];
const sandboxes: TestSandbox[] = [];

async function open(...options: Parameters<typeof TestSandbox.open>): Promise<TestSandbox> {
  const sandbox = await TestSandbox.open(...options);
  sandboxes.push(sandbox);
  return sandbox;
}

afterEach(async () => {
  for (const sandbox of sandboxes.splice(0)) await sandbox[Symbol.asyncDispose]();
});

/** The process interrupts a loop itself. On a loaded machine it may be too late, so the watchdog's clock does not advance. */
const WITHOUT_WATCHDOG = { clock: { ...systemClock, monotonicMs: () => 0 } };
const STOPPED = expect.stringMatching(/^(timeout|killed)$/) as string;

/** Half a second on a quiet machine; an expression that is not stopped takes hours. */
const STOPPED_MS_MAX = 15_000;

describe.each(WEDGES)('one object runs into %s', (wedge) => {
  test('fails within the limits, and a thousand others succeed', async () => {
    const isLoop = wedge.includes('while');
    const sandbox = await open({
      limits: { expressionTimeoutMs: 100, batchTimeoutMs: 1000, memoryBytes: 128 * MIB, memoBytes: 0 },
      ...(isLoop ? WITHOUT_WATCHDOG : {}),
    });
    const program = sandbox.define(`value === "evil" ? ${wedge} : value + "!"`);
    await sandbox.ask(program, ['warm']);
    const started = performance.now();
    const asked = Array.from({ length: 1001 }, (_, i) =>
      i === 500
        ? sandbox.ask(program, ['evil'], { object: { namespace: 'hostile', name: 'evil' } })
        : sandbox.ask(program, [`v${i}`]),
    );
    const evil = asked.splice(500, 1);
    for (const [i, response] of (await Promise.all(asked)).entries()) {
      expect(response).toEqual({ values: [`v${i < 500 ? i : i + 1}!`], errors: undefined });
    }
    const [failed] = await Promise.all(evil);
    expect(performance.now() - started).toBeLessThan(STOPPED_MS_MAX);
    expect(failed?.errors?.get(0)?.kind).toBe(isLoop ? 'timeout' : 'killed');
  });
});

test('the patch fails on that object alone, and finished matches and other patches keep their results', async () => {
  const sandbox = await open();
  const bad = sandbox.define('value === 3 ? [].lastIndexOf.call({ length: 2 ** 53 - 1 }, 1) : value * 2');
  const good = sandbox.define('value + 1');
  const [first, second, third] = await Promise.all([
    sandbox.ask(good, [1, 2, 3]),
    sandbox.ask(bad, [1, 2, 3, 4]),
    sandbox.ask(good, [4]),
  ]);
  expect(first?.values).toEqual([2, 3, 4]);
  expect(third?.values).toEqual([5]);
  // The patch has already failed on this object, so its last match is not evaluated.
  expect(second?.values).toEqual([2, 4, undefined, undefined]);
  expect([...(second?.errors?.keys() ?? [])]).toEqual([2, 3]);
});

test('two objects that time out in one batch fail, and no other object does', async () => {
  const sandbox = await open();
  const program = sandbox.define('value > 1 ? [].indexOf.call({ length: 2 ** 53 - 1 }, 1) : value');
  const asked = await Promise.all([0, 2, 1, 3, 0].map((value) => sandbox.ask(program, [value])));
  expect(asked.map((response) => outcomeOf(response, 0))).toEqual([
    { value: 0 },
    expect.objectContaining({ error: 'killed' }),
    { value: 1 },
    expect.objectContaining({ error: 'killed' }),
    { value: 0 },
  ]);
});

test('an object that exceeded a limit is retried later, others run immediately', async () => {
  // The quarantine does not end before the second request, however slow the machine is.
  const sandbox = await open({ clock: { ...WITHOUT_WATCHDOG.clock, now: () => Date.UTC(2026, 0, 1) } });
  const program = sandbox.define('value === "evil" ? (() => { for (;;) {} })() : value');
  const object = { namespace: 'ns', name: 'evil' };
  const first = await sandbox.ask(program, ['evil'], { object });
  // With another value too: an object that is updated repeatedly must not stop a process each time.
  const again = await sandbox.ask(program, ['good'], { object });
  const other = await sandbox.ask(program, ['good']);
  expect(outcomeOf(first, 0)).toMatchObject({ error: 'timeout' });
  expect(first.errors?.get(0)?.retryAfterMs).toBeGreaterThan(500);
  expect(textOf(outcomeOf(again, 0))).toMatch(/^killed: .*quarantined until/);
  expect(again.errors?.get(0)?.retryAfterMs).toBeGreaterThan(0);
  expect(outcomeOf(other, 0)).toEqual({ value: 'good' });
});

test('an expression that exceeds a limit on some objects still runs on others', async () => {
  const sandbox = await open();
  const program = sandbox.define('value.endsWith("?") ? (() => { for (;;) {} })() : value');
  for (const value of ['a?', 'b?', 'c?', 'd?']) {
    const object = { namespace: 'hostile', name: value };
    expect(outcomeOf(await sandbox.ask(program, [value], { object }), 0)).toMatchObject({ error: STOPPED });
  }
  for (const namespace of ['hostile', 'other']) {
    const object = { namespace, name: 'fine' };
    expect(outcomeOf(await sandbox.ask(program, ['fine'], { object }), 0)).toEqual({ value: 'fine' });
  }
  expect(sandbox.log.filter(({ level }) => level === 'warn')).toHaveLength(4);
});

test('memory above the limit fails the expression that allocates it, not the next one', async () => {
  const sandbox = await open();
  const greedy = sandbox.define('value.repeat(2 ** 27).split("").length');
  const modest = sandbox.define('value + "!"');
  const [failed, fine] = await Promise.all([sandbox.ask(greedy, ['v']), sandbox.ask(modest, ['v'])]);
  expect(['memory', 'timeout', 'killed']).toContain(failed?.errors?.get(0)?.kind);
  expect(fine?.values).toEqual(['v!']);
});

test('of many objects in one batch, only those that allocate too much memory fail', async () => {
  // Time is not what stops them: on a loaded machine, a modest one takes longer than the usual 50 ms.
  const sandbox = await open({ limits: { ...LIMITS, expressionTimeoutMs: 10_000, batchTimeoutMs: 60_000 } });
  const program = sandbox.define('value.repeat(value === "greedy" ? 2 ** 24 : 2 ** 17).split("").length > 0');
  const values = Array.from({ length: 60 }, (_, i) => (i % 20 === 19 ? 'greedy' : 'modest'));
  const responses = await Promise.all(values.map((value) => sandbox.ask(program, [value])));
  const failed = responses.map(({ errors }) => errors !== undefined);
  expect(failed).toEqual(values.map((value) => value === 'greedy'));
});

test('a child that exits is replaced, and its requests are repeated', async () => {
  const sandbox = await open();
  const program = sandbox.define('value + "!"');
  await sandbox.ask(program, ['warm']);
  const [pid] = sandbox.pids;
  const asked = sandbox.ask(program, ['after']);
  process.kill(pid ?? 0, 'SIGKILL');
  expect((await asked).values).toEqual(['after!']);
  expect((await sandbox.ask(program, ['later'])).values).toEqual(['later!']);
  expect(sandbox.pids).not.toContain(pid);
});

test('an expression that gets little processor time has an extended timeout', async () => {
  const sandbox = await open({ limits: { ...LIMITS, expressionTimeoutMs: 500, batchTimeoutMs: 10_000 } });
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

test('the time limit of quarantined objects is measured in processor time, not in elapsed time on a busy machine', async () => {
  const sandbox = await open({ limits: { ...LIMITS, expressionTimeoutMs: 200 } });
  const program = sandbox.define('value === "evil" ? (() => { for (;;) {} })() : value');
  const ask = (name: string) => sandbox.ask(program, [name], { object: { namespace: 'hostile', name } });
  await ask('evil');
  const [main] = sandbox.pids;
  await ask('first');
  const throttled = sandbox.pids.find((pid) => pid !== main) ?? 0;
  process.kill(throttled, 'SIGSTOP');
  const delayed = ask('second');
  setTimeout(() => process.kill(throttled, 'SIGCONT'), 2000);
  expect((await delayed).values).toEqual(['second']);
  const startedMs = performance.now();
  expect((await ask('third')).values).toEqual(['third']);
  // Charged for the two seconds, it would wait 13 s.
  expect(performance.now() - startedMs).toBeLessThan(12_000);
});

test('the limit of one second applies to all matches of an object together', async () => {
  const limits = { expressionTimeoutMs: 60, batchTimeoutMs: 150, memoryBytes: 128 * MIB, memoBytes: 0 };
  const sandbox = await open({ limits });
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

describe('the process', () => {
  test.runIf(process.platform === 'linux')('has no environment and no file but its pipes', async () => {
    const sandbox = await open();
    await sandbox.run('value + 1', 1);
    const [pid] = sandbox.pids;
    expect(readFileSync(`/proc/${pid}/environ`, 'utf8')).toBe('');
    const files = readdirSync(`/proc/${pid}/fd`).map((fd) => linkAt(`/proc/${pid}/fd/${fd}`));
    const others = files.filter((name) => !/^(socket|pipe|anon_inode):/.test(name) && name !== '/dev/null');
    expect(others).toEqual([]);
  });

  test.runIf(process.platform === 'linux')('may read nothing but the addon', async () => {
    const sandbox = await open();
    await sandbox.run('value + 1', 1);
    const [pid] = sandbox.pids;
    const flags = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
    expect(flags).toContain('--permission');
    const allowed = flags.filter((flag) => flag.startsWith('--allow-')).join(' ');
    expect(allowed).toMatch(/^--allow-addons --allow-fs-read=[^ ]*isolated-vm[^ ]*\.node$/);
  });

  test('exits when the sandbox is closed, also while it hangs', async () => {
    const sandbox = await open();
    const program = sandbox.define('[].indexOf.call({ length: 2 ** 53 - 1 }, value)');
    await sandbox.run('value', 1);
    const asked = sandbox.ask(program, [1]);
    const { pids } = sandbox;
    await sandbox[Symbol.asyncDispose]();
    expect(outcomeOf(await asked, 0)).toMatchObject({ error: 'killed' });
    await expect.poll(() => pids.filter(isAlive)).toEqual([]);
    expect(outcomeOf(await sandbox.ask(program, [1]), 0)).toMatchObject({ error: 'killed' });
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
    await expect.poll(() => pids.filter(isAlive), { timeout: STOPPED_MS_MAX }).toEqual([]);
  });
});

/** False for a zombie, too. */
function isAlive(pid: number): boolean {
  if (process.platform !== 'linux') {
    try {
      return process.kill(pid, 0);
    } catch {
      return false;
    }
  }
  const path = `/proc/${pid}/stat`;
  if (!existsSync(path)) return false;
  return !/^\d+ \(.*\) [ZX]/.test(readFileSync(path, 'utf8'));
}

function linkAt(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '/dev/null';
  }
}
