// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"

	"github.com/quorate/quorate/gossip"
)

// Which nodes and clusters of one name have to do with each other follows from claims alone
// and is decided here, by functions without state. What tells deployments apart is their
// lists and the lineage of their clusters; that an address is known says little, since
// addresses are used again.
//
//	two nodes in no cluster     areRelated          their votes count for each other
//	one of them, and a member   Claim.isRelatedTo   it joins that cluster, or waits for it
//	members of two clusters     areRelatedClusters  one of the clusters yields

// Evidence says in an answer what the node that answers knows of the claim in the question.
// Values are part of the wire.
type Evidence uint16

// What is known of a claim. A list is mostly known when it is not empty, and more than half
// of its addresses are known.
const (
	// ListListed: its list is mostly in the list here, and both are configured.
	ListListed Evidence = 1 << iota
	// ListKnown: its list is mostly known here, by list, as voters or as removed members.
	ListKnown
	// ListNow: its list is mostly known here without removed members, also without its own
	// address.
	ListNow
	// ListMembers: its list is mostly members here, also without its own address.
	ListMembers
	// VotersListed: the voters of its cluster are mostly in the list here.
	VotersListed
	// AddressListed: its address is in the list here, which is configured.
	AddressListed
	// AddressKnown: its address is known here.
	AddressKnown
)

// has reports whether all of some evidence is there.
func (e Evidence) has(all Evidence) bool { return e&all == all }

// addressSet is a set of addresses.
type addressSet map[gossip.Address]bool

func addressSetOf(lists ...[]gossip.Address) addressSet {
	p := addressSet{}
	for _, list := range lists {
		for _, a := range list {
			p[a] = true
		}
	}
	return p
}

// most reports whether more than half of a list is in the set.
func (p addressSet) most(list []gossip.Address) bool {
	n := 0
	for _, a := range list {
		if p[a] {
			n++
		}
	}
	return 2*n > len(list)
}

// mostOthers reports whether more than half of a list is in the set, and also more than half of
// the list without one address.
func (p addressSet) mostOthers(list []gossip.Address, except gossip.Address) bool {
	return p.most(list) && p.most(slices.DeleteFunc(slices.Clone(list), func(a gossip.Address) bool { return a == except }))
}

// knownAddresses are the addresses that a node knows, by how it knows them.
type knownAddresses struct {
	found   bool       // The list was found.
	list    addressSet // Its list.
	now     addressSet // Its list, its own address, and the voters of its cluster or record.
	members addressSet
	removed addressSet // Removed members that its state still remembers.
}

// known reports whether more than half of a list is known.
func (s knownAddresses) known(list []gossip.Address) bool {
	n := 0
	for _, a := range list {
		if s.now[a] || s.removed[a] {
			n++
		}
	}
	return 2*n > len(list)
}

// knownAddresses returns the addresses that this node knows.
func (q *inquiry) knownAddresses() knownAddresses {
	s := Claim{List: q.seeds, Found: q.found, Record: q.memory.wanted}.knownAddresses(q.self.Address)
	s.members, s.removed = addressSet{}, addressSet{}
	for _, m := range q.state.Members() {
		s.members[m.Node.Address] = true
	}
	for _, t := range q.state.Tombstones() {
		s.removed[t.Node.Address] = true
	}
	return s
}

// knownAddresses returns the addresses that a node in no cluster knows, by what it claims at its
// own address.
func (c Claim) knownAddresses(at gossip.Address) knownAddresses {
	return knownAddresses{found: c.Found, list: addressSetOf(c.List), now: addressSetOf(c.List, c.Record.addresses(), []gossip.Address{at})}
}

// evidence returns what is known of a claim that was made at an address.
func (s knownAddresses) evidence(at gossip.Address, c Claim) Evidence {
	var e Evidence
	note := func(which Evidence, is bool) {
		if is {
			e |= which
		}
	}
	note(ListListed, !s.found && !c.Found && s.list.most(c.List))
	note(ListKnown, s.known(c.List))
	note(ListNow, s.now.mostOthers(c.List, at))
	note(ListMembers, s.members.mostOthers(c.List, at))
	note(VotersListed, s.list.most(addressesOf(c.Voters)))
	note(AddressListed, !s.found && s.list[at])
	note(AddressKnown, s.now[at] || s.removed[at])
	return e
}

func addressesOf(nodes []gossip.NodeID) []gossip.Address {
	all := make([]gossip.Address, len(nodes))
	for i, n := range nodes {
		all[i] = n.Address
	}
	return all
}

// isRelatedTo reports whether c, the claim of a node in no cluster, is related to the cluster
// of a member, by the member's claim and its evidence about c.
func (c Claim) isRelatedTo(member Claim, e Evidence) bool {
	own := addressSetOf(c.List)
	found := e.has(ListNow) && own.most(addressesOf(member.Voters))
	switch to := c.Record.Yielded.To; {
	case !to.IsZero() && to.Lineage() == member.lineage():
		return true
	case c.Record.Remembers():
		// That the voters of its record are known by address says nothing: they may have been
		// others at the same addresses.
		return c.lineage() == member.lineage() || e.has(ListListed) || found
	case c.Found:
		return e.has(ListMembers) || found
	default:
		return e.has(ListKnown) || !member.Found && own.most(member.List)
	}
}

// areRelated reports whether two nodes in no cluster are related, by what they claim at their
// addresses. It says the same from both sides.
func areRelated(a Claim, at gossip.Address, b Claim, there gossip.Address) bool {
	knownToA, knownToB := a.knownAddresses(at), b.knownAddresses(there)
	if a.Record.Remembers() && b.Record.Remembers() && a.lineage() == b.lineage() {
		return true
	}
	listA, listB := knownToB.known(a.List), knownToA.known(b.List)
	if a.Found || b.Found {
		return listA && listB // What discovery finds must be mutual: it may be stale.
	}
	return listA || listB || knownToB.known(a.Record.addresses()) || knownToA.known(b.Record.addresses())
}

// areRelatedClusters reports whether the clusters of two members are related, by what the
// members claim and the evidence of each about the other's claim.
func areRelatedClusters(a Claim, aboutB Evidence, b Claim, aboutA Evidence) bool {
	return a.lineage() == b.lineage() || (aboutA | aboutB).has(ListListed) || (aboutA & aboutB).has(VotersListed)
}
