/**
 * Is one scope within another? Nothing that a key makes may reach further than the key. Sound: what the inner scope lets through, the outer
 * one does too. Not complete: verbs, names and namespaces of one inner rule are never put together from several outer ones.
 */

import type { Scope } from '../../types.ts';
import {
  EVERYTHING,
  holdsResource,
  holdsTarget,
  holdsUrl,
  type Grant,
  type RequestPattern,
  type TargetPattern,
} from './grants.ts';
import { grantsOf } from './scope-grants.ts';
import { ANY } from './scope-names.ts';
import { targetText } from '../target.ts';

/** The first entry that reaches further. */
export interface WiderEntry {
  /** Relative to the scope, `projects[0]`; `''`: the scope as a whole. */
  readonly path: string;
  /** What it reaches beyond the outer scope, for people. */
  readonly text: string;
}

/** What in `inner` reaches further than `outer`; undefined: nothing. An absent scope restricts nothing. */
export function widerThan(inner: Scope | undefined, outer: Scope | undefined): WiderEntry | undefined {
  if (outer === undefined) return undefined;
  if (inner === undefined) return { path: '', text: 'no scope is no restriction' };
  const grants = grantsOf(outer);
  const whole = wholeTargets(grants);
  const partial = grants.filter(({ requests }) => requests !== EVERYTHING);
  for (const { place, targets, requests } of grantsOf(inner)) {
    for (const target of targets) {
      if (namesHolding(target).some((name) => whole.has(name))) continue;
      if (partial.some((grant) => holds(grant, target, requests))) continue;
      return { path: place, text: `reaches further in ${targetText(target)} than the scope of the caller` };
    }
  }
  return undefined;
}

/** The same with `true` for "nothing": compare with `=== true`, for the other answer is an object. */
export function isWithin(inner: Scope | undefined, outer: Scope | undefined): true | WiderEntry {
  return widerThan(inner, outer) ?? true;
}

/** The targets of which everything is granted, by name: these are the long lists. */
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

/** The target itself, and every pattern with wildcards in its place. */
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

/** No set is every text. */
function holdsSet(outer: ReadonlySet<string> | undefined, inner: ReadonlySet<string> | undefined): boolean {
  if (!outer) return true;
  return inner !== undefined && [...inner].every((item) => outer.has(item));
}
