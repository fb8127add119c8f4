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

import { TARGET_KINDS, type RequestTarget, type Scope, type ScopeRole, type ScopeRule } from '../identity.ts';
import {
  ANY,
  EVERYTHING,
  type Grant,
  type RequestPattern,
  CLI_REQUESTS,
  MANAGEMENT,
  ROLE_NAMES,
  TOKEN_REQUESTS,
  holdsResource,
  holdsTarget,
  holdsUrl,
  targetText,
} from './grants.ts';
import { excessOf, SCOPE_TYPES } from './scope-validation.ts';
import { decodeObject } from '../../apiserver/schema/decode.ts';
import { TypeTable } from '../../apiserver/schema/object-schema.ts';
import { isJsonObject, type JsonValue } from '../../base/json.ts';

export function grantsOf(value: unknown): readonly Grant[] {
  const scope = scopeIn(value);
  if (scope === undefined) return [];
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
  return patterns.map((pattern) => ({ place, targets: [MANAGEMENT], requests: pattern }));
}

function entryGrants({ projects = [], spaces = [], virtualClusters = [], clusters = [] }: Scope): Grant[] {
  const lists = {
    projects: projects.map(({ project }) => projectTargets(project)),
    spaces: spaces.map(({ project, space }) => targetsOf('ProjectSpace', project, space)),
    virtualClusters: virtualClusters.map(({ project, virtualCluster }) =>
      targetsOf('ProjectVirtualCluster', project, virtualCluster),
    ),
    clusters: clusters.map(({ cluster }) => targetsOf('Cluster', cluster)),
  };
  return Object.entries(lists).flatMap(([list, entries]) =>
    entries.flatMap((targets, index) => everythingIn(`${list}[${index}]`, targets)),
  );
}

function everythingIn(place: string, targets: readonly RequestTarget[]): Grant[] {
  return targets.length === 0 ? [] : [{ place, targets, requests: EVERYTHING }];
}

function roleGrants({ role = '', projects = [], virtualClusters = [] }: ScopeRole, place: string): Grant[] {
  if (!ROLE_NAMES.includes(role)) return [];
  const targets =
    virtualClusters.length === 0
      ? projects.flatMap(projectTargets)
      : (projects.length === 0 ? [ANY] : projects).flatMap((project) =>
          virtualClusters.flatMap((name) => targetsOf('ProjectVirtualCluster', project, name)),
        );
  return [...everythingIn(place, targets), ...requests(place, CLI_REQUESTS)];
}

function projectTargets(project: string | undefined): RequestTarget[] {
  return [...targetsOf('ProjectSpace', project, ANY), ...targetsOf('ProjectVirtualCluster', project, ANY)];
}

/** An entry without a name names nothing. */
function targetsOf(kind: RequestTarget['kind'], ...sent: readonly (string | undefined)[]): RequestTarget[] {
  const names = sent.map((name) => name ?? '');
  return names.includes('') ? [] : [{ kind, names }];
}

function ruleGrants(rule: ScopeRule, place: string): Grant[] {
  const targets = ruleTargets(rule);
  if (targets.length === 0) return [];
  return rulePatterns(rule).map((pattern) => ({ place, targets, requests: pattern }));
}

/** The namespace of a project's virtual clusters is `p-` and the project. */
const PROJECT_NAMESPACE = 'p-';

function ruleTargets({ requestTargets, cluster, virtualClusters }: ScopeRule): RequestTarget[] {
  const kinds: readonly string[] = isListed(requestTargets) ? requestTargets : TARGET_KINDS;
  const named =
    cluster !== undefined && cluster !== ''
      ? targetsOf('Cluster', cluster)
      : isListed(virtualClusters)
        ? virtualClusters.flatMap(ruleVirtualCluster)
        : [
            MANAGEMENT,
            ...targetsOf('Cluster', ANY),
            ...targetsOf('ProjectSpace', ANY, ANY),
            ...targetsOf('ProjectVirtualCluster', ANY, ANY),
          ];
  return named.filter(({ kind }) => kinds.includes(kind));
}

function ruleVirtualCluster(entry: { readonly name?: string; readonly namespace?: string }): RequestTarget[] {
  const { name = '', namespace = '' } = entry;
  if (namespace !== '' && !namespace.startsWith(PROJECT_NAMESPACE)) return [];
  const project = namespace === '' ? ANY : namespace.slice(PROJECT_NAMESPACE.length);
  return targetsOf('ProjectVirtualCluster', project, name === '' ? ANY : name);
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

const SCOPE = new TypeTable([SCOPE_TYPES]).get('management.AccessKeyScope');

function scopeIn(value: unknown): Scope | undefined {
  if (!isJsonObject(value) || excessOf(value) !== undefined) return undefined;
  try {
    // Decoded as an item of a list, null would be an entry without restrictions.
    return hasNull(value) ? undefined : (decodeObject(SCOPE, value).value as Scope); // as its schema says
  } catch {
    // It has other types, or is nested too deeply.
    return undefined;
  }
}

function hasNull(value: JsonValue): boolean {
  return value === null || (typeof value === 'object' && Object.values(value).some(hasNull));
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
  return new Set(
    whole.flatMap(({ targets }) => targets.map(({ kind, names }) => JSON.stringify([kind, ...names]))),
  );
}

function namesHolding({ kind, names }: RequestTarget): string[] {
  let patterns: string[][] = [[kind]];
  for (const name of names)
    patterns = patterns.flatMap((start) => [
      [...start, name],
      [...start, ANY],
    ]);
  return patterns.map((pattern) => JSON.stringify(pattern));
}

function holds(outer: Grant, target: RequestTarget, requests: RequestPattern): boolean {
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
