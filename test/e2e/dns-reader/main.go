// Answers for the Services of a namespace as CoreDNS does, with its own plugin, and prints a line of JSON for each change of an answer:
//
//	{"service":"NAMESPACE/NAME","addresses":["10.1.0.1:80"]}
//
// Usage: dns-reader KUBECONFIG NAMESPACE. The first line, {"synced":true}, follows the answers for the Services that were there. It looks again after
// a tenth of a millisecond, and an API server takes longer for a write, so that no state in between is left out.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	_ "github.com/coredns/coredns/plugin/bind"
	"github.com/coredns/coredns/plugin/kubernetes"
	"github.com/coredns/coredns/request"
	"github.com/miekg/dns"
)

const (
	zone  = "cluster.local."
	pause = 100 * time.Microsecond
)

// setup of the plugin "reader": it starts after the plugin "kubernetes", and asks it.
func setup(c *caddy.Controller) error {
	config := dnsserver.GetConfig(c)
	c.OnStartup(func() error {
		go read(config.Handler("kubernetes").(*kubernetes.Kubernetes))
		return nil
	})
	return nil
}

func read(k *kubernetes.Kubernetes) {
	for !k.APIConn.HasSynced() {
		time.Sleep(pause)
	}
	answers := map[string][]string{}
	for isFirst := true; ; isFirst = false {
		for _, service := range k.APIConn.ServiceList() {
			if key := service.Namespace + "/" + service.Name; service.Namespace == os.Args[2] && answers[key] == nil {
				answers[key] = []string{}
			}
		}
		for key, before := range answers {
			if now := ask(k, key); !slices.Equal(now, before) {
				answers[key] = now
				write(map[string]any{"service": key, "addresses": now})
			}
		}
		if isFirst {
			write(map[string]any{"synced": true})
		}
		time.Sleep(pause)
	}
}

func ask(k *kubernetes.Kubernetes, key string) []string {
	namespace, name, _ := strings.Cut(key, "/")
	query := new(dns.Msg).SetQuestion(name+"."+namespace+".svc."+zone, dns.TypeA)
	records, err := k.Services(context.Background(), request.Request{Req: query, Zone: zone}, false, plugin.Options{})
	if err != nil && !k.IsNameError(err) {
		fail(err)
	}
	addresses := []string{}
	for _, record := range records {
		addresses = append(addresses, net.JoinHostPort(record.Host, strconv.Itoa(record.Port)))
	}
	slices.Sort(addresses)
	return slices.Compact(addresses)
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
		fail(fmt.Errorf("usage: dns-reader KUBECONFIG NAMESPACE"))
	}
	dnsserver.Quiet = true
	dnsserver.Directives = []string{"bind", "kubernetes", "reader"}
	plugin.Register("reader", setup)
	corefile := fmt.Sprintf("%s:0 {\nbind 127.0.0.1\nkubernetes {\nkubeconfig %q\n}\nreader\n}\n", zone, os.Args[1])
	server, err := caddy.Start(caddy.CaddyfileInput{Contents: []byte(corefile), ServerTypeName: "dns"})
	if err != nil {
		fail(err)
	}
	server.Wait()
}
