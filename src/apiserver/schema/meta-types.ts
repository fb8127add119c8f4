/** Types of meta/v1, as kube-apiserver 1.36 serves them. Notation: `schema/notation.ts`. */

export const META_TYPES = `
meta.ObjectMeta = name:1 string; generateName:2 string; namespace:3 string; selfLink:4 string; uid:5 string:types.UID; resourceVersion:6 string; generation:7 int64; creationTimestamp:8 time; deletionTimestamp:9 *time; deletionGracePeriodSeconds:10 *int64; labels:11 {}string; annotations:12 {}string; ownerReferences:13 []meta.OwnerReference map(uid) ~merge(uid); finalizers:14 []string set ~merge; managedFields:17 *[]meta.ManagedFieldsEntry atomic
meta.OwnerReference atomic = apiVersion:5!+ string; kind:1!+ string; name:3!+ string; uid:4!+ string:types.UID; controller:6 *bool; blockOwnerDeletion:7 *bool
meta.ManagedFieldsEntry = manager:1 string; operation:2 string:v1.ManagedFieldsOperationType; apiVersion:3 string; time:4 *time; fieldsType:6 string; fieldsV1:7 *any; subresource:8 string
meta.Condition = type:1!+ string; status:2!+ string:v1.ConditionStatus; observedGeneration:3 int64; lastTransitionTime:4!+ time; reason:5!+ string; message:6!+ string
meta.LabelSelector atomic = matchLabels:1 {}string; matchExpressions:2 []meta.LabelSelectorRequirement atomic
meta.LabelSelectorRequirement = key:1!+ string; operator:2!+ string:v1.LabelSelectorOperator; values:3 []string atomic
meta.FieldSelectorRequirement = key:1!+ string; operator:2!+ string:v1.FieldSelectorOperator; values:3 []string atomic
meta.DeleteOptions = gracePeriodSeconds:1 *int64; preconditions:2 *meta.Preconditions; orphanDependents:3 *bool; propagationPolicy:4 *string:v1.DeletionPropagation; dryRun:5 []string atomic; ignoreStoreReadErrorWithClusterBreakingPotential:6 *bool
meta.Preconditions = uid:1 *string:types.UID; resourceVersion:2 *string
`;
