/** Types of the reviews: questions about tokens and rights, as kube-apiserver 1.36 answers them. Notation: `schema/notation.ts`. */

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
