// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package recall

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// A desk takes one input after the other: what cells say is noted with the shard, what the store says is
// in calls.go, and after each input whatever can begin begins, calls here and entities in starts.go.

// Desk serves the shards of a kind that a node hosts.
type Desk struct {
	cfg    Config
	shards map[protocol.ShardID]*shard
	order  []*shard // All of shards, by their numbers.

	ready    []*shard        // Want a call of the store, the first one first.
	calls    int             // Under way.
	sessions uint64          // The number of the last session.
	retry    machine.Instant // When the first of the closed shards goes on; [machine.Never]: there is none.

	settling int             // Shards that are to be told when everything is written.
	starting []*shard        // Have entities to start; the first one goes on.
	next     machine.Instant // When the next entity may begin.

	stats Stats
}

// New returns a desk that serves no shard.
func New(cfg Config) *Desk {
	return &Desk{cfg: cfg, shards: map[protocol.ShardID]*shard{}, retry: machine.Never}
}

// Step feeds one input to the desk, and appends to out what follows.
func (d *Desk) Step(now machine.Instant, in any, out *Outbox) {
	switch in := in.(type) {
	case Serve:
		d.serve(in)
	case Remember:
		d.note(now, in.Shard, in.ID, opRemember)
	case Forget:
		d.note(now, in.Shard, in.ID, opForget)
	case Settle:
		d.settle(in.Shard)
	case End:
		d.end(in.Shard)
	case Opened:
		d.opened(now, in, out)
	case Changed:
		d.changed(now, in, out)
	case Rate:
		d.cfg.Rate = in.Entities
	case Tick:
	}
	d.wake(now)
	d.call(out)
	d.start(now, out)
	d.settled(out)
}

// serve begins to serve a shard. One that is served already is read again: its entities were stopped for a
// move that was called off. What was not written stays to be written.
func (d *Desk) serve(in Serve) {
	s := d.shards[in.Shard]
	if s == nil {
		s = &shard{id: in.Shard}
		d.shards[in.Shard] = s
		i, _ := slices.BinarySearchFunc(d.order, in.Shard, func(o *shard, id protocol.ShardID) int { return cmp.Compare(o.id, id) })
		d.order = slices.Insert(d.order, i, s)
	}
	s.epoch = in.Epoch
	s.giveBack()
	d.hurry(s, false)
	s.state, s.session, s.again, s.known = closed, 0, 0, false
	s.halt()
	d.want(s)
}

// note takes that an id is to be remembered, or to be forgotten.
func (d *Desk) note(now machine.Instant, id protocol.ShardID, entity string, op op) {
	s := d.shards[id]
	if s == nil {
		return
	}
	if op == opForget {
		delete(s.handed, entity)
	}
	if s.asked(entity) == op {
		return
	}
	if op == opForget && s.forgets >= ForgetMost {
		d.stats.Overflowed++
		s.drop(entity) // Of two wishes neither is written: the store may have the entity.
		return
	}
	s.put(entity, op, now)
	d.want(s)
}

// settle has a shard start nothing any more, and tell when everything is written.
func (d *Desk) settle(id protocol.ShardID) {
	if s := d.shards[id]; s != nil {
		s.halt()
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

// Quiet reports whether nothing of a shard is to be written, nor being written.
func (d *Desk) Quiet(id protocol.ShardID) bool {
	s := d.shards[id]
	return s == nil || s.writing() == 0
}

// settled tells of the shards that stop and have nothing to write any more.
func (d *Desk) settled(out *Outbox) {
	if d.settling == 0 {
		return
	}
	for _, s := range d.order {
		if s.settling && s.writing() == 0 {
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
	d.stats.Unwritten += uint64(s.writing()) //nolint:gosec // A length.
	d.hurry(s, false)
	delete(d.shards, id)
	gone := func(o *shard) bool { return o == s }
	d.order = slices.DeleteFunc(d.order, gone)
	d.ready = slices.DeleteFunc(d.ready, gone)
	d.starting = slices.DeleteFunc(d.starting, gone)
}

// Wake returns when the desk must be told that time has passed.
func (d *Desk) Wake(now machine.Instant) machine.Instant {
	at := d.retry
	if len(d.starting) > 0 {
		at = min(at, max(d.next, now.Add(startsEvery)))
	}
	return at
}

// Status returns what is known of a shard.
func (d *Desk) Status(id protocol.ShardID) Status {
	s := d.shards[id]
	if s == nil {
		return Status{}
	}
	return Status{
		Served: true, Read: s.known, Starting: len(s.pending), Writing: s.writing(), Failures: s.failures, Why: s.why, Again: s.again,
	}
}

// Stats returns the counters, and the present numbers.
func (d *Desk) Stats() Stats {
	all := d.stats
	all.Shards = len(d.order)
	for _, s := range d.order {
		if !s.known {
			all.Unread++
		}
		if s.failures > 0 {
			all.Faulty++
		}
		all.Starting += len(s.pending)
		all.Writing += s.writing()
	}
	return all
}
