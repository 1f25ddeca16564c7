// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"time"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/cluster/locations/internal/part"
	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/ddatasim"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/sharding/shardingsim"
	"github.com/quorate/quorate/simulation"
)

// Operators: each call sets or withdraws the locations of some shards at a random node, by the steps of
// locations.Map: a majority is read, what all replicas have already is left out, the rest is written to a majority.

// A call may take as long as locations.Limit, and some callers are less patient.
const (
	callTimeout = 5 * time.Second
	callLeast   = time.Second
)

// typ is the type of the keys.
func typ() crdt.Type { return crdt.TypeOf[part.Part]() }

// call is a call of an operator.
type call struct {
	w      *World
	node   *simulation.Node
	change map[allocation.Shard]string
	writes []*write
	ends   time.Duration
	done   func(confirmed bool)
	over   bool
	// written is called when the node has the change, and no other has. Nil: nobody wants to know.
	written func()
}

// operate makes calls, again and again.
func (w *World) operate() {
	if w.calm {
		return
	}
	if nodes := w.Nodes(); len(nodes) > 0 {
		if n := nodes[w.rand.IntN(len(nodes))]; !n.Frozen() && w.rand.IntN(12) == 0 {
			w.clear(n)
		} else if !n.Frozen() {
			w.set(n, w.drawn(), func(bool) {})
		}
	}
	w.After(w.upTo(2*writesEvery), w.operate)
}

// drawn draws locations of some shards. Some are withdrawn, and some are where no node ever is. A call of three says
// again what was confirmed last, as a controller does.
func (w *World) drawn() map[allocation.Shard]string {
	change := map[allocation.Shard]string{}
	if w.rand.IntN(3) == 0 {
		for range 1 + w.rand.IntN(6) {
			change[allocation.Shard(w.rand.IntN(shards))] = ""
		}
		return w.before(change)
	}
	for range 1 + w.rand.IntN(4) {
		at := shardingsim.Address(w.rand.IntN(w.nodes + 1)).String()
		if w.rand.IntN(5) == 0 {
			at = ""
		}
		change[allocation.Shard(w.rand.IntN(shards))] = at
	}
	return change
}

// before returns where the shards of a change were said to be by what was confirmed last.
func (w *World) before(change map[allocation.Shard]string) map[allocation.Shard]string {
	before := map[allocation.Shard]string{}
	for shard := range change { //quorate:unordered a map of the same keys
		before[shard] = w.history.confirmed(shard)
	}
	return before
}

// clear withdraws all locations that a majority knows.
func (w *World) clear(n *simulation.Node) {
	began := w.Now()
	w.data.Read(n, key(), ddatasim.Majority, callTimeout, func(v any, err error) {
		if err != nil || !n.Alive() {
			return
		}
		known := w.known(v, began)
		change := map[allocation.Shard]string{}
		for shard := range known { //quorate:unordered a map of the same keys
			change[shard] = ""
		}
		if len(change) > 0 {
			w.Counts.Cleared++
			w.set(n, change, func(bool) {})
		}
	})
}

// set begins a call.
func (w *World) set(n *simulation.Node, change map[allocation.Shard]string, done func(bool)) *call {
	limit := callTimeout
	if !w.calm && w.rand.IntN(2) == 0 {
		limit = callLeast
	}
	c := &call{w: w, node: n, change: change, ends: w.Now() + limit, done: done}
	for shard := range allocation.Shard(shards) {
		if address, ok := change[shard]; ok {
			c.writes = append(c.writes, w.history.begin(shard, address, w.Now()))
		}
	}
	w.calls[n.ID()] = append(w.calls[n.ID()], c)
	w.Log("%v is to set %v", n.ID(), change)
	began := w.Now()
	w.data.Read(n, key(), ddatasim.Majority, limit, func(v any, err error) {
		if err != nil || !n.Alive() {
			c.end(false)
			return
		}
		w.known(v, began)
		c.write(v)
	})
	return c
}

// write writes what not all have yet, given what a majority has.
func (c *call) write(v any) {
	present, _ := v.(part.Part)
	others := part.Others(present, c.change)
	if !part.Doubtful(others, c.change) {
		c.put(others, present)
		return
	}
	left := max(c.ends-c.w.Now(), 0)
	c.w.data.Read(c.node, key(), ddatasim.All, left/4, func(v any, err error) {
		everywhere, _ := v.(part.Part)
		switch {
		case !c.node.Alive():
			c.end(false)
		case err != nil:
			c.put(part.All(c.change), present)
		default:
			c.put(part.Others(everywhere, c.change), everywhere)
		}
	})
}

// put writes the locations of some shards, given what was read.
func (c *call) put(others []allocation.Shard, read part.Part) {
	if len(others) == 0 {
		c.w.Counts.Left++
		c.end(true)
		return
	}
	now := c.w.clock(c.node)
	c.w.data.Update(c.node, key(), typ(), max(c.ends-c.w.Now(), 0), func(at crdt.Origin, v any) (any, error) {
		return part.Put(at, now, v.(part.Part), read, others, c.change), nil
	}, func(err error) { c.end(err == nil) })
	if c.written != nil {
		c.written()
	}
}

// end notes how a call has ended: with its node at the latest, and once.
func (c *call) end(confirmed bool) {
	if c.over {
		return
	}
	c.over = true
	if confirmed {
		c.w.Counts.Confirmed++
	} else {
		c.w.Counts.Unconfirmed++
	}
	for _, of := range c.writes {
		of.ended, of.acknowledged = c.w.Now(), confirmed
	}
	c.w.Log("%v has set %v: %t", c.node.ID(), c.change, confirmed)
	c.done(confirmed)
}

// known returns the locations in a value that was read by a read that began at a time, and checks them.
func (w *World) known(v any, began time.Duration) part.Known {
	known := part.Known{}
	if p, ok := v.(part.Part); ok {
		known.Add(p, 0)
	}
	for shard := range allocation.Shard(shards) {
		if err := w.history.check(shard, known[shard], began); err != nil {
			w.Fail(err)
		}
	}
	return known
}

// clock reads the wall clock of a node. With an odd seed those of the nodes differ by up to a minute.
func (w *World) clock(n *simulation.Node) int64 {
	return n.Now().Wall.Add(w.ahead[n.ID().Address]).UnixNano()
}

// setClocks has the clocks of nodes differ.
func (w *World) setClocks() {
	w.ahead = map[gossip.Address]time.Duration{}
	for i := range w.nodes {
		w.ahead[shardingsim.Address(i)] = w.upTo(time.Minute) - 30*time.Second
	}
}
