// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package consul_test

// The method against the agent of server_test.go: first the conformance suite and the
// registrations that are contact points, then blocking queries, an agent that is away,
// credentials, and answers that no agent would give.

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/consul"
	"github.com/quorate/quorate/discovery/discoverytest"
	"github.com/quorate/quorate/discovery/follow"
	"github.com/quorate/quorate/internal/patience"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// quick returns limits with short pauses after failures.
func quick() follow.Limits {
	return follow.Limits{Keys: 4, Idle: time.Minute, PauseMin: 10 * time.Millisecond, PauseMax: 20 * time.Millisecond}
}

func query() discovery.Query {
	return discovery.Query{Service: "bank", Port: "management", Protocol: "tcp"}
}

func open(t testing.TB, a *agent, edits ...func(*consul.Config)) *consul.Discovery {
	t.Helper()
	patience.Watch(t)
	config := consul.Default()
	config.Address = a.http.URL
	for _, edit := range edits {
		edit(&config)
	}
	d, err := consul.NewWith(config, quick(), time.Millisecond)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

func lookup(t testing.TB, d discovery.Discovery) discovery.Targets {
	t.Helper()
	found, err := d.Lookup(t.Context(), query())
	require.NoError(t, err)
	return found
}

func TestDiscoveryKeepsTheContract(t *testing.T) {
	discoverytest.TestSource(t, discoverytest.Source{
		Holding: func(t testing.TB, n int) discovery.Discovery {
			a := newAgent(t)
			all := make([]registration, n)
			for i := range n {
				all[i] = registration{service: "quorate", address: fmt.Sprintf("10.%d.%d.1", i/200, i%200), port: 7946}
			}
			a.register(all...)
			return open(t, a)
		},
		Failing: func(t testing.TB) discovery.Discovery {
			a := newAgent(t)
			a.answers(func(w http.ResponseWriter, _ *http.Request) {
				http.Error(w, "No cluster leader", http.StatusInternalServerError)
			})
			return open(t, a)
		},
		Silent: func(t testing.TB) discovery.Discovery {
			a := newAgent(t)
			a.answers(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
			return open(t, a)
		},
	})
}

func TestWhichRegistrationsAreContactPoints(t *testing.T) {
	a := newAgent(t)
	a.register(
		registration{service: "bank", node: "10.0.0.1", address: "10.1.0.1", port: 7946, tags: []string{"blue"}},
		registration{service: "bank", node: "10.0.0.2", port: 7946, tags: []string{"blue", "new"}},
		registration{service: "bank", node: "10.0.0.3", address: "Node.example", port: 7946},
		registration{service: "bank", node: "10.0.0.4", address: "fd00::4", port: 0},
		registration{service: "bank", node: "10.0.0.5", port: 7946, meta: map[string]string{"port-management": "8558", "version": "1"}},
		registration{service: "bank", node: "10.0.0.6", port: 7946, meta: map[string]string{"port-management": "none"}},
		registration{service: "bank", node: "10.0.0.2", port: 7946, tags: []string{"twice"}},
		registration{service: "bank", address: "http://10.0.0.7", port: 7946},
		registration{service: "bank", port: 7946},
		registration{service: "bank", node: "10.0.0.8", port: 7946, failing: true},
		registration{service: "shop", node: "10.9.9.9", port: 7946},
	)
	found := lookup(t, open(t, a))
	require.Equal(t, "[10.1.0.1:7946 10.0.0.2:7946 node.example:7946 fd00::4 10.0.0.5:8558 10.0.0.6:7946]", fmt.Sprint(found.List))
	require.Equal(t, `consul: 9 registrations of "bank" whose checks pass, 2 of them with an address that is none`, found.Reason)

	found = lookup(t, open(t, a, func(c *consul.Config) { c.Passing = false }))
	require.Contains(t, fmt.Sprint(found.List), "10.0.0.8:7946")
	require.Contains(t, found.Reason, `10 registrations of "bank",`)
	found = lookup(t, open(t, a, func(c *consul.Config) { c.Tags = []string{"blue", "new"} }))
	require.Equal(t, "[10.0.0.2:7946]", fmt.Sprint(found.List))
	found, err := open(t, a).Lookup(t.Context(), discovery.Query{Service: "shop", Port: "9000"})
	require.NoError(t, err)
	require.Equal(t, "[10.9.9.9:9000]", fmt.Sprint(found.List))
	found, err = open(t, a).Lookup(t.Context(), discovery.Query{Service: "none"})
	require.NoError(t, err)
	require.Empty(t, found.List)
	require.Equal(t, `consul: 0 registrations of "none" whose checks pass`, found.Reason)
}

func TestABlockingQueryTellsOfEveryChange(t *testing.T) {
	a := newAgent(t)
	d := open(t, a, func(c *consul.Config) { c.Datacenter = "dc1" })
	require.Empty(t, lookup(t, d).List)
	a.register(registration{service: "bank", node: "10.0.0.1", port: 1})
	discoverytest.AwaitTargets(t, d, query(), "10.0.0.1:1")
	a.register(registration{service: "bank", node: "10.0.0.2", port: 1})
	discoverytest.AwaitTargets(t, d, query(), "10.0.0.1:1", "10.0.0.2:1")
	a.set(func() { a.index++; a.registrations = a.registrations[1:] })
	discoverytest.AwaitTargets(t, d, query(), "10.0.0.2:1")
	require.Equal(t, "dc=dc1&passing=1", a.queries()[0])
	require.Equal(t, "dc=dc1&index=10&passing=1&wait=300000ms", a.queries()[1])
}

// A blocking query whose time is over without news is no failure, and is put again.
func TestABlockingQueryWithoutNewsIsAskedAgain(t *testing.T) {
	a := newAgent(t)
	a.register(registration{service: "bank", node: "10.0.0.1", port: 1})
	d := open(t, a, func(c *consul.Config) { c.Wait = time.Second })
	discoverytest.AwaitTargets(t, d, query(), "10.0.0.1:1")
	patience.Eventually(t, func() bool { return len(a.queries()) >= 3 }, "three queries")
	require.Equal(t, "[10.0.0.1:1]", fmt.Sprint(lookup(t, d).List))
	require.Equal(t, a.queries()[1], a.queries()[2])
}

// After an index that went back the next query has none. With the old index the changes of a
// server that was restored would be missed until its index has grown again.
func TestAnIndexThatGoesBackIsForgotten(t *testing.T) {
	a := newAgent(t)
	a.index = 1000
	a.register(registration{service: "bank", node: "10.0.0.1", port: 1})
	d := open(t, a)
	discoverytest.AwaitTargets(t, d, query(), "10.0.0.1:1")
	a.set(func() { a.index = 5 })
	patience.Eventually(t, func() bool { return len(a.queries()) >= 4 }, "four queries")
	require.Contains(t, a.queries()[1], "index=1001")
	require.NotContains(t, a.queries()[2], "index")
	require.Contains(t, a.queries()[3], "index=5&")
	a.register(registration{service: "bank", node: "10.0.0.2", port: 1})
	discoverytest.AwaitTargets(t, d, query(), "10.0.0.1:1", "10.0.0.2:1")
}

// An agent that answers blocking queries at once is asked with a pause between two requests.
func TestAnAgentThatNeverBlocksIsNotAskedWithoutAPause(t *testing.T) {
	a := newAgent(t)
	a.answers(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Consul-Index", "7")
		_, _ = fmt.Fprint(w, "[]")
	})
	config := consul.Default()
	config.Address = a.http.URL
	d, err := consul.NewWith(config, quick(), 50*time.Millisecond)
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	began := time.Now()
	_ = lookup(t, d)
	patience.Eventually(t, func() bool { return len(a.queries()) >= 4 }, "four queries")
	require.GreaterOrEqual(t, time.Since(began), 3*50*time.Millisecond)
}

// While the agent is away there is an error and no answer from before; when it is back,
// lookups find its registrations again.
func TestAnAgentThatIsAwayIsAnErrorUntilItIsBack(t *testing.T) {
	a := newAgent(t)
	a.register(registration{service: "bank", node: "10.0.0.1", port: 1})
	d := open(t, a)
	discoverytest.AwaitTargets(t, d, query(), "10.0.0.1:1")
	a.set(func() {
		a.hook = func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "No cluster leader", http.StatusInternalServerError)
		}
	})
	err := discoverytest.AwaitError(t, d, query(), `service "bank": the agent answers 500 Internal Server Error "No cluster leader"`)
	var refused *consul.StatusError
	require.ErrorAs(t, err, &refused)
	a.answers(nil)
	discoverytest.AwaitTargets(t, d, query(), "10.0.0.1:1")
	a.answers(http.NotFound)
	a.http.Close()
	_ = discoverytest.AwaitError(t, d, query(), "connection refused")
}

func TestALookupEndsWithItsContextWhileTheAgentIsSilent(t *testing.T) {
	a := newAgent(t)
	a.answers(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	d := open(t, a, func(c *consul.Config) { c.RequestTimeout = 100 * time.Millisecond })
	_, err := d.Lookup(patience.Expiring(t, 20*time.Millisecond), query())
	require.ErrorIs(t, err, context.DeadlineExceeded)
	err = discoverytest.AwaitError(t, d, query(), "no whole answer within 100ms")
	require.NotErrorIs(t, err, context.DeadlineExceeded, "that of the caller has not passed")
}

// A blocking query waits for news as long as the settings say; for the rest of an answer that has
// begun it waits no longer than for any answer.
func TestAnAnswerWhoseRestDoesNotComeIsAnError(t *testing.T) {
	a := newAgent(t)
	a.answers(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Consul-Index", "11")
		_, _ = fmt.Fprint(w, `[`)
		if !r.URL.Query().Has("index") {
			_, _ = fmt.Fprint(w, `]`)
			return
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	d := open(t, a, func(c *consul.Config) { c.RequestTimeout = time.Second })
	require.Empty(t, lookup(t, d).List)
	_ = discoverytest.AwaitError(t, d, query(), "no whole answer within 1s")
}

// A token that may read nothing gets an empty list, which must not look as if no node were
// registered.
func TestATokenThatMayNotReadIsAnError(t *testing.T) {
	a := newAgent(t)
	a.register(registration{service: "bank", node: "10.0.0.1", port: 1})
	a.filtered = true
	err := discoverytest.AwaitError(t, open(t, a), query(), "leaves out what the token may not read")
	require.ErrorContains(t, err, `'service "bank" { policy = "read" } node_prefix "" { policy = "read" }'`)
	require.ErrorContains(t, err, "set token-file, for none was sent")

	a.set(func() { a.filtered, a.token = false, "secret" })
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("old\n"), 0o600))
	d := open(t, a, func(c *consul.Config) { c.TokenFile = file })
	err = discoverytest.AwaitError(t, d, query(), `403 Forbidden "Permission denied: anonymous token lacks permission 'service:read'"`)
	require.NotContains(t, err.Error(), "none was sent")
	require.NoError(t, os.WriteFile(file, []byte("secret\n"), 0o600))
	discoverytest.AwaitTargets(t, d, query(), "10.0.0.1:1")
}

func TestAnAgentWithTLSIsKnownByItsCertificate(t *testing.T) {
	a := newAgent(t)
	a.register(registration{service: "bank", node: "10.0.0.1", port: 1})
	secure := httptest.NewTLSServer(a)
	defer secure.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	d := open(t, a, func(c *consul.Config) { c.Address, c.CAFile = secure.URL, file })
	_ = discoverytest.AwaitError(t, d, query(), "no such file")
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
	require.NoError(t, os.WriteFile(file, ca, 0o600))
	discoverytest.AwaitTargets(t, d, query(), "10.0.0.1:1")
	_ = discoverytest.AwaitError(t, open(t, a, func(c *consul.Config) { c.Address = secure.URL }), query(), "certificate")
	require.NoError(t, d.Close())
}

// A redirect is no answer of an agent. The error asks whether the URL is right.
func TestARedirectIsNoAnswer(t *testing.T) {
	a := newAgent(t)
	a.answers(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", http.StatusFound) })
	err := discoverytest.AwaitError(t, open(t, a), query(), "is address right?")
	require.ErrorIs(t, err, consul.ErrMalformed)
}

// A strange name of a service is refused before it can become a part of a path.
func TestAServiceIsANameAndNoPath(t *testing.T) {
	a := newAgent(t)
	d := open(t, a)
	for _, name := range []string{"", "..", "a/b", "a?b", "a b", "a\x00", strings.Repeat("a", 129)} {
		_, err := d.Lookup(t.Context(), discovery.Query{Service: name})
		require.ErrorContains(t, err, "is no name of a service", name)
	}
	require.Empty(t, a.queries())
}

// An answer that no agent would give is an error, within bounded time and memory.
func TestAnswersOfNoAgent(t *testing.T) {
	answer := func(kind, index, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.Header().Set("X-Consul-Index", index)
			_, _ = fmt.Fprint(w, text)
		}
	}
	endless := func(first, more string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			answer("application/json", "1", first)(w, r)
			more := strings.Repeat(more, 1000)
			for r.Context().Err() == nil {
				if _, err := fmt.Fprint(w, more); err != nil {
					return
				}
			}
		}
	}
	const good = `{"Service":{"Address":"10.0.0.1","Port":1}}`
	for name, tc := range map[string]struct {
		hook    http.HandlerFunc
		message string
	}{
		"HTML":             {answer("text/html", "1", "<html>"), `the content type "text/html"`},
		"no index":         {answer("application/json", "", "[]"), `the index is ""`},
		"index of nothing": {answer("application/json", "0", "[]"), `the index is "0"`},
		"negative index":   {answer("application/json", "-1", "[]"), `the index is "-1"`},
		"null":             {answer("application/json", "1", "null"), "no list"},
		"object":           {answer("application/json", "1", "{}"), "no list"},
		"cut":              {answer("application/json", "1", "["+good), "a list that cannot be read"},
		"more behind":      {answer("application/json", "1", "["+good+"][]"), "there is more behind the list"},
		"bad port":         {answer("application/json", "1", `[{"Service":{"Port":70000}}]`), "a list that cannot be read"},
		"long address":     {answer("application/json", "1", `[{"Service":{"Address":"`+strings.Repeat("a", 300)+`"}}]`), "an address of 300 bytes"},
		"endless text":     {endless(`[{"Service":{"Address":"`, "aaaaaaaaaa"), "more than 33554432 bytes"},
		"endless list":     {endless("["+good, ","+good), "more than 10000 registrations"},
		"endless error": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			endless("", "a\nb")(w, r)
		}, "502 Bad Gateway"},
		"stuck": {func(w http.ResponseWriter, r *http.Request) {
			answer("application/json", "1", "["+good)(w, r)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, "no whole answer within"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAgent(t)
			a.answers(tc.hook)
			_ = discoverytest.AwaitError(t, open(t, a, func(c *consul.Config) {
				if name == "stuck" {
					c.RequestTimeout = 200 * time.Millisecond
				}
			}), query(), tc.message)
		})
	}
}
