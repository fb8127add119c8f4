#!/usr/bin/env bash
# Prometheus 3.16.0 (role `endpointslice` of its Kubernetes discovery, since 3.11.0) finds no target in an EndpointSlice whose address type is not the
# first one of the `ipFamilies` of a dual-stack Service. It takes it for the second slice that Kubernetes makes for the same Pods, also if the Service has
# no selector, so that the slice is written by hand or by a program, and nothing else has those addresses. Nor need anybody choose dual-stack: a headless
# Service without a selector is stored with `RequireDualStack` and both families, even by a cluster of IPv4 alone (document "IPv4/IPv6 dual-stack" of
# Kubernetes; seen with a kube-apiserver 1.37.2). There, slices of IPv6 machines or of DNS names are ignored without a word, while the role `endpoints`
# finds the same address. The document "Configuration" of Prometheus (section "endpointslice") says that each address is a target, and nothing of families;
# the changelog has the change as a fix of duplicates. What helps is a Service with `ipFamilyPolicy: SingleStack` and the one family from the start.
#
# Known for the kubelets of Prometheus Operator only, which since makes slices of both families. Needs Go 1.26 and its module proxy, no cluster.
# Seen, 2026-11-30:
#
#	slice of IPv4: 10.1.0.1:9187
#	slice of IPv6: none
#	slice of FQDN: none
#	Endpoints of IPv6: [fd00::1]:9187
#	slice of IPv6, SingleStack: [fd00::1]:9187
set -euo pipefail
prometheus=v0.316.0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

cat > main.go <<'GO'
package main

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/discovery/kubernetes"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
)

func about() meta.ObjectMeta {
	return meta.ObjectMeta{Name: "db", Namespace: "default", Labels: map[string]string{discovery.LabelServiceName: "db"}}
}

// A headless Service without a selector, as a kube-apiserver stores it.
func service(policy core.IPFamilyPolicy, families ...core.IPFamily) *core.Service {
	return &core.Service{ObjectMeta: about(), Spec: core.ServiceSpec{
		Type: core.ServiceTypeClusterIP, ClusterIP: core.ClusterIPNone, ClusterIPs: []string{core.ClusterIPNone},
		IPFamilyPolicy: &policy, IPFamilies: families, Ports: []core.ServicePort{{Name: "metrics", Port: 9187, Protocol: core.ProtocolTCP}},
	}}
}

func slice(kind discovery.AddressType, address string) *discovery.EndpointSlice {
	name, port, protocol := "metrics", int32(9187), core.ProtocolTCP
	return &discovery.EndpointSlice{
		ObjectMeta: about(), AddressType: kind,
		Endpoints: []discovery.Endpoint{{Addresses: []string{address}}},
		Ports:     []discovery.EndpointPort{{Name: &name, Port: &port, Protocol: &protocol}},
	}
}

func endpoints(address string) *core.Endpoints {
	return &core.Endpoints{ObjectMeta: about(), Subsets: []core.EndpointSubset{{
		Addresses: []core.EndpointAddress{{IP: address}},
		Ports:     []core.EndpointPort{{Name: "metrics", Port: 9187, Protocol: core.ProtocolTCP}},
	}}}
}

func discover(name string, of *core.Service, object runtime.Object) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	factory := informers.NewSharedInformerFactory(fake.NewClientset(of, object), 0)
	services, pods := factory.Core().V1().Services().Informer(), factory.Core().V1().Pods().Informer()
	events := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "events"}, []string{"role", "event"})
	var role interface {
		Run(context.Context, chan<- []*targetgroup.Group)
	}
	if _, isSlice := object.(*discovery.EndpointSlice); isSlice {
		slices := factory.Discovery().V1().EndpointSlices().Informer()
		role = kubernetes.NewEndpointSlice(nil, slices, services, pods, nil, nil, nil, nil, false, false, false, events)
	} else {
		all := factory.Core().V1().Endpoints().Informer()
		role = kubernetes.NewEndpoints(nil, all, services, pods, nil, nil, nil, nil, false, false, false, events)
	}
	factory.Start(ctx.Done())
	groups := make(chan []*targetgroup.Group)
	go role.Run(ctx, groups)
	found := "none"
	for _, target := range (<-groups)[0].Targets {
		found = string(target["__address__"])
	}
	fmt.Printf("%s: %s\n", name, found)
}

func main() {
	dual := service(core.IPFamilyPolicyRequireDualStack, core.IPv4Protocol, core.IPv6Protocol)
	discover("slice of IPv4", dual, slice(discovery.AddressTypeIPv4, "10.1.0.1"))
	discover("slice of IPv6", dual, slice(discovery.AddressTypeIPv6, "fd00::1"))
	discover("slice of FQDN", dual, slice(discovery.AddressTypeFQDN, "db.example.com"))
	discover("Endpoints of IPv6", dual, endpoints("fd00::1"))
	single := service(core.IPFamilyPolicySingleStack, core.IPv6Protocol)
	discover("slice of IPv6, SingleStack", single, slice(discovery.AddressTypeIPv6, "fd00::1"))
}
GO

go mod init finding 2> /dev/null
go mod edit -require "github.com/prometheus/prometheus@$prometheus"
go mod tidy 2> /dev/null
CGO_ENABLED=0 go build -trimpath -o finding .
seen=$(./finding)
echo "$seen"
[ "$seen" = 'slice of IPv4: 10.1.0.1:9187
slice of IPv6: none
slice of FQDN: none
Endpoints of IPv6: [fd00::1]:9187
slice of IPv6, SingleStack: [fd00::1]:9187' ] || {
  echo 'this has changed' >&2
  exit 1
}
