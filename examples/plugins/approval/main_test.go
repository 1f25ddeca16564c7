// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/bootstrap"
	"github.com/quorate/quorate/discovery/bootstrap/bootstraptest"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/sdk"
	"github.com/quorate/quorate/plugins/sdk/sdktest"
)

// endpoint serves an endpoint of an operator, and returns its URL.
func endpoint(tb testing.TB, answer http.HandlerFunc) string {
	tb.Helper()
	s := httptest.NewServer(answer)
	tb.Cleanup(s.Close)
	return s.URL
}

func saying(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

func asking(tb testing.TB, s settings) bootstrap.JoinDecider {
	tb.Helper()
	if s.Timeout == 0 {
		s.SetDefaults()
	}
	d, err := newApproval(s)
	require.NoError(tb, err)
	return d
}

// alone are the observations of a node that may form a cluster by the built-in rule.
func alone() bootstrap.Observations {
	self := discovery.Target{Host: "10.0.0.1", Port: 7946}
	return bootstrap.Observations{
		Service: "bank", Self: self, Required: 1,
		Points: []bootstrap.Observed{{Point: self}, {Point: discovery.Target{Host: "10.0.0.2", Port: 7946}, Answered: -1}},
	}
}

const yes = `{"allowed": true, "reason": "the first start"}`

func TestTheContractIsKept(t *testing.T) {
	url := endpoint(t, saying(yes))
	bootstraptest.TestJoinDecider(t, func(tb testing.TB) bootstrap.JoinDecider { tb.Helper(); return asking(tb, settings{URL: url}) })
}

func TestTheContractIsKeptOverTheWire(t *testing.T) {
	url := endpoint(t, saying(yes))
	bootstraptest.TestJoinDecider(t, func(tb testing.TB) bootstrap.JoinDecider {
		tb.Helper()
		return sdktest.JoinDecider(tb, sdk.JoinDecider(newApproval), map[string]any{"url": url})
	})
}

// The endpoint is told who would form a cluster for what, with the token, and its word counts.
func TestTheOperatorDecides(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("secret\n"), 0o600))
	verdict := `{"allowed": false, "reason": "the old cluster is being repaired"}`
	url := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
		var asked request
		_ = json.NewDecoder(r.Body).Decode(&asked)
		if r.Header.Get("Authorization") != "Bearer secret" || asked.Node != "10.0.0.1:7946" || asked.Service != "bank" || len(asked.Points) != 2 {
			w.WriteHeader(http.StatusForbidden)
		}
		_, _ = io.WriteString(w, verdict)
	})
	d := asking(t, settings{URL: url, TokenFile: token})
	got, err := d.Decide(t.Context(), alone())
	require.NoError(t, err)
	require.Equal(t, bootstrap.Decision{Reason: "the operator has not approved a new cluster: the old cluster is being repaired"}, got)
	verdict = yes
	got, err = d.Decide(t.Context(), alone())
	require.NoError(t, err)
	require.Equal(t, bootstrap.Form, got.Action)
	require.Contains(t, got.Reason, "and the operator approves: the first start")
}

// A cluster that goes on is joined, whatever becomes of the endpoint.
func TestNobodyIsAskedBeforeAJoin(t *testing.T) {
	d := asking(t, settings{URL: endpoint(t, func(http.ResponseWriter, *http.Request) { t.Error("the endpoint was asked") })})
	o := alone()
	seed := discovery.Target{Host: "10.0.0.2", Port: 7947}
	o.Points[1].Answered, o.Points[1].SeedNodes = 0, []discovery.Target{seed}
	got, err := d.Decide(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, []discovery.Target{seed}, got.SeedNodes)
}

// Whatever else the endpoint does is an error that says what: the node forms nothing.
func TestAnEndpointThatDoesNotAnswerApprovesNothing(t *testing.T) {
	other := endpoint(t, func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another server was asked, with %q", r.Header.Get("Authorization"))
	})
	for want, answer := range map[string]http.HandlerFunc{
		`no field "allowed"`:      saying(`{}`),
		"its answer: ":            saying(`<html>`),
		"unexpected EOF":          saying(`{"reason": "` + strings.Repeat("x", 2*maxAnswer) + `"}`),
		"307 Temporary Redirect":  func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other, http.StatusTemporaryRedirect) },
		"503 Service Unavailable": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"Client.Timeout exceeded ": func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // Before that the server does not see that the asker has gone.
			<-r.Context().Done()
		},
	} {
		d := asking(t, settings{URL: endpoint(t, answer), Timeout: 500 * time.Millisecond})
		_, err := d.Decide(t.Context(), alone())
		require.ErrorContains(t, err, want)
	}
	_, err := asking(t, settings{URL: other, TokenFile: filepath.Join(t.TempDir(), "none")}).Decide(t.Context(), alone())
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestSettingsAreChecked(t *testing.T) {
	for key, s := range map[string]settings{
		"url":        {URL: "ftp://example", Timeout: time.Second},
		"token-file": {URL: "https://example", TokenFile: "token", Timeout: time.Second},
		"timeout":    {URL: "https://example"},
	} {
		_, err := newApproval(s)
		var fault plugins.SettingError
		require.ErrorAs(t, err, &fault)
		require.Equal(t, key, fault.Key)
	}
}
