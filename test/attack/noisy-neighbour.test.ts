/** One namespace full of objects that an expression has to be stopped on, and what the objects of others notice of it. */

import { availableParallelism, loadavg } from 'node:os';
import { afterEach, describe, expect, test } from 'vitest';
import { LIMITS, Room } from '../syncer/sandbox/room.ts';
import { HOSTILE, HOSTILE_EXPRESSIONS, Tenants } from './tenants.ts';

/** Finding out that a process no longer answers, ending it, and starting another one. */
const KILL_MS = 600;
const SAME_NAMESPACE_MS = 10_000;
const PROBE_MS = 4000;

const rooms: Room[] = [];
afterEach(async () => {
  for (const room of rooms.splice(0)) await room[Symbol.asyncDispose]();
});

describe.each(Object.entries(HOSTILE_EXPRESSIONS))('%s', (_what, expression) => {
  test.each(['created once', 'updated all the time'])(`${HOSTILE} hostile objects, %s`, async (how) => {
    const room = await Room.open({ limits: { ...LIMITS, expressionTimeoutMs: 100, memoBytes: 2 ** 20 } });
    rooms.push(room);
    const tenants = new Tenants(room, room.define(expression));
    const other = { namespace: 'other', name: 'web' };
    const neighbour = { namespace: 'hostile', name: 'web' };
    await Promise.all([other, neighbour].map((object) => tenants.sync(object, () => 'first')));
    const before = Math.max(...(await tenants.probe(other, 500)));
    tenants.attack({ isUpdated: how !== 'created once' });
    const created = tenants.sync({ namespace: 'hostile', name: 'new' }, () => 'fine');
    const [others, neighbours, newest] = await Promise.all([
      tenants.probe(other, PROBE_MS),
      tenants.probe(neighbour, PROBE_MS),
      created,
    ]);
    tenants.isOver = true;
    expect(Math.max(...others)).toBeLessThan((2 * before + KILL_MS) * patience());
    expect(Math.max(...neighbours)).toBeLessThan(SAME_NAMESPACE_MS * patience());
    expect(newest).toBeLessThan(SAME_NAMESPACE_MS * patience());
    // It kept being served, not only once at the end.
    expect(others.length).toBeGreaterThan(PROBE_MS / 100 / patience());
  });
});

/** How much longer things take on a machine that others use too. */
function patience(): number {
  return Math.max(1, (loadavg()[0] ?? 0) / availableParallelism());
}
