// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"slices"
	"sync"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/recall"
)

// The entities of a region that are remembered: one desk for all of its shards, so that the rate at which they
// begin, and the calls of the store, are bounded however many shards come at once. Lock order: a slot, then
// the desk. What the desk wants of a slot, and calls of the store, are done with neither lock held, by a pass
// that a timer calls at once.
//
//	slot ─ Remember ──> desk ─ ─ (timer) ─ ─> pass ──> StoreCalls ──> Remembered ──> desk ─ ─> pass ──> slot

// StoreCalls has calls of a store made, and questions and answers sent to the desks of other nodes. Its methods return
// at once.
type StoreCalls interface {
	// Open and Change call the store: for each call [Region.Remembered] is called once, with its outcome.
	Open(o recall.Open)
	Change(c recall.Change)
	// Close says that a session of a set is over.
	Close(c recall.Close)
	// Ask and Give are for the desk of another node, which [Region.Remembered] hands them to: that of the node with the
	// first shard of the present layout, as this node knows, and that of the node which has asked. Either may be lost.
	Ask(t protocol.Take)
	Give(g recall.Give)
	// Over says that nothing is left of what was before the layout with a number.
	Over(layout uint16)
}

// remembers is the [cell.Rememberer] of the cells of a region. Invariant, while mu is free:
//
//	D1  while the outbox is not empty a pass is due or under way, and otherwise one is due when the desk
//	    is to be told of the time.
type remembers struct {
	region *Region
	calls  StoreCalls

	mu      sync.Mutex // Guards all fields below; nothing else is locked while it is held.
	desk    *recall.Desk
	out     recall.Outbox
	passing bool            // A pass is under way, and looks again before it ends.
	due     machine.Instant // When the timer rings; [machine.Never]: it does not.
	timer   Timer           // Calls the passes; made at first use.
}

var _ cell.Rememberer = (*remembers)(nil)

// newRemembers returns what remembers the entities of a region.
func newRemembers(r *Region, cfg recall.Config, first protocol.Layout, calls StoreCalls) *remembers {
	return &remembers{region: r, calls: calls, desk: recall.New(cfg, first), due: machine.Never}
}

// Serve implements [cell.Rememberer], as do the next four.
func (m *remembers) Serve(shard protocol.ShardID, epoch protocol.Epoch) {
	m.step(recall.Serve{Shard: shard, Epoch: epoch})
}

// Remember notes that an entity has begun, or waits to begin.
func (m *remembers) Remember(shard protocol.ShardID, id string) {
	m.step(recall.Remember{Shard: shard, ID: id})
}

// Forget notes that an entity has stopped for good.
func (m *remembers) Forget(shard protocol.ShardID, id string) {
	m.step(recall.Forget{Shard: shard, ID: id})
}

// GiveUp notes that an entity does not wait to begin any more.
func (m *remembers) GiveUp(shard protocol.ShardID, id string) {
	m.step(recall.GiveUp{Shard: shard, ID: id})
}

// Settle notes that a shard stops.
func (m *remembers) Settle(shard protocol.ShardID) (written bool) {
	m.mu.Lock()
	written = m.desk.Quiet(shard)
	m.mu.Unlock()
	m.step(recall.Settle{Shard: shard})
	return written
}

// End notes that a shard is not hosted any more.
func (m *remembers) End(shard protocol.ShardID) { m.step(recall.End{Shard: shard}) }

// step feeds an input to the desk, and has a pass come for what follows.
func (m *remembers) step(in any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.region.node.Ports.Clock.Instant()
	m.desk.Step(now, in, &m.out)
	m.arm(now)
}

// arm has a pass come when there is something to do, now or later. The caller holds mu.
func (m *remembers) arm(now machine.Instant) {
	at := now
	if m.out.Empty() {
		at = m.desk.Wake(now)
	}
	if m.passing || at >= m.due {
		return
	}
	m.due = at
	if after := max(0, at.Sub(now)); m.timer == nil {
		m.timer = m.region.node.Ports.AfterFunc(after, m.pass)
	} else {
		m.timer.Reset(after)
	}
}

// pass does what the desk wants.
func (m *remembers) pass() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.passing {
		return // It looks again.
	}
	m.passing, m.due = true, machine.Never
	now := m.region.node.Ports.Clock.Instant()
	for m.desk.Step(now, recall.Tick{}, &m.out); !m.out.Empty(); {
		out := m.out
		m.out = recall.Outbox{}
		m.mu.Unlock()
		m.carry(&out)
		m.mu.Lock()
	}
	m.passing = false
	m.arm(now)
}

// recallMost is how many entities begin with mu of a slot held: messages to the shard wait meanwhile.
const recallMost = 128

// carry does what the desk wants, without a lock.
func (m *remembers) carry(out *recall.Outbox) {
	for _, c := range out.Close {
		m.calls.Close(c)
	}
	for _, o := range out.Open {
		m.calls.Open(o)
	}
	for _, c := range out.Change {
		m.calls.Change(c)
	}
	for _, t := range out.Ask {
		m.calls.Ask(t)
	}
	for _, g := range out.Give {
		m.calls.Give(g)
	}
	for _, layout := range out.Over {
		m.calls.Over(layout)
	}
	for _, n := range out.Start {
		for ids := range slices.Chunk(n.IDs, recallMost) {
			m.tell(n.Shard, func(x cell.Recall, now machine.Instant, out *cell.Actions) { x.Start(now, m.begin(n.Shard, ids), out) })
		}
	}
	for _, n := range out.Kept {
		m.tell(n.Shard, func(x cell.Recall, now machine.Instant, out *cell.Actions) { x.Kept(now, n.IDs, out) })
	}
	for _, n := range out.Unkept {
		m.tell(n.Shard, func(x cell.Recall, now machine.Instant, out *cell.Actions) { x.Unkept(now, n.IDs, n.Why, out) })
	}
	for _, shard := range out.Settled {
		m.tell(shard, func(x cell.Recall, now machine.Instant, out *cell.Actions) { x.Settled(now, out) })
	}
}

// begin returns which entities are to begin all the same. mu of the slot is held, so that none of them stops for good
// between this and its begin.
func (m *remembers) begin(shard protocol.ShardID, ids []string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.desk.Begin(shard, ids)
}

func (m *remembers) tell(shard protocol.ShardID, f func(cell.Recall, machine.Instant, *cell.Actions)) {
	sl := m.region.Slot(shard)
	if sl == nil {
		return // Its layout is gone.
	}
	sl.Step(func(c *cell.Cell, out *cell.Actions) { f(c.Recall(), sl.now(), out) })
}

// Remembered says what has become of a call of a [StoreCalls], a [recall.Opened] or a [recall.Changed], or hands over
// what the desk of another node has sent, a [protocol.Asked] or a [protocol.Given]. Of a region that remembers nothing
// it does nothing.
func (r *Region) Remembered(in any) { r.recall(in) }

// RecallRate changes how many entities begin in a second without a message.
func (r *Region) RecallRate(entities int) { r.recall(recall.Rate{Entities: entities}) }

// recall feeds an input to the desk, if entities are remembered.
func (r *Region) recall(in any) {
	if r.remembers != nil {
		r.remembers.step(in)
	}
}

// Remembering returns the counters of what is remembered; false if nothing is.
func (r *Region) Remembering() (recall.Stats, bool) {
	if r.remembers == nil {
		return recall.Stats{}, false
	}
	r.remembers.mu.Lock()
	defer r.remembers.mu.Unlock()
	return r.remembers.desk.Stats(), true
}

// Remembers returns what is known of the remembered entities of a shard; false if nothing is remembered.
func (r *Region) Remembers(shard protocol.ShardID) (recall.Status, bool) {
	if r.remembers == nil {
		return recall.Status{}, false
	}
	r.remembers.mu.Lock()
	defer r.remembers.mu.Unlock()
	return r.remembers.desk.Status(shard), true
}
