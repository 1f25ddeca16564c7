// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"slices"

	"github.com/quorate/quorate/gossip"
)

// Pages of the entities of a kind: a node keeps the first ones behind a cursor, and who has asked puts the pages of all
// nodes together, as far as all of them reach.

// Page keeps the first entities, in the order of cursors, of those that are offered. A page that is full, or has ids of
// [PageBytes], says that there are more.
type Page struct {
	after Cursor
	most  int
	all   []Entity
	bytes int
	more  bool
}

// NewPage returns a page of what comes after a place: most entities, at most [MostEntities].
func NewPage(after Cursor, most int) *Page {
	return &Page{after: after, most: min(max(most, 1), MostEntities)}
}

// Wants reports whether an entity at a place would be in the page.
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

func (p *Page) isFull() bool { return len(p.all) >= p.most || p.bytes >= PageBytes }

// Offer takes an entity that the page wants.
func (p *Page) Offer(e Entity) {
	i, _ := slices.BinarySearchFunc(p.all, e.At, func(o Entity, at Cursor) int {
		if o.At.Less(at) {
			return -1
		}
		return 1
	})
	p.all = slices.Insert(p.all, i, e)
	p.bytes += len(e.At.ID)
	for len(p.all) > 1 && (len(p.all) > p.most || p.bytes-len(p.all[len(p.all)-1].At.ID) >= PageBytes) {
		p.bytes -= len(p.all[len(p.all)-1].At.ID)
		p.all, p.more = p.all[:len(p.all)-1], true
	}
}

// Done reports whether nothing at or behind a shard would be in the page.
func (p *Page) Done(shard uint32) bool {
	if p.isFull() && uint32(p.all[len(p.all)-1].At.Shard) < shard {
		p.more = true
		return true
	}
	return false
}

// Entities returns the page, and whether there are more behind it.
func (p *Page) Entities() ([]Entity, bool) { return p.all, p.more }

// Placed is an entity and its node.
type Placed struct {
	Entity
	Node gossip.NodeID
}

// Merge puts the pages of nodes together: the first entities of all, at most most of them, and whether there are more
// behind the last one. What a node has not listed, and others have behind that, waits for the next page, so that pages
// leave nothing out that stays where it is. An entity that two nodes list, since its shard moves, is listed once.
func Merge(said []Said, most int) (all []Placed, more bool) {
	var end *Cursor
	for _, s := range said {
		for _, e := range s.Answer.Entities {
			all = append(all, Placed{e, s.Node})
		}
		if n := len(s.Answer.Entities); s.Answer.More && n > 0 {
			if last := s.Answer.Entities[n-1].At; end == nil || last.Less(*end) {
				end = &last
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Placed) int {
		switch {
		case a.At.Less(b.At):
			return -1
		case b.At.Less(a.At):
			return 1
		}
		return 0
	})
	all = slices.CompactFunc(all, func(a, b Placed) bool { return a.At == b.At })
	if end != nil {
		more = true
		all = slices.DeleteFunc(all, func(p Placed) bool { return end.Less(p.At) })
	}
	if len(all) > most {
		all, more = all[:most], true
	}
	return all, more
}
