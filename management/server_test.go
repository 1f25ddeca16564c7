// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/internal/patience/logtest"
	"github.com/quorate/quorate/management"
)

// The server on real connections. After what the tests share come answers and refusals,
// answers that fail and handlers; then bounds of requests, Close, and faults that keep a
// server from serving; last requests of any form.

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// logger returns a logger and what it logged.
func logger() (management.Option, *logtest.Buffer) {
	l := new(logtest.Buffer)
	return management.WithLogger(slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))), l
}

// quiet logs nothing.
func quiet() management.Option { return management.WithLogger(slog.New(slog.DiscardHandler)) }

// listening returns a configuration by which the server listens on any free port.
func listening() management.Config {
	cfg := management.Default()
	cfg.Address = "127.0.0.1:0"
	return cfg
}

// serve starts a server that ends with the test.
func serve(t *testing.T, cfg management.Config, routes []management.Route, opts ...management.Option) *management.Server {
	t.Helper()
	patience.Watch(t)
	s, err := management.Serve(t.Context(), cfg, routes, append([]management.Option{quiet()}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// answer is the response to a request.
type answer struct {
	status int
	header http.Header
	body   string
}

// failure decodes the body of a response that reports a failure.
func (a answer) failure(t *testing.T) management.Failure {
	t.Helper()
	var f management.Failure
	require.NoError(t, json.Unmarshal([]byte(a.body), &f), a.body)
	require.NotEmpty(t, f.Error)
	return f
}

// client returns a client that keeps no connection, so that it leaves no goroutine behind.
func client() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
}

// ask sends a request to a server.
func ask(t *testing.T, s *management.Server, method, target string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(patience.Context(t), method, "http://"+s.Address()+target, http.NoBody)
	require.NoError(t, err)
	return send(t, client(), request)
}

func send(t *testing.T, c *http.Client, request *http.Request) answer {
	t.Helper()
	response, err := c.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return answer{response.StatusCode, response.Header, string(text)}
}

// echo answers with what it was asked.
func echo() management.Route {
	return management.Route{
		Path: "/echo/{what}", Query: []string{"a", "n"},
		Answer: func(_ context.Context, r management.Request) (any, error) {
			n, err := r.QueryInt("n", 1, 9, 5)
			if err != nil {
				return nil, err
			}
			return map[string]any{"what": r.Path("what"), "a": r.Query("a"), "n": n}, nil
		},
	}
}

// fail returns a route whose answer is what f does, such as an error or a panic.
func fail(path string, f func(ctx context.Context) (any, error)) management.Route {
	return management.Route{Path: path, Answer: func(ctx context.Context, _ management.Request) (any, error) { return f(ctx) }}
}

// By default nothing listens, and Close is in order.
func TestNothingListensByDefault(t *testing.T) {
	s, err := management.Serve(t.Context(), management.Default(), []management.Route{echo()})
	require.NoError(t, err)
	require.Empty(t, s.Address())
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
}

func TestAnswersAreJSON(t *testing.T) {
	s := serve(t, listening(), []management.Route{echo()})
	got := ask(t, s, http.MethodGet, "/echo/a%2Fb%2E%2E%20%3F?a=x%26y&n=9")
	require.Equal(t, http.StatusOK, got.status)
	require.JSONEq(t, `{"what":"a/b.. ?","a":"x&y","n":9}`, got.body)
	require.Equal(t, "application/json; charset=utf-8", got.header.Get("Content-Type"))
	require.Equal(t, "no-store", got.header.Get("Cache-Control"))
	require.JSONEq(t, `{"what":"..","a":"","n":5}`, ask(t, s, http.MethodGet, "/echo/%2E%2E").body)

	head := ask(t, s, http.MethodHead, "/echo/a")
	require.Equal(t, http.StatusOK, head.status)
	require.Empty(t, head.body)
}

// A request that makes no sense is refused with JSON that says what would make sense.
func TestRequestsThatAreRefused(t *testing.T) {
	s := serve(t, listening(), []management.Route{echo()})
	tests := []struct {
		name, method, target, host string
		body                       io.Reader
		status                     int
		want                       string
	}{
		{"post", http.MethodPost, "/echo/a", "", nil, 405, "only answers GET and HEAD"},
		{"delete", http.MethodDelete, "/nothing", "", nil, 405, "only answers GET and HEAD"},
		{"body", http.MethodGet, "/echo/a", "", strings.NewReader("x"), 400, "body"},
		{"endless body", http.MethodGet, "/echo/a", "", io.MultiReader(strings.NewReader("x")), 400, "body"},
		{"no such path", http.MethodGet, "/v2/members", "", nil, 404, "nothing at /v2/members"},
		{"the root", http.MethodGet, "/", "", nil, 404, "nothing at /"},
		{"empty segment", http.MethodGet, "/echo//a", "", nil, 400, "percent encoding"},
		{"path with dots", http.MethodGet, "/echo/../a", "", nil, 400, "percent encoding"},
		{"slash at the end", http.MethodGet, "/echo/a/", "", nil, 400, "percent encoding"},
		{"foreign host", http.MethodGet, "/echo/a", "evil.example:80", nil, 403, "localhost"},
		{"unknown parameter", http.MethodGet, "/echo/a?b=1", "", nil, 400, `unknown parameter "b"; there are a, n`},
		{"parameter twice", http.MethodGet, "/echo/a?a=1&a=2", "", nil, 400, `"a" was given 2 times`},
		{"semicolon", http.MethodGet, "/echo/a?a=1;n=2", "", nil, 400, "not valid"},
		{"bad escape", http.MethodGet, "/echo/a?a=%zz", "", nil, 400, "not valid"},
		{"no number", http.MethodGet, "/echo/a?n=many", "", nil, 400, `n: "many" is not a number from 1 to 9`},
		{"number too high", http.MethodGet, "/echo/a?n=10", "", nil, 400, "from 1 to 9"},
		{"number without a value", http.MethodGet, "/echo/a?n=", "", nil, 400, "from 1 to 9"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			request, err := http.NewRequestWithContext(patience.Context(t), test.method, "http://"+s.Address()+test.target, test.body)
			require.NoError(t, err)
			if test.host != "" {
				request.Host = test.host
			}
			got := send(t, client(), request)
			require.Equal(t, test.status, got.status, got.body)
			require.Contains(t, got.failure(t).Error, test.want)
			require.Equal(t, "application/json; charset=utf-8", got.header.Get("Content-Type"))
			if test.status == http.StatusMethodNotAllowed {
				require.Equal(t, "GET, HEAD", got.header.Get("Allow"))
			}
		})
	}
	got := ask(t, s, http.MethodGet, "/echo/a?x=1&y=2").failure(t)
	require.Len(t, got.Reasons, 2, "all faults of a query together")
	for _, host := range []string{"localhost", "LOCALHOST:80", "127.0.0.2", "[::1]:80", "[::1]"} {
		request, err := http.NewRequestWithContext(patience.Context(t), http.MethodGet, "http://"+s.Address()+"/echo/a", http.NoBody)
		require.NoError(t, err)
		request.Host = host
		require.Equal(t, http.StatusOK, send(t, client(), request).status, host)
	}
}

// A query of very many unknown parameters does not get an answer that is as long.
func TestAnAnswerNamesFewFaultsOfAQuery(t *testing.T) {
	s := serve(t, listening(), []management.Route{echo()})
	var query strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&query, "&p%d=", i)
	}
	got := ask(t, s, http.MethodGet, "/echo/a?"+query.String()[1:])
	require.Equal(t, http.StatusBadRequest, got.status)
	require.Less(t, len(got.body), 1000)
	require.Contains(t, got.body, "and 992 others")
	got = ask(t, s, http.MethodGet, "/echo/a?"+strings.Repeat("p", 10_000)+"=")
	require.Equal(t, http.StatusBadRequest, got.status)
	require.Less(t, len(got.body), 300)
}

// Whatever an answer does, its request ends with JSON, and the server goes on.
func TestAnswersThatFail(t *testing.T) {
	cfg := listening()
	cfg.RequestTimeout = 300 * time.Millisecond
	log, logged := logger()
	s := serve(t, cfg, []management.Route{
		echo(),
		fail("/panic", func(context.Context) (any, error) { panic("oh no") }),
		fail("/error", func(context.Context) (any, error) { return nil, errors.New("the disk is full") }),
		fail("/known", func(context.Context) (any, error) {
			return nil, fmt.Errorf("asked: %w", &management.Error{Status: 404, Text: "none", Reasons: []string{"one", "two"}})
		}),
		fail("/slow", func(ctx context.Context) (any, error) {
			<-ctx.Done()
			return nil, fmt.Errorf("asking the coordinator: %w", context.Cause(ctx))
		}),
		fail("/value", func(context.Context) (any, error) { return func() {}, nil }),
	}, log)
	for _, test := range []struct {
		path   string
		status int
		body   string
	}{
		{"/panic", 500, `{"error":"the answer panicked; the log of the node has more"}`},
		{"/error", 500, `{"error":"the disk is full"}`},
		{"/known", 404, `{"error":"none","reasons":["one","two"]}`},
		{"/slow", 504, `{"error":"no answer within 300ms: asking the coordinator: context deadline exceeded"}`},
		{"/value", 500, `{"error":"the answer cannot be encoded; the log of the node has more"}`},
		{"/echo/a", 200, `{"what":"a","a":"","n":5}`},
	} {
		got := ask(t, s, http.MethodGet, test.path)
		require.Equal(t, test.status, got.status, test.path)
		require.JSONEq(t, test.body, got.body)
	}
	require.Contains(t, logged.String(), "oh no")
	require.Contains(t, logged.String(), "server_test.go", "the stack is logged")
	require.Contains(t, logged.String(), "cannot be encoded")
}

// A route with a handler answers by itself, in other formats than JSON and within the same
// bounds. If the handler panics after it has begun to answer, the connection ends.
func TestHandlersAnswerByThemselves(t *testing.T) {
	cfg := listening()
	cfg.RequestTimeout = 300 * time.Millisecond
	log, logged := logger()
	of := func(path string, f http.HandlerFunc) management.Route {
		return management.Route{Path: path, Handler: f}
	}
	s := serve(t, cfg, []management.Route{
		echo(),
		of("/text", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			_, _ = io.WriteString(w, "metrics 1\n")
		}),
		of("/slow", func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			http.Error(w, "late", http.StatusGatewayTimeout)
		}),
		of("/panic", func(http.ResponseWriter, *http.Request) { panic("oh no") }),
	}, log)
	got := ask(t, s, http.MethodGet, "/text")
	require.Equal(t, "text/plain", got.header.Get("Content-Type"))
	require.Equal(t, "metrics 1\n", got.body)
	require.Equal(t, "no-store", got.header.Get("Cache-Control"))
	require.Equal(t, http.StatusBadRequest, ask(t, s, http.MethodGet, "/text?what=1").status)
	require.Equal(t, http.StatusMethodNotAllowed, ask(t, s, http.MethodPost, "/text").status)
	require.Equal(t, http.StatusGatewayTimeout, ask(t, s, http.MethodGet, "/slow").status)
	_, err := http.Get("http://" + s.Address() + "/panic") // There is no response.
	require.Error(t, err)
	require.Contains(t, logged.String(), "oh no")
	require.Equal(t, http.StatusOK, ask(t, s, http.MethodGet, "/echo/a").status)
}

// held is a route whose answers wait until they are let go.
func held() (route management.Route, begun chan struct{}, release chan struct{}) {
	begun, release = make(chan struct{}, 64), make(chan struct{})
	return fail("/held", func(ctx context.Context) (any, error) {
		begun <- struct{}{}
		select {
		case <-release:
			return "done", nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}), begun, release
}

// However many requests come, health checks are answered. Other requests above the bound are
// refused with a status that says so.
func TestRequestsAreBounded(t *testing.T) {
	cfg := listening()
	cfg.MaxRequests = 2
	route, begun, release := held()
	probe := echo()
	probe.Path, probe.Probe = "/probe/{what}", true
	s := serve(t, cfg, []management.Route{route, probe})
	var asking sync.WaitGroup
	for range 2 {
		asking.Go(func() {
			got := ask(t, s, http.MethodGet, "/held")
			if got.status != http.StatusOK || got.body != "\"done\"\n" {
				t.Errorf("%d %s", got.status, got.body)
			}
		})
		<-begun
	}
	got := ask(t, s, http.MethodGet, "/held")
	require.Equal(t, http.StatusServiceUnavailable, got.status)
	require.Contains(t, got.failure(t).Error, "2 requests are being answered already")
	require.Equal(t, "1", got.header.Get("Retry-After"))
	require.Equal(t, http.StatusOK, ask(t, s, http.MethodGet, "/probe/a").status)
	close(release)
	asking.Wait()
	require.Equal(t, http.StatusOK, ask(t, s, http.MethodGet, "/held").status, "the places were given back")
}

// Close lets a running answer end, and accepts no connection after it.
func TestCloseLetsAnswersEnd(t *testing.T) {
	route, begun, release := held()
	s, err := management.Serve(t.Context(), listening(), []management.Route{route}, quiet())
	require.NoError(t, err)
	address := s.Address()
	answered := make(chan int, 1)
	go func() {
		response, err := client().Get("http://" + address + "/held")
		if err != nil {
			answered <- 0
			return
		}
		_ = response.Body.Close()
		answered <- response.StatusCode
	}()
	<-begun
	closed := make(chan error, 2)
	for range 2 { // Two goroutines may call Close at the same time.
		go func() { closed <- s.Close() }()
	}
	close(release)
	require.Equal(t, http.StatusOK, <-answered)
	require.NoError(t, <-closed)
	require.NoError(t, <-closed)
	_, err = net.Dial("tcp", address)
	require.Error(t, err)
}

// Serve returns an error for a fault of the configuration, the port or the routes, and
// leaves nothing behind.
func TestErrorsOfServe(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = taken.Close() }()
	with := func(change func(*management.Config)) management.Config {
		cfg := listening()
		change(&cfg)
		return cfg
	}
	answer := func(context.Context, management.Request) (any, error) { return nil, nil } // JSON has null.
	for name, test := range map[string]struct {
		cfg    management.Config
		routes []management.Route
		want   []string
	}{
		"configuration":  {management.Config{}, nil, []string{"max-requests: 0", "max-connections: 0", "request-timeout: 0s"}},
		"remote address": {with(func(c *management.Config) { c.Address = "0.0.0.0:8080" }), nil, []string{"address: 0.0.0.0:8080", "allow-remote: true", "127.0.0.1:8080"}},
		"missing files": {
			with(func(c *management.Config) {
				c.TLS.Certificate, c.TLS.Key, c.TLS.Authorities = "a.pem", "b.pem", "c.pem"
			}),
			nil,
			[]string{"tls.certificate a.pem", "tls.key b.pem"},
		},
		"port in use":           {with(func(c *management.Config) { c.Address = taken.Addr().String() }), nil, []string{taken.Addr().String(), "in use"}},
		"answer and handler":    {listening(), []management.Route{{Path: "/a", Answer: answer, Handler: http.NotFoundHandler()}}, []string{`route "/a"`, "either"}},
		"bad pattern":           {listening(), []management.Route{{Path: "/a/{b", Answer: answer}}, []string{`route "/a/{b"`}},
		"same pattern":          {listening(), []management.Route{{Path: "/a", Answer: answer}, {Path: "/a", Answer: answer}}, []string{`route "/a"`, "conflicts"}},
		"pattern with a method": {listening(), []management.Route{{Path: "GET /a", Answer: answer}}, []string{`route "GET /a"`, "begins with a slash"}},
		"without answer":        {listening(), []management.Route{{Path: "/a"}}, []string{`route "/a"`, "an answer"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := management.Serve(t.Context(), test.cfg, test.routes, quiet())
			for _, want := range test.want {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

// elsewhere is a listener at an address that others can reach.
type elsewhere struct {
	net.Listener

	at net.TCPAddr
}

func (e elsewhere) Addr() net.Addr { return &e.at }

// The name localhost is believed as little as any other: where the machine resolves it to an
// address that others can reach, nothing is served and the listener is closed.
func TestLocalhostThatIsNotTheLoopbackIsRefused(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	cfg := listening()
	cfg.Address = "localhost:8080"
	_, err = management.ServeOn(elsewhere{l, net.TCPAddr{IP: net.IPv4(10, 9, 9, 9), Port: 8080}}, cfg, nil, quiet())
	require.ErrorContains(t, err, "address localhost:8080: stands for 10.9.9.9:8080")
	require.ErrorIs(t, l.Close(), net.ErrClosed, "it was closed already")

	l, err = net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s, err := management.ServeOn(l, cfg, nil, quiet())
	require.NoError(t, err)
	require.NoError(t, s.Close())
}

// FuzzRequest throws targets at the routes: each is answered with JSON and a status that
// blames the client, never the node.
func FuzzRequest(f *testing.F) {
	for _, target := range []string{
		"/health/live", "/v1/kinds", "/v1/kinds/account/entities/acct-42", "/v1/kinds/account/entities/a%2Fb", "/v1/kinds/account/entities/%ff",
		"/v1/kinds/account/entities/%2E%2E", "/v1/kinds/account/entities/..", "/v1/kinds/account/shards/17", "/v1/kinds/account/shards/-1",
		"/v1/kinds/account/shards/99999999999999999999", "/v1/kinds//shards/1", "/v1/kinds/none/shards/1", "/v1/kinds?x=1", "/?a=1;b=2", "/%zz",
		"/v1/kinds/account/entities/" + strings.Repeat("x", 513), "*", "http://localhost/v1/kinds", "//v1/kinds", "/v1/kinds/", "/echo/a?n=5&a=%20", "/echo/a?n=0x5",
	} {
		f.Add(target)
	}
	handler, err := management.Handler(management.Default(), append(management.Explanations("n#1", accounts{}), echo()), quiet())
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, target string) {
		request, err := http.ReadRequest(bufioReader("GET " + target + " HTTP/1.1\r\nHost: localhost\r\n\r\n"))
		if err != nil {
			return // Package http refuses such a request itself.
		}
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, request)
		require.True(t, json.Valid(recorder.Body.Bytes()), recorder.Body)
		if recorder.Code != http.StatusOK {
			require.Contains(t, []int{400, 403, 404}, recorder.Code)
			answer{body: recorder.Body.String()}.failure(t)
		}
	})
}
