// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process && postgres && unix

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// A small load balancer, as there is one before every product: it gives requests to the nodes that are
// ready, in turn (ServeHTTP), asks the nodes all the time whether they are (watch), and sends a request
// again only when the node before has not begun it (pass).

const (
	// pollInterval is how often nodes are asked whether they are ready.
	pollInterval = 200 * time.Millisecond
	// pollTimeout is how long an answer may take. A node that is not ready any more gets no requests after
	// two of these and one interval.
	pollTimeout = 500 * time.Millisecond
)

// backend is one node, as the balancer knows it.
type backend struct {
	http, health string // Addresses.
	ready        bool
}

// balancer passes requests on.
type balancer struct {
	client *http.Client
	again  atomic.Int64 // Requests that were sent again.

	mu       sync.Mutex
	backends []*backend
	turn     int
	round    chan struct{} // Closed when all nodes were asked once more.
}

// newBalancer returns a balancer before nodes, none of which is ready yet.
func newBalancer(backends []*backend) *balancer {
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	return &balancer{client: &http.Client{Transport: transport}, backends: backends, round: make(chan struct{})}
}

// watch asks the nodes whether they are ready, until ctx ends.
func (b *balancer) watch(ctx context.Context) {
	ticks := time.NewTicker(pollInterval)
	defer ticks.Stop()
	for ctx.Err() == nil {
		var asked sync.WaitGroup
		for _, node := range b.backends {
			asked.Go(func() {
				ready := b.isReady(ctx, node.health)
				b.mu.Lock()
				defer b.mu.Unlock()
				node.ready = ready
			})
		}
		asked.Wait()
		b.mu.Lock()
		close(b.round)
		b.round = make(chan struct{})
		b.mu.Unlock()
		select {
		case <-ticks.C:
		case <-ctx.Done():
		}
	}
}

// isReady asks one node.
func (b *balancer) isReady(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout) //quorate:realtime It is a setting of the balancer.
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/health/ready", http.NoBody)
	if err != nil {
		return false
	}
	response, err := b.client.Do(request)
	if err != nil {
		return false
	}
	defer func() { _ = response.Body.Close() }() // The status is all that matters.
	_, _ = io.Copy(io.Discard, response.Body)    // So that the connection can be used again.
	return response.StatusCode == http.StatusOK
}

// pick returns the next node that is ready and was not tried, nil if there is none, and what is closed
// when nodes were asked again.
func (b *balancer) pick(tried map[*backend]bool) (*backend, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for range b.backends {
		b.turn++
		if node := b.backends[b.turn%len(b.backends)]; node.ready && !tried[node] {
			return node, b.round
		}
	}
	return nil, b.round
}

// ServeHTTP gives a request to a node, and to further ones as long as none has begun it. While there is
// no node left it waits, until the client goes.
func (b *balancer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // The client has gone.
	}
	tried := map[*backend]bool{}
	for r.Context().Err() == nil {
		node, round := b.pick(tried)
		if node == nil {
			clear(tried)
			select {
			case <-round:
			case <-r.Context().Done():
			}
			continue
		}
		if b.pass(w, r, node, body) {
			return
		}
		tried[node] = true
		b.again.Add(1)
	}
}

// pass sends a request to a node and the answer to the client. It reports false, and answers nothing,
// when the node has not begun the request: its port was closed, or it says so.
func (b *balancer) pass(w http.ResponseWriter, r *http.Request, node *backend, body []byte) bool {
	request, err := http.NewRequestWithContext(r.Context(), r.Method, "http://"+node.http+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		refuse(w, http.StatusBadRequest, outcomeNothing, err.Error())
		return true
	}
	request.Header = r.Header.Clone()
	response, err := b.client.Do(request) // It sends a POST again by itself only when nothing of it was sent.
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		return false
	}
	var answer []byte
	if err == nil {
		answer, err = io.ReadAll(response.Body)
		_ = response.Body.Close() // It was read.
	}
	if err != nil {
		refuse(w, http.StatusBadGateway, outcomeUnknown, node.http+": "+err.Error())
		return true
	}
	outcome := response.Header.Get(outcomeHeader)
	if response.StatusCode == http.StatusServiceUnavailable && outcome == outcomeNothing {
		return false
	}
	if outcome != "" {
		w.Header().Set(outcomeHeader, outcome)
	}
	w.WriteHeader(response.StatusCode)
	_, _ = w.Write(answer) // A client that has gone counts it as unknown.
	return true
}
