/** Many members of one namespace, each with expressions that take all they may: the processes of the fleet, and what the others get. */

import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import { newEmbeddedFleet, SWITCHED_OFF } from '../scenarios/fleet-world.ts';
import { eventually } from '../support/eventually.ts';
import { HOSTILE_EXPRESSIONS } from './tenants.ts';

const MEMBERS = 12;
const OBJECTS = 6;
/** None of them, nor that of the others, is evaluated without a process. */
const EXPRESSIONS = {
  ...HOSTILE_EXPRESSIONS,
  'a list that takes much memory': 'Array(11e6).fill(value.length).length + value',
  nothing: '"a-" + value.replace(/x/i, "y")',
};
const EVIL = `${'a'.repeat(32)}b`;
const LIMIT = 3;

test.runIf(process.platform === 'linux').each(Object.entries(EXPRESSIONS))(
  '12 members of one namespace, with %s, have three processes at most, and keep no other from its own expressions',
  async (what, expression) => {
    await using world = await newEmbeddedFleet();
    const values = patchedBy(expression);
    const good = await world.install('good', { values: patchedBy('value.replace(/the tenant/i, "us")') });
    const many = [];
    for (let at = 0; at < MEMBERS; at++)
      many.push(await world.install(`m-${at}`, { index: 1, namespace: 'team-many', values }));
    const [first] = many;
    if (first === undefined) throw new Error('there is none');
    for (let at = 0; at < OBJECTS; at++) {
      await world.createEndpoints(first, `web-${at}`, '10.5.0.1');
      await first.virtual.merge('Endpoints', ['default', `web-${at}`], {
        metadata: { annotations: noted(`${EVIL}${at}`) },
      });
    }
    const before = sandboxes();
    const fleet = await world.start();
    let most = 0;
    for (let at = 0; at < 30; at++) {
      const annotations = noted(`${EVIL} ${at}`);
      await first.virtual.merge('Endpoints', ['default', `web-${at % OBJECTS}`], {
        metadata: { annotations },
      });
      await world.createEndpoints(good, `web-${at}`, '10.1.0.1');
      const copy = await world.whenCopied(good, `web-${at}`, '10.1.0.1');
      expect(copy.metadata.annotations?.['example.com/by']).toBe('us');
      most = Math.max(most, sandboxes().filter((pid) => !before.includes(pid)).length);
    }
    for (const vcluster of [good, ...many]) await world.whenState(fleet, vcluster, 'joined');
    // What takes memory may be stopped, on a busy machine.
    if (Object.hasOwn(HOSTILE_EXPRESSIONS, what))
      await eventually(
        () => stopsOf(fleet.log, 'team-many/'),
        (stops) => stops > 0,
        { what: 'a stop' },
      );
    expect(stopsOf(fleet.log, good.key)).toBe(0);
    expect(most).toBeGreaterThan(0);
    expect(most).toBeLessThanOrEqual(LIMIT);
  },
);

function patchedBy(expression: string): JsonObject {
  const patches = [{ path: 'metadata.annotations["example.com/by"]', expression }];
  return { sync: { toHost: { ...SWITCHED_OFF, endpoints: { enabled: false, patches } } } };
}

function noted(value: string): Record<string, string> {
  return { 'example.com/by': value };
}

function stopsOf(log: readonly Readonly<Record<string, unknown>>[], vcluster: string): number {
  return log.filter(
    (line) => line['msg'] === 'an expression was stopped' && String(line['vcluster']).startsWith(vcluster),
  ).length;
}

/** Sandbox processes that this one has started. */
function sandboxes(): string[] {
  const children = readdirSync('/proc/self/task').flatMap((thread) =>
    readFileSync(`/proc/self/task/${thread}/children`, 'utf8').split(' '),
  );
  return children.filter((pid) => pid !== '' && isSandbox(pid));
}

function isSandbox(pid: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('--allow-addons');
  } catch {
    return false;
  }
}
