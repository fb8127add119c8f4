// client-go with an exec plugin: lines of {"kubeconfig": path} in, {"authorization": …, "certificate": bool} or {"error": …} out.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/transport"
)

type request struct {
	Kubeconfig string `json:"kubeconfig"`
}

type answer struct {
	Authorization string `json:"authorization"`
	Certificate   bool   `json:"certificate"`
	Error         string `json:"error,omitempty"`
}

// Takes requests in the place of a server.
type recorder struct{ authorization string }

func (r *recorder) RoundTrip(sent *http.Request) (*http.Response, error) {
	r.authorization = sent.Header.Get("Authorization")
	return &http.Response{StatusCode: 200, Body: http.NoBody, Request: sent}, nil
}

func credentials(kubeconfig string) (found answer, err error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig}, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return found, err
	}
	options, err := config.TransportConfig()
	if err != nil {
		return found, err
	}
	server := &recorder{}
	client, err := transport.HTTPWrappersForConfig(options, server)
	if err != nil {
		return found, err
	}
	sent, err := http.NewRequest("GET", "https://127.0.0.1/", nil)
	if err != nil {
		return found, err
	}
	if _, err := client.RoundTrip(sent); err != nil {
		return found, err
	}
	found.Authorization = server.authorization
	if options.TLS.GetCertHolder != nil {
		certificate, err := options.TLS.GetCertHolder.GetCert()
		if err != nil {
			return found, fmt.Errorf("certificate: %w", err)
		}
		found.Certificate = certificate != nil
	}
	return found, nil
}

func main() {
	in := json.NewDecoder(bufio.NewReader(os.Stdin))
	out := json.NewEncoder(os.Stdout)
	var asked request
	for in.Decode(&asked) == nil {
		found, err := credentials(asked.Kubeconfig)
		if err != nil {
			found = answer{Error: err.Error()}
		}
		out.Encode(found)
	}
}
