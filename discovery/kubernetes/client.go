// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

// The requests to the API server: where it is, by what it is known, the token that goes
// along, and what is accepted as an answer. The token and the certificates are read
// anew for each request; a connection is kept until the certificates change.

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

const (
	// serviceAccount is where a pod finds its credentials.
	serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"
	// The longest files of a token, a namespace and certificates.
	fileBytesMax = 1 << 20
	// The longest body that is read for what the server says about an error.
	statusBytesMax = 64 << 10
	headerBytesMax = 64 << 10
	// How long a connection is silent before it is asked whether it is still there,
	// and how long the answer may take. Without, the watch on a server whose machine
	// has gone would look quiet until its end.
	silence = 10 * time.Second
)

// client asks one API server. It is safe for concurrent use.
type client struct {
	base      string
	tokenFile string
	caFile    string
	timeout   time.Duration

	mu   sync.Mutex // guards ca and http
	ca   []byte     // the certificates that http was made for
	http *http.Client
}

// newClient returns the client of a configuration, and the namespace. In a pod, account
// is the directory of its credentials.
func newClient(c Config, account string) (*client, string, error) {
	cl := &client{base: strings.TrimSuffix(c.Server, "/"), tokenFile: c.TokenFile, caFile: c.CAFile, timeout: c.RequestTimeout}
	if c.Server != "" {
		return cl, c.Namespace, nil
	}
	host, portNumber := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || portNumber == "" {
		return nil, "", fmt.Errorf("%w: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: set server, namespace and token-file",
			ErrNotInCluster)
	}
	cl.base = "https://" + net.JoinHostPort(host, portNumber)
	if cl.tokenFile == "" {
		cl.tokenFile = filepath.Join(account, "token")
	}
	if cl.caFile == "" {
		cl.caFile = filepath.Join(account, "ca.crt")
	}
	if c.Namespace != "" {
		return cl, c.Namespace, nil
	}
	data, err := readFile(filepath.Join(account, "namespace"))
	if err != nil {
		return nil, "", fmt.Errorf("%w: %w: set namespace, or let the pod have a service account", ErrNotInCluster, err)
	}
	namespace := strings.TrimSpace(string(data))
	if !isName(namespace) {
		return nil, "", fmt.Errorf("%w: %q is no name of a namespace", ErrNotInCluster, clip(namespace))
	}
	return cl, namespace, nil
}

// request is one question to the server.
type request struct {
	verb      string
	resource  resource
	namespace string
	query     url.Values
}

// get sends a request and returns the body of the answer, which is JSON, for the caller
// to close. The error is a [StatusError] if the server refuses.
func (c *client) get(ctx context.Context, r request) (io.ReadCloser, error) {
	h, err := c.connection()
	if err != nil {
		return nil, err
	}
	address := c.base + r.resource.path(r.namespace) + "?" + r.query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "quorate")
	if c.tokenFile != "" {
		token, err := readFile(c.tokenFile)
		if err != nil {
			return nil, fmt.Errorf("the token: %w", err)
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	answer, err := h.Do(req)
	if err != nil {
		// Its text is the whole URL, of which the server is what matters.
		if full, ok := errors.AsType[*url.Error](err); ok {
			err = full.Err
		}
		return nil, fmt.Errorf("%s: %w", c.base, err)
	}
	if err := c.check(r, answer); err != nil {
		_ = answer.Body.Close() // What it holds is in the error already.
		return nil, err
	}
	return answer.Body, nil
}

// check accepts an answer in JSON with status 200.
func (c *client) check(r request, answer *http.Response) error {
	if to := answer.Header.Get("Location"); to != "" && answer.StatusCode/100 == 3 {
		return fmt.Errorf("%w: %s redirects to %q, which is not followed, for the token would go there: is server right?",
			ErrMalformed, c.base, clip(to))
	}
	kind, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	isJSON := err == nil && kind == "application/json"
	if answer.StatusCode == http.StatusOK && isJSON {
		return nil
	}
	if answer.StatusCode == http.StatusOK {
		return fmt.Errorf("%w: %s answers with the content type %q: is server right?",
			ErrMalformed, c.base, clip(answer.Header.Get("Content-Type")))
	}
	var status struct {
		Message string `json:"message"`
	}
	if isJSON {
		// An error about an error helps nobody: the code alone is told then.
		_ = json.NewDecoder(io.LimitReader(answer.Body, statusBytesMax)).Decode(&status)
	}
	return c.refusal(r, answer.StatusCode, status.Message)
}

func (c *client) refusal(r request, code int, message string) *StatusError {
	return &StatusError{
		Code: code, Message: clip(message), Verb: r.verb, Group: r.resource.group, Resource: r.resource.name,
		Namespace: r.namespace, Credentials: c.tokenFile,
	}
}

// connection returns the HTTP client for the certificates that are in the file now.
func (c *client) connection() (*http.Client, error) {
	var ca []byte
	if c.caFile != "" {
		var err error
		if ca, err = readFile(c.caFile); err != nil {
			return nil, fmt.Errorf("the certificates: %w", err)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.http != nil && bytes.Equal(ca, c.ca) {
		return c.http, nil
	}
	var roots *x509.CertPool // nil means those of the system
	if c.caFile != "" {
		roots = x509.NewCertPool()
		if !roots.AppendCertsFromPEM(ca) {
			return nil, fmt.Errorf("the certificates: %s holds none in PEM form", c.caFile)
		}
	}
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
	c.ca, c.http = ca, newHTTP(roots, c.timeout)
	return c.http, nil
}

// newHTTP returns a client that follows no redirect and uses no proxy, since the token
// is for the server alone, and that notices when a connection is dead.
func newHTTP(roots *x509.CertPool, timeout time.Duration) *http.Client {
	dialer := net.Dialer{
		Timeout:         timeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: silence, Interval: silence / 2, Count: 2},
	}
	return &http.Client{
		Transport: &http.Transport{
			DialContext:            dialer.DialContext,
			TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:    timeout,
			ResponseHeaderTimeout:  timeout,
			MaxResponseHeaderBytes: headerBytesMax,
			MaxIdleConnsPerHost:    2,
			IdleConnTimeout:        time.Minute,
			ForceAttemptHTTP2:      true,
			HTTP2:                  &http.HTTP2Config{SendPingTimeout: silence, PingTimeout: silence},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// close closes the connections that nobody uses.
func (c *client) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
}

// readFile reads a file that must not be empty, nor longer than such a file ever is.
func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // It was only read.
	data, err := io.ReadAll(io.LimitReader(f, fileBytesMax+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > fileBytesMax:
		return nil, fmt.Errorf("%s is longer than %d bytes", name, fileBytesMax)
	case len(bytes.TrimSpace(data)) == 0:
		return nil, fmt.Errorf("%s is empty", name)
	}
	return data, nil
}
