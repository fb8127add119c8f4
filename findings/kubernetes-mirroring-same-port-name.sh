#!/usr/bin/env bash
# The EndpointSlice mirroring controller of Kubernetes 1.37.2 cannot mirror Endpoints where one address has two ports of the same name, or of none: two
# processes of one machine behind the one port of a Service. A kube-apiserver accepts such Endpoints, with a subset for each port, and
# `kubectl get endpoints` shows both. But the controller first joins the subsets that have the same addresses to one with both ports, and asks for one slice,
# which may not have two ports of one name. Each try fails, so the Service has no endpoints; if Endpoints are updated to this, the slices stay as they were,
# with an address that is gone. There is no Event of it, only lines in the controller's log. With a further address in one of the subsets, all are mirrored.
#
# The reference of the API says for Endpoints that an address may be in several subsets for its ports, and that the union of all is meant. Two slices could
# say the same. Seen as well with a kube-apiserver and kube-controller-manager 1.37.2.
#
# This runs the controller and the validation of kube-apiserver with the stand-in for the API that client-go has for tests. Needs Go 1.26 and its module
# proxy, no cluster. The first run compiles parts of Kubernetes, which takes minutes. Seen, 2026-11-30:
#
#	10.1.0.1:8080, 10.1.0.2:8081: mirrored 10.1.0.1:8080 10.1.0.2:8081
#	updated to 10.1.0.1:8080, 10.1.0.1:8081: mirrored 10.1.0.1:8080 10.1.0.2:8081, ports[1].name: Duplicate value: ""
#	10.1.0.1:8080, 10.1.0.1:8081: mirrored nothing, ports[1].name: Duplicate value: ""
#	10.1.0.1:8080, 10.1.0.1:8081 and 10.1.0.2:8081: mirrored 10.1.0.1:8080 10.1.0.1:8081 10.1.0.2:8081
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
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/apis/discovery"
	_ "k8s.io/kubernetes/pkg/apis/discovery/install"
	discoveryvalidation "k8s.io/kubernetes/pkg/apis/discovery/validation"
	"k8s.io/kubernetes/pkg/controller/endpointslicemirroring"
)

var ctx = context.Background()

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// Fills in what a kube-apiserver does, and refuses what it refuses.
type server struct {
	mutex   sync.Mutex
	uids    map[string]types.UID
	refused string
}

func (s *server) write(action testing.Action) (bool, runtime.Object, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	slice := action.(interface{ GetObject() runtime.Object }).GetObject().(*discoveryv1.EndpointSlice)
	if slice.Name == "" {
		slice.Name = slice.GenerateName + string(uuid.NewUUID())
	}
	if s.uids[slice.Name] == "" {
		s.uids[slice.Name] = uuid.NewUUID()
	}
	slice.UID = s.uids[slice.Name]
	internal := &discovery.EndpointSlice{}
	must(legacyscheme.Scheme.Convert(slice, internal, nil))
	if mistakes := discoveryvalidation.ValidateEndpointSliceCreate(internal); len(mistakes) > 0 {
		s.refused = ", " + mistakes[0].Error()
		return true, nil, errors.NewInvalid(discovery.Kind("EndpointSlice"), slice.Name, mistakes)
	}
	return false, nil, nil
}

func endpoints(subsets ...v1.EndpointSubset) *v1.Endpoints {
	made := &v1.Endpoints{ObjectMeta: meta.ObjectMeta{Name: "db", Namespace: "default", UID: "endpoints"}, Subsets: subsets}
	internal := &core.Endpoints{}
	must(legacyscheme.Scheme.Convert(made, internal, nil))
	must(corevalidation.ValidateEndpointsCreate(internal).ToAggregate())
	return made
}

func subset(port int32, addresses ...string) v1.EndpointSubset {
	made := v1.EndpointSubset{Ports: []v1.EndpointPort{{Port: port, Protocol: v1.ProtocolTCP}}}
	for _, address := range addresses {
		made.Addresses = append(made.Addresses, v1.EndpointAddress{IP: address})
	}
	return made
}

// Writes them one after the other, and says for each what is mirrored after a first try and two more.
func mirror(writes ...*v1.Endpoints) (seen []string) {
	client := fake.NewClientset(&v1.Service{ObjectMeta: meta.ObjectMeta{Name: "db", Namespace: "default"}})
	api := &server{uids: map[string]types.UID{}}
	client.PrependReactor("create", "endpointslices", api.write)
	client.PrependReactor("update", "endpointslices", api.write)
	factory := informers.NewSharedInformerFactory(client, 0)
	controller := endpointslicemirroring.NewController(ctx, factory.Core().V1().Endpoints(),
		factory.Discovery().V1().EndpointSlices(), factory.Core().V1().Services(), 1000, client, 0)
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	go controller.Run(ctx, 1)
	for i, write := range writes {
		var err error
		if i == 0 {
			_, err = client.CoreV1().Endpoints("default").Create(ctx, write, meta.CreateOptions{})
		} else {
			_, err = client.CoreV1().Endpoints("default").Update(ctx, write, meta.UpdateOptions{})
		}
		must(err)
		time.Sleep(5 * time.Second)
		listed, err := client.DiscoveryV1().EndpointSlices("default").List(ctx, meta.ListOptions{})
		must(err)
		var found []string
		for _, slice := range listed.Items {
			for _, endpoint := range slice.Endpoints {
				for _, port := range slice.Ports {
					found = append(found, fmt.Sprintf("%s:%d", endpoint.Addresses[0], *port.Port))
				}
			}
		}
		if len(found) == 0 {
			found = []string{"nothing"}
		}
		slices.Sort(found)
		api.mutex.Lock()
		seen = append(seen, "mirrored "+strings.Join(found, " ")+api.refused)
		api.mutex.Unlock()
	}
	return seen
}

func main() {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	distinct := endpoints(subset(8080, "10.1.0.1"), subset(8081, "10.1.0.2"))
	same := endpoints(subset(8080, "10.1.0.1"), subset(8081, "10.1.0.1"))
	more := endpoints(subset(8080, "10.1.0.1"), subset(8081, "10.1.0.1", "10.1.0.2"))
	updated := mirror(distinct, same)
	fmt.Println("10.1.0.1:8080, 10.1.0.2:8081:", updated[0])
	fmt.Println("updated to 10.1.0.1:8080, 10.1.0.1:8081:", updated[1])
	fmt.Println("10.1.0.1:8080, 10.1.0.1:8081:", mirror(same)[0])
	fmt.Println("10.1.0.1:8080, 10.1.0.1:8081 and 10.1.0.2:8081:", mirror(more)[0])
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
[ "$seen" = '10.1.0.1:8080, 10.1.0.2:8081: mirrored 10.1.0.1:8080 10.1.0.2:8081
updated to 10.1.0.1:8080, 10.1.0.1:8081: mirrored 10.1.0.1:8080 10.1.0.2:8081, ports[1].name: Duplicate value: ""
10.1.0.1:8080, 10.1.0.1:8081: mirrored nothing, ports[1].name: Duplicate value: ""
10.1.0.1:8080, 10.1.0.1:8081 and 10.1.0.2:8081: mirrored 10.1.0.1:8080 10.1.0.1:8081 10.1.0.2:8081' ] || {
  echo 'this has changed' >&2
  exit 1
}
