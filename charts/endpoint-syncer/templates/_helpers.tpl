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

{{- define "endpoint-syncer.vcluster" -}}
{{- required "config.endpointSyncer.name is required: the name of the virtual cluster" (dig "endpointSyncer" "name" "" .Values.config) }}
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

{{/* The configuration with the fields that the chart sets, as YAML. */}}
{{- define "endpoint-syncer.config" -}}
{{- $config := deepCopy .Values.config }}
{{- $name := include "endpoint-syncer.vcluster" . }}
{{- $syncer := $config.endpointSyncer }}
{{- $virtual := default dict $syncer.virtual }}
{{- if and (not $virtual.secret) (not $virtual.kubeconfig) }}
{{- $_ := set $virtual "secret" (printf "vc-%s" $name) }}
{{- if not $virtual.server }}
{{- $_ := set $virtual "server" (ternary "https://localhost:8443" (printf "https://%s.%s" $name .Release.Namespace) .Values.sidecar) }}
{{- end }}
{{- end }}
{{- if not $virtual.secret }}{{ $_ := unset $virtual "secret" }}{{ end }}
{{- if not $virtual.server }}{{ $_ := unset $virtual "server" }}{{ end }}
{{- $_ := set $syncer "virtual" $virtual }}
{{- $namespace := (default dict $syncer.host).namespace }}
{{- if and .Values.rbac.create $namespace (ne $namespace .Release.Namespace) }}
{{- fail (printf "config.endpointSyncer.host.namespace is %q, but the chart creates the Role in the namespace of the release, %q: install the release into %q, or set rbac.create to false and create the rights that endpoint-syncer rbac prints" $namespace .Release.Namespace $namespace) }}
{{- end }}
{{- $_ := set $syncer "host" (merge (default dict $syncer.host) (dict "namespace" .Release.Namespace)) }}
{{- $_ := set $syncer "http" (merge (default dict $syncer.http) (dict "bindAddress" ":8080")) }}
{{- if gt (int .Values.replicaCount) 1 }}
{{- $_ := set $syncer "leaderElection" (mergeOverwrite (default dict $syncer.leaderElection) (dict "enabled" true)) }}
{{- end }}
{{- if .Values.vclusterConfigSecret }}
{{- $_ := set $syncer "vclusterConfig" "/etc/vcluster/config.yaml" }}
{{- end }}
{{- if include "endpoint-syncer.hasApi" . }}
{{- if and (gt (int .Values.replicaCount) 1) (ne (dig "managementApi" "store" "driver" "sqlite" $config) "kubernetes") }}
{{- fail "with more than one replica config.managementApi.store.driver must be kubernetes: with any other store each replica has its own keys" }}
{{- end }}
{{- $_ := set $config "managementApi" (merge $config.managementApi (dict "bindAddress" ":9443" "dataDir" "/data")) }}
{{- end }}
{{- toYaml $config }}
{{- end }}

{{/* The part of the configuration that the program reads only at its start. */}}
{{- define "endpoint-syncer.restartConfig" -}}
{{- $config := include "endpoint-syncer.config" . | fromYaml }}
{{- $syncer := omit $config.endpointSyncer "selector" "namespaces" "metadata" }}
{{- toYaml (set (omit $config "sync" "experimental") "endpointSyncer" $syncer) }}
{{- end }}
