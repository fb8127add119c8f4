/** Validation of `spec.scope`; its deprecated rules as Kubernetes validates the rules of an audit policy. */

import {
  itemErrors,
  problemErrors,
  requiredValue,
  tooManyItems,
  unsupportedValue,
  type FieldError,
  invalidValue,
} from '../../apiserver/status.ts';
import { type JsonObject, isJsonObject, listField, objectList, text } from '../../base/json.ts';
import { TARGET_KINDS, textsOf } from '../identity.ts';
import { ANY, ROLE_NAMES } from './grants.ts';
import { subdomainProblem, NAME_LENGTH_MAX, pathSegmentProblem } from '../../kube/names.ts';

const ENTRY_LISTS: readonly (readonly [list: string, fields: readonly string[]])[] = [
  ['projects', ['project']],
  ['spaces', ['project', 'space']],
  ['virtualClusters', ['project', 'virtualCluster']],
  ['clusters', ['cluster']],
];

/**
 * All errors of a scope. `scope` was decoded by the schema of the kind, so its fields have the right types; `path` is that of the scope,
 * `spec.scope`.
 */
export function validateScope(scope: JsonObject, path: string): FieldError[] {
  const excess = excessOf(scope);
  if (excess)
    return [tooManyItems(excess.list === '' ? path : `${path}.${excess.list}`, excess.count, excess.max)];
  return [
    ...itemErrors(objectList(scope, 'roles'), `${path}.roles`, roleErrors),
    ...ENTRY_LISTS.flatMap(([list, fields]) =>
      itemErrors(objectList(scope, list), `${path}.${list}`, (entry, at) =>
        fields.flatMap((field) => nameErrors(text(entry, field), `${at}.${field}`)),
      ),
    ),
    ...itemErrors(objectList(scope, 'rules'), `${path}.rules`, ruleErrors),
  ];
}

function roleErrors(role: JsonObject, path: string): FieldError[] {
  const name = text(role, 'role');
  const isKnown = ROLE_NAMES.includes(name);
  const error =
    name === '' ? requiredValue(`${path}.role`) : unsupportedValue(`${path}.role`, name, ROLE_NAMES);
  return [
    ...(isKnown ? [] : [error]),
    ...itemErrors(textsOf(role, 'projects'), `${path}.projects`, nameErrors),
    ...itemErrors(textsOf(role, 'virtualClusters'), `${path}.virtualClusters`, nameErrors),
  ];
}

// A deprecated rule. Messages and most checks are those of Kubernetes for the rules of an audit policy
// (k8s.io/apiserver/pkg/apis/audit/validation), and stricter where a rule can only be a mistake, because here it is a permission.

const URL_LENGTH_MAX = 2_048;

function ruleErrors(rule: JsonObject, path: string): FieldError[] {
  return [
    ...itemErrors(textsOf(rule, 'verbs'), `${path}.verbs`, verbErrors),
    ...itemErrors(objectList(rule, 'resources'), `${path}.resources`, resourceErrors),
    ...repeatedErrors(rule, path),
    ...resourceNameErrors(rule, path),
    ...entryErrors(rule, path),
    ...itemErrors(textsOf(rule, 'namespaces'), `${path}.namespaces`, optionalNameErrors),
    ...urlErrors(rule, `${path}.nonResourceURLs`),
    ...itemErrors(textsOf(rule, 'requestTargets'), `${path}.requestTargets`, (target, at) =>
      (TARGET_KINDS as readonly string[]).includes(target)
        ? []
        : [unsupportedValue(at, target, TARGET_KINDS)],
    ),
    ...clusterErrors(rule, path),
  ];
}

function verbErrors(verb: string, path: string): FieldError[] {
  // In an audit policy "*" is a verb of that name, which never matches.
  if (verb === ANY) return [invalidValue(path, verb, 'leave the list empty to match every verb')];
  return plainNameErrors(verb, path);
}

function resourceErrors(entry: JsonObject, path: string): FieldError[] {
  const group = text(entry, 'group');
  const resources = textsOf(entry, 'resources');
  const names = textsOf(entry, 'resourceNames');
  const shapes = itemErrors(resources, `${path}.resources`, resourceShapeErrors);
  return [
    ...problemErrors(`${path}.group`, group, group === '' ? undefined : subdomainProblem(group)),
    ...(names.length > 0 && resources.length === 0 ? [namesWithoutResource(names, path)] : []),
    ...itemErrors(names, `${path}.resourceNames`, plainNameErrors),
    ...shapes,
    ...(shapes.length > 0 ? [] : overlapErrors(resources, resources, path)),
  ];
}

function namesWithoutResource(names: readonly string[], path: string): FieldError {
  return invalidValue(`${path}.resourceNames`, names, 'using resourceNames requires at least one resource');
}

function resourceShapeErrors(resource: string, path: string): FieldError[] {
  if (resource === '') return [requiredValue(path)];
  if (resource === '*/*') return [invalidValue(path, resource, 'use "*" for all resources and subresources')];
  const parts = resource.split('/');
  const isPart = (part: string): boolean => part === ANY || (part !== '' && nameProblem(part) === undefined);
  if (parts.length <= 2 && parts.every(isPart)) return [];
  const detail = 'must be a resource, <resource>/<subresource>, "*", <resource>/* or */<subresource>';
  return [invalidValue(path, resource, detail)];
}

/** No resource may be contained in one of `others` with a wildcard, in any order. */
function overlapErrors(resources: readonly string[], others: readonly string[], path: string): FieldError[] {
  return itemErrors(resources, `${path}.resources`, (resource, at) => {
    const [name = '', subresource] = resource.split('/');
    const covering = [
      ...(resource === ANY ? [] : [ANY]),
      ...(subresource === undefined || subresource === ANY ? [] : [`${name}/*`]),
      ...(subresource === undefined || name === ANY ? [] : [`*/${subresource}`]),
    ];
    // `a/*` and `*/b` have a/b in common.
    if (subresource === ANY) covering.push(...others.filter((other) => other.startsWith('*/')));
    const found = covering.find((wildcard) => wildcard !== resource && others.includes(wildcard));
    return problemErrors(at, resource, found && `if '${found}' is present, must not specify ${resource}`);
  });
}

/** Beside a wildcard, no resource of a group is named twice in a rule. */
function repeatedErrors(rule: JsonObject, path: string): FieldError[] {
  const named = objectList(rule, 'resources').flatMap((entry, index) => {
    // An entry with names of objects covers no other one.
    const names = listField(entry, 'resourceNames').length === 0 ? '' : String(index);
    return resourcesOf(entry).map((resource, at) => ({
      among: `${text(entry, 'group')} ${names}`,
      resource,
      at: `${path}.resources[${index}].resources[${at}]`,
    }));
  });
  return [...Map.groupBy(named, ({ among }) => among).values()].flatMap((all) => {
    if (!all.some(({ resource }) => resource.includes(ANY))) return [];
    const first = new Map(all.toReversed().map(({ resource, at }) => [resource, at]));
    return all.flatMap(({ resource, at }) => {
      const earlier = first.get(resource);
      return problemErrors(at, resource, earlier === at ? undefined : `${earlier} matches the same`);
    });
  });
}

/** Without any, an entry matches all resources of its group. */
function resourcesOf(entry: JsonObject): readonly string[] {
  const resources = textsOf(entry, 'resources');
  return resources.length === 0 ? [ANY] : resources;
}

/** Resources that another entry of the rule contains, and entries of which no name is one of the rule's. */
function entryErrors(rule: JsonObject, path: string): FieldError[] {
  const entries = objectList(rule, 'resources');
  const names = textsOf(rule, 'resourceNames');
  return itemErrors(entries, `${path}.resources`, (entry, at) => {
    const others = entries.filter(
      (other) =>
        other !== entry &&
        text(other, 'group') === text(entry, 'group') &&
        listField(other, 'resourceNames').length === 0,
    );
    const wildcards = others.flatMap(resourcesOf);
    const own = textsOf(entry, 'resourceNames');
    const isUnreachable = names.length > 0 && own.length > 0 && !own.some((name) => names.includes(name));
    const never = isUnreachable ? 'never matches: none is in resourceNames of the rule' : undefined;
    return [
      ...overlapErrors(textsOf(entry, 'resources'), wildcards, at),
      ...problemErrors(`${at}.resourceNames`, own, never),
    ];
  });
}

function resourceNameErrors(rule: JsonObject, path: string): FieldError[] {
  const names = textsOf(rule, 'resourceNames');
  if (names.length === 0) return [];
  const entries = objectList(rule, 'resources');
  const hasResources = entries.every((entry) => listField(entry, 'resources').length > 0);
  if (entries.length === 0 || !hasResources) return [namesWithoutResource(names, path)];
  return itemErrors(names, `${path}.resourceNames`, plainNameErrors);
}

/** Names that are compared literally: a wildcard would silently match nothing. */
function plainNameErrors(name: string, path: string): FieldError[] {
  return name === '' ? [requiredValue(path)] : optionalNameErrors(name, path);
}

function optionalNameErrors(name: string, path: string): FieldError[] {
  if (name === '') return [];
  const problem = name === ANY ? 'wildcards are not allowed: leave the list empty' : nameProblem(name);
  return problemErrors(path, name, problem);
}

function urlErrors(rule: JsonObject, path: string): FieldError[] {
  const urls = textsOf(rule, 'nonResourceURLs');
  const isMixed = listField(rule, 'resources').length > 0 || listField(rule, 'namespaces').length > 0;
  const mixed = 'rules cannot apply to both regular resources and non-resource URLs';
  return [
    ...problemErrors(path, urls, urls.length > 0 && isMixed ? mixed : undefined),
    ...itemErrors(urls, path, (url, at) => problemErrors(at, url, urlProblem(url))),
  ];
}

function urlProblem(url: string): string | undefined {
  if (url === ANY) return undefined;
  if (!url.startsWith('/')) return "non-resource URL rules must begin with a '/' character";
  if (url.slice(0, -1).includes(ANY)) {
    return "non-resource URL wildcards '*' must be the final character of the rule";
  }
  if (url.endsWith(ANY) && !url.endsWith('/*')) return "a wildcard '*' must be the whole final path step";
  if (url.length > URL_LENGTH_MAX) return `must be no more than ${URL_LENGTH_MAX} characters`;
  return /[\p{Cc}\s]/u.test(url) ? 'must not contain spaces or control characters' : undefined;
}

/** A rule with a cluster allows no requests to virtual clusters, and the kind of what a rule names is among its targets. */
function clusterErrors(rule: JsonObject, path: string): FieldError[] {
  const cluster = text(rule, 'cluster');
  const entries = objectList(rule, 'virtualClusters');
  const targets = textsOf(rule, 'requestTargets');
  const isOfBoth = cluster !== '' && entries.length > 0;
  const never = isOfBoth ? 'never matches: cluster allows requests to that cluster only' : undefined;
  const missing = (isNamed: boolean, kind: string, field: string): FieldError[] => {
    const isReachable = !isNamed || targets.length === 0 || targets.includes(kind);
    const problem = isReachable ? undefined : `must contain ${kind}, or ${field} never matches`;
    return problemErrors(`${path}.requestTargets`, targets, problem);
  };
  return [
    ...optionalNameErrors(cluster, `${path}.cluster`),
    ...problemErrors(`${path}.virtualClusters`, entries, never),
    ...missing(cluster !== '', 'Cluster', 'cluster'),
    ...missing(entries.length > 0, 'ProjectVirtualCluster', 'virtualClusters'),
    ...itemErrors(entries, `${path}.virtualClusters`, (entry, at) =>
      ['name', 'namespace'].flatMap((field) => optionalNameErrors(text(entry, field), `${at}.${field}`)),
    ),
  ];
}

/** A name that can be a segment of a URL, or {@link ANY}. */
function nameErrors(name: string, path: string): FieldError[] {
  if (name === '') return [requiredValue(path, 'a name, or * for all')];
  return problemErrors(path, name, name === ANY ? undefined : nameProblem(name));
}

function nameProblem(name: string): string | undefined {
  if (name.length > NAME_LENGTH_MAX) return `must be no more than ${NAME_LENGTH_MAX} characters`;
  if (name.includes(ANY)) return 'a wildcard must be the whole name: *';
  if (/[\p{Cc}\p{Zs}\p{Zl}\p{Zp}]/u.test(name)) return 'must not contain spaces or control characters';
  return pathSegmentProblem(name);
}

// Limits on the size of a scope: they bound the time of a decision and of the comparison of two scopes.

/** List items in a scope without its rules; a role counts each of its virtual clusters in each of its projects. */
export const SCOPE_ENTRIES_MAX = 1_000;
/** List items in all rules of a scope: a comparison is quadratic in the rules. */
export const RULE_ENTRIES_MAX = 200;

interface ScopeExcess {
  /** `''`: the whole scope, else the list. */
  readonly list: '' | 'rules';
  readonly count: number;
  readonly max: number;
}

/** The limit that the scope exceeds; undefined: none. Accepts scopes that were not validated. */
export function excessOf(scope: JsonObject): ScopeExcess | undefined {
  const entries = countEntries(scope);
  if (entries > SCOPE_ENTRIES_MAX) return { list: '', count: entries, max: SCOPE_ENTRIES_MAX };
  const rules = objectList(scope, 'rules').reduce((count, rule) => count + 1 + countRule(rule), 0);
  return rules > RULE_ENTRIES_MAX ? { list: 'rules', count: rules, max: RULE_ENTRIES_MAX } : undefined;
}

function countEntries(scope: JsonObject): number {
  let count = 0;
  for (const list of ['roles', 'projects', 'spaces', 'virtualClusters', 'clusters']) {
    count += listField(scope, list).length;
  }
  for (const role of objectList(scope, 'roles')) {
    const [projects, names] = [listField(role, 'projects').length, listField(role, 'virtualClusters').length];
    count += Math.max(projects + names, projects * names);
  }
  return count;
}

const RULE_LISTS = [
  'verbs',
  'resources',
  'resourceNames',
  'namespaces',
  'nonResourceURLs',
  'requestTargets',
  'virtualClusters',
];

function countRule(rule: JsonObject): number {
  let count = 0;
  for (const list of RULE_LISTS) count += listField(rule, list).length;
  for (const entry of objectList(rule, 'resources')) {
    count += listField(entry, 'resources').length + listField(entry, 'resourceNames').length;
  }
  return count;
}

/** Deprecated fields with their replacement, and a scope that allows nothing. `path`: the field of the scope. */
export function scopeWarnings(scope: unknown, path: string): readonly string[] {
  if (!isJsonObject(scope)) return [];
  const warnings: string[] = [];
  if (Array.isArray(scope['rules']) && scope['rules'].length > 0) {
    warnings.push(
      `${path}.rules is deprecated: use ${path}.projects, ${path}.spaces and ${path}.virtualClusters`,
    );
  }
  if (scope['allowPlatformCli'] === true) {
    warnings.push(
      `${path}.allowPlatformCli is deprecated: use an entry of ${path}.roles whose role is platformCLI`,
    );
  }
  const isEmpty = Object.values(scope).every(
    (value) => value === false || (Array.isArray(value) && value.length === 0),
  );
  if (isEmpty) warnings.push(`${path} has no entries and allows nothing: omit it for no restriction`);
  return warnings;
}

// The fields of a scope, which keys and tokens share. Notation: `apiserver/schema/object-schema.ts`.

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
management.AccessKeyScope: Restricts which requests are allowed: those that at least one entry matches. A scope grants no rights.
management.AccessKeyScope.roles: Managed permissions.
management.AccessKeyScope.projects: Projects, including all their spaces and virtual clusters.
management.AccessKeyScope.spaces: Spaces of projects.
management.AccessKeyScope.virtualClusters: Virtual clusters of projects.
management.AccessKeyScope.clusters: Connected clusters.
management.AccessKeyScope.rules: DEPRECATED: use projects, spaces and virtualClusters. Rules that match requests.
management.AccessKeyScope.allowPlatformCli: DEPRECATED: use a roles entry whose role is platformCLI. Allows the read-only requests of the command-line client.
management.AccessKeyScopeRole: A managed permission, and the projects and virtual clusters that it gives access to.
management.AccessKeyScopeRole.role: Name of the role. platformCLI allows the read-only requests of the command-line client.
management.AccessKeyScopeRole.projects: Names of the projects that the role gives access to.
management.AccessKeyScopeRole.virtualClusters: Names of the virtual clusters that the role gives access to.
management.AccessKeyScopeProject: A project.
management.AccessKeyScopeProject.project: Name of the project. * selects all projects.
management.AccessKeyScopeSpace: A space of a project.
management.AccessKeyScopeSpace.project: Name of the project that the space belongs to.
management.AccessKeyScopeSpace.space: Name of the space. * selects all spaces of the project.
management.AccessKeyScopeVirtualCluster: A virtual cluster of a project.
management.AccessKeyScopeVirtualCluster.project: Name of the project that the virtual cluster belongs to.
management.AccessKeyScopeVirtualCluster.virtualCluster: Name of the virtual cluster. * selects all virtual clusters of the project.
management.AccessKeyScopeCluster: A connected cluster.
management.AccessKeyScopeCluster.cluster: Name of the cluster. * selects all clusters.
management.AccessKeyScopeRule: Matches a request if each of its fields matches, like a rule of an audit policy.
management.AccessKeyScopeRule.verbs: Verbs such as get, list or create. An empty list matches all.
management.AccessKeyScopeRule.resources: Resources by API group. An empty list matches all resources of all groups.
management.AccessKeyScopeRule.resourceNames: Names of objects. Requires resources to be specified. An empty list matches all.
management.AccessKeyScopeRule.namespaces: Namespaces. An empty string matches cluster-scoped resources. An empty list matches all.
management.AccessKeyScopeRule.nonResourceURLs: URL paths that are not resources, such as /healthz. A * is allowed only as the full, final path step.
management.AccessKeyScopeRule.requestTargets: Targets of requests: Management, Cluster, ProjectSpace or ProjectVirtualCluster. An empty list matches all.
management.AccessKeyScopeRule.cluster: Name of the cluster. If set, only requests to that cluster match. Empty means no restriction.
management.AccessKeyScopeRule.virtualClusters: Virtual clusters, for requests to virtual clusters. An empty list means no restriction.
management.GroupResources: Resources of one API group.
management.GroupResources.group: API group. An empty string is the core group.
management.GroupResources.resources: Resources: pods, pods/log (a subresource), pods/* (all subresources of pods), */scale (a subresource of any resource) or * (all resources and subresources). An empty list matches all resources of the group. Entries of a group must not overlap if one has a wildcard.
management.GroupResources.resourceNames: Names of objects. Requires resources to be specified. An empty list matches all.
management.AccessKeyVirtualCluster: Virtual clusters by name and namespace.
management.AccessKeyVirtualCluster.name: Name of the virtual cluster. Empty matches all.
management.AccessKeyVirtualCluster.namespace: Namespace of the virtual cluster. Empty matches all.
`;
