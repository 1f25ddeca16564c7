// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership/membershipsim"
	"github.com/quorate/quorate/sharding/internal/protocol"
	world "github.com/quorate/quorate/simulation"
)

// bounds are the limits that hold for homes and moves whatever a strategy answers. Zero: not checked.
type bounds struct {
	home             time.Duration // How long a shard may have no home.
	moves, perRegion int           // How many shards are stopped at a time to even out the load.
}

// missingHome says since when a coordinator has known of shards without a home that a node
// could take.
type missingHome struct {
	term  protocol.Term
	since time.Duration
}

// Stepped does nothing: cells tell the ledger what nodes do.
func (l *Ledger) Stepped(*world.World, *world.Node) error { return nil }

// Second looks how long shards have had no home.
func (l *Ledger) Second(w *world.World) error {
	if l.bounds.home == 0 {
		return nil
	}
	for _, n := range w.Nodes() {
		if i := Control(n).InspectCoordinator(KindName); !i.Coordinating || !i.Opened || i.Open == 0 || !l.mayHost(n.ID()) || !l.takes(n) {
			delete(l.homeless, n.ID())
			continue
		} else if h, known := l.homeless[n.ID()]; !known || h.term != i.Term {
			l.homeless[n.ID()] = missingHome{term: i.Term, since: w.Now()}
		} else if took := w.Now() - h.since; took > l.bounds.home {
			l.violate("I21: %s coordinates, and %d shards have had no home for %v", n.ID(), i.Open, took)
		}
	}
	return nil
}

// takes reports whether somebody could be given shards by a coordinator: a member
// that is up, can be reached, and runs.
func (l *Ledger) takes(coordinator *world.Node) bool {
	state := membershipsim.MachineOf(coordinator).State()
	for _, m := range state.Members() {
		if m.Status == gossip.Up && l.mayHost(m.Node) && state.Reachable(m.Node) &&
			l.world.Network().Connected(coordinator.ID().Address, m.Node.Address) && l.world.Network().Connected(m.Node.Address, coordinator.ID().Address) {
			return true
		}
	}
	return false
}

// budget checks how many shards are being stopped at a time to even out the load:
// at nodes that do not leave, and are not about to take a stop back.
func (l *Ledger) budget() {
	if l.bounds.moves == 0 {
		return
	}
	all, at := 0, make(map[gossip.NodeID]int)
	for s := range l.stops {
		n := l.world.Node(s.node.Address)
		if n == nil || n.ID() != s.node || l.leaves(s.node) {
			continue
		}
		all++
		at[s.node]++
		if at[s.node] > l.bounds.perRegion {
			l.violate("I21: %d shards are being stopped at %s, which does not leave: more than %d", at[s.node], s.node, l.bounds.perRegion)
		}
	}
	if all > l.bounds.moves {
		l.violate("I21: %d shards are being stopped to even out the load, more than %d", all, l.bounds.moves)
	}
}

// leaves reports whether anybody has heard that a node leaves.
func (l *Ledger) leaves(node gossip.NodeID) bool {
	for _, n := range l.world.Nodes() {
		if m := membershipsim.MachineOf(n).State().Member(node); m != nil && m.Status >= gossip.Leaving {
			return true
		}
	}
	return false
}

var (
	_ world.Checker   = (*Ledger)(nil)
	_ machine.Machine = (*Cells)(nil)
)
