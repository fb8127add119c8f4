/** SelfSubjectAccessReview, which is answered and never stored, and the types of all reviews. */

import { isJsonObject, type JsonObject, objectField, text } from '../base/json.ts';
import type { AccessDecision, AccessRequest, Authorizer } from './request/request-info.ts';
import { requiredValue, invalid } from './status.ts';
import { defineResource, type ResourceDefinition } from './objects/resource-definition.ts';
import type { TypeTable } from './schema/object-schema.ts';

const GROUP = 'authorization.k8s.io';
const KIND = 'SelfSubjectAccessReview';

export function selfSubjectAccessReviews(
  types: TypeTable,
  authorizer: Pick<Authorizer, 'authorize'>,
): ResourceDefinition {
  return reviewKind(types, GROUP, KIND, {
    respond: async (review, { user }) => {
      const spec = objectField(review, 'spec');
      const decision = await authorizer.authorize(user, reviewedRequest(spec, KIND, ''));
      return { ...review, spec, status: reviewStatus(decision) };
    },
  });
}

/** A kind of authentication.k8s.io or authorization.k8s.io that is answered and never stored. */
export function reviewKind(
  types: TypeTable,
  group: string,
  kind: string,
  behaviour: Partial<ResourceDefinition>,
): ResourceDefinition {
  const singular = kind.toLowerCase();
  return defineResource({
    group,
    version: 'v1',
    kind,
    plural: `${singular}s`,
    singular,
    isNamespaced: false,
    verbs: ['create'],
    checkName: () => undefined,
    schema: types.get(`${group.split('.')[0] ?? ''}.${kind}`),
    ...behaviour,
  });
}

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

/** Types of token and access reviews, as kube-apiserver 1.36 serves them. Notation: `schema/object-schema.ts`. */
export const REVIEW_TYPES = `
authentication.TokenReview = metadata:1! meta.ObjectMeta; spec:2!+ authentication.TokenReviewSpec; status:3! authentication.TokenReviewStatus
authentication.TokenReviewSpec = token:1 string; audiences:2 []string atomic
authentication.TokenReviewStatus = authenticated:1 bool; user:2! authentication.UserInfo; audiences:4 []string atomic; error:3 string
authentication.UserInfo = username:1 string; uid:2 string; groups:3 []string atomic; extra:4 {}[]string
authentication.SelfSubjectReview = metadata:1! meta.ObjectMeta; status:2! authentication.SelfSubjectReviewStatus
authentication.SelfSubjectReviewStatus = userInfo:1! authentication.UserInfo
authorization.SelfSubjectAccessReview = metadata:1! meta.ObjectMeta; spec:2!+ authorization.SelfSubjectAccessReviewSpec; status:3! authorization.SubjectAccessReviewStatus
authorization.SelfSubjectAccessReviewSpec = resourceAttributes:1 *authorization.ResourceAttributes; nonResourceAttributes:2 *authorization.NonResourceAttributes
authorization.SubjectAccessReview = metadata:1! meta.ObjectMeta; spec:2!+ authorization.SubjectAccessReviewSpec; status:3! authorization.SubjectAccessReviewStatus
authorization.SubjectAccessReviewSpec = resourceAttributes:1 *authorization.ResourceAttributes; nonResourceAttributes:2 *authorization.NonResourceAttributes; user:3 string; groups:4 []string atomic; extra:5 {}[]string; uid:6 string
authorization.SelfSubjectRulesReview = metadata:1! meta.ObjectMeta; spec:2!+ authorization.SelfSubjectRulesReviewSpec; status:3! authorization.SubjectRulesReviewStatus
authorization.SelfSubjectRulesReviewSpec = namespace:1 string
authorization.SubjectRulesReviewStatus = resourceRules:1!+ []authorization.ResourceRule atomic; nonResourceRules:2!+ []authorization.NonResourceRule atomic; incomplete:3!+ bool; evaluationError:4 string
authorization.ResourceRule = verbs:1!+ []string atomic; apiGroups:2 []string atomic; resources:3 []string atomic; resourceNames:4 []string atomic
authorization.NonResourceRule = verbs:1!+ []string atomic; nonResourceURLs:2 []string atomic
authorization.ResourceAttributes = namespace:1 string; verb:2 string; group:3 string; version:4 string; resource:5 string; subresource:6 string; name:7 string; fieldSelector:8 *authorization.FieldSelectorAttributes; labelSelector:9 *authorization.LabelSelectorAttributes
authorization.FieldSelectorAttributes = rawSelector:1 string; requirements:2 []meta.FieldSelectorRequirement atomic
authorization.LabelSelectorAttributes = rawSelector:1 string; requirements:2 []meta.LabelSelectorRequirement atomic
authorization.NonResourceAttributes = path:1 string; verb:2 string
authorization.SubjectAccessReviewStatus = allowed:1!+ bool; denied:4 bool; reason:2 string; evaluationError:3 string
authentication.TokenReview: Authenticates a token to a known user. A cluster sends it below its own prefix; a token without access to the cluster is not authenticated there.
authentication.TokenReview.metadata: Returned as it was sent; reviews are not stored.
authentication.TokenReview.spec: Holds information about the request being evaluated.
authentication.TokenReview.status: Filled in by the server; the result of the review.
authentication.TokenReviewSpec.token: The access key or token. It is never returned.
authentication.TokenReviewSpec.audiences: Audiences of the server that received the token. Defaults to the audience of this API.
authentication.TokenReviewStatus.authenticated: The token belongs to a known user.
authentication.TokenReviewStatus.user: The user of the token.
authentication.TokenReviewStatus.audiences: The requested audiences for which the token is valid.
authentication.TokenReviewStatus.error: Why the token could not be checked.
authentication.UserInfo.username: The name of the user.
authentication.UserInfo.uid: Unique value that identifies this user among users of the same name over time.
authentication.UserInfo.groups: The groups of the user.
authentication.UserInfo.extra: Additional information: the access key, its generation and its scope.
authentication.SelfSubjectReview: Returns the user of the request, as kubectl auth whoami prints it.
authentication.SelfSubjectReview.metadata: Returned as it was sent; reviews are not stored.
authentication.SelfSubjectReview.status: Filled in by the server; the result of the review.
authentication.SelfSubjectReviewStatus.userInfo: The user of the request.
authorization.SelfSubjectAccessReview: Checks whether the current user may perform an action, as kubectl auth can-i does.
authorization.SelfSubjectAccessReview.metadata: Returned as it was sent; reviews are not stored.
authorization.SelfSubjectAccessReview.spec: Holds information about the request being evaluated.
authorization.SelfSubjectAccessReview.status: Filled in by the server; the result of the review.
authorization.SelfSubjectAccessReviewSpec.resourceAttributes: Describes a resource request. Exactly one of resourceAttributes and nonResourceAttributes is set.
authorization.SelfSubjectAccessReviewSpec.nonResourceAttributes: Describes a non-resource request. Exactly one of resourceAttributes and nonResourceAttributes is set.
authorization.SubjectAccessReview: Checks whether a user may perform an action. A cluster sends it below its own prefix; rights and the scope of the key decide.
authorization.SubjectAccessReview.metadata: Returned as it was sent; reviews are not stored.
authorization.SubjectAccessReview.spec: Holds information about the request being evaluated.
authorization.SubjectAccessReview.status: Filled in by the server; the result of the review.
authorization.SubjectAccessReviewSpec.resourceAttributes: Describes a resource request. Exactly one of resourceAttributes and nonResourceAttributes is set.
authorization.SubjectAccessReviewSpec.nonResourceAttributes: Describes a non-resource request. Exactly one of resourceAttributes and nonResourceAttributes is set.
authorization.SubjectAccessReviewSpec.user: The user to check.
authorization.SubjectAccessReviewSpec.groups: The groups of the user.
authorization.SubjectAccessReviewSpec.extra: Corresponds to user.extra of the authentication; identifies the access key and its scope.
authorization.SubjectAccessReviewSpec.uid: The uid of the user.
authorization.SelfSubjectRulesReview: Lists the actions that the current user may perform, as kubectl auth can-i --list prints them. For display, not for authorization decisions.
authorization.SelfSubjectRulesReview.metadata: Returned as it was sent; reviews are not stored.
authorization.SelfSubjectRulesReview.spec: Holds information about the request being evaluated.
authorization.SelfSubjectRulesReview.status: Filled in by the server; the result of the review.
authorization.SelfSubjectRulesReviewSpec.namespace: Namespace to evaluate rules for.
authorization.SubjectRulesReviewStatus.resourceRules: Actions that the user may perform on resources.
authorization.SubjectRulesReviewStatus.nonResourceRules: Actions that the user may perform on paths.
authorization.SubjectRulesReviewStatus.incomplete: True when the rules returned may be incomplete.
authorization.SubjectRulesReviewStatus.evaluationError: Why the list may be incomplete.
authorization.ResourceRule.verbs: Verbs; * means all.
authorization.ResourceRule.apiGroups: API groups; * means all.
authorization.ResourceRule.resources: Plural names, or a subresource such as pods/log; * means all.
authorization.ResourceRule.resourceNames: Names of objects; empty means all.
authorization.NonResourceRule.verbs: HTTP methods in lower case; * means all.
authorization.NonResourceRule.nonResourceURLs: URL paths; * is allowed as the final step of a path.
authorization.ResourceAttributes.namespace: The namespace; empty for cluster-scoped resources and for all namespaces.
authorization.ResourceAttributes.verb: The verb, such as get or create; * means all.
authorization.ResourceAttributes.group: The API group; * means all.
authorization.ResourceAttributes.version: The API version; * means all.
authorization.ResourceAttributes.resource: The plural name of the resource; * means all.
authorization.ResourceAttributes.subresource: The subresource, such as status.
authorization.ResourceAttributes.name: The name of the object; empty means all.
authorization.ResourceAttributes.fieldSelector: The field selector of the request.
authorization.ResourceAttributes.labelSelector: The label selector of the request.
authorization.NonResourceAttributes.path: The path of the URL.
authorization.NonResourceAttributes.verb: The HTTP method in lower case.
authorization.SubjectAccessReviewStatus.allowed: True if the action is allowed.
authorization.SubjectAccessReviewStatus.denied: True if the action is denied and no other authorizer may allow it. If neither allowed nor denied is true, the next authorizer decides.
authorization.SubjectAccessReviewStatus.reason: Why the request was allowed or denied.
authorization.SubjectAccessReviewStatus.evaluationError: An error that occurred during authorization. The result is valid nevertheless.
`;
