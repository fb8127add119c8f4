/** Endpoints objects that an API server accepts and rejects; a test runs the same table on a real one. */

import { cloneJson, type JsonObject, type JsonValue } from '../../../src/base/json.ts';

export const VALID: JsonObject = {
  apiVersion: 'v1',
  kind: 'Endpoints',
  metadata: {
    name: 'web',
    namespace: 'default',
    labels: { app: 'web' },
    annotations: { 'example.com/A': 'x y' },
  },
  subsets: [
    {
      addresses: [
        { ip: '10.0.0.1', hostname: 'a', nodeName: 'node.one', targetRef: { kind: 'Pod', name: 'p' } },
        { ip: '10.0.0.2' },
      ],
      notReadyAddresses: [{ ip: 'fd00::1', unknown: [1] }],
      ports: [
        { name: 'http', port: 80, protocol: 'TCP', appProtocol: 'kubernetes.io/h2c' },
        { name: 'dns', port: 53, protocol: 'UDP' },
      ],
    },
    { addresses: [{ ip: '10.0.0.3' }], ports: [{ port: 80 }] },
  ],
};

type Path = readonly (string | number)[];

/** A copy with the value at the path replaced, or removed. */
export function changed(path: Path, value: JsonValue | undefined, base: JsonObject = VALID): JsonObject {
  const copy = cloneJson(base);
  let node: unknown = copy;
  for (const step of path.slice(0, -1)) node = (node as Record<string | number, unknown>)[step];
  const parent = node as Record<string | number, JsonValue>;
  const last = path.at(-1) ?? '';
  if (value === undefined) delete parent[last];
  else parent[last] = value;
  return copy;
}

const FIRST: Path = ['subsets', 0, 'addresses', 0];
const PORT: Path = ['subsets', 0, 'ports', 0];
const LONG = 'a'.repeat(64);

/** Each one is refused, and why; `since`: by this version of Kubernetes and newer ones. */
export const REFUSED: [Path, JsonValue | undefined, RegExp, since?: string][] = [
  [['apiVersion'], 'v2', /may not change apiVersion/],
  [['kind'], undefined, /may not change kind/],
  [['metadata', 'name'], 'x', /may not change metadata.name/],
  [['metadata', 'namespace'], 'x', /may not change metadata.namespace/],
  [['metadata', 'labels'], 'text', /metadata.labels: must be a map of strings, not "text"/],
  [['metadata', 'labels', 'app'], 5, /metadata.labels.app: must be a string, not 5/],
  [
    ['metadata', 'labels', 'app'],
    'a b',
    /: a valid label must be an empty string or consist of .* alphanumeric character, not "a b"$/,
  ],
  [['metadata', 'labels', 'app'], LONG, /: must be no more than 63 characters, not "a+/],
  [['metadata', 'labels', 'a b'], 'x', /labels.a b: name part must consist of alphanumeric characters/],
  [['metadata', 'labels', 'UP.com/x'], 'x', /prefix part a lowercase RFC 1123 subdomain must consist/],
  [['metadata', 'labels', '/x'], 'x', /prefix part must be non-empty, not "\/x"/],
  [
    ['metadata', 'labels', 'a/b/c'],
    'x',
    /a valid label key must consist of .* alphanumeric character, not "a\/b\/c"$/,
  ],
  [['metadata', 'annotations'], ['x'], /must be a map of strings, not a list/],
  [['metadata', 'annotations', 'n'], { a: 1 }, /must be a string, not an object/],
  [['metadata', 'annotations', 'a b'], 'x', /name part must consist of/],
  [['metadata', 'annotations', ''], 'x', /name part must be non-empty/],
  [['metadata', 'annotations', 'big'], 'x'.repeat(256 * 1024), /at most 262144 bytes/],
  [['subsets'], {}, /subsets: must be a list, not an object/],
  [['subsets', 1], 'x', /subsets.1: must be an object, not "x"/],
  [['subsets', 1], {}, /subsets.1: must specify `addresses` or `notReadyAddresses`/],
  [['subsets', 1, 'addresses'], [], /subsets.1: must specify `addresses`/],
  [['subsets', 0, 'addresses'], { ip: '1.1.1.1' }, /subsets.0.addresses: must be a list/],
  [[...FIRST], '10.0.0.9', /subsets.0.addresses.0: must be an object/],
  [[...FIRST, 'ip'], undefined, /subsets.0.addresses.0.ip: must be a valid IP address, not ""$/],
  [[...FIRST, 'ip'], '', /must be a valid IP address, not ""/],
  [[...FIRST, 'ip'], 5, /must be a string, not 5/],
  [[...FIRST, 'ip'], '10.0.0.01', /must not have leading 0s/, '1.36'],
  [[...FIRST, 'ip'], '127.0.0.1', /loopback/],
  [[...FIRST, 'hostname'], 'A', /a lowercase RFC 1123 label must consist of/],
  [[...FIRST, 'hostname'], 'a.b', /hostname: must not contain dots, not "a.b"/],
  [[...FIRST, 'hostname'], LONG, /must be no more than 63 characters/],
  [[...FIRST, 'hostname'], 5, /must be a string/],
  [[...FIRST, 'nodeName'], '', /a lowercase RFC 1123 subdomain must consist of/],
  [[...FIRST, 'nodeName'], 'a_b', /a lowercase RFC 1123 subdomain must consist of/],
  [[...FIRST, 'targetRef'], 'p', /targetRef: must be an object/],
  [[...FIRST, 'targetRef', 'name'], 5, /targetRef.name: must be a string/],
  [['subsets', 0, 'ports'], 'x', /ports: must be a list/],
  [[...PORT, 'port'], '80', /must be a whole number, not "80"/],
  [[...PORT, 'port'], 0, /must be between 1 and 65535, inclusive, not 0/],
  [[...PORT, 'port'], 65536, /not 65536/],
  [[...PORT, 'port'], 80.5, /not 80.5/],
  [[...PORT, 'port'], undefined, /must be between 1 and 65535, inclusive, not 0/],
  [[...PORT, 'protocol'], 'tcp', /must be one of SCTP, TCP, UDP, not "tcp"/],
  [[...PORT, 'name'], undefined, /ports.0.name: is required where there are several/],
  [[...PORT, 'name'], 'UP', /a lowercase RFC 1123 label must consist of/],
  [[...PORT, 'appProtocol'], '', /appProtocol: name part must be non-empty/],
];

export const TAKEN: [Path, JsonValue | undefined][] = [
  [['metadata', 'labels', 'app'], ''],
  [['metadata', 'labels'], null],
  [['metadata', 'annotations', 'UP.Example.com/X_y.z'], 'anything goes'],
  [['subsets'], null],
  [['subsets'], []],
  [['subsets', 0, 'addresses'], null],
  [['subsets', 0, 'notReadyAddresses'], undefined],
  [['subsets', 0, 'ports'], undefined],
  [[...FIRST, 'ip'], '2001:db8::1'],
  [[...FIRST, 'ip'], '239.1.1.1'],
  [[...FIRST, 'hostname'], ''],
  [[...FIRST, 'hostname'], null],
  [[...FIRST, 'nodeName'], undefined],
  [[...FIRST, 'targetRef'], null],
  [[...FIRST, 'extra'], { a: [1] }],
  [[...PORT, 'protocol'], 'SCTP'],
  [[...PORT, 'protocol'], ''],
  [[...PORT, 'port'], 65535],
  [['subsets', 1, 'ports', 0, 'name'], 'x'],
  [['other'], { a: 1 }],
];

export const GOOD_IPS: readonly string[] = [
  '10.0.0.1',
  '224.0.1.1',
  '8.8.8.8',
  '::2',
  '2001:db8::ff',
  'fd00::',
  'ff05::1',
  '::10.0.0.1',
  '64:ff9b::1.2.3.4',
  '2001:DB8:0::1',
  'fe8::1',
  'ff:2::1',
];

export const BAD_IPS: [ip: string, RegExp, since?: string][] = [
  ['0.0.0.0', /unspecified/],
  ['::', /unspecified/],
  ['0:0:0:0:0:0:0:0', /unspecified/],
  ['127.255.0.1', /loopback/],
  ['::1', /loopback/],
  ['0:0::0:1', /loopback/],
  ['169.254.1.1', /link-local range/],
  ['fe80::1', /link-local range/],
  ['febf::1', /link-local range/],
  ['FE80::1', /link-local range/],
  ['224.0.0.251', /multicast/],
  ['ff02::1', /multicast/],
  ['ff12::1', /multicast/],
  ['ff32::5', /multicast/],
  ['::ffff:10.0.0.1', /IPv4-mapped/, '1.36'],
  ['::ffff:a00:1', /IPv4-mapped/, '1.36'],
  ['fe80::1%eth0', /must be a valid IP address/],
  ['10.0.0', /must be a valid IP address/],
  ['010.0.0.1', /must not have leading 0s/, '1.36'],
  ['10.0.0.256', /must be a valid IP address/],
  [' 10.0.0.1', /must be a valid IP address/],
  ['example.com', /must be a valid IP address/],
];

export const VALID_SLICE: JsonObject = {
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: { name: 'web', namespace: 'default', labels: { 'kubernetes.io/service-name': 'web' } },
  addressType: 'IPv4',
  endpoints: [
    {
      addresses: ['10.0.0.1', '10.0.0.2'],
      hostname: 'a',
      nodeName: 'node.one',
      zone: 'z',
      conditions: { ready: true },
    },
    { addresses: ['10.0.0.3'], targetRef: { kind: 'Pod', name: 'p' } },
  ],
  ports: [
    { name: 'http', port: 80, protocol: 'TCP', appProtocol: 'kubernetes.io/h2c' },
    { name: '', port: 53, protocol: 'UDP' },
  ],
};

const ENDPOINT: Path = ['endpoints', 0];
const SLICE_PORT: Path = ['ports', 0];

/** Each one is refused, and why. */
export const SLICE_REFUSED: [Path, JsonValue | undefined, RegExp][] = [
  [['addressType'], 'IPv5', /addressType: must be one of FQDN, IPv4, IPv6, not "IPv5"/],
  [['addressType'], undefined, /addressType: is required/],
  [ENDPOINT, 'x', /endpoints.0: must be an object, not "x"/],
  [[...ENDPOINT, 'addresses'], undefined, /addresses: is required with at least 1 address/],
  [[...ENDPOINT, 'addresses'], [], /addresses: is required with at least 1 address/],
  [
    [...ENDPOINT, 'addresses', 0],
    'no address',
    /endpoints.0.addresses.0: must be a valid IP address, not "no address"/,
  ],
  [[...ENDPOINT, 'addresses', 0], '', /must be a valid IP address, not ""/],
  [[...ENDPOINT, 'addresses', 0], 5, /must be a string, not 5/],
  [[...ENDPOINT, 'addresses', 0], 'fd00::1', /must be an IPv4 address, not "fd00::1"/],
  [[...ENDPOINT, 'addresses', 0], '127.0.0.1', /loopback/],
  [[...ENDPOINT, 'hostname'], 'A_b', /hostname: a lowercase RFC 1123 label must consist of/],
  [[...ENDPOINT, 'hostname'], '', /hostname: a lowercase RFC 1123 label must consist of/],
  [[...ENDPOINT, 'nodeName'], 'a b', /nodeName: a lowercase RFC 1123 subdomain must consist of/],
  [[...ENDPOINT, 'zone'], 1, /zone: must be a string, not 1/],
  [[...ENDPOINT, 'conditions'], 'x', /conditions: must be an object/],
  [[...SLICE_PORT, 'port'], 'http', /port: must be a whole number of 32 bits, not "http"/],
  [[...SLICE_PORT, 'protocol'], 'ICMP', /protocol: must be one of SCTP, TCP, UDP, not "ICMP"/],
  [[...SLICE_PORT, 'name'], 'a_b', /ports.0.name: a lowercase RFC 1123 label must consist of/],
  [[...SLICE_PORT, 'name'], '', /ports.1.name: must be different from that of every other item/],
  [[...SLICE_PORT, 'port'], 2 ** 31, /port: must be a whole number of 32 bits/],
  [['addressType'], 'IPv6', /endpoints.0.addresses.0: must be an IPv6 address, not "10.0.0.1"/],
  [[...ENDPOINT, 'addresses'], Array(101).fill('10.0.0.1'), /addresses: must have at most 100 items/],
  [[...ENDPOINT, 'conditions', 'ready'], 'yes', /conditions.ready: must be true or false, not "yes"/],
  [[...ENDPOINT, 'hints'], { forZones: [{ name: 'a b' }] }, /forZones.0.name: a valid label must/],
  [
    [...ENDPOINT, 'hints'],
    { forZones: [{ name: 'a' }, { name: 'a' }] },
    /forZones.1.name: must be different from that of every other item/,
  ],
  [[...SLICE_PORT, 'appProtocol'], 'a b', /appProtocol: name part must consist of/],
];

export const SLICE_TAKEN: [Path, JsonValue | undefined][] = [
  [[...ENDPOINT, 'addresses', 0], '10.9.9.9'],
  [[...ENDPOINT, 'zone'], undefined],
  [[...ENDPOINT, 'hostname'], null],
  [[...SLICE_PORT, 'protocol'], undefined],
  [[...SLICE_PORT, 'port'], undefined],
  [['ports', 1, 'name'], 'dns'],
  [['endpoints'], []],
  [[...SLICE_PORT, 'port'], 70_000],
  [[...ENDPOINT, 'hints'], { forZones: [{ name: 'a' }] }],
];

function always(address: string): readonly [address: string] {
  return [address];
}

/** By address type. */
export const SLICE_ADDRESSES: readonly (readonly [
  type: string,
  good: readonly string[],
  bad: readonly (readonly [address: string, since?: string])[],
])[] = [
  [
    'IPv4',
    ['10.0.0.1'],
    [['fd00::1'], ['a.example.com'], ['127.0.0.1'], ['010.0.0.1', '1.36'], ['::ffff:10.0.0.1', '1.36']],
  ],
  [
    'IPv6',
    ['fd00::1', '2001:db8::5', '::a00:1'],
    [
      ...['10.0.0.1', '010.0.0.1', '::1', 'fe80::1%eth0', 'a.example.com', '::ffff:10.0.0.1'].map(always),
      ['FD00::1', '1.33'],
      ['::10.0.0.1', '1.33'],
    ],
  ],
  [
    'FQDN',
    ['a.example.com', 'a.example.com.', '1.example'],
    ['a', 'A.example.com', 'a..b', '*.example.com', 'a.example.com..'].map(always),
  ],
];

export const GOOD_RANGES: readonly string[] = [
  '10.0.0.0/8',
  '0.0.0.0/0',
  '10.1.2.3/32',
  '10.1.2.0/24',
  'fd00::/64',
  '::/0',
  '2001:db8::1/128',
  '2001:DB8:0::/33',
];

export const BAD_RANGES: [range: string, RegExp, since?: string][] = [
  ['10.0.0.1/8', /bits set beyond the prefix length/, '1.36'],
  ['10.1.2.128/24', /bits set beyond the prefix length/, '1.36'],
  ['fd00::1/64', /bits set beyond the prefix length/, '1.36'],
  ['10.0.0.0/33', /valid CIDR value/],
  ['fd00::/129', /valid CIDR value/],
  ['10.0.0.0', /valid CIDR value/],
  ['10.0.0/8', /valid CIDR value/],
  ['10.0.0.0/', /valid CIDR value/],
  ['10.0.0.0/-1', /valid CIDR value/],
  ['10.0.0.0/8/8', /valid CIDR value/],
  ['10.0.0.0/08', /leading 0s/, '1.36'],
  ['::ffff:10.0.0.0/104', /IPv4-mapped/, '1.36'],
  ['fe80::%eth0/64', /valid CIDR value/],
];

export const VALID_SERVICE: JsonObject = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'web', namespace: 'default' },
  spec: {
    type: 'LoadBalancer',
    allocateLoadBalancerNodePorts: false,
    ports: [
      { name: 'http', port: 80, protocol: 'TCP', targetPort: 'http', appProtocol: 'kubernetes.io/h2c' },
      { name: 'dns', port: 53, protocol: 'UDP' },
    ],
    loadBalancerSourceRanges: [' 10.0.0.0/8 '],
    externalIPs: ['1.2.3.4'],
    sessionAffinity: 'ClientIP',
    sessionAffinityConfig: { clientIP: { timeoutSeconds: 60 } },
  },
};

/** Names of a Service that a kube-apiserver takes; `since`: as below. */
export const SERVICE_NAMES: [name: string, since?: string][] = [['db-1'], ['1-db', '1.36'], ['1', '1.36']];

const SERVICE_PORT: Path = ['spec', 'ports', 0];

/** What a kube-apiserver rejects in a Service. */
export const SERVICE_REFUSED: [Path, JsonValue | undefined][] = [
  [['spec', 'type'], 'Other'],
  [['spec', 'type'], 'ClusterIP'],
  [['spec', 'type'], 'NodePort'],
  [['spec', 'clusterIP'], 'None'],
  [['spec', 'selector'], { 'a b': 'x' }],
  [['spec', 'selector'], { a: 'x y' }],
  [['spec', 'ports'], []],
  [[...SERVICE_PORT, 'name'], ''],
  [[...SERVICE_PORT, 'name'], 'dns'],
  [[...SERVICE_PORT, 'name'], 'A'],
  [[...SERVICE_PORT, 'port'], 0],
  [[...SERVICE_PORT, 'protocol'], 'ICMP'],
  [[...SERVICE_PORT, 'targetPort'], 'a_b'],
  [[...SERVICE_PORT, 'targetPort'], '80'],
  [[...SERVICE_PORT, 'targetPort'], 'a--b'],
  [[...SERVICE_PORT, 'targetPort'], '-a'],
  [[...SERVICE_PORT, 'targetPort'], 'a-name-of-16-cha'],
  [[...SERVICE_PORT, 'targetPort'], 70_000],
  [[...SERVICE_PORT, 'appProtocol'], 'a b'],
  [['spec', 'ports', 1], { name: 'other', port: 80, protocol: 'TCP' }],
  [['spec', 'sessionAffinity'], 'Maybe'],
  [['spec', 'sessionAffinityConfig'], { clientIP: { timeoutSeconds: 0 } }],
  [['spec', 'sessionAffinityConfig'], { clientIP: { timeoutSeconds: 86_401 } }],
  [['spec', 'externalIPs'], ['127.0.0.1']],
  [['spec', 'externalIPs'], ['x']],
  [['spec', 'loadBalancerClass'], 'a b'],
  [['spec', 'externalTrafficPolicy'], 'Other'],
  [['spec', 'internalTrafficPolicy'], 'Other'],
  [['spec', 'trafficDistribution'], 'Other'],
  [['spec', 'ipFamilyPolicy'], 'Other'],
  [['spec'], { type: 'ExternalName' }],
  [['spec'], { type: 'ExternalName', externalName: 'A b' }],
  [['spec'], { type: 'ExternalName', externalName: 'a.example', ipFamilyPolicy: 'SingleStack' }],
  [['spec'], { ports: [{ port: 80 }], externalTrafficPolicy: 'Local' }],
  [['spec'], { ports: [{ port: 80, nodePort: 30_080 }] }],
  [['spec'], { ports: [{ port: 80 }], loadBalancerClass: 'example.com/lb' }],
  [['spec'], { ports: [{ port: 80 }], allocateLoadBalancerNodePorts: false }],
  [['spec'], { ports: [{ port: 80 }], healthCheckNodePort: 30_000 }],
];

/** `since`: by this version of Kubernetes and newer ones. */
export const SERVICE_TAKEN: [Path, JsonValue | undefined, since?: string][] = [
  // Older ones keep the kubelet's port from a load balancer.
  [['spec', 'ports', 0, 'port'], 10_250, '1.33'],
  [['spec', 'trafficDistribution'], 'PreferClose'],
  [['spec', 'trafficDistribution'], 'PreferSameZone', '1.34'],
  [['spec', 'trafficDistribution'], 'PreferSameNode', '1.34'],
  [['spec', 'ports', 0, 'targetPort'], ''],
  [['spec', 'ports', 0, 'targetPort'], 0],
  [['spec', 'ports', 0, 'protocol'], ''],
  [['spec', 'sessionAffinityConfig'], undefined],
  [['spec', 'loadBalancerIP'], 'any text'],
  [['spec', 'externalName'], 'No Name'],
  [['spec', 'loadBalancerSourceRanges'], []],
  [['spec'], { type: 'ExternalName', externalName: 'a.example.', internalTrafficPolicy: 'Local' }],
  [['spec'], { clusterIP: 'None' }],
];
