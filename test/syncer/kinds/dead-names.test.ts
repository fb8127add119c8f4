/** What the tenant is told of DNS names, in ExternalName Services and FQDN slices, of Services that get no copy. */

import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../../src/base/json.ts';
import { objectKey, type KubeObject, type StringMap } from '../../../src/kube/object.ts';
import { serviceKeysOf } from '../../../src/syncer/kinds/endpoint-slices.ts';
import { BY_SERVICE } from '../../../src/syncer/kinds/kind.ts';
import type { VirtualCache } from '../../../src/syncer/kinds/relations.ts';
import { syncedKinds } from '../../../src/syncer/kinds/synced-kinds.ts';
import { configOf } from '../../cli/live/memory-clusters.ts';

const configFor = (services: string) =>
  configOf(`
endpointSyncer:
  name: vc
  host: {namespace: host}
  services: ${services}
  namespaces: {exclude: [hidden]}
  selector: {matchExpressions: [{key: out, operator: DoesNotExist}]}
`);
const CONFIG = configFor('sync');
const SELECTING = { selector: { app: 'web' }, ports: [{ port: 80 }] };
const PLAIN = { ports: [{ port: 80 }] };

function serviceOf(key: string, spec: JsonObject, labels: StringMap = {}): KubeObject {
  const [namespace = '', name = ''] = key.split('/');
  return { apiVersion: 'v1', kind: 'Service', metadata: { namespace, name, labels }, spec };
}

const alias = (externalName: string): KubeObject =>
  serviceOf('shop/alias', { type: 'ExternalName', externalName });

function sliceOf(...addresses: readonly string[]): KubeObject {
  const metadata = { namespace: 'shop', name: 'a', labels: { 'kubernetes.io/service-name': 'a' } };
  return { kind: 'EndpointSlice', metadata, addressType: 'FQDN', endpoints: [{ addresses: [...addresses] }] };
}

function cacheOf(objects: readonly KubeObject[]): VirtualCache {
  return {
    get: (key) => objects.find((one) => objectKey(one) === key),
    byIndex: (index, value) =>
      new Set(
        objects.flatMap((one) =>
          index === BY_SERVICE && serviceKeysOf(one).includes(value as never) ? [objectKey(one)] : [],
        ),
      ),
  };
}

function noteOf(object: KubeObject, services: readonly KubeObject[], config = CONFIG): string | undefined {
  const caches = new Map([['services', cacheOf([...services, object])]]);
  const plural = object.kind === 'Service' ? 'services' : 'endpointslices';
  const found = syncedKinds(config, caches).find(({ kind }) => kind.resource.plural === plural);
  return found?.kind.noticesOf(object).find(({ reason }) => reason === 'NoEffect')?.note;
}

describe.each([
  ['spec.externalName', alias],
  ['endpoints[0].addresses[0]', sliceOf],
])('%s', (path, naming) => {
  test.each<[string, KubeObject, string]>([
    ['shop/web', serviceOf('shop/web', SELECTING), 'it has a selector'],
    ['hidden/web', serviceOf('hidden/web', PLAIN), 'endpointSyncer.namespaces excludes its namespace'],
    [
      'shop/web',
      serviceOf('shop/web', PLAIN, { out: '' }),
      'its labels do not match endpointSyncer.selector',
    ],
  ])('names %s, of which there is no copy: %#', (key, service, why) => {
    const [namespace = '', name = ''] = key.split('/');
    for (const dnsName of [`${name}.${namespace}.svc`, `db-0.${name}.${namespace}.svc.cluster.local.`]) {
      const note = noteOf(naming(dnsName), [service]);
      expect(note).toContain(`${path} names Service "${key}", which is not copied to the host: ${why}`);
    }
  });

  test.each<[string, string, readonly KubeObject[]]>([
    ['a Service that may be created', 'web.shop.svc', []],
    ['one that is copied when it has Endpoints', 'web.shop.svc', [serviceOf('shop/web', PLAIN)]],
    ['a load balancer', 'web.shop.svc', [serviceOf('shop/web', { ...PLAIN, type: 'LoadBalancer' })]],
    [
      'another alias, whose selector has no effect',
      'web.shop.svc',
      [serviceOf('shop/web', { ...SELECTING, type: 'ExternalName', externalName: 'example.com' })],
    ],
    ['a domain of the internet', 'web.shop', [serviceOf('shop/web', SELECTING)]],
  ])('is fine with %s', (_, dnsName, services) => {
    expect(noteOf(naming(dnsName), services)).toBeUndefined();
  });
});

test('each address of a slice counts', () => {
  const note = noteOf(sliceOf('example.com', 'web.shop.svc'), [serviceOf('shop/web', SELECTING)]);
  expect(note).toContain('endpoints[0].addresses[1] names Service "shop/web"');
});

test('beside vCluster, Services with a selector have copies', () => {
  const config = configFor('vcluster');
  expect(noteOf(sliceOf('web.shop.svc'), [serviceOf('shop/web', SELECTING)], config)).toBeUndefined();
});
