#!/usr/bin/env bash
# Argo CD's diff (gitops-engine, as Argo CD 3.3 pins it, with the API of Kubernetes 1.37.2) calls an EndpointSlice modified for ever if its manifest
# leaves out `conditions` of an endpoint: a kube-apiserver stores and returns `"conditions": {}` there, and the prediction is without it, also where
# last-applied-configuration equals the manifest. With `conditions: {}` or any condition in the manifest it is not modified. Argo CD 3 excludes
# EndpointSlices by default (`resource.exclusions`), so this concerns those who take the exclusion away. For the same objects, `kubectl diff` 1.37.2
# and Flux's ssa 0.75.0 report no difference.
#
# Needs Go 1.26 and its module proxy, no cluster. The first run compiles the types of Kubernetes, which takes minutes. Seen, 2026-11-29:
#
#	manifest without conditions: modified
#	manifest with conditions {}: not modified
#	manifest with ready: true, which is stored as such: not modified
set -euo pipefail
kubernetes=v1.37.2 staging=v0.37.2 engine=v0.7.1-0.20250908182407-97ad5b59a627
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

cat > main.go <<'GO'
package main

import (
	"fmt"

	"github.com/argoproj/gitops-engine/pkg/diff"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const slice = `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: db, namespace: default, labels: {kubernetes.io/service-name: db}}
addressType: IPv4
endpoints: [{addresses: [10.1.0.1]%s}]
ports: [{name: http, port: 80, protocol: TCP}]
`

func object(conditions string) *unstructured.Unstructured {
	read := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(fmt.Sprintf(slice, conditions)), &read.Object); err != nil {
		panic(err)
	}
	return read
}

func main() {
	for _, one := range [][]string{
		{"manifest without conditions", "", ", conditions: {}"},
		{"manifest with conditions {}", ", conditions: {}", ", conditions: {}"},
		{"manifest with ready: true, which is stored as such", ", conditions: {ready: true}", ", conditions: {ready: true}"},
	} {
		result, err := diff.Diff(object(one[1]), object(one[2]), diff.WithNormalizer(diff.GetNoopNormalizer()))
		if err != nil {
			panic(err)
		}
		fmt.Println(one[0] + ": " + map[bool]string{true: "modified", false: "not modified"}[result.Modified])
	}
}
GO

pinned=$(go mod download -json "k8s.io/kubernetes@$kubernetes" | sed -n 's/.*"GoMod": "\(.*\)",/\1/p')
go mod init finding 2> /dev/null
# Kubernetes refers to the staging folders of its repository, which are published as modules.
for name in $(sed -n 's,^\s*\(k8s.io/[a-z-]*\) => .*,\1,p' "$pinned"); do go mod edit -replace "$name=$name@$staging"; done
go mod edit -require "github.com/argoproj/gitops-engine@$engine" -require "k8s.io/kubernetes@$kubernetes"
go mod tidy 2> /dev/null
CGO_ENABLED=0 go build -trimpath -o finding .
seen=$(./finding)
echo "$seen"
[ "$seen" = 'manifest without conditions: modified
manifest with conditions {}: not modified
manifest with ready: true, which is stored as such: not modified' ] || {
  echo 'this has changed' >&2
  exit 1
}
