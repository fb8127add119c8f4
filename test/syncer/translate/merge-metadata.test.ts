/** Annotations and labels that are excluded or held: one example for each rule. */

import { describe, expect, test } from 'vitest';
import { LAST_SYNCED, MANAGED_ANNOTATIONS } from '../../../src/syncer/translate/bookkeeping.ts';
import { merge, touch, copyOf, annotationOf } from './merge-setup.ts';
import { endpoints, translators } from './setup.ts';

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
