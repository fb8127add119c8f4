/** Objects with at most one mistake each, generated from valid ones: at every depth an unknown member, a missing one, a wrong type, a wrong value. */

import { cloneJson, isJsonObject, textAt, type JsonObject, type JsonValue } from '../../../src/base/json.ts';

export interface CorpusObject {
  /** `Endpoints web: subsets[0].ports[0].port = "8080"` */
  readonly id: string;
  /** Below the server: where it is created. */
  readonly path: string;
  readonly object: JsonObject;
}

type Path = readonly (string | number)[];

const METADATA = {
  name: 'web',
  namespace: 'default',
  labels: { app: 'web', 'example.com/tier': '1.10' },
  annotations: { 'example.com/owner': 'a b' },
  finalizers: ['example.com/hold'],
  ownerReferences: [{ apiVersion: 'v1', kind: 'Secret', name: 'owner', uid: 'u1', controller: true }],
};
const TARGET = {
  kind: 'Pod',
  namespace: 'default',
  name: 'web-0',
  uid: 'u',
  apiVersion: 'v1',
  fieldPath: 'f',
};

type Base = readonly [path: string, object: JsonObject];

const VALID: readonly Base[] = [
  [
    'api/v1/namespaces/default/endpoints',
    {
      apiVersion: 'v1',
      kind: 'Endpoints',
      metadata: METADATA,
      subsets: [
        {
          addresses: [
            { ip: '10.0.0.1', hostname: 'a', nodeName: 'node-1', targetRef: TARGET },
            { ip: 'fd00::1' },
          ],
          notReadyAddresses: [{ ip: '10.0.0.3' }],
          ports: [
            { name: 'http', port: 80, protocol: 'TCP', appProtocol: 'kubernetes.io/h2c' },
            { name: 'dns', port: 53, protocol: 'UDP' },
          ],
        },
        { addresses: [{ ip: '10.0.0.4' }], ports: [{ port: 81 }] },
      ],
    },
  ],
  ...['IPv4', 'IPv6', 'FQDN'].map((addressType): Base => [
    'apis/discovery.k8s.io/v1/namespaces/default/endpointslices',
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: METADATA,
      addressType,
      endpoints: [
        {
          addresses: [{ IPv4: '10.0.0.1', IPv6: 'fd00::1', FQDN: 'db.example.com' }[addressType] ?? ''],
          conditions: { ready: true, serving: true, terminating: false },
          hostname: 'a',
          targetRef: TARGET,
          nodeName: 'node-1',
          zone: 'z',
          hints: { forZones: [{ name: 'z' }], forNodes: [{ name: 'node-1' }] },
          deprecatedTopology: { a: 'b' },
        },
      ],
      ports: [
        { name: 'http', port: 80, protocol: 'TCP', appProtocol: 'http' },
        { name: '', port: 53, protocol: 'UDP' },
      ],
    },
  ]),
  ...[
    {
      type: 'LoadBalancer',
      selector: { app: 'web' },
      ports: [
        { name: 'http', port: 80, protocol: 'TCP', targetPort: 'web', appProtocol: 'http', nodePort: 30_080 },
        { name: 'dns', port: 53, protocol: 'UDP', targetPort: 5353 },
      ],
      externalIPs: ['1.2.3.4'],
      sessionAffinity: 'ClientIP',
      sessionAffinityConfig: { clientIP: { timeoutSeconds: 60 } },
      loadBalancerIP: '1.2.3.5',
      loadBalancerSourceRanges: ['10.0.0.0/8'],
      loadBalancerClass: 'example.com/lb',
      allocateLoadBalancerNodePorts: true,
      externalTrafficPolicy: 'Cluster',
      internalTrafficPolicy: 'Cluster',
      publishNotReadyAddresses: false,
      ipFamilies: ['IPv4'],
      ipFamilyPolicy: 'SingleStack',
      trafficDistribution: 'PreferClose',
    },
    { type: 'ExternalName', externalName: 'db.example.com', ports: [{ port: 80 }] },
    { clusterIP: 'None', clusterIPs: ['None'], ports: [{ port: 80 }] },
    { clusterIP: '10.0.9.9', ipFamilies: ['IPv4'], ports: [{ port: 80 }] },
    { type: 'NodePort', ports: [{ port: 80, nodePort: 30_082 }], externalTrafficPolicy: 'Cluster' },
  ].map((spec): Base => [
    'api/v1/namespaces/default/services',
    { apiVersion: 'v1', kind: 'Service', metadata: METADATA, spec },
  ]),
  [
    'api/v1/namespaces/default/services',
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: METADATA,
      spec: { ports: [{ port: 80 }] },
      status: {
        loadBalancer: {
          ingress: [{ ip: '1.2.3.4', hostname: 'a', ipMode: 'VIP', ports: [{ port: 1, protocol: 'TCP' }] }],
        },
        conditions: [
          {
            type: 'A',
            status: 'True',
            observedGeneration: 1,
            lastTransitionTime: '2026-01-01T00:00:00Z',
            reason: 'R',
            message: 'm',
          },
        ],
      },
    },
  ],
  [
    'api/v1/namespaces/default/secrets',
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: METADATA,
      type: 'Opaque',
      immutable: false,
      data: { a: 'eA==' },
      stringData: { b: 'x' },
    },
  ],
  [
    'api/v1/namespaces/default/configmaps',
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: METADATA,
      immutable: false,
      data: { a: 'x' },
      binaryData: { b: 'eA==' },
    },
  ],
  [
    'api/v1/namespaces',
    {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: 'shop', labels: { team: 'a' } },
      spec: { finalizers: ['kubernetes'] },
    },
  ],
];

/** The valid objects themselves, then each with one mutation. */
export function corpus(): readonly CorpusObject[] {
  return VALID.flatMap(([path, object], number) => {
    const of = `${textAt(object, 'kind')} ${number}`;
    return [
      { id: of, path, object },
      ...[...mutations(object, [])].map(({ at, value, what }) => ({
        id: `${of}: ${at.join('.')} ${what}`,
        path,
        object: withValue(object, at, value),
      })),
    ];
  });
}

interface Mutation {
  readonly at: Path;
  /** Undefined: removed. */
  readonly value: JsonValue | undefined;
  readonly what: string;
}

/** Maps whose keys are not fields. */
const MAPS = ['labels', 'annotations', 'selector', 'data', 'stringData', 'binaryData', 'deprecatedTopology'];

function* mutations(value: JsonValue, at: Path): Generator<Mutation> {
  if (at.length > 0 && !isIdentity(at)) yield* ofValue(value, at);
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) yield* mutations(item, [...at, index]);
    return;
  }
  if (!isJsonObject(value)) return;
  const isMap = MAPS.includes(String(at.at(-1)));
  if (!isMap) yield { at: [...at, 'bogus'], value: 'x', what: 'unknown' };
  else yield* ['a b', 'UP/x', 'a/b/c', '', 'x'.repeat(64)].map((key) => set([...at, key], 'x'));
  for (const [key, member] of Object.entries(value)) yield* mutations(member, [...at, key]);
}

/** What names the object and its endpoint is the same in every object. */
function isIdentity(at: Path): boolean {
  return ['apiVersion', 'kind', 'metadata', 'metadata.name', 'metadata.namespace'].includes(at.join('.'));
}

const OTHER_TYPES: readonly JsonValue[] = ['8080', 'text', 5, 1.1, true, [], ['x'], {}, { x: 1 }];

function* ofValue(value: JsonValue, at: Path): Generator<Mutation> {
  yield { at, value: undefined, what: 'missing' };
  yield set(at, null);
  for (const other of OTHER_TYPES) if (typeOf(other) !== typeOf(value)) yield set(at, other);
  for (const other of otherValues(value)) yield set(at, other);
}

function typeOf(value: JsonValue): string {
  return Array.isArray(value) ? 'list' : typeof value;
}

function otherValues(value: JsonValue): readonly JsonValue[] {
  if (typeof value === 'string')
    return [
      '',
      'A b',
      'a_b',
      'a.example.com',
      '10.0.0.01',
      '127.0.0.1',
      'fd00::2',
      '::ffff:10.0.0.1',
      'x'.repeat(64),
    ];
  if (typeof value === 'number') return [-1, 0, 65_535, 65_536, 2 ** 31, 80.5];
  if (typeof value === 'boolean') return [!value];
  if (Array.isArray(value)) return [[], [null], ...value.map((item) => [...value, item])];
  return [{}];
}

function set(at: Path, value: JsonValue): Mutation {
  const shown = JSON.stringify(value);
  return { at, value, what: `= ${shown.length > 40 ? `${shown.slice(0, 40)}…` : shown}` };
}

function withValue(object: JsonObject, at: Path, value: JsonValue | undefined): JsonObject {
  const copy = cloneJson(object);
  let node = copy as Record<string | number, JsonValue>;
  for (const step of at.slice(0, -1)) node = node[step] as Record<string | number, JsonValue>;
  const last = at.at(-1) ?? '';
  if (value !== undefined) node[last] = value;
  else if (Array.isArray(node)) node.splice(Number(last), 1);
  else delete node[last];
  return copy;
}

/** One line for each valid object: `Endpoints 0 .x.`, where `x` is an object that is refused. */
export function verdicts(areRefused: readonly boolean[]): string {
  const lines = new Map<string, string>();
  for (const [index, { id }] of corpus().entries()) {
    const of = id.slice(0, id.includes(':') ? id.indexOf(':') : id.length);
    lines.set(of, (lines.get(of) ?? '') + (areRefused[index] === true ? 'x' : '.'));
  }
  return [...lines].map(([of, marks]) => `${of} ${marks}\n`).join('');
}
