// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"time"

	clientv1 "github.com/quorate/quorate/client/proto/quorate/client/v1"
	"github.com/quorate/quorate/gateway/internal/exchange"
)

// A node: its gateway, which does with a request what package gateway does (begin, fill, settle), and what happens to
// it: it crashes, ends in order, stands still, comes back.

// node is a node at one address, in one life after the other.
type node struct {
	w        *World
	name     string
	at       int
	life     int
	began    time.Duration // When this life began.
	up       bool
	going    bool          // It has begun to end.
	frozen   time.Duration // It does nothing until then.
	fenced   time.Duration // It has no standing until then.
	calls    []*call
	requests int // Without an outcome that was written.
	bytes    int
	windows  map[int]*stream // Of messages to a shard, by its number.
}

// limits are those of every node. In an orderly world they let in what all clients may send, since a node that has more
// to do while another one leaves may send some back.
func (w *World) limits() exchange.Limits {
	if w.orderly {
		return exchange.Limits{Requests: programs * window, Bytes: 1 << 20}
	}
	return exchange.Limits{Requests: maxRequests, Bytes: maxBytes}
}

// start begins a life.
func (n *node) start() {
	n.life++
	n.began = n.w.Now()
	n.up, n.going, n.frozen, n.fenced = true, false, 0, 0
	n.calls, n.requests, n.bytes, n.windows = nil, 0, 0, map[int]*stream{}
	n.w.Log("%s begins its life %d", n.name, n.life)
}

// later calls f in this life of the node, once it does not stand still.
func (n *node) later(d time.Duration, f func()) { n.w.After(d, n.alive(n.life, f)) }

// alive returns f for a life of the node: it waits while the node stands still.
func (n *node) alive(life int, f func()) func() {
	var g func()
	g = func() {
		switch {
		case !n.up || n.life != life:
		case n.frozen > n.w.Now():
			n.w.After(min(n.frozen-n.w.Now(), 5*poll), g)
		default:
			f()
		}
	}
	return g
}

// crash ends the node at once.
func (n *node) crash() {
	if !n.up {
		return
	}
	n.w.Log("%s ends", n.name)
	n.up = false
	for _, c := range n.calls {
		if !c.over {
			c.over = true
			if n.w.rand.IntN(2) == 0 {
				c.s.down.end() // What was on its way is lost as well.
			}
			c.s.dead = true
			c.s.reset()
		}
	}
	n.w.hosted(n)
}

// leave ends the node in order: clients are told, what it has is answered, for two seconds. In an orderly world it also
// hands over what it hosts first.
func (n *node) leave() {
	if !n.up || n.going {
		return
	}
	n.w.Log("%s is going", n.name)
	n.going = true
	for _, c := range n.calls {
		c.signal()
	}
	if n.w.orderly {
		n.w.handOver(n)
	}
	began, life := n.w.Now(), n.life
	var wait func()
	wait = func() {
		open := slices.ContainsFunc(n.calls, func(c *call) bool { return !c.over }) && n.w.Now()-began < closeTimeout
		if open || n.w.orderly && slices.Contains(n.w.homes, n) {
			n.w.After(poll, n.alive(life, wait))
			return
		}
		n.crash()
	}
	n.later(poll, wait)
}

// begin hands a request on.
func (n *node) begin(c *call, r *clientv1.Request) {
	o := outcome{id: r.GetId(), entity: numberOf(r.GetEntity()), bytes: len(r.GetPayload())}
	n.requests++
	n.bytes += o.bytes
	n.w.ledger.reached(string(r.GetPayload()), n)
	switch {
	case n.going:
		o.code = clientv1.Code_CODE_NOT_DELIVERED
	case n.w.limits().Reached(int64(n.requests), int64(n.bytes)):
		n.w.Counts.Overloaded++
		o.code = clientv1.Code_CODE_OVERLOADED
	case r.GetKind() != kind || n.w.chance(0.005):
		o.code = clientv1.Code_CODE_UNKNOWN_KIND
	default:
		if most := n.w.limits(); n.requests > most.Requests || n.bytes > most.Bytes {
			n.w.Fail(fmt.Errorf("C5: %s has %d requests of %d bytes", n.name, n.requests, n.bytes))
		}
		o.placed = true
		n.submit(c, r, func(code clientv1.Code, payload []byte) {
			o.code, o.payload = code, payload
			c.put(o)
		})
		return
	}
	c.put(o)
}

// fill returns the outcome as it is written.
func (n *node) fill(o outcome) *clientv1.Outcome {
	v := &clientv1.Outcome{Id: o.id, Code: o.code, Payload: o.payload}
	if home := n.w.homes[shardOf(o.entity)]; o.placed && home != n {
		v.Place = &clientv1.Place{Shard: uint32(shardOf(o.entity)), Shards: shards, Node: home.name}
	}
	return v
}

// look forgets the calls that are over, and finds those that should be.
func (n *node) look() {
	n.calls = slices.DeleteFunc(n.calls, func(c *call) bool { return c.over })
	for _, c := range n.calls {
		if c.stalls() {
			n.w.Fail(fmt.Errorf("C5: %s has not read what %s writes since %v, and is not cut", c.s.p.name, n.name, c.since))
		}
	}
}

// settle counts a request as done.
func (n *node) settle(o outcome) {
	n.requests--
	n.bytes -= o.bytes
	if n.requests < 0 || n.bytes < 0 {
		n.w.Fail(fmt.Errorf("C5: %s counts %d requests of %d bytes", n.name, n.requests, n.bytes))
	}
}
