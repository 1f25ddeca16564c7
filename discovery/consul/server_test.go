// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package consul_test

// An HTTP server with the one route of Consul's documented API that the method uses: it
// keeps registrations with an index, answers blocking queries when the index changes or
// their time is over, filters by tag and health, and demands the token. A test that needs an
// answer beyond the documents gives the server a hook.

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

type registration struct {
	service string
	node    string // the address of the node
	address string // the address of the service, or empty
	port    int
	tags    []string
	meta    map[string]string
	failing bool // its check does not pass
}

type agent struct {
	http *httptest.Server

	mu            sync.Mutex // guards what follows
	index         uint64
	registrations []registration
	woken         chan struct{}    // closed and replaced when anything changes
	token         string           // the token that must be sent; empty for none
	filtered      bool             // the token may not read everything
	hook          http.HandlerFunc // answers in place of the agent, if it is set
	asked         []string         // the queries of all requests
}

func newAgent(t testing.TB) *agent {
	t.Helper()
	a := &agent{index: 10, woken: make(chan struct{})}
	a.http = httptest.NewServer(a)
	t.Cleanup(a.http.Close)
	return a
}

// set changes the agent under its lock and wakes blocking queries.
func (a *agent) set(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
	close(a.woken)
	a.woken = make(chan struct{})
}

// answers lets hook answer in place of the agent, or the agent itself again if hook is nil.
// Requests of what an earlier step opened may be under way.
func (a *agent) answers(hook http.HandlerFunc) {
	a.set(func() { a.hook = hook })
}

func (a *agent) register(r ...registration) {
	a.set(func() {
		a.index++
		a.registrations = append(a.registrations, r...)
	})
}

func (a *agent) queries() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.asked)
}

func (a *agent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.asked = append(a.asked, r.URL.RawQuery)
	hook, token := a.hook, a.token
	a.mu.Unlock()
	name, ok := strings.CutPrefix(r.URL.Path, "/v1/health/service/")
	query := r.URL.Query()
	switch {
	case hook != nil:
		hook(w, r)
		return
	case !ok || strings.Contains(name, "/"):
		http.NotFound(w, r)
		return
	case token != "" && r.Header.Get("X-Consul-Token") != token:
		http.Error(w, "Permission denied: anonymous token lacks permission 'service:read'", http.StatusForbidden)
		return
	case query.Get("dc") != "" && query.Get("dc") != "dc1":
		http.Error(w, "No path to datacenter", http.StatusInternalServerError)
		return
	}
	var index uint64
	var end <-chan time.Time
	if text := query.Get("index"); text != "" {
		wait, err := time.ParseDuration(query.Get("wait"))
		number, err2 := strconv.ParseUint(text, 10, 64)
		if err != nil || err2 != nil || wait <= 0 || wait > 10*time.Minute {
			http.Error(w, "Invalid wait or index", http.StatusBadRequest)
			return
		}
		index, end = number, time.After(wait)
	}
	a.mu.Lock()
	for waiting := true; waiting && a.hook == nil && index > 0 && a.index == index; {
		woken := a.woken
		a.mu.Unlock()
		select {
		case <-woken:
		case <-end:
			waiting = false
		case <-r.Context().Done():
			return
		}
		a.mu.Lock()
	}
	defer a.mu.Unlock()
	if a.hook != nil {
		http.Error(w, "the agent is changing", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Consul-Index", strconv.FormatUint(a.index, 10))
	if a.filtered {
		w.Header().Set("X-Consul-Results-Filtered-By-ACLs", "true")
	}
	_ = json.NewEncoder(w).Encode(a.answer(name, query.Has("passing"), query["tag"]))
}

func (a *agent) answer(name string, passing bool, tags []string) []any {
	list := []any{}
	for i, r := range a.registrations {
		lacks := slices.ContainsFunc(tags, func(tag string) bool { return !slices.Contains(r.tags, tag) })
		if r.service != name || lacks || passing && r.failing {
			continue
		}
		status := "passing"
		if r.failing {
			status = "critical"
		}
		list = append(list, map[string]any{
			"Node": map[string]any{"ID": "40e4a748", "Node": fmt.Sprint("node-", i), "Address": r.node, "Datacenter": "dc1"},
			"Service": map[string]any{
				"ID": fmt.Sprint(name, "-", i), "Service": name, "Tags": r.tags, "Address": r.address, "Port": r.port, "Meta": r.meta,
			},
			"Checks": []any{map[string]any{"Status": status, "Output": "tcp: success"}},
		})
	}
	return list
}
