/** Objects of which a kube-apiserver warns, prefixes of generated names, and what slices become when they are stored, validated and shown. */

import type { JsonObject } from '../../src/base/json.ts';
import { EP, MERGE_PATCH, TABLE, endpoints, send } from './step.ts';
import type { Step } from './transcript.ts';

const SVC = '/api/v1/namespaces/{ns}/services';
const SLICES = '/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices';
/** Not in the canonical form of RFC 5952, but valid in Endpoints and Services. */
const IP = '2001:DB8::5';

function service(id: string, spec: JsonObject, annotations: JsonObject = {}): Step {
  const ports = [{ name: 'http', port: 80 }];
  const body = { metadata: { name: 'warned', annotations }, spec: { ports, ...spec } };
  return send.POST(`warn-service-${id}`, `${SVC}?dryRun=All`, body);
}

/** Neither headless nor allocated. */
const ADDRESS = { clusterIP: '10.0.250.250' };

const SERVICES: Step[] = [
  service('topology', { clusterIP: 'None' }, { 'service.kubernetes.io/topology-aware-hints': 'auto' }),
  service('affinity', { clusterIP: 'None', sessionAffinity: 'ClientIP' }),
  service('headless-addresses', { clusterIP: 'None', externalIPs: [IP], loadBalancerIP: IP }),
  service('external-ips', { ...ADDRESS, externalIPs: ['10.5.0.1', IP] }),
  service('external-name', { type: 'ExternalName', externalName: 'a.b', externalIPs: ['10.5.0.1'] }),
  service('unused-name', { ...ADDRESS, externalName: 'a.b' }),
  service('traffic', { ...ADDRESS, trafficDistribution: 'PreferClose' }),
  service('traffic-zone', { ...ADDRESS, trafficDistribution: 'PreferSameZone' }),
  service('ranges', {
    ...ADDRESS,
    type: 'LoadBalancer',
    allocateLoadBalancerNodePorts: false,
    loadBalancerIP: IP,
    loadBalancerSourceRanges: ['2001:DB8::/32', '10.0.0.0/8'],
  }),
];

const subsets = [{ addresses: [{ ip: IP }], notReadyAddresses: [{ ip: '::FFFE:1' }], ports: [{ port: 80 }] }];

const ENDPOINTS: Step[] = [
  send.POST('warn-endpoints', EP, endpoints('warned', { subsets })),
  send.PATCH(
    'warn-endpoints-again',
    `${EP}/warned`,
    { metadata: { labels: { a: 'b' } } },
    { headers: MERGE_PATCH },
  ),
  send.PATCH(
    'warn-endpoints-of-controller',
    `${EP}/warned`,
    { metadata: { labels: { 'endpoints.kubernetes.io/managed-by': 'endpoint-controller' } } },
    { headers: MERGE_PATCH },
  ),
  send.POST('prefix-endpoints-dot', `${EP}?dryRun=All`, {
    metadata: { name: 'prefixed', generateName: 'a.' },
  }),
  send.POST('prefix-slice-dot', `${SLICES}?dryRun=All`, {
    metadata: { name: 'prefixed', generateName: 'a.' },
    addressType: 'IPv4',
    endpoints: [],
  }),
  send.POST(
    'prefix-endpoints-dot-alone',
    EP,
    { metadata: { generateName: 'a.' } },
    { differs: 'the name is generated' },
  ),
];

function slice(name: string, more: JsonObject): JsonObject {
  return { metadata: { name }, addressType: 'IPv4', endpoints: [], ...more };
}

const KEPT = [{ addresses: ['10.1.0.1'] }];
const NAMED = [{ port: 80 }, { name: 'any' }, { name: 'x', port: 81 }];

const SLICE_STEPS: Step[] = [
  send.POST(
    'slice-fqdn',
    SLICES,
    slice('fqdn', { addressType: 'FQDN', endpoints: [{ addresses: ['a.example.com'] }] }),
  ),
  send.PATCH(
    'slice-fqdn-again',
    `${SLICES}/fqdn`,
    { metadata: { labels: { a: 'b' } } },
    { headers: MERGE_PATCH },
  ),
  send.POST('slice-empty-lists', SLICES, slice('empty', { ports: [] })),
  send.GET('slice-empty-lists-get', `${SLICES}/empty`),
  send.POST('slice-empty-dry', `${SLICES}?dryRun=All`, slice('dry', { ports: [] })),
  send.PATCH(
    'slice-empty-lists-patch',
    `${SLICES}/empty`,
    { ports: [{ port: 1 }], endpoints: KEPT },
    { headers: MERGE_PATCH },
  ),
  send.PATCH(
    'slice-empty-lists-again',
    `${SLICES}/empty`,
    { ports: [], endpoints: [] },
    { headers: MERGE_PATCH },
  ),
  send.PATCH(
    'slice-empty-same',
    `${SLICES}/empty`,
    { ports: null, endpoints: null },
    { headers: MERGE_PATCH },
  ),
  send.POST('slice-no-address', SLICES, slice('x', { endpoints: [{ addresses: [] }, {}] })),
  send.POST('slice-no-type', SLICES, { metadata: { name: 'x' }, endpoints: KEPT }),
  send.POST('slice-other-type', SLICES, slice('x', { addressType: 'Nope' })),
  send.POST(
    'slice-several',
    SLICES,
    slice('x', { ports: [{ name: 'A' }], endpoints: [{ addresses: [], hostname: 'A' }] }),
  ),
  send.POST('slice-kept', SLICES, slice('kept', { endpoints: KEPT, ports: NAMED })),
  send.PUT(
    'slice-type-same-endpoints',
    `${SLICES}/kept`,
    slice('kept', { addressType: 'IPv6', endpoints: KEPT, ports: NAMED }),
  ),
  send.PUT(
    'slice-type-other-endpoints',
    `${SLICES}/kept`,
    slice('kept', { addressType: 'IPv6', endpoints: [...KEPT, ...KEPT], ports: NAMED }),
  ),
  send.GET('slice-table', `${SLICES}/kept`, undefined, { headers: TABLE }),
  send.GET('endpoints-empty-table', `${EP}?fieldSelector=metadata.name%3Dwarned`, undefined, {
    headers: TABLE,
  }),
];

export const WARNING_STEPS: readonly Step[] = [...SERVICES, ...ENDPOINTS, ...SLICE_STEPS];
