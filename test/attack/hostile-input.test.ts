/** One hostile of ten: a member has an API server that sends what takes memory or a processor, before it joins and afterwards. The others are synced meanwhile. Their latencies: `npm run bench -- hostile`. */

import { describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { SWITCHED_OFF } from '../scenarios/fleet-world.ts';
import { HOSTILE_INPUTS, LARGE_OBJECT, PATCHES_OF_LARGE, TOO_COSTLY } from './hostile-input.ts';
import { HostileMember } from './hostile-member.ts';

const ROUNDS = 2;
const CASES = [
  ...Object.entries(HOSTILE_INPUTS).map(([what, answer]) => ({ what, answer, patches: [] })),
  ...Object.entries(PATCHES_OF_LARGE).map(([patch, patches]) => ({
    what: `a large object that changes, to ${patch}`,
    answer: LARGE_OBJECT,
    patches: [patches],
  })),
];

describe('one hostile of ten, with an API server that sends', () => {
  test.each(CASES)('$what', async ({ what, answer, patches }) => {
    const endpoints = { enabled: false, patches };
    await using attack = await HostileMember.open({
      values: { sync: { toHost: { ...SWITCHED_OFF, endpoints } } },
    });
    const { fleet, hostile, virtual, world } = attack;
    let answered = 0;
    let hasListed = false;
    virtual.behaviour = {
      decide(request) {
        const verdict = answer(request);
        if (verdict.kind === 'pass') return verdict;
        answered += 1;
        hasListed ||= !request.isWatch;
        return verdict;
      },
    };
    virtual.cutAll();
    await eventually(
      () => answered,
      (count) => count >= 1,
      { what: 'a request that gets it' },
    );
    for (let round = 0; round < ROUNDS; round++) await attack.othersAreSynced();
    if (TOO_COSTLY.has(what))
      await fleet.whenMetric('endpoint_syncer_watch_restarts_total', (count) => count > 0, {
        vcluster: hostile.key,
        reason: 'oversized',
      });
    // Objects that its lists leave out do not exist any more.
    const copy = await world.host.find('Endpoints', ...world.hostKey(hostile, 'web'));
    expect(hasListed || copy !== undefined).toBe(true);
    // No attempt follows another one at once, and no line of the log has what was sent.
    expect(answered).toBeLessThan(200);
    const lines = fleet.log.map((line) => JSON.stringify(line).length);
    expect(Math.max(...lines)).toBeLessThan(10_000);
    expect(attack.dropped()).toBe(0);
    answered = 0;
    await attack.restart();
    await eventually(
      () => answered,
      (count) => count >= 1,
      { what: 'a request of the next process that gets it' },
    );
    await attack.othersAreSynced();
    expect(attack.dropped()).toBe(0);
  });
});
