/** What the tenant is told of traffic policies that keep traffic on the node of an endpoint. */

import { expect, test } from 'vitest';
import type { JsonObject, JsonValue } from '../../../src/base/json.ts';
import type { KubeObject } from '../../../src/kube/object.ts';
import { syncedKinds } from '../../../src/syncer/kinds/synced-kinds.ts';
import { configOf } from '../../cli/live/memory-clusters.ts';

const BALANCED = { type: 'LoadBalancer', externalTrafficPolicy: 'Local' };
const NODE_PATCHES = {
  endpoints: 'subsets[*].addresses[*].nodeName',
  endpointslices: 'endpoints[*].nodeName',
};

type Plural = keyof typeof NODE_PATCHES;

const KEYS: Readonly<Record<Plural, string>> = { endpoints: 'endpoints', endpointslices: 'endpointSlices' };

interface Setting {
  readonly services?: string;
  readonly sync?: string;
}

function noteOf(
  plural: Plural,
  spec: JsonObject,
  nodeNames: readonly (string | undefined)[],
  { services = 'sync', sync = '{}' }: Setting = {},
): string | undefined {
  const config = configOf(
    `endpointSyncer: {name: vc, services: ${services}, host: {namespace: host}}\nsync: {toHost: ${sync}}\n`,
  );
  const service: KubeObject = { metadata: { name: 'db', namespace: 'shop' }, spec };
  const cache = { get: () => service, byIndex: () => new Set<never>() };
  const found = syncedKinds(config, new Map([['services', cache]])).find(
    ({ kind }) => kind.resource.plural === plural,
  );
  const notices = found?.kind.noticesOf(objectOf(plural, nodeNames)) ?? [];
  return notices.find(({ reason }) => reason === 'LocalTrafficPolicy')?.note;
}

function objectOf(plural: Plural, nodeNames: readonly (string | undefined)[]): KubeObject {
  const named = (nodeName: string | undefined): JsonObject => (nodeName === undefined ? {} : { nodeName });
  const metadata = { name: 'db', namespace: 'shop', labels: { 'kubernetes.io/service-name': 'db' } };
  const members: Record<Plural, JsonObject> = {
    endpoints: {
      subsets: [{ addresses: nodeNames.map((one): JsonValue => ({ ip: '10.0.0.1', ...named(one) })) }],
    },
    endpointslices: {
      endpoints: nodeNames.map((one): JsonValue => ({ addresses: ['10.0.0.1'], ...named(one) })),
    },
  };
  return { metadata, ...members[plural] };
}

for (const plural of ['endpoints', 'endpointslices'] as const) {
  test.each<[string, JsonObject]>([
    ['externalTrafficPolicy', BALANCED],
    ['externalTrafficPolicy', { ...BALANCED, type: 'NodePort' }],
    ['internalTrafficPolicy', { internalTrafficPolicy: 'Local' }],
  ])(`${plural} of a Service with %s: Local are reported: %#`, (policy, spec) => {
    expect(noteOf(plural, spec, ['node-a', 'node-b', 'node-a'])).toContain(
      `Service "shop/db" has ${policy}: Local, so each node of the host sends its traffic only to the addresses with its own name in ${NODE_PATCHES[plural]}: here they are "node-a", "node-b"`,
    );
    expect(noteOf(plural, spec, [undefined])).toContain('no address has one');
  });

  test.each<[string, JsonObject, readonly (string | undefined)[], Setting?]>([
    ['with the policy Cluster', { ...BALANCED, externalTrafficPolicy: 'Cluster' }, ['node-a']],
    ['without traffic from outside', { externalTrafficPolicy: 'Local' }, ['node-a']],
    ['that is an alias', { type: 'ExternalName', internalTrafficPolicy: 'Local' }, ['node-a']],
    ['without addresses', BALANCED, []],
    ['of which vCluster makes the copy', BALANCED, ['node-a'], { services: 'vcluster' }],
    [
      'whose copy has another policy',
      BALANCED,
      ['node-a'],
      { sync: `{services: {patches: [{path: spec.externalTrafficPolicy, expression: '"Cluster"'}]}}` },
    ],
    [
      'with the names of host nodes',
      BALANCED,
      ['node-a'],
      {
        sync: `{${KEYS[plural]}: {patches: [{path: '${NODE_PATCHES[plural]}', expression: '"host-" + value'}]}}`,
      },
    ],
  ])(`${plural} of a Service %s are not`, (_, spec, nodeNames, setting = {}) => {
    expect(noteOf(plural, spec, nodeNames, setting)).toBeUndefined();
  });
}
