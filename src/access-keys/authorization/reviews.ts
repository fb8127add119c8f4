/**
 * The review kinds, which are not stored. Below the prefix of a target a review is about that target, so that a cluster can use the URL in
 * the configuration of its webhooks.
 */

import {
  reviewedRequest,
  reviewKind,
  reviewStatus,
  selfSubjectAccessReviews,
} from '../../apiserver/access-review.ts';
import { requiredValue, badRequest, invalid } from '../../apiserver/status.ts';
import { type ResourceDefinition, ALL_VERBS } from '../../apiserver/objects/resource-definition.ts';
import type { TypeTable } from '../../apiserver/schema/object-schema.ts';
import type { UserInfo } from '../../apiserver/user.ts';
import { type JsonObject, objectField, text } from '../../base/json.ts';
import { audiencesOf } from './audiences.ts';
import type { ManagementAuthorizer } from './authorizer.ts';
import {
  AUTHENTICATION_GROUP,
  AUTHORIZATION_GROUP,
  DISCOVERY_URLS,
  KEYS,
  ORDINARY_REQUESTS,
  REVIEW_REQUESTS,
  targetOf,
  ANY,
} from './grants.ts';
import { StatusError } from '../../kube/status-error.ts';
import {
  EXTRA,
  extraJson,
  scopeOf,
  textsOf,
  userOf,
  MANAGEMENT_GROUP,
  type RequestTarget,
} from '../identity.ts';
import type { AccessRequest } from '../../apiserver/request/request-info.ts';

/** Both return undefined for an unknown credential and reject with a `StatusError` 401 only for a proven secret. */
export interface TokenAuthenticators {
  authenticateKey(token: string): UserInfo | undefined | Promise<UserInfo | undefined>;
  verifyToken(token: string): Promise<UserInfo | undefined>;
}

/** `types`: with `meta.*` and those of `apiserver/access-review.ts`. */
export function reviewKinds(
  types: TypeTable,
  authorizer: ManagementAuthorizer,
  authenticators: TokenAuthenticators,
): readonly ResourceDefinition[] {
  return [
    reviewKind(types, AUTHENTICATION_GROUP, 'TokenReview', {
      isServedUnder: isTarget,
      responseContainsSecret: true,
      respond: async (review, { prefix }) => {
        // The token is not returned, so that a log of responses does not contain it.
        const { token, ...spec } = objectField(review, 'spec');
        if (typeof token !== 'string' || token === '') throw badRequest('spec.token: Required value');
        const asked = textsOf(spec, 'audiences');
        const status = await tokenStatus(authorizer, authenticators, token, asked, targetOf(prefix));
        return { ...review, spec, status };
      },
    }),
    // `kubectl auth whoami`.
    reviewKind(types, AUTHENTICATION_GROUP, 'SelfSubjectReview', {
      respond: (review, { user }) => ({ ...review, status: { userInfo: userForm(user) } }),
    }),
    reviewKind(types, AUTHORIZATION_GROUP, 'SubjectAccessReview', {
      isServedUnder: isTarget,
      respond: async (review, { prefix }) => {
        const spec = objectField(review, 'spec');
        const request = reviewedRequest(spec, 'SubjectAccessReview', prefix);
        const decision = await authorizer.decide(reviewedUser(spec), request);
        return { ...review, spec, status: reviewStatus(decision) };
      },
    }),
    selfSubjectAccessReviews(types, { authorize: (user, request) => authorizer.decide(user, request) }),
    // `kubectl auth can-i --list`.
    reviewKind(types, AUTHORIZATION_GROUP, 'SelfSubjectRulesReview', {
      respond: async (review, { user }) => {
        // A kube-apiserver requires a namespace, although nothing here has one.
        if (text(objectField(review, 'spec'), 'namespace') === '')
          throw badRequest('no namespace on request');
        return { ...review, status: await rulesOf(authorizer, user) };
      },
    }),
  ];
}

function isTarget(prefix: string): boolean {
  return targetOf(prefix) !== undefined;
}

function reviewedUser(spec: JsonObject): UserInfo {
  const sent = userOf(spec, 'user');
  // Only this program says that a user is one of the host, which then authorizes it.
  const { [EXTRA.delegated]: _forged, ...extra } = sent.extra;
  const user = { ...sent, extra };
  if (user.name !== '' || user.groups.length > 0) return user;
  const missing = requiredValue('spec.user', 'at least one of user or group must be specified');
  throw invalid({ group: AUTHORIZATION_GROUP, resource: 'SubjectAccessReview' }, '', [missing]);
}

/** `UserInfo` of authentication.k8s.io. */
function userForm(user: UserInfo): JsonObject {
  const extra = extraJson(user);
  return {
    username: user.name,
    ...(user.uid === '' ? {} : { uid: user.uid }),
    groups: [...user.groups],
    ...(Object.keys(extra).length === 0 ? {} : { extra }),
  };
}

/** Without a reason: another authenticator may accept the token, and a guess must get no hint. */
const UNKNOWN: JsonObject = { authenticated: false, user: {} };

/** The default audiences of a kube-apiserver, without `--api-audiences` and `--service-account-issuer`. */
const KUBERNETES_AUDIENCES = [
  'https://kubernetes.default.svc',
  'https://kubernetes.default.svc.cluster.local',
];

/** `TokenReviewStatus`. `asked`: the audiences that the caller asks for. */
async function tokenStatus(
  authorizer: ManagementAuthorizer,
  authenticators: TokenAuthenticators,
  token: string,
  asked: readonly string[],
  target: RequestTarget | undefined,
): Promise<JsonObject> {
  if (!target) return UNKNOWN;
  try {
    const isSigned = token.split('.').length === 3;
    const user =
      (isSigned ? await authenticators.verifyToken(token) : undefined) ??
      (await authenticators.authenticateKey(token));
    if (!user) return UNKNOWN;
    // A target outside the scope of a credential must not learn that it exists.
    if (target.kind !== 'Management' && !authorizer.reaches(user, target)) return UNKNOWN;
    const accepted = acceptedAudiences(user, target);
    const audiences = [...new Set(asked)].filter((audience) => accepted.includes(audience));
    if (asked.length > 0 && audiences.length === 0) {
      const error = `the credential is not for the audiences ${quoted(asked)}, but for ${quoted(accepted)}`;
      return { authenticated: false, error, user: {} };
    }
    // A successful review counts as a use of the key.
    authorizer.recordUse(user);
    return { authenticated: true, ...(asked.length > 0 ? { audiences } : {}), user: userForm(user) };
  } catch (error) {
    if (error instanceof StatusError && error.code === 401) {
      return { authenticated: false, error: error.message, user: {} };
    }
    throw error;
  }
}

/** A credential whose scope contains a target is for the API server of that target. */
function acceptedAudiences(user: UserInfo, { kind }: RequestTarget): readonly string[] {
  const own = audiencesOf(scopeOf(user));
  return kind === 'Management' ? own : [...own, ...KUBERNETES_AUDIENCES];
}

const QUOTED_MAX = 10;

function quoted(audiences: readonly string[]): string {
  const more = audiences.length - QUOTED_MAX;
  const listed = audiences.slice(0, QUOTED_MAX).map((audience) => JSON.stringify(audience));
  return listed.join(', ') + (more > 0 ? ` and ${more} more` : '');
}

// SelfSubjectRulesReview authorizes every verb of every resource, so that the list agrees with the decisions about requests.

/** Candidates for a rule: the requests of ordinary users and of webhooks, and writing the status of a key, which other users may do. */
const CANDIDATES: readonly (readonly [group: string, resource: string, verbs: Iterable<string>])[] = [
  [MANAGEMENT_GROUP, KEYS, ALL_VERBS],
  [MANAGEMENT_GROUP, `${KEYS}/status`, ['get', 'patch', 'update']],
  ...[...ORDINARY_REQUESTS, ...REVIEW_REQUESTS]
    .filter(({ form, resource }) => form === 'resource' && resource !== KEYS && resource !== `${KEYS}/status`)
    .map(({ group = '', resource, verbs = [] }) => [group, resource, verbs] as const),
];

const NOTHING: AccessRequest = {
  verb: '',
  group: '',
  version: 'v1',
  resource: '',
  subresource: '',
  namespace: '',
  name: '',
  path: '',
  prefix: '',
};

/** `SubjectRulesReviewStatus`. Rules for single names are not listed, so a scope with names may allow more. */
async function rulesOf(authorizer: ManagementAuthorizer, user: UserInfo): Promise<JsonObject> {
  const may = async (request: Partial<AccessRequest>): Promise<boolean> =>
    (await authorizer.decide(user, { ...NOTHING, ...request })).isAllowed;
  const resourceRules: JsonObject[] = [];
  const isEverything = await may({ verb: ANY, group: ANY, resource: ANY });
  if (isEverything) resourceRules.push({ verbs: [ANY], apiGroups: [ANY], resources: [ANY] });
  for (const [group, name, verbs] of isEverything ? [] : CANDIDATES) {
    const [resource = '', subresource = ''] = name.split('/');
    const allowed: string[] = [];
    for (const verb of verbs) if (await may({ verb, group, resource, subresource })) allowed.push(verb);
    if (allowed.length > 0) resourceRules.push({ verbs: allowed, apiGroups: [group], resources: [name] });
  }
  const paths: string[] = [];
  for (const path of DISCOVERY_URLS) if (await may({ verb: 'get', path })) paths.push(path);
  return {
    resourceRules,
    nonResourceRules: paths.length === 0 ? [] : [{ verbs: ['get'], nonResourceURLs: paths }],
    incomplete: hasNames(user),
  };
}

function hasNames({ extra }: UserInfo): boolean {
  return Object.values(extra).some((texts) => texts.some((text) => text.includes('"resourceNames"')));
}
