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

/** Each one is refused, and why. */
export const REFUSED: [Path, JsonValue | undefined, RegExp][] = [
  [['apiVersion'], 'v2', /may not change apiVersion/],
  [['kind'], undefined, /may not change kind/],
  [['metadata', 'name'], 'x', /may not change metadata.name/],
  [['metadata', 'namespace'], 'x', /may not change metadata.namespace/],
  [['metadata', 'labels'], 'text', /metadata.labels: must be a map of strings, not "text"/],
  [['metadata', 'labels', 'app'], 5, /metadata.labels.app: must be a string, not 5/],
  [['metadata', 'labels', 'app'], 'a b', /must be made of letters/],
  [['metadata', 'labels', 'app'], LONG, /at most 63/],
  [['metadata', 'labels', 'a b'], 'x', /its key must be made of/],
  [['metadata', 'labels', 'UP.com/x'], 'x', /its key must have a DNS name/],
  [['metadata', 'labels', '/x'], 'x', /its key must have a DNS name/],
  [['metadata', 'labels', 'a/b/c'], 'x', /its key must be NAME or PREFIX/],
  [['metadata', 'annotations'], ['x'], /must be a map of strings, not a list/],
  [['metadata', 'annotations', 'n'], { a: 1 }, /must be a string, not an object/],
  [['metadata', 'annotations', 'a b'], 'x', /its key must/],
  [['metadata', 'annotations', ''], 'x', /its key must/],
  [['metadata', 'annotations', 'big'], 'x'.repeat(256 * 1024), /at most 262144 bytes/],
  [['metadata', 'finalizers'], 'x', /must be a list/],
  [['metadata', 'finalizers'], ['a b'], /finalizers.0: must be made of/],
  [
    ['metadata', 'ownerReferences'],
    [{ apiVersion: 'v1', kind: 'Pod', name: 'p' }],
    /ownerReferences.0.uid: must not be empty/,
  ],
  [['subsets'], {}, /subsets: must be a list, not an object/],
  [['subsets', 1], 'x', /subsets.1: must be an object, not "x"/],
  [['subsets', 1], {}, /subsets.1: must have addresses or notReadyAddresses/],
  [['subsets', 1, 'addresses'], [], /subsets.1: must have addresses/],
  [['subsets', 0, 'addresses'], { ip: '1.1.1.1' }, /subsets.0.addresses: must be a list/],
  [[...FIRST], '10.0.0.9', /subsets.0.addresses.0: must be an object/],
  [[...FIRST, 'ip'], undefined, /subsets.0.addresses.0.ip: is required/],
  [[...FIRST, 'ip'], '', /must be an IP address, not ""/],
  [[...FIRST, 'ip'], 5, /must be a string, not 5/],
  [[...FIRST, 'ip'], '10.0.0.01', /must be an IP address/],
  [[...FIRST, 'ip'], '127.0.0.1', /loopback/],
  [[...FIRST, 'hostname'], 'A', /must be a DNS label/],
  [[...FIRST, 'hostname'], 'a.b', /must be a DNS label/],
  [[...FIRST, 'hostname'], LONG, /at most 63/],
  [[...FIRST, 'hostname'], 5, /must be a string/],
  [[...FIRST, 'nodeName'], '', /must be a DNS name/],
  [[...FIRST, 'nodeName'], 'a_b', /must be a DNS name/],
  [[...FIRST, 'targetRef'], 'p', /targetRef: must be an object/],
  [[...FIRST, 'targetRef', 'name'], 5, /targetRef.name: must be a string/],
  [['subsets', 0, 'ports'], 'x', /ports: must be a list/],
  [[...PORT, 'port'], '80', /must be a whole number from 1 to 65535, not "80"/],
  [[...PORT, 'port'], 0, /not 0/],
  [[...PORT, 'port'], 65536, /not 65536/],
  [[...PORT, 'port'], 80.5, /not 80.5/],
  [[...PORT, 'port'], undefined, /not nothing/],
  [[...PORT, 'protocol'], 'tcp', /must be TCP, UDP or SCTP, not "tcp"/],
  [[...PORT, 'name'], undefined, /ports.0.name: is required where there are several/],
  [[...PORT, 'name'], 'UP', /must be a DNS label/],
  [[...PORT, 'appProtocol'], '', /must be made of/],
];

export const TAKEN: [Path, JsonValue | undefined][] = [
  [['metadata', 'labels', 'app'], ''],
  [['metadata', 'labels'], null],
  [['metadata', 'annotations', 'UP.Example.com/X_y.z'], 'anything goes'],
  [['metadata', 'finalizers'], ['example.com/x']],
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

export const BAD_IPS: [string, RegExp][] = [
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
  ['::ffff:10.0.0.1', /IPv4-mapped/],
  ['::ffff:a00:1', /IPv4-mapped/],
  ['fe80::1%eth0', /must be an IP address/],
  ['10.0.0', /must be an IP address/],
  ['010.0.0.1', /must be an IP address/],
  ['10.0.0.256', /must be an IP address/],
  [' 10.0.0.1', /must be an IP address/],
  ['example.com', /must be an IP address/],
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
  [['addressType'], 'IPv5', /addressType: must be one of IPv4, IPv6, FQDN, not "IPv5"/],
  [['addressType'], undefined, /addressType: must be one of IPv4, IPv6, FQDN, not nothing/],
  [ENDPOINT, 'x', /endpoints.0: must be an object, not "x"/],
  [[...ENDPOINT, 'addresses'], undefined, /must be a list of 1 to 100 addresses, not nothing/],
  [[...ENDPOINT, 'addresses'], [], /must be a list of 1 to 100 addresses/],
  [
    [...ENDPOINT, 'addresses', 0],
    'no address',
    /endpoints.0.addresses.0: must be an IPv4 address, not "no address"/,
  ],
  [[...ENDPOINT, 'addresses', 0], '', /must be an IPv4 address, not ""/],
  [[...ENDPOINT, 'addresses', 0], 5, /must be a string, not 5/],
  [[...ENDPOINT, 'addresses', 0], 'fd00::1', /must be an IPv4 address, not "fd00::1"/],
  [[...ENDPOINT, 'addresses', 0], '127.0.0.1', /loopback/],
  [[...ENDPOINT, 'hostname'], 'A_b', /hostname: must be a DNS label/],
  [[...ENDPOINT, 'hostname'], '', /hostname: must be a DNS label/],
  [[...ENDPOINT, 'nodeName'], 'a b', /nodeName: must be a DNS name/],
  [[...ENDPOINT, 'zone'], 1, /zone: must be a string, not 1/],
  [[...ENDPOINT, 'conditions'], 'x', /conditions: must be an object/],
  [[...SLICE_PORT, 'port'], 'http', /port: must be a number from 1 to 65535, not "http"/],
  [[...SLICE_PORT, 'protocol'], 'ICMP', /protocol: must be one of TCP, UDP, SCTP/],
  [[...SLICE_PORT, 'name'], 'a_b', /ports.0.name: must be a DNS label/],
  [[...SLICE_PORT, 'name'], '', /ports.1.name: must be different for each port, "" is repeated/],
  [[...SLICE_PORT, 'appProtocol'], 'a b', /appProtocol: must be/],
];

export const SLICE_TAKEN: [Path, JsonValue | undefined][] = [
  [[...ENDPOINT, 'addresses', 0], '10.9.9.9'],
  [[...ENDPOINT, 'zone'], undefined],
  [[...ENDPOINT, 'hostname'], null],
  [[...SLICE_PORT, 'protocol'], undefined],
  [[...SLICE_PORT, 'port'], undefined],
  [['ports', 1, 'name'], 'dns'],
  [['endpoints'], []],
];

/** By address type. */
export const SLICE_ADDRESSES: readonly (readonly [
  type: string,
  good: readonly string[],
  bad: readonly string[],
])[] = [
  ['IPv4', ['10.0.0.1'], ['fd00::1', 'a.example.com']],
  [
    'IPv6',
    ['fd00::1', '2001:db8::5', '::a00:1'],
    ['10.0.0.1', '::1', 'fe80::1%eth0', 'a.example.com', '::ffff:10.0.0.1', 'FD00::1', '::10.0.0.1'],
  ],
  [
    'FQDN',
    ['a.example.com', 'a.example.com.', '1.example'],
    ['a', 'A.example.com', 'a..b', '*.example.com', 'a.example.com..'],
  ],
];
