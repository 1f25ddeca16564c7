// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membershipsim

import (
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/simulation"
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

	world  *simulation.World
	seen   map[gossip.NodeID]bool        // Who was counted.
	losses map[gossip.Address][]contacts // By address, oldest first.
	ails   bool                          // Something is slow.
	slow   time.Duration                 // World time at which something was slow last; -1: never.
}

// contacts are the addresses that one was cut off from, or connected with, at a time.
type contacts struct {
	at    time.Duration
	peers []gossip.Address
}

// contactsKept is how many changes of its contacts are kept of each address.
const contactsKept = 32

// Watch has the assumption hear of what happens to links.
func (a *Assumption) Watch(w *simulation.World) {
	a.world, a.slow = w, -1
	a.seen, a.losses = make(map[gossip.NodeID]bool), make(map[gossip.Address][]contacts)
	w.Network().Watch(a)
}

// Linked notes that the link between two addresses has changed.
func (a *Assumption) Linked(one, other gossip.Address) {
	a.note(one, other)
	a.note(other, one)
}

func (a *Assumption) note(of, peer gossip.Address) {
	all := a.losses[of]
	if last := len(all) - 1; last >= 0 && all[last].at == a.world.Now() {
		if !slices.Contains(all[last].peers, peer) {
			all[last].peers = append(all[last].peers, peer)
		}
		return
	}
	all = append(all, contacts{a.world.Now(), []gossip.Address{peer}})
	a.losses[of] = all[max(len(all)-contactsKept, 0):]
}

// Changed notes whether something is slow, or was until now.
func (a *Assumption) Changed() {
	was := a.ails
	if a.ails = slow(a.world); a.ails || was {
		a.slow = a.world.Now()
	}
}

// excuses reports whether it is no violation that a node hosts beside those who took
// over from it, and counts it then.
func (a *Assumption) excuses(n *simulation.Node) bool {
	if a == nil || len(MachineOf(n).State().Members()) <= a.Voters {
		return false
	}
	a.Changed()
	since := a.world.Now() - a.Within
	excused := a.slow >= max(since, 0) || a.byAndBy(n.ID().Address, since)
	if excused && !a.seen[n.ID()] {
		a.seen[n.ID()] = true
		a.HostedTwice++
	}
	return excused
}

// byAndBy reports whether a node lost its contacts in more than one step, of which all
// but the last were many.
func (a *Assumption) byAndBy(of gossip.Address, since time.Duration) bool {
	all, parts := a.losses[of], 0
	for _, c := range all[:max(len(all)-1, 0)] {
		if c.at >= since {
			parts += len(c.peers)
		}
	}
	return parts >= a.Parts
}

// slow reports whether news may take longer than usual to reach all, or not reach
// some, although the links are there.
func slow(w *simulation.World) bool {
	return w.Network().Impaired() || slices.ContainsFunc(w.Nodes(), (*simulation.Node).Frozen)
}

var _ simulation.LinkWatcher = (*Assumption)(nil)
