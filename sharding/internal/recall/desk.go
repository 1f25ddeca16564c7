// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package recall

import (
	"cmp"
	"maps"
	"slices"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// A desk takes one input after the other: what cells say is noted with the shard, what the store says is
// in calls.go, and after each input whatever can begin begins, calls there and entities in starts.go. What
// is left of former layouts is taken over by taker.go and giver.go.

// Desk serves the shards of a kind that a node hosts.
type Desk struct {
	cfg     Config
	layouts []protocol.Layout         // In force, by number.
	retired map[protocol.ShardID]bool // Of the former one of two layouts, the shards that are retired.
	shards  map[protocol.ShardID]*shard
	order   []*shard     // All of shards, by their numbers.
	sets    map[Set]*set // All that may be called: those of shards, and those of the giver.

	ready    []*set          // Want a call of the store, the first one first.
	calls    int             // Under way.
	sessions uint64          // The number of the last session, or question.
	retry    machine.Instant // When the first of the closed sets goes on; [machine.Never]: there is none.

	closing  []Close         // For the next outbox.
	settling int             // Shards that are to be told when everything is written.
	starting []*shard        // Have entities to start; the first one goes on.
	next     machine.Instant // When the next entity may begin.

	taker taker
	giver giver
	stats Stats
}

// New returns a desk that serves no shard, of a kind with one layout.
func New(cfg Config, layout protocol.Layout) *Desk {
	d := &Desk{
		cfg: cfg, layouts: []protocol.Layout{layout}, shards: map[protocol.ShardID]*shard{}, sets: map[Set]*set{}, retry: machine.Never,
	}
	d.taker.desk, d.giver.desk = d, d
	return d
}

// Step feeds one input to the desk, and appends to out what follows.
func (d *Desk) Step(now machine.Instant, in any, out *Outbox) {
	switch in := in.(type) {
	case Serve:
		d.serve(in)
	case Remember:
		d.note(now, in.Shard, in.ID, opRemember, out)
	case Forget:
		d.note(now, in.Shard, in.ID, opForget, out)
	case GiveUp:
		d.giveUp(now, in.Shard, in.ID, out)
	case Settle:
		d.settle(in.Shard)
	case End:
		d.end(in.Shard)
	case Layouts:
		d.relayout(now, in.InForce)
	case Retired:
		d.retire(in.Shard)
	case Opened:
		d.opened(now, in, out)
	case Changed:
		d.changed(now, in, out)
	case protocol.Asked:
		d.giver.asked(now, in, out)
	case protocol.Given:
		d.taker.given(now, in, out)
	case Rate:
		d.cfg.Rate = in.Entities
	case Tick:
	}
	d.wake(now)
	d.giver.load()
	d.call(out)
	d.start(now, out)
	d.settled(out)
	d.taker.ask(now, out)
	out.Close, d.closing = append(out.Close, d.closing...), nil
}

// serve begins to serve a shard. One that is served already is read again: its entities were stopped for a
// move that was called off. What was not written stays to be written.
func (d *Desk) serve(in Serve) {
	at := slices.IndexFunc(d.layouts, func(l protocol.Layout) bool { return l.Has(in.Shard) })
	if at < 0 {
		return // A shard of a layout that is not in force is not served.
	}
	s := d.shards[in.Shard]
	if s == nil {
		s = &shard{desk: d, id: in.Shard, set: set{name: Set{in.Shard.Index(), d.layouts[at].Shards}}}
		s.holder = s
		d.shards[in.Shard] = s
		i, _ := slices.BinarySearchFunc(d.order, in.Shard, func(o *shard, id protocol.ShardID) int { return cmp.Compare(o.id, id) })
		d.order = slices.Insert(d.order, i, s)
		d.sets[s.name] = &s.set
	}
	s.epoch = in.Epoch
	s.giveBack()
	d.hurry(s, false)
	s.state, s.session, s.again, s.known, s.stops, s.waited = closed, 0, 0, false, false, nil
	s.halt()
	d.want(&s.set)
	if in.Shard == d.present().Shard(0) {
		d.giver.begin(in.Epoch)
	}
}

// add has a set called, and remove does not any more.
func (d *Desk) add(s *set) {
	d.sets[s.name] = s
	d.want(s)
}

func (d *Desk) remove(s *set) {
	if d.sets[s.name] == s {
		delete(d.sets, s.name)
	}
	d.ready = slices.DeleteFunc(d.ready, func(o *set) bool { return o == s })
	if s.session > 0 {
		d.closing = append(d.closing, Close{s.name, s.session})
	}
}

// relayout takes over which layouts are in force.
func (d *Desk) relayout(now machine.Instant, inForce []protocol.Layout) {
	before := d.present()
	d.layouts, d.retired = slices.Clone(inForce), nil
	if before != d.present() {
		d.giver.end()
		d.taker.begin(now)
	} else if d.giver.index != nil {
		d.giver.relayout()
	}
}

// retire takes that a shard of the former layout is retired.
func (d *Desk) retire(id protocol.ShardID) {
	if len(d.layouts) < 2 || !d.layouts[0].Has(id) {
		return
	}
	if d.retired == nil {
		d.retired = map[protocol.ShardID]bool{}
	}
	d.retired[id] = true
	d.giver.retire(id)
}

// isInForce reports whether a layout in force has so many shards.
func (d *Desk) isInForce(shards uint32) bool {
	return slices.ContainsFunc(d.layouts, func(l protocol.Layout) bool { return l.Shards == shards })
}

// note takes that an id is to be remembered, or to be forgotten.
func (d *Desk) note(now machine.Instant, id protocol.ShardID, entity string, op op, out *Outbox) {
	s := d.shards[id]
	if s == nil {
		return
	}
	if op == opForget {
		delete(s.handed, entity)
		delete(s.waited, entity)
	}
	if s.asked(entity) == op {
		return
	}
	switch {
	case op == opRemember && d.cfg.First && s.begins(entity):
		s.kept([]string{entity}, out) // The store has it: it begins now, and waits for no turn.
		return
	case op == opRemember:
		s.remember(now, entity, d.cfg.First)
	case s.forgets+len(s.held) >= ForgetMost:
		d.stats.Overflowed++
		s.drop(entity) // Of two wishes neither is written: the store may have the entity.
		return
	default:
		s.forget(now, entity)
	}
	d.want(&s.set)
}

// giveUp takes that an id does not wait any more. It is to be forgotten if it is new: the store may have taken it all
// the same. What the store has had before runs until it stops for good, whoever waits for it.
func (d *Desk) giveUp(now machine.Instant, id protocol.ShardID, entity string, out *Outbox) {
	s := d.shards[id]
	switch {
	case s == nil || s.begins(entity):
	case !s.known:
		s.drop(entity) // Whether it is new is known when the set is read.
	case d.taker.holds(s) && s.forgets+len(s.held) < ForgetMost:
		s.hold(now, entity) // And here when no set of a former layout has given it.
	default:
		d.note(now, id, entity, opForget, out)
	}
}

// settle has a shard start nothing any more, and tell when everything is written.
func (d *Desk) settle(id protocol.ShardID) {
	if s := d.shards[id]; s != nil {
		s.halt()
		s.stops = true
		d.hurry(s, true)
	}
}

// hurry notes whether a shard is to be told when everything is written.
func (d *Desk) hurry(s *shard, settling bool) {
	if s.settling != settling {
		s.settling = settling
		if d.settling--; settling {
			d.settling += 2
		}
	}
}

// Quiet reports whether nothing of a shard is to be written, nor being written, and nobody waits for what ends with it.
func (d *Desk) Quiet(id protocol.ShardID) bool {
	s := d.shards[id]
	return s == nil || d.quiet(s)
}

// quiet is Quiet of a shard that is served. The index ends with the first shard: that stays until others that have
// something to write may.
func (d *Desk) quiet(s *shard) bool {
	return s.writing() == 0 && (s.id != d.present().Shard(0) || !d.giver.owes())
}

// settled tells of the shards that stop and have nothing to write any more.
func (d *Desk) settled(out *Outbox) {
	if d.settling == 0 {
		return
	}
	for _, s := range d.order {
		if s.settling && d.quiet(s) {
			d.hurry(s, false)
			out.Settled = append(out.Settled, s.id)
		}
	}
}

// end forgets a shard. A call of it that is under way still counts.
func (d *Desk) end(id protocol.ShardID) {
	s := d.shards[id]
	if s == nil {
		return
	}
	d.stats.Unwritten += uint64(s.writing())
	d.hurry(s, false)
	s.halt()
	delete(d.shards, id)
	d.order = slices.DeleteFunc(d.order, func(o *shard) bool { return o == s })
	d.remove(&s.set)
	if id == d.present().Shard(0) {
		d.giver.end()
	}
}

// Wake returns when the desk must be told that time has passed.
func (d *Desk) Wake(now machine.Instant) machine.Instant {
	at := d.retry
	if len(d.starting) > 0 {
		at = min(at, max(d.next, now.Add(startsEvery)))
	}
	if d.taker.asks() {
		at = min(at, d.taker.next)
	}
	return at
}

// Status returns what is known of a shard.
func (d *Desk) Status(id protocol.ShardID) Status {
	s := d.shards[id]
	if s == nil {
		return Status{}
	}
	st := Status{
		Served: true, Read: s.known, Starting: len(s.pending), Writing: s.writing(), Failures: s.failures, Why: s.why, Again: s.again,
		Listed: s.writable(), Taking: d.taker.holds(s), Held: len(s.held),
	}
	if id == d.present().Shard(0) {
		st.Former, st.FormerWhy = d.giver.left(), d.giver.fault()
	}
	return st
}

// Stats returns the counters, and the present numbers.
func (d *Desk) Stats() Stats {
	all := d.stats
	all.Shards = len(d.order)
	for _, s := range d.order {
		if !s.known {
			all.Unread++
		}
		all.Starting += len(s.pending)
		all.Writing += s.writing()
	}
	for _, s := range d.sets { //quorate:unordered a count
		if s.failures > 0 {
			all.Faulty++
		}
	}
	all.Taking, all.Former = d.taker.asks(), d.giver.left()
	return all
}

// sorted returns the keys of a map in order.
func sorted[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// sortedBy returns the keys of a map in an order.
func sortedBy[K comparable, V any](m map[K]V, compare func(K, K) int) []K {
	return slices.SortedFunc(maps.Keys(m), compare)
}
