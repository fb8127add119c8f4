/** Endpoints patched, applied and deleted; they need what the steps before them made. */

import { APPLY, EP, JSON_PATCH, MERGE_PATCH, STRATEGIC, SUBSETS, endpoints, step } from './step.ts';
import type { Step } from './transcript.ts';

const PATCH: Step[] = [
  step(
    'json-add-annotation',
    'PATCH',
    `${EP}/a`,
    [{ op: 'add', path: '/metadata/annotations/x', value: 'y' }],
    {
      headers: JSON_PATCH,
      differs: 'we make the map of annotations, a kube-apiserver refuses',
      ourStatus: 200,
    },
  ),
  step(
    'json-test',
    'PATCH',
    `${EP}/a`,
    [
      { op: 'test', path: '/metadata/name', value: 'a' },
      { op: 'replace', path: '/subsets/0/ports/0/port', value: 81 },
    ],
    { headers: JSON_PATCH, differs: 'an annotation more, by the step before' },
  ),
  step('json-test-fails', 'PATCH', `${EP}/a`, [{ op: 'test', path: '/metadata/name', value: 'b' }], {
    headers: JSON_PATCH,
  }),
  step('json-remove-missing', 'PATCH', `${EP}/a`, [{ op: 'remove', path: '/bogus' }], {
    headers: JSON_PATCH,
  }),
  step('json-bad-op', 'PATCH', `${EP}/a`, [{ op: 'frob', path: '/x', value: 1 }], { headers: JSON_PATCH }),
  step('json-no-array', 'PATCH', `${EP}/a`, { a: 1 }, { headers: JSON_PATCH }),
  step('json-malformed', 'PATCH', `${EP}/a`, '[{', { headers: JSON_PATCH }),
  step('json-rename', 'PATCH', `${EP}/a`, [{ op: 'replace', path: '/metadata/name', value: 'z' }], {
    headers: JSON_PATCH,
  }),
  step('json-missing', 'PATCH', `${EP}/nope`, [], { headers: JSON_PATCH }),
  step(
    'merge',
    'PATCH',
    `${EP}/yaml`,
    { metadata: { labels: { a: 'b', c: 'd' }, annotations: { k: 'v' } }, subsets: SUBSETS },
    { headers: MERGE_PATCH },
  ),
  step(
    'merge-remove',
    'PATCH',
    `${EP}/yaml`,
    { metadata: { labels: { a: null }, annotations: null } },
    { headers: MERGE_PATCH },
  ),
  step('merge-noop', 'PATCH', `${EP}/yaml`, { metadata: { labels: { c: 'd' } } }, { headers: MERGE_PATCH }),
  step(
    'merge-guarded',
    'PATCH',
    `${EP}/yaml`,
    { metadata: { resourceVersion: '{rv:merge}', labels: { c: 'e' } } },
    { headers: MERGE_PATCH },
  ),
  step(
    'merge-uid',
    'PATCH',
    `${EP}/yaml`,
    { metadata: { uid: '11111111-1111-4111-8111-111111111111' } },
    { headers: MERGE_PATCH, differs: 'a kube-apiserver names the same cause twice' },
  ),
  step('merge-array', 'PATCH', `${EP}/yaml`, [], { headers: MERGE_PATCH }),
  step('merge-malformed', 'PATCH', `${EP}/yaml`, '{"a":', { headers: MERGE_PATCH }),
  step(
    'merge-invalid',
    'PATCH',
    `${EP}/yaml`,
    { subsets: [{ addresses: [{ ip: 'x' }] }] },
    { headers: MERGE_PATCH },
  ),
  step(
    'merge-wrong-type',
    'PATCH',
    `${EP}/yaml`,
    { subsets: 'x' },
    { headers: MERGE_PATCH, differs: 'we do not print the object: it may hold a secret' },
  ),
  step('merge-unknown', 'PATCH', `${EP}/yaml?dryRun=All`, { bogus: 1 }, { headers: MERGE_PATCH }),
  step(
    'merge-unknown-strict',
    'PATCH',
    `${EP}/yaml?fieldValidation=Strict`,
    { bogus: 1 },
    { headers: MERGE_PATCH, differs: 'we do not print the object' },
  ),
  step('merge-force', 'PATCH', `${EP}/yaml?force=true`, {}, { headers: MERGE_PATCH }),
  step(
    'merge-kind',
    'PATCH',
    `${EP}/yaml`,
    { kind: 'Pod' },
    { headers: MERGE_PATCH, differs: 'we do not print the object' },
  ),
  step('patch-as-json', 'PATCH', `${EP}/yaml`, {}, { headers: { 'content-type': 'application/json' } }),
  step(
    'strategic-labels',
    'PATCH',
    `${EP}/yaml`,
    { metadata: { labels: { c: 'f' }, finalizers: ['a.b/c'] } },
    { headers: STRATEGIC },
  ),
  step(
    'strategic-finalizer',
    'PATCH',
    `${EP}/yaml`,
    { metadata: { finalizers: ['a.b/d'] } },
    { headers: STRATEGIC },
  ),
  step(
    'strategic-delete-finalizer',
    'PATCH',
    `${EP}/yaml`,
    { metadata: { '$deleteFromPrimitiveList/finalizers': ['a.b/c', 'a.b/d'] } },
    { headers: STRATEGIC },
  ),
  step(
    'strategic-subsets',
    'PATCH',
    `${EP}/yaml`,
    { subsets: [{ addresses: [{ ip: '10.9.9.9' }] }] },
    { headers: STRATEGIC },
  ),
  step(
    'strategic-owners',
    'PATCH',
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
  step(
    'strategic-owner-merge',
    'PATCH',
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
  step(
    'strategic-replace',
    'PATCH',
    `${EP}/yaml`,
    { metadata: { labels: { $patch: 'replace', only: 'this' }, ownerReferences: [{ $patch: 'replace' }] } },
    { headers: STRATEGIC },
  ),
];

const APPLIES: Step[] = [
  step(
    'apply-create',
    'PATCH',
    `${EP}/ssa?fieldManager=m1`,
    endpoints('ssa', { metadata: { name: 'ssa', labels: { a: '1', b: '2' } }, subsets: SUBSETS }),
    { headers: APPLY },
  ),
  step(
    'apply-noop',
    'PATCH',
    `${EP}/ssa?fieldManager=m1`,
    endpoints('ssa', { metadata: { name: 'ssa', labels: { a: '1', b: '2' } }, subsets: SUBSETS }),
    { headers: APPLY },
  ),
  step(
    'apply-shared',
    'PATCH',
    `${EP}/ssa?fieldManager=m2`,
    endpoints('ssa', { metadata: { name: 'ssa', labels: { a: '1' } } }),
    { headers: APPLY },
  ),
  step(
    'apply-conflict',
    'PATCH',
    `${EP}/ssa?fieldManager=m3`,
    endpoints('ssa', { metadata: { name: 'ssa', labels: { a: '9' } } }),
    { headers: APPLY },
  ),
  step('apply-conflict-subsets', 'PATCH', `${EP}/ssa?fieldManager=m3`, endpoints('ssa', { subsets: [] }), {
    headers: APPLY,
  }),
  step(
    'apply-force',
    'PATCH',
    `${EP}/ssa?fieldManager=m3&force=true`,
    endpoints('ssa', { metadata: { name: 'ssa', labels: { a: '9' } } }),
    { headers: APPLY },
  ),
  step(
    'apply-remove',
    'PATCH',
    `${EP}/ssa?fieldManager=m1`,
    endpoints('ssa', { metadata: { name: 'ssa', labels: { c: '3' } } }),
    { headers: APPLY },
  ),
  step(
    'apply-over-update',
    'PATCH',
    `${EP}/made?fieldManager=m1`,
    endpoints('made', { metadata: { name: 'made', labels: { x: 'q' } } }),
    { headers: APPLY },
  ),
  step('apply-no-manager', 'PATCH', `${EP}/ssa`, endpoints('ssa'), { headers: APPLY }),
  step(
    'apply-no-kind',
    'PATCH',
    `${EP}/ssa?fieldManager=m`,
    { metadata: { name: 'ssa' } },
    { headers: APPLY },
  ),
  step(
    'apply-managers',
    'PATCH',
    `${EP}/ssa?fieldManager=m`,
    endpoints('ssa', { metadata: { name: 'ssa', managedFields: [{ manager: 'x' }] } }),
    { headers: APPLY },
  ),
  step('apply-other-name', 'PATCH', `${EP}/ssa?fieldManager=m`, endpoints('other'), { headers: APPLY }),
  step(
    'apply-stale',
    'PATCH',
    `${EP}/ssa?fieldManager=m`,
    endpoints('ssa', { metadata: { name: 'ssa', resourceVersion: '1' } }),
    { headers: APPLY },
  ),
  step(
    'apply-uid-missing',
    'PATCH',
    `${EP}/no?fieldManager=m`,
    endpoints('no', { metadata: { name: 'no', uid: '11111111-1111-4111-8111-111111111111' } }),
    { headers: APPLY },
  ),
  step('apply-unknown', 'PATCH', `${EP}/no?fieldManager=m&dryRun=All`, endpoints('no', { bogus: 1 }), {
    headers: APPLY,
    differs: 'a kube-apiserver fails with 500 where we drop the field with a warning',
    ourStatus: 201,
  }),
  step('apply-dry-run', 'PATCH', `${EP}/no?fieldManager=m&dryRun=All`, endpoints('no'), { headers: APPLY }),
  step('update-takes-over', 'PUT', `${EP}/ssa?fieldManager=u1`, {
    metadata: { name: 'ssa', labels: { c: '4' } },
    subsets: SUBSETS,
  }),
];

const DELETE: Step[] = [
  step('delete-wrong-uid', 'DELETE', `${EP}/a`, { preconditions: { uid: 'x' } }),
  step('delete-wrong-version', 'DELETE', `${EP}/a`, { preconditions: { resourceVersion: '1' } }),
  step('delete-right', 'DELETE', `${EP}/made`, { preconditions: { uid: '{uid:put-creates}' } }),
  step('delete-missing', 'DELETE', `${EP}/made`),
  step('delete-dry-run', 'DELETE', `${EP}/a?dryRun=All`),
  step('delete-bad-policy', 'DELETE', `${EP}/a`, { propagationPolicy: 'Nope' }),
  step('delete-malformed', 'DELETE', `${EP}/a`, '{', { differs: 'a kube-apiserver answers 500' }),
  step('finalizer', 'POST', EP, { metadata: { name: 'held', finalizers: ['a.b/c'] } }),
  step('delete-held', 'DELETE', `${EP}/held`),
  step('delete-held-again', 'DELETE', `${EP}/held`),
  step('recreate-held', 'POST', EP, endpoints('held')),
  step(
    'update-held',
    'PATCH',
    `${EP}/held`,
    { metadata: { labels: { still: 'here' } } },
    { headers: MERGE_PATCH },
  ),
  step(
    'finalizer-added',
    'PATCH',
    `${EP}/held`,
    { metadata: { finalizers: ['a.b/c', 'a.b/d'] } },
    { headers: MERGE_PATCH, differs: 'a kube-apiserver names the same cause twice' },
  ),
  step(
    'finalizer-removed',
    'PATCH',
    `${EP}/held`,
    { metadata: { finalizers: null } },
    { headers: MERGE_PATCH },
  ),
  step('held-gone', 'GET', `${EP}/held`),
  step('delete-foreground', 'DELETE', `${EP}/nulls`, { propagationPolicy: 'Foreground' }),
  step('delete-collection', 'DELETE', `${EP}?labelSelector=only%3Dthis`),
  step('after-collection', 'GET', `${EP}?labelSelector=only%3Dthis`),
  step('delete-status', 'DELETE', '/api/v1/namespaces/{ns}/services/s/status'),
];

export const PATCH_STEPS: readonly Step[] = [...PATCH, ...APPLIES, ...DELETE];
