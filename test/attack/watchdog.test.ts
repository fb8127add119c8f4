/** Attacks that only SIGKILL stops, and the patches of other objects meanwhile. */

import { afterEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { LIMITS, MIB, outcomeOf, TestSandbox, textOf } from '../expressions/test-sandbox.ts';
import { WEDGES } from './hostile-expressions.ts';

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
