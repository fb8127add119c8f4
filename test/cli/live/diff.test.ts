/** Applying the output of `diff` syncs both clusters: after that `diff` is empty. */

import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { formatChange } from '../../../src/cli/live/diff.ts';
import { KeptSandbox } from '../../../src/syncer/rehearsal/pipelines.ts';
import { commandParts } from '../../../src/cli/live/command-parts.ts';
import { differencesIn } from '../../../src/syncer/rehearsal/differences.ts';
import { rehearseSnapshot } from '../../../src/syncer/rehearsal/snapshot.ts';
import { paintFor } from '../../../src/cli/output/terminal.ts';
import type { JsonValue } from '../../../src/base/json.ts';
import type { KubeObject, StringMap } from '../../../src/kube/object.ts';
import { StatusError } from '../../../src/kube/status-error.ts';
import { applied, configOf, snapshotOf, stored, type MemoryClusters } from './memory-clusters.ts';
import { costlyRuns } from '../../support/costly-runs.ts';
import { object } from '../../syncer/rehearsal/status-fixtures.ts';

const CONFIG = configOf(`sync:
  toHost:
    endpoints:
      patches:
        - path: metadata.annotations.owner
          expression: '"team-" + value'
          reverseExpression: value.replace(/^team-/, "")
        - path: metadata.labels.one
          expression: value + "-x"
        - path: subsets[*].ports[*].port
          expression: value + 1000
          reverseExpression: value - 1000
        - path: metadata.annotations.secret
          reference: {apiVersion: v1, kind: Secret}
    endpointSlices:
      enabled: true
      patches:
        - path: metadata.annotations.owner
          expression: '"team-" + value'
          reverseExpression: value.replace(/^team-/, "")
        - path: endpoints[*].hostname
          expression: value + "-h"
          reverseExpression: value.replace(/-h$/, "")
endpointSyncer: {name: vc, services: sync, host: {namespace: host}}
`);

const sandbox = new KeptSandbox();
afterAll(() => sandbox[Symbol.asyncDispose]());

const namespace = fc.constantFrom('c', 'b-x-c');
const name = fc.constantFrom('a', 'b', 'a-x-b');
const secretName = fc.constantFrom('tls', 'other');
const text = fc.constantFrom('', '1', 'team-2', 'release');
const annotations = fc.dictionary(fc.constantFrom('owner', 'plain', 'vcluster.loft.sh/controlled-by'), text, {
  maxKeys: 2,
});
const labels = fc.dictionary(fc.constantFrom('one', 'release', 'two'), fc.constantFrom('1', '2'), {
  maxKeys: 2,
});
const subsets = fc.constantFrom<JsonValue[]>(
  null,
  [{ addresses: [{ ip: '10.0.0.1' }], ports: [{ port: 80, protocol: 'TCP' }] }],
  [
    {
      addresses: [{ ip: '10.0.0.2', targetRef: { kind: 'Pod', name: 'p' } }],
      ports: [{ port: 81, protocol: 'TCP' }],
    },
  ],
);

const endpoints: fc.Arbitrary<KubeObject> = fc
  .record({
    namespace,
    name,
    annotations,
    labels,
    subsets,
    secret: fc.option(secretName, { nil: undefined }),
  })
  .map(({ subsets: content, annotations: map, secret, ...metadata }) => ({
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: { ...metadata, annotations: secret === undefined ? map : { ...map, secret } },
    ...(content === null ? {} : { subsets: content }),
  }));

const service: fc.Arbitrary<KubeObject> = fc
  .record({
    namespace,
    name,
    annotations,
    labels,
    spec: fc.constantFrom<JsonValue[]>(
      { selector: { app: 'a' }, ports: [{ port: 80 }] },
      { ports: [{ port: 80 }, { port: 81, nodePort: 30_081 }] },
      { type: 'LoadBalancer', clusterIP: '10.0.0.1', ports: [{ port: 80 }] },
      { type: 'ExternalName', externalName: 'a.example.com' },
      { clusterIP: 'None', ports: [{ port: 80 }] },
    ),
  })
  .map(({ spec, ...metadata }) => ({ apiVersion: 'v1', kind: 'Service', metadata, spec }));

const slice: fc.Arbitrary<KubeObject> = fc
  .record({
    namespace,
    name,
    annotations,
    labels,
    serviceName: fc.option(name, { nil: undefined }),
    manager: fc.constantFrom(undefined, 'operator', 'endpointslicemirroring-controller.k8s.io'),
    addressType: fc.constantFrom('IPv4', 'IPv6'),
  })
  .map(({ serviceName, manager, addressType, labels: own, ...metadata }) => ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      ...metadata,
      labels: {
        ...own,
        ...(serviceName !== undefined && { 'kubernetes.io/service-name': serviceName }),
        ...(manager !== undefined && { 'endpointslice.kubernetes.io/managed-by': manager }),
      },
    },
    addressType,
    endpoints: [{ addresses: ['10.0.0.1'], hostname: 'h', targetRef: { kind: 'Pod', name: 'p' } }],
    ports: [{ port: 80 }],
  }));

const secretIn = (where: fc.Arbitrary<string>): fc.Arbitrary<KubeObject> =>
  fc.record({ namespace: where, name: secretName, value: text }).map(({ value, ...metadata }) => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata,
    data: { value },
  }));

/** Host objects that this program did not create. */
const foreign: fc.Arbitrary<KubeObject> = fc
  .record({
    kind: fc.constantFrom('Endpoints', 'EndpointSlice', 'Service'),
    name: fc.constantFrom('a-x-c-x-vc', 'a-x-b-x-c-x-vc', 'free'),
    labels,
  })
  .map(({ kind, ...metadata }) => ({
    apiVersion: kind === 'EndpointSlice' ? 'discovery.k8s.io/v1' : 'v1',
    kind,
    metadata: { ...metadata, namespace: 'host' },
  }));

const distinct = (objects: readonly KubeObject[]): KubeObject[] => [
  ...new Map(
    objects.map((object) => [
      `${object.kind} ${object.metadata.namespace}/${object.metadata.name}`,
      stored(object),
    ]),
  ).values(),
];

const virtual = fc
  .tuple(
    fc.array(endpoints, { maxLength: 5 }),
    fc.array(service, { maxLength: 3 }),
    fc.array(slice, { maxLength: 3 }),
    fc.array(secretIn(namespace), { maxLength: 2 }),
  )
  .map((parts) => distinct(parts.flat()));
const others = fc
  .tuple(fc.array(foreign, { maxLength: 2 }), fc.array(secretIn(fc.constant('host')), { maxLength: 2 }))
  .map((parts) => distinct(parts.flat()));

interface Edit {
  readonly side: 'virtual' | 'host';
  readonly at: number;
  readonly map: 'annotations' | 'labels';
  readonly changes: StringMap;
  readonly isDeletion: boolean;
  /** Fields that controllers of the host allocate: a status, a node port. */
  readonly isAllocation: boolean;
}

const edit: fc.Arbitrary<Edit> = fc.record({
  side: fc.constantFrom('virtual', 'host'),
  at: fc.nat(20),
  map: fc.constantFrom('annotations', 'labels'),
  changes: fc.dictionary(
    fc.constantFrom('owner', 'plain', 'one', 'two', 'endpoint-syncer/last-synced'),
    fc.constantFrom('1', 'team-9'),
    { maxKeys: 2 },
  ),
  isDeletion: fc.integer({ min: 0, max: 4 }).map((n) => n === 0),
  isAllocation: fc.boolean(),
});

const SLICE = { addressType: 'IPv4', endpoints: [{ addresses: ['10.0.0.1'] }], ports: [{ port: 80 }] };

function sliceIn(key: string, service: string): KubeObject {
  const labels = { 'kubernetes.io/service-name': service };
  return object('EndpointSlice', key, { apiVersion: 'discovery.k8s.io/v1', ...SLICE }, { labels });
}

/** The Service in front of the slice has the host name of another one, which goes. */
const REFUSED_AT_FIRST = [
  object('Service', 'c/a-x-b', { spec: { clusterIP: 'None', ports: [{ port: 80 }] } }),
  sliceIn('b-x-c/a', 'a'),
  sliceIn('c/a', 'a-x-b'),
];
const FIRST_DELETED: Edit = {
  side: 'virtual',
  at: 0,
  map: 'labels',
  changes: {},
  isDeletion: true,
  isAllocation: false,
};

function edited(
  clusters: MemoryClusters,
  { side, at, map, changes, isDeletion, isAllocation }: Edit,
): MemoryClusters {
  const objects = clusters[side];
  const object = objects[at % Math.max(1, objects.length)];
  if (object === undefined) return clusters;
  const rest = objects.filter((one) => one !== object);
  if (isDeletion) return { ...clusters, [side]: rest };
  if (isAllocation && object.kind === 'Service') {
    const status = { loadBalancer: { ingress: [{ ip: `10.0.0.${at}` }] } };
    const spec = { ...(object['spec'] as object), externalTrafficPolicy: 'Cluster', clusterIP: '10.9.9.9' };
    return { ...clusters, [side]: [...rest, stored({ ...object, spec, status }, object)] };
  }
  const metadata = { ...object.metadata, [map]: { ...object.metadata[map], ...changes } };
  return { ...clusters, [side]: [...rest, stored({ ...object, metadata }, object)] };
}

async function settled(clusters: MemoryClusters): Promise<MemoryClusters> {
  const { changes } = await rehearseSnapshot(snapshotOf(clusters, CONFIG), { ...commandParts(), sandbox });
  return applied(clusters, changes);
}

async function shown(clusters: MemoryClusters): Promise<string[]> {
  const { objects, changes } = await rehearseSnapshot(snapshotOf(clusters, CONFIG), {
    ...commandParts(),
    sandbox,
  });
  expect(objects.flatMap(({ error }) => error ?? [])).toEqual([]);
  return changes.flatMap((change) => formatChange(change, true, paintFor({ isTTY: false })) ?? []);
}

describe('diff', () => {
  test('is empty after its changes were applied', async () => {
    await fc.assert(
      fc.asyncProperty(virtual, others, fc.array(edit, { maxLength: 6 }), async (objects, host, edits) => {
        const before = await settled({ virtual: objects, host });
        const changed = edits.reduce(edited, before);
        expect(await shown(await settled(changed))).toEqual([]);
      }),
      { numRuns: costlyRuns(200) },
    );
  });

  test('of a kind has every change of that kind', async () => {
    await fc.assert(
      fc.asyncProperty(virtual, others, fc.array(edit, { maxLength: 6 }), async (objects, host, edits) => {
        const changed = edits.reduce(edited, await settled({ virtual: objects, host }));
        const plan = await rehearseSnapshot(snapshotOf(changed, CONFIG), { ...commandParts(), sandbox });
        for (const kind of new Set(plan.changes.map(({ resource }) => resource.kind))) {
          const isOfKind = ({ resource }: (typeof plan.changes)[number]): boolean => resource.kind === kind;
          const { changes } = differencesIn(plan, (_, resource) => resource.kind === kind);
          expect(changes.filter(isOfKind)).toEqual(plan.changes.filter(isOfKind));
        }
      }),
      { numRuns: costlyRuns(100), examples: [[REFUSED_AT_FIRST, [], [FIRST_DELETED]]] },
    );
  });

  test.each([
    { createNamespaces: false, failures: ['NotFound'], places: [] },
    { createNamespaces: true, failures: [], places: ['host Endpoints'] },
  ])(
    'of an object whose host namespace does not exist: %o',
    async ({ createNamespaces, failures, places }) => {
      const web = stored({ apiVersion: 'v1', kind: 'Endpoints', metadata: { name: 'a', namespace: 'c' } });
      const snapshot = snapshotOf({ virtual: [web], host: [] }, { ...CONFIG, createNamespaces });
      const missing = { ...snapshot, closedNamespaces: new Map([['host', undefined]]) };
      const { objects, changes } = await rehearseSnapshot(missing, { ...commandParts(), sandbox });
      expect(objects.flatMap(({ error }) => (error instanceof StatusError ? error.reason : []))).toEqual(
        failures,
      );
      expect(changes.map(({ cluster, resource }) => `${cluster} ${resource.kind}`)).toEqual(places);
    },
  );
});
