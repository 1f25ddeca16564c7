// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// Whether stores hold what their replicas have promised and acknowledged. A store that was put back to an older state
// holds less, and so does one whose node ended before everything was written; and of two stores with the same replica
// id, one is a copy. The replica of this node is in one of these states ([participation]):
//
//	start ──> apart ──(all members have compared)──> takesPart, or unsure after an unclean end ──> takesPart
//	            └──(a replica remembers a later batch, then or later)──> older ──> another replica
//
// The file has first the states; then how stores are compared, which of two nodes that claim to be one replica is
// believed, and when an unsure replica has everything back. What follows for the group is in stores.go.
//
// The batches of a store have numbers. A message says which number the store had when its node started, and up to which
// one the message may depend on it. Each replica remembers, also on its own disk, what the others have shown
// ([storeCheck.compare]), and tells each of them whether it remembers more than that node has found in its store
// ([OlderStore], [Envelope.Agrees]).
//
// For the others an unsure replica is like one that cannot be reached; once it is sure again, it is like one that has
// lost nothing. So all other rules hold as they are. Two rules bring that about:
//
//   - A replica stays unsure until it has taken in the copies of enough sure replicas: every write for which its own
//     acknowledgement was counted is held by one of those ([Set.restores]). If so many replicas have failed together
//     that there are not enough sure ones, it takes in the copies of all that are left ([Set.failedTogether]).
//   - What it acknowledged before counts for no write that is not confirmed yet. Each unclean start raises the number
//     [Envelope.Restarts]. Every replica adopts and writes down a greater number before it sends anything more, and an
//     acknowledgement with a smaller number than that of the node that counts it does not count ([group.learn]). So a
//     replica that has given its copy to an unsure one, and acknowledges a write later, tells the coordinator of the
//     write of the unclean start.

// StoreVersion is what a replica remembers of the store of another one: the greatest number of a batch that the node
// with the uid has shown (Written), and the greatest that nodes before it had shown (Before).
type StoreVersion struct {
	ID              ReplicaID
	UID             gossip.UID
	Written, Before uint64
}

// OlderStore tells a replica that its store is older than what the sender remembers of it: the batch Written was in it.
type OlderStore struct {
	Of      ReplicaID
	Written uint64
}

// storeCheck is the part of a group that knows whether stores hold what they should.
type storeCheck struct {
	durable       bool
	participation participation // Whether this replica counts; in memory it does.
	// unclean says that the node that used the store before has not ended in order, and that what it had not written
	// was not taken in from others yet: once the store is compared, this replica is unsure.
	unclean  bool
	restarts uint64 // The greatest number of unclean starts that is known.

	// older is the number of a batch that another replica remembers and this store did not hold
	// at the start; 0 while no replica remembers such a batch.
	older   uint64
	witness string // The node that remembers the batch; "" if the store itself says that it is older.

	shown map[ReplicaID]StoreVersion
	news  bool            // shown has changed since it was written to the store last.
	noted machine.Instant // When shown was written to the store last.

	// refused are the claims that are not believed, by the node that makes them. If two stores counted as one replica,
	// two majorities need not have a store in common.
	refused map[gossip.NodeID]claim

	copies map[ReplicaID]copyTaken       // Whose copies were taken in while this replica is unsure, in this generation.
	gone   map[ReplicaID]machine.Instant // Since when replicas of the register are those of no member.
}

// claim says which replica a node claims to be, and which node is believed to be that replica.
type claim struct {
	id ReplicaID
	of gossip.NodeID
}

// copyTaken says how the copy of a replica was taken in.
type copyTaken struct {
	began machine.Instant // When it was asked for.
	sure  bool            // The replica was sure when it answered.
}

// newStoreCheck returns the state with which a replica begins, by what its store says.
func newStoreCheck(cfg Group) storeCheck {
	s := storeCheck{durable: cfg.Durable, restarts: cfg.Meta.Restarts, shown: map[ReplicaID]StoreVersion{}, refused: map[gossip.NodeID]claim{}, gone: map[ReplicaID]machine.Instant{}}
	for _, of := range cfg.Meta.Shown {
		s.shown[of.ID] = of
	}
	r := cfg.Meta.Register
	s.unclean = cfg.Durable && cfg.Meta.Behind && r != nil && r.In(cfg.Replica)
	switch {
	case cfg.Replica != 0 && cfg.Meta.Older == cfg.Replica:
		s.participation, s.older = older, cfg.Meta.Written+1
	case cfg.Durable && cfg.Replica != 0 && !cfg.Fresh:
		s.participation = apart
	default:
		s.endComparison()
	}
	s.forgetCopies()
	return s
}

// endComparison notes that all members have compared the store.
func (s *storeCheck) endComparison() {
	if s.participation = takesPart; s.unclean {
		s.participation = unsure
	}
}

// restored notes that nothing is missing any more of what was acknowledged.
func (s *storeCheck) restored() {
	if s.unclean = false; s.participation == unsure {
		s.participation = takesPart
	}
}

// putBack notes that the store was put back to an older state: a node knows of a later batch.
func (s *storeCheck) putBack(batch uint64, witness string) {
	s.participation, s.older, s.witness = older, batch, witness
}

// reset has the replica take part: it has a fresh store, or an operator has decided that its copy counts.
func (s *storeCheck) reset() {
	s.participation, s.unclean, s.older, s.witness = takesPart, false, 0, ""
}

// forget forgets the numbers that were shown in another lineage, and has the replica take part: an operator has decided
// which copy counts.
func (s *storeCheck) forget() {
	clear(s.shown)
	s.news = true
	s.reset()
}

// why says, for people, why this replica takes no part; "" if it does.
func (s *storeCheck) why() string {
	switch s.participation {
	case older:
		return "its store was put back to an older state: it is put aside as soon as the other replicas can go on without it; " +
			"if too many of them are gone, start them again, or accept the loss at the replica that holds the most"
	case apart:
		return "its store is compared with what the other replicas remember of it"
	case unsure:
		return "its node has ended before everything was written that was acknowledged: it takes in what the others hold; " +
			"if too many of them are gone, start them again, or accept the loss at the replica that holds the most"
	default:
		return ""
	}
}

// compare notes what an envelope shows of the store of its sender. It returns the number of the last batch that is
// remembered here and was missing when the sender's node started, 0 for none. A late message of the node before is
// taken in the same way: what it shows belongs to the same store.
func (s *storeCheck) compare(p *peer, e Envelope) (beyond uint64) {
	if !s.durable || e.Written == 0 && s.shown[e.From].ID == 0 {
		return 0
	}
	of := s.shown[e.From]
	before := of
	switch top := max(of.Written, of.Before); {
	case of.ID != 0 && of.UID == p.node.UID:
		of.Written = max(of.Written, e.Written)
	case e.Loaded < top:
		of.Before, beyond = max(of.Before, e.Written), top
	default:
		of = StoreVersion{ID: e.From, UID: p.node.UID, Written: e.Written, Before: top}
	}
	if of.UID == p.node.UID && of.Before > e.Loaded {
		beyond = of.Before
	}
	if e.Apart && e.Written == e.Loaded {
		// Nothing depends on this node yet. It may run with a copy of the disk of a member that
		// was not heard yet, and the numbers of the copy must not judge that one.
		return beyond
	}
	if of != before {
		s.shown[e.From], s.news = of, true
	}
	return beyond
}

// remembered returns what is to be written of what others have shown, sorted.
func (s *storeCheck) remembered() []StoreVersion {
	all := make([]StoreVersion, 0, len(s.shown))
	for _, of := range s.shown { //quorate:unordered sorted below
		all = append(all, of)
	}
	slices.SortFunc(all, func(x, y StoreVersion) int { return compare64(uint64(x.ID), uint64(y.ID)) })
	return all
}

// prune forgets replicas that are in no set and have no node: when they come back, they drop what they hold anyhow.
func (s *storeCheck) prune(counts func(ReplicaID) bool) {
	maps.DeleteFunc(s.shown, func(id ReplicaID, _ StoreVersion) bool { return !counts(id) })
}

// refuse notes that two nodes claim to be one replica: a disk was copied, or one of them lies. All nodes believe the
// member that has been up for longer. With first, that is the one that claims now, and the other is refused; refuse
// reports whether the claim is refused. A disk that was moved to another node is believed there as soon as its former
// node is no member any more.
func (s *storeCheck) refuse(by gossip.NodeID, c claim, first bool) bool {
	if first {
		s.refused[c.of] = claim{c.id, by}
		return false
	}
	s.refused[by] = c
	return true
}

// forgetClaims forgets claims of which one node is no member any more.
func (s *storeCheck) forgetClaims(state *gossip.State) {
	for by, of := range s.refused { //quorate:unordered each by itself
		if state.Member(by) == nil || state.Member(of.of) == nil {
			delete(s.refused, by)
		}
	}
}

// disputed names, for people, the nodes that claim to be one replica, and says what to do; "" for none.
func (s *storeCheck) disputed() string {
	var all []string
	for by, of := range s.refused { //quorate:unordered sorted below
		all = append(all, fmt.Sprintf("%s claims to be the replica %x, which is that of %s: one of their disks is a copy: stop that node and empty its directory", by, uint64(of.id), of.of))
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

// forgetCopies forgets which copies were taken in: another register counts now.
func (s *storeCheck) forgetCopies() { s.copies = map[ReplicaID]copyTaken{} }

// ended notes that a comparison with another replica has ended.
func (s *storeCheck) ended(x *pass) {
	if s.unclean && x.fenced {
		s.copies[x.peer.id] = copyTaken{began: x.began, sure: x.sure}
	}
}

// needsCopy reports whether the copy of a peer has to be asked for (again): it was not taken in yet; or the peer was
// unsure then, and is not now; or the peer is unsure, and its copy was asked for before the latest moment at which
// another replica was found to be unsure.
func (s *storeCheck) needsCopy(p *peer, latest machine.Instant) bool {
	t, took := s.copies[p.id]
	switch {
	case !took:
		return true
	case p.unsure == 0:
		return !t.sure
	default:
		return t.began <= latest
	}
}

// stillUnsure reports whether a peer was unsure after a moment and is now, where at is the latest moment at which a
// replica was found to be unsure: so all of these were unsure at the same time.
func (s *storeCheck) stillUnsure(p *peer, at machine.Instant) bool {
	if p == nil {
		return false
	}
	t, took := s.copies[p.id]
	return took && !t.sure && t.began > at && p.unsure != 0
}

// hasCopy reports whether the copy of a replica was taken in while that was sure, or was asked for after a moment.
func (s *storeCheck) hasCopy(id ReplicaID, at machine.Instant) bool {
	t, took := s.copies[id]
	return took && (t.sure || t.began > at)
}

// noteMissing notes whether a replica of the register is that of a member, and since when it is not.
func (s *storeCheck) noteMissing(id ReplicaID, there bool, now machine.Instant) {
	if there {
		delete(s.gone, id)
	} else if s.gone[id] == 0 {
		s.gone[id] = now
	}
}

// restores reports whether a replica has everything back that counts, once it has taken in the copies of some sure
// ones: of more than half of the other replicas. A confirmed write is held by a majority of the set, this replica
// perhaps among them, so that at most half of the others lack it.
func (s Set) restores(self ReplicaID, taken func(ReplicaID) bool) bool {
	n := s.count(func(id ReplicaID) bool { return id != self && taken(id) })
	return 2*n > len(s)-1
}

// failedTogether reports whether a majority of the set has failed at the same time, so that a write may be lost for
// good, and the copies of all replicas that are left, a winning part at least, were taken in.
func (s Set) failedTogether(failed, has, gone func(ReplicaID) bool) bool {
	return s.Majority(failed) && s.Wins(has) && s.count(func(id ReplicaID) bool { return has(id) || gone(id) }) == len(s)
}

// acknowledges reports whether a message tells its receiver that its sender holds something.
func acknowledges(body any) bool {
	switch body.(type) {
	case PutTaken, DeltasTaken, Answer:
		return true
	default:
		return false
	}
}

// compares reports whether a message is a question of a pass.
func compares(body any) bool {
	switch body.(type) {
	case Compare, AskBuckets, Pull:
		return true
	default:
		return false
	}
}
