/**
 * The review kinds, which are not stored. Below the prefix of a target a review is about that target, so that a cluster can use the URL in
 * the configuration of its webhooks.
 */

import { reviewedRequest, reviewStatus, selfSubjectAccessReviews } from '../../../apiserver/access-review.ts';
import { requiredValue } from '../../../apiserver/field-error.ts';
import {
  defineResource,
  type Caller,
  type ResourceDefinition,
} from '../../../apiserver/objects/resource-definition.ts';
import type { TypeTable } from '../../../apiserver/schema/notation.ts';
import { badRequest, invalid } from '../../../apiserver/status.ts';
import type { UserInfo } from '../../../apiserver/request/user.ts';
import { listField, objectField, text } from '../../../apiserver/metadata.ts';
import { setOwn, type JsonObject } from '../../../base/json.ts';
import type { ManagementAuthorizer } from '../authorizer.ts';
import { AUTHENTICATION_GROUP, AUTHORIZATION_GROUP } from '../roles.ts';
import { rulesOf } from './rules-review.ts';
import { targetOf } from '../target.ts';
import { reviewToken, type TokenAuthenticators } from './token-review.ts';

export interface ReviewOptions extends TokenAuthenticators {
  /** With the types `meta.*` and those of `apiserver/access-review.ts`. */
  readonly types: TypeTable;
  readonly authorizer: ManagementAuthorizer;
}

const SHARED = { version: 'v1', isNamespaced: false, verbs: ['create'], checkName: () => undefined } as const;
const isTarget = (prefix: string): boolean => targetOf(prefix) !== undefined;

export function reviewKinds(options: ReviewOptions): readonly ResourceDefinition[] {
  const { types, authorizer } = options;
  return [
    tokenReviews(options),
    selfSubjectReviews(options),
    subjectAccessReviews(options),
    selfSubjectAccessReviews(types, { authorize: (user, request) => authorizer.decide(user, request) }),
    selfSubjectRulesReviews(options),
  ];
}

function tokenReviews(options: ReviewOptions): ResourceDefinition {
  return defineResource({
    ...SHARED,
    group: AUTHENTICATION_GROUP,
    kind: 'TokenReview',
    plural: 'tokenreviews',
    singular: 'tokenreview',
    schema: options.types.get('authentication.TokenReview'),
    isServedUnder: isTarget,
    responseContainsSecret: true,
    respond: async (review, { prefix }) => {
      // The token is not returned, so that a log of responses does not contain it.
      const { token: _token, ...spec } = objectField(review, 'spec');
      const { user, ...verdict } = await reviewToken(options, review, prefix);
      const status: JsonObject = { ...verdict, user: user ? userForm(user) : {} };
      return { ...review, spec, status };
    },
  });
}

/** `kubectl auth whoami`. */
function selfSubjectReviews({ types }: ReviewOptions): ResourceDefinition {
  return defineResource({
    ...SHARED,
    group: AUTHENTICATION_GROUP,
    kind: 'SelfSubjectReview',
    plural: 'selfsubjectreviews',
    singular: 'selfsubjectreview',
    schema: types.get('authentication.SelfSubjectReview'),
    respond: (review, { user }) => ({ ...review, status: { userInfo: userForm(user) } }),
  });
}

function subjectAccessReviews({ types, authorizer }: ReviewOptions): ResourceDefinition {
  const kind = 'SubjectAccessReview';
  return defineResource({
    ...SHARED,
    group: AUTHORIZATION_GROUP,
    kind,
    plural: 'subjectaccessreviews',
    singular: 'subjectaccessreview',
    schema: types.get('authorization.SubjectAccessReview'),
    isServedUnder: isTarget,
    respond: async (review, { prefix }: Caller) => {
      const spec = objectField(review, 'spec');
      const request = reviewedRequest(spec, kind, prefix);
      const decision = await authorizer.decide(reviewedUser(spec, kind), request);
      return { ...review, spec, status: reviewStatus(decision) };
    },
  });
}

/** `kubectl auth can-i --list`. */
function selfSubjectRulesReviews({ types, authorizer }: ReviewOptions): ResourceDefinition {
  return defineResource({
    ...SHARED,
    group: AUTHORIZATION_GROUP,
    kind: 'SelfSubjectRulesReview',
    plural: 'selfsubjectrulesreviews',
    singular: 'selfsubjectrulesreview',
    schema: types.get('authorization.SelfSubjectRulesReview'),
    respond: async (review, { user }) => {
      // A kube-apiserver requires a namespace, although nothing here has one.
      if (text(objectField(review, 'spec'), 'namespace') === '') throw badRequest('no namespace on request');
      return { ...review, status: await rulesOf(authorizer, user) };
    },
  });
}

function reviewedUser(spec: JsonObject, kind: string): UserInfo {
  const groups = listField(spec, 'groups').filter((group) => typeof group === 'string');
  const name = text(spec, 'user');
  if (name === '' && groups.length === 0) {
    const detail = 'at least one of user or group must be specified';
    throw invalid({ group: AUTHORIZATION_GROUP, resource: kind }, '', [requiredValue('spec.user', detail)]);
  }
  const extra: Record<string, readonly string[]> = {};
  const sent = objectField(spec, 'extra');
  for (const key of Object.keys(sent)) {
    setOwn<readonly string[]>(
      extra,
      key,
      listField(sent, key).filter((value) => typeof value === 'string'),
    );
  }
  return { name, uid: text(spec, 'uid'), groups, extra };
}

/** `UserInfo` of authentication.k8s.io. */
function userForm({ name, uid, groups, extra }: UserInfo): JsonObject {
  const sent: JsonObject = {};
  for (const [key, values] of Object.entries(extra)) setOwn(sent, key, [...values]);
  return {
    username: name,
    ...(uid === '' ? {} : { uid }),
    groups: [...groups],
    ...(Object.keys(sent).length === 0 ? {} : { extra: sent }),
  };
}
