// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

// First the pods and endpoints that are contact points, and how many may be; then answers and
// events that no API server would give.

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/discoverytest"
	"github.com/quorate/quorate/discovery/kubernetes"
	"github.com/quorate/quorate/internal/patience"
)

func readAll(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(data)
}

func service(name string) map[string]string {
	return map[string]string{"kubernetes.io/service-name": name}
}

// slice is an EndpointSlice with a port "management".
func slice(family string, endpoints ...anyMap) anyMap {
	return anyMap{
		"addressType": family, "endpoints": endpoints,
		"ports": []anyMap{{"name": "management", "port": 8558, "protocol": "TCP"}},
	}
}

// endpoint is the endpoint of a pod that is not ready and not terminating, unless conditions
// say otherwise.
func endpoint(uid, address string, conditions ...anyMap) anyMap {
	e := anyMap{
		"addresses": []string{address}, "targetRef": anyMap{"kind": "Pod", "uid": uid},
		"conditions": anyMap{"ready": false, "serving": false, "terminating": false},
	}
	for _, c := range conditions {
		e["conditions"] = c
	}
	return e
}

func addresses(list ...string) func(spec, status anyMap) {
	return func(_, status anyMap) {
		status["podIP"] = ""
		ips := make([]anyMap, len(list))
		for i, ip := range list {
			ips[i] = anyMap{"ip": ip}
		}
		status["podIPs"] = ips
	}
}

func phase(name string) func(spec, status anyMap) {
	return func(_, status anyMap) { status["phase"] = name }
}

func ready(_, status anyMap) {
	status["conditions"] = []anyMap{{"type": "Initialized", "status": "True"}, {"type": "Ready", "status": "True"}}
}

// Pods that are not ready are contact points. Pods that are terminating or not running yet are
// none, and the reason counts them.
//
// covers B58, see docs/verification.md.
func TestWhichPodsAreContactPoints(t *testing.T) {
	s := newServer(t, "pods")
	s.put("not-ready", labels("bank"), pod("10.0.0.1"))
	s.put("ready", labels("bank"), pod("10.0.0.2", ready))
	s.put("pending", labels("bank"), pod("10.0.0.3", phase("Pending")))
	s.put("done", labels("bank"), pod("10.0.0.4", phase("Succeeded"), ready))
	leaving := pod("10.0.0.5", ready)
	leaving["metadata"] = anyMap{"deletionTimestamp": "2026-01-01T00:00:00Z"}
	s.put("terminating", labels("bank"), leaving)
	s.put("no-address", labels("bank"), pod("", addresses()))
	s.put("bad-address", labels("bank"), pod("", addresses("10.0.0.0.7")))
	s.put("loopback", labels("bank"), pod("", addresses("127.0.0.1")))
	s.put("no-port", labels("bank"), pod("10.0.0.8", func(spec, _ anyMap) { delete(spec, "containers") }))
	found := lookup(t, open(t, s))
	require.Equal(t, "[10.0.0.1:8558 10.0.0.2:8558]", fmt.Sprint(found.List))
	require.Contains(t, found.Reason, "2 of 9, left out 2 not running, 1 terminating, "+
		"2 with an address that is none, 1 without an address, 1 without the port")

	found = lookup(t, open(t, s, func(c *kubernetes.Config) { c.ReadyOnly = true }))
	require.Equal(t, "[10.0.0.2:8558]", fmt.Sprint(found.List))
	require.Contains(t, found.Reason, "4 not ready, 2 not running")
}

// A pod is one contact point, however many addresses it has.
//
// covers B58, see docs/verification.md.
func TestAPodWithSeveralAddressesIsOneContactPoint(t *testing.T) {
	s := newServer(t, "pods")
	s.put("both", labels("bank"), pod("", addresses("10.0.0.1", "fd00::1")))
	s.put("both-turned", labels("bank"), pod("", addresses("fd00::2", "10.0.0.2")))
	s.put("mapped", labels("bank"), pod("", addresses("::ffff:10.0.0.3")))
	s.put("old-server", labels("bank"), pod("10.0.0.4", func(_, status anyMap) { delete(status, "podIPs") }))
	for family, want := range map[string][]string{
		kubernetes.FamilyAny:  {"10.0.0.1:8558", "10.0.0.3:8558", "10.0.0.4:8558", "[fd00::2]:8558"},
		kubernetes.FamilyIPv4: {"10.0.0.1:8558", "10.0.0.2:8558", "10.0.0.3:8558", "10.0.0.4:8558"},
		kubernetes.FamilyIPv6: {"[fd00::1]:8558", "[fd00::2]:8558"},
	} {
		found := lookup(t, open(t, s, func(c *kubernetes.Config) { c.IPFamily = family }))
		require.ElementsMatch(t, want, texts(found), "family %q", family)
	}
}

func TestAPortIsFoundByNameAndProtocolOrIsANumber(t *testing.T) {
	s := newServer(t, "pods")
	s.put("a", labels("bank"), pod("10.0.0.1", func(spec, _ anyMap) {
		spec["containers"] = []anyMap{
			{"name": "sidecar", "ports": []anyMap{{"name": "dns", "containerPort": 53, "protocol": "UDP"}}},
			{"name": "node", "ports": []anyMap{{"name": "dns", "containerPort": 54}, {"name": "web", "containerPort": 80}}},
		}
	}))
	d := open(t, s)
	for _, tc := range []struct{ port, protocol, want string }{
		{"dns", "udp", "10.0.0.1:53"},
		{"dns", "TCP", "10.0.0.1:54"},
		{"dns", "", "10.0.0.1:53"},
		{"web", "tcp", "10.0.0.1:80"},
		{"8558", "tcp", "10.0.0.1:8558"},
		{"", "", "10.0.0.1"},
	} {
		found, err := d.Lookup(t.Context(), discovery.Query{Service: "bank", Port: tc.port, Protocol: tc.protocol})
		require.NoError(t, err)
		require.Equal(t, []string{tc.want}, texts(found), "%+v", tc)
	}
	// If all pods lack the port, its name is a mistake, and there is no empty answer.
	for _, port := range []string{"management", "0", "65536", strings.Repeat("x", 1000)} {
		_, err := d.Lookup(t.Context(), discovery.Query{Service: "bank", Port: port})
		require.ErrorContains(t, err, `they have "dns", "web": name the port in the manifest`)
		require.Less(t, len(err.Error()), 600)
	}
}

func TestWhichEndpointsAreContactPoints(t *testing.T) {
	s := newServer(t, "endpointslices")
	s.put("b-four", service("bank"), slice("IPv4",
		endpoint("one", "10.0.0.1"),
		endpoint("two", "10.0.0.2", anyMap{}),
		endpoint("leaving", "10.0.0.3", anyMap{"ready": true, "serving": true, "terminating": true}),
		anyMap{"addresses": []string{"10.0.0.4", "10.0.0.5"}},
		endpoint("twice", "10.0.0.6"), endpoint("twice", "10.0.0.6"),
		anyMap{"targetRef": anyMap{"uid": "none"}}))
	s.put("a-six", service("bank"), slice("IPv6", endpoint("one", "fd00::1"), endpoint("six", "fd00::6")))
	s.put("a-name", service("bank"), slice("FQDN", endpoint("named", "Node.example."), endpoint("one", "one.example")))
	s.put("others", service("shop"), slice("IPv4", endpoint("x", "10.9.9.9")))
	found := lookup(t, open(t, s))
	require.ElementsMatch(t, []string{
		"10.0.0.1:8558", "10.0.0.2:8558", "10.0.0.4:8558", "10.0.0.6:8558", "[fd00::6]:8558", "node.example.:8558",
	}, texts(found))
	require.Contains(t, found.Reason, "6 of 8, left out 1 terminating, 1 without an address")
	found = lookup(t, open(t, s, func(c *kubernetes.Config) { c.IPFamily = kubernetes.FamilyIPv6 }))
	require.Equal(t, "[[fd00::1]:8558 [fd00::6]:8558]", fmt.Sprint(found.List))
	found = lookup(t, open(t, s, func(c *kubernetes.Config) { c.ReadyOnly = true }))
	require.ElementsMatch(t, []string{"10.0.0.2:8558", "10.0.0.4:8558"}, texts(found))
}

func TestEndpointsFollowTheirSlices(t *testing.T) {
	s := newServer(t, "endpointslices")
	s.put("a", service("bank"), slice("IPv4", endpoint("one", "10.0.0.1")))
	d := open(t, s)
	discoverytest.AwaitTargets(t, d, query(), "10.0.0.1:8558")
	s.put("b", service("bank"), slice("IPv4", endpoint("two", "10.0.0.2")))
	discoverytest.AwaitTargets(t, d, query(), "10.0.0.1:8558", "10.0.0.2:8558")
	s.put("a", service("bank"), slice("IPv4", endpoint("three", "10.0.0.3")))
	s.remove("b")
	discoverytest.AwaitTargets(t, d, query(), "10.0.0.3:8558")
}

// A strange name of a service is refused before it can become a part of a question.
func TestAServiceIsANameAndNoSelector(t *testing.T) {
	for _, resource := range []string{"pods", "endpointslices"} {
		d := open(t, newServer(t, resource))
		for _, name := range []string{"", "a,b", "a=b", "-a", "a-", "a b", "!a", "a\x00", strings.Repeat("a", 64)} {
			_, err := d.Lookup(t.Context(), discovery.Query{Service: name})
			require.Error(t, err, "%s %q", resource, name)
			require.Less(t, len(err.Error()), 400)
		}
	}
}

// Ten thousand pods are found. One more makes the lookup an error, and the answer is not cut.
//
// covers B58, see docs/verification.md.
func TestTenThousandPodsAreFoundAndNotMore(t *testing.T) {
	s := newServer(t, "pods")
	s.fill("bank", discovery.MaxTargets)
	d := open(t, s)
	require.Len(t, lookup(t, d).List, discovery.MaxTargets)
	require.Equal(t, discovery.MaxTargets/250, s.pages)
	s.watched(t)
	s.put("pod-00000", labels("bank"), pod("10.250.0.1"))
	patience.Eventually(t, func() bool {
		return slices.Contains(texts(lookup(t, d)), "10.250.0.1:8558")
	}, "what is there already may change")
	s.put("one-more", labels("bank"), pod("10.200.0.1"))
	_ = discoverytest.AwaitError(t, d, query(), "more than 10000 endpoints: write a narrower selector")
	s.remove("one-more")
	patience.Eventually(t, func() bool {
		found, err := d.Lookup(t.Context(), query())
		return err == nil && len(found.List) == discovery.MaxTargets
	}, "ten thousand are found again")
}

// serve answers every request with a body of a content type.
func serve(kind string, body func(w http.ResponseWriter, r *http.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		body(w, r)
	}
}

func text(s string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, s) }
}

// endless sends a text again and again until the client is gone.
func endless(first, s string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, first)
		more := strings.Repeat(s, 1000)
		for r.Context().Err() == nil {
			if _, err := fmt.Fprint(w, more); err != nil {
				return
			}
		}
	}
}

// An answer that no API server would give is an error, within bounded time and memory.
func TestAnswersOfNoAPIServer(t *testing.T) {
	const page = `{"kind":"PodList","metadata":{"resourceVersion":"1"`
	for name, tc := range map[string]struct {
		answer  http.HandlerFunc
		message string
	}{
		"HTML":       {serve("text/html", text("<html>login")), `the content type "text/html"`},
		"no type":    {serve("", text("{}")), "the content type"},
		"HTML error": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<html>", http.StatusBadGateway) }, "502 Bad Gateway"},
		"endless":    {serve("application/json", endless(page+`},"items":["`, "aaaaaaaaaa")), "more than 16777216 bytes"},
		"endless error": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusInternalServerError)
			endless(`{"message":"`, "aaaaaaaaaa")(w, r)
		}, "500 Internal Server Error"},
		"long message": {func(w http.ResponseWriter, _ *http.Request) {
			refuse(w, 500, strings.Repeat("a\nb", 10_000))
		}, `a\nb`},
		"stuck": {serve("application/json", func(w http.ResponseWriter, r *http.Request) {
			_, _ = fmt.Fprint(w, page)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}), "no whole answer within"},
		"cut":          {serve("application/json", text(page)), "a list that cannot be read"},
		"not JSON":     {serve("application/json", text("hello")), "a list that cannot be read"},
		"array":        {serve("application/json", text("[]")), "a list that cannot be read"},
		"null":         {serve("application/json", text("null")), `"" with version ""`},
		"other kind":   {serve("application/json", text(`{"kind":"NodeList","metadata":{"resourceVersion":"1"}}`)), `"NodeList"`},
		"no version":   {serve("application/json", text(`{"kind":"PodList"}`)), `with version ""`},
		"bad pod":      {serve("application/json", text(page+`},"items":[{"status":7}]}`)), "a pod that cannot be read"},
		"nameless pod": {serve("application/json", text(page+`},"items":[{}]}`)), "an object without a name"},
		"bad port": {
			serve("application/json",
				text(page+`},"items":[{"metadata":{"name":"a"},"spec":{"containers":[{"ports":[{"containerPort":70000}]}]}}]}`)),
			"a pod that cannot be read",
		},
		"pages without end": {serve("application/json", text(page+`,"continue":"more"},"items":[]}`)), "more than 160 pages"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, "pods")
			s.answers(tc.answer)
			_ = discoverytest.AwaitError(t, open(t, s, func(c *kubernetes.Config) {
				if name == "stuck" {
					c.RequestTimeout = 200 * time.Millisecond
				}
			}), query(), tc.message)
		})
	}
}

// Events that no API server would give, after a good list, are an error too.
func TestEventsOfNoAPIServer(t *testing.T) {
	const list = `{"kind":"PodList","metadata":{"resourceVersion":"1"},"items":[]}`
	for name, tc := range map[string]struct {
		events  func(http.ResponseWriter, *http.Request)
		message string
	}{
		"endless":             {endless(`{"type":"ADDED","object":{"a":"`, "aaaaaaaaaa"), "an event of more than 4194304 bytes"},
		"not JSON":            {text("hello"), "an event that cannot be read"},
		"array":               {text("[]"), "an event that cannot be read"},
		"empty":               {text("{}"), "an event without a type or an object"},
		"other type":          {text(`{"type":"MOVED","object":{}}`), `an event of the type "MOVED"`},
		"bad pod":             {text(`{"type":"ADDED","object":{"status":7}}`), "a pod that cannot be read"},
		"no version":          {text(`{"type":"ADDED","object":{"metadata":{"name":"a"}}}`), `"a" without a version`},
		"bookmark of nothing": {text(`{"type":"BOOKMARK","object":{}}`), "a bookmark without a version"},
		"error of nothing":    {text(`{"type":"ERROR","object":{}}`), "an error without a code"},
		"error":               {text(`{"type":"ERROR","object":{"code":500,"message":"sorry"}}`), `"sorry"`},
		"nothing":             {text(""), "ends as soon as it begins"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, "pods")
			s.answers(serve("application/json", func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Get("watch") == "" {
					text(list)(w, r)
					return
				}
				tc.events(w, r)
			}))
			_ = discoverytest.AwaitError(t, open(t, s), query(), tc.message)
		})
	}
}

// A server that always says that the version is gone is asked with pauses, like one that fails.
func TestAServerThatNeverKeepsAVersionIsAskedWithPauses(t *testing.T) {
	s := newServer(t, "pods")
	s.put("a", labels("bank"), pod("10.0.0.1"))
	s.oldest = 1 << 30
	err := discoverytest.AwaitError(t, open(t, s), query(), "410 Gone")
	require.ErrorContains(t, err, "asked again in")
}
