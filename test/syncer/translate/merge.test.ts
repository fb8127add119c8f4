/** Each rule of the merge by one example. What holds for every history is in merge-properties.test.ts. */

import { describe, expect, test } from 'vitest';
import { endpointsContent } from '../../../src/syncer/kinds/endpoints.ts';
import { ENDPOINTS, type KubeObject, type StringMap } from '../../../src/kube/object.ts';
import { LAST_SYNCED, MANAGED_ANNOTATIONS } from '../../../src/syncer/translate/bookkeeping.ts';
import { forgeHostObject } from '../../../src/syncer/translate/forge.ts';
import { shortHash } from '../../../src/syncer/translate/last-synced.ts';
import { mergePair } from '../../../src/syncer/translate/merge.ts';
import { idOfKey } from '../../../src/syncer/translate/merge-metadata.ts';
import type { Flow } from '../../../src/syncer/translate/types.ts';
import { merge, noPatches, plainFlows, type TestPatches } from './merge-setup.ts';
import { endpoints, mappings, translators } from './setup.ts';

type Changes = Record<string, string | undefined>;

/** The object with some annotations or labels changed; undefined removes one. */
function touch(object: KubeObject, changes: { annotations?: Changes; labels?: Changes }): KubeObject {
  const { metadata } = object;
  const changed = (map: StringMap = {}, edits: Changes = {}): StringMap =>
    Object.fromEntries(
      Object.entries({ ...map, ...edits }).filter(([, value]) => value !== undefined),
    ) as StringMap;
  const annotations = changed(metadata.annotations, changes.annotations);
  const labels = changed(metadata.labels, changes.labels);
  return { ...object, metadata: { ...metadata, annotations, labels } };
}

const LOST = { [LAST_SYNCED]: undefined };

async function copyOf(virtual: KubeObject, patches: TestPatches = noPatches): Promise<KubeObject> {
  return (await merge({ virtual, host: undefined, patches })).host;
}

function annotationOf(object: KubeObject, key: string): string | undefined {
  return object.metadata.annotations?.[key];
}

/** One annotation `k` with a flow, and the functions of its expressions; undefined removes it. */
function patchK(
  flow: Flow,
  forward: (value: string | undefined) => string | undefined = (value) => value,
  reverse: (value: string | undefined) => string | undefined = (value) => value,
): TestPatches {
  const patch = (object: KubeObject, change: typeof forward): KubeObject =>
    touch(object, { annotations: { k: change(annotationOf(object, 'k')) } });
  return {
    ...plainFlows,
    flowOf: (path) => (path[2] === 'k' ? flow : 'both'),
    forward: (object) => patch(object, forward),
    reverse: (object) => patch(object, reverse),
  };
}

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
    expect(
      (await merge({ virtual: echoed, host, patches: constant, memory: restores })).echo,
    ).toBeUndefined();
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

describe('excluded annotations and labels', () => {
  const excluding = translators(undefined, {
    excludeAnnotations: ['example.com/*', 'applied'],
    excludeLabels: ['tier', 'release'],
  });
  const excluded = {
    annotations: { 'example.com/a': '1', applied: '1' },
    labels: { tier: '1', release: '1' },
  };
  const virtual = endpoints({
    annotations: { ...excluded.annotations, 'example.org/a': '1' },
    labels: { ...excluded.labels, app: '1' },
  });

  test('are not on a new copy, and those of the host do not flow back', async () => {
    const copy = (await merge({ virtual, host: undefined, with: excluding })).host;
    const { annotations = {}, labels = {} } = copy.metadata;
    expect(
      Object.keys(annotations)
        .filter((key) => !key.includes('loft.sh'))
        .toSorted(),
    ).toEqual([LAST_SYNCED, 'example.org/a']);
    expect(annotations[MANAGED_ANNOTATIONS]).toBe('example.org/a');
    expect(Object.keys(labels).filter((key) => !key.includes('loft.sh'))).toEqual(['app']);
    const host = touch(copy, { annotations: { 'example.com/b': 'host' }, labels: { tier: 'host' } });
    const merged = await merge({ virtual, host, with: excluding });
    expect(merged.isVirtualChanged).toBe(false);
    expect(merged.host.metadata).toEqual(host.metadata);
  });

  test('that were copied before stay as they are on both sides, and so does what is recorded of them', async () => {
    const copy = await copyOf(virtual);
    const merged = await merge({ virtual, host: copy, with: excluding });
    expect([merged.isVirtualChanged, merged.host.metadata]).toEqual([false, copy.metadata]);
    const edited = touch(virtual, {
      annotations: { applied: '2', 'example.com/a': '3' },
      labels: { tier: '2' },
    });
    const host = touch(copy, { annotations: { 'example.com/a': 'host' }, labels: { tier: undefined } });
    const after = await merge({ virtual: edited, host, with: excluding });
    expect([after.isVirtualChanged, after.host.metadata]).toEqual([false, host.metadata]);
  });

  test('that are synced again go on from there: the side that has changed since is followed', async () => {
    const copy = await copyOf(virtual);
    const host = touch(copy, { annotations: { 'example.com/a': 'host' } });
    const kept = (await merge({ virtual, host, with: excluding })).host;
    expect(annotationOf((await merge({ virtual, host: kept })).virtual, 'example.com/a')).toBe('host');
  });
});

test('a key that is held for now stays as it is on both sides, the others are synced', async () => {
  const virtual = endpoints({ annotations: { k: '1', other: '1' } });
  const copy = await copyOf(virtual);
  const host = touch(copy, { annotations: { k: 'host' } });
  const edited = touch(virtual, { annotations: { k: 'virtual', other: '2' } });
  const memory = { agreed: undefined, restoresEchoes: true, held: new Set(['annotations k']) };
  const merged = await merge({ virtual: edited, host, memory });
  expect([merged.isVirtualChanged, merged.flows.map(({ id, to }) => [id, to])]).toEqual([
    false,
    [['annotations other', 'host']],
  ]);
  expect(merged.host.metadata.annotations).toMatchObject({ k: 'host', other: '2' });
  const released = await merge({ virtual: edited, host: merged.host });
  expect(annotationOf(released.host, 'k')).toBe('virtual');
});

test('a copy that is created again while its value is still on the virtual side keeps it, and the record of what was before', async () => {
  const prefix = (value: string | undefined) => value && `team-${value}`;
  const patches = patchK('both', prefix, (value) => value?.replace(/^team-/, ''));
  const virtual = endpoints({ annotations: { k: 'v' } });
  const host = await copyOf(virtual, patches);
  const echoed = touch(virtual, { annotations: { k: 'team-v' } });
  const remembered = { agreed: { virtual, host }, restoresEchoes: false };
  const copy = (await merge({ virtual: echoed, host: undefined, patches, memory: remembered })).host;
  expect(annotationOf(copy, 'k')).toBe('team-v');
  const memory = { agreed: undefined, restoresEchoes: true };
  expect(annotationOf((await merge({ virtual: echoed, host: copy, patches, memory })).virtual, 'k')).toBe(
    'v',
  );
});

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

describe('a copy that an earlier version made from a record of the tenant', () => {
  const patches = patchK('both', (value) => value && `team-${value}`);
  const virtual = endpoints({ annotations: { k: 'root', own: '1' } });
  /** As that version has written it: the raw value, and the entry of the tenant's record. */
  async function copyOfEarlier(): Promise<KubeObject> {
    const { record, copy } = await believed(virtual);
    return touch(copy, { annotations: { [LAST_SYNCED]: record.replace(',"t":1', '') } });
  }

  test('gets the patched value, which is reported', async () => {
    const merged = await merge({ virtual, host: await copyOfEarlier(), patches });
    expect(merged.host.metadata.annotations).toMatchObject({ k: 'team-root', own: '1' });
    expect(merged.repaired).toEqual(['annotations k']);
    const again = await merge({ virtual, host: merged.host, patches });
    expect([again.repaired, annotationOf(again.host, 'k')]).toEqual([[], 'team-root']);
  });

  test('keeps what a client of the host wrote since', async () => {
    const host = touch(await copyOfEarlier(), { annotations: { k: 'team-host' } });
    expect((await merge({ virtual, host, patches })).repaired).toEqual([]);
  });

  test('keeps an echo that this process has seen', async () => {
    const before = touch(virtual, { annotations: { k: 'v' } });
    const { copy, record } = await believed(virtual);
    const agreed = { virtual: before, host: touch(copy, { annotations: { k: 'root' } }) };
    const both = touch(virtual, { annotations: { [LAST_SYNCED]: record } });
    const host = await copyOfEarlier();
    const merged = await merge({ virtual: both, host, patches, memory: { agreed, restoresEchoes: true } });
    expect([merged.repaired, annotationOf(merged.virtual, 'k')]).toEqual([[], 'v']);
  });
});

/** A copy with the raw value of `k`, and the record that takes it for an echo. */
async function believed(virtual: KubeObject) {
  const other = touch(virtual, { annotations: { k: 'anything' } });
  const copy = await copyOf(
    other,
    patchK('both', () => annotationOf(virtual, 'k')),
  );
  return { copy, record: annotationOf(copy, LAST_SYNCED) ?? '' };
}

const created = patchK('both', (value) => value ?? 'created');

describe('a value that a patch creates', () => {
  const virtual = endpoints({ annotations: { own: '1' } });

  test('exists only on the host; a change there is reverted', async () => {
    const host = touch(await copyOf(virtual, created), { annotations: { k: 'changed' } });
    const merged = await merge({ virtual, host, patches: created });
    expect(annotationOf(merged.host, 'k')).toBe('created');
    expect(merged.isVirtualChanged).toBe(false);
    expect(annotationOf(merged.host, MANAGED_ANNOTATIONS)).toBe('own');
  });

  test('is removed with the patch, with a record and after the record was lost', async () => {
    const copy = await copyOf(virtual, created);
    expect(annotationOf((await merge({ virtual, host: copy })).host, 'k')).toBeUndefined();
    const again = (await merge({ virtual, host: touch(copy, { annotations: LOST }), patches: created })).host;
    const after = await merge({ virtual, host: again });
    expect(annotationOf(after.host, 'k')).toBeUndefined();
    expect(after.isVirtualChanged).toBe(false);
  });

  test('is updated when only the expression changed', async () => {
    const own = endpoints({ annotations: { k: 'v' } });
    const host = await copyOf(
      own,
      patchK('both', (value) => value && `a-${value}`),
    );
    const merged = await merge({
      virtual: own,
      host,
      patches: patchK('both', (value) => value && `b-${value}`),
    });
    expect(annotationOf(merged.host, 'k')).toBe('b-v');
    expect(merged.isVirtualChanged).toBe(false);
  });
});

describe('keys that another client adds on the host', () => {
  test('are synced back and are not listed as managed, in this step and the next', async () => {
    const virtual = endpoints({ annotations: { own: '1' } });
    const host = touch(await copyOf(virtual), { annotations: { added: '1' } });
    const merged = await merge({ virtual, host });
    expect(merged.virtual.metadata.annotations).toEqual({ own: '1', added: '1' });
    expect(annotationOf(merged.host, MANAGED_ANNOTATIONS)).toBe('own');
    // Decided again after the virtual write, the host still as it was.
    const next = await merge({ virtual: merged.virtual, host });
    expect(annotationOf(next.host, MANAGED_ANNOTATIONS)).toBe('own');
    expect(next.isVirtualChanged).toBe(false);
  });

  test('stay pending and are kept on the host if the write to the virtual side failed', async () => {
    const patches = patchK(
      'both',
      (value) => value && `team-${value}`,
      (value) => value?.replace(/^team-/, ''),
    );
    const virtual = endpoints({});
    const host = touch(await copyOf(virtual, patches), { annotations: { k: 'shop' } });
    const recorded = (await merge({ virtual, host, patches })).host;
    const again = await merge({ virtual, host: recorded, patches, arrival: 'due' });
    expect(annotationOf(again.host, 'k')).toBe('team-shop');
    expect(annotationOf(again.virtual, 'k')).toBe('shop');
  });

  test('are listed once the virtual side changes them', async () => {
    const host = touch(await copyOf(endpoints({})), { annotations: { added: '1' } });
    const { virtual, host: synced } = await merge({ virtual: endpoints({}), host });
    const merged = await merge({ virtual: touch(virtual, { annotations: { added: '2' } }), host: synced });
    expect([annotationOf(merged.host, 'added'), annotationOf(merged.host, MANAGED_ANNOTATIONS)]).toEqual([
      '2',
      'added',
    ]);
  });

  test('are kept on the host if their reverse is undefined', async () => {
    const patches = patchK('both', undefined, () => undefined);
    const virtual = endpoints({});
    const host = touch(await copyOf(virtual, patches), { annotations: { k: 'host' } });
    const first = await merge({ virtual, host, patches });
    const second = await merge({ virtual, host: first.host, patches });
    expect([first.host, second.host].map((one) => annotationOf(one, 'k'))).toEqual(['host', 'host']);
    expect([first, second].map((one) => one.isVirtualChanged)).toEqual([false, false]);
  });

  test('are removed from the virtual side, which had them, if their reverse is undefined, and are kept on the host', async () => {
    const patches = patchK('both', undefined, (value) => (value === 'bad' ? undefined : value));
    const virtual = endpoints({ annotations: { k: 'v' } });
    const host = touch(await copyOf(virtual, patches), { annotations: { k: 'bad' } });
    const first = await merge({ virtual, host, patches });
    expect(annotationOf(first.virtual, 'k')).toBeUndefined();
    const second = await merge({ virtual: first.virtual, host: first.host, patches });
    expect(annotationOf(second.host, 'k')).toBe('bad');
  });

  test('are synced back together with the other changes of the reverse patch', async () => {
    const patches = {
      ...noPatches,
      reverse: (object: KubeObject) => touch(object, { annotations: { extra: 'r' } }),
    };
    const virtual = endpoints({});
    const host = touch(await copyOf(virtual), { annotations: { added: '1' } });
    expect((await merge({ virtual, host, patches })).virtual.metadata.annotations).toEqual({
      added: '1',
      extra: 'r',
    });
  });
});

describe('directions', () => {
  test('a host change that the reverse maps to the virtual value is drift and reverted immediately', async () => {
    const patches = patchK(
      'both',
      (value) => value && `f-${value}`,
      (value) => value?.trim().replace(/^f-/, ''),
    );
    const virtual = endpoints({ annotations: { k: 'v' } });
    const host = touch(await copyOf(virtual, patches), { annotations: { k: ' f-v ' } });
    const merged = await merge({ virtual, host, patches });
    expect([annotationOf(merged.host, 'k'), merged.isVirtualChanged]).toEqual(['f-v', false]);
  });

  test('toHost: a change on the host is reverted, a key that exists only on the host is kept and not synced', async () => {
    const patches = patchK('toHost', (value) => value && `f-${value}`);
    const virtual = endpoints({ annotations: { k: 'v' } });
    const host = touch(await copyOf(virtual, patches), { annotations: { k: 'x' } });
    const merged = await merge({ virtual, host, patches });
    expect([annotationOf(merged.host, 'k'), merged.isVirtualChanged]).toEqual(['f-v', false]);
    for (const record of [{}, LOST]) {
      const own = touch(await copyOf(endpoints({}), patches), { annotations: { k: 'x', ...record } });
      const kept = await merge({ virtual: endpoints({}), host: own, patches });
      expect([annotationOf(kept.host, 'k'), kept.isVirtualChanged]).toEqual(['x', false]);
    }
    const gone = await merge({ virtual: endpoints({}), host: await copyOf(virtual, patches), patches });
    expect(annotationOf(gone.host, 'k')).toBeUndefined();
  });

  test('toVirtual: the host keeps its own value, a change of it is synced back, the virtual value is not synced', async () => {
    const patches = patchK('toVirtual', undefined, (value) => value && `r-${value}`);
    const virtual = endpoints({ annotations: { k: 'v' } });
    const copy = await copyOf(virtual, patches);
    expect(annotationOf(copy, 'k')).toBeUndefined();
    const merged = await merge({ virtual, host: touch(copy, { annotations: { k: 'h' } }), patches });
    expect([annotationOf(merged.host, 'k'), annotationOf(merged.virtual, 'k')]).toEqual(['h', 'r-h']);
    const edited = touch(merged.virtual, { annotations: { k: 'edited' } });
    const after = await merge({ virtual: edited, host: merged.host, patches });
    expect([annotationOf(after.host, 'k'), after.isVirtualChanged]).toEqual(['h', false]);
    expect(annotationOf(after.host, MANAGED_ANNOTATIONS)).toBeUndefined();
    const lost = touch(copy, { annotations: { ...LOST, k: 'h' } });
    expect(annotationOf((await merge({ virtual: endpoints({}), host: lost, patches })).virtual, 'k')).toBe(
      'r-h',
    );
    expect((await merge({ virtual, host: lost, patches })).isVirtualChanged).toBe(false);
  });

  test('none: each side keeps its own value', async () => {
    const patches = patchK('none');
    const virtual = endpoints({ annotations: { k: 'v' } });
    const host = touch(await copyOf(virtual, patches), { annotations: { k: 'h' } });
    const merged = await merge({ virtual, host, patches });
    expect([annotationOf(merged.host, 'k'), merged.isVirtualChanged]).toEqual(['h', false]);
  });
});

describe('without a record', async () => {
  const virtual = endpoints({ labels: { l: '1' }, annotations: { a: '1', b: '1' } });
  const lost = touch(await copyOf(virtual), { annotations: LOST });

  test('the virtual side wins', async () => {
    const host = touch(lost, { labels: { l: 'h' }, annotations: { a: 'h', b: undefined } });
    const merged = await merge({ virtual, host });
    expect(merged.host.metadata.annotations).toEqual((await copyOf(virtual)).metadata.annotations);
    expect(merged.host.metadata.labels).toEqual((await copyOf(virtual)).metadata.labels);
    expect(merged.isVirtualChanged).toBe(false);
  });

  test('a key that the virtual side removed is deleted, a key that another client added is synced back', async () => {
    const host = touch(lost, { labels: { own: '1' }, annotations: { added: '1' } });
    const merged = await merge({ virtual: touch(virtual, { annotations: { b: undefined } }), host });
    expect(annotationOf(merged.host, 'b')).toBeUndefined();
    expect(merged.virtual.metadata.annotations).toEqual({ a: '1', added: '1' });
    expect(merged.host.metadata.labels?.['own']).toBeUndefined();
    expect(merged.virtual.metadata.labels).toEqual({ l: '1' });
  });

  test('keys are kept if the list of managed annotations is missing too', async () => {
    const host = touch(lost, { annotations: { added: '1', [MANAGED_ANNOTATIONS]: undefined } });
    const merged = await merge({ virtual: touch(virtual, { annotations: { b: undefined } }), host });
    expect(merged.virtual.metadata.annotations).toEqual({ a: '1', b: '1', added: '1' });
  });

  test('a key that exists on both sides without being managed is kept', async () => {
    const host = touch(lost, { annotations: { c: '1' } });
    const merged = await merge({ virtual: touch(virtual, { annotations: { c: '1' } }), host });
    expect(annotationOf(merged.host, MANAGED_ANNOTATIONS)).toBe('a\nb');
  });
});

test('an untranslated reserved label on the host is kept, with and without a record, and never synced back', async () => {
  const virtual = endpoints({ labels: { release: 'v' } });
  for (const record of [{}, LOST]) {
    const host = touch(await copyOf(virtual), { labels: { release: 'raw' }, annotations: record });
    const merged = await merge({ virtual, host });
    expect(merged.host.metadata.labels).toMatchObject({
      release: 'raw',
      'vcluster.loft.sh/label-suffix-x-a4d451ec23': 'v',
    });
    expect(merged.isVirtualChanged).toBe(false);
  }
});

test('a change of a translated label on the host is synced back to its original key', async () => {
  const virtual = endpoints({ labels: { release: 'v' } });
  const host = touch(await copyOf(virtual), {
    labels: { 'vcluster.loft.sh/label-suffix-x-a4d451ec23': 'w' },
  });
  expect((await merge({ virtual, host })).virtual.metadata.labels).toEqual({ release: 'w' });
});

test('bookkeeping on the virtual object and excluded annotations are not synced', async () => {
  const leader = 'control-plane.alpha.kubernetes.io/leader';
  const annotations = { [leader]: 'v', 'vcluster.loft.sh/object-name': 'inner', a: '1' };
  const virtual = endpoints({ annotations });
  const host = touch(await copyOf(virtual), { annotations: { [leader]: 'h', extra: '1' } });
  const merged = await merge({ virtual, host });
  expect(merged.virtual.metadata.annotations).toEqual({ ...annotations, extra: '1' });
  expect(merged.host.metadata.annotations).toMatchObject({
    [leader]: 'h',
    'vcluster.loft.sh/object-name': 'web',
  });
});

describe('the rest of the host object', () => {
  const owner = { apiVersion: 'v1', kind: 'Service', name: 'vc', uid: 'o1' };
  const other = { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'o2' };

  function forged(mode = translators(), withOwner = true): KubeObject {
    const virtual = endpoints({});
    const target = mode.names.toHost({ name: 'web', namespace: 'shop' }) ?? { name: '', namespace: '' };
    return forgeHostObject(virtual, {
      ...mode,
      kind: ENDPOINTS,
      content: endpointsContent,
      target,
      owner: withOwner ? owner : undefined,
    });
  }

  test('has an owner only in the host namespace of the virtual cluster', () => {
    expect(forged().metadata['ownerReferences']).toEqual([owner]);
    expect(forged(translators(mappings({ shop: 'h' }))).metadata['ownerReferences']).toBeUndefined();
  });

  test('keeps metadata that other clients set, and unknown fields of the virtual object', async () => {
    const { labels } = translators();
    const host = forged();
    host.metadata = {
      ...host.metadata,
      finalizers: ['f'],
      uid: 'h1',
      ownerReferences: [other, owner],
      managedFields: [],
    };
    const mergedWith = async (desired: KubeObject): Promise<KubeObject> => {
      const pair = { virtual: endpoints({}), host, labels, flows: plainFlows };
      const forward = async () => ({ desired: { ...desired, future: { x: 1 } } });
      return (await mergePair(pair, { forward })).host;
    };
    expect(await mergedWith(forged())).toMatchObject({
      future: { x: 1 },
      metadata: { finalizers: ['f'], uid: 'h1' },
    });
    expect((await mergedWith(forged())).metadata['ownerReferences']).toEqual([other, owner]);
    expect((await mergedWith(forged(translators(), false))).metadata['ownerReferences']).toEqual([
      other,
      owner,
    ]);
    expect((await mergedWith(forged())).metadata.managedFields).toBeUndefined();
  });

  test('keeps nothing after recreation', async () => {
    const virtual = endpoints({ uid: 'new' });
    const fresh = (await merge({ virtual, host: undefined })).host;
    expect(Object.keys(fresh.metadata).toSorted()).toEqual(['annotations', 'labels', 'name', 'namespace']);
  });
});

describe('labels of this program', () => {
  const forged = {
    'app.kubernetes.io/managed-by': 'endpoint-syncer',
    'endpoint-syncer/store': 'management',
    'endpoint-syncer/part': 'notes',
  };

  test('on a virtual object are neither copied nor removed', async () => {
    const virtual = endpoints({ labels: { ...forged, app: 'web' } });
    const { host, isVirtualChanged } = await merge({ virtual, host: undefined });
    expect(host.metadata.labels).toEqual({
      app: 'web',
      'vcluster.loft.sh/managed-by': 'suffix',
      'vcluster.loft.sh/namespace': 'shop',
    });
    expect(isVirtualChanged).toBe(false);
    expect((await merge({ virtual, host })).virtual).toBe(virtual);
  });

  test('on the host do not reach the virtual object', async () => {
    const virtual = endpoints({ labels: { app: 'web' } });
    const host = touch(await copyOf(virtual), { labels: { ...forged, team: 'a' } });
    const merged = await merge({ virtual, host });
    expect(merged.virtual.metadata.labels).toEqual({ app: 'web', team: 'a' });
    expect((await merge({ virtual: merged.virtual, host: merged.host })).isVirtualChanged).toBe(false);
  });

  test('of the virtual object are not affected by a change on the host', async () => {
    const virtual = endpoints({ labels: { ...forged } });
    const host = touch(await copyOf(virtual), {
      labels: { 'app.kubernetes.io/managed-by': 'Helm', team: 'a' },
    });
    expect((await merge({ virtual, host })).virtual.metadata.labels).toEqual({ ...forged, team: 'a' });
  });

  test('a managed-by label with another value is copied', async () => {
    const virtual = endpoints({ labels: { 'app.kubernetes.io/managed-by': 'Helm' } });
    expect((await copyOf(virtual)).metadata.labels).toMatchObject({ 'app.kubernetes.io/managed-by': 'Helm' });
  });
});

describe('bookkeeping that does not fit beside the annotations', () => {
  const sizeOf = ({ metadata: { annotations = {} } }: KubeObject): number =>
    Object.entries(annotations).reduce((sum, [key, value]) => sum + key.length + value.length, 0);
  const sized = (keys: number, valueLength: number): KubeObject => {
    const entries = Array.from({ length: keys }, (_, at) => [
      `example.com/${String(at).padStart(50, 'k')}`,
      'v'.repeat(valueLength),
    ]);
    return endpoints({ annotations: Object.fromEntries(entries) as StringMap });
  };

  test.each([
    { what: 'nothing', keys: 100, valueLength: 100, kept: [LAST_SYNCED, MANAGED_ANNOTATIONS] },
    { what: 'the list of the keys', keys: 1000, valueLength: 130, kept: [LAST_SYNCED] },
    { what: 'the record too', keys: 1000, valueLength: 190, kept: [] },
  ])('leaves out $what', async ({ keys, valueLength, kept }) => {
    const virtual = sized(keys, valueLength);
    const { host } = await merge({ virtual, host: undefined });
    const { annotations = {} } = host.metadata;
    expect(annotations).toMatchObject(virtual.metadata.annotations ?? {});
    expect([LAST_SYNCED, MANAGED_ANNOTATIONS].filter((key) => Object.hasOwn(annotations, key))).toEqual(kept);
    expect(sizeOf(host)).toBeLessThanOrEqual(256 * 1024);
    const again = await merge({ virtual, host });
    expect(again.host.metadata).toEqual(host.metadata);
  });
});
