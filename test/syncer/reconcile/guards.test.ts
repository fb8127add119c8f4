/** Back-off of recreations, and delays for contested copies. */

import { describe, expect, test } from 'vitest';
import {
  AUTOMATIC_OVERWRITES_MAX,
  Arrivals,
  correctionWaitMs,
  deletionsOf,
  FoughtDeletions,
  heldKeys,
  noteChange,
  noteDeletion,
  noteDrift,
  OVERWRITES_MAX,
  noteKeyChanges,
  recreationWaitMs,
  type Contest,
  type KeyContests,
  type Streak,
} from '../../../src/syncer/reconcile/guards.ts';
import { FakeClock } from '../../support/fake-clock.ts';

describe('back-off of recreations', () => {
  const deleted = (streak: Streak | undefined, times: number): Streak | undefined =>
    times === 0 ? streak : deleted(noteDeletion(streak, 0), times - 1);

  test.each([
    [1, 0],
    [2, 250],
    [3, 500],
    [4, 1000],
    [5, 2000],
    [14, 300_000],
  ])('after %i deletions in a row, the copy is created after %i ms', (times, waitMs) => {
    expect(recreationWaitMs(deleted(undefined, times), 0)).toBe(waitMs);
  });

  test('is reset after ten minutes without a deletion', () => {
    const twice = deleted(undefined, 2);
    expect(deletionsOf(twice, 10 * 60_000)).toBe(0);
    expect(recreationWaitMs(noteDeletion(twice, 10 * 60_000), 10 * 60_000)).toBe(0);
  });

  test('the delay expires', () => {
    expect(recreationWaitMs(deleted(undefined, 2), 250)).toBe(0);
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
    let contests: KeyContests = new Map();
    const change = (to: 'host' | 'virtual', id = 'annotations a') => {
      const noted = noteKeyChanges(contests, [{ id, to }], clock.monotonicMs());
      ({ contests } = noted);
      return noted.verdicts.map(({ waitMs }) => waitMs);
    };
    const size = () => contests.size;
    return { clock, held: () => [...heldKeys(contests, clock.monotonicMs())], change, size };
  };

  test('back off alone from the fifth time within a minute: 1 s × 2ⁿ', () => {
    const { clock, held, change } = contest();
    const waits = ['virtual', 'host', 'virtual', 'host', 'virtual', 'host'].map((to) =>
      change(to as 'host' | 'virtual'),
    );
    expect(waits).toEqual([[], [], [], [], [], [1000]]);
    expect(held()).toEqual([['annotations a', 1000]]);
    expect(change('virtual', 'annotations b')).toEqual([]);
    clock.advance(1000);
    expect(held()).toEqual([]);
    expect([change('host'), change('virtual')]).toEqual([[], [2000]]);
  });

  test('are not remembered beyond the last 256, however many names others choose', () => {
    const { change, held, size } = contest();
    for (let i = 0; i < 5; i++) change(i % 2 === 0 ? 'virtual' : 'host');
    for (let i = 0; i < 255; i++) change('virtual', `annotations n-${i}`);
    expect(change('host'), 'it is still known').toEqual([1000]);
    for (let i = 0; i < 1000; i++) change('virtual', `annotations m-${i}`);
    expect([size(), held()]).toEqual([256, []]);
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
});

describe('contested targets', () => {
  const contested = () => {
    const clock = new FakeClock();
    let contest: Contest | undefined;
    const note = (max = OVERWRITES_MAX) => {
      const noted = noteDrift(contest, clock.monotonicMs(), max);
      ({ contest } = noted);
      return noted.verdict;
    };
    const drift = () => note().waitMs;
    const waitMs = () => correctionWaitMs(contest, clock.monotonicMs());
    /** Waits until the correction is due, writes it, and has it overwritten. */
    const correctAndDrift = (): number => {
      clock.advance(waitMs());
      expect(drift()).toBe(0);
      return drift();
    };
    const change = () => void (contest = noteChange(contest));
    return { clock, note, drift, waitMs, change, correctAndDrift };
  };

  test('corrections are delayed from the fifth overwrite within a minute: 1 s × 2ⁿ up to five minutes', () => {
    const { drift, correctAndDrift } = contested();
    expect(Array.from({ length: 5 }, drift)).toEqual([0, 0, 0, 0, 1000]);
    const waits = Array.from({ length: 10 }, correctAndDrift);
    expect(waits).toEqual([2, 4, 8, 16, 32, 64, 128, 256, 300, 300].map((seconds) => seconds * 1000));
  });

  test('values that another syncer copies back are replaced once, and with delays from the second time within a minute', () => {
    const { clock, note } = contested();
    const echo = () => note(AUTOMATIC_OVERWRITES_MAX).waitMs;
    expect([echo(), echo()]).toEqual([0, 1000]);
    clock.advance(1000);
    expect([echo(), echo()]).toEqual([0, 2000]);
  });

  test('several overwrites before one correction do not increase the delay, and are reported once', () => {
    const { clock, note, waitMs } = contested();
    const verdicts = Array.from({ length: 30 }, () => {
      clock.advance(10);
      return note();
    });
    expect(verdicts.filter(({ isReportable }) => isReportable)).toHaveLength(1);
    expect(waitMs()).toBeLessThanOrEqual(1000);
    clock.advance(1000);
    expect(note().waitMs).toBe(0);
  });

  test('a write of a change corrects the drift, and its overwrite does not increase the delay', () => {
    const { change, drift, waitMs, correctAndDrift } = contested();
    Array.from({ length: 5 }, drift);
    expect(correctAndDrift()).toBe(2000);
    for (let i = 0; i < 10; i++) {
      change();
      expect(waitMs()).toBe(0);
      expect(drift()).toBe(2000);
    }
    expect(correctAndDrift()).toBe(4000);
  });

  test('are forgotten after ten minutes without an overwrite', () => {
    const { clock, drift, correctAndDrift } = contested();
    Array.from({ length: 5 }, drift);
    correctAndDrift();
    clock.advance(10 * 60_000);
    expect(drift()).toBe(0);
  });

  test('are not those that drift slowly', () => {
    const { clock, drift } = contested();
    for (let i = 0; i < 20; i++) {
      expect(drift()).toBe(0);
      clock.advance(20_000);
    }
  });
});

describe('values that are being synced back', () => {
  test('are known for the record on the copy while later writes fail', () => {
    const arrivals = new Arrivals();
    arrivals.note('shown', 'due');
    for (let attempt = 0; attempt < 50; attempt++) {
      expect(arrivals.of('shown')).toBe('due');
      arrivals.note(`failed ${attempt}`, 'due');
    }
    expect(arrivals.of('failed 49')).toBe('due');
    expect(arrivals.of('failed 0')).toBe('unknown');
  });

  test('are unknown for the record of another daemon', () => {
    const arrivals = new Arrivals();
    arrivals.note('ours', 'arrived');
    expect(arrivals.of('foreign')).toBe('unknown');
  });

  test('wait two seconds for another daemon, once for each record', () => {
    const arrivals = new Arrivals();
    expect(arrivals.uncertainWaitMs(0, 'r')).toBe(2000);
    expect(arrivals.uncertainWaitMs(1500, 'r')).toBe(500);
    expect(arrivals.uncertainWaitMs(2000, 'r')).toBe(0);
    expect(arrivals.uncertainWaitMs(2000, 'other')).toBe(2000);
  });
});
