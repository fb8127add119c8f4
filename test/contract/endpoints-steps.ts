/** Endpoints created, read and updated: what every kind has in common. */

import { EP, PARTIAL, SUBSETS, TABLE, endpoints, step } from './step.ts';
import type { Step } from './transcript.ts';

const CREATE: Step[] = [
  step('namespace', 'POST', '/api/v1/namespaces', { metadata: { name: '{ns}' } }),
  step('create', 'POST', EP, endpoints('a', { subsets: SUBSETS })),
  step('create-empty', 'POST', EP, endpoints('empty', { subsets: [] })),
  step('create-null-subsets', 'POST', EP, endpoints('nulls', { subsets: null })),
  step('create-exists', 'POST', EP, endpoints('a')),
  step('create-no-name', 'POST', EP, { metadata: {} }),
  step('create-bad-name', 'POST', EP, endpoints('A_b')),
  step('create-slash-name', 'POST', EP, endpoints('a/b')),
  step('create-other-namespace', 'POST', EP, { metadata: { name: 'x', namespace: 'other' } }),
  step('create-missing-namespace', 'POST', '/api/v1/namespaces/{ns}-no/endpoints', endpoints('x')),
  step('create-with-version', 'POST', EP, { metadata: { name: 'x', resourceVersion: '5' } }),
  step(
    'create-unknown-field',
    'POST',
    `${EP}?dryRun=All`,
    endpoints('x', { bogus: 1, subsets: [{ addresses: [{ ip: '10.0.0.1', q: 1 }] }] }),
  ),
  step('create-unknown-strict', 'POST', `${EP}?fieldValidation=Strict`, endpoints('x', { bogus: 1 })),
  step(
    'create-unknown-ignored',
    'POST',
    `${EP}?dryRun=All&fieldValidation=Ignore`,
    endpoints('x', { bogus: 1 }),
  ),
  step('create-bad-validation', 'POST', `${EP}?fieldValidation=Nope`, endpoints('x')),
  step(
    'create-duplicate-field',
    'POST',
    `${EP}?fieldValidation=Strict`,
    '{"metadata":{"name":"x"},"subsets":[],"subsets":[]}',
  ),
  step('create-wrong-type', 'POST', EP, endpoints('x', { subsets: 'no' })),
  step('create-wrong-inner-type', 'POST', EP, endpoints('x', { subsets: [{ ports: [{ port: 'http' }] }] })),
  step('create-float-port', 'POST', EP, endpoints('x', { subsets: [{ ports: [{ port: 1.5 }] }] })),
  step('create-number-label', 'POST', EP, { metadata: { name: 'x', labels: { a: 1 } } }),
  step(
    'create-invalid',
    'POST',
    EP,
    endpoints('x', {
      subsets: [
        { addresses: [{ ip: 'bad', hostname: 'A_' }], ports: [{ port: 0, protocol: 'X' }, { port: 1 }] },
        { addresses: [] },
      ],
    }),
  ),
  step(
    'create-loopback',
    'POST',
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
  step('create-wrong-kind', 'POST', EP, { apiVersion: 'v1', kind: 'Service', metadata: { name: 'x' } }),
  step(
    'create-unknown-kind',
    'POST',
    EP,
    { apiVersion: 'v1', kind: 'Bogus', metadata: { name: 'x' } },
    { differs: 'the name of the Go scheme is not ours' },
  ),
  step('create-malformed', 'POST', EP, '{"metadata":', {
    differs: 'we do not print the body: it may hold a secret',
  }),
  step('create-text', 'POST', EP, 'hello', {
    headers: { 'content-type': 'text/plain' },
    differs: 'a kube-apiserver lists one more media type',
  }),
  step('create-yaml', 'POST', EP, 'metadata: {name: yaml}\nsubsets: []\n', {
    headers: { 'content-type': 'application/yaml' },
  }),
  step('create-bad-label', 'POST', EP, { metadata: { name: 'x', labels: { ok: '-' } } }),
  step('create-bad-label-key', 'POST', EP, { metadata: { name: 'x', labels: { 'A_/b': 'x' } } }),
  step('create-bad-annotation', 'POST', EP, { metadata: { name: 'x', annotations: { __proto__: 'x' } } }),
  step('create-bad-finalizer', 'POST', EP, { metadata: { name: 'x', finalizers: ['a/b/c'] } }),
  step('create-unqualified-finalizer', 'POST', `${EP}?dryRun=All`, {
    metadata: { name: 'x', finalizers: ['hold'] },
  }),
  step('create-bad-owner', 'POST', EP, {
    metadata: { name: 'x', ownerReferences: [{ apiVersion: '', kind: '', name: '', uid: '' }] },
  }),
  step('create-same-owner-twice', 'POST', `${EP}?dryRun=All`, {
    metadata: {
      name: 'x',
      ownerReferences: [
        { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u1' },
        { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u1' },
      ],
    },
  }),
  step('create-dry-run', 'POST', `${EP}?dryRun=All`, endpoints('dry', { subsets: SUBSETS })),
  step('create-dry-run-bad', 'POST', `${EP}?dryRun=Some`, endpoints('dry')),
  step('create-on-item', 'POST', `${EP}/a`, endpoints('a')),
  step('create-everywhere', 'POST', '/api/v1/endpoints', endpoints('a')),
  step('create-long-manager', 'POST', `${EP}?fieldManager=${'m'.repeat(129)}`, endpoints('x')),
];

const READ: Step[] = [
  step('get', 'GET', `${EP}/a`),
  step('get-missing', 'GET', `${EP}/nope`),
  step('get-missing-namespace', 'GET', '/api/v1/namespaces/{ns}-no/endpoints/a'),
  step('get-bad-version', 'GET', `${EP}/a?resourceVersion=bad`, undefined, {
    differs: 'a kube-apiserver answers 500 to a version that is no number, we say what is wrong',
    ourStatus: 400,
  }),
  step('get-table', 'GET', `${EP}/a`, undefined, { headers: TABLE }),
  step('list-table', 'GET', EP, undefined, { headers: TABLE }),
  step('list-table-objects', 'GET', `${EP}?includeObject=Object&limit=1`, undefined, { headers: TABLE }),
  step('list-table-none', 'GET', `${EP}?includeObject=None`, undefined, { headers: TABLE }),
  step('get-partial', 'GET', `${EP}/a`, undefined, { headers: PARTIAL }),
  step('get-yaml', 'GET', `${EP}/empty`, undefined, { headers: { accept: 'application/yaml' } }),
  step('get-html', 'GET', `${EP}/a`, undefined, { headers: { accept: 'text/html,*/*;q=0.8' } }),
  step('list', 'GET', EP),
  step('list-missing-namespace', 'GET', '/api/v1/namespaces/{ns}-no/endpoints'),
  step('list-limit', 'GET', `${EP}?limit=2`),
  step('list-continue', 'GET', `${EP}?limit=2&continue={continue:list-limit}`),
  step('list-bad-limit', 'GET', `${EP}?limit=x`),
  step('list-bad-continue', 'GET', `${EP}?limit=1&continue=bogus`),
  step('list-name', 'GET', `${EP}?fieldSelector=metadata.name%3Dyaml`),
  step('list-not-name', 'GET', `${EP}?fieldSelector=metadata.name!%3Da,metadata.namespace%3D{ns}`),
  step('list-bad-field', 'GET', `${EP}?fieldSelector=spec.x%3D1`),
  step('list-bad-selector', 'GET', `${EP}?labelSelector=a%3D%3D%3Db`),
  ...['a==b,', 'a in (b', 'a in b', 'a b', '(a)', 'a=x y', 'a>', 'a>xx', 'a=b/c', 'a,,b', '!a=b', '-a'].map(
    (selector, index) =>
      step(`list-wrong-selector-${index}`, 'GET', `${EP}?labelSelector=${encodeURIComponent(selector)}`),
  ),
  step('list-partial', 'GET', EP, undefined, {
    headers: { accept: 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io' },
  }),
  step('list-bad-match', 'GET', `${EP}?resourceVersion=1&resourceVersionMatch=Foo`),
  step('list-match-alone', 'GET', `${EP}?resourceVersionMatch=Exact`),
  step('list-unknown-resource', 'GET', '/api/v1/namespaces/{ns}/bogus'),
  step('list-unknown-version', 'GET', '/apis/discovery.k8s.io/v9/endpointslices'),
  step('get-unknown-subresource', 'GET', `${EP}/a/scale`),
  step('options', 'OPTIONS', `${EP}/a`),
];

const UPDATE: Step[] = [
  step('put', 'PUT', `${EP}/empty`, { metadata: { name: 'empty', labels: { l: 'v' } }, subsets: SUBSETS }),
  step('put-noop', 'PUT', `${EP}/empty`, {
    metadata: { name: 'empty', labels: { l: 'v' } },
    subsets: SUBSETS,
  }),
  step('put-guarded', 'PUT', `${EP}/empty`, {
    metadata: { name: 'empty', resourceVersion: '{rv:put}', annotations: { a: 'b' } },
  }),
  step('put-stale', 'PUT', `${EP}/empty`, { metadata: { name: 'empty', resourceVersion: '{rv:put}' } }),
  step('put-future', 'PUT', `${EP}/empty`, { metadata: { name: 'empty', resourceVersion: '99999999' } }),
  step('put-no-name', 'PUT', `${EP}/empty`, { metadata: {} }),
  step('put-other-name', 'PUT', `${EP}/empty`, { metadata: { name: 'other' } }),
  step('put-other-namespace', 'PUT', `${EP}/empty`, { metadata: { name: 'empty', namespace: 'other' } }),
  step(
    'put-other-uid',
    'PUT',
    `${EP}/empty`,
    { metadata: { name: 'empty', uid: '11111111-1111-4111-8111-111111111111' } },
    { differs: 'we do not print storage keys' },
  ),
  step('put-creates', 'PUT', `${EP}/made`, { metadata: { name: 'made', resourceVersion: '5' } }),
  step('put-times', 'PUT', `${EP}/made`, {
    metadata: { name: 'made', creationTimestamp: '2001-01-01T00:00:00Z', generation: 7 },
  }),
  step(
    'put-deletion',
    'PUT',
    `${EP}/made`,
    {
      metadata: { name: 'made', deletionTimestamp: '2001-01-01T00:00:00Z' },
    },
    { differs: 'a kube-apiserver names the same cause twice' },
  ),
  step('put-managers-reset', 'PUT', `${EP}/made`, {
    metadata: { name: 'made', managedFields: [{}], labels: { x: 'y' } },
  }),
  step('put-after-reset', 'PUT', `${EP}/made`, { metadata: { name: 'made', labels: { x: 'z' } } }),
  step('put-dry-run', 'PUT', `${EP}/a?dryRun=All`, { metadata: { name: 'a' } }),
  step('put-manager', 'PUT', `${EP}/a?fieldManager=other`, {
    metadata: { name: 'a', labels: { o: '1' } },
    subsets: SUBSETS,
  }),
  step('put-collection', 'PUT', EP, endpoints('a')),
  step('put-lease-missing-version', 'PUT', '/apis/coordination.k8s.io/v1/namespaces/{ns}/leases/l', {
    metadata: { name: 'l' },
    spec: { holderIdentity: 'me', leaseDurationSeconds: 15, renewTime: '2026-01-01T00:00:00.123456Z' },
  }),
  step('put-lease-unconditional', 'PUT', '/apis/coordination.k8s.io/v1/namespaces/{ns}/leases/l', {
    metadata: { name: 'l' },
    spec: {},
  }),
  step('put-configmap-missing', 'PUT', '/api/v1/namespaces/{ns}/configmaps/no', { metadata: { name: 'no' } }),
];

export const ENDPOINTS_STEPS: readonly Step[] = [...CREATE, ...READ, ...UPDATE];
