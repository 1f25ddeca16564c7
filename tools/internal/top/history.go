// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"math"
	"time"

	"github.com/quorate/quorate/management"
)

// What is remembered from poll to poll, within bounds: rates, moves of shards, members that are gone.

// The bounds of the history.
const (
	ratesKept = 120
	movesKept = 200
	goneKept  = 16
	goneFor   = time.Minute
)

// move are shards of one kind that have moved from one node to another between two polls.
type move struct {
	at       time.Time
	kind     string
	shard    int // The first of them.
	shards   int
	from, to string
}

// goneMember is a node that was a member in an earlier snapshot, and is none any more.
type goneMember struct {
	at     time.Time
	member management.Member
}

// history holds the last snapshot, and what follows from it and those before.
type history struct {
	last  *Snapshot
	rates map[string][]float64 // The last rates a second of each counter, oldest first; NaN where the node began anew.
	moves []move               // The last moves, oldest first.
	moved int                  // How many moves there were.
	gone  []goneMember
}

// add takes a snapshot in.
func (p *history) add(s Snapshot) {
	if p.rates == nil {
		p.rates = make(map[string][]float64)
	}
	if p.last != nil {
		p.rate(s)
		for _, k := range s.Kinds {
			p.moveOf(s.At, k)
		}
		p.missed(s)
	}
	p.last = &s
}

// rate compares the counters with those before. A node that was started again counts from 0.
func (p *history) rate(s Snapshot) {
	seconds := s.At.Sub(p.last.At).Seconds()
	if seconds <= 0 {
		return
	}
	again := s.Members.Self != p.last.Members.Self
	for _, r := range Rates() {
		counted, there := s.Counters[r[0]]
		before, was := p.last.Counters[r[0]]
		if !there {
			continue
		}
		rate := (counted - before) / seconds
		if !was || again || rate < 0 {
			rate = math.NaN()
		}
		kept := append(p.rates[r[0]], rate)
		p.rates[r[0]] = kept[max(len(kept)-ratesKept, 0):]
	}
}

// moveOf finds the shards of a kind that live elsewhere than before.
func (p *history) moveOf(at time.Time, k Kind) {
	ways := make(map[[2]string]int) // The index of the move from one node to another.
	for _, before := range p.last.Kinds {
		if before.Name != k.Name || len(before.at) != len(k.at) {
			continue
		}
		for shard, to := range k.at {
			if from := before.at[shard]; from != to {
				p.moved++
				way := [2]string{from, to}
				if i, known := ways[way]; known {
					p.moves[i].shards++
					continue
				}
				ways[way] = len(p.moves)
				p.moves = append(p.moves, move{at: at, kind: k.Name, shard: shard, shards: 1, from: from, to: to})
			}
		}
	}
	p.moves = p.moves[max(len(p.moves)-movesKept, 0):]
}

// missed notes members that are gone, for a while.
func (p *history) missed(s Snapshot) {
	now := make(map[string]bool)
	for _, m := range s.Members.Members {
		now[m.Node] = true
	}
	kept := p.gone[:0]
	for _, g := range p.gone {
		if s.At.Sub(g.at) < goneFor && !now[g.member.Node] {
			kept = append(kept, g)
		}
	}
	p.gone = kept
	if s.Members.Self != p.last.Members.Self {
		return // Another node may know of others.
	}
	for _, m := range p.last.Members.Members {
		if !now[m.Node] {
			p.gone = append(p.gone, goneMember{at: s.At, member: m})
		}
	}
	p.gone = p.gone[max(len(p.gone)-goneKept, 0):]
}

// hosted returns how many shards of all kinds each node hosts, nil if that is not known.
func hosted(s *Snapshot) map[string]int {
	var by map[string]int
	for _, k := range s.Kinds {
		if by == nil && len(k.at) > 0 {
			by = make(map[string]int)
		}
		for _, h := range k.Homes {
			by[h.Node] += h.Shards
		}
	}
	return by
}
