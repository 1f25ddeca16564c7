// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package area

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/rig"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/membership"
)

// Measures what those who ask a node cost it: a thousand requests a second beside a quiet cluster,
// and health checks beside thousands of connections that say nothing.

const (
	// requestAskers is how many requests are under way at most: half of what the default of management.max-requests lets in.
	requestAskers = 8
	// pace is how often an asker looks how many requests are due.
	pace = 5 * time.Millisecond
	// requestLimit is how long one answer may take.
	requestLimit = 5 * time.Second
	// requestCount asks a peer what it has counted.
	requestCount = "count"
)

// peerCount is what a peer has counted.
type peerCount struct {
	Done   uint64 `json:"done"`   // Answers, or connections that were opened.
	Failed uint64 `json:"failed"` // Requests without the answer that they should have.
	Open   int64  `json:"open"`   // Connections that are open.
}

// measureRequests runs a quiet cluster in this process, first for itself, then while another process asks one node, and
// says what processor time that takes and which nodes were marked unreachable.
func measureRequests(ctx context.Context, s rig.Spec, k *rig.Link) (figure.Outcome, error) {
	nodes, err := startSome(ctx, s.Nodes, func(c *cluster.Config) { c.Management.Address = "127.0.0.1:0" })
	defer drop(nodes)
	if err != nil {
		return figure.Outcome{}, err
	}
	if err := rig.Pause(ctx, quietTime); err != nil {
		return figure.Outcome{}, err
	}
	var marked atomic.Uint64
	for _, n := range nodes {
		defer countMarked(n.Membership(), &marked)()
	}
	without, err := used(ctx, s.Time)
	if err != nil {
		return figure.Outcome{}, err
	}
	s.Seeds = []string{nodes[0].ManagementAddress()}
	asker, _, err := k.Peer(ctx, s.As(roleAsker))
	if err != nil {
		return figure.Outcome{}, err
	}
	defer asker.Kill()
	var before, after peerCount
	if err := errors.Join(rig.Pause(ctx, time.Second), asker.Call(ctx, requestCount, &before)); err != nil {
		return figure.Outcome{}, err
	}
	began := time.Now()
	with, err := used(ctx, s.Time)
	if err = errors.Join(err, asker.Call(ctx, requestCount, &after)); err != nil {
		return figure.Outcome{}, err
	}
	rate := float64(after.Done-before.Done) / time.Since(began).Seconds()
	each := float64(len(nodes))
	return figure.Outcome{
		Values: map[string]float64{
			"rate": rate, "failed": float64(after.Failed), "marked": float64(marked.Load()), "without": 1000 * without / each,
			"request": 1e6 * (with - without) / max(rate, 1),
		},
		CPU:  1e6 * with / max(rate, 1),
		Note: fmt.Sprintf("%d nodes, of which one is asked; %.1f ms/s of processor time without requests, %.1f ms/s with them", len(nodes), 1000*without, 1000*with),
	}, nil
}

// startSome starts nodes that are all up. What is changed is the configuration of the first. Those that have started are
// returned even with an error.
func startSome(ctx context.Context, count int, change func(*cluster.Config)) (nodes []*cluster.Node, err error) {
	var seeds []string
	for i := range count {
		n, err := startNode(ctx, seeds, func(c *cluster.Config) {
			if i == 0 {
				change(c)
			}
		})
		if err != nil {
			return nodes, err
		}
		nodes = append(nodes, n)
		seeds = []string{nodes[0].Self().Address.String()}
	}
	return nodes, nil
}

func drop(nodes []*cluster.Node) {
	for _, n := range nodes {
		dropNode(n)
	}
}

// used returns how many seconds of processor time this process uses in a second, measured for a while.
func used(ctx context.Context, during time.Duration) (float64, error) {
	cpu, began := rig.CPUTime(), time.Now()
	err := rig.Pause(ctx, during)
	return (rig.CPUTime() - cpu).Seconds() / time.Since(began).Seconds(), err
}

// countMarked counts how often a node sees another one become unreachable, until the function that it returns is called.
func countMarked(n *membership.Node, marked *atomic.Uint64) (stop func()) {
	sub := n.Subscribe()
	ended := make(chan struct{})
	// Owned by the caller: ends with the subscription, and stop waits for it.
	go func() {
		defer close(ended)
		for {
			e, err := sub.Next(context.Background()) // Close ends it.
			if err != nil {
				return
			}
			switch e := e.(type) {
			case membership.ReachabilityChanged:
				if !e.Reachable {
					marked.Add(1)
				}
			case membership.Missed:
				marked.Add(uint64(e.N))
			}
		}
	}()
	return func() {
		sub.Close()
		<-ended
	}
}

// serveAsker asks a node for its members, so many times a second, until the parent process is gone.
func serveAsker(ctx context.Context, s rig.Spec, k *rig.Link) error {
	var answered, failed atomic.Uint64
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: requestAskers}, Timeout: requestLimit}
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
	return k.Host(s.Seeds[0], rig.Answers{requestCount: func() (any, error) {
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
