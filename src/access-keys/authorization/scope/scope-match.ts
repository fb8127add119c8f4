/** Whether a scope allows a request. Pure; the rights of the user are decided elsewhere. */

import type { AccessRequest } from '../../../apiserver/request/authorizer.ts';
import type { RequestTarget } from '../../types.ts';
import { holdsResource, holdsTarget, holdsUrl, type Grant, type RequestPattern } from './grants.ts';
import { targetText } from '../target.ts';

export interface ScopeVerdict {
  readonly isAllowed: boolean;
  /** Why it is denied, for a message; `''` when it is allowed. */
  readonly reason: string;
}

const ALLOWED: ScopeVerdict = { isAllowed: true, reason: '' };

export function matchGrants(
  grants: readonly Grant[],
  request: AccessRequest,
  target: RequestTarget,
): ScopeVerdict {
  if (grants.length === 0) return denied('allows nothing');
  let furthest = -1;
  for (const grant of grants) {
    if (!grant.targets.some((pattern) => holdsTarget(pattern, target))) continue;
    const misses = missedPart(grant.requests, request);
    if (misses === undefined) return ALLOWED;
    furthest = Math.max(furthest, PARTS.indexOf(misses));
  }
  const part = PARTS[furthest];
  return denied(
    part === undefined ? `does not contain ${targetText(target)}` : `does not allow this ${part}`,
  );
}

/** Whether the scope allows any request to this target. */
export function reaches(grants: readonly Grant[], target: RequestTarget): boolean {
  return grants.some(({ targets }) => targets.some((pattern) => holdsTarget(pattern, target)));
}

function denied(why: string): ScopeVerdict {
  return { isAllowed: false, reason: `access key scope ${why}` };
}

export function holdsRequest(pattern: RequestPattern, request: AccessRequest): boolean {
  return missedPart(pattern, request) === undefined;
}

/** In the order of the checks: a denial names the last part that any grant reached, which is what the user would have to change. */
const PARTS = ['path', 'resource', 'namespace', 'name', 'verb'] as const;

/** The first part of a request that a pattern does not match; undefined: it matches. */
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
