/** The command `rbac`: what it prints is what the configuration needs, and no more. */

import { describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { capturedRun } from './captured-run.ts';
import { testFolder } from '../support/test-folder.ts';

const BASE = { name: 'a', host: { namespace: 'team' } };
const { write } = testFolder();

async function rbac(config: object, ...args: string[]) {
  const file = write('config.yaml', JSON.stringify(config));
  const { code, out, err } = await capturedRun(['rbac', '--config', file, ...args]);
  const documents: unknown[] = parseAllDocuments(out).map((document) => document.toJSON() as unknown); // any
  return { code, err, documents };
}

/** Without them the daemon does not publish which configuration is in use, and that another one is not applied. */
const LEASE_RULES = [
  { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['create'] },
  {
    apiGroups: ['coordination.k8s.io'],
    resources: ['leases'],
    resourceNames: ['endpoint-syncer-a'],
    verbs: ['get', 'update'],
  },
  { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create', 'patch'] },
];
const ALL_VERBS = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete'];
const COPY_RULES = [
  { apiGroups: [''], resources: ['endpoints'], verbs: ALL_VERBS },
  { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ALL_VERBS },
  { apiGroups: [''], resources: ['services'], verbs: ['get', 'list', 'watch'] },
];
const HOST_RULES = [...COPY_RULES, ...LEASE_RULES];

describe('rbac', () => {
  test('prints a Role on the host and a ClusterRole in the virtual cluster, each for its ServiceAccount', async () => {
    const { code, documents } = await rbac({ endpointSyncer: BASE });
    expect(code).toBe(0);
    expect(documents).toMatchObject([
      { kind: 'ServiceAccount', metadata: { name: 'endpoint-syncer', namespace: 'team' } },
      { kind: 'Role', metadata: { name: 'endpoint-syncer', namespace: 'team' }, rules: HOST_RULES },
      { kind: 'RoleBinding', subjects: [{ name: 'endpoint-syncer', namespace: 'team' }] },
      { kind: 'ServiceAccount', metadata: { name: 'endpoint-syncer', namespace: 'kube-system' } },
      { kind: 'ClusterRole', metadata: { name: 'endpoint-syncer' } },
      { kind: 'ClusterRoleBinding', roleRef: { name: 'endpoint-syncer' } },
    ]);
  });

  test('prints the documents of one cluster, for another ServiceAccount, as ClusterRoles', async () => {
    const args = ['--cluster', 'host', '--service-account', 'vc-a', '--as', 'clusterrole'];
    const { documents } = await rbac({ endpointSyncer: BASE }, ...args);
    expect(documents).toMatchObject([
      { kind: 'ServiceAccount', metadata: { name: 'vc-a', namespace: 'team' } },
      { kind: 'ClusterRole', metadata: { name: 'vc-a:team:team' }, rules: HOST_RULES },
      {
        kind: 'RoleBinding',
        metadata: { name: 'vc-a', namespace: 'team' },
        roleRef: { kind: 'ClusterRole', name: 'vc-a:team:team' },
      },
    ]);
  });

  test('only grants to list EndpointSlices on the host if they are not synced', async () => {
    const { documents } = await rbac({
      sync: { toHost: { endpointSlices: { enabled: false } } },
      endpointSyncer: BASE,
    });
    const [endpoints, slices, services] = COPY_RULES;
    // Without it contested slices are not reported.
    const list = { ...slices, verbs: ['list'] };
    expect(documents[1]).toMatchObject({ rules: [endpoints, services, ...LEASE_RULES, list] });
    expect(JSON.stringify(documents[4])).not.toContain('endpointslices');
  });

  test('grants what EndpointSlices and Services need, each right once', async () => {
    const { documents } = await rbac({
      sync: { toHost: { endpointSlices: { enabled: true } } },
      endpointSyncer: { ...BASE, services: 'sync' },
    });
    const both = ['get', 'list', 'watch', 'update', 'patch'];
    expect(documents[1]).toMatchObject({
      rules: [
        { resources: ['endpoints'], verbs: ALL_VERBS },
        { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ALL_VERBS },
        { resources: ['services'], verbs: ALL_VERBS },
        ...LEASE_RULES,
      ],
    });
    expect(documents[4]).toMatchObject({
      kind: 'ClusterRole',
      rules: [
        { resources: ['endpoints'], verbs: both },
        { resources: ['endpointslices'], verbs: both },
        { resources: ['services'], verbs: both },
        { resources: ['services/status'], verbs: ['patch'] },
        { resources: ['events'] },
        { resources: ['events'] },
        { resources: ['namespaces'], resourceNames: ['kube-system'], verbs: ['get'] },
      ],
    });
  });

  test('prints rules for the values of vCluster’s chart', async () => {
    const { documents } = await rbac({ endpointSyncer: BASE }, '--as', 'vcluster-values');
    expect(documents).toEqual([{ rbac: { role: { extraRules: HOST_RULES } } }]);
    const mapped = { namespaces: { enabled: true, mappings: { byName: { 'x-*': 'y-*' } } } };
    const config = { sync: { toHost: mapped }, endpointSyncer: BASE };
    const { documents: everywhere } = await rbac(config, '--as', 'vcluster-values');
    const clusterRole = { enabled: true, extraRules: COPY_RULES };
    expect(everywhere).toEqual([{ rbac: { role: { extraRules: LEASE_RULES }, clusterRole } }]);
  });

  test('prints a Role for each namespace that is mapped by its exact name', async () => {
    const mapped = { namespaces: { enabled: true, mappings: { byName: { x: 'y', z: '${name}-z' } } } };
    const config = { sync: { toHost: mapped }, endpointSyncer: BASE };
    const { documents } = await rbac(config, '--cluster', 'host');
    const roles = documents.filter((document) =>
      /^(Cluster)?Role$/u.test((document as { kind: string }).kind),
    ); // what the command documents
    expect(roles).toMatchObject(
      [BASE.host.namespace, 'y', `${BASE.name}-z`].map((namespace) => ({
        kind: 'Role',
        metadata: { namespace },
        rules: namespace === BASE.host.namespace ? [...COPY_RULES, ...LEASE_RULES] : COPY_RULES,
      })),
    );
  });

  test('omits a right on one Secret if all Secrets are granted', async () => {
    const patches = [{ path: 'metadata.annotations["x"]', reference: { apiVersion: 'v1', kind: 'Secret' } }];
    const endpointSyncer = { ...BASE, virtual: { secret: 'vc-a' } };
    const config = { sync: { toHost: { endpoints: { patches } } }, endpointSyncer };
    const { documents } = await rbac(config, '--cluster', 'host');
    expect(JSON.stringify(documents)).not.toContain('"vc-a"');
  });

  test('grants the rights of the key and token API on the host', async () => {
    const managementApi = {
      enabled: true,
      delegatedAuth: true,
      store: { driver: 'kubernetes', namespace: 'keys' },
    };
    const { documents } = await rbac({ endpointSyncer: BASE, managementApi }, '--cluster', 'host');
    expect(documents).toMatchObject([
      {},
      {},
      {},
      {
        kind: 'Role',
        metadata: { name: 'endpoint-syncer:team', namespace: 'keys' },
        rules: [{ resources: ['secrets'] }],
      },
      {
        kind: 'RoleBinding',
        metadata: { name: 'endpoint-syncer:team', namespace: 'keys' },
        subjects: [{ namespace: 'team' }],
      },
      {
        kind: 'ClusterRole',
        rules: [{ resources: ['tokenreviews'] }, { resources: ['subjectaccessreviews'] }],
      },
      { kind: 'ClusterRoleBinding' },
    ]);
  });

  test('grants the rights of the key and token API of a fleet, too', async () => {
    const fleet = { enabled: true, namespaces: { include: ['team-a'] } };
    const managementApi = { enabled: true, store: { driver: 'kubernetes' }, delegatedAuth: true };
    const { documents } = await rbac({
      endpointSyncer: { host: { namespace: 'own' }, fleet },
      managementApi,
    });
    expect(documents).toMatchObject([
      { kind: 'ServiceAccount' },
      {
        kind: 'Role',
        metadata: { name: 'endpoint-syncer', namespace: 'own' },
        rules: [{ resources: ['leases'] }, { resources: ['secrets'] }],
      },
      { kind: 'RoleBinding' },
      { kind: 'Role', metadata: { name: 'endpoint-syncer:own', namespace: 'team-a' } },
      { kind: 'RoleBinding' },
      {
        kind: 'ClusterRole',
        rules: [{ resources: ['tokenreviews'] }, { resources: ['subjectaccessreviews'] }],
      },
      { kind: 'ClusterRoleBinding' },
    ]);
  });

  test("says which rights the values of vCluster's chart cannot grant", async () => {
    const managementApi = { enabled: true, store: { driver: 'kubernetes', namespace: 'keys' } };
    const { err } = await rbac({ endpointSyncer: BASE, managementApi }, '--as', 'vcluster-values');
    expect(err).toContain('namespace "keys"');
    expect(err).toContain('--as role');
  });

  test('requires the host namespace', async () => {
    const { code, err } = await rbac({ endpointSyncer: { name: 'a' } });
    expect(code).toBe(2);
    expect(err).toContain('--host-namespace');
  });
});
