/** SelfSubjectAccessReview, which is answered and never stored. */

import { isJsonObject, type JsonObject } from '../../base/json.ts';
import type { AccessDecision, AccessRequest, Authorizer } from '../request/authorizer.ts';
import { requiredValue } from '../field-error.ts';
import { defineResource, type ResourceDefinition } from '../objects/resource-definition.ts';
import type { TypeTable } from '../schema/notation.ts';
import { invalid } from '../status.ts';
import { objectField, text } from '../validation/metadata.ts';

const GROUP = 'authorization.k8s.io';
const KIND = 'SelfSubjectAccessReview';

export function selfSubjectAccessReviews(
  types: TypeTable,
  authorizer: Pick<Authorizer, 'authorize'>,
): ResourceDefinition {
  return defineResource({
    group: GROUP,
    version: 'v1',
    kind: KIND,
    plural: 'selfsubjectaccessreviews',
    singular: 'selfsubjectaccessreview',
    isNamespaced: false,
    verbs: ['create'],
    schema: types.get('authorization.SelfSubjectAccessReview'),
    checkName: () => undefined,
    respond: async (review, { user }) => {
      const spec = objectField(review, 'spec');
      const decision = await authorizer.authorize(user, reviewedRequest(spec, KIND, ''));
      return { ...review, spec, status: reviewStatus(decision) };
    },
  });
}

/** `SubjectAccessReviewStatus`. */
export function reviewStatus({ isAllowed, isDenied, reason }: AccessDecision): JsonObject {
  return {
    allowed: isAllowed,
    ...(!isAllowed && isDenied === true ? { denied: true } : {}),
    ...(reason === '' ? {} : { reason }),
  };
}

/** The request that the `spec` of an access review describes; throws 422. `prefix`: see `AccessRequest.prefix`. */
export function reviewedRequest(spec: JsonObject, kind: string, prefix: string): AccessRequest {
  const { resourceAttributes: resource, nonResourceAttributes: path } = spec;
  if (isJsonObject(resource) === isJsonObject(path)) {
    const detail = 'exactly one of nonResourceAttributes or resourceAttributes must be specified';
    throw invalid({ group: GROUP, resource: kind }, '', [requiredValue('spec.resourceAttributes', detail)]);
  }
  const attributes = isJsonObject(resource) ? resource : isJsonObject(path) ? path : {};
  return {
    verb: text(attributes, 'verb'),
    group: text(attributes, 'group'),
    version: text(attributes, 'version'),
    resource: text(attributes, 'resource'),
    subresource: text(attributes, 'subresource'),
    namespace: text(attributes, 'namespace'),
    name: text(attributes, 'name'),
    path: text(attributes, 'path'),
    prefix,
  };
}
