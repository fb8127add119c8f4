/** Which references and which referrers a change concerns. */

import { expect, test } from 'vitest';
import { ENDPOINTS, parseKey, type KubeObject } from '../../../src/kube/object.ts';
import { KindRegistry } from '../../../src/syncer/references/kind-registry.ts';
import { ReferenceChanges } from '../../../src/syncer/references/reference-changes.ts';
import { ReferenceIndex } from '../../../src/syncer/references/reference-index.ts';
import { ReferenceNotices } from '../../../src/syncer/references/reference-notices.ts';
import { refusalRules } from '../../../src/syncer/references/refusals.ts';
import { kindWorld } from './kind-world.ts';

const TLS = 'v1 Secret shop/tls';
const WEB = 'shop/web';

function secret(namespace: string, name = 'tls'): KubeObject {
  return { metadata: { namespace, name, uid: `${namespace}-${name}`, resourceVersion: '5' } };
}

async function changesIn(world: ReturnType<typeof kindWorld>) {
  const { environment, signal } = world;
  const enqueued: string[] = [];
  const again: string[] = [];
  const hostCopy: KubeObject = { metadata: { name: 'db', annotations: { secret: 'tls' } } };
  const originals: KubeObject[] = [];
  const endpoints = {
    kind: { resource: ENDPOINTS },
    virtual: { get: () => undefined, list: () => originals },
    host: { get: () => hostCopy },
    enqueue: (key: string) => void again.push(key),
  };
  const { config, names } = environment;
  const index = new ReferenceIndex([endpoints], names);
  const kinds = new KindRegistry(environment, await world.named(), {
    changed: () => undefined,
    opened: () => undefined,
    retry: () => undefined,
  });
  kinds.start(signal);
  await kinds.whenOpened(signal);
  const changes = new ReferenceChanges({
    index,
    names,
    rules: refusalRules(config),
    kinds,
    notices: new ReferenceNotices(environment, index),
    enqueue: (id) => void enqueued.push(id),
  });
  const records = changes.recordsOf(ENDPOINTS);
  const caches = kinds.caches('v1 Secret');
  if (caches === undefined) throw new Error('Secrets are watched');
  const target = names.shortToHost({ namespace: 'shop', name: 'tls' });
  const written = target === undefined ? '' : `${target.namespace}/${target.name}`;
  const record = (place: string): void =>
    records.recordReferences(WEB, [
      {
        patchIndex: 0,
        path: '',
        apiVersion: 'v1',
        kind: 'Secret',
        namespace: 'shop',
        name: 'tls',
        written: parseKey(place),
      },
    ]);
  const affected = (cluster: 'host' | 'virtual', object: KubeObject): string[] => [
    ...changes.affectedBy(caches, cluster, {
      type: 'updated',
      key: `${object.metadata.namespace}/${object.metadata.name}`,
      object,
      previous: object,
    }),
  ];
  return { changes, records, originals, enqueued, again, written, record, affected };
}

test('a recorded reference is decided; its referrer only if the copy has to name another object', async () => {
  await using world = kindWorld();
  world.store('virtual', secret('shop'));
  const { enqueued, again, records, record, written } = await changesIn(world);
  record(written);
  expect([enqueued, again]).toEqual([[TLS], []]);
  record('host/another');
  expect([enqueued, again, records.isStale(WEB)]).toEqual([[TLS, TLS], [WEB], true]);
});

test('an object of the host under the untranslated name is the one that copies have to name', async () => {
  await using world = kindWorld();
  world.store('host', secret('host'));
  const { changes, again, record } = await changesIn(world);
  record('host/tls');
  changes.recheck(TLS);
  expect(again).toEqual([]);
  record('host/before');
  expect(again).toEqual([WEB]);
});

test('events concern the referenced objects of both places on the host, and no others', async () => {
  await using world = kindWorld();
  const { affected, records, record, written } = await changesIn(world);
  const target = secret('host', parseKey(written).name);
  expect([affected('virtual', secret('shop')), affected('host', target)]).toEqual([[], []]);
  record(written);
  expect(affected('virtual', secret('shop'))).toEqual([TLS]);
  expect(affected('host', target)).toEqual([TLS]);
  expect(affected('host', secret('host'))).toEqual([TLS]);
  expect(affected('host', secret('elsewhere'))).toEqual([]);
  expect(affected('virtual', secret('shop', 'other'))).toEqual([]);
  records.clearReferences(WEB);
  expect([affected('virtual', secret('shop')), affected('host', target)]).toEqual([[], []]);
});

test('an import is dispensable once every object is known, and no copy of an unknown one has its name', async () => {
  await using world = kindWorld();
  const { changes, records, originals } = await changesIn(world);
  originals.push({ metadata: { namespace: 'shop', name: 'db' } });
  changes.begin();
  expect(changes.isDispensable(secret('host', 'other'))).toBe(false);
  records.markReconciled('shop/db');
  expect(changes.isDispensable(secret('host', 'other'))).toBe(true);
  expect(changes.isDispensable(secret('host', 'tls'))).toBe(false);
});

test('imports are decided once when every object is known, and when one that may name them, and is not translated, is gone', async () => {
  await using world = kindWorld();
  const { name, labels } = { name: world.environment.config.name, labels: 'vcluster.loft.sh/managed-by' };
  const at = (field: string): string => `vcluster.loft.sh/object-${field}`;
  const annotations = {
    [at('name')]: 'tls',
    [at('namespace')]: 'shop',
    [at('kind')]: '/v1, Kind=Secret',
    [at('host-name')]: 'tls',
    [at('host-namespace')]: 'host',
  };
  const { metadata } = secret('host');
  world.store('host', { metadata: { ...metadata, labels: { [labels]: name }, annotations } });
  const { changes, enqueued, records, originals } = await changesIn(world);
  originals.push({ metadata: { namespace: 'shop', name: 'web' } });
  changes.begin();
  records.markReconciled(WEB);
  records.markReconciled(WEB);
  expect([enqueued.splice(0), changes.isDispensable({ metadata })]).toEqual([[TLS], false]);
  records.clearReferences(WEB);
  expect([enqueued, changes.isDispensable({ metadata })]).toEqual([[TLS], true]);
});
