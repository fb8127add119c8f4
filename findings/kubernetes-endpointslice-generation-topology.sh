#!/usr/bin/env bash
# kube-apiserver 1.37.2 raises metadata.generation of an EndpointSlice, and so stores it again, for a write in v1 that changes nothing, if the
# manifest has `deprecatedTopology`: the field is left out of what is stored, as its documentation says, but only after the new object, which still
# has it, was compared with the old one, which never will. The same manifest without the field is a write without effect. So each `kubectl apply` of an
# unchanged manifest says "configured", sends an event to every watch of slices, and `kubectl diff` reports `generation: 3` / `generation: 4`
# with exit code 1, for ever (seen with a kube-apiserver and kubectl 1.37.2).
#
# This runs the strategy by which kube-apiserver prepares writes of EndpointSlices. Needs Go 1.26 and its module proxy, no cluster. The first run
# compiles parts of Kubernetes, which takes minutes. Seen, 2026-11-29:
#
#	applied three times with topology: generations 1, 2, 3, stored content the same
#	applied three times without it: generations 1, 1, 1, stored content the same
set -euo pipefail
kubernetes=v1.37.2 staging=v0.37.2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

cat > main.go <<'GO'
package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/kubernetes/pkg/apis/discovery"
	"k8s.io/kubernetes/pkg/registry/discovery/endpointslice"
)

func manifest(topology map[string]string) *discovery.EndpointSlice {
	return &discovery.EndpointSlice{
		AddressType: discovery.AddressTypeIPv4,
		Endpoints:   []discovery.Endpoint{{Addresses: []string{"10.1.0.1"}, DeprecatedTopology: topology}},
	}
}

func main() {
	v1 := request.WithRequestInfo(context.Background(), &request.RequestInfo{APIGroup: "discovery.k8s.io", APIVersion: "v1"})
	for _, one := range []struct {
		name     string
		topology map[string]string
	}{
		{"with topology", map[string]string{"topology.kubernetes.io/zone": "a"}},
		{"without it", nil},
	} {
		stored := manifest(one.topology)
		endpointslice.Strategy.PrepareForCreate(v1, stored)
		first := stored.DeepCopy()
		generations := fmt.Sprint(stored.Generation)
		content := "the same"
		for range 2 {
			next := manifest(one.topology)
			stored.ObjectMeta.DeepCopyInto(&next.ObjectMeta)
			endpointslice.Strategy.PrepareForUpdate(v1, next, stored)
			generations += fmt.Sprint(", ", next.Generation)
			if !equality.Semantic.DeepEqual(next.Endpoints, first.Endpoints) {
				content = "changed"
			}
			stored = next
		}
		fmt.Printf("applied three times %s: generations %s, stored content %s\n", one.name, generations, content)
	}
}
GO

pinned=$(go mod download -json "k8s.io/kubernetes@$kubernetes" | sed -n 's/.*"GoMod": "\(.*\)",/\1/p')
go mod init finding 2> /dev/null
# Kubernetes refers to the staging folders of its repository, which are published as modules.
for name in $(sed -n 's,^\s*\(k8s.io/[a-z-]*\) => .*,\1,p' "$pinned"); do go mod edit -replace "$name=$name@$staging"; done
go mod edit -require "k8s.io/kubernetes@$kubernetes"
go mod tidy 2> /dev/null
CGO_ENABLED=0 go build -trimpath -o finding .
seen=$(./finding)
echo "$seen"
[ "$seen" = 'applied three times with topology: generations 1, 2, 3, stored content the same
applied three times without it: generations 1, 1, 1, stored content the same' ] || {
  echo 'this has changed' >&2
  exit 1
}
