/** Each row of docs/differences.md has a test that proves it. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');

/** By the first words of the row: the file of the test, and its title. */
const PROOFS: Readonly<Record<string, readonly [file: string, title: string]>> = {
  'two virtual objects whose host name': [
    'scenarios/ownership.ts',
    'with a name that two virtual objects translate to is the copy of the first',
  ],
  'keeps the last state in memory': [
    'scenarios/restart.ts',
    'a key removed in the virtual cluster is removed on the host',
  ],
  'deletes by name': ['kube/client/client.test.ts', 'a deletion has its preconditions in the body'],
  'a failing patch is silent': [
    'scenarios/patches.ts',
    'is reported in an Event on its object, other objects are synced; a corrected object is synced',
  ],
  'a deleted host copy': [
    'syncer/reconcile/cases.test.ts',
    'ep-14, overruled: a deleted host copy is recreated',
  ],
  'Endpoints without a Service': [
    'syncer/reconcile/cases.test.ts',
    'ep-05, overruled: synced without a Service; with requireService the copy is deleted',
  ],
  'a restart of the host': ['e2e/host-controllers.ts', 'the host’s controllers after a restart'],
  'deletes and creates the host copy': [
    'scenarios/restart.ts',
    'the copy of a recreated virtual object is updated in place and keeps nothing of the old object',
  ],
  'syncs EndpointSlices': [
    'scenarios/slice-lifecycles.ts',
    'the mirrored slice is synced only if Endpoints are not synced, the custom one always',
  ],
  'syncs Services and Pods': [
    'scenarios/services.ts',
    'of other types are not copied, those with a selector with an Event',
  ],
  'copies `externalIPs`': [
    'syncer/kinds/service-validation.test.ts',
    'so it is copied only if endpointSyncer.services.allow',
  ],
  'builds the Service name': [
    'scenarios/endpoint-slices.ts',
    'have the name of the host Service in their label if it is truncated to 63 bytes',
  ],
  '`spec.rules.*` as the last segment': [
    'syncer/patch/check-patch.test.ts',
    'jsonpath-plus reads names, indices, wildcards and keys in brackets as this program does',
  ],
  '`spec.key`': [
    'access-keys/keys/stored-key.test.ts',
    'writing the same object again is a no-op, with or without the secrets',
  ],
  '`identity.connectorData`': [
    'access-keys/keys/stored-key.test.ts',
    'a secret is kept until it is set to the empty string, or its object is removed',
  ],
  '`spec.user`': ['access-keys/cases.test.ts', 'an update keeps what a create demands'],
  '`spec.scope`': ['access-keys/authorization/grants.test.ts', 'allows nothing'],
  '`spec.ttl`': [
    'access-keys/keys/key-collector.test.ts',
    'expired keys are deleted a week later, in order, and finalizers keep them as usual',
  ],
  'a key with a `ttl`': [
    'access-keys/authorization/write-authorizer.test.ts',
    'can create a key only with a lifetime up to its own expiry',
  ],
  '`spec.parent`': ['access-keys/keys/login-data.test.ts', "describe('parent'"],
  '`spec.identity`': ['access-keys/keys/login-data.test.ts', 'administrators alone'],
  '`status.lastActivity`': [
    'access-keys/keys/key-activity.test.ts',
    'is in every response immediately, and does not change the resourceVersion',
  ],
  DirectClusterEndpointToken: [
    'access-keys/tokens/served.test.ts',
    'of an empty spec, in JSON and in YAML: 201 with Cache-Control: no-store',
  ],
  '`DELETE`': ['access-keys/keys/key-collector.test.ts', 'applies only to requests with a grace period'],
  '`PUT` without a resourceVersion': [
    'access-keys/keys/login-data.test.ts',
    'a PUT without a resourceVersion is the last write',
  ],
  PATCH: ['access-keys/cases.test.ts', 'json-patch-add-annotation-no-parent'],
  '`rotate`': [
    'access-keys/rotation.test.ts',
    'contains the new secret, which no other representation of the key contains',
  ],
  '`GET /api`': ['access-keys/cases.test.ts', 'core v1 is served for kubectl, and has no resources'],
  Events: ['access-keys/keys/expiry-events.test.ts', 'Events are read-only for clients'],
  TokenReview: ['access-keys/authorization/reviews.test.ts', 'TokenReview'],
  'an expression is JavaScript': ['attack/widened.test.ts', 'is refused before it runs'],
  'a reference is translated': [
    'scenarios/references.ts',
    'the long name is written, whether the object and its copy exist or not',
  ],
  'an object of the host that a patch references': [
    'attack/references.ts',
    'a bootstrap token, by its type and by its name',
  ],
  'a generated name that is taken': [
    'apiserver/objects/object-registry.test.ts',
    'that are generated are retried a limited number of times',
  ],
  'an empty namespace': [
    'apiserver/objects/resource-definition.test.ts',
    'an invalid namespace of a cluster-scoped object is an error; a valid one is ignored',
  ],
};

const page = readFileSync(join(ROOT, 'docs/differences.md'), 'utf8');
/** Without the headings of the tables. */
const rows = [...page.matchAll(/(?<=\n)\| (?<first>[^|]+?) \|.*(?=\n)/gu)]
  .map(({ groups }) => groups?.['first'] ?? '')
  .filter((first) => !['vCluster', 'field or request', 'there'].includes(first));

test('every row has one proof, and every proof a row', () => {
  const proved = rows.map((row) => Object.keys(PROOFS).filter((start) => row.startsWith(start)));
  expect(rows.length).toBeGreaterThan(30);
  expect(rows.filter((_row, at) => proved[at]?.length !== 1)).toEqual([]);
  expect(Object.keys(PROOFS).filter((start) => !proved.flat().includes(start))).toEqual([]);
});

test.each(Object.values(PROOFS))('the test exists: %s %s', (file, title) => {
  expect(readFileSync(join(ROOT, 'test', file), 'utf8')).toContain(title);
});
