// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/downing/downingtest"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/sdk"
	"github.com/quorate/quorate/plugins/sdk/sdktest"
)

// now is the time of the tests.
var now = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// object is a part of an object of the API.
type object = map[string]any

// node returns a node with the address of a member; ready for some time, or for less than zero not ready for that.
func node(name, address string, ready time.Duration) object {
	status := "True"
	if ready < 0 {
		status = "Unknown"
	}
	return object{"metadata": object{"name": name}, "status": object{
		"addresses": []object{{"type": "InternalIP", "address": address}},
		"conditions": []object{
			{"type": "MemoryPressure", "status": "False", "lastTransitionTime": now.Add(-time.Hour)},
			{"type": "Ready", "status": status, "lastTransitionTime": now.Add(-ready.Abs())},
		},
	}}
}

func pod(on, address, phase string) object {
	return object{"spec": object{"nodeName": on}, "status": object{"phase": phase, "podIPs": []object{{"ip": address}}}}
}

func list(tb testing.TB, items ...object) http.HandlerFunc {
	tb.Helper()
	text, err := json.Marshal(object{"items": items})
	require.NoError(tb, err)
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			w.WriteHeader(http.StatusForbidden)
		}
		_, _ = w.Write(text)
	}
}

// api serves an API, and returns settings for it.
func api(tb testing.TB, lists map[string]http.HandlerFunc) settings {
	tb.Helper()
	mux := http.NewServeMux()
	for path, answer := range lists {
		mux.Handle(path, answer)
	}
	web := httptest.NewServer(mux)
	tb.Cleanup(web.Close)
	token := filepath.Join(tb.TempDir(), "token")
	require.NoError(tb, os.WriteFile(token, []byte("secret\n"), 0o600))
	var s settings
	s.SetDefaults()
	s.URL, s.TokenFile, s.CAFile = web.URL, token, ""
	return s
}

func with(tb testing.TB, s settings) *provider {
	tb.Helper()
	made, err := newProvider(s)
	require.NoError(tb, err)
	p := made.(*provider)
	p.now = func() time.Time { return now }
	return p
}

func host(member int) string { return downingtest.Node(member).Address.Host }

// split returns the view of a side with the first members, of five.
func split(here int) downing.View {
	members := downingtest.Members(5)
	side := gossip.Base{downingtest.IDs(members)}
	return downingtest.SplitView(members, func(id gossip.NodeID) bool { return id.Compare(members[here].Node) < 0 }, side)
}

// allDead is an API in which no machine of the first members is ready, and which has none of others.
func allDead(tb testing.TB) settings {
	tb.Helper()
	var all []object
	for i := range 20 {
		all = append(all, node(fmt.Sprint("n", i), host(i), -time.Hour))
	}
	return api(tb, map[string]http.HandlerFunc{"/api/v1/nodes": list(tb, all...)})
}

func TestTheContractIsKept(t *testing.T) {
	s := allDead(t)
	downingtest.TestProvider(t, func(tb testing.TB) downing.Provider { tb.Helper(); return with(tb, s) })
}

func TestTheContractIsKeptOverTheWire(t *testing.T) {
	s := allDead(t)
	downingtest.TestProvider(t, func(tb testing.TB) downing.Provider {
		tb.Helper()
		return sdktest.Downing(tb, sdk.Downing(newProvider), map[string]any{"url": s.URL, "token-file": s.TokenFile, "ca-file": ""})
	})
}

// Who is lost goes with a dead machine, and waits with one that is well.
func TestMembersGoWithTheirMachines(t *testing.T) {
	own := node("a", host(0), time.Hour)
	mine := pod("a", host(0), "Running")
	for name, c := range map[string]struct {
		nodes, pods []object
		down        []int
		reason      string
	}{
		"both gone":       {[]object{own}, nil, []int{3, 4}, "its node or pod is gone"},
		"long not ready":  {[]object{own, node("d", host(3), -2*time.Minute), node("e", host(4), time.Hour)}, nil, []int{3}, "node d has not been ready for 2m0s; 1 others wait"},
		"just not ready":  {[]object{own, node("d", host(3), -time.Minute), node("e", host(4), time.Second)}, nil, nil, "machines of lost members are well: " + downingtest.Node(3).Address.String() + ", "},
		"pods":            {[]object{node("a", "x", time.Hour), node("d", "y", -time.Hour)}, []object{mine, pod("d", host(3), "Running"), pod("a", host(4), "Running")}, []int{3}, "node d"},
		"a pod's node":    {[]object{node("a", "x", time.Hour)}, []object{mine, pod("d", host(3), "Running"), pod("a", host(4), "Pending")}, []int{3}, "its node or pod is gone"},
		"pods that ended": {[]object{node("a", "x", time.Hour)}, []object{mine, pod("a", host(3), "Failed"), pod("a", host(4), "Succeeded")}, []int{3, 4}, "its node or pod is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			s := api(t, map[string]http.HandlerFunc{"/api/v1/nodes": list(t, c.nodes...), "/api/v1/namespaces/bank/pods": list(t, c.pods...)})
			if c.pods != nil {
				s.Namespace = "bank"
			}
			p, v := with(t, s), split(3)
			d, err := p.Decide(t.Context(), v)
			require.NoError(t, err)
			require.NoError(t, downing.Check(v, p.Class(), d))
			require.Contains(t, d.Reason, c.reason)
			var down []gossip.NodeID
			for _, i := range c.down {
				down = append(down, downingtest.Node(i))
			}
			require.Equal(t, down, append([]gossip.NodeID(nil), d.Down...))
			require.Equal(t, c.down == nil, d.Verdict == downing.None)
		})
	}
}

// A minority gives up, though the machines of all others are dead, and without asking.
func TestAMinorityGivesUp(t *testing.T) {
	s := api(t, map[string]http.HandlerFunc{"/": func(http.ResponseWriter, *http.Request) { t.Error("the server was asked") }})
	d, err := with(t, s).Decide(t.Context(), split(2))
	require.NoError(t, err)
	require.Equal(t, downing.DownSide, d.Verdict)
	d, err = with(t, s).Decide(t.Context(), downingtest.SplitView(downingtest.Members(3), func(gossip.NodeID) bool { return true }, nil))
	require.NoError(t, err)
	require.Equal(t, downing.None, d.Verdict)
}

// Without the lists nobody goes: an error says what is missing.
func TestWithoutListsNobodyGoes(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another server was asked, with %q", r.Header.Get("Authorization"))
	}))
	t.Cleanup(other.Close)
	for want, answer := range map[string]http.HandlerFunc{
		"no node or pod with the address " + host(0): list(t, node("d", host(3), -time.Hour)),
		"list of nodes is empty":                     list(t),
		"invalid character":                          func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") },
		"nodes answers 403 Forbidden":                func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) },
		"nodes answers 307 Temporary Redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		},
		"deadline exceeded": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	} {
		s := api(t, map[string]http.HandlerFunc{"/api/v1/nodes": answer})
		if strings.HasPrefix(want, "deadline") {
			s.Timeout = 50 * time.Millisecond
		}
		_, err := with(t, s).Decide(t.Context(), split(3))
		require.ErrorContains(t, err, want)
	}
	s := api(t, map[string]http.HandlerFunc{"/api/v1/nodes": list(t, node("a", host(0), time.Hour))})
	s.Namespace = "bank"
	_, err := with(t, s).Decide(t.Context(), split(3))
	require.ErrorContains(t, err, "/api/v1/namespaces/bank/pods answers 404")
	s.TokenFile = "/nowhere/token"
	_, err = with(t, s).Decide(t.Context(), split(3))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// The server is trusted by the file of its authority, and not otherwise.
func TestTheServerMustBeTrusted(t *testing.T) {
	web := httptest.NewTLSServer(list(t, node("a", host(0), time.Hour)))
	t.Cleanup(web.Close)
	s := api(t, nil)
	s.URL, s.CAFile = web.URL, filepath.Join(t.TempDir(), "ca.crt")
	_, err := newProvider(s)
	require.ErrorContains(t, err, "has no certificates")
	require.NoError(t, os.WriteFile(s.CAFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw}), 0o600))
	d, err := with(t, s).Decide(t.Context(), split(3))
	require.NoError(t, err)
	require.Equal(t, downing.KeepSide, d.Verdict)
	s.CAFile = ""
	_, err = with(t, s).Decide(t.Context(), split(3))
	require.ErrorContains(t, err, "certificate")
}

func TestSettingsAreChecked(t *testing.T) {
	for key, change := range map[string]func(*settings){
		"url":        func(s *settings) { s.URL = "kubernetes:443" },
		"token-file": func(s *settings) { s.TokenFile = "token" },
		"ca-file":    func(s *settings) { s.CAFile = "/nowhere/ca.crt" },
		"not-ready":  func(s *settings) { s.NotReady = -1 },
		"timeout":    func(s *settings) { s.Timeout = 0 },
	} {
		s := api(t, nil)
		change(&s)
		_, err := newProvider(s)
		var fault plugins.SettingError
		require.ErrorAs(t, err, &fault)
		require.Equal(t, key, fault.Key)
	}
}
