#!/usr/bin/env bash
# The EndpointSlice mirroring controller of Kubernetes 1.37.2 never mirrors an update of Endpoints that changes the ports of two subsets that have IPv4
# and IPv6 addresses: each try fails with "already exists, the server was not able to generate a unique name", about the name of a slice that the
# controller itself made, and after 15 tries it gives up. The slices keep the old ports, so that is where the traffic goes. There is no Event of it, only
# lines in the controller's log. A restart of the controller does not help; what does is to delete the mirrored slices, or to set the label
# endpointslice.kubernetes.io/skip-mirror and remove it again. Where only one such subset changes, one try in about ten fails, and the next one mends it.
#
# The document "EndpointSlices" of Kubernetes (section "EndpointSlice mirroring") names multiple subsets and multiple IP families as what is mirrored, to
# several slices. The cause: a new slice gets the name of a superfluous one of its address type, and is taken from the list of those to create by its name.
# It has none before, and so has each other of that list, of which the first one is taken, perhaps of the other address type.
# Seen as well with a kube-apiserver and kube-controller-manager 1.37.2.
#
# This runs the controller with the stand-in for the API that client-go has for tests. Needs Go 1.26 and its module proxy, no cluster. The first run
# compiles parts of Kubernetes, which takes minutes. Seen, 2026-11-30:
#
#	IPv4, two subsets: 10 of 10 mirrored with the new ports
#	IPv4 and IPv6, two subsets: 0 of 10 mirrored with the new ports, 10 with the old ones
#	IPv4 and IPv6, two subsets, slices deleted: 10 of 10 mirrored with the new ports
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
	"io"
	"time"

	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/endpointslicemirroring"
)

const objects = 10

var (
	ctx    = context.Background()
	before = []int32{80, 81}
	after  = []int32{90, 91}
)

// What a kube-apiserver fills in, and the stand-in for tests does not.
func fillIn(client *fake.Clientset) {
	uids := map[string]types.UID{}
	for _, verb := range []string{"create", "update"} {
		client.PrependReactor(verb, "endpointslices", func(action testing.Action) (bool, runtime.Object, error) {
			slice := action.(interface{ GetObject() runtime.Object }).GetObject().(*discovery.EndpointSlice)
			if slice.Name == "" {
				slice.Name = slice.GenerateName + string(uuid.NewUUID())
			}
			if uids[slice.Name] == "" {
				uids[slice.Name] = uuid.NewUUID()
			}
			slice.UID = uids[slice.Name]
			return false, nil, nil
		})
	}
}

// A subset for each port, with one address of each network.
func endpoints(name string, networks []string, ports []int32) *core.Endpoints {
	made := &core.Endpoints{ObjectMeta: meta.ObjectMeta{Name: name, Namespace: "default"}}
	for i, port := range ports {
		subset := core.EndpointSubset{Ports: []core.EndpointPort{{Port: port, Protocol: core.ProtocolTCP}}}
		for _, network := range networks {
			subset.Addresses = append(subset.Addresses, core.EndpointAddress{IP: fmt.Sprint(network, i+1)})
		}
		made.Subsets = append(made.Subsets, subset)
	}
	return made
}

// The number of Endpoints whose slices are as many as they should be and have these ports.
func mirrored(client *fake.Clientset, networks []string, ports []int32) int {
	listed, err := client.DiscoveryV1().EndpointSlices("default").List(ctx, meta.ListOptions{})
	must(err)
	fitting := map[string]int{}
	for _, slice := range listed.Items {
		for _, port := range ports {
			if *slice.Ports[0].Port == port {
				fitting[slice.Labels[discovery.LabelServiceName]]++
			}
		}
	}
	whole := 0
	for _, slices := range fitting {
		if slices == len(networks)*len(ports) {
			whole++
		}
	}
	return whole
}

// Whether all are mirrored within 10 s, in which a failing update is tried four times.
func await(client *fake.Clientset, networks []string, ports []int32) int {
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if mirrored(client, networks, ports) == objects {
			break
		}
	}
	return mirrored(client, networks, ports)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func try(name string, networks []string, deletes bool) {
	client := fake.NewClientset()
	fillIn(client)
	factory := informers.NewSharedInformerFactory(client, 0)
	controller := endpointslicemirroring.NewController(ctx, factory.Core().V1().Endpoints(),
		factory.Discovery().V1().EndpointSlices(), factory.Core().V1().Services(), 1000, client, 0)
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	go controller.Run(ctx, 1)
	for i := range objects {
		service := &core.Service{ObjectMeta: meta.ObjectMeta{Name: fmt.Sprint("db", i), Namespace: "default"}}
		_, err := client.CoreV1().Services("default").Create(ctx, service, meta.CreateOptions{})
		must(err)
		_, err = client.CoreV1().Endpoints("default").Create(ctx, endpoints(service.Name, networks, before), meta.CreateOptions{})
		must(err)
	}
	if seen := await(client, networks, before); seen != objects {
		panic(fmt.Sprint("first mirrored: ", seen))
	}
	for i := range objects {
		_, err := client.CoreV1().Endpoints("default").Update(ctx, endpoints(fmt.Sprint("db", i), networks, after), meta.UpdateOptions{})
		must(err)
	}
	seen := await(client, networks, after)
	if deletes {
		listed, err := client.DiscoveryV1().EndpointSlices("default").List(ctx, meta.ListOptions{})
		must(err)
		for _, slice := range listed.Items {
			must(client.DiscoveryV1().EndpointSlices("default").Delete(ctx, slice.Name, meta.DeleteOptions{}))
		}
		seen = await(client, networks, after)
	}
	fmt.Printf("%s: %d of %d mirrored with the new ports", name, seen, objects)
	if old := mirrored(client, networks, before); old > 0 {
		fmt.Printf(", %d with the old ones", old)
	}
	fmt.Println()
}

func main() {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	try("IPv4, two subsets", []string{"10.1.0."}, false)
	try("IPv4 and IPv6, two subsets", []string{"10.1.0.", "fd00::"}, false)
	try("IPv4 and IPv6, two subsets, slices deleted", []string{"10.1.0.", "fd00::"}, true)
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
[ "$seen" = 'IPv4, two subsets: 10 of 10 mirrored with the new ports
IPv4 and IPv6, two subsets: 0 of 10 mirrored with the new ports, 10 with the old ones
IPv4 and IPv6, two subsets, slices deleted: 10 of 10 mirrored with the new ports' ] || {
  echo 'this has changed' >&2
  exit 1
}
