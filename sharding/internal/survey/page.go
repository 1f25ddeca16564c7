// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"slices"

	"github.com/quorate/quorate/gossip"
)

// Pages of the entities of a kind: each node returns the first entities after a cursor, and the node that asks merges
// the pages of all nodes, up to the end of the shortest one.

// Page keeps the first of the entities that are offered, in the order of cursors: as many as may be in a page, and
// until their ids have [MaxPageBytes].
type Page struct {
	after Cursor
	most  int
	all   []Entity
	bytes int
	more  bool
}

// NewPage returns a page of entities after a place: up to most, which is at most [MaxPageEntities].
func NewPage(after Cursor, most int) *Page {
	return &Page{after: after, most: min(max(most, 1), MaxPageEntities)}
}

// Wants reports whether an entity at a place belongs into the page, as far as is known.
func (p *Page) Wants(at Cursor) bool {
	if !p.after.Less(at) {
		return false
	}
	if !p.isFull() || at.Less(p.all[len(p.all)-1].At) {
		return true
	}
	p.more = true
	return false
}

func (p *Page) isFull() bool { return len(p.all) >= p.most || p.bytes >= MaxPageBytes }

// Offer adds an entity for which [Page.Wants] has returned true.
func (p *Page) Offer(e Entity) {
	i, _ := slices.BinarySearchFunc(p.all, e.At, func(o Entity, at Cursor) int {
		if o.At.Less(at) {
			return -1
		}
		return 1
	})
	p.all = slices.Insert(p.all, i, e)
	p.bytes += len(e.At.ID)
	for len(p.all) > 1 && (len(p.all) > p.most || p.bytes-len(p.all[len(p.all)-1].At.ID) >= MaxPageBytes) {
		p.bytes -= len(p.all[len(p.all)-1].At.ID)
		p.all, p.more = p.all[:len(p.all)-1], true
	}
}

// Done reports whether no entity of a shard or a later one belongs into the page.
func (p *Page) Done(shard uint32) bool {
	if p.isFull() && uint32(p.all[len(p.all)-1].At.Shard) < shard {
		p.more = true
		return true
	}
	return false
}

// Entities returns the entities of the page, and whether there are more after it.
func (p *Page) Entities() ([]Entity, bool) { return p.all, p.more }

// PlacedEntity is an entity and its node.
type PlacedEntity struct {
	Entity
	Node gossip.NodeID
}

// Merge merges the pages of nodes: it returns the first entities of all, at most most of them, and whether there are
// more after the last one. If the page of a node has an end, entities after that end wait for the next page, so that no
// entity is left out which stays where it is. An entity that two nodes list, since its shard moves, is listed once.
func Merge(said []NodeAnswer, most int) (all []PlacedEntity, more bool) {
	var end *Cursor
	for _, s := range said {
		for _, e := range s.Answer.Entities {
			all = append(all, PlacedEntity{e, s.Node})
		}
		if n := len(s.Answer.Entities); s.Answer.More && n > 0 {
			if last := s.Answer.Entities[n-1].At; end == nil || last.Less(*end) {
				end = &last
			}
		}
	}
	slices.SortStableFunc(all, func(a, b PlacedEntity) int {
		switch {
		case a.At.Less(b.At):
			return -1
		case b.At.Less(a.At):
			return 1
		}
		return 0
	})
	all = slices.CompactFunc(all, func(a, b PlacedEntity) bool { return a.At == b.At })
	if end != nil {
		more = true
		all = slices.DeleteFunc(all, func(p PlacedEntity) bool { return end.Less(p.At) })
	}
	if len(all) > most {
		all, more = all[:most], true
	}
	return all, more
}
