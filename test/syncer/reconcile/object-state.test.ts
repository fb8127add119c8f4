/** What this process knows of one key. */

import { describe, expect, test } from 'vitest';
import type { KubeObject } from '../../../src/kube/object.ts';
import { Arrivals } from '../../../src/syncer/reconcile/guards.ts';
import { again, later, retry, type Left } from '../../../src/syncer/reconcile/left.ts';
import type { Observation } from '../../../src/syncer/reconcile/decide.ts';
import { ObjectState, ObjectStates } from '../../../src/syncer/reconcile/object-state.ts';
import { LAST_SYNCED } from '../../../src/syncer/translate/bookkeeping.ts';
import { shortHash } from '../../../src/syncer/translate/last-synced.ts';

const KEY = 'shop/web';

function object(uid: string, resourceVersion: string, annotations: Record<string, string> = {}): KubeObject {
  return { metadata: { name: 'web', namespace: 'shop', uid, resourceVersion, annotations } };
}

const VIRTUAL = object('v', '1', { a: '1' });
const HOST = object('h', '10', { a: 'team-1', [LAST_SYNCED]: 'record' });
const SERVICE = object('s', '5');

function seen(change: Partial<Observation> = {}): Observation {
  return {
    key: KEY,
    virtual: VIRTUAL,
    host: HOST,
    service: SERVICE,
    target: { namespace: 'host', name: 'web' },
    unmapped: undefined,
    ownership: undefined,
    strays: [],
    claims: [],
    hasForeignService: false,
    isMoved: false,
    isUnserved: false,
    wasCopied: false,
    isKnownCopy: true,
    ...change,
  };
}

function synced(left?: Left): ObjectState {
  const state = new ObjectState();
  state.remember({ virtual: VIRTUAL, host: HOST }, seen(), false);
  state.left = left;
  return state;
}

describe('a pair is unchanged', () => {
  test.each<[string, ObjectState, Partial<Observation>, boolean]>([
    ['as it was synced', synced(), {}, true],
    ['never synced', new ObjectState(), {}, false],
    ['with another version of the virtual object', synced(), { virtual: object('v', '2') }, false],
    ['with another object of the same version', synced(), { virtual: object('w', '1') }, false],
    ['with another version of the copy', synced(), { host: object('h', '11') }, false],
    ['with another version of the Service', synced(), { service: object('s', '6') }, false],
    ['without its Service', synced(), { service: undefined }, false],
    ['without its host Service', synced(), { isUnserved: true }, false],
    ['while it is to be reconciled again', synced(again('why')), {}, false],
    ['while something is left for later', synced(later('why', 1)), {}, false],
    ['while something is left that an event decides about', synced(retry('why')), {}, false],
  ])('%s', (_, state, change, isUnchanged) => {
    expect(state.isUnchanged(seen(change))).toBe(isUnchanged);
  });
});

test.each<[string, KubeObject | undefined, boolean]>([
  ['the same version', VIRTUAL, true],
  ['what another syncer has copied back', object('v', '2', { a: 'team-1', [LAST_SYNCED]: 'record' }), true],
  ['a value that the copy does not have', object('v', '2', { a: '2' }), false],
  ['another object', object('w', '1', { a: '1' }), false],
  ['nothing', undefined, false],
])('no user has changed a virtual object: %s', (_, virtual, isUnchanged) => {
  expect(synced().isVirtualUnchanged(virtual)).toBe(isUnchanged);
});

describe('the last sync', () => {
  test('is that of this object, and not of a later one with its name', () => {
    const agreed = { virtual: VIRTUAL, host: HOST };
    expect(synced().lastSync(VIRTUAL, 0)).toEqual({ agreed, records: ['record'], formerRecords: [] });
    expect(synced().lastSync(object('w', '1'), 0)).toEqual({ agreed: undefined });
  });

  test('outlasts a restore, after which versions tell nothing', () => {
    const state = synced();
    state.synced = undefined;
    expect(state.isUnchanged(seen())).toBe(false);
    expect(state.lastSync(VIRTUAL, 0).records).toEqual(['record']);
  });

  test('keeps what both agreed on while the virtual object holds an echo, and the record that another syncer removed', () => {
    const state = synced();
    const echoed = object('v', '2', { a: 'team-1' });
    state.remember({ virtual: echoed, host: object('h', '11') }, seen(), true);
    expect(state.lastSync(echoed, 0)).toMatchObject({
      agreed: { virtual: VIRTUAL, host: HOST },
      records: ['record'],
    });
  });

  test('has the last four records that the copy had since, until both are in step again', () => {
    const state = synced();
    for (const record of ['a', undefined, 'a', 'b', 'c', 'a', 'd']) state.noteRecord(VIRTUAL, record);
    expect(state.lastSync(VIRTUAL, 0).records).toEqual(['d', 'a', 'c', 'b']);
    state.remember({ virtual: VIRTUAL, host: HOST }, seen(), false);
    expect(state.lastSync(VIRTUAL, 0).records).toEqual(['record']);
  });

  test('has the records that the copy had before the first sync', () => {
    const state = new ObjectState();
    state.noteRecord(VIRTUAL, 'a');
    expect(state.lastSync(VIRTUAL, 0)).toEqual({ agreed: undefined, records: ['a'], formerRecords: [] });
    expect(state.isVirtualUnchanged(VIRTUAL)).toBe(false);
    state.noteRecord(object('w', '1'), 'b');
    expect(state.lastSync(object('w', '1'), 0).records).toEqual(['b']);
  });

  test('has the last four records that were replaced', () => {
    const state = synced();
    for (const record of ['a', 'b', 'c', 'b', 'd', 'e']) state.noteReplaced(record);
    expect(state.lastSync(VIRTUAL, 0).formerRecords).toEqual(['c', 'b', 'd', 'e'].map(shortHash));
  });

  const correctedAt = (state: ObjectState, nowMs: number) => [
    ...(state.lastSync(VIRTUAL, nowMs).corrected ?? []),
  ];

  test('has each value that was corrected on the host for ten seconds', () => {
    const state = synced();
    state.noteCorrected(new Map([['labels a x', 'a']]), 0);
    state.noteCorrected(new Map(), 1);
    state.noteCorrected(new Map([['labels a y', 'a']]), 5000);
    expect([9999, 10_000, 15_000].map((nowMs) => correctedAt(state, nowMs))).toEqual([
      ['labels a x', 'labels a y'],
      ['labels a y'],
      [],
    ]);
  });

  test('has it for as long as the virtual object has an echo of the key, if it was known when that one came', () => {
    const state = synced();
    state.noteCorrected(new Map([['labels a x', 'a']]), 0);
    state.noteEchoes(['a'], 9000);
    expect(correctedAt(state, 60_000)).toEqual(['labels a x']);
    state.noteEchoes(['b'], 60_000);
    expect(correctedAt(state, 60_001)).toEqual([]);
    state.noteEchoes(['a'], 60_001);
    expect(correctedAt(state, 60_001)).toEqual([]);
  });

  test('has no more than 256 of them, the last ones, and none of an earlier object', () => {
    const state = synced();
    const values = (from: number, count: number) =>
      new Map(Array.from({ length: count }, (_, at) => [`labels ${from + at} x`, `${from + at}`]));
    state.noteCorrected(values(0, 200), 0);
    state.noteCorrected(values(200, 200), 1);
    expect([correctedAt(state, 1).length, correctedAt(state, 1)[0]]).toEqual([256, 'labels 144 x']);
    const other = object('w', '1');
    state.noteRecord(other, 'b');
    expect(state.lastSync(other, 1).corrected).toBeUndefined();
  });

  test.each<[string, (state: ObjectState) => void]>([
    ['another change', (state) => state.renew()],
    ['a restore', (state) => state.forgetVersions()],
  ])('is not unchanged after %s while the reconcile ran, until the next one', (_, happens) => {
    const state = synced();
    for (const isUnchanged of [false, true]) {
      state.begin();
      if (!isUnchanged) happens(state);
      state.remember({ virtual: VIRTUAL, host: HOST }, seen(), false);
      expect(state.isUnchanged(seen())).toBe(isUnchanged);
    }
  });

  test('counts a record as replaced that another syncer has removed from the copy', () => {
    const state = synced();
    state.noteReplaced(undefined);
    expect(state.lastSync(VIRTUAL, 0).formerRecords).toEqual([shortHash('record')]);
    const unknown = new ObjectState();
    unknown.noteReplaced(undefined);
    expect(unknown.formerRecords).toEqual([]);
  });
});

test('one call forgets an object, and no other one', () => {
  const states = new ObjectStates();
  for (const key of [KEY, 'shop/db']) {
    states.of(key).remember({ virtual: VIRTUAL, host: HOST }, seen(), false);
    states.awaitService(key, 'host/web');
  }
  states.forget(KEY);
  expect([states.find(KEY), states.awaiting('host/web')]).toEqual([undefined, ['shop/db']]);
  expect(states.find('shop/db')?.isKnownCopy(HOST)).toBe(true);
});

test('without a copy, the last sync is still known, and nothing else', () => {
  const states = new ObjectStates();
  const state = states.of(KEY);
  state.remember({ virtual: VIRTUAL, host: HOST }, seen(), false);
  state.noteReplaced('a');
  state.noteCorrected(new Map([['labels l hash', 'l']]), 0);
  states.release(KEY);
  const released = states.of(KEY);
  expect(released.lastSync(VIRTUAL, 0)).toEqual({
    agreed: { virtual: VIRTUAL, host: HOST },
    records: ['record'],
    formerRecords: [shortHash('a')],
    corrected: new Set(['labels l hash']),
  });
  expect([released.isCopied, released.isKnownCopy(HOST)]).toEqual([false, false]);
});

/** Each member has another value than at first. */
function filled(): ObjectState {
  const state = synced(later('why', 5));
  state.noteReplaced('before');
  state.noteCorrected(new Map([['labels l hash', 'l']]), 8);
  state.arrivals.note('record', 'due');
  state.noteDrift(7);
  state.keyContests = new Map([['labels l', { to: 'host', contest: state.contest }]]);
  state.deletions = { count: 2, lastMs: 3, virtualUid: 'v' };
  state.noteTermination('h', 4, true);
  state.leftToVcluster = { uid: 'h', sinceMs: 6 };
  state.renew();
  state.begin();
  state.renew();
  return Object.assign(state, { takeOverReads: 1, isLeftOut: true, reportedIgnored: 'v reason' });
}

describe('a state that is printed', () => {
  const contest = { overwritesMs: [7], wasCorrection: false, lastMs: 7 };

  test('is whole', () => {
    expect(JSON.parse(JSON.stringify(filled()))).toEqual({
      synced: { virtual: 'v@1', host: 'h@10', serviceVersion: '5', isUnserved: false, renewals: 0 },
      renewals: 2,
      renewalsSeen: 1,
      isCopied: true,
      lastSynced: { uid: 'v', agreed: { virtual: 'v@1', host: 'h@10' }, records: ['record'] },
      formerRecords: [shortHash('before')],
      corrections: { 'labels l hash': { atMs: 8, key: 'l', isEchoed: false } },
      left: { kind: 'later', reason: 'why', waitMs: 5 },
      contest,
      keyContests: { 'labels l': { to: 'host', contest } },
      deletions: { count: 2, lastMs: 3, virtualUid: 'v' },
      termination: { uid: 'h', sinceMs: 4, isByOthers: true, isReported: false },
      leftToVcluster: { uid: 'h', sinceMs: 6 },
      takeOverReads: 1,
      isLeftOut: true,
      reportedIgnored: 'v reason',
      knownArrivals: { records: { record: 'due' } },
    });
  });

  test('has each member of the state, and no private one that it could not have', () => {
    const members = Object.keys(new ObjectState());
    expect(Object.keys(filled().toJSON()).toSorted()).toEqual(members.toSorted());
    for (const one of [ObjectState, Arrivals]) expect(String(one)).not.toMatch(/this\.#/);
  });

  test('has no value of an object', () => {
    expect(JSON.stringify(filled())).not.toContain('team-1');
  });
});
