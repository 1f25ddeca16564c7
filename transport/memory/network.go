// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/transport/session"
)

// A network knows its nodes, which links are cut, and all connections. First what a test does to it, then how
// nodes listen and dial.

// link is one direction between two nodes.
type link struct{ from, to gossip.Address }

// Network connects the transports of one test.
type Network struct {
	mu      sync.Mutex
	nodes   map[gossip.Address]*Transport
	cuts    map[link]bool
	pipes   map[*duplex]struct{}
	latency func(from, to gossip.Address) time.Duration // Nil for none.
	changed chan struct{}                               // Closed and replaced when a link or a node changes.
}

// NewNetwork returns a network without nodes, all of whose links are whole.
func NewNetwork() *Network {
	return &Network{
		nodes:   make(map[gossip.Address]*Transport),
		cuts:    make(map[link]bool),
		pipes:   make(map[*duplex]struct{}),
		changed: make(chan struct{}),
	}
}

// SetLatency sets how long each message is under way from now on: d is called for each, from many goroutines at once,
// and is not negative. Messages of a connection arrive in their order. Without it, or with nil, a message is at the
// other end at once.
func (n *Network) SetLatency(d func(from, to gossip.Address) time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.latency = d
	for x := range n.pipes {
		x.up.setLatency(n.between(x.from, x.to))
		x.down.setLatency(n.between(x.to, x.from))
	}
}

// Cut cuts the link between two nodes, both ways.
func (n *Network) Cut(a, b gossip.Address) { n.set(true, link{a, b}, link{b, a}) }

// CutOneWay cuts the direction from one node to another, whichever of the two has
// opened the connection.
func (n *Network) CutOneWay(from, to gossip.Address) { n.set(true, link{from, to}) }

// Heal makes the link between two nodes whole, both ways.
func (n *Network) Heal(a, b gossip.Address) { n.set(false, link{a, b}, link{b, a}) }

// HealOneWay makes the direction from one node to another whole.
func (n *Network) HealOneWay(from, to gossip.Address) { n.set(false, link{from, to}) }

// HealAll makes every link whole.
func (n *Network) HealAll() {
	n.mu.Lock()
	var links []link
	for l := range n.cuts {
		links = append(links, l)
	}
	n.mu.Unlock()
	n.set(false, links...)
}

func (n *Network) set(cut bool, links ...link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range links {
		if cut {
			n.cuts[l] = true
		} else {
			delete(n.cuts, l)
		}
	}
	for d := range n.pipes {
		d.up.setCut(n.cuts[link{d.from, d.to}])
		d.down.setCut(n.cuts[link{d.to, d.from}])
	}
	n.announce()
}

// Break resets every connection between two nodes. They may dial anew at once.
func (n *Network) Break(a, b gossip.Address) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for d := range n.pipes {
		if d.from == a && d.to == b || d.from == b && d.to == a {
			d.up.reset()
			d.down.reset()
			delete(n.pipes, d)
		}
	}
}

func (n *Network) announce() {
	close(n.changed)
	n.changed = make(chan struct{})
}

func (n *Network) listen(t *Transport) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	address := t.endpoint.Self().Address
	if n.nodes[address] != nil {
		return fmt.Errorf("transport: listen on %s: another node of this network has the address: close it first, or choose another", address)
	}
	n.nodes[address] = t
	return nil
}

func (n *Network) leave(t *Transport) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.nodes[t.endpoint.Self().Address] == t {
		delete(n.nodes, t.endpoint.Self().Address)
	}
}

// dial opens a pipe. It waits while the link is cut in either direction.
func (n *Network) dial(ctx context.Context, from, to gossip.Address) (session.Pipe, error) {
	for {
		pipe, changed, err := n.connect(from, to)
		if pipe != nil || err != nil {
			return pipe, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("memory: dial %s: %w", to, ctx.Err())
		}
	}
}

// connect returns a pipe, or a channel to wait for when the link is cut.
func (n *Network) connect(from, to gossip.Address) (session.Pipe, <-chan struct{}, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cuts[link{from, to}] || n.cuts[link{to, from}] {
		return nil, n.changed, nil
	}
	t := n.nodes[to]
	if t == nil {
		return nil, nil, fmt.Errorf("memory: dial %s: nobody listens", to)
	}
	d := &duplex{network: n, from: from, to: to, up: newStream(n.between(from, to)), down: newStream(n.between(to, from))}
	opener := &pipe{d: d, out: d.up, in: d.down}
	acceptor := &pipe{d: d, out: d.down, in: d.up}
	// Owner: the accepting endpoint. Ends with the pipe. Waited for by Close.
	if !t.endpoint.Go(func() { t.endpoint.Serve(acceptor, session.Caller{Address: from.String()}) }) {
		return nil, nil, fmt.Errorf("memory: dial %s: nobody listens any more", to)
	}
	n.pipes[d] = struct{}{}
	return opener, nil, nil
}

// between returns the latency of one direction, nil for none.
func (n *Network) between(from, to gossip.Address) func() time.Duration {
	if n.latency == nil {
		return nil
	}
	latency := n.latency
	return func() time.Duration { return latency(from, to) }
}
