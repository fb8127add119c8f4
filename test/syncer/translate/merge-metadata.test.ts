/** Annotations and labels that another syncer copies back, that are excluded, held or created again: one example for each rule. */

import { describe, expect, test } from 'vitest';
import { LAST_SYNCED, MANAGED_ANNOTATIONS } from '../../../src/syncer/translate/bookkeeping.ts';
import { shortHash } from '../../../src/syncer/translate/last-synced.ts';
import { idOfKey } from '../../../src/syncer/translate/merge-metadata.ts';
import { merge, touch, LOST, copyOf, annotationOf, patchK, type TestPatches } from './merge-setup.ts';
import { endpoints, translators } from './setup.ts';

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
