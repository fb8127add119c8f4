/** `rbac`: the roles that a configuration needs, as manifests or as values of vCluster's chart. */

import { type Command, Option } from 'commander';
import { formatJson, formatOption } from './output/listing.ts';
import type { JsonObject, JsonValue } from '../base/json.ts';
import { loadConfig } from './config/load.ts';
import type { Config } from '../syncer/config/config.ts';
import type { ClusterName } from '../kube/types.ts';
import { neededGrants, type Grant } from '../fleet/granted-rights.ts';
import { addConfigOptions, ALL_FIELDS, loaderInput } from './config-options.ts';
import { type ExitWith, usageError, tell } from './output/terminal.ts';

interface RbacOptions {
  readonly cluster?: ClusterName;
  readonly as: 'role' | 'clusterrole' | 'vcluster-values';
  readonly serviceAccount: string;
  readonly output: string;
}

export function define(command: Command, exitWith: ExitWith): void {
  addConfigOptions(command, ALL_FIELDS);
  command
    .addOption(
      new Option('--cluster <cluster>', 'only the roles of one cluster').choices(['host', 'virtual']),
    )
    .addOption(
      new Option('--as <form>', "Roles where possible, only ClusterRoles, or values of vCluster's chart")
        .choices(['role', 'clusterrole', 'vcluster-values'])
        .default('role'),
    )
    .option('--service-account <name>', 'name of the ServiceAccount in each cluster', 'endpoint-syncer')
    .addOption(formatOption(['yaml', 'json']))
    .action((options: RbacOptions) => exitWith(() => run(command, options)));
}

async function run(command: Command, options: RbacOptions): Promise<number> {
  const { config } = await loadConfig({ ...loaderInput(command), acceptsFleet: true });
  const problem = usageProblem(config, options);
  if (problem !== undefined) return usageError(problem);
  if (config.fleet.enabled)
    tell(
      'note: a member whose patches import objects by references needs rights to create, update and delete objects of these kinds in its namespace, which are not in here',
    );
  const { grants, openKinds } = neededGrants(config);
  if (openKinds.length > 0) {
    tell(
      `note: a patch reads the kind of a reference from the object; add rights for the kinds that it may name: ${openKinds.join(', ')}`,
    );
  }
  const others = otherNamespaces(grants, config);
  if (options.as === 'vcluster-values' && others.length > 0) {
    tell(
      `note: vCluster's chart grants no rights in namespace "${others.join('", "')}": apply the Role for it that --as role prints`,
    );
  }
  process.stdout.write(print(grants, config.host.namespace, options));
  return 0;
}

/** Namespaces of the host, other than the host namespace of the virtual cluster, in which the configuration needs rights. */
function otherNamespaces(grants: readonly Grant[], { host }: Config): readonly string[] {
  const namespaces = grants.filter(({ cluster }) => cluster === 'host').map(({ namespace }) => namespace);
  return namespaces.filter((namespace) => !['', host.namespace].includes(namespace));
}

function usageProblem({ host, fleet }: Config, { as, cluster }: RbacOptions): string | undefined {
  const whose = fleet.enabled ? 'namespace of the fleet' : 'host namespace of the virtual cluster';
  if (host.namespace === '')
    return `the ${whose} is not known; set --host-namespace or endpointSyncer.host.namespace`;
  if (fleet.enabled && (as === 'vcluster-values' || cluster === 'virtual'))
    return 'a fleet has rights on the host alone, in no vCluster; omit --cluster, and use --as role or clusterrole';
  return as === 'vcluster-values' && cluster === 'virtual'
    ? "the values of vCluster's chart grant no rights in the virtual cluster; omit --cluster, or use --as role"
    : undefined;
}

function print(
  needed: readonly Grant[],
  hostNamespace: string,
  { as: form, cluster, serviceAccount, output }: RbacOptions,
): string {
  const grants = needed.filter((grant) => cluster === undefined || grant.cluster === cluster);
  if (form === 'vcluster-values') return formatJson(vclusterValues(grants, hostNamespace), output);
  const documents = rbacDocuments(grants, { serviceAccount, hostNamespace, form });
  if (output === 'json') return formatJson({ apiVersion: 'v1', kind: 'List', items: [...documents] }, output);
  return documents.map((document) => formatJson(document, output)).join('---\n');
}

interface DocumentOptions {
  readonly serviceAccount: string;
  readonly hostNamespace: string;
  /** `clusterrole`: every role is a ClusterRole; a RoleBinding restricts it to a namespace where that suffices. */
  readonly form: 'role' | 'clusterrole';
}

/** Namespace of the ServiceAccount in the virtual cluster. Every cluster has it, and tenants do not use it. */
const VIRTUAL_NAMESPACE = 'kube-system';
const RBAC = 'rbac.authorization.k8s.io';

function rbacDocuments(grants: readonly Grant[], options: DocumentOptions): readonly JsonObject[] {
  const clusters = [...new Set(grants.map(({ cluster }) => cluster))];
  return clusters.flatMap((cluster) => [
    serviceAccount(cluster, options),
    ...grants.filter((grant) => grant.cluster === cluster).flatMap((grant) => roleAndBinding(grant, options)),
  ]);
}

/** The host's grants as `rbac` in the values of vCluster's chart; a sidecar uses that chart's ServiceAccount. */
function vclusterValues(grants: readonly Grant[], hostNamespace: string): JsonObject {
  const rulesIn = (namespace: string): JsonValue[] =>
    grants
      .filter((grant) => grant.cluster === 'host' && grant.namespace === namespace)
      .flatMap(({ rules }) => rules);
  const [own, everywhere] = [rulesIn(hostNamespace), rulesIn('')];
  return {
    rbac: {
      ...(own.length === 0 ? {} : { role: { extraRules: own } }),
      ...(everywhere.length === 0 ? {} : { clusterRole: { enabled: true, extraRules: everywhere } }),
    },
  };
}

function serviceAccount(cluster: ClusterName, options: DocumentOptions): JsonObject {
  const metadata = { name: options.serviceAccount, namespace: accountNamespace(cluster, options) };
  return { apiVersion: 'v1', kind: 'ServiceAccount', metadata };
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
  const apiVersion = `${RBAC}/v1`;
  const metadata = isClusterRole ? { name } : { name, namespace };
  const roleRef = { apiGroup: RBAC, kind, name };
  const binding =
    namespace === ''
      ? { kind: 'ClusterRoleBinding', metadata: { name } }
      : { kind: 'RoleBinding', metadata: { name: namespace === hostNamespace ? account : name, namespace } };
  return [
    { apiVersion, kind, metadata, rules: [...rules] },
    { apiVersion, ...binding, roleRef, subjects: [subject] },
  ];
}

function sharedName({ serviceAccount: account, hostNamespace }: DocumentOptions, namespace: string): string {
  const name = `${account}:${hostNamespace}`;
  return namespace === '' ? name : `${name}:${namespace}`;
}

function accountNamespace(cluster: ClusterName, { hostNamespace }: DocumentOptions): string {
  return cluster === 'host' ? hostNamespace : VIRTUAL_NAMESPACE;
}
