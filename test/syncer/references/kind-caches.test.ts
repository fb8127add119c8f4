/** What is kept of the objects of a referenced kind, and what this process remembers of single ones. */

import { expect, test } from 'vitest';
import { createSemaphore } from '../../../src/base/semaphore.ts';
import type { KubeObject } from '../../../src/kube/object.ts';
import { OBJECT_IMPORTED } from '../../../src/syncer/translate/bookkeeping.ts';
import { KindCaches } from '../../../src/syncer/references/kind-caches.ts';
import type { ReferencedKind } from '../../../src/syncer/references/referenced-kind.ts';
import { SECRET_KIND } from './gadget-kind.ts';
import { kindWorld } from './kind-world.ts';

function secret(namespace: string, metadata: Partial<KubeObject['metadata']> = {}): KubeObject {
  const annotations = { large: 'x', ...metadata.annotations };
  return {
    metadata: { name: 'tls', uid: namespace, resourceVersion: '5', ...metadata, namespace, annotations },
    data: { a: 'YQ==' },
  };
}

const MARKED = {
  name: 'copy',
  uid: 'copy',
  labels: { 'vcluster.loft.sh/managed-by': 'vc' },
  annotations: {
    'vcluster.loft.sh/object-name': 'tls',
    'vcluster.loft.sh/object-namespace': 'shop',
    'vcluster.loft.sh/object-uid': 'shop',
    'vcluster.loft.sh/object-kind': '/v1, Kind=Secret',
    'vcluster.loft.sh/object-host-name': 'copy',
    'vcluster.loft.sh/object-host-namespace': 'host',
  },
};

async function cachesIn(world: ReturnType<typeof kindWorld>, kind = SECRET_KIND): Promise<KindCaches> {
  const caches = new KindCaches(kind, world.environment, createSemaphore(1));
  for (const informer of caches.informers) void informer.run(world.signal);
  await Promise.all(caches.informers.map((informer) => informer.whenSynced(world.signal)));
  return caches;
}

test.each<[string, Partial<ReferencedKind>, boolean, boolean]>([
  ['imported both ways', {}, true, true],
  ['imported from the host', { isSynced: false }, false, true],
  ['that another syncer copies', { isImportable: false }, false, false],
  ['that only objects name', { isNamed: false }, true, false],
])('of a kind %s, content is cached only if it is copied', async (_, change, hasContent, hasSources) => {
  await using world = kindWorld();
  world.store('virtual', secret('shop'));
  world.store('host', secret('host'));
  const caches = await cachesIn(world, { ...SECRET_KIND, ...change });
  expect(caches.virtual('shop/tls')?.['data'] !== undefined).toBe(hasContent);
  expect([caches.sources !== undefined, caches.host('host/tls') !== undefined]).toEqual([
    hasSources,
    hasSources,
  ]);
});

test('of an object of the host, only the name, the version and the marks of ownership and of refusals are kept', async () => {
  await using world = kindWorld();
  const token = { 'kubernetes.io/service-account.name': 'sa' };
  const labels = { 'argocd.argoproj.io/secret-type': 'cluster' };
  world.store('host', secret('host', { labels: { app: 'x', ...labels }, annotations: token }));
  const caches = await cachesIn(world);
  expect(caches.host('host/tls')).toEqual({
    metadata: {
      name: 'tls',
      namespace: 'host',
      uid: 'host',
      resourceVersion: '5',
      labels,
      annotations: token,
    },
  });
});

test('of a copy of this program all metadata are kept, which the next write needs; it is found by its original', async () => {
  await using world = kindWorld();
  const annotations = { ...MARKED.annotations, 'endpoint-syncer/last-synced': '{"v":1}' };
  world.store('host', secret('host', { ...MARKED, annotations }));
  const others = { ...MARKED, name: 'other', uid: 'other' };
  world.store('host', secret('host', others));
  const caches = await cachesIn(world);
  const kept = ['copy', 'other'].map((name) => caches.host(`host/${name}`)?.metadata.annotations?.['large']);
  expect(kept).toEqual(['x', undefined]);
  expect(caches.copiesOf('shop/tls').map(({ metadata }) => metadata.name)).toEqual(['copy']);
});

test('a refusal of a content counts until it is another one, and each change of it is an event', async () => {
  await using world = kindWorld();
  const caches = await cachesIn(world);
  const events: string[] = [];
  caches.subscribe((cluster, { key }) => events.push(`${cluster} ${key}`));
  const [first, second] = [secret('host'), secret('host', { resourceVersion: '6' })];
  caches.recordRefusal(first, 'keys');
  caches.recordRefusal(first, 'keys');
  expect([caches.refusal(first), caches.isRefusalOutdated(first), caches.isRefusalOutdated(second)]).toEqual([
    'keys',
    false,
    true,
  ]);
  caches.recordRefusal(second, undefined);
  expect([caches.refusal(second), caches.isRefusalOutdated(second)]).toEqual([undefined, false]);
  expect(events).toEqual(['host host/tls', 'host host/tls']);
});

test('what is known of an object by its uid ends with it', async () => {
  await using world = kindWorld();
  world.store('host', secret('host'));
  world.store('virtual', secret('shop', { annotations: { [OBJECT_IMPORTED]: 'true' } }));
  const caches = await cachesIn(world);
  const [source, imported] = [secret('host'), caches.virtual('shop/tls')];
  if (imported === undefined) throw new Error('the import is cached');
  caches.recordRefusal(source, 'keys');
  caches.rememberImport(imported);
  expect([caches.refusal(source), caches.isKnownImport(imported)]).toEqual(['keys', true]);
  caches.sources?.observeAbsence('host/tls', 'host');
  caches.virtualCache.observeAbsence('shop/tls', imported.metadata.uid ?? '');
  expect([caches.refusal(source), caches.isKnownImport(imported)]).toEqual([undefined, false]);
});
