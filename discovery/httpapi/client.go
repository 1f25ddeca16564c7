// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package httpapi

// What a request goes through in do, from top to bottom: the certificates are read, and the
// connections are given up if they have changed; the token is read and put into the header;
// the request is sent, without proxy and without following redirects; of the answers, one
// of success in JSON is returned, and every other one becomes an error.

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
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/config/field"
)

const (
	// maxRefusalBytes is how much is read of the body of a refusal.
	maxRefusalBytes = 64 << 10
	// maxHeaderBytes bounds the header of an answer.
	maxHeaderBytes = 64 << 10
	// silence is how long a connection is silent before the other side is asked whether it
	// is still there, and how long the answer to that may take. Without, a request that waits
	// for news would wait for ever after the machine of the server has gone.
	silence = 10 * time.Second
)

// Server says which server a [Client] asks, and how. The method fills it in; the settings of
// the operator are its field Config.
type Server struct {
	// URL begins the URL of every request, such as "https://10.0.0.1:6443"; [ParseURL]
	// accepts it.
	URL string

	// Key is the key of the setting that holds URL. Errors that a wrong URL explains ask
	// whether it is right.
	Key string

	// Malformed is wrapped by the error of an answer that no such server would give: a
	// redirect, or a content type other than JSON. It must not be nil.
	Malformed error

	// Authorize puts the token into the header of a request. Nil: as
	// "Authorization: Bearer TOKEN".
	Authorize func(header http.Header, token string)

	// HeaderTimeout is how long the header of an answer may take. Zero: as long as the
	// context of the request allows, for servers that hold an answer back until there is news.
	HeaderTimeout time.Duration

	// Config holds the operator's settings, which are valid.
	Config Config
}

// Client asks one server. Use [New]; Close it in the end. All methods are safe for
// concurrent use.
type Client struct {
	server Server

	mu   sync.Mutex // guards ca and http
	ca   []byte     // the text of the certificates that http trusts
	http *http.Client
}

// New returns the client of a server. It reads no file and connects to nothing.
func New(s Server) *Client {
	s.URL = strings.TrimSuffix(s.URL, "/")
	if s.Authorize == nil {
		s.Authorize = func(header http.Header, token string) { header.Set("Authorization", "Bearer "+token) }
	}
	return &Client{server: s}
}

// Get asks for a path, which begins with a slash and may end with a query. The answer has
// status 200 and is in JSON; the caller closes its body. The error is a [StatusError] if the
// answer has another status, and wraps [Server.Malformed] if no such server would give that
// answer. It names the server, and no more of the URL.
func (c *Client) Get(ctx context.Context, path string) (*http.Response, error) {
	return c.do(ctx, http.MethodGet, path, http.NoBody)
}

// Send sends a body in JSON to a path by a method such as PUT or POST. The answer and the error
// are like those of [Client.Get], but that the status may also be 201. An error other than a
// StatusError does not say whether the server has done what it was asked for.
func (c *Client) Send(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	return c.do(ctx, method, path, bytes.NewReader(body))
}

func (c *Client) do(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	h, err := c.connection()
	if err != nil {
		return nil, fmt.Errorf("the certificates: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.server.URL+path, body)
	if err != nil {
		return nil, err
	}
	if err := c.header(request); err != nil {
		return nil, err
	}
	answer, err := h.Do(request)
	if err != nil {
		// The text of this error is the whole URL, of which the server is what matters.
		if full, ok := errors.AsType[*url.Error](err); ok {
			err = full.Err
		}
		return nil, fmt.Errorf("%s: %w", c.server.URL, err)
	}
	if err := c.check(answer, method); err != nil {
		_ = answer.Body.Close() // What the body says is in the error already.
		return nil, err
	}
	return answer, nil
}

// header fills in the header of a request, with the token as it is now.
func (c *Client) header(request *http.Request) error {
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "quorate")
	if request.Method != http.MethodGet {
		request.Header.Set("Content-Type", "application/json")
	}
	if c.server.Config.TokenFile == "" {
		return nil
	}
	token, err := ReadFile(c.server.Config.TokenFile)
	if err != nil {
		return fmt.Errorf("the token: %w", err)
	}
	c.server.Authorize(request.Header, strings.TrimSpace(string(token)))
	return nil
}

// check accepts an answer in JSON with status 200, or 201 if something was sent.
func (c *Client) check(answer *http.Response, method string) error {
	if to := answer.Header.Get("Location"); to != "" && answer.StatusCode/100 == 3 {
		return fmt.Errorf("%w: %s redirects to %q, which is not followed, for the token would go there: is %s right?",
			c.server.Malformed, c.server.URL, field.Clip(to), c.server.Key)
	}
	given := answer.Header.Get("Content-Type")
	kind, _, err := mime.ParseMediaType(given)
	if err != nil {
		kind = ""
	}
	switch {
	case answer.StatusCode != http.StatusOK && (method == http.MethodGet || answer.StatusCode != http.StatusCreated):
		// A body that breaks off is told as far as it came: the code is what matters.
		body, _ := io.ReadAll(io.LimitReader(answer.Body, maxRefusalBytes))
		return &StatusError{Code: answer.StatusCode, Type: kind, Body: body}
	case kind != "application/json":
		return fmt.Errorf("%w: %s answers with the content type %q: is %s right?",
			c.server.Malformed, c.server.URL, field.Clip(given), c.server.Key)
	}
	return nil
}

// Overdue returns the error of a request. If the time limit of the request is over, and ctx, the
// context of the caller, goes on, the error that is returned does not wrap
// [context.DeadlineExceeded]: it would look as if the time of the caller were over.
func (c *Client) Overdue(ctx context.Context, err error) error {
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no whole answer within %v: %s", c.server.Config.RequestTimeout, err.Error())
	}
	return err
}

// connection returns the HTTP client that trusts the certificates in the file as it is now.
func (c *Client) connection() (*http.Client, error) {
	roots, ca, err := readRoots(c.server.Config.CAFile)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.http != nil && bytes.Equal(ca, c.ca) {
		return c.http, nil
	}
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
	c.ca, c.http = ca, c.server.connect(roots)
	return c.http, nil
}

// connect returns an HTTP client that follows no redirect and uses no proxy, since the token
// is for the server alone, and that notices when a connection is dead.
func (s *Server) connect(roots *x509.CertPool) *http.Client {
	dialer := net.Dialer{
		Timeout:         s.Config.RequestTimeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: silence, Interval: silence / 2, Count: 2},
	}
	return &http.Client{
		Transport: &http.Transport{
			DialContext:            dialer.DialContext,
			TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:    s.Config.RequestTimeout,
			ResponseHeaderTimeout:  s.HeaderTimeout,
			MaxResponseHeaderBytes: maxHeaderBytes,
			IdleConnTimeout:        time.Minute,
			ForceAttemptHTTP2:      true,
			HTTP2:                  &http.HTTP2Config{SendPingTimeout: silence, PingTimeout: silence},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Close closes the connections that are idle. It may be called more than once, and returns
// nil. A request after it opens a new connection.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
	return nil
}
