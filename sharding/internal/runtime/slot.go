// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/passivation"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// Slot is a cell with its lock: first what is asked of it, then what it is told by others than
// messages, which have files of their own.

// Slot holds the cell of one shard: the state machine, the mutex that gives one goroutine
// exclusive use of it, and what carries out its actions. The mutex is held for the
// bookkeeping of one message; under it the lock of a lane and those behind the ports may be
// taken, never that of another slot, and never is code of a program run.
type Slot struct {
	region     *Region
	shard      protocol.ShardID
	layout     *layout
	due        atomic.Bool   // The slot is in the list of acknowledgements.
	remoteHint atomic.Bool   // The last message went to another node: a hint for the next message.
	serves     atomic.Bool   // Messages to the shard went into mailboxes here, after the last order of the control machine.
	retired    atomic.Bool   // The shard is retired, and everything of its cell is with the cells of the next layout.
	hostings   atomic.Uint32 // How many hostings have ended. Written with mu held.
	lease      permit        // Whether the lease of the shard is held.

	mu           sync.Mutex // Guards all fields below.
	cell         *cell.Cell
	link         link // Beside the lock and the cell, since every message to another node looks at it.
	out          cell.Actions
	asks         askTable
	laneFull     bool                     // The last step found the lane full.
	waiters      map[*cell.Message]Waiter // Senders that wait for room, by message; made at first use.
	timer        Timer                    // The timer of OpWake; made at first use.
	hostingValue any                      // What the owner of the kind keeps of the hosting, see Region.HostingValue.
	busy         time.Duration            // How long entities have been handling messages, all together.
	lastAsker    *peer                    // The node that was sent a reply last; nil before the first.
	moved        []*cell.Message          // What the cell hands on as it is retired.
	round        *round                   // The round of acknowledgements that goes on with mu held; else nil.
}

// Kind returns the name of the kind.
func (sl *Slot) Kind() string { return sl.region.name }

// Shard returns the shard of the cell.
func (sl *Slot) Shard() protocol.ShardID { return sl.shard }

// Do calls f with mu held. Nothing that f does asks for an action.
func (sl *Slot) Do(f func(c *cell.Cell)) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	f(sl.cell)
}

// Step calls f with mu held, and carries out the actions that follow.
func (sl *Slot) Step(f func(c *cell.Cell, out *cell.Actions)) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	f(sl.cell, &sl.out)
	sl.carry(nil)
}

// Info returns a snapshot of the cell.
func (sl *Slot) Info() cell.Info {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	return sl.cell.Info()
}

// Entity returns a snapshot of the record of an entity; false if it is passive.
func (sl *Slot) Entity(id string) (cell.EntityInfo, bool) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	return sl.cell.Entity(id)
}

// Tally adds the counters of the cell to t.
func (sl *Slot) Tally(t *cell.Tally) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	sl.cell.Tally(t)
}

// Waiting returns how many senders wait for room.
func (sl *Slot) Waiting() int {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	return len(sl.waiters)
}

// Asking returns how many asks have no reply yet.
func (sl *Slot) Asking() int {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	return len(sl.asks.open)
}

// Apply feeds an input of the control machine to the cell.
func (sl *Slot) Apply(in protocol.CellInput) {
	if r, ok := in.(protocol.RetireShard); ok {
		sl.region.handOn(sl, r)
		return
	}
	sl.mu.Lock()
	defer sl.mu.Unlock()
	sl.link.written(sl.cell)
	homes := sl.cell.Homes()
	sl.cell.Apply(sl.now(), in, &sl.out)
	sl.serves.Store(sl.cell.Serves())
	if sl.cell.Homes() != homes {
		sl.asks.settleEarly(sl.cell)
	}
	sl.carry(nil)
}

// now reads the clock of the node.
func (sl *Slot) now() machine.Instant { return sl.region.node.Ports.Clock.Instant() }

// flush transmits the messages of the cell that wait for a node. It reports false when the
// lane to the node does not take them all.
func (sl *Slot) flush(now machine.Instant, to gossip.NodeID) bool {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	sl.cell.Flush(now, to, &sl.out)
	sl.carry(nil)
	return !sl.laneFull
}

// sweep looks at some entities of the shard, and reports whether those were the last.
func (sl *Slot) sweep() (over bool) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	over = sl.cell.Maintenance().Sweep(sl.now(), sweepChunk, &sl.out)
	sl.cell.Handoff().Sweep(sl.now(), &sl.out)
	sl.carry(nil)
	return over
}

// evict stops an instance of the shard to make room, if that can be.
func (sl *Slot) evict(by *limiter, e *cell.Entity, s passivation.Handle) cell.Verdict {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	v := sl.cell.Maintenance().Evict(sl.now(), by, e, s, &sl.out)
	sl.carry(nil)
	return v
}

// abandon ends the cell of a node that has ended, with all asks and the timer.
func (sl *Slot) abandon() {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	sl.cell.Apply(sl.now(), protocol.AbandonHosting{}, &sl.out)
	sl.carry(nil)
	sl.asks.completeAll("this node has ended", func(*Ask) bool { return true })
	if sl.timer != nil {
		sl.timer.Stop()
	}
}
