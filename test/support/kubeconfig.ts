/** Kubeconfigs of tests: one cluster, one user. */

/** JSON, which is YAML. `name` is that of the cluster, its context and its user. */
export function kubeconfigText(name: string, cluster: object, user: object): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name, cluster }],
    users: [{ name, user }],
    contexts: [{ name, context: { cluster: name, user: name } }],
    'current-context': name,
  });
}
