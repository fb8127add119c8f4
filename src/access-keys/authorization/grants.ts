/** Grants: a parsed scope, as patterns of requests and of targets. */

import type { RequestTarget } from '../types.ts';
import type { AccessRequest } from '../../apiserver/request/request-info.ts';
import { targetText } from './target.ts';

/** Matches every name; never part of a name. */
export const ANY = '*';

/** A target whose names may be `*`. */
export type TargetPattern = RequestTarget;

/** A pattern of requests; an undefined field matches everything. */
export interface RequestPattern {
  /** `any`: both resources and paths. */
  readonly form: 'any' | 'resource' | 'path';
  readonly verbs: ReadonlySet<string> | undefined;
  readonly group: string | undefined;
  /** `*`, `r`, `r/s`, `r/*` or `*``/s`. */
  readonly resource: string;
  readonly namespaces: ReadonlySet<string> | undefined;
  readonly names: ReadonlySet<string> | undefined;
  /** `*`, a path, or a prefix of paths followed by `/*`. */
  readonly url: string;
}

export interface Grant {
  /** The entry of the scope, `projects[0]`. */
  readonly place: string;
  readonly targets: readonly TargetPattern[];
  readonly requests: RequestPattern;
}

export const EVERYTHING: RequestPattern = {
  form: 'any',
  verbs: undefined,
  group: undefined,
  resource: ANY,
  namespaces: undefined,
  names: undefined,
  url: ANY,
};

/** Whether `outer` contains every target of `inner`. A target is a pattern without wildcards. */
export function holdsTarget(outer: TargetPattern, inner: TargetPattern): boolean {
  switch (outer.kind) {
    case 'Management':
      return inner.kind === 'Management';
    case 'Cluster':
      return inner.kind === 'Cluster' && holdsName(outer.cluster, inner.cluster);
    case 'ProjectSpace':
      return (
        inner.kind === 'ProjectSpace' &&
        holdsName(outer.project, inner.project) &&
        holdsName(outer.space, inner.space)
      );
    case 'ProjectVirtualCluster':
      return (
        inner.kind === 'ProjectVirtualCluster' &&
        holdsName(outer.project, inner.project) &&
        holdsName(outer.virtualCluster, inner.virtualCluster)
      );
  }
}

function holdsName(outer: string, inner: string): boolean {
  return outer === ANY || outer === inner;
}

/** Whether `outer` contains `inner`; either may have wildcards. Subresources as `pods/log`. */
export function holdsResource(outer: string, inner: string): boolean {
  if (outer === ANY || outer === inner) return true;
  const [resource = '', subresource] = outer.split('/');
  const [innerResource = '', innerSubresource] = inner.split('/');
  if (subresource === undefined || innerSubresource === undefined) return false;
  if (subresource === ANY) return resource === innerResource;
  return resource === ANY && subresource === innerSubresource;
}

export function holdsUrl(outer: string, inner: string): boolean {
  if (outer === ANY || outer === inner) return true;
  return outer.endsWith('/*') && inner.startsWith(outer.slice(0, -1));
}

interface ScopeVerdict {
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
