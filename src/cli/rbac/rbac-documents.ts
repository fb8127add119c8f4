/** Grants as manifests, or as values of vCluster's chart. Pure. */

import type { JsonObject, JsonValue } from '../../base/json.ts';
import type { ClusterName } from '../../kube/types.ts';
import type { Grant, PolicyRule } from './rbac-rules.ts';

export interface DocumentOptions {
  readonly serviceAccount: string;
  readonly hostNamespace: string;
  /** `clusterrole`: every role is a ClusterRole; a RoleBinding restricts it to a namespace where that suffices. */
  readonly form: 'role' | 'clusterrole';
}

/** Namespace of the ServiceAccount in the virtual cluster. Every cluster has it, and tenants do not use it. */
const VIRTUAL_NAMESPACE = 'kube-system';
const RBAC = 'rbac.authorization.k8s.io';

/** A ServiceAccount for each cluster, with a role and its binding for each grant. */
export function rbacDocuments(grants: readonly Grant[], options: DocumentOptions): readonly JsonObject[] {
  const clusters = [...new Set(grants.map(({ cluster }) => cluster))];
  return clusters.flatMap((cluster) => [
    serviceAccount(cluster, options),
    ...grants.filter((grant) => grant.cluster === cluster).flatMap((grant) => roleAndBinding(grant, options)),
  ]);
}

/** The host's grants as `rbac` in the values of vCluster's chart; a sidecar uses that chart's ServiceAccount. */
export function vclusterValues(grants: readonly Grant[], hostNamespace: string): JsonObject {
  const rulesIn = (namespace: string): JsonValue[] =>
    grants
      .filter((grant) => grant.cluster === 'host' && grant.namespace === namespace)
      .flatMap(({ rules }) => rules.map(asJson));
  const [own, everywhere] = [rulesIn(hostNamespace), rulesIn('')];
  return {
    rbac: {
      ...(own.length === 0 ? {} : { role: { extraRules: own } }),
      ...(everywhere.length === 0 ? {} : { clusterRole: { enabled: true, extraRules: everywhere } }),
    },
  };
}

function serviceAccount(cluster: ClusterName, options: DocumentOptions): JsonObject {
  return {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: options.serviceAccount, namespace: accountNamespace(cluster, options) },
  };
}

function roleAndBinding(
  { cluster, namespace, rules }: Grant,
  options: DocumentOptions,
): readonly JsonObject[] {
  const { serviceAccount: account, hostNamespace, form } = options;
  const isClusterRole = namespace === '' || form === 'clusterrole';
  const kind = isClusterRole ? 'ClusterRole' : 'Role';
  // Syncers of several host namespaces share the names of other namespaces and of cluster-scoped objects.
  const isShared = cluster === 'host' && (isClusterRole || namespace !== hostNamespace);
  const name = isShared ? sharedName(options, form === 'clusterrole' ? namespace : '') : account;
  const subject = { kind: 'ServiceAccount', name: account, namespace: accountNamespace(cluster, options) };
  return [
    {
      apiVersion: `${RBAC}/v1`,
      kind,
      metadata: isClusterRole ? { name } : { name, namespace },
      rules: rules.map(asJson),
    },
    {
      apiVersion: `${RBAC}/v1`,
      kind: namespace === '' ? 'ClusterRoleBinding' : 'RoleBinding',
      metadata:
        namespace === '' ? { name } : { name: namespace === hostNamespace ? account : name, namespace },
      roleRef: { apiGroup: RBAC, kind, name },
      subjects: [subject],
    },
  ];
}

function sharedName({ serviceAccount: account, hostNamespace }: DocumentOptions, namespace: string): string {
  const name = `${account}:${hostNamespace}`;
  return namespace === '' ? name : `${name}:${namespace}`;
}

function accountNamespace(cluster: ClusterName, { hostNamespace }: DocumentOptions): string {
  return cluster === 'host' ? hostNamespace : VIRTUAL_NAMESPACE;
}

function asJson({ apiGroups, resources, resourceNames, verbs }: PolicyRule): JsonObject {
  return {
    apiGroups: [...apiGroups],
    resources: [...resources],
    ...(resourceNames === undefined ? {} : { resourceNames: [...resourceNames] }),
    verbs: [...verbs],
  };
}
