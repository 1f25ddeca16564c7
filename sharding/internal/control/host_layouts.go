// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"maps"
	"slices"

	"github.com/quorate/quorate/sharding/internal/protocol"
)

// What a region knows of changes of the number of shards: relayout and learnRetired take it from the map, and
// report tells it to the next coordinator, which goes on where the last one was.

// UseLayouts is an effect: the layouts in force of a kind are these, by number.
type UseLayouts struct {
	Kind    string
	Layouts []protocol.Layout
}

// layoutHistory is the part of a region that knows of such changes.
type layoutHistory struct {
	inForce []protocol.Layout // As in the map; empty before the first change.
	past    []uint32          // Numbers of shards that the kind has had.
	retired map[protocol.ShardID]Retirement
}

// relayout takes over the layouts of a map, and reports whether they are news.
func (h *host) relayout(m Map) bool {
	l := &h.layouts
	if len(m.Layouts) == 0 {
		return false
	}
	l.past = m.Past
	if slices.Equal(l.inForce, m.Layouts) {
		return false
	}
	l.inForce = m.Layouts
	for _, s := range slices.Sorted(maps.Keys(h.hosted)) {
		if !h.isInForce(s) && h.hosted[s].state != Halted {
			h.kind.violation(s, "hosted here under epoch "+h.hosted[s].epoch.String()+", while its layout is in force no more")
		}
	}
	h.homes.keep(func(o protocol.Layout) bool { return slices.Contains(m.Layouts, o) })
	for _, o := range m.Layouts {
		h.homes.add(o)
	}
	gone := func(s protocol.ShardID) bool { return !h.isInForce(s) }
	maps.DeleteFunc(h.hosted, func(s protocol.ShardID, _ *hosted) bool {
		if gone(s) {
			h.snapshots.drop(s)
		}
		return gone(s)
	})
	maps.DeleteFunc(h.began, func(s protocol.ShardID, _ protocol.Epoch) bool { return gone(s) })
	maps.DeleteFunc(h.wanted, func(s protocol.ShardID, _ protocol.Epoch) bool { return gone(s) })
	maps.DeleteFunc(l.retired, func(s protocol.ShardID, _ Retirement) bool { return gone(s) })
	h.kind.control.out.Add(UseLayouts{Kind: h.cfg.Name, Layouts: m.Layouts})
	return true
}

func (h *host) isInForce(s protocol.ShardID) bool {
	return slices.ContainsFunc(h.layouts.inForce, func(o protocol.Layout) bool { return o.Has(s) })
}

// learnRetired takes over which shards are retired, and reports whether any is news.
func (h *host) learnRetired(m Map) (news bool) {
	l := &h.layouts
	for _, r := range m.Retired {
		known := h.homes.at(r.Shard)
		if _, buried := l.retired[r.Shard]; buried || known == nil {
			continue
		}
		news = true
		if l.retired == nil {
			l.retired = make(map[protocol.ShardID]Retirement)
		}
		l.retired[r.Shard] = r
		h.retire(r)
	}
	for s, r := range l.retired { //quorate:unordered each entry by itself
		if r.Known && !m.Settled.Less(r.Epoch) {
			r.Known, r.Positions = false, nil
			l.retired[s] = r
		}
	}
	return news
}

// retire ends what the region has of a shard.
func (h *host) retire(r Retirement) {
	if old := h.hosted[r.Shard]; old != nil && old.state != Halted {
		h.kind.violation(r.Shard, "hosted here under epoch "+old.epoch.String()+", while the map says that it is retired under epoch "+r.Epoch.String())
	}
	lost := h.snapshots.of(r.Shard)
	h.snapshots.drop(r.Shard)
	delete(h.hosted, r.Shard)
	delete(h.wanted, r.Shard)
	*h.homes.at(r.Shard) = Home{Shard: r.Shard, Epoch: r.Epoch, Base: r.Base}
	h.toShard(r.Shard, protocol.RetireShard{Epoch: r.Epoch, Base: r.Base, Positions: r.Positions, Known: r.Known, Lost: lost})
}

// report adds to a report what the region knows of layouts.
func (l *layoutHistory) report(m *Report) {
	m.Layouts, m.Past = l.inForce, l.past
	for _, s := range slices.Sorted(maps.Keys(l.retired)) {
		m.Retired = append(m.Retired, l.retired[s])
	}
}
