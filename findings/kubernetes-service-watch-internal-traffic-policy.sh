#!/usr/bin/env bash
# A watch that runs while a Service becomes `type: ExternalName` shows its spec.internalTrafficPolicy, and so do GET and the answer to a write of its status
# subresource. GET and LIST of kube-apiserver 1.37.2, the answer to the write, the initial events of a watch, and a watch that starts later from an earlier
# version do not, all at the same resourceVersion. The same goes for each later change of it, after a restart of kube-apiserver, too, and for a Service
# that is created as an ExternalName with the field. In 1.36.3, watches differ in the same way (seen).
#
# The reference of the API says that the object of a MODIFIED event is "the new state of the object", and that clients can tell by the resourceVersion when
# an object has changed. The document "Kubernetes API Concepts" (section "Efficient detection of changes") has clients build a model of the current state
# of a cluster from a list and a watch. Here an informer has the field until it lists again, and then has not, while the resourceVersion stays. A controller
# that compares an object of its informer with the answer to a write finds a difference each time, and may write for ever. The sync of this project did.
#
# The cause: what is stored keeps the field, and a decorator of the Service's storage (defaultOnRead) leaves it out, because it has no meaning without a
# cluster IP. The decorator is called for events, too, but knows Services by their type, and the watch cache hands an event of running watches over in a
# wrapper, which the decorator passes by. With --watch-cache=false these leave the field out (seen). The storage of the status subresource has no decorator.
# Kubernetes has issues 131779 and 138735 and pull request 138773, which is not in 1.37.2, about the wrapper, for objects of old versions: running watches
# and the status subresource show no clusterIPs, ipFamilies and ipFamilyPolicy of a Service as Kubernetes 1.19 stored it, and no dataSourceRef of a
# PersistentVolumeClaim (seen with such objects written to etcd), until more than their status is written. ExternalName needs no old object.
#
# What helps is `internalTrafficPolicy: null` in the patch that sets the type, or to write the Service as GET shows it: then it is no longer stored. Clients
# should leave the field of an ExternalName out of what they compare.
#
# This runs kube-apiserver and etcd on the loopback interface. Needs Go 1.26 and its module proxy, no cluster. The first run compiles them, which takes
# minutes. Seen, 2026-11-30:
#
#	patched to ExternalName: answer none, GET none, LIST none, initial event none, later watch none, running watch Cluster, status Cluster
#	written as GET shows it: answer none, GET none, LIST none, initial event none, later watch none, running watch none, status none
#	patched to ExternalName with null: answer none, GET none, LIST none, initial event none, later watch none, running watch none, status none
set -euo pipefail
kubernetes=v1.37.2 staging=v0.37.2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

cat > main.go <<'GO'
package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

const (
	namespace = "default"
	token     = "of-this-run"
	toName    = `"type":"ExternalName","externalName":"a.example.com"`
)

var ctx, _ = context.WithTimeout(context.Background(), 2*time.Minute)

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func freeAddress() string {
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	defer listener.Close()
	return listener.Addr().String()
}

func startEtcd() string {
	peers, clients := []url.URL{{Scheme: "http", Host: freeAddress()}}, []url.URL{{Scheme: "http", Host: freeAddress()}}
	config := embed.NewConfig()
	config.Dir, config.LogLevel = "etcd", "error"
	config.ListenPeerUrls, config.AdvertisePeerUrls = peers, peers
	config.ListenClientUrls, config.AdvertiseClientUrls = clients, clients
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	<-must(embed.StartEtcd(config)).Server.ReadyNotify()
	return clients[0].String()
}

func startServer(etcd string) typed.CoreV1Interface {
	key := x509.MarshalPKCS1PrivateKey(must(rsa.GenerateKey(rand.Reader, 2048)))
	check(os.WriteFile("key", pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: key}), 0o600))
	check(os.WriteFile("tokens", []byte(token+",admin,admin,system:masters\n"), 0o600))
	address := freeAddress()
	server := app.NewAPIServerCommand()
	server.SetArgs([]string{
		"--etcd-servers", etcd, "--bind-address", "127.0.0.1", "--advertise-address", "127.0.0.1",
		"--secure-port", strings.TrimPrefix(address, "127.0.0.1:"), "--cert-dir", "certs", "--token-auth-file", "tokens",
		"--service-account-issuer", "https://kubernetes.default.svc", "--service-account-signing-key-file", "key",
		"--service-account-key-file", "key", "--service-cluster-ip-range", "10.0.0.0/16", "--endpoint-reconciler-type", "none",
	})
	go func() { check(server.Execute()) }()
	tls := rest.TLSClientConfig{Insecure: true} // The server makes its own certificate.
	return kubernetes.NewForConfigOrDie(&rest.Config{Host: "https://" + address, BearerToken: token, TLSClientConfig: tls}).CoreV1()
}

// Creates a Service of type ClusterIP once the server is ready.
func create(client typed.CoreV1Interface, name string) {
	service := &core.Service{ObjectMeta: meta.ObjectMeta{Name: name}, Spec: core.ServiceSpec{Ports: []core.ServicePort{{Port: 80}}}}
	for {
		_, err := client.Services(namespace).Create(ctx, service, meta.CreateOptions{})
		if err == nil {
			return
		}
		check(ctx.Err())
		time.Sleep(200 * time.Millisecond)
	}
}

// Prints what each way to see the Service shows of internalTrafficPolicy after a write.
func observe(client typed.CoreV1Interface, name, what string, write func(typed.ServiceInterface) (*core.Service, error)) {
	services := client.Services(namespace)
	get := func() *core.Service { return must(services.Get(ctx, name, meta.GetOptions{})) }
	watch := func(options meta.ListOptions) func() *core.Service {
		options.FieldSelector = "metadata.name=" + name
		watcher := must(services.Watch(ctx, options))
		return func() *core.Service {
			defer watcher.Stop()
			return (<-watcher.ResultChan()).Object.(*core.Service)
		}
	}
	since := meta.ListOptions{ResourceVersion: get().ResourceVersion}
	running := watch(since)
	answer := must(write(services))
	listed := must(services.List(ctx, meta.ListOptions{FieldSelector: "metadata.name=" + name}))
	withInitial := true
	initial := meta.ListOptions{SendInitialEvents: &withInitial, ResourceVersionMatch: meta.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true}
	status := &core.Service{}
	check(client.RESTClient().Get().Namespace(namespace).Resource("services").Name(name).SubResource("status").Do(ctx).Into(status))

	var seen []string
	for _, one := range []struct {
		by      string
		service *core.Service
	}{
		{"answer", answer},
		{"GET", get()},
		{"LIST", &listed.Items[0]},
		{"initial event", watch(initial)()},
		{"later watch", watch(since)()},
		{"running watch", running()},
		{"status", status},
	} {
		if one.service.ResourceVersion != answer.ResourceVersion {
			panic("another version: " + one.by)
		}
		policy := "none"
		if shown := one.service.Spec.InternalTrafficPolicy; shown != nil {
			policy = string(*shown)
		}
		seen = append(seen, one.by+" "+policy)
	}
	fmt.Printf("%s: %s\n", what, strings.Join(seen, ", "))
}

func patch(name, spec string) func(typed.ServiceInterface) (*core.Service, error) {
	return func(services typed.ServiceInterface) (*core.Service, error) {
		return services.Patch(ctx, name, types.MergePatchType, []byte(`{"spec":{`+spec+`}}`), meta.PatchOptions{})
	}
}

func main() {
	client := startServer(startEtcd())
	create(client, "a")
	observe(client, "a", "patched to ExternalName", patch("a", toName))
	observe(client, "a", "written as GET shows it", func(services typed.ServiceInterface) (*core.Service, error) {
		return services.Update(ctx, must(services.Get(ctx, "a", meta.GetOptions{})), meta.UpdateOptions{})
	})
	create(client, "b")
	observe(client, "b", "patched to ExternalName with null", patch("b", toName+`,"internalTrafficPolicy":null`))
}
GO

pinned=$(go mod download -json "k8s.io/kubernetes@$kubernetes" | sed -n 's/.*"GoMod": "\(.*\)",/\1/p')
go mod init finding 2> /dev/null
# Kubernetes refers to the staging folders of its repository, which are published as modules.
sed -n "s,^\s*\(k8s.io/[a-z-]*\) => .*,-replace=\1=\1@$staging,p" "$pinned" | xargs go mod edit -require "k8s.io/kubernetes@$kubernetes"
go mod tidy 2> /dev/null
CGO_ENABLED=0 go build -trimpath -o finding .
seen=$(./finding 2> log) || {
  tail -n 20 log >&2
  exit 1
}
echo "$seen"
[ "$seen" = 'patched to ExternalName: answer none, GET none, LIST none, initial event none, later watch none, running watch Cluster, status Cluster
written as GET shows it: answer none, GET none, LIST none, initial event none, later watch none, running watch none, status none
patched to ExternalName with null: answer none, GET none, LIST none, initial event none, later watch none, running watch none, status none' ] || {
  echo 'this has changed' >&2
  exit 1
}
