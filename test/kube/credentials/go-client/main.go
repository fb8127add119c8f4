// client-go beside our reader of kubeconfigs: lines of JSON in, each with the path of a kubeconfig, the value of KUBECONFIG, or a server and
// the value of NO_PROXY; what the first request would be sent with or through, or {"error": …}, out.
package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http/httpproxy"
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/transport"
)

type request struct {
	Kubeconfig  string `json:"kubeconfig"`
	Environment string `json:"environment"`
	Context     string `json:"context"`
	Server      string `json:"server"`
	NoProxy     string `json:"noProxy"`
}

type answer struct {
	Server        string              `json:"server"`
	Namespace     string              `json:"namespace"`
	Authorization string              `json:"authorization"`
	Impersonation map[string][]string `json:"impersonation"`
	Certificate   string              `json:"certificate"`
	Authority     string              `json:"authority"`
	ServerName    string              `json:"serverName"`
	Insecure      bool                `json:"insecure"`
	Proxy         string              `json:"proxy"`
	Error         string              `json:"error,omitempty"`
}

// Takes requests in the place of a server, if net/http would send their headers.
type recorder struct{ header http.Header }

func (r *recorder) RoundTrip(sent *http.Request) (*http.Response, error) {
	for name, values := range sent.Header {
		for _, value := range values {
			if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
				return nil, fmt.Errorf("invalid header %q", name)
			}
		}
	}
	r.header = sent.Header
	return &http.Response{StatusCode: 200, Body: http.NoBody, Request: sent}, nil
}

func connection(asked request) (found answer, err error) {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: asked.Kubeconfig}
	if asked.Environment != "" {
		os.Setenv("KUBECONFIG", asked.Environment)
		rules = clientcmd.NewDefaultClientConfigLoadingRules()
	}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		rules, &clientcmd.ConfigOverrides{CurrentContext: asked.Context})
	config, err := loader.ClientConfig()
	if err != nil {
		return found, err
	}
	if found.Namespace, _, err = loader.Namespace(); err != nil {
		return found, err
	}
	options, err := config.TransportConfig()
	if err != nil {
		return found, err
	}
	address, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return found, err
	}
	if address.Scheme != "http" && address.Scheme != "https" {
		return found, errors.New("unsupported protocol scheme") // of net/http
	}
	address.RawQuery, address.Fragment = "", "" // as rest.NewRESTClient
	found.Server = address.String()
	sent, err := http.NewRequest("GET", found.Server, nil)
	if err != nil {
		return found, err
	}
	server := &recorder{}
	client, err := transport.HTTPWrappersForConfig(options, server)
	if err != nil {
		return found, err
	}
	if _, err := client.RoundTrip(sent); err != nil {
		return found, err
	}
	found.Authorization = server.header.Get("Authorization")
	found.Impersonation = map[string][]string{}
	for name, values := range server.header {
		if strings.HasPrefix(name, "Impersonate-") {
			found.Impersonation[strings.ToLower(name)] = values
		}
	}
	if config.Proxy != nil {
		proxy, err := config.Proxy(sent)
		if err != nil {
			return found, err
		}
		found.Proxy = proxy.String()
	}
	return found, secured(options, &found)
}

// What is told of both sides in the handshake.
func secured(options *transport.Config, found *answer) error {
	secure, err := transport.TLSConfigFor(options)
	if err != nil || secure == nil {
		return err
	}
	found.Insecure = secure.InsecureSkipVerify
	found.ServerName = secure.ServerName
	found.Authority = base64.StdEncoding.EncodeToString(options.TLS.CAData)
	// An empty file is no error, and no server is trusted.
	if options.HasCA() && !x509.NewCertPool().AppendCertsFromPEM(options.TLS.CAData) {
		return errors.New("no authority")
	}
	if secure.GetClientCertificate == nil {
		return nil
	}
	certificate, err := secure.GetClientCertificate(&tls.CertificateRequestInfo{})
	if err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	for _, der := range certificate.Certificate {
		found.Certificate += string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	}
	return nil
}

const proxyServer = "http://proxy.example:3128"

func proxied(asked request) (found answer, err error) {
	server, err := url.Parse(asked.Server)
	if err != nil {
		return found, err
	}
	config := httpproxy.Config{HTTPProxy: proxyServer, HTTPSProxy: proxyServer, NoProxy: asked.NoProxy}
	proxy, err := config.ProxyFunc()(server)
	if proxy != nil {
		found.Proxy = proxy.String()
	}
	return found, err
}

func main() {
	in := json.NewDecoder(bufio.NewReader(os.Stdin))
	out := json.NewEncoder(os.Stdout)
	var asked request
	for in.Decode(&asked) == nil {
		answering := connection
		if asked.Server != "" {
			answering = proxied
		}
		found, err := answering(asked)
		if err != nil {
			found = answer{Error: err.Error()}
		}
		out.Encode(found)
		asked = request{}
	}
}
