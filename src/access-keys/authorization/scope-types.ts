/** The fields of a scope, which keys and tokens share. Notation: `apiserver/schema/object-schema.ts`. */

import type { Descriptions } from '../../apiserver/schema/object-schema.ts';

/** Lists are atomic: two field managers that each own entries of a scope would widen it together without a conflict. */
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

const EVERY = 'An empty list matches all.';

export const SCOPE_DESCRIPTIONS: Descriptions = {
  'management.AccessKeyScope':
    'Restricts which requests are allowed: those that at least one entry matches. A scope grants no rights.',
  'management.AccessKeyScope.roles': 'Managed permissions.',
  'management.AccessKeyScope.projects': 'Projects, including all their spaces and virtual clusters.',
  'management.AccessKeyScope.spaces': 'Spaces of projects.',
  'management.AccessKeyScope.virtualClusters': 'Virtual clusters of projects.',
  'management.AccessKeyScope.clusters': 'Connected clusters.',
  'management.AccessKeyScope.rules':
    'DEPRECATED: use projects, spaces and virtualClusters. Rules that match requests.',
  'management.AccessKeyScope.allowPlatformCli':
    'DEPRECATED: use a roles entry whose role is platformCLI. Allows the read-only requests of the command-line client.',
  'management.AccessKeyScopeRole':
    'A managed permission, and the projects and virtual clusters that it gives access to.',
  'management.AccessKeyScopeRole.role':
    'Name of the role. platformCLI allows the read-only requests of the command-line client.',
  'management.AccessKeyScopeRole.projects': 'Names of the projects that the role gives access to.',
  'management.AccessKeyScopeRole.virtualClusters':
    'Names of the virtual clusters that the role gives access to.',
  'management.AccessKeyScopeProject': 'A project.',
  'management.AccessKeyScopeProject.project': 'Name of the project. * selects all projects.',
  'management.AccessKeyScopeSpace': 'A space of a project.',
  'management.AccessKeyScopeSpace.project': 'Name of the project that the space belongs to.',
  'management.AccessKeyScopeSpace.space': 'Name of the space. * selects all spaces of the project.',
  'management.AccessKeyScopeVirtualCluster': 'A virtual cluster of a project.',
  'management.AccessKeyScopeVirtualCluster.project':
    'Name of the project that the virtual cluster belongs to.',
  'management.AccessKeyScopeVirtualCluster.virtualCluster':
    'Name of the virtual cluster. * selects all virtual clusters of the project.',
  'management.AccessKeyScopeCluster': 'A connected cluster.',
  'management.AccessKeyScopeCluster.cluster': 'Name of the cluster. * selects all clusters.',
  'management.AccessKeyScopeRule':
    'Matches a request if each of its fields matches, like a rule of an audit policy.',
  'management.AccessKeyScopeRule.verbs': `Verbs such as get, list or create. ${EVERY}`,
  'management.AccessKeyScopeRule.resources':
    'Resources by API group. An empty list matches all resources of all groups.',
  'management.AccessKeyScopeRule.resourceNames': `Names of objects. Requires resources to be specified. ${EVERY}`,
  'management.AccessKeyScopeRule.namespaces': `Namespaces. An empty string matches cluster-scoped resources. ${EVERY}`,
  'management.AccessKeyScopeRule.nonResourceURLs':
    'URL paths that are not resources, such as /healthz. A * is allowed only as the full, final path step.',
  'management.AccessKeyScopeRule.requestTargets': `Targets of requests: Management, Cluster, ProjectSpace or ProjectVirtualCluster. ${EVERY}`,
  'management.AccessKeyScopeRule.cluster':
    'Name of the cluster. If set, only requests to that cluster match. Empty means no restriction.',
  'management.AccessKeyScopeRule.virtualClusters':
    'Virtual clusters, for requests to virtual clusters. An empty list means no restriction.',
  'management.GroupResources': 'Resources of one API group.',
  'management.GroupResources.group': 'API group. An empty string is the core group.',
  'management.GroupResources.resources':
    'Resources: pods, pods/log (a subresource), pods/* (all subresources of pods), */scale (a subresource of any resource) or * (all ' +
    'resources and subresources). An empty list matches all resources of the group. Entries must not overlap if one has a wildcard.',
  'management.GroupResources.resourceNames': `Names of objects. Requires resources to be specified. ${EVERY}`,
  'management.AccessKeyVirtualCluster': 'Virtual clusters by name and namespace.',
  'management.AccessKeyVirtualCluster.name': 'Name of the virtual cluster. Empty matches all.',
  'management.AccessKeyVirtualCluster.namespace': 'Namespace of the virtual cluster. Empty matches all.',
};
