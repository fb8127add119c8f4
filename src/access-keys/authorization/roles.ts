/** The roles that a scope can name, and the requests that each entry of a scope implies. */

import { MANAGEMENT_GROUP } from '../identity.ts';
import { ALL_VERBS } from '../../apiserver/objects/resource-definition.ts';
import { EVERYTHING, type RequestPattern } from './grants.ts';

/** The role with the requests that the command-line client sends to the management API. */
export const PLATFORM_CLI = 'platformCLI';

/** Case-sensitive; the second is the older name of the first. */
export const ROLE_NAMES: readonly string[] = [PLATFORM_CLI, 'loft-cli'];

export const KEYS = 'ownedaccesskeys';
/** The subresource of a key that issues a new secret. */
export const ROTATE = 'rotate';
/** Events about keys. kubectl reads those of the core group in `describe` and `events`. */
export const EVENTS = 'events';
export const EVENTS_GROUPS: readonly string[] = ['', 'events.k8s.io'];

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
