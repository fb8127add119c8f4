#!/usr/bin/env bash
# kustomize (its API 0.21.2 of 2026-09, and 0.21.1, which kubectl 1.37.2 has for `apply -k`) renames a Service and its Endpoints with `namePrefix`, but leaves
# the label kubernetes.io/service-name of the Service's EndpointSlices, by which alone they belong to it. So the renamed Service has no endpoints. Where
# its former name is in use, as with two overlays of one base in a namespace, the other Service gets the addresses: below, db of production has the address
# of the database of development as well as its own. kustomize reports nothing. `nameSuffix` does the same.
#
# kustomize's reference says that `namePrefix` changes the names of all resources and references, and it does so for the backend of an Ingress. The
# document "EndpointSlices" of Kubernetes says that this label tells the Service of a slice. Slices of Services with a selector are made in the
# cluster, so this concerns Services without one, whose Endpoints become EndpointSlices in manifests since Kubernetes 1.33 deprecates Endpoints.
# What helps is to tell kustomize of the label, with a nameReference in `configurations`.
#
# This builds two overlays and lists for each Service the addresses that Kubernetes finds for it: of Endpoints by name, of slices by label. Needs Go 1.26 and
# its module proxy, no cluster. Seen, 2026-11-30:
#
#	Ingress: db to db, dev-db to dev-db
#	Endpoints: db 10.1.0.1, dev-db 10.9.0.1
#	EndpointSlices: db 10.1.0.1 10.9.0.1, dev-db none
#	EndpointSlices, with nameReference: db 10.1.0.1, dev-db 10.9.0.1
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

cat > main.go <<'GO'
package main

import (
	"fmt"
	"strings"

	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	networking "k8s.io/api/networking/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

var files = map[string]string{
	"base/kustomization.yaml": `resources: [objects.yaml]`,
	"base/objects.yaml": `
apiVersion: v1
kind: Service
metadata: {name: db}
spec: {ports: [{name: sql, port: 5432}]}
---
apiVersion: v1
kind: Endpoints
metadata: {name: db}
subsets: [{addresses: [{ip: 10.1.0.1}], ports: [{name: sql, port: 5432}]}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: db-1, labels: {kubernetes.io/service-name: db}}
addressType: IPv4
endpoints: [{addresses: [10.1.0.1]}]
ports: [{name: sql, port: 5432}]
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: db}
spec: {defaultBackend: {service: {name: db, port: {name: sql}}}}
`,
	"production/kustomization.yaml": `resources: [../base]`,
	"development/kustomization.yaml": `
resources: [../base]
namePrefix: dev-
patches:
- target: {kind: Endpoints}
  patch: '- {op: replace, path: /subsets/0/addresses/0/ip, value: 10.9.0.1}'
- target: {kind: EndpointSlice}
  patch: '- {op: replace, path: /endpoints/0/addresses/0, value: 10.9.0.1}'
`,
	"development/reference.yaml": `
nameReference:
- kind: Service
  version: v1
  fieldSpecs: [{kind: EndpointSlice, group: discovery.k8s.io, path: metadata/labels/kubernetes.io\/service-name}]
`,
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

type cluster struct {
	services                      []string
	ingresses, endpoints, ofSlice map[string][]string
}

func (c *cluster) apply(system filesys.FileSystem, overlay string) {
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(system, overlay)
	must(err)
	for _, resource := range built.Resources() {
		text, err := resource.AsYAML()
		must(err)
		switch resource.GetKind() {
		case "Service":
			c.services = append(c.services, resource.GetName())
		case "Ingress":
			ingress := networking.Ingress{}
			must(yaml.Unmarshal(text, &ingress))
			c.ingresses[ingress.Name] = append(c.ingresses[ingress.Name], "to", ingress.Spec.DefaultBackend.Service.Name)
		case "Endpoints":
			endpoints := core.Endpoints{}
			must(yaml.Unmarshal(text, &endpoints))
			c.endpoints[endpoints.Name] = append(c.endpoints[endpoints.Name], endpoints.Subsets[0].Addresses[0].IP)
		case "EndpointSlice":
			slice := discovery.EndpointSlice{}
			must(yaml.Unmarshal(text, &slice))
			service := slice.Labels[discovery.LabelServiceName]
			c.ofSlice[service] = append(c.ofSlice[service], slice.Endpoints[0].Addresses...)
		}
	}
}

func (c *cluster) list(found map[string][]string) string {
	var lines []string
	for _, service := range c.services {
		words := found[service]
		if words == nil {
			words = []string{"none"}
		}
		lines = append(lines, service+" "+strings.Join(words, " "))
	}
	return strings.Join(lines, ", ")
}

func deploy(more string) *cluster {
	system := filesys.MakeFsInMemory()
	for path, text := range files {
		must(system.WriteFile(path, []byte(text)))
	}
	must(system.WriteFile("development/kustomization.yaml", []byte(files["development/kustomization.yaml"]+more)))
	made := &cluster{ingresses: map[string][]string{}, endpoints: map[string][]string{}, ofSlice: map[string][]string{}}
	made.apply(system, "production")
	made.apply(system, "development")
	return made
}

func main() {
	seen := deploy("")
	fmt.Println("Ingress:", seen.list(seen.ingresses))
	fmt.Println("Endpoints:", seen.list(seen.endpoints))
	fmt.Println("EndpointSlices:", seen.list(seen.ofSlice))
	mended := deploy("configurations: [reference.yaml]\n")
	fmt.Println("EndpointSlices, with nameReference:", mended.list(mended.ofSlice))
}
GO

go mod init finding 2> /dev/null
go mod edit -require sigs.k8s.io/kustomize/api@v0.21.2 -require k8s.io/api@v0.37.2
go mod tidy 2> /dev/null
CGO_ENABLED=0 go build -trimpath -o finding .
seen=$(./finding)
echo "$seen"
[ "$seen" = 'Ingress: db to db, dev-db to dev-db
Endpoints: db 10.1.0.1, dev-db 10.9.0.1
EndpointSlices: db 10.1.0.1 10.9.0.1, dev-db none
EndpointSlices, with nameReference: db 10.1.0.1, dev-db 10.9.0.1' ] || {
  echo 'this has changed' >&2
  exit 1
}
