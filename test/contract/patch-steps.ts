/** Patches, applies and deletions of Endpoints that earlier steps created. */

import { APPLY, EP, JSON_PATCH, MERGE_PATCH, STRATEGIC, SUBSETS, endpoints, send } from './step.ts';
import type { Step } from './transcript.ts';

const PLACE = 'we say where the JSON is malformed, as before 1.37';
const NAMED_OPERATION = 'a cause names the operation and why it cannot be applied';

const PATCH: Step[] = [
  send.PATCH('json-add-annotation', `${EP}/a`, [{ op: 'add', path: '/metadata/annotations/x', value: 'y' }], {
    headers: JSON_PATCH,
    differs: 'we make the map of annotations, a kube-apiserver refuses',
    ourStatus: 200,
  }),
  send.PATCH(
    'json-test',
    `${EP}/a`,
    [
      { op: 'test', path: '/metadata/name', value: 'a' },
      { op: 'replace', path: '/subsets/0/ports/0/port', value: 81 },
    ],
    { headers: JSON_PATCH, differs: 'an annotation more, by the step before' },
  ),
  send.PATCH('json-test-fails', `${EP}/a`, [{ op: 'test', path: '/metadata/name', value: 'b' }], {
    headers: JSON_PATCH,
    differs: NAMED_OPERATION,
  }),
  send.PATCH('json-remove-missing', `${EP}/a`, [{ op: 'remove', path: '/bogus' }], {
    headers: JSON_PATCH,
    differs: NAMED_OPERATION,
  }),
  send.PATCH('json-bad-op', `${EP}/a`, [{ op: 'frob', path: '/x', value: 1 }], {
    headers: JSON_PATCH,
    differs: NAMED_OPERATION,
  }),
  send.PATCH('json-no-array', `${EP}/a`, { a: 1 }, { headers: JSON_PATCH }),
  send.PATCH('json-malformed', `${EP}/a`, '[{', { headers: JSON_PATCH, differs: PLACE }),
  send.PATCH('json-rename', `${EP}/a`, [{ op: 'replace', path: '/metadata/name', value: 'z' }], {
    headers: JSON_PATCH,
  }),
  send.PATCH('json-missing', `${EP}/nope`, [], { headers: JSON_PATCH }),
  send.PATCH(
    'merge',
    `${EP}/yaml`,
    { metadata: { labels: { a: 'b', c: 'd' }, annotations: { k: 'v' } }, subsets: SUBSETS },
    { headers: MERGE_PATCH },
  ),
  send.PATCH(
    'merge-remove',
    `${EP}/yaml`,
    { metadata: { labels: { a: null }, annotations: null } },
    { headers: MERGE_PATCH },
  ),
  send.PATCH('merge-noop', `${EP}/yaml`, { metadata: { labels: { c: 'd' } } }, { headers: MERGE_PATCH }),
  send.PATCH(
    'merge-guarded',
    `${EP}/yaml`,
    { metadata: { resourceVersion: '{rv:merge}', labels: { c: 'e' } } },
    { headers: MERGE_PATCH },
  ),
  send.PATCH(
    'merge-uid',
    `${EP}/yaml`,
    { metadata: { uid: '11111111-1111-4111-8111-111111111111' } },
    { headers: MERGE_PATCH, differs: 'a kube-apiserver names the same cause twice' },
  ),
  send.PATCH('merge-array', `${EP}/yaml`, [], { headers: MERGE_PATCH }),
  send.PATCH('merge-malformed', `${EP}/yaml`, '{"a":', { headers: MERGE_PATCH, differs: PLACE }),
  send.PATCH(
    'merge-invalid',
    `${EP}/yaml`,
    { subsets: [{ addresses: [{ ip: 'x' }] }] },
    { headers: MERGE_PATCH },
  ),
  send.PATCH(
    'merge-wrong-type',
    `${EP}/yaml`,
    { subsets: 'x' },
    { headers: MERGE_PATCH, differs: 'we do not print the object: it may hold a secret' },
  ),
  send.PATCH('merge-unknown', `${EP}/yaml?dryRun=All`, { bogus: 1 }, { headers: MERGE_PATCH }),
  send.PATCH(
    'merge-unknown-strict',
    `${EP}/yaml?fieldValidation=Strict`,
    { bogus: 1 },
    { headers: MERGE_PATCH, differs: 'we do not print the object' },
  ),
  send.PATCH('merge-force', `${EP}/yaml?force=true`, {}, { headers: MERGE_PATCH }),
  send.PATCH(
    'merge-kind',
    `${EP}/yaml`,
    { kind: 'Pod' },
    { headers: MERGE_PATCH, differs: 'we do not print the object' },
  ),
  send.PATCH(
    'patch-as-json',
    `${EP}/yaml`,
    {},
    {
      headers: { 'content-type': 'application/json' },
      differs: 'the message lists the types of patches that the kind accepts',
    },
  ),
  send.PATCH(
    'strategic-labels',
    `${EP}/yaml`,
    { metadata: { labels: { c: 'f' }, finalizers: ['a.b/c'] } },
    { headers: STRATEGIC },
  ),
  send.PATCH(
    'strategic-finalizer',
    `${EP}/yaml`,
    { metadata: { finalizers: ['a.b/d'] } },
    { headers: STRATEGIC },
  ),
  send.PATCH(
    'strategic-delete-finalizer',
    `${EP}/yaml`,
    { metadata: { '$deleteFromPrimitiveList/finalizers': ['a.b/c', 'a.b/d'] } },
    { headers: STRATEGIC },
  ),
  send.PATCH(
    'strategic-subsets',
    `${EP}/yaml`,
    { subsets: [{ addresses: [{ ip: '10.9.9.9' }] }] },
    { headers: STRATEGIC },
  ),
  send.PATCH(
    'strategic-owners',
    `${EP}/yaml`,
    {
      metadata: {
        ownerReferences: [
          { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u1' },
          { apiVersion: 'v1', kind: 'Pod', name: 'q', uid: 'u2' },
        ],
      },
    },
    { headers: STRATEGIC },
  ),
  send.PATCH(
    'strategic-owner-merge',
    `${EP}/yaml`,
    {
      metadata: {
        ownerReferences: [
          { uid: 'u2', name: 'r' },
          { uid: 'u1', $patch: 'delete' },
        ],
      },
    },
    { headers: STRATEGIC },
  ),
  send.PATCH(
    'strategic-replace',
    `${EP}/yaml`,
    { metadata: { labels: { $patch: 'replace', only: 'this' }, ownerReferences: [{ $patch: 'replace' }] } },
    { headers: STRATEGIC },
  ),
];

const APPLIES: Step[] = [
  send.PATCH(
    'apply-create',
    `${EP}/ssa?fieldManager=m1`,
    endpoints('ssa', { metadata: { name: 'ssa', labels: { a: '1', b: '2' } }, subsets: SUBSETS }),
    { headers: APPLY },
  ),
  send.PATCH(
    'apply-noop',
    `${EP}/ssa?fieldManager=m1`,
    endpoints('ssa', { metadata: { name: 'ssa', labels: { a: '1', b: '2' } }, subsets: SUBSETS }),
    { headers: APPLY },
  ),
  send.PATCH(
    'apply-shared',
    `${EP}/ssa?fieldManager=m2`,
    endpoints('ssa', { metadata: { name: 'ssa', labels: { a: '1' } } }),
    { headers: APPLY },
  ),
  send.PATCH(
    'apply-conflict',
    `${EP}/ssa?fieldManager=m3`,
    endpoints('ssa', { metadata: { name: 'ssa', labels: { a: '9' } } }),
    { headers: APPLY },
  ),
  send.PATCH('apply-conflict-subsets', `${EP}/ssa?fieldManager=m3`, endpoints('ssa', { subsets: [] }), {
    headers: APPLY,
  }),
  send.PATCH(
    'apply-force',
    `${EP}/ssa?fieldManager=m3&force=true`,
    endpoints('ssa', { metadata: { name: 'ssa', labels: { a: '9' } } }),
    { headers: APPLY },
  ),
  send.PATCH(
    'apply-remove',
    `${EP}/ssa?fieldManager=m1`,
    endpoints('ssa', { metadata: { name: 'ssa', labels: { c: '3' } } }),
    { headers: APPLY },
  ),
  send.PATCH(
    'apply-over-update',
    `${EP}/made?fieldManager=m1`,
    endpoints('made', { metadata: { name: 'made', labels: { x: 'q' } } }),
    { headers: APPLY },
  ),
  send.PATCH(
    'apply-empty-map',
    `${EP}/bare?fieldManager=m1`,
    endpoints('bare', { metadata: { name: 'bare', labels: {} }, subsets: [] }),
    { headers: APPLY },
  ),
  send.PATCH(
    'apply-empty-conflict',
    `${EP}/bare?fieldManager=m2`,
    endpoints('bare', {
      metadata: { name: 'bare', labels: {} },
      subsets: [{ addresses: [{ ip: '10.0.0.1' }] }],
    }),
    { headers: APPLY },
  ),
  send.PATCH(
    'update-before-apply',
    `${EP}/ssa?fieldManager=u1`,
    { metadata: { labels: { y: 'u' } } },
    {
      headers: MERGE_PATCH,
    },
  ),
  send.PATCH(
    'apply-conflict-update',
    `${EP}/ssa?fieldManager=m9`,
    endpoints('ssa', { metadata: { name: 'ssa', labels: { y: 'm' } } }),
    { headers: APPLY },
  ),
  send.PATCH('apply-no-manager', `${EP}/ssa`, endpoints('ssa'), { headers: APPLY }),
  send.PATCH('apply-no-kind', `${EP}/ssa?fieldManager=m`, { metadata: { name: 'ssa' } }, { headers: APPLY }),
  send.PATCH(
    'apply-managers',
    `${EP}/ssa?fieldManager=m`,
    endpoints('ssa', { metadata: { name: 'ssa', managedFields: [{ manager: 'x' }] } }),
    { headers: APPLY },
  ),
  send.PATCH('apply-other-name', `${EP}/ssa?fieldManager=m`, endpoints('other'), { headers: APPLY }),
  send.PATCH(
    'apply-stale',
    `${EP}/ssa?fieldManager=m`,
    endpoints('ssa', { metadata: { name: 'ssa', resourceVersion: '1' } }),
    { headers: APPLY },
  ),
  send.PATCH(
    'apply-uid-missing',
    `${EP}/no?fieldManager=m`,
    endpoints('no', { metadata: { name: 'no', uid: '11111111-1111-4111-8111-111111111111' } }),
    { headers: APPLY },
  ),
  send.PATCH('apply-unknown', `${EP}/no?fieldManager=m&dryRun=All`, endpoints('no', { bogus: 1 }), {
    headers: APPLY,
    differs: 'a kube-apiserver fails with 500 where we drop the field with a warning',
    ourStatus: 201,
  }),
  send.PATCH('apply-dry-run', `${EP}/no?fieldManager=m&dryRun=All`, endpoints('no'), { headers: APPLY }),
  send.PUT('update-takes-over', `${EP}/ssa?fieldManager=u1`, {
    metadata: { name: 'ssa', labels: { c: '4' } },
    subsets: SUBSETS,
  }),
];

const DELETE: Step[] = [
  send.DELETE('delete-wrong-uid', `${EP}/a`, { preconditions: { uid: 'x' } }),
  send.DELETE('delete-wrong-version', `${EP}/a`, { preconditions: { resourceVersion: '1' } }),
  send.DELETE('delete-right', `${EP}/made`, { preconditions: { uid: '{uid:put-creates}' } }),
  send.DELETE('delete-missing', `${EP}/made`),
  send.DELETE('delete-dry-run', `${EP}/a?dryRun=All`),
  send.DELETE('delete-bad-policy', `${EP}/a`, { propagationPolicy: 'Nope' }),
  send.DELETE('delete-malformed', `${EP}/a`, '{', { differs: 'a kube-apiserver answers 500' }),
  send.POST('finalizer', EP, { metadata: { name: 'held', finalizers: ['a.b/c'] } }),
  send.DELETE('delete-held', `${EP}/held`),
  send.DELETE('delete-held-again', `${EP}/held`),
  send.POST('recreate-held', EP, endpoints('held')),
  send.PATCH(
    'update-held',
    `${EP}/held`,
    { metadata: { labels: { still: 'here' } } },
    { headers: MERGE_PATCH },
  ),
  send.PATCH(
    'finalizer-added',
    `${EP}/held`,
    { metadata: { finalizers: ['a.b/c', 'a.b/d'] } },
    { headers: MERGE_PATCH, differs: 'a kube-apiserver names the same cause twice' },
  ),
  send.PATCH('finalizer-removed', `${EP}/held`, { metadata: { finalizers: null } }, { headers: MERGE_PATCH }),
  send.GET('held-gone', `${EP}/held`),
  send.DELETE('delete-foreground', `${EP}/nulls`, { propagationPolicy: 'Foreground' }),
  send.DELETE('delete-collection', `${EP}?labelSelector=only%3Dthis`),
  send.GET('after-collection', `${EP}?labelSelector=only%3Dthis`),
  send.DELETE('delete-status', '/api/v1/namespaces/{ns}/services/s/status'),
];

export const PATCH_STEPS: readonly Step[] = [...PATCH, ...APPLIES, ...DELETE];
