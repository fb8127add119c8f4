/** Processes that several sandboxes share, as the members of a fleet do: what each of them gets of the others. */

import { describe, expect, test } from 'vitest';
import { HOSTILE_EXPRESSIONS } from '../attack/tenants.ts';
import { eventually } from '../support/eventually.ts';
import { LIMITS, outcomeOf, sharedProcesses, TestSandbox } from './test-sandbox.ts';

/** On a loaded machine, an innocent expression has time enough. */
const limits = { ...LIMITS, expressionTimeoutMs: 200 };
const BOMB = 'value.startsWith("aaa") ? value.repeat(2 ** 22).split("").length : value + "!"';
const EVIL = `${'a'.repeat(32)}b`;

function member(
  processes: ReturnType<typeof sharedProcesses>,
  owner: string,
  name = owner,
): Promise<TestSandbox> {
  const vcluster = { name, namespace: owner, config: {} };
  return TestSandbox.open({ limits, vcluster, shared: { processes, owner } });
}

test('more of them than isolates may be open share two processes, and each has its own isolate', async () => {
  using processes = sharedProcesses();
  const members = await Promise.all(
    Array.from({ length: 20 }, (_, at) => member(processes, 'team-a', `vc-${at}`)),
  );
  for (let round = 0; round < 2; round++) {
    const asked = members.map(async (sandbox) => {
      const program = sandbox.define(`context.vcluster.name + value + ${round}`);
      return sandbox.ask(program, ['-']);
    });
    const values = (await Promise.all(asked)).map((response) => response.values[0]);
    expect(values).toEqual(members.map((_, at) => `vc-${at}-${round}`));
  }
  expect(new Set(members.flatMap(({ pids }) => pids)).size).toBe(1);
});

describe.each([...Object.entries(HOSTILE_EXPRESSIONS), ['a list that takes much memory', BOMB]])(
  'a member with %s',
  (_what, expression) => {
    test('gets the expressions of others neither stopped nor quarantined', async () => {
      using processes = sharedProcesses();
      await using hostile = await member(processes, 'evil');
      await using neighbour = await member(processes, 'evil', 'other');
      await using other = await member(processes, 'good');
      const bad = hostile.define(expression);
      const attack = Array.from({ length: 30 }, (_, at) =>
        hostile.ask(bad, [`${EVIL}${at}`], { object: { namespace: `ns-${at % 5}`, name: `evil-${at}` } }),
      );
      for (const sandbox of [neighbour, other]) {
        const program = sandbox.define('value + "!"');
        for (let at = 0; at < 20; at++) {
          const { values, errors } = await sandbox.ask(program, [`${at}`]);
          expect([values, errors]).toEqual([[`${at}!`], undefined]);
        }
        expect(sandbox.log).toEqual([]);
      }
      await eventually(
        () => hostile.log.filter(({ message }) => message === 'an expression was stopped').length,
        (stops) => stops > 0,
        { what: 'a stop' },
      );
      await hostile[Symbol.asyncDispose]();
      await Promise.all(attack);
    });
  },
);

test('owners take turns', async () => {
  using processes = sharedProcesses();
  const ended: string[] = [];
  const owners = ['team-a', 'team-b', 'team-c'];
  const members = await Promise.all(owners.map((owner) => member(processes, owner)));
  await members[0]?.run('value', 1);
  const asked = members.map((sandbox, of) => {
    const program = sandbox.define('(() => { for (let n = 0; n < 2e5; n++) value; return value })()');
    const count = of === 0 ? 3000 : 1;
    return Array.from({ length: count }, async (_, at) => {
      await sandbox.ask(program, [at]);
      ended.push(owners[of] ?? '');
    });
  });
  await Promise.all(asked.flat());
  // Two batches of the first one, of 512 requests each, may come before.
  for (const owner of ['team-b', 'team-c']) expect(ended.indexOf(owner)).toBeLessThan(1100);
});

test('an owner that needs more than its share of the main process is throttled, and no other', async () => {
  using processes = sharedProcesses();
  await using greedy = await member(processes, 'greedy');
  await using other = await member(processes, 'other');
  const postponed: string[] = [];
  const ask = (sandbox: TestSandbox, expression: string, name: string) =>
    sandbox.ask(sandbox.define(expression), [name], { postpone: () => void postponed.push(name) });
  const slow = '(() => { for (let n = 0; n < 5e6; n++) value; return value })()';
  let asked = 0;
  for (; postponed.length === 0 && asked < 5000; asked++) await ask(greedy, slow, 'greedy');
  await ask(other, 'value', 'other');
  expect(asked).toBeGreaterThan(10);
  expect(postponed).toEqual(['greedy']);
});

test('when one of them is closed, its requests fail, and the others go on', async () => {
  using processes = sharedProcesses();
  const closed = await member(processes, 'team-a', 'closed');
  await using other = await member(processes, 'team-a', 'other');
  const slow = '(() => { for (let n = 0; n < 3e7; n++) value; return value })()';
  await closed.run('value', 1);
  const [inFlight, waiting] = [closed.define(slow), closed.define('value')];
  const asked = [closed.ask(inFlight, [1])];
  await new Promise((resolve) => setImmediate(resolve));
  asked.push(closed.ask(waiting, [1]));
  const others = other.ask(other.define('value'), [1]);
  await closed[Symbol.asyncDispose]();
  const outcomes = (await Promise.all(asked)).map((response) => outcomeOf(response, 0));
  expect(outcomes).toEqual(
    Array.from({ length: 2 }, () => ({ error: 'killed', message: 'the sandbox is closed' })),
  );
  expect((await others).values).toEqual([1]);
  expect((await other.ask(other.define('value + 1'), [1])).values).toEqual([2]);
  expect(other.log).toEqual([]);
});
