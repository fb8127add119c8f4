/** Endpoints created, read and updated: behaviour that all kinds share. */

import { EP, PARTIAL, SUBSETS, TABLE, endpoints, send } from './step.ts';
import type { Step } from './transcript.ts';

const CREATE: Step[] = [
  send.POST('namespace', '/api/v1/namespaces', { metadata: { name: '{ns}' } }),
  send.POST('create', EP, endpoints('a', { subsets: SUBSETS })),
  send.POST('create-empty', EP, endpoints('empty', { subsets: [] })),
  send.POST('create-null-subsets', EP, endpoints('nulls', { subsets: null })),
  send.POST('create-exists', EP, endpoints('a')),
  send.POST('create-no-name', EP, { metadata: {} }),
  send.POST('create-bad-name', EP, endpoints('A_b')),
  send.POST('create-slash-name', EP, endpoints('a/b')),
  send.POST('create-other-namespace', EP, { metadata: { name: 'x', namespace: 'other' } }),
  send.POST('create-missing-namespace', '/api/v1/namespaces/{ns}-no/endpoints', endpoints('x')),
  send.POST('create-with-version', EP, { metadata: { name: 'x', resourceVersion: '5' } }),
  send.POST(
    'create-unknown-field',
    `${EP}?dryRun=All`,
    endpoints('x', { bogus: 1, subsets: [{ addresses: [{ ip: '10.0.0.1', q: 1 }] }] }),
  ),
  send.POST('create-unknown-strict', `${EP}?fieldValidation=Strict`, endpoints('x', { bogus: 1 })),
  send.POST(
    'create-unknown-ignored',
    `${EP}?dryRun=All&fieldValidation=Ignore`,
    endpoints('x', { bogus: 1 }),
  ),
  send.POST('create-bad-validation', `${EP}?fieldValidation=Nope`, endpoints('x')),
  send.POST(
    'create-duplicate-field',
    `${EP}?fieldValidation=Strict`,
    '{"metadata":{"name":"x"},"subsets":[],"subsets":[]}',
  ),
  send.POST('create-wrong-type', EP, endpoints('x', { subsets: 'no' })),
  send.POST('create-wrong-inner-type', EP, endpoints('x', { subsets: [{ ports: [{ port: 'http' }] }] })),
  send.POST('create-float-port', EP, endpoints('x', { subsets: [{ ports: [{ port: 1.5 }] }] })),
  send.POST('create-number-label', EP, { metadata: { name: 'x', labels: { a: 1 } } }),
  send.POST(
    'create-invalid',
    EP,
    endpoints('x', {
      subsets: [
        { addresses: [{ ip: 'bad', hostname: 'A_' }], ports: [{ port: 0, protocol: 'X' }, { port: 1 }] },
        { addresses: [] },
      ],
    }),
  ),
  send.POST(
    'create-loopback',
    EP,
    endpoints('x', {
      subsets: [
        {
          addresses: [
            { ip: '127.0.0.1' },
            { ip: '169.254.1.1' },
            { ip: '0.0.0.0' },
            { ip: '224.0.0.1' },
            { ip: '::1' },
            { ip: 'fe80::1' },
          ],
        },
      ],
    }),
  ),
  send.POST('create-wrong-kind', EP, { apiVersion: 'v1', kind: 'Service', metadata: { name: 'x' } }),
  send.POST(
    'create-unknown-kind',
    EP,
    { apiVersion: 'v1', kind: 'Bogus', metadata: { name: 'x' } },
    { differs: 'the name of the Go scheme is not ours' },
  ),
  send.POST('create-malformed', EP, '{"metadata":', {
    differs: 'we do not print the body: it may hold a secret',
  }),
  send.POST('create-text', EP, 'hello', {
    headers: { 'content-type': 'text/plain' },
    differs: 'a kube-apiserver lists one more media type',
  }),
  send.POST('create-yaml', EP, 'metadata: {name: yaml}\nsubsets: []\n', {
    headers: { 'content-type': 'application/yaml' },
  }),
  send.POST('create-bad-label', EP, { metadata: { name: 'x', labels: { ok: '-' } } }),
  send.POST('create-bad-label-key', EP, { metadata: { name: 'x', labels: { 'A_/b': 'x' } } }),
  send.POST('create-bad-annotation', EP, { metadata: { name: 'x', annotations: { __proto__: 'x' } } }),
  send.POST('create-bad-finalizer', EP, { metadata: { name: 'x', finalizers: ['a/b/c'] } }),
  send.POST('create-unqualified-finalizer', `${EP}?dryRun=All`, {
    metadata: { name: 'x', finalizers: ['hold'] },
  }),
  send.POST('create-bad-owner', EP, {
    metadata: { name: 'x', ownerReferences: [{ apiVersion: '', kind: '', name: '', uid: '' }] },
  }),
  send.POST('create-same-owner-twice', `${EP}?dryRun=All`, {
    metadata: {
      name: 'x',
      ownerReferences: [
        { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u1' },
        { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u1' },
      ],
    },
  }),
  send.POST('create-dry-run', `${EP}?dryRun=All`, endpoints('dry', { subsets: SUBSETS })),
  send.POST('create-dry-run-bad', `${EP}?dryRun=Some`, endpoints('dry')),
  send.POST('create-on-item', `${EP}/a`, endpoints('a')),
  send.POST('create-everywhere', '/api/v1/endpoints', endpoints('a')),
  send.POST('create-long-manager', `${EP}?fieldManager=${'m'.repeat(129)}`, endpoints('x')),
];

const READ: Step[] = [
  send.GET('get', `${EP}/a`),
  send.GET('get-missing', `${EP}/nope`),
  send.GET('get-missing-namespace', '/api/v1/namespaces/{ns}-no/endpoints/a'),
  send.GET('get-bad-version', `${EP}/a?resourceVersion=bad`, undefined, {
    differs: 'a kube-apiserver answers 500 to a version that is no number, we say what is wrong',
    ourStatus: 400,
  }),
  send.GET('get-table', `${EP}/a`, undefined, { headers: TABLE }),
  send.GET('list-table', EP, undefined, { headers: TABLE }),
  send.GET('list-table-objects', `${EP}?includeObject=Object&limit=1`, undefined, { headers: TABLE }),
  send.GET('list-table-none', `${EP}?includeObject=None`, undefined, { headers: TABLE }),
  send.GET('get-partial', `${EP}/a`, undefined, { headers: PARTIAL }),
  send.GET('get-yaml', `${EP}/empty`, undefined, { headers: { accept: 'application/yaml' } }),
  send.GET('get-html', `${EP}/a`, undefined, { headers: { accept: 'text/html,*/*;q=0.8' } }),
  send.GET('list', EP),
  send.GET('list-missing-namespace', '/api/v1/namespaces/{ns}-no/endpoints'),
  send.GET('list-limit', `${EP}?limit=2`),
  send.GET('list-continue', `${EP}?limit=2&continue={continue:list-limit}`),
  send.GET('list-bad-limit', `${EP}?limit=x`),
  send.GET('list-bad-continue', `${EP}?limit=1&continue=bogus`),
  send.GET('list-name', `${EP}?fieldSelector=metadata.name%3Dyaml`),
  send.GET('list-not-name', `${EP}?fieldSelector=metadata.name!%3Da,metadata.namespace%3D{ns}`),
  send.GET('list-bad-field', `${EP}?fieldSelector=spec.x%3D1`),
  send.GET('list-bad-selector', `${EP}?labelSelector=a%3D%3D%3Db`),
  ...['a==b,', 'a in (b', 'a in b', 'a b', '(a)', 'a=x y', 'a>', 'a>xx', 'a=b/c', 'a,,b', '!a=b', '-a'].map(
    (selector, index) =>
      send.GET(`list-wrong-selector-${index}`, `${EP}?labelSelector=${encodeURIComponent(selector)}`),
  ),
  send.GET('list-partial', EP, undefined, {
    headers: { accept: 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io' },
  }),
  send.GET('list-bad-match', `${EP}?resourceVersion=1&resourceVersionMatch=Foo`),
  send.GET('list-match-alone', `${EP}?resourceVersionMatch=Exact`),
  send.GET('list-unknown-resource', '/api/v1/namespaces/{ns}/bogus'),
  send.GET('list-unknown-version', '/apis/discovery.k8s.io/v9/endpointslices'),
  send.GET('get-unknown-subresource', `${EP}/a/scale`),
  send.OPTIONS('options', `${EP}/a`),
];

const UPDATE: Step[] = [
  send.PUT('put', `${EP}/empty`, { metadata: { name: 'empty', labels: { l: 'v' } }, subsets: SUBSETS }),
  send.PUT('put-noop', `${EP}/empty`, {
    metadata: { name: 'empty', labels: { l: 'v' } },
    subsets: SUBSETS,
  }),
  send.PUT('put-guarded', `${EP}/empty`, {
    metadata: { name: 'empty', resourceVersion: '{rv:put}', annotations: { a: 'b' } },
  }),
  send.PUT('put-stale', `${EP}/empty`, { metadata: { name: 'empty', resourceVersion: '{rv:put}' } }),
  send.PUT('put-future', `${EP}/empty`, { metadata: { name: 'empty', resourceVersion: '99999999' } }),
  send.PUT('put-no-name', `${EP}/empty`, { metadata: {} }),
  send.PUT('put-other-name', `${EP}/empty`, { metadata: { name: 'other' } }),
  send.PUT('put-other-namespace', `${EP}/empty`, { metadata: { name: 'empty', namespace: 'other' } }),
  send.PUT(
    'put-other-uid',
    `${EP}/empty`,
    { metadata: { name: 'empty', uid: '11111111-1111-4111-8111-111111111111' } },
    { differs: 'we do not print storage keys' },
  ),
  send.PUT('put-creates', `${EP}/made`, { metadata: { name: 'made', resourceVersion: '5' } }),
  send.PUT('put-times', `${EP}/made`, {
    metadata: { name: 'made', creationTimestamp: '2001-01-01T00:00:00Z', generation: 7 },
  }),
  send.PUT(
    'put-deletion',
    `${EP}/made`,
    {
      metadata: { name: 'made', deletionTimestamp: '2001-01-01T00:00:00Z' },
    },
    { differs: 'a kube-apiserver names the same cause twice' },
  ),
  send.PUT('put-managers-reset', `${EP}/made`, {
    metadata: { name: 'made', managedFields: [{}], labels: { x: 'y' } },
  }),
  send.PUT('put-after-reset', `${EP}/made`, { metadata: { name: 'made', labels: { x: 'z' } } }),
  send.PUT('put-dry-run', `${EP}/a?dryRun=All`, { metadata: { name: 'a' } }),
  send.PUT('put-manager', `${EP}/a?fieldManager=other`, {
    metadata: { name: 'a', labels: { o: '1' } },
    subsets: SUBSETS,
  }),
  send.PUT('put-collection', EP, endpoints('a')),
  send.PUT('put-lease-missing-version', '/apis/coordination.k8s.io/v1/namespaces/{ns}/leases/l', {
    metadata: { name: 'l' },
    spec: { holderIdentity: 'me', leaseDurationSeconds: 15, renewTime: '2026-01-01T00:00:00.123456Z' },
  }),
  send.PUT('put-lease-unconditional', '/apis/coordination.k8s.io/v1/namespaces/{ns}/leases/l', {
    metadata: { name: 'l' },
    spec: {},
  }),
  send.PUT('put-configmap-missing', '/api/v1/namespaces/{ns}/configmaps/no', { metadata: { name: 'no' } }),
];

export const ENDPOINTS_STEPS: readonly Step[] = [...CREATE, ...READ, ...UPDATE];
