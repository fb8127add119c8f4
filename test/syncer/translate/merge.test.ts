/** What the merge keeps of both objects, by one example for each rule; those of single keys are in merge-key.test.ts and merge-metadata.test.ts. */

import { describe, expect, test } from 'vitest';
import { endpointsContent } from '../../../src/syncer/kinds/endpoints.ts';
import { ENDPOINTS, type KubeObject, type StringMap } from '../../../src/kube/object.ts';
import { LAST_SYNCED, MANAGED_ANNOTATIONS } from '../../../src/syncer/translate/bookkeeping.ts';
import { forgeHostObject } from '../../../src/syncer/translate/forge.ts';
import { NO_ROOM } from '../../../src/syncer/translate/last-synced.ts';
import { mergePair } from '../../../src/syncer/translate/merge.ts';
import { annotationOf, merge, patchK, plainFlows, touch, LOST, copyOf } from './merge-setup.ts';
import { endpoints, mappings, translators } from './setup.ts';

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
    { what: 'what the record says', keys: 1000, valueLength: 190, kept: [LAST_SYNCED] },
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

  test('does not keep on the host what a patch decides about and the virtual side has removed', async () => {
    const big = { big: 'x'.repeat(261_900) };
    const oneWay = patchK('toHost', (value) => value?.toLowerCase());
    const host = await copyOf(endpoints({ annotations: { ...big, k: 'PREMIUM' } }), oneWay);
    expect(annotationOf(host, LAST_SYNCED)).toBe(NO_ROOM);
    const merged = await merge({ virtual: endpoints({ annotations: big }), host, patches: oneWay });
    expect(annotationOf(merged.host, 'k')).toBeUndefined();
  });
});
