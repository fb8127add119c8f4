/** What another syncer copies back to the virtual object: one example for each rule, and what holds for every history. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { KubeObject, StringMap } from '../../../src/kube/object.ts';
import { LAST_SYNCED } from '../../../src/syncer/translate/bookkeeping.ts';
import { decodeLastSynced, shortHash } from '../../../src/syncer/translate/last-synced.ts';
import { correctedValues } from '../../../src/syncer/translate/echoes.ts';
import { idOfKey, type MergeMemory } from '../../../src/syncer/translate/merge-metadata.ts';
import { costlyRuns } from '../../support/costly-runs.ts';
import {
  annotationOf,
  copyOf,
  LOST,
  merge,
  noPatches,
  patchK,
  touch,
  written,
  type TestPatches,
} from './merge-setup.ts';
import { endpoints } from './setup.ts';

describe('a host value that another syncer copies back to the virtual object', async () => {
  const prefix = (value: string | undefined) => value && `team-${value}`;
  const twoWay = patchK('both', prefix, (value) => value?.replace(/^team-/, ''));
  const oneWay = patchK('toHost', prefix);
  const virtual = endpoints({ annotations: { k: 'v', own: '1' } });
  const host = await copyOf(virtual, twoWay);
  const echoed = touch(virtual, { annotations: { k: 'team-v' } });
  const agreed = { virtual, host };
  const record = annotationOf(host, LAST_SYNCED);
  const restores = { agreed: undefined, restoresEchoes: true };
  const lost = touch(host, { annotations: LOST });

  test.each([
    { what: 'known by the reverse patch', patches: twoWay, memory: restores, value: 'v', left: [] },
    { what: 'remembered', patches: oneWay, memory: { agreed, restoresEchoes: true }, value: 'v', left: [] },
    { what: 'unknown', patches: oneWay, memory: restores, value: 'team-v', left: ['k'] },
    {
      what: 'to stay for now',
      patches: twoWay,
      memory: { agreed, restoresEchoes: false },
      value: 'team-v',
      left: ['k'],
    },
  ])('is neither translated again nor recorded: $what', async ({ patches, memory, value, left }) => {
    const merged = await merge({ virtual: echoed, host, patches, memory });
    expect(merged.echo).toEqual({ keys: ['k'], left });
    expect(annotationOf(merged.virtual, 'k')).toBe(value);
    expect(merged.host.metadata).toEqual(host.metadata);
  });

  test.each([
    { what: 'an edit', value: 'x', patches: oneWay, kept: 'team-v' },
    { what: 'a removal', value: undefined, patches: oneWay, kept: 'team-v' },
    { what: 'an edit that may flow back', value: 'x', patches: patchK('both', prefix), kept: 'x' },
  ])('while it stays, the host keeps what the rules wrote: $what', async ({ value, patches, kept }) => {
    const changed = touch(await copyOf(virtual, patches), { annotations: { k: value } });
    const merged = await merge({ virtual: echoed, host: changed, patches, memory: restores });
    expect(merged.echo).toEqual({ keys: ['k'], left: ['k'] });
    expect([merged.isVirtualChanged, annotationOf(merged.host, 'k')]).toEqual([false, kept]);
  });

  test('is recognized without a record by what this process remembers', async () => {
    const memory = { agreed, restoresEchoes: true };
    const merged = await merge({ virtual: echoed, host: lost, patches: twoWay, memory });
    expect([annotationOf(merged.virtual, 'k'), annotationOf(merged.host, 'k')]).toEqual(['v', 'team-v']);
    expect(annotationOf((await merge({ virtual, host: merged.host, patches: twoWay })).host, 'k')).toBe(
      'team-v',
    );
  });

  test('is recognized by the record that came back with it if the host has an older one', async () => {
    const restored = await copyOf(touch(virtual, { annotations: { k: 'u' } }), oneWay);
    const both = touch(echoed, { annotations: { [LAST_SYNCED]: record } });
    const memory = { agreed, restoresEchoes: true };
    const merged = await merge({ virtual: both, host: restored, patches: oneWay, memory });
    expect([annotationOf(merged.virtual, 'k'), annotationOf(merged.host, 'k')]).toEqual(['v', 'team-u']);
  });

  test('leaves the other annotations alone: a change of the same object is synced', async () => {
    const edited = touch(echoed, { annotations: { own: '2' } });
    const merged = await merge({ virtual: edited, host, patches: twoWay, memory: restores });
    expect(merged.host.metadata.annotations).toMatchObject({ k: 'team-v', own: '2' });
    expect(merged.virtual.metadata.annotations).toEqual({ k: 'v', own: '2' });
  });

  test('is a change like any other if the patches leave it as it is, unless the record came back too', async () => {
    const constant = patchK('both', () => 'team-v');
    const ofConstant = await copyOf(virtual, constant);
    for (const copy of [host, ofConstant]) {
      const merged = await merge({ virtual: echoed, host: copy, patches: constant, memory: restores });
      expect([merged.echo, annotationOf(merged.host, 'k')]).toEqual([undefined, 'team-v']);
    }
    const both = touch(echoed, { annotations: { [LAST_SYNCED]: record } });
    const memory = { agreed, restoresEchoes: true };
    const merged = await merge({ virtual: both, host, patches: constant, memory });
    expect(merged.virtual.metadata.annotations).toEqual({ k: 'v', own: '1' });
  });

  test('is a change of the user once it is changed again', async () => {
    const changed = touch(virtual, { annotations: { k: 'team-w' } });
    const merged = await merge({ virtual: changed, host, patches: twoWay, memory: restores });
    expect([merged.echo, annotationOf(merged.host, 'k')]).toEqual([undefined, 'team-team-w']);
  });

  test.each([
    { what: 'removed with the last value that came back', memory: restores, isKept: false },
    { what: 'kept while a value stays', memory: { agreed, restoresEchoes: false }, isKept: true },
  ])('the bookkeeping of the copy is $what', async ({ memory, isKept }) => {
    const own = { ...host.metadata.annotations, k: 'team-v' };
    const merged = await merge({
      virtual: touch(virtual, { annotations: own }),
      host,
      patches: twoWay,
      memory,
    });
    expect(annotationOf(merged.virtual, LAST_SYNCED)).toBe(isKept ? record : undefined);
    expect(Object.keys(merged.virtual.metadata.annotations ?? {}).toSorted()).toEqual(
      isKept ? Object.keys(own).toSorted() : ['k', 'own'],
    );
  });

  const failing: TestPatches = {
    ...oneWay,
    failures: () => ({ covers: (path) => path[2] === 'k', locate: () => [] }),
  };
  const rewritten = new Set([idOfKey('annotations', 'k')]);

  test.each([
    { what: 'a patch fails on it', patches: failing, held: new Set<string>() },
    { what: 'both sides keep rewriting it', patches: oneWay, held: rewritten },
  ])('is told as such, and keeps its mark, while $what', async ({ patches, held }) => {
    const both = touch(echoed, { annotations: { [LAST_SYNCED]: record } });
    const left = await merge({ virtual: both, host, patches, memory: { ...restores, held } });
    expect(left.echo).toEqual({ keys: ['k', LAST_SYNCED], left: ['k', LAST_SYNCED] });
    expect([left.isVirtualChanged, annotationOf(left.host, 'k')]).toEqual([false, 'team-v']);
    const remembered = { agreed, restoresEchoes: true, held };
    const restored = await merge({ virtual: both, host, patches, memory: remembered });
    expect(restored.virtual.metadata.annotations).toEqual({ k: 'v', own: '1' });
    expect(annotationOf(restored.host, 'k')).toBe('team-v');
  });

  test('is told from a record that this process has replaced, and from no other one', async () => {
    const later = await copyOf(touch(virtual, { annotations: { k: 'w' } }), oneWay);
    const back = touch(echoed, { annotations: { [LAST_SYNCED]: record } });
    const last = { agreed: { virtual: touch(virtual, { annotations: { k: 'w' } }), host: later } };
    const late = { ...last, formerRecords: [shortHash(record ?? '')], restoresEchoes: true };
    const merged = await merge({ virtual: back, host: later, patches: oneWay, memory: late });
    expect([annotationOf(merged.virtual, 'k'), annotationOf(merged.host, 'k')]).toEqual(['w', 'team-w']);
    const forged = { ...late, formerRecords: [shortHash('another')] };
    const believed = await merge({ virtual: back, host: later, patches: oneWay, memory: forged });
    expect(annotationOf(believed.host, 'k')).toBe('team-team-v');
  });

  const corrected = new Set([`${idOfKey('annotations', 'k')} ${shortHash('team-v')}`]);

  test.each([
    { arrival: 'arrived', by: 'its record' },
    { arrival: 'arrived', by: 'a correction' },
    { arrival: 'due', by: 'a correction' },
  ] as const)(
    'that is older than an edit of the host, which is $arrival, is recognized by $by, and the edit stays',
    async ({ arrival, by }) => {
      const changed = touch(host, { annotations: { k: 'team-w' } });
      const flowed = await merge({ virtual, host: changed, patches: twoWay });
      const next = arrival === 'arrived' ? written(flowed.virtual) : virtual;
      const mark = by === 'its record' ? { [LAST_SYNCED]: record } : {};
      const merged = await merge({
        virtual: touch(next, { annotations: { k: 'team-v', ...mark } }),
        host: flowed.host,
        patches: twoWay,
        arrival,
        memory: {
          agreed: { virtual: next, host: arrival === 'arrived' ? flowed.host : host },
          records: [annotationOf(flowed.host, LAST_SYNCED) ?? ''],
          formerRecords: [shortHash(record ?? '')],
          corrected,
          restoresEchoes: true,
        },
      });
      expect([annotationOf(merged.virtual, 'k'), annotationOf(merged.host, 'k')]).toEqual(['w', 'team-w']);
    },
  );

  test.each([
    { what: 'an edit', now: 'w', kept: ['w', 'team-w'] },
    { what: 'a removal', now: undefined, kept: [undefined, undefined] },
  ])(
    'is recognized as a correction of the host, with which no record comes back, after $what',
    async ({ now, kept }) => {
      const edited = touch(virtual, { annotations: { k: now } });
      const later = await copyOf(edited, oneWay);
      const memory = { agreed: { virtual: edited, host: later }, restoresEchoes: true };
      const mergedWith = (k: string, known: MergeMemory) =>
        merge({
          virtual: touch(virtual, { annotations: { k } }),
          host: later,
          patches: oneWay,
          memory: known,
        });
      const late = await mergedWith('team-v', { ...memory, corrected });
      expect([annotationOf(late.virtual, 'k'), annotationOf(late.host, 'k')]).toEqual(kept);
      for (const k of ['v', 'x']) {
        const merged = await mergedWith(k, { ...memory, corrected });
        expect([merged.echo, annotationOf(merged.host, 'k')]).toEqual([undefined, `team-${k}`]);
      }
      expect((await mergedWith('team-v', memory)).echo).toBeUndefined();
    },
  );

  test.each(['x', undefined])(
    'a correction gives back a value that was changed to %s on the host',
    async (value) => {
      const changed = touch(host, { annotations: { k: value } });
      const ids = (merged: { readonly host: KubeObject }, copy = changed, last?: KubeObject) => [
        ...correctedValues(copy, merged.host, last).keys(),
      ];
      expect(ids(await merge({ virtual, host: changed, patches: oneWay }))).toEqual([...corrected]);
      const stripped = touch(changed, { annotations: LOST });
      const memory = { agreed, restoresEchoes: true };
      const rewritten = await merge({ virtual, host: stripped, patches: oneWay, memory });
      expect([ids(rewritten, stripped), ids(rewritten, stripped, host)]).toEqual([[], [...corrected]]);
      const edited = touch(virtual, { annotations: { k: 'w' } });
      expect(ids(await merge({ virtual: edited, host: changed, patches: oneWay }), changed, host)).toEqual(
        [],
      );
    },
  );

  test('a correction gives back labels too, and nothing that is only on the host', async () => {
    const labelled = endpoints({ labels: { k: 'v' } });
    const patches: TestPatches = { ...PREFIXED, flowOf: () => 'toHost' };
    const copy = await copyOf(labelled, patches);
    const changed = touch(copy, { annotations: { own: 'x' }, labels: { k: 'x' } });
    const { host: written } = await merge({ virtual: labelled, host: changed, patches });
    expect([...correctedValues(changed, written, undefined)]).toEqual([
      [`${idOfKey('labels', 'k')} ${shortHash('team-v')}`, 'k'],
    ]);
  });

  test('a late correction removes nothing from the host that another client put there', async () => {
    const removed = touch(virtual, { annotations: { k: undefined } });
    const others = touch(await copyOf(removed, oneWay), { annotations: { k: 'x' } });
    const merged = await merge({
      virtual: touch(removed, { annotations: { k: 'team-v' } }),
      host: others,
      patches: oneWay,
      memory: { agreed: undefined, restoresEchoes: true, corrected },
    });
    expect([annotationOf(merged.virtual, 'k'), annotationOf(merged.host, 'k')]).toEqual([undefined, 'x']);
  });

  test('what this process remembers is given back where the record has no entry', async () => {
    const agreedOn = touch(virtual, { annotations: { k: 'w' } });
    const older = await copyOf(touch(virtual, { annotations: { k: undefined } }), oneWay);
    const merged = await merge({
      virtual: touch(virtual, { annotations: { k: 'team-v' } }),
      host: older,
      patches: oneWay,
      memory: {
        agreed: { virtual: agreedOn, host: await copyOf(agreedOn, oneWay) },
        restoresEchoes: true,
        corrected,
      },
    });
    expect(annotationOf(merged.virtual, 'k')).toBe('w');
  });

  test('a user may go back to a value that the patches leave as it is, moments after its correction', async () => {
    const plain = patchK('toHost', (value) => value);
    const edited = touch(virtual, { annotations: { k: 'w' } });
    const later = await copyOf(edited, plain);
    const mark = { [LAST_SYNCED]: annotationOf(later, LAST_SYNCED) };
    const back = touch(virtual, { annotations: { k: 'v', ...mark } });
    const memory = {
      agreed: { virtual: edited, host: later },
      restoresEchoes: true,
      corrected: new Set([`${idOfKey('annotations', 'k')} ${shortHash('v')}`]),
    };
    const merged = await merge({ virtual: back, host: later, patches: plain, memory });
    expect([annotationOf(merged.virtual, 'k'), annotationOf(merged.host, 'k')]).toEqual(['v', 'v']);
  });

  test.each([
    { what: 'it stays', edit: {} },
    { what: 'the user has changed it and changes it back', edit: { k: 'def' } },
  ])('a value that came from the host is no echo of its own record: $what', async ({ edit }) => {
    const first = written(endpoints({}));
    const found = await merge({
      virtual: first,
      host: touch(await copyOf(first), { annotations: { k: 'abc' } }),
    });
    const arrived = written(found.virtual);
    const former = annotationOf(found.host, LAST_SYNCED) ?? '';
    const calm = await merge({ virtual: arrived, host: found.host, arrival: 'arrived' });
    const later = written(touch(arrived, { annotations: edit }));
    const { host: now } = await merge({ virtual: later, host: calm.host, arrival: 'arrived' });
    const back = written(touch(later, { annotations: { k: 'abc', [LAST_SYNCED]: former } }));
    const memory = {
      agreed: { virtual: later, host: now },
      records: [annotationOf(now, LAST_SYNCED) ?? ''],
      formerRecords: [shortHash(former)],
      restoresEchoes: true,
    };
    const merged = await merge({ virtual: back, host: now, memory, arrival: 'arrived' });
    expect([annotationOf(merged.virtual, 'k'), annotationOf(merged.host, 'k')]).toEqual(['abc', 'abc']);
  });

  test('of a key that both sides have removed since leaves a record that can be read', async () => {
    const removed = touch(virtual, { annotations: { k: undefined } });
    const later = await copyOf(removed, oneWay);
    const back = touch(removed, { annotations: { k: 'team-v', [LAST_SYNCED]: record } });
    const late = { agreed: { virtual: removed, host: later }, formerRecords: [shortHash(record ?? '')] };
    const memory = { ...late, restoresEchoes: true };
    const merged = await merge({ virtual: back, host: later, patches: oneWay, memory });
    expect(merged.virtual.metadata.annotations).toEqual({ own: '1' });
    expect(decodeLastSynced(annotationOf(merged.host, LAST_SYNCED))).toBeDefined();
  });

  test.each([
    { what: 'an annotation', value: { annotations: { k: 'x' } } },
    { what: 'a label', value: { labels: { k: 'x' } } },
  ])(
    '$what that only the host had, which the merge leaves, is no echo: a user wrote it, too',
    async ({ value }) => {
      const none = endpoints({});
      const patches: TestPatches = { ...PREFIXED, flowOf: () => 'toHost' };
      const left = (await merge({ virtual: none, host: touch(await copyOf(none, patches), value), patches }))
        .host;
      expect(valuesOf(left)).toContain('x');
      const both = touch(touch(none, value), {
        annotations: { [LAST_SYNCED]: annotationOf(left, LAST_SYNCED) },
      });
      const memory = { agreed: { virtual: none, host: left }, restoresEchoes: true };
      const merged = await merge({ virtual: both, host: left, patches, memory });
      expect(merged.echo?.keys).toEqual([LAST_SYNCED]);
      expect(
        [valuesOf(merged.virtual), valuesOf(merged.host)].map((values) => values.filter(Boolean)),
      ).toEqual([['x'], ['team-x']]);
    },
  );

  test('the bookkeeping of a virtual cluster inside this one is not touched', async () => {
    const nested = {
      [LAST_SYNCED]: record,
      'vcluster.loft.sh/object-name': 'inner',
      'vcluster.loft.sh/object-host-name': virtual.metadata.name,
    };
    const inner = touch(virtual, { annotations: nested });
    const merged = await merge({ virtual: inner, host, patches: twoWay, memory: restores });
    expect([merged.echo, merged.isVirtualChanged]).toEqual([undefined, false]);
  });
});

test.each(['what both sides had', 'the last record', 'the last record, and both sides had others'] as const)(
  'a copy that is created again while its value is still on the virtual side keeps it, and the record of what was before: known by %s',
  async (known) => {
    const prefix = (value: string | undefined) => value && `team-${value}`;
    const patches = patchK('both', prefix, (value) => value?.replace(/^team-/, ''));
    const virtual = endpoints({ annotations: { k: 'v' } });
    const host = await copyOf(virtual, patches);
    const record = annotationOf(host, LAST_SYNCED);
    const isAgreed = known === 'what both sides had';
    // The record that came back is what a tenant may write: it only makes this process look at its own ones.
    const echoed = touch(virtual, {
      annotations: { k: 'team-v', ...(!isAgreed && { [LAST_SYNCED]: record }) },
    });
    const before = endpoints({ annotations: { k: 'before' } });
    const earlier = { virtual: before, host: await copyOf(before, patches) };
    const agreed = known === 'the last record' ? undefined : earlier;
    const remembered = isAgreed
      ? { agreed: { virtual, host }, restoresEchoes: false }
      : { agreed, records: [record ?? ''], restoresEchoes: false };
    const copy = (await merge({ virtual: echoed, host: undefined, patches, memory: remembered })).host;
    expect(annotationOf(copy, 'k')).toBe('team-v');
    const memory = { agreed: undefined, restoresEchoes: true };
    expect(annotationOf((await merge({ virtual: echoed, host: copy, patches, memory })).virtual, 'k')).toBe(
      'v',
    );
  },
);

test('a copy that is created gets the patched value, whatever record the tenant wrote on the virtual object', async () => {
  const patches = patchK('both', (value) => value && `team-${value}`);
  const echo = await copyOf(endpoints({ annotations: { k: 'root' } }), patches);
  // The record of a copy that holds `team-root`, beside the value that makes it look like an echo.
  const forged = touch(endpoints({ annotations: { k: 'team-root' } }), {
    annotations: { [LAST_SYNCED]: annotationOf(echo, LAST_SYNCED) },
  });
  const { host } = await merge({ virtual: forged, host: undefined, patches });
  expect(annotationOf(host, 'k')).toBe('team-team-root');
});

type Value = string | undefined;

/** The prefix `team-` before the annotation and the label `k`, in both directions. */
const PREFIXED: TestPatches = {
  ...noPatches,
  rulesOf: (path) => (path[2] === 'k' ? shortHash('prefix') : undefined),
  forward: (object) => changed(object, (value) => `team-${value}`),
  reverse: (object) => changed(object, (value) => value.replace(/^team-/, '')),
};

function changed(object: KubeObject, change: (value: string) => string): KubeObject {
  const next = (map: StringMap = {}): { k?: Value } =>
    map['k'] === undefined ? {} : { k: change(map['k']) };
  const { annotations, labels } = object.metadata;
  return touch(object, { annotations: next(annotations), labels: next(labels) });
}

const MEMBERS = ['annotations', 'labels'] as const;

function valuesOf({ metadata }: KubeObject): readonly Value[] {
  return MEMBERS.map((member) => metadata[member]?.['k']);
}

/** What another syncer carries over from a copy. */
const CARRIED: Readonly<Record<string, (copy: KubeObject) => Parameters<typeof touch>[1]>> = {
  'an annotation': (copy) => ({ annotations: { k: annotationOf(copy, 'k') } }),
  'a label': (copy) => ({ labels: { k: copy.metadata.labels?.['k'] } }),
  'both, and the record': (copy) => ({
    annotations: { k: annotationOf(copy, 'k'), [LAST_SYNCED]: annotationOf(copy, LAST_SYNCED) },
    labels: { k: copy.metadata.labels?.['k'] },
  }),
  'all annotations': ({ metadata: { annotations } }) => ({ annotations: { k: undefined, ...annotations } }),
};

type Step =
  | { readonly kind: 'user'; readonly member: (typeof MEMBERS)[number]; readonly value: Value }
  /** `isLate`: of the copy before the last change of it. */
  | { readonly kind: 'syncer'; readonly carried: string; readonly isLate: boolean }
  | { readonly kind: 'host user'; readonly value: Value }
  | { readonly kind: 'restart' | 'copy deleted' }
  | { readonly kind: 'sync'; readonly restoresEchoes: boolean; readonly isInterrupted: boolean };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    kind: fc.constant<'user'>('user'),
    member: fc.constantFrom(...MEMBERS),
    value: fc.constantFrom<Value[]>('a', 'b', undefined),
  }),
  fc.record({
    kind: fc.constant<'syncer'>('syncer'),
    carried: fc.constantFrom(...Object.keys(CARRIED)),
    isLate: fc.boolean(),
  }),
  fc.record({
    kind: fc.constant<'host user'>('host user'),
    value: fc.constantFrom<Value[]>('team-c', undefined),
  }),
  fc.record({ kind: fc.constantFrom<('restart' | 'copy deleted')[]>('restart', 'copy deleted') }),
  fc.record({ kind: fc.constant<'sync'>('sync'), restoresEchoes: fc.boolean(), isInterrupted: fc.boolean() }),
);

interface World {
  readonly virtual: KubeObject;
  readonly host: KubeObject;
  /** What this process remembers, and the copies whose records it has replaced. */
  readonly memory: MergeMemory;
  readonly former: KubeObject | undefined;
}

const RESTARTED: MergeMemory = { agreed: undefined, restoresEchoes: true };

async function synced(
  { virtual, host, memory, former }: World,
  {
    restoresEchoes = true,
    isInterrupted = false,
    isCopyGone = false,
  }: { restoresEchoes?: boolean; isInterrupted?: boolean; isCopyGone?: boolean } = {},
): Promise<World> {
  const merged = await merge({
    virtual,
    host: isCopyGone ? undefined : host,
    patches: PREFIXED,
    memory: { ...memory, restoresEchoes: restoresEchoes && !isCopyGone },
  });
  expectSound({ virtual, host }, merged);
  const [before, record] = [host, merged.host].map((copy) => annotationOf(copy, LAST_SYNCED));
  const isReplaced = before !== record;
  const formerRecords = [...(memory.formerRecords ?? []), ...(isReplaced ? [shortHash(before ?? '')] : [])];
  const after = { host: merged.host, former: isReplaced ? host : former };
  if (isInterrupted && !isCopyGone) return { ...after, virtual, memory: { ...memory, formerRecords } };
  const next = merged.isVirtualChanged ? written(merged.virtual) : virtual;
  const agreed = merged.echo === undefined ? { virtual: next, host: merged.host } : memory.agreed;
  return {
    ...after,
    virtual: next,
    memory: { ...memory, agreed, records: record === undefined ? [] : [record], formerRecords },
  };
}

/** No value grows, no translated one reaches the virtual side, and the record can be read. */
function expectSound(
  before: Pick<World, 'virtual' | 'host'>,
  { virtual, host, echo }: Awaited<ReturnType<typeof merge>>,
): void {
  expect(decodeLastSynced(annotationOf(host, LAST_SYNCED))).toBeDefined();
  for (const value of valuesOf(host)) expect(value ?? '').not.toContain('team-team-');
  for (const [at, value] of valuesOf(virtual).entries())
    if (value !== valuesOf(before.virtual)[at]) expect(value ?? '').not.toContain('team-');
  const isLeft = echo !== undefined && echo.left.length > 0;
  expect(annotationOf(virtual, LAST_SYNCED)).toBe(
    isLeft ? annotationOf(before.virtual, LAST_SYNCED) : undefined,
  );
}

async function after(world: World, one: Step): Promise<World> {
  const { virtual, host, memory, former } = world;
  switch (one.kind) {
    case 'user':
      return { ...world, virtual: written(touch(virtual, { [one.member]: { k: one.value } })) };
    case 'syncer': {
      const isProvable = one.isLate && one.carried === 'both, and the record' && memory.agreed !== undefined;
      const copy = isProvable && former !== undefined ? former : host;
      const echoed = { ...world, virtual: written(touch(virtual, CARRIED[one.carried]?.(copy) ?? {})) };
      // Only this process knows the records that it has replaced.
      return copy === host ? echoed : synced(echoed);
    }
    case 'host user': {
      // The value of the last sync is known from the host's, and what a syncer copies back before this program has seen it is no echo.
      const calm = await synced(world);
      return synced({ ...calm, host: touch(calm.host, { annotations: { k: one.value } }) });
    }
    case 'restart':
      return { ...world, memory: RESTARTED, former: undefined };
    case 'copy deleted':
      // Without the copy and the memory of it, nothing proves an echo.
      return memory.agreed?.host === host ? synced(world, { isCopyGone: true }) : world;
    case 'sync':
      return synced(world, one);
  }
}

test('for every history, no value grows, and when the other syncer ends, each side has what the user wrote', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 9 }), async (steps) => {
      const virtual = written(touch(endpoints({}), { annotations: { k: 'a' }, labels: { k: 'a' } }));
      const host = await copyOf(virtual, PREFIXED);
      let world: World = { virtual, host, memory: RESTARTED, former: undefined };
      for (const one of steps) world = await after(world, one);
      for (let round = 0; round < 3; round++) world = await synced(world);
      for (const [at, value] of valuesOf(world.virtual).entries()) {
        expect([undefined, 'a', 'b', 'c']).toContain(value);
        expect(valuesOf(world.host)[at]).toBe(value && `team-${value}`);
      }
      const last = await merge({ ...world, patches: PREFIXED });
      expect([last.echo, last.isVirtualChanged]).toEqual([undefined, false]);
    }),
    { numRuns: costlyRuns(1500) },
  );
});

test('what no patch changes is no echo, whatever both sides hold', async () => {
  const value = fc.constantFrom<Value[]>('a', 'b', undefined);
  const values = fc.record({ annotations: fc.record({ k: value }), labels: fc.record({ k: value }) });
  await fc.assert(
    fc.asyncProperty(
      fc.array(values, { minLength: 4, maxLength: 4 }),
      async ([copied, now, there, agreedOn]) => {
        const virtual = touch(endpoints({}), now ?? {});
        const host = touch(await copyOf(touch(endpoints({}), copied ?? {})), there ?? {});
        const agreed = { virtual: touch(virtual, agreedOn ?? {}), host };
        expect(
          (await merge({ virtual, host, memory: { agreed, restoresEchoes: true } })).echo,
        ).toBeUndefined();
      },
    ),
    { numRuns: costlyRuns(300) },
  );
});
