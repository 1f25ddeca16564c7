// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/gossip"
)

// What this node knows of the register, of the other replicas, and of its own one. The methods of [known] change
// nothing, but for [known.take].

// known is what this node knows of a group of keys. The parts of the group decide by it; the group alone changes it.
type known struct {
	m      *env
	index  uint8
	cfg    Group
	table  *table.Table
	self   ReplicaID
	reg    *Register                   // Nil while no register is known.
	views  *views                      // Of reg.
	caught bool                        // The replica has caught up, or was there from the beginning.
	sealed bool                        // The end of the last change is known to be sealed.
	knows  map[ReplicaID]bool          // The replicas that are known to know reg.
	peers  map[ReplicaID]*peer         // The other replicas, by id,
	nodes  map[gossip.NodeID]*peer     // and by node: also members of which no replica is known.
	none   map[gossip.NodeID]bool      // The nodes that have said that they know no register.
	gone   map[ReplicaID]gossip.NodeID // The last nodes of replicas of the register that are those of no member.

	storeCheck storeCheck // Whether stores hold what they should.
}

// take makes a register the known one. It sends no message and ends no operation: until [group.adopt] has come to its
// end, parts still go by the register before.
func (k *known) take(r *Register) {
	k.reg = r
	k.views = newViews(r, placement{k.cfg.Copies}, table.Buckets)
	clear(k.knows)
	k.knows[k.self] = true
	k.sealed = k.ends()
}

// apart reports whether this replica must not count: its store may lack, or lacks, what it has promised or
// acknowledged.
func (k *known) apart() bool { return k.storeCheck.participation != takesPart }

// member reports whether this node has a replica of the group: its members have the group's role.
func (k *known) member() bool { return k.self != 0 }

// gen returns the generation that is known, 0 for none.
func (k *known) gen() uint64 {
	if k.reg == nil {
		return 0
	}
	return k.reg.Gen
}

// holds reports whether this replica is in a set, and so holds data.
func (k *known) holds() bool { return k.reg != nil && k.member() && k.reg.In(k.self) }

// isApart reports whether a replica does not count for now, as far as is known.
func (k *known) isApart(id ReplicaID) bool {
	if id == k.self {
		return k.apart()
	}
	p := k.peers[id]
	return p != nil && p.participation != takesPart
}

// hosts reports whether the node of a replica may host, as far as is known: only then does it complete majorities.
func (k *known) hosts(id ReplicaID) bool {
	if id == k.self {
		return k.m.mayHost()
	}
	p := k.peers[id]
	return p != nil && p.hosts
}

// isOlder reports whether the store of a replica is known to be older than what others remember of it: the replica
// never counts again.
func (k *known) isOlder(id ReplicaID) bool {
	if id == k.self {
		return k.storeCheck.participation == older
	}
	p := k.peers[id]
	return p != nil && p.participation == older
}

// misses reports whether a peer is not known to know the present register.
func (k *known) misses(p *peer) bool {
	turn := k.reg.Lineage.Turn
	return p.turn < turn || p.turn == turn && p.gen < k.reg.Gen
}

// startedAgain reports whether the replica of a peer is known to have been started again since, as another node at the
// same address: a message of this peer comes late.
func (k *known) startedAgain(p *peer) bool {
	q := k.peers[p.id]
	return q != nil && q != p && q.node.Address == p.node.Address && k.m.longer(p.node, q.node)
}

// ends reports whether a winning part of the old homes of each bucket is known to know of the end of the change.
func (k *known) ends() bool {
	return k.views.sealed(k.reg.Phase, func(id ReplicaID) bool { return k.knows[id] })
}

// sorted returns the known peers, sorted by id.
func (k *known) sorted() []*peer {
	all := make([]*peer, 0, len(k.peers))
	for _, p := range k.peers { //quorate:unordered sorted below
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *peer) int { return cmp.Compare(a.id, b.id) })
	return all
}

// envelopeID is the id under which this node sends: that of its replica or, if it has none and only reads and writes,
// its uid.
func (k *known) envelopeID() ReplicaID {
	if k.member() {
		return k.self
	}
	return ReplicaID(k.m.cfg.Self.UID)
}

// leader returns the leader: the lowest node that may hold the group, is reachable, and up or,
// when none is up, leaving.
func (k *known) leader() gossip.NodeID {
	for _, leaving := range [...]bool{false, true} {
		for _, of := range k.m.replicas(k.cfg.Role) {
			if (of.Status.IsUp() && !leaving || of.Status == gossip.Leaving && leaving) && k.m.state.Reachable(of.Node) {
				return of.Node
			}
		}
	}
	return gossip.NodeID{}
}

// leads reports whether this node is the leader.
func (k *known) leads() bool { return k.leader() == k.m.cfg.Self }
