// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/allocation/allocationtest"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/sdk"
	"github.com/quorate/quorate/plugins/sdk/sdktest"
)

// start is the time of the tests.
var start = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// server stands for a Prometheus server; answers are by the text of the query.
type server struct {
	url     string
	answers map[string]string

	mu    sync.Mutex
	asked []string // The queries, with what else was asked; guarded by mu.
}

func newServer(tb testing.TB, answers map[string]string) *server {
	tb.Helper()
	s := &server{answers: answers}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.FormValue("query")
		s.mu.Lock()
		s.asked = append(s.asked, r.URL.Path+" "+query+" "+r.FormValue("lookback_delta"))
		s.mu.Unlock()
		_, _ = io.WriteString(w, s.answers[query])
	}))
	tb.Cleanup(web.Close)
	s.url = web.URL
	return s
}

// vector is the answer with a value for each instance, as it was some time before the start.
func vector(age time.Duration, values ...string) string {
	var rows []string
	for i := 0; i < len(values); i += 2 {
		rows = append(rows, fmt.Sprintf(`{"metric":{"instance":%q},"value":[%d.5,%q]}`, values[i], start.Add(-age).Unix()-1, values[i+1]))
	}
	return `{"status":"success","data":{"resultType":"vector","result":[` + strings.Join(rows, ",") + `]}}`
}

// serving returns a strategy that asks the server, with the query cpu unless the settings have others, and its clock.
func serving(tb testing.TB, s *server, queries ...string) (*strategy, *time.Time) {
	tb.Helper()
	var with settings
	with.SetDefaults()
	with.URL, with.Queries = s.url, queries
	got, err := newStrategy(with)
	require.NoError(tb, err)
	now := start
	m := got.(*strategy)
	m.now = func() time.Time { return now }
	return m, &now
}

// regions returns regions on the hosts 10.0.0.1, 10.0.0.2, ..., with as many shards each as counts has.
func regions(counts ...int) []allocation.RegionState {
	var all []allocation.RegionState
	next := allocation.Shard(0)
	for i, n := range counts {
		r := allocation.RegionState{ID: allocation.Region(fmt.Sprintf("10.0.0.%d:7946#1", i+1))}
		for range n {
			r.Shards, next = append(r.Shards, next), next+1
		}
		all = append(all, r)
	}
	return all
}

func rebalance(counts ...int) allocation.RebalanceRequest {
	return allocation.RebalanceRequest{
		Regions: regions(counts...), Fitness: allocation.Fitness{OneVersion: true, NoneUnreachable: true, NoneJoining: true},
		Budget: allocation.Budget{Simultaneous: 5, PerRegion: 5},
	}
}

// placed counts the new shards of each region.
func placed(tb testing.TB, m *strategy, all []allocation.RegionState, shards int) map[string]int {
	tb.Helper()
	r := allocation.AllocateRequest{Regions: all}
	for i := range shards {
		r.Shards = append(r.Shards, allocation.Pending{Shard: allocation.Shard(1000 + i)})
	}
	res, err := m.Allocate(tb.Context(), r)
	require.NoError(tb, err)
	require.NoError(tb, allocation.CheckAllocate(&r, &res))
	counts := map[string]int{}
	for _, p := range res.Placements {
		host, _, _ := strings.Cut(string(p.Region), ":")
		counts[host]++
	}
	return counts
}

func TestTheContractIsKept(t *testing.T) {
	s := newServer(t, map[string]string{"cpu": vector(0)})
	allocationtest.TestStrategy(t, func(tb testing.TB) allocation.Strategy {
		tb.Helper()
		m, _ := serving(tb, s, "cpu")
		return m
	})
}

func TestTheContractIsKeptOverTheWire(t *testing.T) {
	s := newServer(t, map[string]string{"cpu": vector(0)})
	allocationtest.TestStrategy(t, func(tb testing.TB) allocation.Strategy {
		tb.Helper()
		return sdktest.Allocation(tb, sdk.Allocation(newStrategy), map[string]any{"url": s.url, "queries": []any{"cpu"}})
	})
}

// Of processors and memory the larger use counts: shards leave the machine that is full by one, new ones avoid it.
func TestShardsGoByTheUseOfMachines(t *testing.T) {
	s := newServer(t, map[string]string{
		"cpu":    vector(0, "10.0.0.1:9100", "0.2", "10.0.0.2:9100", "0.9", "10.0.0.3", "0.1"),
		"memory": vector(0, "10.0.0.1:9100", "0.95", "10.0.0.2:9100", "0.3", "10.0.0.3", "0.1"),
	})
	m, now := serving(t, s, "cpu", "memory")
	got := placed(t, m, regions(10, 10, 10), 5)
	require.Equal(t, map[string]int{"10.0.0.3": 5}, got)
	r := rebalance(10, 10, 10)
	res, err := m.Rebalance(t.Context(), r)
	require.NoError(t, err)
	require.NoError(t, allocation.CheckRebalance(&r, &res))
	require.NotEmpty(t, res.Moves)
	for _, move := range res.Moves {
		require.Equal(t, allocation.Region("10.0.0.3:7946#1"), move.To)
	}
	require.Equal(t, []string{"/api/v1/query cpu 120", "/api/v1/query memory 120"}, s.asked, "once for both decisions")

	// Nothing moves until the moves show in the values; that begins anew while shards are on their way.
	*now = now.Add(m.Settle - time.Minute)
	res, err = m.Rebalance(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, allocation.RebalanceResult{Reason: "prometheus: shards have moved, waiting 1m0s for what it shows"}, res)
	flying := r
	flying.Budget.InFlight = []allocation.Move{{Shard: 0, From: r.Regions[0].ID, To: r.Regions[2].ID}}
	_, err = m.Rebalance(t.Context(), flying)
	require.NoError(t, err)
	*now = now.Add(m.Settle - time.Second)
	res, err = m.Rebalance(t.Context(), r)
	require.NoError(t, err)
	require.Empty(t, res.Moves)
	require.Len(t, s.asked, 2)
}

// What is no fresh number for each machine that can take shards counts as no value: new shards are spread evenly, and
// none moves.
func TestWithoutFreshValuesShardsAreEven(t *testing.T) {
	full := []string{"10.0.0.1:9100", "0.1", "10.0.0.2:9100", "0.9"}
	for name, c := range map[string]struct{ answer, why string }{
		"a machine is missing": {vector(0, full[:2]...), "no fresh value with the label instance for 10.0.0.2"},
		"old":                  {vector(3*time.Minute, full...), "no fresh value"},
		"of the future":        {vector(-3*time.Minute, full...), "no fresh value"},
		"no number":            {vector(0, "10.0.0.1", "NaN", "10.0.0.2", "much"), "no fresh value"},
		"no text":              {strings.ReplaceAll(vector(0, full...), `"0.1"`, "0.1"), "no fresh value"},
		"a fault":              {`{"status":"error","error":"parse error"}`, `query "cpu": it answers 200 OK: parse error`},
		"not from Prometheus":  {"<html>", "invalid character"},
		"too long":             {`{"status":"` + strings.Repeat("x", maxAnswer), "unexpected EOF"},
		"a scalar":             {`{"status":"success","data":{"resultType":"scalar","result":[]}}`, "its result is a scalar, not a vector"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, map[string]string{"cpu": c.answer})
			m, now := serving(t, s, "cpu")
			require.Equal(t, map[string]int{"10.0.0.1": 3, "10.0.0.2": 3}, placed(t, m, regions(0, 0), 6))
			res, err := m.Rebalance(t.Context(), rebalance(10, 0))
			require.NoError(t, err)
			require.Empty(t, res.Moves)
			require.Contains(t, res.Reason, "prometheus: nothing moves: ")
			require.Contains(t, res.Reason, c.why)
			require.Len(t, s.asked, 1, "the want of values is kept for a moment, too")

			s.answers["cpu"] = strings.ReplaceAll(vector(-keep, full...), ".5,", ".0,")
			*now = now.Add(keep)
			require.Equal(t, map[string]int{"10.0.0.1": 6}, placed(t, m, regions(5, 5), 6))
		})
	}
}

// A region that takes no shards needs no value, such as that of a machine that has gone.
func TestAMachineThatIsGoneNeedsNoValue(t *testing.T) {
	m, _ := serving(t, newServer(t, map[string]string{"cpu": vector(0, "10.0.0.1", "0.1")}), "cpu")
	all := regions(5, 5)
	all[1].Unreachable = true
	got, err := m.measure(t.Context(), all)
	require.NoError(t, err)
	require.InDelta(t, 0.1, got[0].Load, 0)
	require.Zero(t, all[0].Load, "the request was changed")
}

// A server that does not answer costs the timeout at most; a call that its caller gave up says nothing of the server.
func TestASilentServerIsNotWaitedFor(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(web.Close)
	m, _ := serving(t, &server{url: web.URL}, "cpu")
	m.Timeout = 50 * time.Millisecond
	require.Equal(t, map[string]int{"10.0.0.1": 1, "10.0.0.2": 1}, placed(t, m, regions(0, 0), 2))
	require.ErrorIs(t, m.fault, context.DeadlineExceeded)

	m, _ = serving(t, &server{url: web.URL}, "cpu")
	ended, end := context.WithCancel(t.Context())
	end()
	_, err := m.fetch(ended)
	require.ErrorIs(t, err, context.Canceled)
	require.True(t, m.asked.IsZero())
}

func TestSettingsAreChecked(t *testing.T) {
	for key, change := range map[string]func(*settings){
		"url":       func(s *settings) { s.URL = "prometheus:9090" },
		"queries":   func(s *settings) { s.Queries = nil },
		"label":     func(s *settings) { s.Label = "" },
		"max-age":   func(s *settings) { s.MaxAge = 0 },
		"settle":    func(s *settings) { s.Settle = -1 },
		"timeout":   func(s *settings) { s.Timeout = 5 * time.Second },
		"tolerance": func(s *settings) { s.Tolerance = math.NaN() },
	} {
		var s settings
		s.SetDefaults()
		s.URL, s.Queries = "http://prometheus:9090", []string{"cpu"}
		_, err := newStrategy(s)
		require.NoError(t, err)
		change(&s)
		_, err = newStrategy(s)
		var fault plugins.SettingError
		require.ErrorAs(t, err, &fault)
		require.Equal(t, key, fault.Key)
	}
}
