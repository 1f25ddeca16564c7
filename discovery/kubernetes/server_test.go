// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

// An HTTP server with the part of the Kubernetes API that the method uses: it keeps
// objects with resource versions and a history of events, and demands what an API server
// demands: the token, the verbs of the role, selectors, pages that belong to one version,
// watches from a version that is still in the history. A test that needs an answer beyond the
// documents gives the server a hook. First the server and its objects, then lists and watches,
// in the end pods to put into it.

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience"
)

type anyMap = map[string]any

// change is one event of the history.
type change struct {
	version int
	kind    string
	object  anyMap
	raw     json.RawMessage // the object as text
	labels  map[string]string
}

type apiServer struct {
	tls *httptest.Server

	mu       sync.Mutex // guards what follows
	version  int
	oldest   int // watches from versions before it are gone
	objects  map[string]change
	sorted   []string // the names of the objects, when the last list began
	history  []change
	woken    chan struct{} // closed and replaced when the history grows or watches must end
	epoch    int           // watches of an earlier epoch end
	tokens   []string
	verbs    []string
	expired  bool // continue tokens are gone, once
	asEvent  bool // 410 is an event, not a status
	marks    bool // a bookmark follows each event
	lists    int
	watches  int
	open     int // the watches that are open
	pages    int
	hook     http.HandlerFunc // answers in place of the server, if it is set
	resource string
}

func newServer(t testing.TB, resource string) *apiServer {
	t.Helper()
	s := &apiServer{
		version: 100, objects: make(map[string]change), woken: make(chan struct{}), resource: resource,
		tokens: []string{"secret"}, verbs: []string{"list", "watch"},
	}
	s.tls = httptest.NewUnstartedServer(s)
	s.tls.EnableHTTP2 = true
	s.tls.StartTLS()
	t.Cleanup(func() {
		s.endWatches()
		s.tls.Close()
	})
	return s
}

// files writes the credentials of a service account and returns their directory.
func (s *apiServer) files(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.tls.Certificate().Raw})
	write(t, filepath.Join(dir, "ca.crt"), string(ca))
	write(t, filepath.Join(dir, "token"), "secret\n")
	write(t, filepath.Join(dir, "namespace"), "prod")
	return dir
}

func write(t testing.TB, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
}

// set changes the server under its lock and wakes watches.
func (s *apiServer) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	close(s.woken)
	s.woken = make(chan struct{})
}

// answers lets hook answer in place of the server, or the server itself again if hook is nil.
// Requests of what an earlier step opened may be under way.
func (s *apiServer) answers(hook http.HandlerFunc) {
	s.set(func() { s.hook = hook })
}

func (s *apiServer) put(name string, labels map[string]string, object anyMap) {
	s.set(func() {
		kind := "ADDED"
		if _, ok := s.objects[name]; ok {
			kind = "MODIFIED"
		}
		s.version++
		meta := anyMap{"name": name, "uid": "uid-" + name, "labels": labels}
		if given, ok := object["metadata"].(anyMap); ok {
			maps.Copy(meta, given)
		}
		meta["resourceVersion"] = strconv.Itoa(s.version)
		object = maps.Clone(object)
		object["metadata"] = meta
		c := change{s.version, kind, object, encoded(object), labels}
		s.objects[name] = c
		s.history = append(s.history, c)
	})
}

// fill puts many pods with a label, written as text, since encoding them takes longer
// than all else in a test.
func (s *apiServer) fill(name string, n int) {
	s.set(func() {
		for i := range n {
			s.version++
			key := fmt.Sprintf("pod-%05d", i)
			raw := fmt.Appendf(nil, `{"metadata":{"name":%q,"uid":%q,"resourceVersion":"%d"},"spec":{"containers":[{"name":"node",`+
				`"ports":[{"name":"management","containerPort":8558,"protocol":"TCP"}]}]},"status":{"phase":"Running","podIP":%q}}`,
				key, key, s.version, address(i))
			s.objects[key] = change{version: s.version, kind: "ADDED", raw: raw, labels: labels(name)}
		}
	})
}

func address(i int) string { return fmt.Sprintf("10.%d.%d.1", i/200, i%200) }

func (s *apiServer) remove(name string) {
	s.set(func() {
		s.version++
		c := s.objects[name]
		meta := maps.Clone(c.object["metadata"].(anyMap))
		meta["resourceVersion"] = strconv.Itoa(s.version)
		object := maps.Clone(c.object)
		object["metadata"] = meta
		delete(s.objects, name)
		s.history = append(s.history, change{s.version, "DELETED", object, encoded(object), c.labels})
	})
}

func encoded(object anyMap) json.RawMessage {
	data, err := json.Marshal(object)
	if err != nil {
		panic(err) // Only the tests write objects.
	}
	return data
}

// compact forgets the history, as an API server does after some minutes.
func (s *apiServer) compact() {
	s.set(func() { s.oldest, s.history = s.version, nil })
}

func (s *apiServer) endWatches() { s.set(func() { s.epoch++ }) }

// watched waits until a watch is open, which hears of all changes that follow.
func (s *apiServer) watched(t testing.TB) {
	t.Helper()
	patience.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.open > 0
	}, "a watch")
}

// watchedLong waits until a watch has been open for longer than one that counts as refused.
func (s *apiServer) watchedLong(t testing.TB) {
	t.Helper()
	s.watched(t)
	<-time.After(2 * quick().PauseMin) //quorate:realtime The watch has to last so long, or longer.
}

func (s *apiServer) counts() (lists, watches int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lists, s.watches
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	hook, epoch := s.hook, s.epoch // Both at one moment, so that a test that changes both changes them for every request.
	s.mu.Unlock()
	if hook != nil {
		hook(w, r)
		return
	}
	verb := "list"
	if r.URL.Query().Get("watch") == "1" {
		verb = "watch"
	}
	path := "/api/v1/namespaces/prod/pods"
	if s.resource == "endpointslices" {
		path = "/apis/discovery.k8s.io/v1/namespaces/prod/endpointslices"
	}
	s.mu.Lock()
	known := slices.Contains(s.tokens, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	allowed := slices.Contains(s.verbs, verb)
	s.mu.Unlock()
	switch {
	case !known:
		refuse(w, http.StatusUnauthorized, "Unauthorized")
	case r.URL.Path != path:
		refuse(w, http.StatusNotFound, "the server could not find the requested resource")
	case !allowed:
		refuse(w, http.StatusForbidden, fmt.Sprintf(`%s is forbidden: User "system:serviceaccount:prod:default" cannot %s resource`, s.resource, verb))
	case verb == "list":
		s.list(w, r)
	default:
		s.watch(w, r, epoch)
	}
}

func status(code int, message string) anyMap {
	return anyMap{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code}
}

func refuse(w http.ResponseWriter, code int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(status(code, message))
}

// fits reports whether labels fit a selector of equalities.
func fits(labels map[string]string, selector string) bool {
	for term := range strings.SplitSeq(selector, ",") {
		key, value, _ := strings.Cut(term, "=")
		if labels[key] != value {
			return false
		}
	}
	return true
}

func (s *apiServer) list(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	query := r.URL.Query()
	after, version := "", s.version
	if text := query.Get("continue"); text != "" {
		data, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil || s.expired {
			s.expired = false
			refuse(w, http.StatusGone, "The provided continue parameter is too old")
			return
		}
		if _, err := fmt.Sscanf(string(data), "%d %s", &version, &after); err != nil || version != s.version {
			refuse(w, http.StatusGone, "The provided continue parameter is of another version")
			return
		}
	} else {
		s.lists++
	}
	s.pages++
	limit, err := strconv.Atoi(query.Get("limit"))
	if err != nil || limit < 1 {
		refuse(w, http.StatusBadRequest, "no limit")
		return
	}
	var items []json.RawMessage
	meta := anyMap{"resourceVersion": strconv.Itoa(version)}
	last := ""
	if len(s.sorted) != len(s.objects) || after == "" {
		s.sorted = slices.Sorted(maps.Keys(s.objects))
	}
	for _, name := range s.sorted {
		if name <= after || !fits(s.objects[name].labels, query.Get("labelSelector")) {
			continue
		}
		if len(items) == limit {
			meta["continue"] = base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %s", version, last))
			break
		}
		items, last = append(items, s.objects[name].raw), name
	}
	kind := map[string]string{"pods": "PodList", "endpointslices": "EndpointSliceList"}[s.resource]
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(anyMap{"kind": kind, "metadata": meta, "items": items})
}

func (s *apiServer) watch(w http.ResponseWriter, r *http.Request, epoch int) {
	query := r.URL.Query()
	from, err := strconv.Atoi(query.Get("resourceVersion"))
	seconds, err2 := strconv.Atoi(query.Get("timeoutSeconds"))
	s.mu.Lock()
	s.watches++
	oldest, newest, asEvent := s.oldest, s.version, s.asEvent
	marks := s.marks && query.Get("allowWatchBookmarks") == "true"
	s.open++
	s.mu.Unlock()
	defer func() { s.set(func() { s.open-- }) }()
	switch {
	case err != nil || err2 != nil || from < 1 || seconds < 1:
		refuse(w, http.StatusBadRequest, "a watch from no version, or without an end")
		return
	case from > newest:
		refuse(w, http.StatusGatewayTimeout, "Too large resource version")
		return
	case from < oldest && !asEvent:
		refuse(w, http.StatusGone, "too old resource version")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	send := func(kind string, object any) {
		_ = json.NewEncoder(w).Encode(anyMap{"type": kind, "object": object})
		w.(http.Flusher).Flush()
	}
	w.(http.Flusher).Flush()
	if from < oldest {
		send("ERROR", status(http.StatusGone, "too old resource version"))
		return
	}
	end := time.After(time.Duration(seconds) * time.Second)
	for {
		s.mu.Lock()
		woken, ended := s.woken, s.epoch != epoch
		var news []change
		for _, c := range s.history {
			if c.version > from {
				news = append(news, c)
			}
		}
		s.mu.Unlock()
		for _, c := range news {
			from = c.version
			if fits(c.labels, query.Get("labelSelector")) {
				send(c.kind, c.raw)
			} else if marks {
				send("BOOKMARK", anyMap{"kind": "Pod", "metadata": anyMap{"resourceVersion": strconv.Itoa(from)}})
			}
		}
		if ended {
			return
		}
		select {
		case <-woken:
		case <-end:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// pod is a running pod with a port "management"; edits change it.
func pod(ip string, edits ...func(spec, status anyMap)) anyMap {
	spec := anyMap{"containers": []anyMap{{"name": "node", "ports": []anyMap{
		{"name": "raft", "containerPort": 7946, "protocol": "TCP"},
		{"name": "management", "containerPort": 8558, "protocol": "TCP"},
	}}}}
	state := anyMap{
		"phase": "Running", "podIP": ip, "podIPs": []anyMap{{"ip": ip}},
		"conditions": []anyMap{{"type": "Ready", "status": "False"}},
	}
	for _, edit := range edits {
		edit(spec, state)
	}
	return anyMap{"spec": spec, "status": state}
}

func labels(name string) map[string]string {
	return map[string]string{"app.kubernetes.io/name": name}
}
