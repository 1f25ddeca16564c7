// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// maxPastSeenSets bounds the past seen sets that are kept. Where the oldest are missing, a voter
// counts as having cut a node off later than it did, which costs time and nothing else.
const maxPastSeenSets = 1024

// pastSeenSet is the seen set of a state that this node held at a moment: the members in it had
// held all records of that state.
type pastSeenSet struct {
	at      machine.Instant
	members []*gossip.Member
	seen    []uint64 // A bit for each member.
}

func (s pastSeenSet) has(i int) bool { return s.seen[i/64]&(1<<(i%64)) != 0 }

// noteState notes of each new state what is needed when a member is removed later.
func (f *fences) noteState(prev, next *gossip.State) {
	config := next.Config()
	f.many = f.many || f.isMany(max(len(config.Voters), len(config.Previous)))
	if !next.SharesRows(prev) {
		f.noteCuts(next.Records(), f.now.Mono)
	}
	if sameMembers(prev.Members(), next.Members()) {
		return
	}
	for _, member := range next.Members() {
		if _, known := f.exits[member.Node]; member.Status == gossip.Exiting && !known {
			f.exits[member.Node] = f.now.Mono
		}
		if _, known := f.bases[member.Node]; member.Status == gossip.Down && !known {
			f.bases[member.Node] = config.Base(f.surveyed.known == config.Generation()) // As known before this state.
		}
	}
}

// noteSeen notes who has seen the state, while some member is accused by so many that whoever
// sees the state gives that member no standing.
func (f *fences) noteSeen() {
	if !f.many || len(f.surveyed.denied) == 0 {
		f.pastSeenSets = nil
		return
	}
	members := f.state.Members()
	s := pastSeenSet{at: f.now.Mono, members: members, seen: make([]uint64, (len(members)+63)/64)}
	for i, member := range members {
		if f.state.Seen(member.Node) {
			s.seen[i/64] |= 1 << (i % 64)
		}
	}
	if len(f.pastSeenSets) == maxPastSeenSets {
		f.pastSeenSets = slices.Delete(f.pastSeenSets, 0, maxPastSeenSets/2)
	}
	f.pastSeenSets = append(f.pastSeenSets, s)
}

// addPastSeenSets adds to the cuts of a node those of voters that are known to have held, at
// a moment since which they are unchanged, so many records about the node that they deny
// it their word, whether one of the records is their own or not.
func (f *fences) addPastSeenSets(by map[gossip.NodeID]machine.Instant, node gossip.NodeID) {
	since, ok := f.deniedSince(node)
	if !ok {
		return
	}
	for _, s := range f.pastSeenSets {
		if s.at < since {
			continue
		}
		for i, member := range s.members {
			if at, known := by[member.Node]; s.has(i) && (!known || at > s.at) && f.witnesses[member.Node] {
				by[member.Node] = s.at
			}
		}
	}
}

// deniedSince returns since when this node has held enough records about a node,
// unchanged, for all to deny it their word. The records of members that were removed
// meanwhile are not among them.
func (f *fences) deniedSince(node gossip.NodeID) (machine.Instant, bool) {
	var since []machine.Instant
	for _, c := range f.cuts {
		if c.record.Subject == node {
			since = append(since, c.since)
		}
	}
	least := f.accusersMin()
	if len(since) < least {
		return 0, false
	}
	slices.Sort(since)
	return since[least-1], true
}

// sameMembers tells whether two lists of members are the same memory.
func sameMembers(a, b []*gossip.Member) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
