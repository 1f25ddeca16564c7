// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/gossip"
)

// What is told about a machine: first the [Route], by which the replicator reads and writes tables without the machine;
// then what tests and simulations ask about a group.

// Route says which replicas hold what, for those that read and write without the machine.
// It is immutable.
type Route struct {
	Gen   uint64
	Turn  uint32 // The turn of the register's lineage.
	Self  ReplicaID
	views *views // Nil while no register is known.
	Holds bool   // This node's replica holds data.
	// Counts says that this node's replica is in Current, so that it has caught up, and that it takes part.
	Counts bool
	// Settled says that it counts, and that the change by which it came to count is sealed.
	Settled bool
	nodes   map[ReplicaID]gossip.NodeID
	gone    map[ReplicaID]gossip.NodeID // The last nodes of replicas that belong to no member now.
}

// Here reports whether this node's replica is a home of a bucket.
func (r *Route) Here(bucket int) bool {
	return r.Holds && r.views.bucket(bucket).has(r.Self)
}

// Homes returns the nodes with the homes of a bucket that count, as far as they are known,
// sorted.
func (r *Route) Homes(bucket int) []gossip.NodeID {
	if r.views == nil {
		return nil
	}
	var all []gossip.NodeID
	for _, of := range r.views.bucket(bucket).current {
		if node, ok := r.nodes[of.ID]; ok {
			all = append(all, node)
		}
	}
	slices.SortFunc(all, gossip.NodeID.Compare)
	return all
}

// Node returns the node on which a replica runs, false if that is not known.
func (r *Route) Node(id ReplicaID) (gossip.NodeID, bool) {
	node, ok := r.nodes[id]
	return node, ok
}

// Gone returns the last node of a replica that belongs to no member now, false if that is not known.
func (r *Route) Gone(id ReplicaID) (gossip.NodeID, bool) {
	node, ok := r.gone[id]
	return node, ok
}

// routeNow returns the present route.
func (k *known) routeNow() *Route {
	r := &Route{Gen: k.gen(), Self: k.self, views: k.views, Holds: k.holds(), Counts: k.holds() && k.reg.Current.Has(k.self) && !k.apart(), nodes: map[ReplicaID]gossip.NodeID{}, gone: maps.Clone(k.gone)}
	if r.Settled = r.Counts && k.sealed; k.reg != nil {
		r.Turn = k.reg.Lineage.Turn
	}
	if k.member() {
		r.nodes[k.self] = k.m.cfg.Self
	}
	for id, p := range k.peers { //quorate:unordered a map
		r.nodes[id] = p.node
	}
	return r
}

// Route returns the present route of a group.
func (m *Machine) Route(group uint8) *Route { return m.groups[group].routeNow() }

// Register returns the register that a group knows, nil for none.
func (m *Machine) Register(group uint8) *Register { return m.groups[group].reg }

// Caught reports whether this node's replica lacks nothing.
func (m *Machine) Caught(group uint8) bool { return m.groups[group].caught }

// Older reports whether this node's store is known to be older than what its replica has shown.
func (m *Machine) Older(group uint8) bool { return m.groups[group].storeCheck.participation == older }

// Pending returns the registers of a group that count here or may come to count: the known one, the one that was
// accepted, and the one that is proposed.
func (m *Machine) Pending(group uint8) []*Register {
	g := m.groups[group]
	var all []*Register
	if g.reg != nil {
		all = append(all, g.reg)
	}
	if g.change.value != nil {
		all = append(all, g.change.value)
	}
	if g.change.attempt != nil {
		all = append(all, g.change.attempt.value)
	}
	return all
}

// String describes the state of the groups, for failures of tests.
func (m *Machine) String() string {
	var b strings.Builder
	for _, g := range m.groups {
		fmt.Fprintf(&b, "%s %s: replica %x generation %d %s sealed %v caught %v of %s, leader %v, attempt %+v", m.cfg.Self, g.cfg.Name, g.self, g.gen(), g.phase(), g.sealed, g.caught, describeSets(g.reg), g.leader().Address, g.change.attempt)
		if g.proposer.refused != "" {
			fmt.Fprintf(&b, ", %s", g.proposer.refused)
		}
		fmt.Fprintf(&b, ", got %d, %d passes, %d operations, store %v", len(g.transfer.taken), len(g.passes.open), len(g.ops.open), g.disk.failed)
		for _, p := range g.sorted() {
			fmt.Fprintf(&b, "\n   peer %x %s generation %d caught at %d present %v", p.id, p.node.Address, p.gen, p.caught, g.present(p.id))
			if p.stoppedBy != "" {
				fmt.Fprintf(&b, ", stopped: %s", p.stoppedBy)
			}
		}
	}
	return b.String()
}

// Keeps reports whether the replicas that are in are a winning part of the homes of every bucket that is not held back,
// in each set that counts here or may come to count, and also a winning part of the replicas that decide the next
// generation. Where homes are spread over zones, the latter can be lost without the former: all replicas of a large
// zone are gone, and every bucket has homes in two other zones.
func (m *Machine) Keeps(group uint8, in func(ReplicaID) bool) bool {
	wins := func(s Set) bool { return len(s) == 0 || s.Wins(in) }
	for _, r := range m.Pending(group) {
		v := newViews(r, placement{m.groups[group].cfg.Copies}, table.Buckets)
		if !wins(r.Current) || !v.each(func(v *view) bool { return v.held || wins(v.current) && wins(v.next) && wins(v.old) }) {
			return false
		}
	}
	return true
}

func (k *known) phase() Phase {
	if k.reg == nil {
		return 0
	}
	return k.reg.Phase
}

func describeSets(r *Register) string {
	if r == nil {
		return "no register"
	}
	ids := func(s Set) (all []string) {
		for _, x := range s {
			all = append(all, fmt.Sprintf("%x", x.ID))
		}
		return all
	}
	return fmt.Sprintf("current %v next %v old %v swept %d", ids(r.Current), ids(r.Next), ids(r.Old), r.Swept)
}
