// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Command prometheus is an allocation plugin that goes by what a Prometheus server has measured of the machines, such
// as the use of processors and memory. The built-in strategy load-aware evens it out. Where a machine has no fresh
// value, new shards are spread evenly, by least-shard, and none moves.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/sdk"
)

// First the settings; then the two decisions, which ask the server at most once in a while (fetch); then one query.

const (
	maxAnswer  = 4 << 20          // Bytes of an answer that are read; a longer one is a fault.
	maxQueries = 8                // They are asked one after the other.
	keep       = 10 * time.Second // How long an answer is used for, or the want of one.
)

// settings are the settings under plugins.<name>.settings.
type settings struct {
	URL       string        // The server, such as http://prometheus:9090.
	Queries   []string      // From 1 to 8. Each gives the use of machines, 0 to 1; of a machine the largest counts.
	Label     string        // The label with the machine, as host or host:port; by default instance.
	MaxAge    time.Duration // How old a value may be: 1 s to 1 h, by default 2 min.
	Settle    time.Duration // How long nothing moves after a move, until values show it: 0 to 1 h, by default 3 min.
	Timeout   time.Duration // How long all queries may take together: above 0 to 4 s, by default 2 s.
	Tolerance float64       // Of load-aware: 0.02 to 1, by default 0.1.
}

// SetDefaults sets what a server needs that asks the machines every 15 to 30 s.
func (s *settings) SetDefaults() {
	*s = settings{Label: "instance", MaxAge: 2 * time.Minute, Settle: 3 * time.Minute, Timeout: 2 * time.Second, Tolerance: 0.1}
}

type strategy struct {
	settings
	even *allocation.LeastShard
	load *allocation.LoadAware
	now  func() time.Time

	mu     sync.Mutex // Guards what follows.
	asked  time.Time  // When the server was asked last.
	values map[string]float64
	fault  error     // Why there are no values.
	moved  time.Time // When a shard was last seen to move.
}

func newStrategy(s settings) (allocation.Strategy, error) {
	wrong := func(key, format string, args ...any) (allocation.Strategy, error) {
		return nil, plugins.SettingError{Key: key, Reason: fmt.Sprintf(format, args...)}
	}
	u, err := url.Parse(s.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return wrong("url", "%q is no URL of a server", s.URL)
	case len(s.Queries) == 0 || len(s.Queries) > maxQueries:
		return wrong("queries", "there are %d, from 1 to %d are needed", len(s.Queries), maxQueries)
	case s.Label == "":
		return wrong("label", "is empty; name the label with the machine")
	case s.MaxAge < time.Second || s.MaxAge > time.Hour:
		return wrong("max-age", "%v is not from 1s to 1h", s.MaxAge)
	case s.Settle < 0 || s.Settle > time.Hour:
		return wrong("settle", "%v is not from 0s to 1h", s.Settle)
	case s.Timeout <= 0 || s.Timeout > 4*time.Second: // A call of a plugin ends after 5 s.
		return wrong("timeout", "%v is not above 0s, up to 4s", s.Timeout)
	}
	defaults := allocation.Default()
	even, err := allocation.NewLeastShard(defaults.LeastShard)
	if err != nil {
		return nil, err
	}
	defaults.LoadAware.Tolerance = s.Tolerance
	load, err := allocation.NewLoadAware(defaults.LoadAware)
	if err != nil {
		return wrong("tolerance", "%v", err)
	}
	return &strategy{settings: s, even: even, load: load, now: time.Now}, nil
}

// Class promises nothing: values change.
func (m *strategy) Class() allocation.Class { return allocation.Class{} }

// Allocate gives new shards to the machines with the least use, or evenly.
func (m *strategy) Allocate(ctx context.Context, r allocation.AllocateRequest) (allocation.AllocateResult, error) {
	regions, err := m.measure(ctx, r.Regions)
	if err != nil {
		return m.even.DecideAllocate(r), nil //nolint:nilerr // Shards need a home; rebalancing says why.
	}
	r.Regions = regions
	return m.load.DecideAllocate(r), nil
}

// Rebalance moves shards off the machines with the most use, and waits then until that shows in the values: they are
// older than the moves, and would have more shards move than needed.
func (m *strategy) Rebalance(ctx context.Context, r allocation.RebalanceRequest) (allocation.RebalanceResult, error) {
	if left := m.settling(len(r.Budget.InFlight) > 0); left > 0 {
		return allocation.RebalanceResult{Reason: fmt.Sprintf("prometheus: shards have moved, waiting %v for what it shows", left.Round(time.Second))}, nil
	}
	regions, err := m.measure(ctx, r.Regions)
	if err != nil {
		return allocation.RebalanceResult{Reason: fmt.Sprintf("prometheus: nothing moves: %.900v", err)}, nil
	}
	r.Regions = regions
	result := m.load.DecideRebalance(r)
	if len(result.Moves) > 0 {
		m.settling(true)
	}
	return result, nil
}

// settling returns for how long nothing may move. Moving says that something does now.
func (m *strategy) settling(moving bool) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if moving {
		m.moved = m.now()
	}
	if m.moved.IsZero() {
		return 0
	}
	return m.moved.Add(m.Settle).Sub(m.now())
}

// measure returns the regions with the use of their machines as their load. It fails if one that can take shards has
// no value: it would seem to be idle.
func (m *strategy) measure(ctx context.Context, regions []allocation.RegionState) ([]allocation.RegionState, error) {
	values, err := m.fetch(ctx)
	if err != nil {
		return nil, err
	}
	regions = slices.Clone(regions)
	for i := range regions {
		id, err := gossip.ParseNodeID(string(regions[i].ID))
		if err != nil {
			return nil, err
		}
		use, known := values[id.Address.Host]
		if !known && regions[i].Eligible() {
			return nil, fmt.Errorf("there is no fresh value with the label %s for %s", m.Label, id.Address.Host)
		}
		regions[i].Load = use
	}
	return regions, nil
}

// fetch returns the use of the machines by their hosts, from the server or as it was a moment ago. Of calls at the same
// time each may ask.
func (m *strategy) fetch(ctx context.Context) (map[string]float64, error) {
	m.mu.Lock()
	values, fault, fresh := m.values, m.fault, !m.asked.IsZero() && m.now().Sub(m.asked) < keep
	m.mu.Unlock()
	if fresh {
		return values, fault
	}
	within, cancel := context.WithTimeout(ctx, m.Timeout)
	defer cancel()
	values, fault = map[string]float64{}, nil
	for _, q := range m.Queries {
		if fault = m.query(within, q, values); fault != nil {
			values, fault = nil, fmt.Errorf("query %q: %w", q, fault)
			break
		}
	}
	if ctx.Err() != nil { // That says nothing about the server.
		return values, fault
	}
	m.mu.Lock()
	news := (fault == nil) != (m.fault == nil)
	m.asked, m.values, m.fault = m.now(), values, fault
	m.mu.Unlock()
	if news && fault != nil {
		slog.WarnContext(ctx, "there are no values: new shards are spread evenly, and none moves", "error", fault)
	} else if news {
		slog.InfoContext(ctx, "there are values again")
	}
	return values, fault
}

// answer is that of the API to an instant query.
type answer struct {
	Status, Error string
	Data          struct {
		ResultType string
		Result     []struct {
			Metric map[string]string
			Value  [2]json.RawMessage // A time in seconds, and a number as text.
		}
	}
}

// query asks once, and raises the values to those that it gets.
func (m *strategy) query(ctx context.Context, text string, values map[string]float64) error {
	// Without a bound for it the server gives values that are up to 5 min old, at the time of the query.
	args := url.Values{"query": {text}, "lookback_delta": {strconv.FormatFloat(m.MaxAge.Seconds(), 'f', -1, 64)}}
	get, err := http.NewRequestWithContext(ctx, http.MethodGet, m.URL+"/api/v1/query?"+args.Encode(), nil)
	if err != nil {
		return err
	}
	back, err := http.DefaultClient.Do(get)
	if err != nil {
		return err
	}
	defer func() { _ = back.Body.Close() }()
	var got answer
	switch err := json.NewDecoder(io.LimitReader(back.Body, maxAnswer)).Decode(&got); {
	case err != nil:
		return fmt.Errorf("it answers %s: %w", back.Status, err)
	case got.Status != "success":
		return fmt.Errorf("it answers %s: %.200s", back.Status, got.Error)
	case got.Data.ResultType != "vector":
		return fmt.Errorf("its result is a %s, not a vector", got.Data.ResultType)
	}
	for _, r := range got.Data.Result {
		if use, ok := m.value(r.Value); ok {
			host := r.Metric[m.Label]
			if name, _, err := net.SplitHostPort(host); err == nil {
				host = name
			}
			values[host] = max(values[host], use)
		}
	}
	return nil
}

// value reads a value that is a number and fresh, within 0 to 1.
func (m *strategy) value(v [2]json.RawMessage) (use float64, ok bool) {
	var at float64
	var text string
	if json.Unmarshal(v[0], &at) != nil || json.Unmarshal(v[1], &text) != nil {
		return 0, false
	}
	use, err := strconv.ParseFloat(text, 64)
	age := m.now().Sub(time.UnixMilli(int64(at * 1000)))
	return min(max(use, 0), 1), err == nil && !math.IsNaN(use) && age.Abs() <= m.MaxAge
}

func main() {
	sdk.Serve(sdk.Allocation(newStrategy), sdk.WithName("prometheus"), sdk.WithVersion("1.0.0"))
}
