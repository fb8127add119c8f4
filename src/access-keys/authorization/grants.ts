/** Grants: a parsed scope, as patterns of requests and of targets; the targets; and the requests that roles allow. */

import { type RequestTarget, MANAGEMENT_GROUP } from '../identity.ts';
import type { AccessRequest, ServerPath } from '../../apiserver/request/request-info.ts';
import { ALL_VERBS } from '../../apiserver/objects/resource-definition.ts';

/** Matches every name; never part of a name. */
export const ANY = '*';

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
  readonly targets: readonly RequestTarget[];
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

/** Whether the pattern `outer` contains `inner`, a target or a pattern. */
export function holdsTarget(outer: RequestTarget, inner: RequestTarget): boolean {
  return (
    outer.kind === inner.kind && outer.names.every((name, at) => name === ANY || name === inner.names[at])
  );
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

// The API that a request is for, by the prefix of its URL.

export const MANAGEMENT: RequestTarget = { kind: 'Management', names: [] };
const MANAGEMENT_PREFIX = '/kubernetes/management';
/** Segments of `/kubernetes/cluster/a` and of `/kubernetes/project/a/space/b`, including the empty one before the first slash. */
const PREFIX_SEGMENTS = [4, 6];

/**
 * Splits a URL path into the prefix of a target and the path below it. The prefix of this API is `''`, with or without
 * `/kubernetes/management`. Undefined: the path is below `/kubernetes` and names no target.
 */
export function splitPath(path: string): ServerPath | undefined {
  if (path !== '/kubernetes' && !path.startsWith('/kubernetes/')) return { prefix: '', path };
  if (path === MANAGEMENT_PREFIX || path.startsWith(`${MANAGEMENT_PREFIX}/`)) {
    return { prefix: '', path: path.slice(MANAGEMENT_PREFIX.length) || '/' };
  }
  const segments = path.split('/');
  for (const count of PREFIX_SEGMENTS) {
    const prefix = segments.slice(0, count).join('/');
    if (segments.length < count || !targetOf(prefix)) continue;
    return { prefix, path: `/${segments.slice(count).join('/')}` };
  }
  return undefined;
}

/** The target that a prefix names, its segments decoded; undefined: none. */
export function targetOf(prefix: string): RequestTarget | undefined {
  if (prefix === '') return MANAGEMENT;
  const segments = decoded(prefix);
  if (segments?.[0] !== 'kubernetes' || segments.includes('')) return undefined;
  const [, kind, name = '', part, inner = ''] = segments;
  if (kind === 'cluster' && segments.length === 3) return { kind: 'Cluster', names: [name] };
  if (kind !== 'project' || segments.length !== 5) return undefined;
  const names = [name, inner];
  if (part === 'space') return { kind: 'ProjectSpace', names };
  return part === 'virtualcluster' ? { kind: 'ProjectVirtualCluster', names } : undefined;
}

export function targetText({ kind, names }: RequestTarget): string {
  const [first, second] = names.map((name) => JSON.stringify(name));
  switch (kind) {
    case 'Management':
      return 'the management API';
    case 'Cluster':
      return `cluster ${first}`;
    case 'ProjectSpace':
      return `space ${second} of project ${first}`;
    case 'ProjectVirtualCluster':
      return `virtual cluster ${second} of project ${first}`;
  }
}

function decoded(prefix: string): string[] | undefined {
  try {
    return prefix.split('/').slice(1).map(decodeURIComponent);
  } catch {
    return undefined;
  }
}

// The roles that a scope can name, and the requests that each entry of a scope implies.

/** The role with the requests that the command-line client sends to the management API. */
const PLATFORM_CLI = 'platformCLI';

/** Case-sensitive; the second is the older name of the first. */
export const ROLE_NAMES: readonly string[] = [PLATFORM_CLI, 'loft-cli'];

export const KEYS = 'ownedaccesskeys';
export const ROTATE = 'rotate';
/** Events about keys. kubectl reads those of the core group in `describe` and `events`. */
export const EVENTS = 'events';
const EVENTS_GROUPS: readonly string[] = ['', 'events.k8s.io'];

export function isEvents({
  group,
  resource,
}: {
  readonly group: string;
  readonly resource: string;
}): boolean {
  return resource === EVENTS && EVENTS_GROUPS.includes(group);
}
export const TOKENS = 'directclusterendpointtokens';
export const AUTHENTICATION_GROUP = 'authentication.k8s.io';
export const AUTHORIZATION_GROUP = 'authorization.k8s.io';

/** Discovery: what a client reads to learn which kinds are served; no objects. */
export const DISCOVERY_URLS: readonly string[] = [
  '/api',
  '/api/*',
  '/apis',
  '/apis/*',
  '/healthz',
  '/livez',
  '/openapi',
  '/openapi/*',
  '/readyz',
  '/version',
];

/** Reviews of the caller itself, by group. */
export const SELF_REVIEWS: readonly (readonly [group: string, resource: string])[] = [
  [AUTHENTICATION_GROUP, 'selfsubjectreviews'],
  [AUTHORIZATION_GROUP, 'selfsubjectaccessreviews'],
  [AUTHORIZATION_GROUP, 'selfsubjectrulesreviews'],
];

const CREATE: ReadonlySet<string> = new Set(['create']);
const READ: ReadonlySet<string> = new Set(['get', 'list', 'watch']);
const LOOK: ReadonlySet<string> = new Set(['get', 'head']);

function onResource(verbs: ReadonlySet<string>, group: string, resource: string): RequestPattern {
  return { ...EVERYTHING, form: 'resource', verbs, group, resource };
}

/** The requests of the ClusterRoles `system:discovery` and `system:public-info-viewer`. */
export const DISCOVERY: readonly RequestPattern[] = DISCOVERY_URLS.map((url) => ({
  ...EVERYTHING,
  form: 'path',
  verbs: LOOK,
  url,
}));

/** Discovery and reviews of the caller itself: kubectl needs both. */
export const CLIENT_REQUESTS: readonly RequestPattern[] = [
  ...DISCOVERY,
  ...SELF_REVIEWS.map(([group, resource]) => onResource(CREATE, group, resource)),
];

/** The role {@link PLATFORM_CLI}: discovery, and reading the caller's keys. */
export const CLI_REQUESTS: readonly RequestPattern[] = [
  ...CLIENT_REQUESTS,
  onResource(READ, MANAGEMENT_GROUP, KEYS),
];

/** A scope that contains a target includes creating tokens for it. */
export const TOKEN_REQUESTS: readonly RequestPattern[] = [
  ...CLIENT_REQUESTS,
  onResource(CREATE, MANAGEMENT_GROUP, TOKENS),
];

/** What the webhooks of a cluster send. */
export const REVIEW_REQUESTS: readonly RequestPattern[] = [
  onResource(CREATE, AUTHENTICATION_GROUP, 'tokenreviews'),
  onResource(CREATE, AUTHORIZATION_GROUP, 'subjectaccessreviews'),
];

const ALL: ReadonlySet<string> = new Set(ALL_VERBS);

/**
 * What every authenticated user may do with its own keys. Only administrators write the status: its `lastActivity` extends the life of some keys.
 */
export const ORDINARY_REQUESTS: readonly RequestPattern[] = [
  ...TOKEN_REQUESTS,
  onResource(ALL, MANAGEMENT_GROUP, KEYS),
  onResource(READ, MANAGEMENT_GROUP, `${KEYS}/status`),
  ...EVENTS_GROUPS.map((group) => onResource(READ, group, EVENTS)),
  onResource(CREATE, MANAGEMENT_GROUP, `${KEYS}/${ROTATE}`),
];
