// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

// The method against the server of server_test.go: first the conformance suite, then how
// a watch goes on, what happens while the server is away, the credentials, and refusals.

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/discoverytest"
	"github.com/quorate/quorate/discovery/follow"
	"github.com/quorate/quorate/discovery/kubernetes"
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

// open returns the method as in a pod of the server, with edits of the configuration.
func open(t testing.TB, s *apiServer, edits ...func(*kubernetes.Config)) *kubernetes.Discovery {
	t.Helper()
	return openIn(t, s, s.files(t), edits...)
}

func openIn(t testing.TB, s *apiServer, account string, edits ...func(*kubernetes.Config)) *kubernetes.Discovery {
	t.Helper()
	patience.Watch(t)
	config := kubernetes.Default()
	config.Server, config.Namespace = s.tls.URL, "prod"
	config.TokenFile, config.CAFile = filepath.Join(account, "token"), filepath.Join(account, "ca.crt")
	if s.resource == "endpointslices" {
		config.Source = kubernetes.SourceEndpointSlices
	}
	for _, edit := range edits {
		edit(&config)
	}
	d, err := kubernetes.NewIn(config, account, quick())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

// texts returns the contact points as texts, where their order does not matter.
func texts(found discovery.Targets) []string {
	list := make([]string, len(found.List))
	for i, target := range found.List {
		list[i] = target.String()
	}
	return list
}

func lookup(t testing.TB, d discovery.Discovery) discovery.Targets {
	t.Helper()
	found, err := d.Lookup(t.Context(), query())
	require.NoError(t, err)
	return found
}

func TestDiscoveryKeepsTheContract(t *testing.T) {
	for resource, fill := range map[string]func(*apiServer, int){"pods": fillPods, "endpointslices": fillSlices} {
		t.Run(resource, func(t *testing.T) {
			discoverytest.TestSource(t, discoverytest.Source{
				Holding: func(t testing.TB, n int) discovery.Discovery {
					s := newServer(t, resource)
					fill(s, n)
					return open(t, s)
				},
				Failing: func(t testing.TB) discovery.Discovery {
					s := newServer(t, resource)
					s.answers(func(w http.ResponseWriter, _ *http.Request) { refuse(w, http.StatusInternalServerError, "sorry") })
					return open(t, s)
				},
				Silent: func(t testing.TB) discovery.Discovery {
					s := newServer(t, resource)
					s.answers(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
					return open(t, s)
				},
			})
		})
	}
}

func fillPods(s *apiServer, n int) { s.fill("quorate", n) }

// fillSlices puts a hundred endpoints into each slice, as the controller does.
func fillSlices(s *apiServer, n int) {
	for at := 0; at < n; at += 100 {
		var endpoints []anyMap
		for i := at; i < min(at+100, n); i++ {
			endpoints = append(endpoints, endpoint(fmt.Sprintf("uid-%d", i), address(i)))
		}
		s.put(fmt.Sprintf("slice-%03d", at/100), service("quorate"), slice("IPv4", endpoints...))
	}
}

func TestAWatchTellsOfEveryChange(t *testing.T) {
	s := newServer(t, "pods")
	s.put("other", labels("shop"), pod("10.0.0.9"))
	d := open(t, s)
	found := lookup(t, d)
	require.Empty(t, found.List)
	require.Equal(t, `kubernetes: pods with "app.kubernetes.io/name=bank" in namespace "prod": 0 of 0`, found.Reason)
	s.put("a", labels("bank"), pod("10.0.0.1"))
	s.put("b", labels("bank"), pod("10.0.0.2"))
	discoverytest.AwaitTargets(t, d, query(), "10.0.0.1:8558", "10.0.0.2:8558")
	s.put("a", labels("bank"), pod("10.0.0.3"))
	discoverytest.AwaitTargets(t, d, query(), "10.0.0.2:8558", "10.0.0.3:8558")
	s.remove("b")
	discoverytest.AwaitTargets(t, d, query(), "10.0.0.3:8558")
	lists, watches := s.counts()
	require.Equal(t, 1, lists)
	require.Equal(t, 1, watches)
}

// After the end of a watch the next one goes on from the last version, which a bookmark may
// have raised, and there is no other list.
func TestAWatchThatEndsGoesOnFromTheLastVersion(t *testing.T) {
	s := newServer(t, "pods")
	s.marks = true
	s.put("a", labels("bank"), pod("10.0.0.1"))
	d := open(t, s)
	discoverytest.AwaitTargets(t, d, query(), "10.0.0.1:8558")
	s.watchedLong(t)
	s.put("other", labels("shop"), pod("10.0.0.9"))
	s.put("b", labels("bank"), pod("10.0.0.2"))
	discoverytest.AwaitTargets(t, d, query(), "10.0.0.1:8558", "10.0.0.2:8558")
	s.put("other", labels("shop"), pod("10.0.0.8"))
	s.put("other", labels("shop"), pod("10.0.0.7"))
	s.watchedLong(t)
	s.compact() // Only the bookmark makes the next watch possible.
	s.endWatches()
	patience.Eventually(t, func() bool { _, watches := s.counts(); return watches == 2 }, "the next watch")
	s.put("c", labels("bank"), pod("10.0.0.3"))
	discoverytest.AwaitTargets(t, d, query(), "10.0.0.1:8558", "10.0.0.2:8558", "10.0.0.3:8558")
	lists, watches := s.counts()
	require.Equal(t, 1, lists)
	require.Equal(t, 2, watches)
}

func TestAVersionThatIsGoneIsListedAnew(t *testing.T) {
	for _, asEvent := range []bool{false, true} {
		t.Run(fmt.Sprintf("as event %v", asEvent), func(t *testing.T) {
			s := newServer(t, "pods")
			s.asEvent = asEvent
			s.put("a", labels("bank"), pod("10.0.0.1"))
			s.put("b", labels("bank"), pod("10.0.0.2"))
			d := open(t, s)
			discoverytest.AwaitTargets(t, d, query(), "10.0.0.1:8558", "10.0.0.2:8558")
			s.watchedLong(t)
			s.set(func() { // All at once, so that the watch cannot hear of it.
				delete(s.objects, "b")
				s.version += 10
				s.oldest = s.version
				s.epoch++
			})
			discoverytest.AwaitTargets(t, d, query(), "10.0.0.1:8558")
			lists, _ := s.counts()
			require.Equal(t, 2, lists)
		})
	}
}

func TestAListWhosePagesAreGoneBeginsAnew(t *testing.T) {
	s := newServer(t, "pods")
	for i := range 600 {
		s.put(fmt.Sprintf("pod-%03d", i), labels("bank"), pod(fmt.Sprintf("10.0.%d.%d", i/250, 1+i%250)))
	}
	s.expired = true
	require.Len(t, lookup(t, open(t, s)).List, 600)
	require.Equal(t, 2, s.lists)
	require.Equal(t, 1+3, s.pages)
}

// While the server is away there is an error and no answer from before; when it is back,
// lookups find its pods again.
func TestAServerThatIsAwayIsAnErrorUntilItIsBack(t *testing.T) {
	s := newServer(t, "pods")
	s.put("a", labels("bank"), pod("10.0.0.1"))
	d := open(t, s)
	discoverytest.AwaitTargets(t, d, query(), "10.0.0.1:8558")
	s.watched(t)
	s.set(func() {
		s.hook = func(w http.ResponseWriter, _ *http.Request) { refuse(w, http.StatusServiceUnavailable, "etcd is down") }
		s.epoch++
	})
	err := discoverytest.AwaitError(t, d, query(), `the server answers 503 Service Unavailable "etcd is down"`)
	var refused *kubernetes.StatusError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, http.StatusServiceUnavailable, refused.Code)
	s.answers(nil)
	discoverytest.AwaitTargets(t, d, query(), "10.0.0.1:8558")

	s.watched(t)
	s.tls.CloseClientConnections()
	discoverytest.AwaitTargets(t, d, query(), "10.0.0.1:8558")
	s.watched(t)
	s.set(func() { s.epoch++ })
	s.tls.Close()
	_ = discoverytest.AwaitError(t, d, query(), "connection refused")
}

func TestALookupEndsWithItsContextWhileTheServerIsSilent(t *testing.T) {
	s := newServer(t, "pods")
	s.answers(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	d := open(t, s, func(c *kubernetes.Config) { c.RequestTimeout = 100 * time.Millisecond })
	_, err := d.Lookup(patience.Expiring(t, 20*time.Millisecond), query())
	require.ErrorIs(t, err, context.DeadlineExceeded)
	err = discoverytest.AwaitError(t, d, query(), "no whole answer within 100ms")
	require.NotErrorIs(t, err, context.DeadlineExceeded, "that of the caller has not passed")
}

func TestNewInAPodUsesItsServiceAccount(t *testing.T) {
	s := newServer(t, "pods")
	s.put("a", labels("bank"), pod("10.0.0.1"))
	u, err := url.Parse(s.tls.URL)
	require.NoError(t, err)
	t.Setenv("KUBERNETES_SERVICE_HOST", u.Hostname())
	t.Setenv("KUBERNETES_SERVICE_PORT", u.Port())
	account := s.files(t)
	d, err := kubernetes.NewIn(kubernetes.Default(), account, quick())
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	require.Equal(t, "[10.0.0.1:8558]", fmt.Sprint(lookup(t, d).List))

	write(t, filepath.Join(account, "namespace"), "../kube-system")
	_, err = kubernetes.NewIn(kubernetes.Default(), account, quick())
	require.ErrorIs(t, err, kubernetes.ErrNotInCluster)
	_, err = kubernetes.NewIn(kubernetes.Default(), t.TempDir(), quick())
	require.ErrorIs(t, err, kubernetes.ErrNotInCluster)
	require.ErrorContains(t, err, "set namespace, or let the pod have a service account")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	_, err = kubernetes.New(kubernetes.Default())
	require.ErrorIs(t, err, kubernetes.ErrNotInCluster)
	require.ErrorContains(t, err, "set server, namespace and token-file")
}

// A token that the server no longer takes is an error that names its file. A fresh token and
// other certificates are read when their files have changed.
func TestCredentialsThatRotateAreReadAgain(t *testing.T) {
	s := newServer(t, "pods")
	s.put("a", labels("bank"), pod("10.0.0.1"))
	account := s.files(t)
	d := openIn(t, s, account)
	discoverytest.AwaitTargets(t, d, query(), "10.0.0.1:8558")
	s.watched(t)
	s.set(func() { s.tokens, s.epoch = []string{"fresh"}, s.epoch+1 })
	err := discoverytest.AwaitError(t, d, query(), "401 Unauthorized")
	require.ErrorContains(t, err, "the token in "+filepath.Join(account, "token")+" has expired")
	write(t, filepath.Join(account, "token"), "fresh")
	discoverytest.AwaitTargets(t, d, query(), "10.0.0.1:8558")

	ca := filepath.Join(account, "ca.crt")
	good := readAll(t, ca)
	s.watched(t)
	write(t, ca, "no certificate")
	s.endWatches()
	_ = discoverytest.AwaitError(t, d, query(), "holds no certificate in PEM form")
	write(t, ca, good)
	discoverytest.AwaitTargets(t, d, query(), "10.0.0.1:8558")
}

func TestASecretOfAnotherClusterIsNotTrusted(t *testing.T) {
	s := newServer(t, "pods")
	d := open(t, s, func(c *kubernetes.Config) { c.CAFile = "" }) // Those of the system.
	_ = discoverytest.AwaitError(t, d, query(), "certificate")
}

// A proxy on this machine, such as that of kubectl, has the credentials itself. It speaks
// HTTP/1.1, where a body that the deadline cuts off gives another error.
func TestAProxyOnThisMachineIsAskedWithoutAToken(t *testing.T) {
	s := newServer(t, "pods")
	s.put("a", labels("bank"), pod("10.0.0.1"))
	s.tokens = []string{""}
	proxy := httptest.NewServer(s)
	defer func() {
		s.endWatches()
		proxy.Close()
	}()
	d := open(t, s, func(c *kubernetes.Config) {
		c.Server, c.TokenFile, c.CAFile, c.RequestTimeout = proxy.URL, "", "", time.Second
	})
	discoverytest.AwaitTargets(t, d, query(), "10.0.0.1:8558")
	s.watched(t)
	s.put("a", labels("bank"), pod("10.0.0.2"))
	discoverytest.AwaitTargets(t, d, query(), "10.0.0.2:8558")
	s.set(func() {
		s.epoch++
		s.hook = func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprint(w, `{"kind":`)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	})
	_ = discoverytest.AwaitError(t, d, query(), "no whole answer within 1s")
	require.NoError(t, d.Close())
}

// A watch that says nothing is alive; one in the middle of an event is not, and what was found
// before counts no more once the limit of a request is over.
func TestAnEventWhoseRestDoesNotComeIsAnError(t *testing.T) {
	s := newServer(t, "pods")
	s.put("a", labels("bank"), pod("10.0.0.1"))
	s.answers(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") != "1" {
			s.list(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"type":"DELETED",`)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	d := open(t, s, func(c *kubernetes.Config) { c.RequestTimeout = time.Second })
	require.Len(t, lookup(t, d).List, 1)
	_ = discoverytest.AwaitError(t, d, query(), "no whole answer within 1s: the rest of an event of the watch does not come")
}

// An error about a role that lacks a verb names the rule to give to the role.
func TestARefusalSaysWhichRuleTheRoleLacks(t *testing.T) {
	for resource, group := range map[string]string{"pods": "", "endpointslices": "discovery.k8s.io"} {
		for _, lacking := range []string{"list", "watch"} {
			t.Run(resource+" "+lacking, func(t *testing.T) {
				s := newServer(t, resource)
				s.verbs = map[string][]string{"list": {"watch"}, "watch": {"list"}}[lacking]
				err := discoverytest.AwaitError(t, open(t, s), query(), "403 Forbidden")
				require.ErrorContains(t, err, fmt.Sprintf("lacks the verb %q on %q, give it the rule "+
					"{apiGroups: [%q], resources: [%q], verbs: [list, watch]}", lacking, resource, group, resource))
				require.ErrorContains(t, err, `in namespace "prod"`)
				require.ErrorContains(t, err, "system:serviceaccount:prod:default")
			})
		}
	}
}

func TestOtherRefusalsSayWhatToDo(t *testing.T) {
	s := newServer(t, "pods")
	_ = discoverytest.AwaitError(t, open(t, s, func(c *kubernetes.Config) { c.TokenFile = "" }), query(), "no token was sent, set token-file")
	_ = discoverytest.AwaitError(t, open(t, s, func(c *kubernetes.Config) { c.TokenFile = "/nonexistent/token" }), query(), "no such file")
	_ = discoverytest.AwaitError(t, open(t, s, func(c *kubernetes.Config) { c.Server += "/elsewhere" }), query(), "is the address that of the API server?")
	s.answers(func(w http.ResponseWriter, _ *http.Request) { refuse(w, http.StatusBadRequest, "unable to parse") })
	_ = discoverytest.AwaitError(t, open(t, s), query(), "is the selector right?")
}

// A redirect is no answer of an API server. The error asks whether the URL is right.
func TestARedirectIsNoAnswer(t *testing.T) {
	s := newServer(t, "pods")
	s.answers(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", http.StatusFound) })
	err := discoverytest.AwaitError(t, open(t, s), query(), "is server right?")
	require.ErrorIs(t, err, kubernetes.ErrMalformed)
}
