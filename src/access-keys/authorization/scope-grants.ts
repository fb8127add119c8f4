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

import type { Scope, ScopeRole, ScopeRule } from '../identity.ts';
import {
  ANY,
  EVERYTHING,
  type Grant,
  type RequestPattern,
  type TargetPattern,
  CLI_REQUESTS,
  ROLE_NAMES,
  TOKEN_REQUESTS,
  TARGET_KINDS,
  holdsResource,
  holdsTarget,
  holdsUrl,
  targetText,
} from './grants.ts';
import { excessOf } from './scope-validation.ts';
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

// Whether one scope contains another: a key creates nothing with a wider scope. Sound: the outer scope allows everything that the inner scope
// allows. Not complete: several outer rules are never combined to contain one inner rule.

/** The first entry that exceeds the outer scope. */
export interface WiderEntry {
  /** Relative to the scope, `projects[0]`; `''`: the scope as a whole. */
  readonly path: string;
  /** Why, for a message. */
  readonly text: string;
}

/** The entry of `inner` that exceeds `outer`; undefined: none. An absent scope is no restriction. */
export function widerThan(inner: Scope | undefined, outer: Scope | undefined): WiderEntry | undefined {
  if (outer === undefined) return undefined;
  if (inner === undefined) return { path: '', text: 'without a scope there is no restriction' };
  const grants = grantsOf(outer);
  const whole = wholeTargets(grants);
  const partial = grants.filter(({ requests }) => requests !== EVERYTHING);
  for (const { place, targets, requests } of grantsOf(inner)) {
    for (const target of targets) {
      if (namesHolding(target).some((name) => whole.has(name))) continue;
      if (partial.some((grant) => holds(grant, target, requests))) continue;
      return { path: place, text: `allows more in ${targetText(target)} than the scope of the caller` };
    }
  }
  return undefined;
}

/** The targets with all requests granted, by name: these lists can be long. */
function wholeTargets(grants: readonly Grant[]): ReadonlySet<string> {
  const whole = grants.filter(({ requests }) => requests === EVERYTHING);
  return new Set(whole.flatMap(({ targets }) => targets.map((target) => JSON.stringify(namesOf(target)))));
}

function namesOf(target: TargetPattern): readonly string[] {
  switch (target.kind) {
    case 'Management':
      return [target.kind];
    case 'Cluster':
      return [target.kind, target.cluster];
    case 'ProjectSpace':
      return [target.kind, target.project, target.space];
    case 'ProjectVirtualCluster':
      return [target.kind, target.project, target.virtualCluster];
  }
}

/** The target itself, and every pattern with wildcards that matches it. */
function namesHolding(target: TargetPattern): string[] {
  const [kind = '', ...names] = namesOf(target);
  let patterns = [[kind]];
  for (const name of names)
    patterns = patterns.flatMap((start) => [
      [...start, name],
      [...start, ANY],
    ]);
  return patterns.map((pattern) => JSON.stringify(pattern));
}

function holds(outer: Grant, target: TargetPattern, requests: RequestPattern): boolean {
  return (
    outer.targets.some((pattern) => holdsTarget(pattern, target)) && holdsRequests(outer.requests, requests)
  );
}

function holdsRequests(outer: RequestPattern, inner: RequestPattern): boolean {
  if (!holdsSet(outer.verbs, inner.verbs)) return false;
  switch (outer.form) {
    case 'any':
      return true;
    case 'path':
      return inner.form === 'path' && holdsUrl(outer.url, inner.url);
    case 'resource':
      return (
        inner.form === 'resource' &&
        (outer.group === undefined || outer.group === inner.group) &&
        holdsResource(outer.resource, inner.resource) &&
        holdsSet(outer.namespaces, inner.namespaces) &&
        holdsSet(outer.names, inner.names)
      );
  }
}

/** An undefined set contains every text. */
function holdsSet(outer: ReadonlySet<string> | undefined, inner: ReadonlySet<string> | undefined): boolean {
  if (!outer) return true;
  return inner !== undefined && [...inner].every((item) => outer.has(item));
}
