package apiserver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/layout"
)

// Client sends requests to an API server.
type Client struct {
	http *http.Client
	base string
}

// NewClient returns a client of the API server at the address, with the certificate of the user, which is a file name
// of package pki.
func NewClient(l layout.Layout, user, address string) (*Client, error) {
	pair, err := tls.LoadX509KeyPair(l.Certificate(user+".crt"), l.Certificate(user+".key"))
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(l.Certificate("ca.crt"))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate", l.Certificate("ca.crt"))
	}
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots, MinVersion: tls.VersionTLS13},
	}
	// Stimulus: one attempt of many; an API server that is starting may not answer.
	return &Client{http: &http.Client{Timeout: 5 * time.Second, Transport: transport}, base: "https://" + address}, nil
}

// Ready returns an error unless the API server reports that it is ready.
func (c *Client) Ready(ctx context.Context) error {
	_, err := c.read(ctx, "/readyz")
	return err
}

// Get reads the object at the path.
func (c *Client) Get(ctx context.Context, path string, object any) error {
	text, err := c.read(ctx, path)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, object)
}

func (c *Client) read(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s: %.500s", path, response.Status, text)
	}
	return text, err
}
