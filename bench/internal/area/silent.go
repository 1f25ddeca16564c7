// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package area

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/rig"
	"github.com/quorate/quorate/cluster"
)

const (
	// probeEvery is how often a health check is due, far more often than orchestrators ask.
	probeEvery = 10 * time.Millisecond
	// crowding is how long silent connections have to come before probes are measured.
	crowding = 3 * time.Second
	// again is how long who was closed, or could not connect, waits. Without a pause the queue of the system would be full
	// of those who come again, and the figure would be how fast this machine opens connections.
	again = time.Second
)

// measureSilent asks for the health of a node, over a new connection each time, first alone and then while another
// process holds connections to the same listener on which nothing comes.
func measureSilent(ctx context.Context, s rig.Spec, k *rig.Link) (figure.Outcome, error) {
	nodes, err := startSome(ctx, 1, func(c *cluster.Config) { c.Management.Health.Address = "127.0.0.1:0" })
	defer drop(nodes)
	if err != nil {
		return figure.Outcome{}, err
	}
	url := "http://" + nodes[0].HealthAddress() + "/health/live"
	alone, failedAlone, err := probeHealth(ctx, url, s.Time)
	if err != nil {
		return figure.Outcome{}, err
	}
	s.Seeds = []string{nodes[0].HealthAddress()}
	silent, _, err := k.Peer(ctx, s.As(roleSilent))
	if err != nil {
		return figure.Outcome{}, err
	}
	defer silent.Kill()
	if err := rig.Pause(ctx, crowding); err != nil {
		return figure.Outcome{}, err
	}
	var before, after peerCount
	err = silent.Call(ctx, requestCount, &before)
	beside, failed, probed := probeHealth(ctx, url, s.Time)
	if err = errors.Join(err, probed, silent.Call(ctx, requestCount, &after)); err != nil {
		return figure.Outcome{}, err
	}
	return figure.Outcome{
		Values: map[string]float64{
			"alone": rig.Milliseconds(figure.Percentile(alone, 0.99)), "p50": rig.Milliseconds(figure.Percentile(beside, 0.5)),
			"p99": rig.Milliseconds(figure.Percentile(beside, 0.99)), "failed": float64(failedAlone + failed),
		},
		Note: fmt.Sprintf("%d clients that say nothing, of which %d were connected before and %d after the probes: the node closes them after a second, and they came again %d times meanwhile",
			s.Senders, before.Open, after.Open, after.Done-before.Done),
	}, nil
}

// probeHealth asks for the health of a node for a while, and returns how long each answer took from when it was due.
func probeHealth(ctx context.Context, url string, during time.Duration) (took []time.Duration, failed int, err error) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: requestLimit}
	began := time.Now()
	for due := began; due.Sub(began) < during; due = due.Add(probeEvery) {
		if err := rig.Pause(ctx, max(time.Until(due), 0)); err != nil {
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
func serveSilent(ctx context.Context, s rig.Spec, k *rig.Link) error {
	var opened atomic.Uint64
	var open atomic.Int64
	for i := range s.Senders {
		// Owned by the process: ends with the context, or with its connection.
		go func() {
			_ = rig.Pause(ctx, 2*again*time.Duration(i)/time.Duration(s.Senders)) // As many come at any time.
			for ctx.Err() == nil {
				conn, err := (&net.Dialer{Timeout: requestLimit}).DialContext(ctx, "tcp", s.Seeds[0])
				if err == nil {
					opened.Add(1)
					open.Add(1)
					_, _ = conn.Read(make([]byte, 1)) // Until the node closes it.
					open.Add(-1)
					_ = conn.Close() // Nothing was sent.
				}
				_ = rig.Pause(ctx, again) // Its error ends the loop.
			}
		}()
	}
	return k.Host(s.Seeds[0], rig.Answers{requestCount: func() (any, error) {
		return peerCount{Done: opened.Load(), Open: open.Load()}, nil
	}})
}
