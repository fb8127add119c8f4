/** The managed permissions that a scope can name, and what goes with every entry. */

import { ALL_VERBS } from '../../apiserver/objects/resource-definition.ts';
import { EVERYTHING, type RequestPattern } from './scope/grants.ts';

/** What the command-line client needs of the management API. */
export const PLATFORM_CLI = 'platformCLI';

/** As they are written, upper and lower case included; the second is the older name of the first. */
export const ROLE_NAMES: readonly string[] = [PLATFORM_CLI, 'loft-cli'];

export const MANAGEMENT_GROUP = 'management.platform.sh';
export const KEYS = 'ownedaccesskeys';
/** The subresource of a key that gives it a new secret. */
export const ROTATE = 'rotate';
export const TOKENS = 'directclusterendpointtokens';
export const AUTHENTICATION_GROUP = 'authentication.k8s.io';
export const AUTHORIZATION_GROUP = 'authorization.k8s.io';

/** What tells a client which kinds there are; no objects. */
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

/** Questions about oneself, by group. */
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

/** What `system:discovery` and `system:public-info-viewer` allow in a cluster. */
export const DISCOVERY: readonly RequestPattern[] = DISCOVERY_URLS.map((url) => ({
  ...EVERYTHING,
  form: 'path',
  verbs: LOOK,
  url,
}));

/** Discovery, and questions about the caller: kubectl needs both. */
export const ORIENTATION: readonly RequestPattern[] = [
  ...DISCOVERY,
  ...SELF_REVIEWS.map(([group, resource]) => onResource(CREATE, group, resource)),
];

/** The role {@link PLATFORM_CLI} of the management API: read what there is, and one's keys. */
export const CLI_REQUESTS: readonly RequestPattern[] = [
  ...ORIENTATION,
  onResource(READ, MANAGEMENT_GROUP, KEYS),
];

/** A key that reaches something may always fetch a token for it. */
export const TOKEN_REQUESTS: readonly RequestPattern[] = [
  ...ORIENTATION,
  onResource(CREATE, MANAGEMENT_GROUP, TOKENS),
];

/** Of whom is the token, may that user do this: what the webhooks of a cluster ask. */
export const REVIEW_REQUESTS: readonly RequestPattern[] = [
  onResource(CREATE, AUTHENTICATION_GROUP, 'tokenreviews'),
  onResource(CREATE, AUTHORIZATION_GROUP, 'subjectaccessreviews'),
];

const ALL: ReadonlySet<string> = new Set(ALL_VERBS);

/**
 * What everybody may do, with keys of their own. The status is the server's to write: its `lastActivity` decides how long some keys live.
 */
export const ORDINARY_REQUESTS: readonly RequestPattern[] = [
  ...TOKEN_REQUESTS,
  onResource(ALL, MANAGEMENT_GROUP, KEYS),
  onResource(READ, MANAGEMENT_GROUP, `${KEYS}/status`),
  onResource(CREATE, MANAGEMENT_GROUP, `${KEYS}/${ROTATE}`),
];
