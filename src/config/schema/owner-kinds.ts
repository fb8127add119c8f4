/** Kinds of owners whose apiVersion is optional in the configuration. */

export const OWNER_API_VERSIONS: ReadonlyMap<string, string> = new Map([
  ['Pod', 'v1'],
  ['Service', 'v1'],
  ['ConfigMap', 'v1'],
  ['Secret', 'v1'],
  ['ServiceAccount', 'v1'],
  ['StatefulSet', 'apps/v1'],
  ['Deployment', 'apps/v1'],
  ['DaemonSet', 'apps/v1'],
  ['ReplicaSet', 'apps/v1'],
]);
