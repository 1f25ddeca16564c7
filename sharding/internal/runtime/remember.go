// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"slices"
	"sync"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/remembering"
)

// The entities of a region that are remembered: one machine for all of its shards, so that the rate at which they
// begin, and the calls of the store, are bounded however many shards come at once. Lock order: a slot, then
// the machine. What the machine wants of a slot, and calls of the store, are done with neither lock held, by a pass
// that a timer calls at once.
//
//	slot ─ Remember ──> machine ─ ─ (timer) ─ ─> pass ──> StoreCalls ──> Remembered ──> machine ─ ─> pass ──> slot

// StoreCalls has calls of a store made, and questions and answers sent to the machines of other nodes. Its methods
// return at once.
type StoreCalls interface {
	// Open and Change call the store: for each call [Region.Remembered] is called once, with its outcome.
	Open(o remembering.Open)
	Change(c remembering.Change)
	// Close says that a session of a set is over.
	Close(c remembering.Close)
	// Ask and Answer are for the machine of another node, which [Region.Remembered] hands them to: that of the node
	// with the first shard of the present layout, as this node knows, and that of the node which has asked. Either may
	// be lost.
	Ask(t protocol.ExportRequest)
	Answer(g remembering.Answer)
	// Over says that nothing is left of what was before the layout with a number.
	Over(layout uint16)
}

// rememberPort is the [cell.RememberPort] of the cells of a region. Invariant, while mu is free:
//
//	D1  while the outbox is not empty a pass is due or under way, and otherwise one is due when the machine
//	    is to be told of the time.
type rememberPort struct {
	region *Region
	calls  StoreCalls

	mu      sync.Mutex // Guards all fields below; nothing else is locked while it is held.
	machine *remembering.Machine
	out     remembering.Outbox
	passing bool            // A pass is under way, and looks again before it ends.
	due     machine.Instant // When the timer rings; [machine.Never]: it does not.
	timer   Timer           // Calls the passes; made at first use.
}

var _ cell.RememberPort = (*rememberPort)(nil)

// newRemembers returns what remembers the entities of a region.
func newRemembers(r *Region, cfg remembering.Config, first protocol.Layout, calls StoreCalls) *rememberPort {
	return &rememberPort{region: r, calls: calls, machine: remembering.New(cfg, first), due: machine.Never}
}

// Serve implements [cell.RememberPort], as do the next four.
func (m *rememberPort) Serve(shard protocol.ShardID, epoch protocol.Epoch) {
	m.step(remembering.Serve{Shard: shard, Epoch: epoch})
}

// Remember notes that an entity has begun, or waits to begin.
func (m *rememberPort) Remember(shard protocol.ShardID, id string) {
	m.step(remembering.Remember{Shard: shard, ID: id})
}

// Forget notes that an entity has stopped for good.
func (m *rememberPort) Forget(shard protocol.ShardID, id string) {
	m.step(remembering.Forget{Shard: shard, ID: id})
}

// GiveUp notes that an entity does not wait to begin any more.
func (m *rememberPort) GiveUp(shard protocol.ShardID, id string) {
	m.step(remembering.GiveUp{Shard: shard, ID: id})
}

// Flush notes that a shard stops.
func (m *rememberPort) Flush(shard protocol.ShardID) (written bool) {
	m.mu.Lock()
	written = m.machine.Quiet(shard)
	m.mu.Unlock()
	m.step(remembering.Flush{Shard: shard})
	return written
}

// End notes that a shard is not hosted any more.
func (m *rememberPort) End(shard protocol.ShardID) { m.step(remembering.End{Shard: shard}) }

// step feeds an input to the machine, and has a pass come for what follows.
func (m *rememberPort) step(in any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.region.node.Ports.Clock.Instant()
	m.machine.Step(now, in, &m.out)
	m.arm(now)
}

// arm has a pass come when there is something to do, now or later. The caller holds mu.
func (m *rememberPort) arm(now machine.Instant) {
	at := now
	if m.out.Empty() {
		at = m.machine.Wake(now)
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

// pass does what the machine wants.
func (m *rememberPort) pass() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.passing {
		return // It looks again.
	}
	m.passing, m.due = true, machine.Never
	now := m.region.node.Ports.Clock.Instant()
	for m.machine.Step(now, remembering.Tick{}, &m.out); !m.out.Empty(); {
		out := m.out
		m.out = remembering.Outbox{}
		m.mu.Unlock()
		m.carry(&out)
		m.mu.Lock()
	}
	m.passing = false
	m.arm(now)
}

// maxStarts is how many entities begin while mu of a slot is held once: messages to the shard wait meanwhile.
const maxStarts = 128

// carry does what the machine wants, without a lock.
func (m *rememberPort) carry(out *remembering.Outbox) {
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
	for _, g := range out.Answer {
		m.calls.Answer(g)
	}
	for _, layout := range out.Over {
		m.calls.Over(layout)
	}
	for _, n := range out.Start {
		for ids := range slices.Chunk(n.IDs, maxStarts) {
			m.tell(n.Shard, func(x cell.Remembering, now machine.Instant, out *cell.Actions) {
				x.Start(now, m.begin(n.Shard, ids), out)
			})
		}
	}
	for _, n := range out.Kept {
		m.tell(n.Shard, func(x cell.Remembering, now machine.Instant, out *cell.Actions) { x.Kept(now, n.IDs, out) })
	}
	for _, n := range out.Unkept {
		m.tell(n.Shard, func(x cell.Remembering, now machine.Instant, out *cell.Actions) { x.Unkept(now, n.IDs, n.Why, out) })
	}
	for _, shard := range out.Flushed {
		m.tell(shard, func(x cell.Remembering, now machine.Instant, out *cell.Actions) { x.Flushed(now, out) })
	}
}

// begin returns which entities are to begin all the same. mu of the slot is held, so that none of them stops for good
// between this and its begin.
func (m *rememberPort) begin(shard protocol.ShardID, ids []string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.machine.Begin(shard, ids)
}

func (m *rememberPort) tell(shard protocol.ShardID, f func(cell.Remembering, machine.Instant, *cell.Actions)) {
	sl := m.region.Slot(shard)
	if sl == nil {
		return // Its layout is gone.
	}
	sl.Step(func(c *cell.Cell, out *cell.Actions) { f(c.Remembering(), sl.now(), out) })
}

// Remembered says what has become of a call of a [StoreCalls], a [remembering.Opened] or a [remembering.Changed], or
// hands over what the machine of another node has sent, a [protocol.Asked] or a [protocol.ExportReply]. Of a region
// that remembers nothing it does nothing.
func (r *Region) Remembered(in any) { r.stepRemembering(in) }

// SetRecoveryRate changes how many entities begin in a second without a message.
func (r *Region) SetRecoveryRate(entities int) {
	r.stepRemembering(remembering.Rate{Entities: entities})
}

// stepRemembering feeds an input to the remembering machine, if entities are remembered.
func (r *Region) stepRemembering(in any) {
	if r.remembers != nil {
		r.remembers.step(in)
	}
}

// Remembering returns the counters of what is remembered; false if nothing is.
func (r *Region) Remembering() (remembering.Stats, bool) {
	if r.remembers == nil {
		return remembering.Stats{}, false
	}
	r.remembers.mu.Lock()
	defer r.remembers.mu.Unlock()
	return r.remembers.machine.Stats(), true
}

// Remembers returns what is known of the remembered entities of a shard; false if nothing is remembered.
func (r *Region) Remembers(shard protocol.ShardID) (remembering.Status, bool) {
	if r.remembers == nil {
		return remembering.Status{}, false
	}
	r.remembers.mu.Lock()
	defer r.remembers.mu.Unlock()
	return r.remembers.machine.Status(shard), true
}
