// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"slices"
	"time"

	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/remembering"
)

// The layouts of a region, while the number of shards of its kind changes: UseLayouts says which are in
// force, and retire has a slot of the former one hand on what it has to those of the next. An
// entity is looked for in the former layout first:
//
//	SlotOf ──> former slot ── not retired ──> there
//	                └─ retired ──> slot of the next layout
//
// The locks of slots are taken in the order of their layouts, the former one first: the flag by
// which senders go to the next layout is set when everything was handed on.

// layout has the slots of the shards of one layout, see [protocol.Layout].
type layout struct {
	protocol.Layout
	slots     []Slot
	permanent map[protocol.ShardID][]string // The entities that are permanent, by their shards.
}

// at returns the slot for a hash.
func (l *layout) at(hash uint64) *Slot { return &l.slots[hash%uint64(len(l.slots))] }

// layoutSet is the layouts of a region, those first that are looked into first. The value is replaced, never changed.
type layoutSet struct {
	over    []*layout // Those that are in force no more, all slots of which are retired or about to be.
	inForce []*layout
	looked  []*layout // The ones of over, then those of inForce.
	slots   []*Slot   // Those of looked.
}

func newLayoutSet(over, inForce []*layout) *layoutSet {
	s := &layoutSet{over: over, inForce: inForce, looked: slices.Concat(over, inForce)}
	for _, l := range s.looked {
		for i := range l.slots {
			s.slots = append(s.slots, &l.slots[i])
		}
	}
	return s
}

// of returns the slot that an entity with a hash lives in, of the layouts from one on.
func (s *layoutSet) of(hash uint64, first int) *Slot {
	last := len(s.looked) - 1
	for _, l := range s.looked[first:last] {
		if sl := l.at(hash); !sl.retired.Load() {
			return sl
		}
	}
	return s.looked[last].at(hash)
}

// slot returns the slot of a shard; nil if there is none. Of two layouts with one number, of which one
// was the guess of a node that did not know better, the one in force counts.
func (s *layoutSet) slot(shard protocol.ShardID) *Slot {
	for _, l := range slices.Backward(s.looked) {
		if l.Has(shard) {
			return &l.slots[shard.Index()]
		}
	}
	return nil
}

// makeLayout makes the slots of a layout, whose cells know no home yet. Entities that are permanent are withheld
// while their shards of the former layout, if there is one, are not retired.
func (r *Region) makeLayout(l protocol.Layout, former *layout) *layout {
	next := &layout{l, make([]Slot, l.Shards), map[protocol.ShardID][]string{}}
	cfg := r.cells
	withheld := map[protocol.ShardID][]string{}
	for _, id := range r.cells.Permanent {
		hash := protocol.HashOf(id)
		shard := l.ShardOf(hash)
		next.permanent[shard] = append(next.permanent[shard], id)
		if former != nil && !former.at(hash).retired.Load() {
			withheld[shard] = append(withheld[shard], id)
		}
	}
	for i := range next.slots {
		cfg.Shard = l.Shard(uint32(i)) // Below the number of shards.
		cfg.Permanent, cfg.Withheld = next.permanent[cfg.Shard], withheld[cfg.Shard]
		sl := &next.slots[i]
		sl.region, sl.shard, sl.layout, sl.cell = r, cfg.Shard, next, cell.New(cfg)
		if bound := r.limiter.Load(); bound != nil {
			sl.cell.Maintenance().Limit(bound)
		}
	}
	return next
}

// UseLayouts says which layouts are in force, the former one first. The slots of those that are in force
// no more are retired, if they are not: they have nothing that was delivered.
func (r *Region) UseLayouts(inForce []protocol.Layout) {
	r.changing.Lock()
	defer r.changing.Unlock()
	r.forgetOver() // A region that hosts nothing is not swept.
	old := r.layouts.Load()
	over, now := slices.Clone(old.over), make([]*layout, 0, len(inForce))
	for _, l := range old.inForce {
		if !slices.Contains(inForce, l.Layout) {
			over = append(over, l)
		}
	}
	for _, l := range inForce {
		i := slices.IndexFunc(old.inForce, func(o *layout) bool { return o.Layout == l })
		switch {
		case i >= 0:
			now = append(now, old.inForce[i])
		case len(now) > 0:
			now = append(now, r.makeLayout(l, now[len(now)-1]))
		default:
			now = append(now, r.makeLayout(l, nil))
		}
	}
	r.stepRemembering(remembering.Layouts{InForce: inForce})
	next := newLayoutSet(over, now)
	r.layouts.Store(next)
	for _, l := range over {
		for i := range l.slots {
			r.handOn(&l.slots[i], protocol.RetireShard{})
		}
	}
}

// handOn retires the cell of a slot, and hands what that had to the slots of the next layout: with its
// mu held, so that no sender overtakes it.
func (r *Region) handOn(sl *Slot, in protocol.RetireShard) {
	if sl.retired.Load() {
		return
	}
	sl.mu.Lock()
	defer sl.mu.Unlock()
	sl.link.written(sl.cell)
	sl.cell.Apply(sl.now(), in, &sl.out)
	sl.serves.Store(false)
	sl.carry(nil)
	moved := sl.moved
	sl.moved = nil
	s := r.layouts.Load()
	first := slices.Index(s.looked, sl.layout) + 1
	var to []*Slot
	lists := map[*Slot][]*cell.Message{}
	for _, m := range moved {
		target := s.of(protocol.HashOf(m.Entity), first)
		if lists[target] == nil {
			to = append(to, target)
		}
		lists[target] = append(lists[target], m)
	}
	for _, target := range to {
		r.adopt(target, sl, lists[target])
	}
	if !sl.cell.Handoff().Retired() {
		return // The node has ended.
	}
	sl.retired.Store(true)
	for _, id := range sl.layout.permanent[sl.shard] {
		r.admit(s.of(protocol.HashOf(id), first), id)
	}
	r.stepRemembering(remembering.Retired{Shard: sl.shard})
}

// admit has an entity that is permanent run in a slot from now on, since its former shard, whose slot the caller holds,
// is retired.
func (r *Region) admit(sl *Slot, id string) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	sl.cell.Handoff().Admit(sl.now(), id, &sl.out)
	sl.carry(nil)
}

// adopt has a slot take messages from one of the layout before, which the caller holds, with their asks.
func (r *Region) adopt(sl, from *Slot, all []*cell.Message) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	for _, m := range all {
		if a := from.asks.open[m.Correlation]; a != nil && m.Correlation != 0 {
			delete(from.asks.open, m.Correlation)
			a.earlyReplies = nil
			sl.expect(a, m.Entity)
			sl.bound(a)
		}
	}
	sl.cell.Handoff().Adopt(sl.now(), all, &sl.out)
	sl.carry(nil)
	for _, m := range all {
		r.node.messages.free(m)
	}
}

// forget drops the layouts that are in force no more and to whose slots no reply may come any more.
func (r *Region) forget() {
	if len(r.layouts.Load().over) == 0 {
		return
	}
	r.changing.Lock()
	defer r.changing.Unlock()
	r.forgetOver()
}

// forgetOver does the work of forget. The caller holds changing.
func (r *Region) forgetOver() {
	old := r.layouts.Load()
	over := slices.DeleteFunc(slices.Clone(old.over), func(l *layout) bool {
		for i := range l.slots {
			if sl := &l.slots[i]; !sl.retired.Load() || sl.Asking() > 0 {
				return false
			}
		}
		r.past.keep(l)
		return true
	})
	if len(over) < len(old.over) {
		r.layouts.Store(newLayoutSet(over, old.inForce))
	}
}

// pastCounts is what slots have done that are no more: counters only grow.
type pastCounts struct {
	tally cell.Tally
	busy  time.Duration
}

// keep adds what the slots of a layout have done.
func (p *pastCounts) keep(l *layout) {
	var t cell.Tally
	for i := range l.slots {
		sl := &l.slots[i]
		sl.Tally(&t)
		sl.mu.Lock()
		p.busy += sl.busy
		sl.mu.Unlock()
	}
	p.tally.Keep(&t)
}

// Past adds the counters of slots that are no more to t.
func (r *Region) Past(t *cell.Tally) {
	r.changing.Lock()
	defer r.changing.Unlock()
	t.Keep(&r.past.tally)
}

// Layouts returns the layouts that are in force, the former one first.
func (r *Region) Layouts() []protocol.Layout {
	var all []protocol.Layout
	for _, l := range r.layouts.Load().inForce {
		all = append(all, l.Layout)
	}
	return all
}

// Next returns the slot to which a message goes that the cell of another one has not taken, since its
// shard is retired ([cell.Moved]).
func (r *Region) Next(m *cell.Message) *Slot {
	next := r.SlotOf(m.Entity)
	m.Shard = next.shard
	return next
}

// Retired reports whether no node hosts the shard of a slot any more.
func (r *Region) Retired(sl *Slot) bool { return sl.retired.Load() }

// HostingValue returns what the owner of the kind keeps beside a slot. The caller holds mu of the slot.
func (r *Region) HostingValue(sl *Slot) *any { return &sl.hostingValue }
