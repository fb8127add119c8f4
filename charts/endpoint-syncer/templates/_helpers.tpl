{{- define "endpoint-syncer.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "endpoint-syncer.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains (include "endpoint-syncer.name" .) .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "endpoint-syncer.name" .) | trunc 63 | trimSuffix "-" }}
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
{{- if and (not $virtual.server) (not .Values.sidecar) }}
{{- $_ := set $virtual "server" (printf "https://%s.%s" $name .Release.Namespace) }}
{{- end }}
{{- end }}
{{- if not $virtual.secret }}{{ $_ := unset $virtual "secret" }}{{ end }}
{{- if not $virtual.server }}{{ $_ := unset $virtual "server" }}{{ end }}
{{- $_ := set $syncer "virtual" $virtual }}
{{- $_ := set $syncer "host" (merge (default dict $syncer.host) (dict "namespace" .Release.Namespace)) }}
{{- $_ := set $syncer "http" (merge (default dict $syncer.http) (dict "bindAddress" ":8080")) }}
{{- if gt (int .Values.replicaCount) 1 }}
{{- $_ := set $syncer "leaderElection" (mergeOverwrite (default dict $syncer.leaderElection) (dict "enabled" true)) }}
{{- end }}
{{- if .Values.vclusterConfigSecret }}
{{- $_ := set $syncer "vclusterConfig" "/etc/vcluster/config.yaml" }}
{{- end }}
{{- if include "endpoint-syncer.hasApi" . }}
{{- $_ := set $config "managementApi" (merge $config.managementApi (dict "bindAddress" ":9443" "dataDir" "/data")) }}
{{- end }}
{{- toYaml $config }}
{{- end }}
