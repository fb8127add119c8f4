/** Worlds on the real clusters that the global setup has started. They are shared; each world has its own names. */

import { randomBytes } from 'node:crypto';
import { TestCluster } from '../scenarios/cluster-client.ts';
import { whenAuthorized, type Authorized } from './authorization.ts';
import { World, type WorldClusters, type NewWorld, type Rule } from '../scenarios/world.ts';
import { kubeconfigFor, type RealCluster, type RealClusters } from './clusters.ts';
import { suiteClusters } from './suite-clusters.ts';

export const newRealWorld: NewWorld = (options) => World.open(realClusters(), options);

export function realClusters(): WorldClusters {
  const { virtual, host, controlUrl } = suiteClusters();
  const control = async (path: string): Promise<void> => {
    const answer = await fetch(`${controlUrl}/${path}`, { method: 'POST' });
    if (!answer.ok) throw new Error(`${path}: ${await answer.text()}`);
  };
  return {
    kind: 'real',
    virtual,
    host,
    userKubeconfig: (cluster, rules) => bindUser(cluster === 'virtual' ? virtual : host, rules),
    stop: (component) => control(`stop/${component}`),
    start: (component) => control(`start/${component}`),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

/** Clusters that a test has started for itself, without other users. */
export function ownClusters(clusters: RealClusters): WorldClusters {
  return {
    kind: 'real',
    virtual: clusters.virtual,
    host: clusters.host,
    userKubeconfig: () => Promise.reject(new Error('these clusters have no other users')),
    stop: (component) => clusters.stop(component),
    start: (component) => clusters.start(component),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

/** Takes away what the user could do before and grants exactly these rules; resolves when the API server authorizes by them. */
async function bindUser(cluster: RealCluster, rules: readonly Rule[]): Promise<string> {
  const user = 'syncer-a';
  await using admin = new TestCluster(cluster.kubeconfigPath);
  await dropBindings(admin, user);
  for (const namespace of new Set(rules.map((rule) => rule.namespace))) {
    const name = `test-${randomBytes(4).toString('hex')}`;
    const [role, binding] =
      namespace === ''
        ? (['ClusterRole', 'ClusterRoleBinding'] as const)
        : (['Role', 'RoleBinding'] as const);
    const metadata = { name, labels: { 'test-user': user }, ...(namespace === '' ? {} : { namespace }) };
    const granted = rules
      .filter((rule) => rule.namespace === namespace)
      .map(({ apiGroups, resources, verbs }) => ({
        apiGroups: [...apiGroups],
        resources: [...resources],
        verbs: [...verbs],
      }));
    await admin.create(role, { metadata, rules: granted });
    await admin.create(binding, {
      metadata,
      subjects: [{ kind: 'User', name: user, apiGroup: 'rbac.authorization.k8s.io' }],
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: role, name },
    });
    await whenAuthorized(admin, { user, namespace, rules: granted });
  }
  return kubeconfigFor(cluster, cluster.users[user] ?? '');
}

async function dropBindings(admin: TestCluster, user: string): Promise<void> {
  const dropped: Authorized[] = [];
  for (const kind of ['ClusterRoleBinding', 'RoleBinding', 'ClusterRole', 'Role'] as const) {
    for (const { metadata, rules } of await admin.list(kind, '', '?labelSelector=test-user')) {
      const { namespace = '', name } = metadata;
      await admin.delete(kind, namespace, name);
      if (Array.isArray(rules)) dropped.push({ user, namespace, rules });
    }
  }
  for (const role of dropped) await whenAuthorized(admin, role, false);
}
