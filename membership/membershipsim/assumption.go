// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membershipsim

import (
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/simulation"
)

// Assumption says where it is not certain but an assumption about timing that no two
// sides host at the same time, see package protocol: in a cluster of more members than a
// node monitors, its standing rests on the answers of some of the voters. If the node
// loses its contacts one after the other, or if news is slow, the voters that mark it
// unreachable may be others than those that answer it.
//
// A node that hosts beside its successors is a violation all the same in a smaller
// cluster, and wherever neither of the two happened for as long as it takes to remove a
// node. Where one did, the node is counted.
type Assumption struct {
	// Voters is the number of members up to which the standing of a node rests on all
	// voters.
	Voters int

	// Parts is how many of its contacts a node must have lost, or got back, before it
	// lost the last of them, for the loss to be gradual: so many unreachable records
	// begin its fence.
	Parts int

	// Within is how long after such an event the assumption may not hold.
	Within time.Duration

	// HostedTwice counts the nodes that hosted beside their successors while the
	// assumption may not have held.
	HostedTwice int

	world   *simulation.World
	seen    map[gossip.NodeID]bool        // Nodes that were counted.
	losses  map[gossip.Address][]contacts // By address, oldest first.
	slowNow bool                          // Whether something is slow.
	slowAt  time.Duration                 // World time at which something was slow last; -1: never.
}

// contacts are the addresses that an address was cut off from, or connected with, at a
// time.
type contacts struct {
	at    time.Duration
	peers []gossip.Address
}

// contactsKept is how many changes of its contacts are kept for each address.
const contactsKept = 32

// Watch tells the assumption of each change of a link.
func (a *Assumption) Watch(w *simulation.World) {
	a.world, a.slowAt = w, -1
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
	was := a.slowNow
	if a.slowNow = slow(a.world); a.slowNow || was {
		a.slowAt = a.world.Now()
	}
}

// excuses reports whether it is no violation that a node hosts beside its successors, and
// counts the node in that case.
func (a *Assumption) excuses(n *simulation.Node) bool {
	if a == nil || len(MachineOf(n).State().Members()) <= a.Voters {
		return false
	}
	a.Changed()
	since := a.world.Now() - a.Within
	excused := a.slowAt >= max(since, 0) || a.lostGradually(n.ID().Address, since)
	if excused && !a.seen[n.ID()] {
		a.seen[n.ID()] = true
		a.HostedTwice++
	}
	return excused
}

// lostGradually reports whether a node lost its contacts in more than one step, where all steps
// before the last took many of them.
func (a *Assumption) lostGradually(of gossip.Address, since time.Duration) bool {
	all, parts := a.losses[of], 0
	for _, c := range all[:max(len(all)-1, 0)] {
		if c.at >= since {
			parts += len(c.peers)
		}
	}
	return parts >= a.Parts
}

// slow reports whether news may take longer than usual to reach all nodes, or not reach
// some, although the links are there.
func slow(w *simulation.World) bool {
	return w.Network().Impaired() || slices.ContainsFunc(w.Nodes(), (*simulation.Node).Frozen)
}

var _ simulation.LinkWatcher = (*Assumption)(nil)
