// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package consul

// The one request to the agent: who is registered under a name and healthy, at once or
// when it has changed. The token and the certificates are read anew for each request.

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// The longest files of a token and certificates.
	fileBytesMax = 1 << 20
	// The longest body that is read for what the agent says about an error.
	messageBytesMax = 4 << 10
	headerBytesMax  = 64 << 10
	// The longest answer: 10,000 registrations with several checks each.
	answerBytesMax = 32 << 20
	// How long a connection is silent before it is asked whether it is still there.
	silence = 10 * time.Second
)

// client asks one agent. It is safe for concurrent use.
type client struct {
	config Config

	mu   sync.Mutex // guards ca and http
	ca   []byte     // the certificates that http was made for
	http *http.Client
}

// health asks for the registrations of a service. With an index above 0 the agent
// answers when its index is another one, or after a while. The index of the answer is
// above 0.
func (c *client) health(ctx context.Context, service string, index uint64) ([]entry, uint64, error) {
	limit := c.config.RequestTimeout
	query := url.Values{"tag": c.config.Tags}
	if c.config.Passing {
		query.Set("passing", "1")
	}
	if c.config.Datacenter != "" {
		query.Set("dc", c.config.Datacenter)
	}
	if index > 0 {
		query.Set("index", strconv.FormatUint(index, 10))
		query.Set("wait", strconv.FormatInt(c.config.Wait.Milliseconds(), 10)+"ms")
		// Consul adds up to a sixteenth, so that not everybody asks at once.
		limit += c.config.Wait + c.config.Wait/16
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	answer, err := c.get(ctx, "/v1/health/service/"+url.PathEscape(service)+"?"+query.Encode())
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = answer.Body.Close() }() // It was only read.
	if err := c.check(service, answer); err != nil {
		return nil, 0, err
	}
	next, err := strconv.ParseUint(answer.Header.Get("X-Consul-Index"), 10, 64)
	if err != nil || next == 0 {
		return nil, 0, fmt.Errorf("%w: the index is %q", ErrMalformed, clip(answer.Header.Get("X-Consul-Index")))
	}
	entries, err := decode(answer.Body)
	if err != nil && ctx.Err() != nil {
		// Below HTTP/2 a body that is cut off by the deadline only says that it was closed.
		return nil, 0, ctx.Err()
	}
	return entries, next, err
}

func (c *client) get(ctx context.Context, path string) (*http.Response, error) {
	h, err := c.connection()
	if err != nil {
		return nil, err
	}
	base := strings.TrimSuffix(c.config.Address, "/")
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "quorate")
	if c.config.TokenFile != "" {
		token, err := readFile(c.config.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("the token: %w", err)
		}
		req.Header.Set("X-Consul-Token", strings.TrimSpace(string(token)))
	}
	answer, err := h.Do(req)
	if full, ok := errors.AsType[*url.Error](err); ok {
		// Its text is the whole URL, of which the agent is what matters.
		return nil, fmt.Errorf("%s: %w", base, full.Err)
	}
	return answer, err
}

// check accepts an answer in JSON with status 200 from which nothing was left out. A
// token that may read nothing gets an empty list from Consul, which would say that
// there is nobody.
func (c *client) check(service string, answer *http.Response) error {
	if to := answer.Header.Get("Location"); to != "" && answer.StatusCode/100 == 3 {
		return fmt.Errorf("%w: %s redirects to %q, which is not followed, for the token would go there: is address right?",
			ErrMalformed, c.config.Address, clip(to))
	}
	refused := &StatusError{Code: answer.StatusCode, Service: service, Credentials: c.config.TokenFile}
	if answer.StatusCode != http.StatusOK {
		// An error about an error helps nobody: the code alone is told then.
		text, _ := io.ReadAll(io.LimitReader(answer.Body, messageBytesMax))
		refused.Message = clip(strings.TrimSpace(string(text)))
		return refused
	}
	kind, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return fmt.Errorf("%w: %s answers with the content type %q: is address right?",
			ErrMalformed, c.config.Address, clip(answer.Header.Get("Content-Type")))
	}
	if answer.Header.Get("X-Consul-Results-Filtered-By-ACLs") == "true" {
		return refused
	}
	return nil
}

// connection returns the HTTP client for the certificates that are in the file now.
func (c *client) connection() (*http.Client, error) {
	var ca []byte
	if c.config.CAFile != "" {
		var err error
		if ca, err = readFile(c.config.CAFile); err != nil {
			return nil, fmt.Errorf("the certificates: %w", err)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.http != nil && bytes.Equal(ca, c.ca) {
		return c.http, nil
	}
	var roots *x509.CertPool // nil means those of the system
	if c.config.CAFile != "" {
		roots = x509.NewCertPool()
		if !roots.AppendCertsFromPEM(ca) {
			return nil, fmt.Errorf("the certificates: %s holds none in PEM form", c.config.CAFile)
		}
	}
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
	c.ca, c.http = ca, newHTTP(roots, c.config.RequestTimeout)
	return c.http, nil
}

// newHTTP returns a client that follows no redirect and uses no proxy, since the token
// is for the agent alone, and that notices when a connection is dead.
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
			MaxResponseHeaderBytes: headerBytesMax,
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
