/**
 * Parses a scope into grants.
 *
 * - `projects`: everything in all spaces and virtual clusters of the project. `spaces`, `virtualClusters`, `clusters`: everything in these.
 * - `roles`: the read-only requests of the role to the management API. Its `projects` are like entries of `projects`; with `virtualClusters`,
 *   only these virtual clusters of the projects, or of every project if the role names none.
 * - A scope that contains a target outside the management API includes creating tokens, reviews of the caller itself and discovery.
 * - `rules`: matched as rules of an audit policy, with two differences: `r/*` is the subresources of r without r itself, and a rule that names
 *   a cluster matches only requests to this cluster, one that names virtual clusters only requests to these.
 */

import type { Scope, ScopeRole, ScopeRule } from '../types.ts';
import { ANY, EVERYTHING, type Grant, type RequestPattern, type TargetPattern } from './grants.ts';
import { CLI_REQUESTS, ROLE_NAMES, TOKEN_REQUESTS } from './roles.ts';
import { excessOf } from './scope-validation.ts';
import { TARGET_KINDS } from './target.ts';
import { isJsonObject, type JsonValue, ownValue } from '../../base/json.ts';

const MANAGEMENT: readonly TargetPattern[] = [{ kind: 'Management' }];

/** No grants for a value that is not a scope. */
export function grantsOf(scope: unknown): readonly Grant[] {
  if (!isScope(scope)) return [];
  const entries = entryGrants(scope);
  const roles = (scope.roles ?? []).map((role, index) => roleGrants(role, `roles[${index}]`));
  const containsTarget = entries.length > 0 || roles.some((grants) => grants.some(isOutside));
  return [
    ...entries,
    ...roles.flat(),
    ...(scope.allowPlatformCli === true ? requests('allowPlatformCli', CLI_REQUESTS) : []),
    ...(containsTarget ? requests('', TOKEN_REQUESTS) : []),
    ...(scope.rules ?? []).flatMap((rule, index) => ruleGrants(rule, `rules[${index}]`)),
  ];
}

function isOutside({ targets }: Grant): boolean {
  return targets.some(({ kind }) => kind !== 'Management');
}

function requests(place: string, patterns: readonly RequestPattern[]): Grant[] {
  return patterns.map((pattern) => ({ place, targets: MANAGEMENT, requests: pattern }));
}

function entryGrants(scope: Scope): Grant[] {
  const everything = (place: string, targets: readonly TargetPattern[]): Grant[] =>
    targets.length === 0 ? [] : [{ place, targets, requests: EVERYTHING }];
  return [
    ...(scope.projects ?? []).flatMap(({ project }, index) =>
      everything(`projects[${index}]`, projectTargets(project)),
    ),
    ...(scope.spaces ?? []).flatMap(({ project, space }, index) =>
      everything(`spaces[${index}]`, spaceTargets(project, space)),
    ),
    ...(scope.virtualClusters ?? []).flatMap(({ project, virtualCluster }, index) =>
      everything(`virtualClusters[${index}]`, virtualClusterTargets(project, virtualCluster)),
    ),
    ...(scope.clusters ?? []).flatMap(({ cluster }, index) =>
      everything(`clusters[${index}]`, clusterTargets(cluster)),
    ),
  ];
}

function roleGrants({ role = '', projects = [], virtualClusters = [] }: ScopeRole, place: string): Grant[] {
  if (!ROLE_NAMES.includes(role)) return [];
  const targets =
    virtualClusters.length === 0
      ? projects.flatMap(projectTargets)
      : (projects.length === 0 ? [ANY] : projects).flatMap((project) =>
          virtualClusters.flatMap((name) => virtualClusterTargets(project, name)),
        );
  const reached: Grant[] = targets.length === 0 ? [] : [{ place, targets, requests: EVERYTHING }];
  return [...reached, ...requests(place, CLI_REQUESTS)];
}

function projectTargets(project: string | undefined): TargetPattern[] {
  return [...spaceTargets(project, ANY), ...virtualClusterTargets(project, ANY)];
}

// An entry without a name names nothing.
function spaceTargets(project = '', space = ''): TargetPattern[] {
  return project === '' || space === '' ? [] : [{ kind: 'ProjectSpace', project, space }];
}

function virtualClusterTargets(project = '', virtualCluster = ''): TargetPattern[] {
  if (project === '' || virtualCluster === '') return [];
  return [{ kind: 'ProjectVirtualCluster', project, virtualCluster }];
}

function clusterTargets(cluster = ''): TargetPattern[] {
  return cluster === '' ? [] : [{ kind: 'Cluster', cluster }];
}

function ruleGrants(rule: ScopeRule, place: string): Grant[] {
  const targets = ruleTargets(rule);
  if (targets.length === 0) return [];
  return rulePatterns(rule).map((pattern) => ({ place, targets, requests: pattern }));
}

/** The namespace of a project's virtual clusters is `p-` and the project. */
const PROJECT_NAMESPACE = 'p-';

function ruleTargets(rule: ScopeRule): TargetPattern[] {
  const kinds: readonly string[] = isListed(rule.requestTargets) ? rule.requestTargets : TARGET_KINDS;
  const hasCluster = rule.cluster !== undefined && rule.cluster !== '';
  if (hasCluster) return kinds.includes('Cluster') ? clusterTargets(rule.cluster) : [];
  if (isListed(rule.virtualClusters))
    return kinds.includes('ProjectVirtualCluster') ? rule.virtualClusters.flatMap(ruleVirtualCluster) : [];
  return [
    ...(kinds.includes('Management') ? MANAGEMENT : []),
    ...(kinds.includes('Cluster') ? clusterTargets(ANY) : []),
    ...(kinds.includes('ProjectSpace') ? spaceTargets(ANY, ANY) : []),
    ...(kinds.includes('ProjectVirtualCluster') ? virtualClusterTargets(ANY, ANY) : []),
  ];
}

function ruleVirtualCluster({
  name = '',
  namespace = '',
}: {
  name?: string;
  namespace?: string;
}): TargetPattern[] {
  const virtualCluster = name === '' ? ANY : name;
  if (namespace === '') return virtualClusterTargets(ANY, virtualCluster);
  if (!namespace.startsWith(PROJECT_NAMESPACE)) return [];
  return virtualClusterTargets(namespace.slice(PROJECT_NAMESPACE.length), virtualCluster);
}

function rulePatterns(rule: ScopeRule): RequestPattern[] {
  const verbs = setOf(rule.verbs);
  const namespaces = setOf(rule.namespaces);
  const names = setOf(rule.resourceNames);
  const base: RequestPattern = { ...EVERYTHING, verbs, namespaces, names };
  if (isListed(rule.resources)) {
    return rule.resources.flatMap(({ group = '', resources, resourceNames }) => {
      const both = intersection(names, setOf(resourceNames));
      if (both?.size === 0) return [];
      const listed = isListed(resources) ? resources : [ANY];
      return listed.map((resource) => ({ ...base, form: 'resource', group, resource, names: both }) as const);
    });
  }
  if (namespaces || names) return [{ ...base, form: 'resource' }];
  if (isListed(rule.nonResourceURLs)) {
    return rule.nonResourceURLs.map((url) => ({ ...base, form: 'path', url }) as const);
  }
  return [base];
}

/** An empty list is no restriction, like an absent one. */
function isListed<T>(list: readonly T[] | undefined): list is readonly T[] {
  return list !== undefined && list.length > 0;
}

function setOf(list: readonly string[] | undefined): ReadonlySet<string> | undefined {
  return isListed(list) ? new Set(list) : undefined;
}

function intersection(
  a: ReadonlySet<string> | undefined,
  b: ReadonlySet<string> | undefined,
): ReadonlySet<string> | undefined {
  if (!a || !b) return a ?? b;
  return new Set([...a].filter((item) => b.has(item)));
}

type Check = (value: JsonValue) => boolean;

const isText: Check = (value) => typeof value === 'string';
const listOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check);
const fieldsOf =
  (checks: Readonly<Record<string, Check>>): Check =>
  (value) => {
    if (!isJsonObject(value)) return false;
    return Object.entries(checks).every(([field, check]) => {
      const member = ownValue(value, field);
      return member === undefined || check(member);
    });
  };

const texts = listOf(isText);

const checkScope = fieldsOf({
  roles: listOf(fieldsOf({ role: isText, projects: texts, virtualClusters: texts })),
  projects: listOf(fieldsOf({ project: isText })),
  spaces: listOf(fieldsOf({ project: isText, space: isText })),
  virtualClusters: listOf(fieldsOf({ project: isText, virtualCluster: isText })),
  clusters: listOf(fieldsOf({ cluster: isText })),
  rules: listOf(
    fieldsOf({
      verbs: texts,
      resources: listOf(fieldsOf({ group: isText, resources: texts, resourceNames: texts })),
      resourceNames: texts,
      namespaces: texts,
      nonResourceURLs: texts,
      requestTargets: texts,
      cluster: isText,
      virtualClusters: listOf(fieldsOf({ name: isText, namespace: isText })),
    }),
  ),
  allowPlatformCli: (value) => typeof value === 'boolean',
});

function isScope(value: unknown): value is Scope {
  return isJsonObject(value) && checkScope(value) && excessOf(value) === undefined;
}
