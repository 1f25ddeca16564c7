// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/runtime"
	world "github.com/quorate/quorate/simulation"
)

// The [Ledger] is told what the cells, the nodes and the clients of a world do, and checks each step at once: first
// hosting and instances, then messages from offer to outcome, then coordinators and the ends of nodes. In the end
// Pending and Vanished find the messages without an outcome. ledger_homes.go and ledger_bounds.go check homes and
// moves.

// Ledger knows every message and every instance of a world, and finds states and steps that the protocol excludes. It
// is independent of the machines that it checks.
type Ledger struct {
	world  *world.World
	Store  *Store
	nodes  map[gossip.NodeID]*Cells
	cameAt time.Duration // When the last node started.

	messages  map[uint64]*record
	accepted  map[path]uint64 // The last place given on a path.
	processed map[path]uint64 // The last place processed on a path.
	instances map[string]map[gossip.NodeID]protocol.Epoch
	epochs    map[string]protocol.Epoch           // By entity: the highest epoch of an instance.
	hosts     map[protocol.ShardID]protocol.Epoch // The last epoch of a home.
	begins    map[string]protocol.Epoch           // By entity: the highest epoch that processed.
	deaths    map[protocol.ShardID]time.Duration  // When a host of the shard ended, or was given up, last.
	behind    map[string]time.Duration            // When an instance of an entity was left behind last, with the messages of its run.
	leaders   map[gossip.NodeID]protocol.Term
	terms     map[control.CoordinatorStarted]gossip.NodeID // The node of each term; a term is of one node for ever.
	stops     map[stop]time.Duration                       // Since when a shard is being stopped.
	given     map[termShard]uint64                         // The last version in which a coordinator gave a shard a home.
	layouts   map[uint16]protocol.Layout                   // Those that nodes were told of.
	hot       map[string]bool                              // Entities that are flooded.
	drift     time.Duration                                // How far clocks may be apart in what they make of a deadline.
	mailbox   int                                          // How many messages may wait for an entity.
	stopLimit time.Duration                                // How long a stop may last; zero: not checked.
	bounds    bounds
	homeless  map[gossip.NodeID]missingHome // By coordinator.
	drops     map[cell.Drop]int
	moves     map[protocol.ShardID][2]arrival // The last two moves of each shard.
	longest   WaitRecord
	memories  memories
	archive   *archive
	revisions revisions
	leases    *leaseStore // Nil in a world without leases.

	counts Counts
}

// Counts sum up what happened in a run.
type Counts struct {
	// Waited counts how often a client found no room, Joined how often a tell went straight
	// into the mailbox of an entity of its node, and Followed how often an
	// entity began a message in a run, right after another.
	Waited, Joined, Followed int
	// Batches counts the envelopes with messages of several cells, and Unnamed the messages in
	// them that were refused, since the number of their stream was not known.
	Batches, Unnamed int
	// Gathered counts the envelopes with several replies.
	Gathered int
	// Replaced counts workers that took the place of those that entities kept.
	Replaced int
	// Slow counts messages that entities began in the slow class, as their last one took long.
	Slow int
	// Spared counts how often a node knew of its standing without a reading of its clock,
	// by the counter, and Readings how often by its clock.
	Spared, Readings                                        int
	Accepted, Refused, Processed, Failed, Unknown, TimedOut int
	// Delivered counts messages that reached a mailbox and were not processed, without
	// their sender having been told: the host died, or a tell was refused.
	Delivered int
	// TakenBack counts asks whose messages were taken back by their askers; part of
	// Failed.
	TakenBack int
	// Expired counts asks whose deadline passed before they began; part of Failed.
	Expired int
	// Abandoned counts failures at an origin that ended in order; part of Failed.
	Abandoned int
	// Evicted counts instances that were stopped to make room, Over how often a node was found with
	// more than its limit.
	Evicted, Over int
	// LeftBehind counts entities that did not stop, and whose shard moved all the
	// same.
	LeftBehind int
	// Moves counts moves by how they ended.
	Moves map[control.Outcome]int
	Stops map[cell.StopReason]int
	Homes int // How often a shard got a home.
	// Relaid counts how often a node heard of layouts, Handed the messages that the cell of a retired shard
	// handed on.
	Relaid, Handed int
	Terms          int // How often a coordinator started.
	Suspects       int // Violations that the machines themselves reported.
	Writes         Writes
	Memories       Memories
	Archived       ArchiveCounts
	Lies           int // What a hostile peer said.
	// Revisions counts the numbers of shards in use under which something ran.
	Revisions int
	// Leased counts the instances that started under a lease, LeasesLost how often a node has lost one.
	Leased, LeasesLost int
	// Strangers counts frames that were dropped because their sender is no member, Forged
	// the frames of members that were refused.
	Strangers, Forged int
}

// Add adds the counts of another run.
func (c *Counts) Add(o Counts) { add(reflect.ValueOf(c).Elem(), reflect.ValueOf(o)) }

func add(to, from reflect.Value) {
	switch to.Kind() {
	case reflect.Int:
		to.SetInt(to.Int() + from.Int())
	case reflect.Struct:
		for i := range to.NumField() {
			add(to.Field(i), from.Field(i))
		}
	case reflect.Map:
		if to.IsNil() {
			to.Set(reflect.MakeMap(to.Type()))
		}
		for key, n := range from.Seq2() {
			sum := reflect.New(to.Type().Elem()).Elem()
			if before := to.MapIndex(key); before.IsValid() {
				sum.Set(before)
			}
			add(sum, n)
			to.SetMapIndex(key, sum)
		}
	default:
		panic("simulation: a count is a " + to.Kind().String())
	}
}

// WaitRecord is how long a message waited until it was processed.
type WaitRecord struct {
	For        time.Duration
	ID         uint64
	At         time.Duration // When the message was accepted.
	Shard      protocol.ShardID
	Origin, By gossip.NodeID
}

// stop is a shard that is being stopped at a node.
type stop struct {
	node  gossip.NodeID
	shard protocol.ShardID
}

// termShard names a shard in the term of a coordinator. Terms begin again with each cluster.
type termShard struct {
	born  int64
	term  protocol.Term
	shard protocol.ShardID
}

// path names messages that must keep their order: those of one origin to one entity.
type path struct {
	origin gossip.NodeID
	entity string
}

// record is what the ledger knows of one message.
type record struct {
	path          path
	place         uint64
	ask           bool
	processed     bool
	delivered     bool
	timedOut      bool
	clientRefused bool          // The client was told at once that its message is not accepted.
	hostRefused   bool          // The host refused the message.
	left          bool          // A copy has left the node of its origin.
	astray        bool          // A copy waits in the lane to an earlier home, and may leave yet.
	handed        bool          // A lane has had the message.
	given         bool          // The job of its entity has had the message.
	blind         bool          // A copy went to a node whose clock was not known.
	deadline      time.Duration // When its asker stops waiting; zero: never.
	failed        bool
	routed        bool // The origin knew the home of the shard.
	shard         protocol.ShardID
	offered       time.Duration // When the client offered the message.
	at            time.Duration // When the message was accepted.
	code          protocol.Code
}

func newLedger(w *world.World) *Ledger {
	l := &Ledger{
		world:     w,
		nodes:     make(map[gossip.NodeID]*Cells),
		messages:  make(map[uint64]*record),
		accepted:  make(map[path]uint64),
		processed: make(map[path]uint64),
		instances: make(map[string]map[gossip.NodeID]protocol.Epoch),
		epochs:    make(map[string]protocol.Epoch),
		hosts:     make(map[protocol.ShardID]protocol.Epoch),
		begins:    make(map[string]protocol.Epoch),
		deaths:    make(map[protocol.ShardID]time.Duration),
		behind:    make(map[string]time.Duration),
		leaders:   make(map[gossip.NodeID]protocol.Term),
		terms:     make(map[control.CoordinatorStarted]gossip.NodeID),
		stops:     make(map[stop]time.Duration),
		given:     make(map[termShard]uint64),
		layouts:   make(map[uint16]protocol.Layout),
		homeless:  make(map[gossip.NodeID]missingHome),
		drops:     make(map[cell.Drop]int),
		moves:     make(map[protocol.ShardID][2]arrival),
		counts:    Counts{Moves: make(map[control.Outcome]int), Stops: make(map[cell.StopReason]int)},
	}
	l.Store = newStore(l, w.Seed())
	l.revisions = revisions{
		known: make(map[gossip.NodeID]control.Scale), under: make(map[string]map[gossip.NodeID]control.Scale), counts: make(map[uint64]uint32),
	}
	l.memories = memories{ledger: l, instances: make(map[string][]*instance)}
	return l
}

func (l *Ledger) violate(format string, values ...any) {
	l.world.Fail(fmt.Errorf(format, values...))
}

// mayHost reports whether a node can be hosting now: it runs, is not frozen, and its own clock shows standing. Of other
// nodes it is promised only that they begin nothing (docs/sharding.md, "An entity runs on at most one node that may
// host.").
func (l *Ledger) mayHost(id gossip.NodeID) bool {
	n := l.world.Node(id.Address)
	c := l.nodes[id]
	return n != nil && n.ID() == id && c != nil && !n.Frozen() && c.standing(n.Now().Mono)
}

// lives reports whether a node runs, or is frozen.
func (l *Ledger) lives(id gossip.NodeID) bool {
	n := l.world.Node(id.Address)
	return n != nil && n.ID() == id
}

// hosting checks that the epochs of a shard rise from home to home. If its streams begin again, an earlier home was
// given up with what it had.
func (l *Ledger) hosting(node gossip.NodeID, s protocol.ShardID, h protocol.StartHosting) {
	l.counts.Homes++
	if !l.hosts[s].Less(h.Epoch) {
		// Old orders reach a node that was frozen and is fenced: it has no standing.
		if l.mayHost(node) {
			l.violate("I1: %s begins to host shard %d under epoch %s, after epoch %s", node, s, h.Epoch, l.hosts[s])
		}
		return
	}
	if h.Base == h.Epoch {
		l.deaths[s] = l.world.Now()
	}
	l.hosts[s] = h.Epoch
}

// started notes an instance, and checks that it is the only one that can run.
func (l *Ledger) started(node gossip.NodeID, e *cell.Entity) {
	all := l.instances[e.ID()]
	if all == nil {
		all = make(map[gossip.NodeID]protocol.Epoch)
		l.instances[e.ID()] = all
	}
	for other := range all {
		if other != node && l.mayHost(other) && l.mayHost(node) {
			l.violate("I1: entity %s starts at %s while an instance lives at %s", e.ID(), node, other)
		}
	}
	if last := l.epochs[e.ID()]; e.Epoch().Less(last) && l.mayHost(node) {
		l.violate("I1: entity %s starts at %s under epoch %s, after epoch %s", e.ID(), node, e.Epoch(), last)
	} else if last.Less(e.Epoch()) {
		l.epochs[e.ID()] = e.Epoch()
	}
	all[node] = e.Epoch()
	l.Store.claim(node, e)
}

// noteLayouts notes the layouts that a node was told of.
func (l *Ledger) noteLayouts(r control.UseLayouts) {
	l.counts.Relaid++
	for _, in := range r.Layouts {
		l.layouts[in.Number] = in
	}
}

// stopping checks that an instance which is told that no other one has its entity has no successor. That none starts
// before it has stopped is checked when one starts.
func (l *Ledger) stopping(node gossip.NodeID, e *cell.Entity, why cell.StopReason) {
	l.counts.Stops[why]++
	if !why.Sole() {
		return
	}
	for other, epoch := range l.instances[e.ID()] {
		if other != node && e.Epoch().Less(epoch) {
			l.violate("I1: the stop of entity %s at %s, of epoch %s, is told %q, while its successor of epoch %s lives at %s",
				e.ID(), node, e.Epoch(), why, epoch, other)
		}
	}
}

func (l *Ledger) stopped(node gossip.NodeID, entity string) { delete(l.instances[entity], node) }

// gone forgets the instances of a node that ended.
func (l *Ledger) gone(node gossip.NodeID) {
	for _, all := range l.instances {
		delete(all, node)
	}
	delete(l.leaders, node)
	if c := l.nodes[node]; c != nil {
		c.region.EachSlot(func(sl *runtime.Slot) {
			delete(l.stops, stop{node, sl.Shard()})
			if sl.Info().Hosting {
				l.deaths[sl.Shard()] = l.world.Now()
			}
		})
	}
}

// offer notes a message that a client wants to be accepted.
func (l *Ledger) offer(id uint64, origin gossip.NodeID, s protocol.ShardID, entity string, ask bool, patience time.Duration) {
	r := &record{path: path{origin, entity}, ask: ask, shard: s, offered: l.world.Now(), at: l.world.Now()}
	if ask && patience > 0 {
		r.deadline = l.world.Now() + patience
	}
	l.messages[id] = r
	l.counts.Accepted++
}

// handed notes that a lane has a message, and whether what is left of its deadline counts
// from now wherever it is.
func (l *Ledger) handed(id uint64, timed bool) {
	if r := l.messages[id]; r != nil { // Else nobody has sent it.
		r.handed = true
		r.blind = r.blind || !timed
	}
}

// accept notes that a message was accepted, which gives it a place on its path.
func (l *Ledger) accept(id uint64, routed bool) {
	r := l.messages[id]
	l.accepted[r.path]++
	r.place, r.at, r.routed = l.accepted[r.path], l.world.Now(), routed
}

// clientRefused records that a client was told that its message is not accepted.
func (l *Ledger) clientRefused(id uint64) {
	l.messages[id].clientRefused = true
	l.counts.Refused++
}

// hostRefused records that a host refused a message.
func (l *Ledger) hostRefused(id uint64) {
	if r := l.messages[id]; r != nil { // Else nobody has sent it, and its not being processed is right.
		r.hostRefused = true
	}
}

func (l *Ledger) delivered(id uint64) { l.messages[id].delivered = true }

// timeout notes that a client was told that the outcome of its message is unknown, and checks that a lane has had it,
// or that a job has it and may have begun it.
func (l *Ledger) timeout(id uint64) {
	r := l.messages[id]
	r.timedOut = true
	l.counts.TimedOut++
	if !r.handed && !r.given {
		l.violate("I20: message %d was with its node when its asker gave up, and the asker is told that its outcome is unknown", id)
	}
}

// takenBack notes that an asker has taken its message back.
func (l *Ledger) takenBack(id uint64) {
	l.counts.TakenBack++
	l.outcome(id, protocol.CodeNotDelivered)
}

// drop notes that a cell dropped a message. Route epochs rise from hop to hop, so
// that none goes round and round.
func (l *Ledger) drop(why cell.Drop, id uint64) {
	l.drops[why]++
	if why == cell.DropHops {
		l.violate("I20: message %d was passed on %d times", id, cell.MaxHops)
	}
}

// safe reports whether a code promises that the message was not processed (docs/sharding.md, "the same, on a node that
// may not host").
func safe(c protocol.Code) bool {
	switch c {
	case protocol.CodeUnreachable, protocol.CodeOverloaded, protocol.CodeNotDelivered, protocol.CodeNoStanding, protocol.CodeExpired:
		return true
	default:
		return false
	}
}

// outcome notes what the sender was told.
func (l *Ledger) outcome(id uint64, code protocol.Code) {
	r := l.messages[id]
	if code == protocol.CodeOK {
		if !r.processed {
			l.violate("I20: message %d was answered and never processed", id)
		}
		return
	}
	r.failed, r.code = true, code
	l.counts.Failed++
	if code == protocol.CodeUnknownOutcome {
		l.counts.Unknown++
	}
	if code == protocol.CodeExpired {
		l.counts.Expired++
	}
	if l.nodes[r.path.origin].ended {
		l.counts.Abandoned++
	}
	// What the job of an entity has had when the entity was left behind may have begun, as far as the cell knows, and
	// what a lane has had when the node ends may still leave (docs/sharding.md, "the message had gone into a
	// connection, or its entity had begun, and no answer came in time").
	if code == protocol.CodeUnknownOutcome && !r.left && !r.astray && !r.given && !r.processed && !(r.handed && l.nodes[r.path.origin].ended) {
		l.violate("I20: message %d has never left its node, and its sender is told that its outcome is unknown", id)
	}
	if r.processed && safe(code) {
		l.violate("I20: message %d was processed, and its sender told %q", id, code)
	}
}

// begin checks that a message may be processed here and now.
func (l *Ledger) begin(node gossip.NodeID, s protocol.ShardID, e *cell.Entity, id uint64, origin gossip.NodeID) {
	r := l.messages[id]
	if c := l.nodes[node]; !c.standing(c.looked()) {
		l.violate("I14: %s begins message %d without standing", node, id)
	}
	switch {
	case r == nil || r.path.origin != origin || r.path.entity != e.ID():
		l.violate("I20: %s processes message %d, which nobody sent to %s", node, id, e.ID())
		return
	case r.processed:
		l.violate("I20: %s processes message %d to %s a second time", node, id, e.ID())
	case r.clientRefused || r.failed && safe(r.code):
		l.violate("I20: %s processes message %d, whose sender was told %q", node, id, r.code)
	case r.place <= l.processed[r.path]:
		l.violate("I20: %s processes message %d, place %d of its path, after place %d", node, id, r.place, l.processed[r.path])
	case e.Epoch().Less(l.begins[e.ID()]):
		l.violate("I1: %s processes a message of %s in shard %d under epoch %s, after epoch %s", node, e.ID(), s, e.Epoch(), l.begins[e.ID()])
	}
	// (docs/sharding.md, "From the first answer between two processes on, they know how long a message was in flight,
	// except for the drift of their clocks since the last answer.")
	if late := l.world.Now() - r.deadline - l.drift; r.deadline > 0 && late > 0 && !r.blind {
		l.violate("I20: %s begins message %d %v after its deadline", node, id, late)
	}
	r.processed = true
	l.Store.write(node, e, r.path, r.place)
	l.counts.Processed++
	if wait := l.world.Now() - r.offered; r.routed && wait > l.longest.For && !l.hot[r.path.entity] {
		l.longest = WaitRecord{For: wait, ID: id, At: r.offered, Shard: s, Origin: origin, By: node}
	}
	l.processed[r.path] = r.place
	l.begins[e.ID()] = e.Epoch()
}

// observe follows coordinators and the ends of nodes.
func (l *Ledger) observe(o world.Observation) {
	switch e := o.Event.(type) {
	case world.Ended:
		l.gone(o.Node.ID())
	case control.CoordinatorStarted:
		if other, ok := l.terms[e]; ok {
			l.violate("I29: the coordinator of %s at %s starts under term %s, which one at %s had", e.Kind, o.Node.ID(), e.Term, other)
		}
		if l.terms[e] = o.Node.ID(); e.Kind != KindName { // A hostile peer has registered it.
			return
		}
		l.counts.Terms++
		for other, term := range l.leaders {
			if l.mayHost(other) && l.mayHost(o.Node.ID()) {
				l.violate("I3: the coordinator of term %s starts at %s while that of term %s runs at %s", e.Term, o.Node.ID(), term, other)
			}
		}
		l.leaders[o.Node.ID()] = e.Term
	case control.CoordinatorStopped:
		if e.Kind == KindName {
			delete(l.leaders, o.Node.ID())
		}
	case control.HomesChanged:
		if e.Kind == KindName {
			l.homes(o.Node.ID(), e)
		}
	case control.MoveEnded:
		if e.Kind == KindName {
			l.moved(o.Node.ID(), e.Moved)
		}
	case control.Violation:
		l.counts.Suspects++
		l.violate("the machine of %s reports: shard %d: %s", o.Node.ID(), e.Shard, e.Detail)
	}
}

// bounded checks that no more messages wait for an entity than may (docs/sharding.md, "A mailbox may hold more than
// `mailbox-size`").
func (l *Ledger) bounded(node gossip.NodeID, e *cell.Entity) {
	if waiting := e.Waiting(); waiting > l.mailbox {
		l.violate("I36: %d messages wait for entity %s at %s, at most %d may", waiting, e.ID(), node, l.mailbox)
	}
}

// Longest returns the longest wait of a message that was processed since the last
// call, from when its client came with it. Messages of a node that had just started,
// and did not know the home of their shard, do not count, nor do those to entities
// that are flooded.
func (l *Ledger) Longest() WaitRecord {
	w := l.longest
	l.longest = WaitRecord{}
	return w
}

// Counts returns the sums so far.
func (l *Ledger) Counts() Counts {
	c := l.counts
	c.Writes = l.Store.counts
	c.Memories = l.memories.counts
	c.Moves, c.Stops = maps.Clone(l.counts.Moves), maps.Clone(l.counts.Stops)
	for _, r := range l.messages {
		if !r.processed && r.delivered && !r.failed && !r.timedOut {
			c.Delivered++
		}
	}
	return c
}

// Pending returns the messages without an outcome whose origin lives, sorted:
// neither processed, nor failed, nor in a mailbox whose host may have died.
func (l *Ledger) Pending() []uint64 {
	var ids []uint64
	for id, r := range l.messages {
		if !r.processed && !r.failed && !r.timedOut && !r.clientRefused && !r.delivered && l.lives(r.path.origin) {
			ids = append(ids, id)
		}
	}
	sortIDs(ids)
	return ids
}

// Vanished returns the messages that were acknowledged and not processed, although nobody refused them and no home of
// their shard has ended since, sorted (docs/sharding.md, "When its host dies: once or not at all").
func (l *Ledger) Vanished() []uint64 {
	var ids []uint64
	for id, r := range l.messages {
		if r.delivered && !r.processed && !r.failed && !r.hostRefused && l.lastLoss(r) < r.at {
			ids = append(ids, id)
		}
	}
	sortIDs(ids)
	return ids
}

// lastLoss returns the last time at which a message could have been lost: a host of its shard ended, or its entity was
// abandoned.
func (l *Ledger) lastLoss(r *record) time.Duration {
	last := l.behind[r.path.entity]
	hash := protocol.HashOf(r.path.entity)
	for s, at := range l.deaths {
		if of, known := l.layouts[s.Layout()]; s == r.shard || known && of.ShardOf(hash) == s {
			last = max(last, at)
		}
	}
	return last
}

func sortIDs(ids []uint64) { slices.Sort(ids) }
