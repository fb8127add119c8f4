#!/usr/bin/env bash
# Traefik 3.7.13 (2026-09) reads the conditions of endpoints in two ways, and neither is the one of the API. Ingress and IngressRoute leave out an address
# only if `serving` is false, so they send requests to an address with `ready: false` and no `serving`. IngressRouteTCP and HTTPRoute want `ready` to be
# true, so they send nothing to an address without conditions. The reference of the EndpointSlice API says that `ready` tells whether an endpoint is ready
# to receive traffic, and that a missing value of it means true: all four should have 10.1.0.1 and 10.1.0.2.
#
# Kubernetes' EndpointSlice controller sets all three conditions, so Services with a selector are not concerned. Others are. The mirroring controller of
# Kubernetes 1.37.2 sets `ready` alone (seen), so an Ingress sends a share of its requests to the `notReadyAddresses` of Endpoints. Slices written by hand
# often have no conditions, as in the document "Service" (section "Services without selectors"). What helps in a slice is to write `ready` always, and
# `serving` with the same value. In Traefik 3.6.2, an Ingress left out addresses without conditions too; that is its issue 12389, and with the change that
# mended it an Ingress looks at `serving` alone.
#
# This runs Traefik's providers against a server on the loopback interface, which has objects as a kube-apiserver stores them. The slice has 10.1.0.1 with
# `ready: true`, 10.1.0.2 without conditions, 10.1.0.3 with `ready: false`, and 10.1.0.4 with `ready` and `serving` false. Needs Go 1.26 and its module
# proxy, no cluster. The first run compiles them, which takes minutes. Seen, 2026-11-30:
#
#	Ingress: 10.1.0.1:8080 10.1.0.2:8080 10.1.0.3:8080
#	IngressRoute: 10.1.0.1:8080 10.1.0.2:8080 10.1.0.3:8080
#	IngressRouteTCP: 10.1.0.1:8080
#	HTTPRoute: 10.1.0.1:8080
set -euo pipefail
traefik=v3.7.13
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

cat > main.go <<'GO'
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"

	"github.com/rs/zerolog"
	"github.com/traefik/traefik/v3/pkg/config/dynamic"
	"github.com/traefik/traefik/v3/pkg/provider/kubernetes/crd"
	"github.com/traefik/traefik/v3/pkg/provider/kubernetes/gateway"
	"github.com/traefik/traefik/v3/pkg/provider/kubernetes/ingress"
	"github.com/traefik/traefik/v3/pkg/safe"
	"sigs.k8s.io/yaml"
)

const objects = `
namespaces:
- apiVersion: v1
  kind: Namespace
  metadata: {name: default}
services:
- apiVersion: v1
  kind: Service
  metadata: {name: db, namespace: default}
  spec: {type: ClusterIP, clusterIP: 10.96.0.7, ports: [{name: http, port: 80, protocol: TCP}]}
endpointslices:
- apiVersion: discovery.k8s.io/v1
  kind: EndpointSlice
  metadata: {name: db-1, namespace: default, labels: {kubernetes.io/service-name: db}}
  addressType: IPv4
  endpoints:
  - {addresses: [10.1.0.1], conditions: {ready: true}}
  - {addresses: [10.1.0.2], conditions: {}}
  - {addresses: [10.1.0.3], conditions: {ready: false}}
  - {addresses: [10.1.0.4], conditions: {ready: false, serving: false}}
  ports: [{name: http, port: 8080, protocol: TCP}]
ingresses:
- apiVersion: networking.k8s.io/v1
  kind: Ingress
  metadata: {name: db, namespace: default}
  spec: {rules: [{http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: db, port: {number: 80}}}}]}}]}
ingressroutes:
- apiVersion: traefik.io/v1alpha1
  kind: IngressRoute
  metadata: {name: db, namespace: default}
  spec: {routes: [{kind: Rule, match: PathPrefix("/"), services: [{name: db, port: 80}]}]}
ingressroutetcps:
- apiVersion: traefik.io/v1alpha1
  kind: IngressRouteTCP
  metadata: {name: db, namespace: default}
  spec: {routes: [{match: HostSNI("*"), services: [{name: db, port: 80}]}]}
gatewayclasses:
- apiVersion: gateway.networking.k8s.io/v1
  kind: GatewayClass
  metadata: {name: traefik}
  spec: {controllerName: traefik.io/gateway-controller}
gateways:
- apiVersion: gateway.networking.k8s.io/v1
  kind: Gateway
  metadata: {name: web, namespace: default}
  spec: {gatewayClassName: traefik, listeners: [{name: web, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: Same}}}]}
httproutes:
- apiVersion: gateway.networking.k8s.io/v1
  kind: HTTPRoute
  metadata: {name: db, namespace: default}
  spec:
    parentRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: web}]
    rules:
    - matches: [{path: {type: PathPrefix, value: /}}]
      backendRefs: [{group: "", kind: Service, name: db, port: 80, weight: 1}]
`

// Serves lists of the objects, which never change.
func api() *httptest.Server {
	lists := map[string][]map[string]any{}
	if err := yaml.Unmarshal([]byte(objects), &lists); err != nil {
		panic(err)
	}
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
		query := r.URL.Query()
		w.Header().Set("Content-Type", "application/json")
		switch {
		case query.Has("sendInitialEvents"):
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = w.Write([]byte(`{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "Invalid", "code": 422}`))
		case query.Has("watch"):
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			items := lists[parts[len(parts)-1]]
			if items == nil {
				items = []map[string]any{}
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"metadata": map[string]any{"resourceVersion": "1"}, "items": items})
		}
	}))
}

type provider interface {
	Init() error
	Provide(chan<- dynamic.Message, *safe.Pool) error
}

// What Traefik would send requests and connections to.
func servers(from provider) (overHTTP, overTCP string) {
	messages := make(chan dynamic.Message, 1)
	if err := from.Init(); err != nil {
		panic(err)
	}
	if err := from.Provide(messages, safe.NewPool(context.Background())); err != nil {
		panic(err)
	}
	configuration := (<-messages).Configuration
	var urls, addresses []string
	for _, service := range configuration.HTTP.Services {
		if service.LoadBalancer != nil {
			for _, server := range service.LoadBalancer.Servers {
				urls = append(urls, strings.TrimPrefix(server.URL, "http://"))
			}
		}
	}
	if configuration.TCP != nil {
		for _, service := range configuration.TCP.Services {
			if service.LoadBalancer != nil {
				for _, server := range service.LoadBalancer.Servers {
					addresses = append(addresses, server.Address)
				}
			}
		}
	}
	slices.Sort(urls)
	slices.Sort(addresses)
	return strings.Join(urls, " "), strings.Join(addresses, " ")
}

func main() {
	zerolog.SetGlobalLevel(zerolog.Disabled)
	server := api()
	ingresses, _ := servers(&ingress.Provider{Endpoint: server.URL})
	routes, tcp := servers(&crd.Provider{Endpoint: server.URL})
	gateways, _ := servers(&gateway.Provider{Endpoint: server.URL, EntryPoints: map[string]gateway.Entrypoint{"web": {Address: ":80"}}})
	fmt.Println("Ingress:", ingresses)
	fmt.Println("IngressRoute:", routes)
	fmt.Println("IngressRouteTCP:", tcp)
	fmt.Println("HTTPRoute:", gateways)
}
GO

# Traefik embeds types of a module in a folder of its repository, which is not published and has no fields: a place for extensions.
mkdir extensions
cat > extensions/extensions.go <<'GO'
package ext

type (
	HTTP      struct{}
	Router    struct{}
	RouterIng struct{}
)

func (RouterIng) ToRouter() (router Router) { return router }
GO
(cd extensions && go mod init github.com/traefik/traefik/dynamic/ext 2> /dev/null)

go mod init finding 2> /dev/null
go mod edit -require "github.com/traefik/traefik/v3@$traefik" -replace github.com/traefik/traefik/dynamic/ext=./extensions
CGO_ENABLED=0 go build -mod=mod -trimpath -o finding . 2> build.log || {
  cat build.log >&2
  exit 1
}
seen=$(env -u KUBECONFIG -u KUBERNETES_SERVICE_HOST timeout 60 ./finding)
echo "$seen"
[ "$seen" = 'Ingress: 10.1.0.1:8080 10.1.0.2:8080 10.1.0.3:8080
IngressRoute: 10.1.0.1:8080 10.1.0.2:8080 10.1.0.3:8080
IngressRouteTCP: 10.1.0.1:8080
HTTPRoute: 10.1.0.1:8080' ] || {
  echo 'this has changed' >&2
  exit 1
}
