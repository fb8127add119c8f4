/** The fields of a scope, which keys and tokens share. Notation: `api/schema/notation.ts`. */

import type { Descriptions } from '../../../apiserver/schema/notation.ts';

/** Lists are atomic: a scope is read as a whole, and two field managers who each own a part of it would widen it without knowing. */
export const SCOPE_TYPES = `
management.AccessKeyScope = roles []management.AccessKeyScopeRole; projects []management.AccessKeyScopeProject; spaces []management.AccessKeyScopeSpace; virtualClusters []management.AccessKeyScopeVirtualCluster; clusters []management.AccessKeyScopeCluster; rules []management.AccessKeyScopeRule; allowPlatformCli bool
management.AccessKeyScopeRole = role string; projects []string; virtualClusters []string
management.AccessKeyScopeProject = project string
management.AccessKeyScopeSpace = project string; space string
management.AccessKeyScopeVirtualCluster = project string; virtualCluster string
management.AccessKeyScopeCluster = cluster string
management.AccessKeyScopeRule = verbs []string; resources []management.GroupResources; resourceNames []string; namespaces []string; nonResourceURLs []string; requestTargets []string; cluster string; virtualClusters []management.AccessKeyVirtualCluster
management.GroupResources = group string; resources []string; resourceNames []string
management.AccessKeyVirtualCluster = name string; namespace string
`;

const EVERY = 'An empty list means every one.';

export const SCOPE_DESCRIPTIONS: Descriptions = {
  'management.AccessKeyScope':
    'The union of its entries: a request is let through when one of them reaches it. Nobody gets a right from a scope.',
  'management.AccessKeyScope.roles': 'Sets of permissions that the platform defines.',
  'management.AccessKeyScope.projects':
    'Projects with everything in them: their spaces and virtual clusters.',
  'management.AccessKeyScope.spaces': 'Single spaces of projects.',
  'management.AccessKeyScope.virtualClusters': 'Single virtual clusters of projects.',
  'management.AccessKeyScope.clusters': 'Connected clusters.',
  'management.AccessKeyScope.rules':
    'DEPRECATED: use projects, spaces and virtualClusters. Rules that match requests one by one.',
  'management.AccessKeyScope.allowPlatformCli':
    'DEPRECATED: use a roles entry whose role is platformCLI. Allows the reading requests that the command-line client needs.',
  'management.AccessKeyScopeRole': 'A set of permissions, and where it holds.',
  'management.AccessKeyScopeRole.role':
    'Name of the role. platformCLI: the reading requests that the command-line client needs.',
  'management.AccessKeyScopeRole.projects': 'Names of the projects that the role gives access to.',
  'management.AccessKeyScopeRole.virtualClusters':
    'Names of the virtual clusters that the role gives access to.',
  'management.AccessKeyScopeProject': 'A project.',
  'management.AccessKeyScopeProject.project': 'Name of the project; * means all projects.',
  'management.AccessKeyScopeSpace': 'A space of a project.',
  'management.AccessKeyScopeSpace.project': 'Name of the project that the space belongs to.',
  'management.AccessKeyScopeSpace.space': 'Name of the space; * means all spaces of the project.',
  'management.AccessKeyScopeVirtualCluster': 'A virtual cluster of a project.',
  'management.AccessKeyScopeVirtualCluster.project':
    'Name of the project that the virtual cluster belongs to.',
  'management.AccessKeyScopeVirtualCluster.virtualCluster':
    'Name of the virtual cluster; * means all virtual clusters of the project.',
  'management.AccessKeyScopeCluster': 'A connected cluster.',
  'management.AccessKeyScopeCluster.cluster': 'Name of the cluster; * means all clusters.',
  'management.AccessKeyScopeRule':
    'Matches a request when each of its lists does, as the rules of an audit policy do.',
  'management.AccessKeyScopeRule.verbs': `Verbs such as get, list or create. ${EVERY}`,
  'management.AccessKeyScopeRule.resources':
    'Kinds by API group. An empty list means all kinds of all groups.',
  'management.AccessKeyScopeRule.resourceNames': `Names of objects; needs resources to be set. ${EVERY}`,
  'management.AccessKeyScopeRule.namespaces': `Namespaces; the empty text stands for objects that have none. ${EVERY}`,
  'management.AccessKeyScopeRule.nonResourceURLs':
    'Paths that are no objects, such as /healthz. A * may only be the whole last step of a path.',
  'management.AccessKeyScopeRule.requestTargets': `Whose API the request means: Management, Cluster, ProjectSpace or ProjectVirtualCluster. ${EVERY}`,
  'management.AccessKeyScopeRule.cluster':
    'Name of the cluster. When set, only requests to that cluster match; empty means no restriction.',
  'management.AccessKeyScopeRule.virtualClusters':
    'Virtual clusters; only for requests to virtual clusters. An empty list means no restriction.',
  'management.GroupResources': 'Kinds of one API group.',
  'management.GroupResources.group': 'The API group; the empty text is the core group.',
  'management.GroupResources.resources':
    'Plural names: pods, pods/log (a subresource), pods/* (all of its subresources), */scale (this subresource of every kind), * ' +
    '(everything). An empty list means all of the group. Entries must not overlap where a wildcard is used.',
  'management.GroupResources.resourceNames': `Names of objects; needs resources to be set. ${EVERY}`,
  'management.AccessKeyVirtualCluster': 'Virtual clusters by name and namespace.',
  'management.AccessKeyVirtualCluster.name': 'Name of the virtual cluster; empty means every name.',
  'management.AccessKeyVirtualCluster.namespace':
    'Namespace of the virtual cluster; empty means every namespace.',
};
