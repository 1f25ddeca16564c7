// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/harness"
	"github.com/quorate/quorate/cluster"
)

// What those who ask a node cost it, first the table: a thousand requests a second beside a quiet cluster
// ([measureRequests]), and health checks beside thousands of connections that say nothing ([measureSilent]).

// managementGroup is what those who ask a node cost it.
func managementGroup() harness.Group {
	return harness.Group{
		Name: "management", About: "1,000 requests a second; probes beside 10,000 silent ones", Optional: true,
		Experiments: []harness.Experiment{
			{Measure: measureRequests, Spec: harness.Spec{Nodes: 5, Rate: 1000, Limit: 2 * time.Minute}, Figures: []figure.Figure{
				{Name: "requests-per-second", Value: "rate", Unit: "1/s", Better: figure.Higher, Target: 990},
				{Name: "requests-failed", Value: "failed", Better: figure.Lower, Zero: true},
				{Name: "marked-unreachable", Value: "marked", Better: figure.Lower, Zero: true},
				{Name: "request-cpu", Value: "request", Unit: "us", Better: figure.Lower},
				{Name: "quiet-cpu", Value: "without", Unit: "ms/s", Better: figure.Lower},
			}},
			{Measure: measureSilent, Spec: harness.Spec{Senders: 10_000, Limit: 2 * time.Minute}, Figures: []figure.Figure{
				{Name: "probe-alone-p99", Value: "alone", Unit: "ms", Better: figure.Lower},
				{Name: "probe-beside-silent-p50", Value: "p50", Unit: "ms", Better: figure.Lower},
				{Name: "probe-beside-silent-p99", Value: "p99", Unit: "ms", Better: figure.Lower, Target: 100},
				{Name: "probes-failed", Value: "failed", Better: figure.Lower, Zero: true},
			}},
		},
	}
}

const (
	// requestAskers is how many requests are under way at most: half of what the default of
	// management.max-requests lets in.
	requestAskers = 8
	// pace is how often an asker looks how many requests are due.
	pace = 5 * time.Millisecond
	// requestTimeout is how long one answer may take.
	requestTimeout = 5 * time.Second
	// probeEvery is how often a health check is due, far more often than orchestrators ask.
	probeEvery = 10 * time.Millisecond
	// crowding is how long silent connections have to come before probes are measured.
	crowding = 3 * time.Second
	// again is how long who was closed, or could not connect, waits. Without a pause the queue of the system would be full
	// of those who come again, and the figure would be how fast this machine opens connections.
	again = time.Second
	// requestCount asks a peer what it has counted.
	requestCount = "count"
)

// peerCount is what a peer has counted.
type peerCount struct {
	Done   uint64 `json:"done"`   // Answers, or connections that were opened.
	Failed uint64 `json:"failed"` // Requests without the answer that they should have.
	Open   int64  `json:"open"`   // Connections that are open.
}

// during counts what a peer does while something goes on.
func during(ctx context.Context, p *harness.Process, do func() error) (before, after peerCount, err error) {
	if err := p.Call(ctx, requestCount, &before); err != nil {
		return before, after, err
	}
	err = do()
	return before, after, errors.Join(err, p.Call(ctx, requestCount, &after))
}

// measureRequests runs a quiet cluster in this process, first for itself, then while another process asks one node, and
// says what processor time that takes and which nodes were marked unreachable.
func measureRequests(ctx context.Context, s harness.Spec, k *harness.Link) (out figure.Outcome, err error) {
	nodes, end, err := startNodes(ctx, s.Nodes, func(c *cluster.Config) { c.Management.Address = "127.0.0.1:0" })
	defer end()
	if err != nil {
		return out, err
	}
	if err := harness.Pause(ctx, quietTime); err != nil {
		return out, err
	}
	var seen marks
	for _, n := range nodes {
		seen.follow(ctx, n.Membership())
	}
	without, err := used(ctx, s.Time)
	if err != nil {
		return out, err
	}
	s.Seeds = []string{nodes[0].ManagementAddress()}
	asker, _, err := k.Peer(ctx, s.As(roleAsker))
	if err != nil {
		return out, err
	}
	defer asker.Kill()
	if err := harness.Pause(ctx, time.Second); err != nil {
		return out, err
	}
	var with float64
	began := time.Now()
	before, after, err := during(ctx, asker, func() (err error) {
		with, err = used(ctx, s.Time)
		return err
	})
	rate := float64(after.Done-before.Done) / time.Since(began).Seconds()
	each := float64(len(nodes))
	return figure.Outcome{
		Values: map[string]float64{
			"rate": rate, "failed": float64(after.Failed), "marked": float64(seen.marked.Load() + seen.missed.Load()), "without": 1000 * without / each,
			"request": 1e6 * (with - without) / max(rate, 1),
		},
		CPU:  1e6 * with / max(rate, 1),
		Note: fmt.Sprintf("%d nodes, of which one is asked; %.1f ms/s of processor time without requests, %.1f ms/s with them", len(nodes), 1000*without, 1000*with),
	}, err
}

// used returns how many seconds of processor time this process uses in a second, measured for a while.
func used(ctx context.Context, during time.Duration) (float64, error) {
	cpu, began := harness.CPUTime(), time.Now()
	err := harness.Pause(ctx, during)
	return (harness.CPUTime() - cpu).Seconds() / time.Since(began).Seconds(), err
}

// serveAsker asks a node for its members, so many times a second, until the parent process is gone.
func serveAsker(ctx context.Context, s harness.Spec, k *harness.Link) error {
	var answered, failed atomic.Uint64
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: requestAskers}, Timeout: requestTimeout}
	due := make(chan struct{}, s.Rate) // What is due for a second; more than that has failed.
	for range requestAskers {
		// Owned by the process: ends with it.
		go func() {
			for range due {
				if fetch(ctx, client, "http://"+s.Seeds[0]+"/v1/members") != nil {
					failed.Add(1)
				} else {
					answered.Add(1)
				}
			}
		}()
	}
	// Owned by the process: ends with the context.
	go func() {
		tick := time.NewTicker(pace)
		defer tick.Stop()
		began := time.Now()
		for asked := 0; ctx.Err() == nil; <-tick.C {
			for wanted := int(time.Since(began).Seconds() * float64(s.Rate)); asked < wanted; asked++ {
				select {
				case due <- struct{}{}:
				default:
					failed.Add(1)
				}
			}
		}
	}()
	return k.Host(s.Seeds[0], harness.Answers{requestCount: func() (any, error) {
		return peerCount{Done: answered.Load(), Failed: failed.Load()}, nil
	}})
}

// fetch sends one request, and reads the answer.
func fetch(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // It was read.
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("bench: %s: %s", url, response.Status)
	}
	return nil
}

// measureSilent asks for the health of a node, over a new connection each time, first alone and then while another
// process holds connections to the same listener on which nothing comes.
func measureSilent(ctx context.Context, s harness.Spec, k *harness.Link) (out figure.Outcome, err error) {
	nodes, end, err := startNodes(ctx, 1, func(c *cluster.Config) { c.Management.Health.Address = "127.0.0.1:0" })
	defer end()
	if err != nil {
		return out, err
	}
	url := "http://" + nodes[0].HealthAddress() + "/health/live"
	alone, failedAlone, err := probeHealth(ctx, url, s.Time)
	if err != nil {
		return out, err
	}
	s.Seeds = []string{nodes[0].HealthAddress()}
	silent, _, err := k.Peer(ctx, s.As(roleSilent))
	if err != nil {
		return out, err
	}
	defer silent.Kill()
	if err := harness.Pause(ctx, crowding); err != nil {
		return out, err
	}
	var beside []time.Duration
	var failed int
	before, after, err := during(ctx, silent, func() (err error) {
		beside, failed, err = probeHealth(ctx, url, s.Time)
		return err
	})
	return figure.Outcome{
		Values: map[string]float64{
			"alone": harness.Milliseconds(figure.Percentile(alone, 0.99)), "p50": harness.Milliseconds(figure.Percentile(beside, 0.5)),
			"p99": harness.Milliseconds(figure.Percentile(beside, 0.99)), "failed": float64(failedAlone + failed),
		},
		Note: fmt.Sprintf("%d clients that say nothing, of which %d were connected before and %d after the probes: the node closes them after a second, and they came again %d times meanwhile",
			s.Senders, before.Open, after.Open, after.Done-before.Done),
	}, err
}

// probeHealth asks for the health of a node for a while, and returns how long each answer took from when it was due.
func probeHealth(ctx context.Context, url string, during time.Duration) (took []time.Duration, failed int, err error) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: requestTimeout}
	began := time.Now()
	for due := began; due.Sub(began) < during; due = due.Add(probeEvery) {
		if err := harness.Pause(ctx, max(time.Until(due), 0)); err != nil {
			return nil, 0, err
		}
		if fetch(ctx, client, url) != nil {
			failed++
		}
		took = append(took, time.Since(due))
	}
	return took, failed, nil
}

// serveSilent opens connections on which it says nothing, and opens another one for each that is closed, a second
// later, until the parent process is gone.
func serveSilent(ctx context.Context, s harness.Spec, k *harness.Link) error {
	var opened atomic.Uint64
	var open atomic.Int64
	for i := range s.Senders {
		// Owned by the process: ends with the context, or with its connection.
		go func() {
			_ = harness.Pause(ctx, 2*again*time.Duration(i)/time.Duration(s.Senders)) // As many come at any time.
			for ctx.Err() == nil {
				conn, err := (&net.Dialer{Timeout: requestTimeout}).DialContext(ctx, "tcp", s.Seeds[0])
				if err == nil {
					opened.Add(1)
					open.Add(1)
					_, _ = conn.Read(make([]byte, 1)) // Until the node closes it.
					open.Add(-1)
					_ = conn.Close() // Nothing was sent.
				}
				_ = harness.Pause(ctx, again) // Its error ends the loop.
			}
		}()
	}
	return k.Host(s.Seeds[0], harness.Answers{requestCount: func() (any, error) {
		return peerCount{Done: opened.Load(), Open: open.Load()}, nil
	}})
}
