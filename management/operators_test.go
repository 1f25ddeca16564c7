// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management_test

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/management"
	"github.com/quorate/quorate/transport/mutual/mutualtest"
)

// Who may use a route that is kept to operators: by tokens, by certificates, over the socket;
// what web pages try; and what is told of it.

// strong is a route that only operators may use, and counts how often they did.
type strong struct {
	mu   sync.Mutex
	done int
}

func (c *strong) route() management.Route {
	return management.Route{Path: "/v1/strong/{what}", Operation: "strike", Authorized: true, Answer: func(context.Context, management.Request) (any, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.done++
		return "done", nil
	}}
}

// token is what an operator sends, and line how the file of tokens has it.
const token = "correct-horse-battery-staple"

func line(name, ends, token string) string {
	return fmt.Sprintf("%s %s %x\n", name, ends, sha256.Sum256([]byte(token)))
}

// tokensIn writes a file of tokens.
func tokensIn(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// strike asks for the operation, as an operator does but for a change.
func strike(t *testing.T, c *http.Client, url string, change func(*http.Request)) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(patience.Context(t), http.MethodPost, url+"/v1/strong/it", http.NoBody)
	require.NoError(t, err)
	r.Header.Set(management.OperatorHeader, "strike")
	change(r)
	return send(t, c, r)
}

func bearer(token string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
}

// Only a token of the file that has not ended makes an operator, and only for a request that
// no web page has sent. Each refusal changes nothing and says what is wrong.
func TestTokensMakeOperators(t *testing.T) {
	path := tokensIn(t, "# name ends sha256\n\n"+line("alice", "never", token)+
		line("bob", time.Now().Add(time.Hour).Format(time.RFC3339), "bobs")+line("carol", "2020-01-31T00:00:00Z", "carols"))
	cfg := listening()
	cfg.Operators.TokenFile = path
	for name, test := range map[string]struct {
		change func(*http.Request)
		status int
		says   string
	}{
		"token":              {bearer(token), 200, "done"},
		"token with an end":  {bearer("bobs"), 200, "done"},
		"none":               {func(*http.Request) {}, 401, "only an operator may ask this: send a token"},
		"another":            {bearer("guess"), 401, "not one of this node's"},
		"empty":              {bearer(""), 401, "Bearer"},
		"its beginning":      {bearer(token[:8]), 401, "not one of this node's"},
		"its checksum":       {bearer(fmt.Sprintf("%x", sha256.Sum256([]byte(token)))), 401, "not one of this node's"},
		"ended":              {bearer("carols"), 401, "the token has ended on 2020-01-31T00:00:00Z"},
		"another scheme":     {func(r *http.Request) { r.SetBasicAuth("alice", token) }, 401, "Bearer"},
		"two":                {func(r *http.Request) { bearer(token)(r); r.Header.Add("Authorization", "Bearer x") }, 401, "Bearer"},
		"in the query":       {func(r *http.Request) { r.URL.RawQuery = "access_token=" + token }, 401, "send a token"},
		"without the header": {func(r *http.Request) { bearer(token)(r); r.Header.Del(management.OperatorHeader) }, 403, "Quorate-Operator: strike"},
		"another operation":  {func(r *http.Request) { bearer(token)(r); r.Header.Set(management.OperatorHeader, "form") }, 403, "Quorate-Operator: strike"},
		"web page":           {func(r *http.Request) { bearer(token)(r); r.Header.Set("Origin", "http://localhost:3000") }, 403, "web page"},
		"page of the host":   {func(r *http.Request) { bearer(token)(r); r.Header.Set("Sec-Fetch-Site", "same-origin") }, 403, "web page"},
		"rebound name":       {func(r *http.Request) { bearer(token)(r); r.Host = "evil.example:8080" }, 403, "evil.example"},
		"form":               {form1, 400, "body"},
		"GET":                {func(r *http.Request) { bearer(token)(r); r.Method = http.MethodGet }, 405, "POST"},
	} {
		t.Run(name, func(t *testing.T) {
			c := new(strong)
			log, logged := logger()
			s := serve(t, cfg, []management.Route{c.route()}, log)
			got := strike(t, client(), "http://"+s.Address(), test.change)
			require.Equal(t, test.status, got.status, got.body)
			require.Contains(t, got.body, test.says)
			require.Equal(t, test.status == 200, c.done == 1)
			require.Equal(t, test.status == 401, got.header.Get("WWW-Authenticate") == "Bearer")
			require.NotContains(t, logged.String(), token)
			if test.status == 200 {
				require.Contains(t, logged.String(), `by="token of `)
			}
			if test.status == 401 {
				require.Contains(t, logged.String(), "nobody who may ask for it does")
			}
		})
	}
}

// form1 is what a form of a web page could send at most.
func form1(r *http.Request) {
	bearer(token)(r)
	text := "Quorate-Operator=strike"
	r.Body, r.ContentLength = http.NoBody, int64(len(text))
	r.Body = readCloser{strings.NewReader(text)}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }

// Tokens are those of the file at the time of the request. A file that cannot be read, or that
// others may write, makes nobody an operator.
func TestTokensAreReadAtEachRequest(t *testing.T) {
	cfg, c := listening(), new(strong)
	cfg.Operators.TokenFile = tokensIn(t, line("alice", "never", token))
	s := serve(t, cfg, []management.Route{c.route()})
	status := func() int { return strike(t, client(), "http://"+s.Address(), bearer(token)).status }
	require.Equal(t, 200, status())
	require.NoError(t, os.WriteFile(cfg.Operators.TokenFile, []byte(line("alice", "never", "new")), 0o600))
	require.Equal(t, 401, status())
	require.NoError(t, os.WriteFile(cfg.Operators.TokenFile, []byte(line("alice", "never", token)), 0o600))
	require.Equal(t, 200, status())
	if runtime.GOOS != "windows" {
		require.NoError(t, os.Chmod(cfg.Operators.TokenFile, 0o666))
		require.Equal(t, 500, status())
	}
	require.NoError(t, os.Remove(cfg.Operators.TokenFile))
	require.Equal(t, 500, status())
	require.Equal(t, 2, c.done)
}

func TestFaultsOfTokensAreNamed(t *testing.T) {
	sum := strings.Repeat("0f", 32)
	for text, want := range map[string]string{
		"alice never\n":                 ":1: has 2 words",
		"\n#\nalice never " + sum[1:]:   ":3: the checksum of alice",
		"alice never " + sum + "00":     ":1: the checksum of alice",
		"alice never " + sum[2:] + "zz": ":1: the checksum of alice",
		"alice tomorrow " + sum:         `"tomorrow" is neither a time`,
		"al\x1bice never " + sum:        "cannot be printed",
		strings.Repeat("#", 65<<10):     "more than 65536 bytes",
	} {
		cfg := listening()
		cfg.Operators.TokenFile = tokensIn(t, text)
		_, err := management.Serve(t.Context(), cfg, nil, quiet())
		require.ErrorContains(t, err, "operators.token-file")
		require.ErrorContains(t, err, want)
	}
}

// A certificate makes an operator if it has the URI name of the configuration, and no other
// certificate of the same authorities does.
func TestCertificatesMakeOperators(t *testing.T) {
	ours, c := mutualtest.NewAuthority(t, "ca"), new(strong)
	cfg := listening()
	cfg.TLS = ours.Write(t, t.TempDir(), ours.Issue(t, mutualtest.Leaf{}))
	cfg.Operators.CertificateURI = "quorate://bank/operator"
	log, logged := logger()
	s := serve(t, cfg, []management.Route{c.route()}, log)
	as := func(uris ...string) answer {
		transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
			RootCAs: ours.Pool(), MinVersion: tls.VersionTLS13,
			Certificates: []tls.Certificate{ours.Issue(t, mutualtest.Leaf{Identities: uris})},
		}}
		return strike(t, &http.Client{Transport: transport}, "https://"+s.Address(), func(*http.Request) {})
	}
	for _, uris := range [][]string{nil, {"quorate://bank/teller"}, {"quorate://other/operator"}, {"quorate://bank/operator2"}, {"quorate://bank/operator?x"}} {
		got := as(uris...)
		require.Equal(t, 401, got.status, uris)
		require.Contains(t, got.body, "show a certificate with the URI name quorate://bank/operator")
	}
	require.Zero(t, c.done)
	require.Equal(t, 200, as("quorate://bank/teller", "quorate://bank/operator").status)
	require.Contains(t, logged.String(), `by="certificate CN=node`)
}

// Over the socket the user of the node is an operator, with no address listened on; the socket
// is nobody else's, and goes with the server.
func TestTheSocketMakesOperators(t *testing.T) {
	if runtime.GOOS == "windows" {
		cfg := management.Default()
		cfg.Operators.Socket = filepath.Join(t.TempDir(), "s")
		_, err := management.Serve(t.Context(), cfg, nil, quiet())
		require.ErrorContains(t, err, "use a token")
		return
	}
	dir, err := os.MkdirTemp("", "s") //nolint:usetesting // The paths of sockets are short.
	require.NoError(t, err)
	defer func() { require.NoError(t, os.RemoveAll(dir)) }()
	cfg, c := management.Default(), new(strong)
	cfg.Operators.Socket = filepath.Join(dir, "operators")
	require.NoError(t, os.WriteFile(cfg.Operators.Socket, nil, 0o600))
	_, err = management.Serve(t.Context(), cfg, nil, quiet())
	require.ErrorContains(t, err, "no socket")
	require.NoError(t, os.Remove(cfg.Operators.Socket))

	log, logged := logger()
	var changes []management.Change
	s := serve(t, cfg, []management.Route{echo(), c.route()}, log, management.WithChanges(func(c management.Change) { changes = append(changes, c) }))
	require.Empty(t, s.Address())
	info, err := os.Stat(cfg.Operators.Socket)
	require.NoError(t, err)
	require.Equal(t, os.ModeSocket|0o600, info.Mode())
	over := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", cfg.Operators.Socket)
	}}}
	got := strike(t, over, "http://localhost", func(*http.Request) {})
	require.Equal(t, 200, got.status, got.body)
	require.Equal(t, 403, strike(t, over, "http://localhost", func(r *http.Request) { r.Header.Del(management.OperatorHeader) }).status)
	require.Equal(t, 403, strike(t, over, "http://evil.example", func(*http.Request) {}).status)
	require.Equal(t, 1, c.done)
	require.Len(t, changes, 1)
	require.Equal(t, management.Change{Operation: "strike", Path: "/v1/strong/it", By: changes[0].By}, changes[0])
	if runtime.GOOS == "linux" {
		require.Equal(t, fmt.Sprintf("user %d, process %d", os.Getuid(), os.Getpid()), changes[0].By)
	}
	require.Contains(t, logged.String(), "an operator asks for a change")
	for range 50 { // Who may ask cannot fill the log.
		require.Equal(t, 200, strike(t, over, "http://localhost", func(*http.Request) {}).status)
	}
	require.LessOrEqual(t, strings.Count(logged.String(), "an operator asks for a change"), 8)

	_, err = management.Serve(t.Context(), cfg, nil, quiet())
	require.ErrorContains(t, err, "another process listens there")
	require.NoError(t, s.Close())
	require.NoFileExists(t, cfg.Operators.Socket)
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: cfg.Operators.Socket})
	require.NoError(t, err)
	stale.SetUnlinkOnClose(false) // As a process that was killed leaves it.
	require.NoError(t, stale.Close())
	require.NoError(t, serve(t, cfg, nil).Close())
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

// Without any setting nobody is an operator, and what is refused by the node itself is told
// like what is done.
func TestOperatorsAreOffByDefault(t *testing.T) {
	c := new(strong)
	s := serve(t, listening(), []management.Route{c.route()})
	got := strike(t, client(), "http://"+s.Address(), bearer(token))
	require.Equal(t, 401, got.status)
	require.Contains(t, got.body, "no tokens")
	got = strike(t, client(), "http://"+s.Address(), func(*http.Request) {})
	require.Equal(t, 403, got.status)
	require.Contains(t, got.body, "this node has no operators")
	require.Zero(t, c.done)

	var changes []management.Change
	cfg := listening()
	cfg.Operators.TokenFile = tokensIn(t, line("alice", "never", token))
	fails := management.Route{Path: "/v1/strong/{what}", Operation: "strike", Authorized: true, Answer: func(context.Context, management.Request) (any, error) {
		return nil, &management.Error{Status: 409, Text: "not now", Reasons: []string{"it rains"}}
	}}
	s = serve(t, cfg, []management.Route{fails}, management.WithChanges(func(c management.Change) { changes = append(changes, c) }))
	require.Equal(t, 409, strike(t, client(), "http://"+s.Address(), bearer(token)).status)
	require.Equal(t, []management.Change{{Operation: "strike", Path: "/v1/strong/it", By: "token of alice", Err: errors.New("not now; it rains")}}, changes)

	_, err := management.Handler(cfg, []management.Route{{Path: "/x", Authorized: true, Answer: fails.Answer}})
	require.ErrorContains(t, err, "only an operation is kept to operators")
}

// An operation may take longer than other answers, and longer than a request may take to
// arrive.
func TestAnOperationHasTimeOfItsOwn(t *testing.T) {
	cfg := listening()
	cfg.RequestTimeout = 300 * time.Millisecond
	cfg.Operators.TokenFile = tokensIn(t, line("alice", "never", token))
	slow := management.Route{Path: "/v1/strong/{what}", Operation: "strike", Authorized: true, Limit: time.Minute, Answer: func(ctx context.Context, _ management.Request) (any, error) {
		select {
		case <-time.After(1200 * time.Millisecond): //quorate:realtime So long the operation takes.
			return "done", nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
	s := serve(t, cfg, []management.Route{slow})
	got := strike(t, client(), "http://"+s.Address(), bearer(token))
	require.Equal(t, 200, got.status, got.body)
	slow.Limit = 100 * time.Millisecond
	s = serve(t, cfg, []management.Route{slow})
	got = strike(t, client(), "http://"+s.Address(), bearer(token))
	require.Equal(t, 504, got.status)
	require.Contains(t, got.body, "no answer within 100ms")
}

// Readers that hold all streams go for operators, who keep theirs.
func TestOperatorsDisplaceReaders(t *testing.T) {
	cfg, begun := listening(), make(chan struct{})
	cfg.Operators.TokenFile = tokensIn(t, line("alice", "never", token))
	s := serve(t, cfg, []management.Route{{Path: "/v1/events/stream", Stream: func(ctx context.Context, _ management.Request, out *management.Stream) error {
		if err := out.Beat("1"); err != nil {
			return err
		}
		begun <- struct{}{}
		<-ctx.Done()
		return nil
	}}})
	ended := make(chan string, 16)
	open := func(who string, change func(*http.Request)) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Address()+"/v1/events/stream", http.NoBody)
		require.NoError(t, err)
		change(r)
		response, err := client().Do(r)
		require.NoError(t, err)
		if response.StatusCode == http.StatusOK {
			patience.Receive(t, begun, "the stream of %s", who)
		}
		go func() { // Ends with the stream, which ends with the server.
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
			ended <- who
		}()
		return response.StatusCode
	}
	reader := func(*http.Request) {}
	for range 8 {
		require.Equal(t, http.StatusOK, open("reader", reader))
	}
	require.Equal(t, http.StatusServiceUnavailable, open("late", reader))
	require.Equal(t, "late", patience.Receive(t, ended, "the end of the answer"))
	require.Equal(t, http.StatusOK, open("operator", bearer(token)))
	require.Equal(t, "reader", patience.Receive(t, ended, "the end of a reader"))
	require.Equal(t, http.StatusServiceUnavailable, open("late", reader))
	require.Equal(t, 8, s.Streams().Open)
}
