/** Unusual writes: invalid resourceVersions, YAML as Kubernetes parses it, removed field managers, patches with duplicate fields. */

import type { JsonObject, JsonValue } from '../../src/base/json.ts';
import { APPLY, CM, JSON_PATCH, MERGE_PATCH, STRATEGIC, configMap, send } from './step.ts';
import type { Step } from './transcript.ts';

const YAML = { 'content-type': 'application/yaml' };
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/{ns}/leases';
const SERVICES = '/api/v1/namespaces/{ns}/services';
const SLICES = '/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices';
const slice = (more: JsonObject): JsonObject => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: { name: 'applied' },
  addressType: 'IPv4',
  ...more,
});
const GENERATED = 'the message contains the generated name';
const PRINTED = 'we do not print the object';
const OWNER = { apiVersion: 'v1', kind: 'Event', name: 'e', uid: 'u' };

/** With a name, so that the response contains no generated one. */
const withPrefix = (id: string, generateName: string): Step =>
  send.POST(`create-prefix-${id}`, `${CM}?dryRun=All`, { metadata: { name: 'prefixed', generateName } });

const PREFIXES: Step[] = [
  withPrefix('dash', 'a-'),
  withPrefix('dashes', 'a--'),
  withPrefix('dash-only', '-'),
  withPrefix('dash-first', '-a'),
  withPrefix('dot', 'a.'),
  withPrefix('dot-dash', 'a.-'),
  withPrefix('dots', 'a..b'),
  withPrefix('upper-case', 'A'),
  withPrefix('upper-case-dash', 'A-'),
  withPrefix('longest', `${'a'.repeat(253)}-`),
  withPrefix('too-long', 'a'.repeat(254)),
  send.POST('create-generated-upper-case', CM, { metadata: { generateName: 'A-' } }, { differs: GENERATED }),
];

const CREATES: Step[] = [
  send.POST(
    'create-version-zero',
    CM,
    configMap('write', { metadata: { name: 'write', resourceVersion: '0' } }),
  ),
  send.POST('create-kind-number', CM, { kind: 1, metadata: { name: 'x' } }, { differs: PRINTED }),
  send.POST('create-owner-event', CM, { metadata: { name: 'x', ownerReferences: [OWNER] } }),
  send.POST('create-same-key', CM, configMap('x', { data: { a: 'b' }, binaryData: { a: 'YQ==' } })),
  send.POST('create-yaml-merge', CM, 'metadata: {name: merged}\ndata: {a: "x", <<: {b: "y"}}\n', {
    headers: YAML,
  }),
  send.POST('create-yaml-yes', CM, 'metadata: {name: yes-it-is}\nimmutable: yes\n', { headers: YAML }),
  send.POST('create-yaml-no-text', CM, 'metadata: {name: x}\ndata: {a: no}\n', { headers: YAML }),
  send.POST(
    'create-yaml-date',
    CM,
    'metadata: {name: dated, annotations: {a: 2001-01-01, b: 1:20, c: "010"}}\n',
    { headers: YAML },
  ),
  send.POST('create-yaml-empty', CM, '', { headers: YAML }),
  send.POST('create-yaml-text', CM, 'hello', { headers: YAML, differs: PRINTED }),
  send.PUT(
    'put-lease-gone',
    `${LEASES}/gone`,
    {
      metadata: { name: 'gone', uid: '11111111-1111-4111-8111-111111111111' },
      spec: {},
    },
    { differs: 'we do not print storage keys' },
  ),
];

const UPDATES: Step[] = [
  send.PUT('put-version-zero', `${CM}/write`, {
    metadata: { name: 'write', resourceVersion: '0', labels: { a: 'b' } },
  }),
  send.PUT('put-managers-empty', `${CM}/write`, {
    metadata: { name: 'write', managedFields: [], labels: { a: 'b' } },
  }),
  send.PUT('put-tracked-again', `${CM}/write?fieldManager=m`, {
    metadata: { name: 'write', labels: { a: 'c' } },
  }),
  send.PATCH('apply-tracks', `${CM}/write?fieldManager=m`, configMap('write', { data: { k: 'v', l: 'w' } }), {
    headers: APPLY,
  }),
];

const patch = (
  id: string,
  headers: Readonly<Record<string, string>>,
  body: JsonValue,
  differs?: string,
): Step => send.PATCH(id, `${CM}/write`, body, { headers, ...(differs === undefined ? {} : { differs }) });

const PATCHES: Step[] = [
  patch('merge-managers-unknown', MERGE_PATCH, {
    metadata: {
      managedFields: [
        { manager: 'm', operation: 'Update', apiVersion: 'v1', fieldsType: 'FieldsV2', fieldsV1: {} },
      ],
    },
  }),
  patch('merge-twice', MERGE_PATCH, '{"data":{"a":"b"},"data":{"c":"d"}}'),
  send.PATCH('merge-twice-strict', `${CM}/write?fieldValidation=Strict`, '{"data":{"a":"b","a":"c"}}', {
    headers: MERGE_PATCH,
    differs: PRINTED,
  }),
  patch('merge-kind-gone', MERGE_PATCH, { kind: null, data: { e: 'f' } }),
  patch('merge-version-zero', MERGE_PATCH, { metadata: { resourceVersion: '0', labels: { z: 'y' } } }),
  patch('merge-other-namespace', MERGE_PATCH, { metadata: { namespace: 'other' } }),
  patch('json-twice', JSON_PATCH, '[{"op":"add","path":"/data/t","value":"x","value":"y","extra":1}]'),
  patch('json-kind-gone', JSON_PATCH, [{ op: 'remove', path: '/kind' }]),
  patch('json-managers-empty', JSON_PATCH, [{ op: 'replace', path: '/metadata/managedFields', value: [] }]),
  patch('strategic-list-text', STRATEGIC, { metadata: { ownerReferences: 'x' } }, PRINTED),
  send.PATCH('merge-malformed-missing', `${CM}/nope`, '{', {
    headers: MERGE_PATCH,
    differs: 'a missing object is reported first, as before 1.37',
    ourStatus: 404,
  }),
];

const APPLIES: Step[] = [
  send.PATCH(
    'apply-nameless',
    `${CM}/write?fieldManager=n`,
    { apiVersion: 'v1', kind: 'ConfigMap', data: { n: '1' } },
    { headers: APPLY },
  ),
  send.PATCH(
    'apply-managers-null',
    `${CM}/write?fieldManager=n`,
    configMap('write', { metadata: { name: 'write', managedFields: null }, data: { n: '2' } }),
    { headers: APPLY },
  ),
  ...[
    [{ port: 80, name: 'a' }],
    [{ port: 80, name: 'a', protocol: 'TCP' }],
    [],
    [{ port: 80, name: 'b' }],
  ].map((ports, index) =>
    send.PATCH(
      `apply-ports-${index}`,
      `${SERVICES}/applied?fieldManager=m${Math.min(index, 1)}`,
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 'applied' },
        spec: { clusterIP: 'None', ports },
      },
      { headers: APPLY },
    ),
  ),
  send.PUT('service-put-bare', `${SERVICES}/applied`, {
    metadata: { name: 'applied' },
    spec: { ports: [{ port: 82 }] },
  }),
  ...['a.b/d', 'a.b/c,a.b/d', 'x.y/z,a.b/d'].map((names, index) =>
    send.PATCH(
      `apply-finalizers-${index}`,
      `${CM}/write?fieldManager=f${index}`,
      configMap('write', { metadata: { name: 'write', finalizers: names.split(',') } }),
      { headers: APPLY },
    ),
  ),
  patch('finalizers-gone', MERGE_PATCH, { metadata: { finalizers: null } }),
  send.POST('slice-made', SLICES, slice({ endpoints: [{ addresses: ['10.0.0.1'] }] })),
  ...[{ labels: { a: 'b' } }, { annotations: { a: 'b' } }].map((metadata, index) =>
    send.PATCH(`slice-metadata-${index}`, `${SLICES}/applied`, { metadata }, { headers: MERGE_PATCH }),
  ),
  send.PATCH(
    'slice-same-endpoints',
    `${SLICES}/applied?fieldManager=m&force=true`,
    slice({ endpoints: [{ addresses: ['10.0.0.1'] }] }),
    { headers: APPLY },
  ),
  send.DELETE('slice-cleared', `${SLICES}/applied`),
  send.DELETE('applied-cleared', `${SERVICES}/applied`, undefined, {
    differs: 'a kube-apiserver shows the version of the deletion',
  }),
  send.DELETE('write-cleared', CM),
];

export const WRITE_STEPS: readonly Step[] = [...PREFIXES, ...CREATES, ...UPDATES, ...PATCHES, ...APPLIES];
