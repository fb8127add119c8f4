module jsonpath

go 1.26.0

require (
	k8s.io/client-go v0.36.3
	sigs.k8s.io/json v0.0.0-20250730193827-2d320260d730
)
