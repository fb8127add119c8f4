{{- define "endpoint-syncer.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* Short enough for the suffixes -metrics and -dashboard in names of at most 63 characters. */}}
{{- define "endpoint-syncer.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 53 | trimSuffix "-" }}
{{- else if contains (include "endpoint-syncer.name" .) .Release.Name }}
{{- .Release.Name | trunc 53 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "endpoint-syncer.name" .) | trunc 53 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "endpoint-syncer.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "endpoint-syncer.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "endpoint-syncer.selectorLabels" -}}
app.kubernetes.io/name: {{ include "endpoint-syncer.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* Labels of the Pods that run the program: those of this release, or vCluster's. */}}
{{- define "endpoint-syncer.podSelector" -}}
{{- if .Values.sidecar -}}
app: vcluster
release: {{ include "endpoint-syncer.vcluster" . }}
{{- else -}}
{{ include "endpoint-syncer.selectorLabels" . }}
{{- end }}
{{- end }}

{{/* One installation for every selected vCluster of the host. */}}
{{- define "endpoint-syncer.isFleet" -}}
{{- if dig "endpointSyncer" "fleet" "enabled" false .Values.config }}true{{ end }}
{{- end }}

{{/* A fleet has the caches and the expressions of all its members. */}}
{{- define "endpoint-syncer.resources" -}}
{{- $resources := deepCopy (default dict .Values.resources) }}
{{- if and (hasKey $resources "limits") (not (hasKey $resources.limits "memory")) }}
{{- $_ := set $resources.limits "memory" (ternary "1Gi" "512Mi" (eq (include "endpoint-syncer.isFleet" .) "true")) }}
{{- end }}
{{- toYaml $resources }}
{{- end }}

{{- define "endpoint-syncer.vcluster" -}}
{{- if include "endpoint-syncer.isFleet" . }}{{ include "endpoint-syncer.checkFleet" . }}{{ end }}
{{- required (printf "config.endpointSyncer.name is required: the name of the virtual cluster; the keys of config are %s" (keys .Values.config | sortAlpha | join ", ")) (dig "endpointSyncer" "name" "" .Values.config) }}
{{- end }}

{{- define "endpoint-syncer.serviceAccountName" -}}
{{- if .Values.serviceAccount.name }}
{{- .Values.serviceAccount.name }}
{{- else if .Values.sidecar }}
{{- printf "vc-%s" (include "endpoint-syncer.vcluster" .) }}
{{- else if .Values.serviceAccount.create }}
{{- include "endpoint-syncer.fullname" . }}
{{- else -}}
default
{{- end }}
{{- end }}

{{- define "endpoint-syncer.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end }}
{{- end }}

{{- define "endpoint-syncer.hasApi" -}}
{{- if dig "managementApi" "enabled" false .Values.config }}true{{ end }}
{{- end }}

{{/* Of the Service of the key and token API. */}}
{{- define "endpoint-syncer.apiUrl" -}}
https://{{ include "endpoint-syncer.fullname" . }}.{{ .Release.Namespace }}.svc
{{- end }}

{{/* Refuses values of the configuration that cannot work in the Pod, with the value to use instead. */}}
{{- define "endpoint-syncer.checkConfig" -}}
{{- $syncer := .Values.config.endpointSyncer }}
{{- $api := default dict .Values.config.managementApi }}
{{- $host := default dict $syncer.host }}
{{- $everywhere := "^((0\\.0\\.0\\.0|\\[::\\])?:%d)?$" }}
{{- if and .Values.rbac.create $host.namespace (ne $host.namespace .Release.Namespace) }}
{{- fail (printf "config.endpointSyncer.host.namespace is %q, but the chart creates the Role in the namespace of the release, %q: install the release into %q, or set rbac.create to false and create the rights that endpoint-syncer rbac prints" $host.namespace .Release.Namespace $host.namespace) }}
{{- end }}
{{- with (default dict $syncer.http).bindAddress }}
{{- if not (regexMatch (printf $everywhere 8080) .) }}
{{- fail (printf "config.endpointSyncer.http.bindAddress is %q, which the probes of the kubelet and Prometheus do not reach: remove it, or set it to \":8080\"" .) }}
{{- end }}
{{- end }}
{{- if $syncer.vclusterConfig }}
{{- fail (printf "config.endpointSyncer.vclusterConfig is %q, and the Pod has no such file: remove it, and set vclusterConfigSecret to the Secret with vCluster's values, vc-config-%s, which sets it" $syncer.vclusterConfig (default "NAME" $syncer.name)) }}
{{- end }}
{{- include "endpoint-syncer.checkPath" (list . "config.endpointSyncer.virtual.kubeconfig" (default dict $syncer.virtual).kubeconfig "remove it, and set config.endpointSyncer.virtual.secret to a Secret of this namespace with the kubeconfig") }}
{{- include "endpoint-syncer.checkPath" (list . "config.endpointSyncer.host.kubeconfig" $host.kubeconfig "remove it: the Pod uses its ServiceAccount") }}
{{- if $api.enabled }}
{{- with $api.bindAddress }}
{{- if not (regexMatch (printf $everywhere 9443) .) }}
{{- fail (printf "config.managementApi.bindAddress is %q, and the Service leads to port 9443 of the Pod: remove it, or set it to \":9443\"" .) }}
{{- end }}
{{- end }}
{{- $tls := default dict $api.tls }}
{{- $inData := "name one below /data, the volume of the API" }}
{{- range $field, $path := dict "dataDir" $api.dataDir "bootstrapKeyFile" $api.bootstrapKeyFile "tls.certFile" $tls.certFile "tls.keyFile" $tls.keyFile }}
{{- include "endpoint-syncer.checkPath" (list $ (printf "config.managementApi.%s" $field) $path $inData) }}
{{- end }}
{{- if and (gt (int .Values.replicaCount) 1) (ne (dig "store" "driver" "sqlite" $api) "kubernetes") }}
{{- fail "with more than one replica config.managementApi.store.driver must be kubernetes: with any other store each replica has its own keys" }}
{{- end }}
{{- end }}
{{- end }}

{{/* Refuses values of a Deployment, which a sidecar would silently be without. */}}
{{- define "endpoint-syncer.checkSidecar" -}}
{{- if ne (int .Values.replicaCount) 1 }}
{{- fail (printf "sidecar is true, and replicaCount is %d: the replicas are those of vCluster's StatefulSet, so remove it" (int .Values.replicaCount)) }}
{{- end }}
{{- $isSet := pick .Values "imagePullSecrets" "extraArgs" "env" "podAnnotations" "podLabels" "priorityClassName" "nodeSelector" "tolerations" "affinity" "topologySpreadConstraints" }}
{{- range $section, $fields := dict "persistence" (list "enabled" "existingClaim") "networkPolicy" (list "enabled") }}
{{- range $fields }}{{ $_ := set $isSet (printf "%s.%s" $section .) (get (get $.Values $section) .) }}{{ end }}
{{- end }}
{{- range $name, $value := $isSet }}
{{- if $value }}{{ fail (printf "sidecar is true, and %s is a value of a Deployment: remove it, and set it for the Pod or the container in the values of vCluster's chart" $name) }}{{ end }}
{{- end }}
{{- end }}

{{/* Refuses values that a fleet cannot have. */}}
{{- define "endpoint-syncer.checkFleet" -}}
{{- $syncer := .Values.config.endpointSyncer }}
{{- if .Values.sidecar }}
{{- fail "sidecar is true, and a fleet (config.endpointSyncer.fleet.enabled) runs in a Pod of its own: remove sidecar, or the fleet" }}
{{- end }}
{{- if .Values.vclusterConfigSecret }}
{{- fail (printf "vclusterConfigSecret is %q, and each member of a fleet has the values in the Secret vc-config-NAME of its vCluster: remove it" .Values.vclusterConfigSecret) }}
{{- end }}
{{- range $key, $value := omit $syncer "host" "http" "log" "fleet" "defaults" }}
{{- if has $key (list "name" "virtual" "vclusterConfig") }}
{{- if $value }}{{ fail (printf "config.endpointSyncer.%s is a setting of one virtual cluster, and a fleet takes it from each vCluster: remove it" $key) }}{{ end }}
{{- else }}
{{- fail (printf "config.endpointSyncer.%s is a setting of one virtual cluster: move it to config.endpointSyncer.defaults, which every member of the fleet gets" $key) }}
{{- end }}
{{- end }}
{{- $default := dict "toHost" (dict "endpoints" (dict "enabled" true) "endpointSlices" (dict "enabled" true)) }}
{{- if or .Values.config.experimental (ne (toJson (default $default .Values.config.sync)) (toJson $default)) }}
{{- fail "config.sync and config.experimental are sections of one virtual cluster: remove them, and set what is synced, with its patches, in the values of each vCluster" }}
{{- end }}
{{- $isOwn := dict }}
{{- range $list := list "include" "exclude" }}
{{- range dig "fleet" "namespaces" $list list $syncer }}
{{- if regexMatch (printf "^%s$" (replace "*" ".*" .)) $.Release.Namespace }}{{ $_ := set $isOwn $list . }}{{ end }}
{{- end }}
{{- end }}
{{- if and $isOwn.include (not $isOwn.exclude) }}
{{- fail (printf "config.endpointSyncer.fleet.namespaces.include has %q, which contains the namespace of the release, %q, whose Secrets are not those of vClusters: install the release into another namespace, or add %q to exclude" $isOwn.include .Release.Namespace .Release.Namespace) }}
{{- end }}
{{- end }}

{{/* A file has to be below /data, the volume of the key and token API. vCluster's Pod, where the sidecar runs, may have others. */}}
{{- define "endpoint-syncer.checkPath" -}}
{{- $root := first . }}
{{- $name := index . 1 }}
{{- $path := default "" (index . 2) }}
{{- if and $path (not (regexMatch (ternary "^/" (ternary "^/data(/|$)" "^$" (eq (include "endpoint-syncer.hasApi" $root) "true")) $root.Values.sidecar) $path)) }}
{{- fail (printf "%s is %q, and the Pod has no such file: %s" $name $path (last .)) }}
{{- end }}
{{- end }}

{{/* The configuration with the fields that the chart sets, as YAML. */}}
{{- define "endpoint-syncer.config" -}}
{{- if include "endpoint-syncer.isFleet" . }}{{ include "endpoint-syncer.checkFleet" . }}{{ end }}
{{- if .Values.sidecar }}{{ include "endpoint-syncer.checkSidecar" . }}{{ end }}
{{- include "endpoint-syncer.checkConfig" . }}
{{- $config := deepCopy .Values.config }}
{{- $syncer := $config.endpointSyncer }}
{{- $_ := set $syncer "host" (merge (default dict $syncer.host) (dict "namespace" .Release.Namespace)) }}
{{- $_ := set $syncer "http" (merge (default dict $syncer.http) (dict "bindAddress" ":8080")) }}
{{- if include "endpoint-syncer.isFleet" . }}
{{- $_ := unset $config "sync" }}
{{- $_ := unset $syncer "virtual" }}
{{- else }}
{{- include "endpoint-syncer.setVirtual" (list . $syncer) }}
{{- end }}
{{- if include "endpoint-syncer.hasApi" . }}
{{- $_ := set $config "managementApi" (merge $config.managementApi (dict "bindAddress" ":9443" "dataDir" "/data" "issuer" (include "endpoint-syncer.apiUrl" .))) }}
{{- end }}
{{- toYaml $config }}
{{- end }}

{{/* Sets what only the configuration of one virtual cluster has. */}}
{{- define "endpoint-syncer.setVirtual" -}}
{{- $root := first . }}
{{- $syncer := last . }}
{{- $name := include "endpoint-syncer.vcluster" $root }}
{{- $virtual := default dict $syncer.virtual }}
{{- $secret := printf "vc-%s" $name }}
{{- if not $virtual.kubeconfig }}{{ $_ := set $virtual "secret" (default $secret $virtual.secret) }}{{ end }}
{{- if and (eq (default "" $virtual.secret) $secret) (not $virtual.server) }}
{{- $_ := set $virtual "server" (ternary "https://localhost:8443" (printf "https://%s.%s" $name $root.Release.Namespace) $root.Values.sidecar) }}
{{- end }}
{{- if not $virtual.secret }}{{ $_ := unset $virtual "secret" }}{{ end }}
{{- if not $virtual.server }}{{ $_ := unset $virtual "server" }}{{ end }}
{{- $_ := set $syncer "virtual" $virtual }}
{{- if gt (int $root.Values.replicaCount) 1 }}
{{- $_ := set $syncer "leaderElection" (mergeOverwrite (default dict $syncer.leaderElection) (dict "enabled" true)) }}
{{- end }}
{{- if $root.Values.vclusterConfigSecret }}
{{- $_ := set $syncer "vclusterConfig" "/etc/vcluster/config.yaml" }}
{{- end }}
{{- end }}

{{/* The part of the configuration that the program reads only at its start. */}}
{{- define "endpoint-syncer.restartConfig" -}}
{{- $config := include "endpoint-syncer.config" . | fromYaml }}
{{- $syncer := omit $config.endpointSyncer "selector" "namespaces" "metadata" "defaults" }}
{{- with $syncer.fleet }}
{{- $_ := set $syncer "fleet" (set (omit . "selector") "limits" (pick (default dict .limits) "sandboxes")) }}
{{- end }}
{{- toYaml (set (pick $config "managementApi") "endpointSyncer" $syncer) }}
{{- end }}
