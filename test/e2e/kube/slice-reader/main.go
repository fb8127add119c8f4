// Reads EndpointSlices as kube-proxy does, with its own packages, and prints a line of JSON for each change of what it would route to:
//
//	{"service":"NAMESPACE/NAME","addresses":["10.1.0.1:80"]}
//
// Usage: slice-reader KUBECONFIG NAMESPACE. The first line, {"synced":true}, follows the slices that were there. It routes after every event, where
// kube-proxy may take several at a time, so that no state in between is left out.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kubernetes/pkg/proxy"
	proxyconfig "k8s.io/kubernetes/pkg/proxy/config"
)

type reader struct {
	changes *proxy.EndpointsChangeTracker
	routes  proxy.EndpointsMap
}

func (r *reader) OnEndpointSliceAdd(slice *discovery.EndpointSlice)       { r.changed(slice, false) }
func (r *reader) OnEndpointSliceUpdate(_, slice *discovery.EndpointSlice) { r.changed(slice, false) }
func (r *reader) OnEndpointSliceDelete(slice *discovery.EndpointSlice)    { r.changed(slice, true) }

func (r *reader) OnEndpointSlicesSynced() { write(map[string]any{"synced": true}) }

func (r *reader) changed(slice *discovery.EndpointSlice, isRemoved bool) {
	r.changes.EndpointSliceUpdate(slice, isRemoved)
	for service := range r.routes.Update(r.changes).UpdatedServices {
		write(map[string]any{"service": service.String(), "addresses": r.addresses(service)})
	}
}

// As CategorizeEndpoints: those that terminate and still serve count where none is ready.
func (r *reader) addresses(service types.NamespacedName) []string {
	ready, terminating := []string{}, []string{}
	for port, endpoints := range r.routes {
		for _, endpoint := range endpoints {
			if port.NamespacedName != service {
				continue
			}
			if endpoint.IsReady() {
				ready = append(ready, endpoint.String())
			} else if endpoint.IsServing() && endpoint.IsTerminating() {
				terminating = append(terminating, endpoint.String())
			}
		}
	}
	used := ready
	if len(used) == 0 {
		used = terminating
	}
	slices.Sort(used)
	return used
}

func write(line any) {
	if err := json.NewEncoder(os.Stdout).Encode(line); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func main() {
	if len(os.Args) != 3 {
		fail(fmt.Errorf("usage: slice-reader KUBECONFIG NAMESPACE"))
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	if err != nil {
		fail(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		fail(err)
	}
	// As kube-proxy's own informers.
	selector := "!service.kubernetes.io/service-proxy-name,!" + v1.IsHeadlessService
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(os.Args[2]),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = selector }))
	ctx := context.Background()
	slicesOf := proxyconfig.NewEndpointSliceConfig(ctx, factory.Discovery().V1().EndpointSlices(), 0)
	slicesOf.RegisterEventHandler(&reader{
		changes: proxy.NewEndpointsChangeTracker(v1.IPv4Protocol, "node", nil, nil),
		routes:  proxy.EndpointsMap{},
	})
	factory.Start(ctx.Done())
	go slicesOf.Run(ctx.Done())
	<-ctx.Done()
}
