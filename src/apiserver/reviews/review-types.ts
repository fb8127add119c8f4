/** Types of the reviews: questions about tokens and rights, as kube-apiserver 1.36 answers them. Notation: `schema/notation.ts`. */

import type { Descriptions } from '../schema/notation.ts';

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
`;

const METADATA = 'Comes back as it was sent; nothing of a review is stored.';
const ASKED = 'The question.';
const ANSWERED = 'The answer, filled in by the server.';
const RESOURCE = 'A request for objects. Exactly one of resourceAttributes and nonResourceAttributes is set.';
const PATH =
  'A request for a path that is no object. Exactly one of resourceAttributes and nonResourceAttributes is set.';

/** Texts for `kubectl explain`. */
export const REVIEW_DESCRIPTIONS: Descriptions = {
  'authentication.TokenReview':
    'Asks whose a token is. A cluster asks it below the prefix of that cluster: a token that does not reach it is nobody there.',
  'authentication.TokenReview.metadata': METADATA,
  'authentication.TokenReview.spec': ASKED,
  'authentication.TokenReview.status': ANSWERED,
  'authentication.TokenReviewSpec.token': 'The access key or token. It is a secret, and is in no answer.',
  'authentication.TokenReviewSpec.audiences':
    'Who wants to know, as tokens name their readers. Empty means the server itself.',
  'authentication.TokenReviewStatus.authenticated': 'The token is somebody.',
  'authentication.TokenReviewStatus.user': 'Who that is.',
  'authentication.TokenReviewStatus.audiences': 'For which of the audiences the token is good.',
  'authentication.TokenReviewStatus.error': 'Why it could not be found out.',
  'authentication.UserInfo.username': 'The name of the user.',
  'authentication.UserInfo.uid': 'Tells users of the same name apart.',
  'authentication.UserInfo.groups': 'The groups of the user.',
  'authentication.UserInfo.extra': 'What else is known: the key, its generation and its scope.',
  'authentication.SelfSubjectReview': 'Asks who the caller is: kubectl auth whoami.',
  'authentication.SelfSubjectReview.metadata': METADATA,
  'authentication.SelfSubjectReview.status': ANSWERED,
  'authentication.SelfSubjectReviewStatus.userInfo': 'The caller, as the server sees it.',
  'authorization.SelfSubjectAccessReview': 'Asks whether the caller may send a request: kubectl auth can-i.',
  'authorization.SelfSubjectAccessReview.metadata': METADATA,
  'authorization.SelfSubjectAccessReview.spec': ASKED,
  'authorization.SelfSubjectAccessReview.status': ANSWERED,
  'authorization.SelfSubjectAccessReviewSpec.resourceAttributes': RESOURCE,
  'authorization.SelfSubjectAccessReviewSpec.nonResourceAttributes': PATH,
  'authorization.SubjectAccessReview':
    'Asks whether somebody may send a request. A cluster asks it below the prefix of that cluster, and is answered by rights and scope.',
  'authorization.SubjectAccessReview.metadata': METADATA,
  'authorization.SubjectAccessReview.spec': ASKED,
  'authorization.SubjectAccessReview.status': ANSWERED,
  'authorization.SubjectAccessReviewSpec.resourceAttributes': RESOURCE,
  'authorization.SubjectAccessReviewSpec.nonResourceAttributes': PATH,
  'authorization.SubjectAccessReviewSpec.user': 'The name of the user who asks.',
  'authorization.SubjectAccessReviewSpec.groups': 'The groups of that user.',
  'authorization.SubjectAccessReviewSpec.extra':
    'What else its authentication said: the key and its scope are known again by it.',
  'authorization.SubjectAccessReviewSpec.uid': 'The uid of that user.',
  'authorization.SelfSubjectRulesReview':
    'Asks for everything that the caller may do: kubectl auth can-i --list. For people to read, not for decisions.',
  'authorization.SelfSubjectRulesReview.metadata': METADATA,
  'authorization.SelfSubjectRulesReview.spec': ASKED,
  'authorization.SelfSubjectRulesReview.status': ANSWERED,
  'authorization.SelfSubjectRulesReviewSpec.namespace': 'The namespace that is meant.',
  'authorization.SubjectRulesReviewStatus.resourceRules': 'Requests for objects that are let through.',
  'authorization.SubjectRulesReviewStatus.nonResourceRules': 'Paths that are let through.',
  'authorization.SubjectRulesReviewStatus.incomplete': 'There may be more than is listed.',
  'authorization.SubjectRulesReviewStatus.evaluationError': 'Why the list is not complete.',
  'authorization.ResourceRule.verbs': 'Verbs; * is every one.',
  'authorization.ResourceRule.apiGroups': 'API groups; * is every one.',
  'authorization.ResourceRule.resources': 'Plural names, or a subresource such as pods/log; * is every one.',
  'authorization.ResourceRule.resourceNames': 'Names of objects; empty is every one.',
  'authorization.NonResourceRule.verbs': 'HTTP methods in lower case; * is every one.',
  'authorization.NonResourceRule.nonResourceURLs': 'Paths; * stands for the rest of one.',
  'authorization.ResourceAttributes.namespace':
    'The namespace; empty where there is none, and for all namespaces.',
  'authorization.ResourceAttributes.verb': 'The verb, such as get or create; * asks for every one.',
  'authorization.ResourceAttributes.group': 'The API group; * asks for every one.',
  'authorization.ResourceAttributes.version': 'The API version; * asks for every one.',
  'authorization.ResourceAttributes.resource': 'The plural name of the kind; * asks for every one.',
  'authorization.ResourceAttributes.subresource': 'The subresource, such as status.',
  'authorization.ResourceAttributes.name': 'The name of the object; empty asks for every one.',
  'authorization.ResourceAttributes.fieldSelector': 'The field selector of the request.',
  'authorization.ResourceAttributes.labelSelector': 'The label selector of the request.',
  'authorization.NonResourceAttributes.path': 'The path of the URL.',
  'authorization.NonResourceAttributes.verb': 'The HTTP method in lower case.',
  'authorization.SubjectAccessReviewStatus.allowed': 'The request is let through.',
  'authorization.SubjectAccessReviewStatus.denied':
    'The request is refused, whatever another authorizer says. With neither allowed nor denied, the next authorizer is asked.',
  'authorization.SubjectAccessReviewStatus.reason': 'Why, for people.',
  'authorization.SubjectAccessReviewStatus.evaluationError':
    'What went wrong on the way; the answer holds nevertheless.',
};
