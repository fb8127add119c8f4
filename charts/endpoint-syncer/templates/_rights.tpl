{{/*
The rules that the configuration needs, as `endpoint-syncer rbac` prints them (a test compares the two): a map with the lists `role`, for the
release namespace, and `clusterRole`, and the map `others` with the rules for other namespaces: those that namespaces are mapped to by exact names, and that of the
key store. For a fleet, `others` or `clusterRole` has what is needed where its members are.
*/}}
{{- define "endpoint-syncer.rules" -}}
{{- $config := include "endpoint-syncer.config" . | fromYaml }}
{{- $isFleet := include "endpoint-syncer.isFleet" . }}
{{- /* Every member of a fleet has the defaults, and syncs both kinds. */}}
{{- $syncer := ternary (dig "defaults" dict $config.endpointSyncer) $config.endpointSyncer (eq $isFleet "true") }}
{{- $toHost := dig "sync" "toHost" dict $config }}
{{- $isMapped := dig "namespaces" "enabled" false $toHost }}
{{- $isLegacy := dig "experimental" "multiNamespaceMode" "enabled" false $config }}
{{- $targets := list }}
{{- if $isMapped }}
{{- range (values (dig "namespaces" "mappings" "byName" dict $toHost)) }}{{ $targets = append $targets (replace "${name}" $syncer.name .) }}{{ end }}
{{- end }}
{{- if $isFleet }}{{ $targets = uniq $config.endpointSyncer.fleet.namespaces.include }}{{ end }}
{{- /* Patterns have no list of namespaces, and a Role needs a namespace that exists. */}}
{{- $isWide := or $isLegacy (contains "*" (join "" $targets)) (and $isMapped $syncer.createNamespaces) }}
{{- $all := list "get" "list" "watch" "create" "update" "patch" "delete" }}
{{- $role := list }}
{{- $copies := list }}
{{- $cluster := list }}
{{- $secrets := list }}
{{- $syncsEndpoints := dig "endpoints" "enabled" true $toHost }}
{{- $syncsSlices := dig "endpointSlices" "enabled" true $toHost }}
{{- $services := default "vcluster" $syncer.services }}
{{- if kindIs "map" $services }}{{ $services = $services.mode }}{{ end }}
{{- $syncsServices := and (eq $services "sync") (dig "services" "enabled" true $toHost) }}
{{- $isSynced := or $syncsEndpoints $syncsSlices $syncsServices }}
{{- if $syncsEndpoints }}
{{- $copies = append $copies (dict "apiGroups" (list "") "resources" (list "endpoints") "verbs" $all) }}
{{- end }}
{{- if $syncsSlices }}
{{- $copies = append $copies (dict "apiGroups" (list "discovery.k8s.io") "resources" (list "endpointslices") "verbs" $all) }}
{{- else if $syncsEndpoints }}
{{- /* Optional: to report slices that vCluster also writes. */}}
{{- $copies = append $copies (dict "apiGroups" (list "discovery.k8s.io") "resources" (list "endpointslices") "verbs" (list "list")) }}
{{- end }}
{{- if $isSynced }}
{{- $read := list "get" "list" "watch" }}
{{- $copies = append $copies (dict "apiGroups" (list "") "resources" (list "services") "verbs" (ternary $all $read $syncsServices)) }}
{{- end }}
{{- $kinds := dict }}
{{- if $syncsEndpoints }}
{{- range (dig "endpoints" "patches" list $toHost) }}
{{- if .reference }}{{ $_ := set $kinds (printf "%s %s" .reference.apiVersion .reference.kind) .reference }}{{ end }}
{{- end }}
{{- end }}
{{- if $syncsSlices }}
{{- range (dig "endpointSlices" "patches" list $toHost) }}
{{- if .reference }}{{ $_ := set $kinds (printf "%s %s" .reference.apiVersion .reference.kind) .reference }}{{ end }}
{{- end }}
{{- end }}
{{- range $id, $kind := $kinds }}
{{- $rule := include "endpoint-syncer.referenceRule" (dict "kind" $kind "toHost" $toHost) | fromYaml }}
{{- $copies = append $copies $rule }}
{{- if has "secrets" $rule.resources }}{{ $secrets = $rule.verbs }}{{ end }}
{{- end }}
{{- $api := default dict $config.managementApi }}
{{- $store := dig "store" "namespace" "" $api }}
{{- $usesSecrets := and (default false $api.enabled) (eq (dig "store" "driver" "sqlite" $api) "kubernetes") }}
{{- $hasStore := and $usesSecrets (or (eq $store "") (eq $store .Release.Namespace)) }}
{{- $storeRule := dict "apiGroups" (list "") "resources" (list "secrets") "verbs" (list "get" "list" "watch" "create" "patch" "delete") }}
{{- /* Not needed if all Secrets may be read. */}}
{{- $readsSecrets := or $hasStore (and $secrets (not $isWide)) }}
{{- $secret := dig "virtual" "secret" "" $syncer }}
{{- if and $secret (not $readsSecrets) }}
{{- $role = append $role (dict "apiGroups" (list "") "resources" (list "secrets") "resourceNames" (list $secret) "verbs" (list "get")) }}
{{- end }}
{{- if $isFleet }}
{{- /* The Leases of the replicas. */}}
{{- $role = append $role (dict "apiGroups" (list "coordination.k8s.io") "resources" (list "leases") "verbs" (list "get" "list" "create" "update" "delete")) }}
{{- $copies = concat (include "endpoint-syncer.memberRules" . | fromYamlArray) $copies }}
{{- else if $isSynced }}
{{- /* Optional without leader election: to publish which configuration is in use. */}}
{{- $leases := dict "apiGroups" (list "coordination.k8s.io") "resources" (list "leases") }}
{{- $role = append $role (merge (dict "verbs" (list "create")) $leases) }}
{{- $role = append $role (merge (dict "resourceNames" (list (printf "endpoint-syncer-%s" $syncer.name)) "verbs" (list "get" "update")) $leases) }}
{{- /* Optional: to report a configuration that is not applied. */}}
{{- $role = append $role (dict "apiGroups" (list "events.k8s.io") "resources" (list "events") "verbs" (list "create" "patch")) }}
{{- end }}
{{- if and $isSynced $syncer.createNamespaces }}
{{- $cluster = append $cluster (dict "apiGroups" (list "") "resources" (list "namespaces") "verbs" (list "create")) }}
{{- end }}
{{- with $syncer.owner }}
{{- if and .name (not $isFleet) }}
{{- $group := ternary (first (splitList "/" .apiVersion)) "" (contains "/" .apiVersion) }}
{{- $role = append $role (dict "apiGroups" (list $group) "resources" (list (include "endpoint-syncer.plural" .kind)) "resourceNames" (list .name) "verbs" (list "get")) }}
{{- end }}
{{- end }}
{{- if $hasStore }}
{{- $role = append $role $storeRule }}
{{- end }}
{{- if $api.enabled }}
{{- if $api.delegatedAuth }}
{{- $cluster = append $cluster (dict "apiGroups" (list "authentication.k8s.io") "resources" (list "tokenreviews") "verbs" (list "create")) }}
{{- $cluster = append $cluster (dict "apiGroups" (list "authorization.k8s.io") "resources" (list "subjectaccessreviews") "verbs" (list "create")) }}
{{- end }}
{{- end }}
{{- $others := dict }}
{{- $extraRules := .Values.rbac.extraRules }}
{{- if $isFleet }}{{ $copies = concat $copies $extraRules }}{{ else }}{{ $role = concat $role $extraRules }}{{ end }}
{{- if $isWide }}
{{- $cluster = concat $copies $cluster }}
{{- else }}
{{- if not $isFleet }}{{ $role = concat $copies $role }}{{ end }}
{{- range $targets }}{{ if ne . $.Release.Namespace }}{{ $_ := set $others . $copies }}{{ end }}{{ end }}
{{- end }}
{{- if and $usesSecrets (not $hasStore) }}{{ $_ := set $others $store (append (default list (get $others $store)) $storeRule) }}{{ end }}
{{- toYaml (dict "role" $role "clusterRole" (concat $cluster .Values.rbac.extraClusterRules) "others" $others) }}
{{- end }}

{{/* Rights of a fleet where its members are, besides those on copies: to find them, read what belongs to them, and hold their Leases. */}}
{{- define "endpoint-syncer.memberRules" -}}
- {apiGroups: [apps], resources: [statefulsets], verbs: [list, watch]}
- {apiGroups: [apps], resources: [deployments], verbs: [list, watch]}
- {apiGroups: [""], resources: [secrets], verbs: [get, list, watch]}
- {apiGroups: [""], resources: [configmaps], verbs: [get, list, watch]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [list, delete, create, get, update]}
- {apiGroups: [events.k8s.io], resources: [events], verbs: [create, patch]}
{{- end }}

{{/* Rights on the host for one referenced kind; write access only if its sync is enabled. */}}
{{- define "endpoint-syncer.referenceRule" -}}
{{- $group := ternary (first (splitList "/" .kind.apiVersion)) "" (contains "/" .kind.apiVersion) }}
{{- $plural := include "endpoint-syncer.plural" .kind.kind }}
{{- $keys := dict "/ConfigMap" "configMaps" "/Secret" "secrets" "networking.k8s.io/Ingress" "ingresses" "networking.k8s.io/NetworkPolicy" "networkPolicies" "/PersistentVolumeClaim" "persistentVolumeClaims" "policy/PodDisruptionBudget" "podDisruptionBudgets" "resource.k8s.io/ResourceClaimTemplate" "resourceClaimTemplates" "resource.k8s.io/ResourceClaim" "resourceClaims" "/ServiceAccount" "serviceAccounts" "discovery.k8s.io/EndpointSlice" "endpointSlices" }}
{{- $key := get $keys (printf "%s/%s" $group .kind.kind) }}
{{- $isOn := false }}
{{- if $key }}
{{- $isOn = dig $key "enabled" (has $key (list "configMaps" "secrets" "persistentVolumeClaims")) .toHost }}
{{- else if not (has (printf "%s/%s" $group .kind.kind) (list "/Endpoints" "/Pod" "/Service")) }}
{{- $isOn = dig "customResources" (printf "%s.%s" $plural $group) "enabled" false .toHost }}
{{- end }}
{{- $verbs := list "get" "list" "watch" }}
{{- if $isOn }}{{ $verbs = concat $verbs (list "create" "update" "delete") }}{{ end }}
{{- toYaml (dict "apiGroups" (list $group) "resources" (list $plural) "verbs" $verbs) }}
{{- end }}

{{/* The plural of a kind by English rules, which nearly all kinds follow. */}}
{{- define "endpoint-syncer.plural" -}}
{{- $word := lower . }}
{{- if eq $word "endpoints" }}{{ $word }}
{{- else if regexMatch "(s|x|ch)$" $word }}{{ $word }}es
{{- else if hasSuffix "y" $word }}{{ trimSuffix "y" $word }}ies
{{- else }}{{ $word }}s
{{- end }}
{{- end }}
