/** Does a scope let a request through? Pure: what the scope says, whatever else the user may do. */

import type { AccessRequest } from '../../../apiserver/request/authorizer.ts';
import type { RequestTarget, Scope } from '../../types.ts';
import { holdsResource, holdsTarget, holdsUrl, type Grant, type RequestPattern } from './grants.ts';
import { grantsOf } from './scope-grants.ts';
import { targetText } from '../target.ts';

export interface ScopeVerdict {
  readonly isAllowed: boolean;
  /** Why not, for people; `''` when it is allowed. */
  readonly reason: string;
}

export function matchScope(scope: Scope, request: AccessRequest, target: RequestTarget): ScopeVerdict {
  return matchGrants(grantsOf(scope), request, target);
}

const ALLOWED: ScopeVerdict = { isAllowed: true, reason: '' };

/** The same for a scope that has been taken apart before. */
export function matchGrants(
  grants: readonly Grant[],
  request: AccessRequest,
  target: RequestTarget,
): ScopeVerdict {
  if (grants.length === 0) return refused('allows nothing');
  let nearest = -1;
  for (const grant of grants) {
    if (!grant.targets.some((pattern) => holdsTarget(pattern, target))) continue;
    const misses = missedPart(grant.requests, request);
    if (misses === undefined) return ALLOWED;
    nearest = Math.max(nearest, PARTS.indexOf(misses));
  }
  const part = PARTS[nearest];
  return refused(part === undefined ? `does not reach ${targetText(target)}` : `does not allow this ${part}`);
}

/** Does the scope let anything through to this target? */
export function reaches(grants: readonly Grant[], target: RequestTarget): boolean {
  return grants.some(({ targets }) => targets.some((pattern) => holdsTarget(pattern, target)));
}

function refused(why: string): ScopeVerdict {
  return { isAllowed: false, reason: `access key scope ${why}` };
}

export function holdsRequest(pattern: RequestPattern, request: AccessRequest): boolean {
  return missedPart(pattern, request) === undefined;
}

/** The nearer to a match, the later: what is named is what a person would have to change. */
const PARTS = ['path', 'resource', 'namespace', 'name', 'verb'] as const;

/** The first part of a request that a pattern does not hold; undefined: it holds all of it. */
function missedPart(pattern: RequestPattern, request: AccessRequest): (typeof PARTS)[number] | undefined {
  const isPath = request.resource === '';
  if (pattern.form === 'path' && !(isPath && holdsUrl(pattern.url, request.path))) {
    return isPath ? 'path' : 'resource';
  }
  if (pattern.form === 'resource') {
    if (isPath) return 'path';
    const { group, resource, subresource } = request;
    const combined = subresource === '' ? resource : `${resource}/${subresource}`;
    if (pattern.group !== undefined && pattern.group !== group) return 'resource';
    if (!holdsResource(pattern.resource, combined)) return 'resource';
    if (pattern.namespaces?.has(request.namespace) === false) return 'namespace';
    if (pattern.names?.has(request.name) === false) return 'name';
  }
  return pattern.verbs?.has(request.verb) === false ? 'verb' : undefined;
}
