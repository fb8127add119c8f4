/**
 * Whether one scope contains another: a key creates nothing with a wider scope. Sound: the outer scope allows everything that the inner scope
 * allows. Not complete: several outer rules are never combined to contain one inner rule.
 */

import type { Scope } from '../types.ts';
import {
  ANY,
  EVERYTHING,
  holdsResource,
  holdsTarget,
  holdsUrl,
  type Grant,
  type RequestPattern,
  type TargetPattern,
} from './grants.ts';
import { grantsOf } from './scope-grants.ts';
import { targetText } from './target.ts';

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
