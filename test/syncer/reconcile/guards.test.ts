/** Back-off of recreations, and delays for contested copies. */

import { describe, expect, test } from 'vitest';
import {
  createContentionGuard,
  KeyContests,
  createRecreationBackoff,
  FoughtDeletions,
} from '../../../src/syncer/reconcile/guards.ts';
import { FakeClock } from '../../support/fake-clock.ts';

describe('back-off of recreations', () => {
  test('immediate the first time, then 250 ms × 2ⁿ up to five minutes', () => {
    const clock = new FakeClock();
    const backoff = createRecreationBackoff(clock);
    const waits: number[] = [];
    for (let i = 0; i < 14; i++) {
      backoff.noteDeletion('a');
      waits.push(backoff.waitMs('a'));
    }
    expect(waits.slice(0, 5)).toEqual([0, 250, 500, 1000, 2000]);
    expect(waits.at(-1)).toBe(300_000);
  });

  test('is reset after ten minutes without a deletion', () => {
    const clock = new FakeClock();
    const backoff = createRecreationBackoff(clock);
    backoff.noteDeletion('a');
    backoff.noteDeletion('a');
    clock.advance(10 * 60_000);
    expect(backoff.deletions('a')).toBe(0);
    backoff.noteDeletion('a');
    expect(backoff.waitMs('a')).toBe(0);
  });

  test('the delay expires', () => {
    const clock = new FakeClock();
    const backoff = createRecreationBackoff(clock);
    backoff.noteDeletion('a');
    backoff.noteDeletion('a');
    clock.advance(250);
    expect(backoff.waitMs('a')).toBe(0);
  });
});

describe('deletions of copies that another syncer creates again', () => {
  const fight = () => {
    const clock = new FakeClock();
    const deletions = new FoughtDeletions(clock);
    let version = 10;
    /** A copy of this version is to be deleted; the delay. The host cache reaches the version of its deletion. */
    const deleted = (copy: number): number => {
      const { waitMs } = deletions.verdict('default/web', String(copy));
      if (waitMs === 0) deletions.note('default/web', String(copy), String((version += 10)));
      return waitMs;
    };
    return { clock, deletions, deleted, recreated: () => deleted(version + 1) };
  };

  test('wait for five minutes after the second time within a minute, and again after each attempt', () => {
    const { clock, recreated } = fight();
    expect([recreated(), recreated(), recreated()]).toEqual([0, 0, 300_000]);
    clock.advance(300_000);
    expect([recreated(), recreated()]).toEqual([0, 300_000]);
  });

  test('stay reportable until they are reported: the event of the virtual object may come later', () => {
    const { deletions, deleted } = fight();
    for (const copy of [11, 21]) deleted(copy);
    const isReportable = () => deletions.verdict('default/web', '99').isReportable;
    expect([isReportable(), isReportable()]).toEqual([true, true]);
    deletions.noteReported('default/web');
    expect(isReportable()).toBe(false);
  });

  test('are reported once for each delay', () => {
    const { deletions, recreated } = fight();
    for (let time = 0; time < 2; time++) recreated();
    const reported = () => {
      const { isReportable } = deletions.verdict('default/web', '99');
      if (isReportable) deletions.noteReported('default/web');
      return isReportable;
    };
    expect([reported(), reported()]).toEqual([true, false]);
  });

  test('do not wait if the copies existed before, or come back later than within a minute', () => {
    const { clock, deleted, recreated } = fight();
    expect([1, 2, 3, 4].map(deleted)).toEqual([0, 0, 0, 0]);
    clock.advance(60_000);
    expect([recreated(), recreated()]).toEqual([0, 0]);
    clock.advance(10 * 60_000);
    expect([recreated(), recreated()]).toEqual([0, 0]);
  });
});

describe('keys that two writers rewrite on both sides', () => {
  const contest = () => {
    const clock = new FakeClock();
    const contests = new KeyContests(clock);
    const change = (to: 'host' | 'virtual', id = 'annotations a') =>
      contests.note('shop/web', [{ id, to }]).map(({ waitMs }) => waitMs);
    return { clock, contests, change };
  };

  test('back off alone from the fifth time within a minute: 1 s × 2ⁿ', () => {
    const { clock, contests, change } = contest();
    const waits = ['virtual', 'host', 'virtual', 'host', 'virtual', 'host'].map((to) =>
      change(to as 'host' | 'virtual'),
    );
    expect(waits).toEqual([[], [], [], [], [], [1000]]);
    expect([...contests.held('shop/web')]).toEqual([['annotations a', 1000]]);
    expect(change('virtual', 'annotations b')).toEqual([]);
    clock.advance(1000);
    expect(contests.held('shop/web').size).toBe(0);
    expect([change('host'), change('virtual')]).toEqual([[], [2000]]);
  });

  test('are not those that only one side changes, or both seldom', () => {
    const { clock, change } = contest();
    const waits = Array.from({ length: 20 }, () => change('virtual'));
    for (let time = 0; time < 20; time++) {
      clock.advance(20_000);
      waits.push(change(time % 2 === 0 ? 'host' : 'virtual'));
    }
    expect(waits.flat()).toEqual([]);
  });

  test('are forgotten with the object', () => {
    const { contests, change } = contest();
    for (let time = 0; time < 6; time++) change(time % 2 === 0 ? 'virtual' : 'host');
    contests.forget('shop/web');
    expect(contests.held('shop/web').size).toBe(0);
  });
});

describe('contention guard', () => {
  const contested = () => {
    const clock = new FakeClock();
    const guard = createContentionGuard(clock);
    const drift = () => guard.noteDrift('a').waitMs;
    /** Waits until the correction is due, writes it, and has it overwritten. */
    const correctAndDrift = (): number => {
      clock.advance(guard.waitMs('a'));
      expect(drift()).toBe(0);
      return drift();
    };
    return { clock, guard, drift, correctAndDrift };
  };

  test('corrections are delayed from the fifth overwrite within a minute: 1 s × 2ⁿ up to five minutes', () => {
    const { drift, correctAndDrift } = contested();
    expect(Array.from({ length: 5 }, drift)).toEqual([0, 0, 0, 0, 1000]);
    const waits = Array.from({ length: 10 }, correctAndDrift);
    expect(waits).toEqual([2, 4, 8, 16, 32, 64, 128, 256, 300, 300].map((seconds) => seconds * 1000));
  });

  test('values that another syncer copies back are replaced once, and with delays from the second time within a minute', () => {
    const { clock, guard } = contested();
    const echo = () => guard.noteDrift('a', true).waitMs;
    expect([echo(), echo()]).toEqual([0, 1000]);
    clock.advance(1000);
    expect([echo(), echo()]).toEqual([0, 2000]);
  });

  test('several overwrites before one correction do not increase the delay, and are reported once', () => {
    const { clock, guard } = contested();
    const verdicts = Array.from({ length: 30 }, () => {
      clock.advance(10);
      return guard.noteDrift('a');
    });
    expect(verdicts.filter(({ isReportable }) => isReportable)).toHaveLength(1);
    expect(guard.waitMs('a')).toBeLessThanOrEqual(1000);
    clock.advance(1000);
    expect(guard.noteDrift('a').waitMs).toBe(0);
  });

  test('a write of a change corrects the drift, and its overwrite does not increase the delay', () => {
    const { guard, drift, correctAndDrift } = contested();
    Array.from({ length: 5 }, drift);
    expect(correctAndDrift()).toBe(2000);
    for (let i = 0; i < 10; i++) {
      guard.noteChange('a');
      expect(guard.waitMs('a')).toBe(0);
      expect(drift()).toBe(2000);
    }
    expect(correctAndDrift()).toBe(4000);
  });

  test('is reset after ten minutes without a deletion', () => {
    const { clock, drift, correctAndDrift } = contested();
    Array.from({ length: 5 }, drift);
    correctAndDrift();
    clock.advance(10 * 60_000);
    expect(drift()).toBe(0);
  });

  test('slow drift is not contention', () => {
    const clock = new FakeClock();
    const guard = createContentionGuard(clock);
    for (let i = 0; i < 20; i++) {
      expect(guard.noteDrift('a').waitMs).toBe(0);
      clock.advance(20_000);
    }
  });
});
