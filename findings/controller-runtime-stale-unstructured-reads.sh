#!/usr/bin/env bash
# With EnableReadYourWritesConsistency, new in controller-runtime 0.25 (here 0.25.2), a read from the cache waits until the cache has seen what the same
# client wrote before. It does not for objects of type unstructured.Unstructured: after Update or Patch of one, Get returns at once the object as it was
# before. After Apply of one it waits, and so it does after each write of a typed object. The documentation of the option says that reads of the same
# representation wait for a write, and names unstructured as one of three. The client notes an Update or Patch of one as the write of a typed object.
#
# So a controller that handles kinds that it knows at run time only acts on old objects, as without the option, but only where the watch is slower than
# it is, hardly ever in a test. Such reads come from the cache with `Unstructured: true`; without it each one asks the API.
#
# This runs the client and cache against a server on the loopback interface whose watches are one second late. Needs Go 1.26 and its module proxy, no
# cluster. Seen, 2026-11-30:
#
#	Update, typed: read after it has the label
#	Patch, typed: read after it has the label
#	Apply, unstructured: read after it has the label
#	Update, unstructured: read after it does not have the label
#	Patch, unstructured: read after it does not have the label
set -euo pipefail
runtime=v0.25.2
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
	"strconv"
	"sync"
	"time"

	discovery "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const lag = time.Second

var (
	kind  = discovery.SchemeGroupVersion.WithKind("EndpointSlice")
	key   = client.ObjectKey{Namespace: "default", Name: "db"}
	label = map[string]string{"written": "yes"}
)

// An API with one EndpointSlice, whose watches hear of a write late.
type api struct {
	mutex   sync.Mutex
	version int
	labels  map[string]string
	watches []chan map[string]any
}

func (a *api) slice() map[string]any {
	return map[string]any{
		"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4", "endpoints": []any{},
		"metadata": map[string]any{
			"name": key.Name, "namespace": key.Namespace, "uid": "db", "resourceVersion": strconv.Itoa(a.version), "labels": a.labels,
		},
	}
}

func (a *api) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	response.Header().Set("Content-Type", "application/json")
	if request.URL.Query().Get("watch") != "" {
		a.watch(response, request)
		return
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if request.Method == http.MethodPut || request.Method == http.MethodPatch {
		var written metav1.PartialObjectMetadata
		must(json.NewDecoder(request.Body).Decode(&written))
		a.labels = written.Labels
		a.version++
		slice := a.slice()
		for _, watch := range a.watches {
			time.AfterFunc(lag, func() { watch <- slice })
		}
	}
	must(json.NewEncoder(response).Encode(a.slice()))
}

func (a *api) watch(response http.ResponseWriter, request *http.Request) {
	a.mutex.Lock()
	events := make(chan map[string]any, 10)
	a.watches = append(a.watches, events)
	first := a.slice()
	version := strconv.Itoa(a.version)
	a.mutex.Unlock()
	send := func(kind string, object any) {
		_ = json.NewEncoder(response).Encode(map[string]any{"type": kind, "object": object})
		response.(http.Flusher).Flush()
	}
	send("ADDED", first)
	end := map[string]any{"resourceVersion": version, "annotations": map[string]any{metav1.InitialEventsAnnotationKey: "true"}}
	send("BOOKMARK", map[string]any{"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": end})
	for {
		select {
		case slice := <-events:
			send("MODIFIED", slice)
		case <-request.Context().Done():
			return
		}
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func typed() client.Object { return &discovery.EndpointSlice{} }

func untyped() client.Object {
	made := &unstructured.Unstructured{}
	made.SetGroupVersionKind(kind)
	return made
}

func update(ctx context.Context, to client.Client, object client.Object) error {
	object.SetLabels(label)
	return to.Update(ctx, object)
}

func patch(ctx context.Context, to client.Client, object client.Object) error {
	before := object.DeepCopyObject().(client.Object)
	object.SetLabels(label)
	return to.Patch(ctx, object, client.MergeFrom(before))
}

func apply(ctx context.Context, to client.Client, object client.Object) error {
	object.SetLabels(label)
	object.SetManagedFields(nil)
	configuration := client.ApplyConfigurationFromUnstructured(object.(*unstructured.Unstructured))
	return to.Apply(ctx, configuration, client.FieldOwner("finding"))
}

func try(name string, empty func() client.Object, write func(context.Context, client.Client, client.Object) error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	server := httptest.NewServer(&api{version: 1})
	config := &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(kind, meta.RESTScopeNamespace)
	informers, err := cache.New(config, cache.Options{Mapper: mapper, Scheme: scheme.Scheme})
	must(err)
	go func() { must(informers.Start(ctx)) }()
	waits := true
	to, err := client.New(config, client.Options{Mapper: mapper, Cache: &client.CacheOptions{
		Reader: informers, Unstructured: true, EnableReadYourWritesConsistency: &waits,
	}})
	must(err)
	object := empty()
	must(to.Get(ctx, key, object))
	must(write(ctx, to, object))
	after := empty()
	must(to.Get(ctx, key, after))
	has := map[bool]string{true: "has the label", false: "does not have the label"}[len(after.GetLabels()) > 0]
	fmt.Printf("%s: read after it %s\n", name, has)
}

func main() {
	try("Update, typed", typed, update)
	try("Patch, typed", typed, patch)
	try("Apply, unstructured", untyped, apply)
	try("Update, unstructured", untyped, update)
	try("Patch, unstructured", untyped, patch)
}
GO

go mod init finding 2> /dev/null
go mod edit -require "sigs.k8s.io/controller-runtime@$runtime"
go mod tidy 2> /dev/null
CGO_ENABLED=0 go build -trimpath -o finding .
seen=$(./finding)
echo "$seen"
[ "$seen" = 'Update, typed: read after it has the label
Patch, typed: read after it has the label
Apply, unstructured: read after it has the label
Update, unstructured: read after it does not have the label
Patch, unstructured: read after it does not have the label' ] || {
  echo 'this has changed' >&2
  exit 1
}
