// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
)

// Assumption says where it is not certain that no two sides host at the same time,
// but assumed of timing, see package protocol: in a cluster of more members than a
// node monitors, its standing rests on the answers of some of the voters. Those who
// accuse it may be others than those who answer it, if it loses its contacts by and
// by, or if news is slow.
//
// A node that hosts beside those who took over from it is a violation all the same in
// a cluster of fewer members, and wherever neither was the case for as long as it takes
// to remove a node. Where one was, it is counted.
type Assumption struct {
	// Voters is up to how many members the standing of a node rests on all voters.
	Voters int

	// Parts is how many of its contacts a node must have lost, or got back, before it
	// lost the last of them, for that to be by and by: as many accusations begin its
	// fence.
	Parts int

	// Within is for how long after that the assumption may not hold.
	Within time.Duration

	// HostedTwice counts the nodes that hosted beside those who took over from them
	// while the assumption may not have held.
	HostedTwice int

	world  *World
	seen   map[gossip.NodeID]bool // Who was counted.
	losses map[int32][]contacts   // By place, oldest first.
	ails   bool                   // Something is slow.
	slow   int64                  // World time at which something was slow last; -1: never.
}

// contacts are the places that a place was cut off from, or connected with, at a time.
type contacts struct {
	at    int64
	peers []int32
}

// contactsKept is how many changes of its contacts are kept of each place.
const contactsKept = 32

// Watch has the assumption hear of what happens to links.
func (a *Assumption) Watch(w *World) {
	a.world, a.slow = w, -1
	a.seen, a.losses = make(map[gossip.NodeID]bool), make(map[int32][]contacts)
	w.weather.assumption = a
}

// linked notes that the link between two places has changed.
func (a *Assumption) linked(one, other int32) {
	if a == nil {
		return
	}
	a.note(one, other)
	a.note(other, one)
}

func (a *Assumption) note(of, peer int32) {
	all := a.losses[of]
	if last := len(all) - 1; last >= 0 && all[last].at == a.world.now {
		if !slices.Contains(all[last].peers, peer) {
			all[last].peers = append(all[last].peers, peer)
		}
		return
	}
	all = append(all, contacts{a.world.now, []int32{peer}})
	a.losses[of] = all[max(len(all)-contactsKept, 0):]
}

// look notes whether something is slow, or was until now. It is called after each change.
func (a *Assumption) look() {
	if a == nil {
		return
	}
	was := a.ails
	if a.ails = a.world.slow(); a.ails || was {
		a.slow = a.world.now
	}
}

// excuses reports whether it is no violation that a node hosts beside those who took
// over from it, and counts it then.
func (a *Assumption) excuses(n *Node) bool {
	if a == nil || len(MembershipOf(n).State().Members()) <= a.Voters {
		return false
	}
	a.look()
	since := a.world.now - int64(a.Within)
	excused := a.slow >= max(since, 0) || a.byAndBy(n.place.index, since)
	if excused && !a.seen[n.id] {
		a.seen[n.id] = true
		a.HostedTwice++
	}
	return excused
}

// byAndBy reports whether a place lost its contacts in more than one step, of which all
// but the last were many.
func (a *Assumption) byAndBy(place int32, since int64) bool {
	all, parts := a.losses[place], 0
	for _, c := range all[:max(len(all)-1, 0)] {
		if c.at >= since {
			parts += len(c.peers)
		}
	}
	return parts >= a.Parts
}

// slow reports whether news may take longer than usual to reach all, or not reach
// some, although the links are there.
func (w *World) slow() bool {
	return len(w.weather.links) > 0 || len(w.weather.losses) > 0 || w.opt.Network.worse(w.weather.normal) ||
		slices.ContainsFunc(w.places, func(p *place) bool { return p.node != nil && p.node.frozen })
}
