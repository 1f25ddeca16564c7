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
// holds less, and so does one whose node ended before everything was written; of two stores with one name one is a
// copy. The replica of this node is in one of these states:
//
//	start ──> apart ──(everybody who is there has compared)──> yes, or unsure after an unclean end ──> yes
//	            └──(a replica remembers a later batch, then or later)──> older ──> another replica
//
// First the states; then how stores are compared, who is heard of two that claim to be one replica, and when an unsure
// replica has everything back. What follows for the group is in stores.go.
//
// The batches of a store have numbers. A message says which number the store had when its node
// started, and up to which one the message may depend on it. Each replica remembers, also on
// its own disk, what the others have shown ([storeCheck.compare]), and says to each whether that is
// more than its node has found in its store ([OlderStore], [Envelope.Agrees]).
//
// An unsure replica is to the others like one that cannot be reached; and when it ends, like one
// that has lost nothing. So all other rules hold as they are. Two things make it so:
//
//   - It ends being unsure when it has taken in what enough sure replicas hold that every write
//     which counts on it is held by one of those ([Set.restores]), or, if so many have failed
//     together that this cannot be, what everybody holds who is left ([Set.failedTogether]).
//   - What it has acknowledged before counts for no write that is not confirmed yet. Each
//     unclean start raises the number [Envelope.Restarts], which every replica takes over, and
//     writes down, before it says anything more; and acknowledgements below the number of
//     whoever counts them do not count ([group.learn]). So whoever takes a write in after it has
//     answered an unsure replica tells the one who counts.

// StoreVersion is what a replica remembers of the store of another one: the greatest number of a
// batch that the node with the uid has shown, and the greatest of those before it.
type StoreVersion struct {
	ID              ReplicaID
	UID             gossip.UID
	Written, Before uint64
}

// OlderStore says to a replica that its store is older than what the sender remembers of it: that
// the batch with a number was in it.
type OlderStore struct {
	Of      ReplicaID
	Written uint64
}

// storeCheck is the part of a group that knows whether stores hold what they should.
type storeCheck struct {
	durable       bool
	participation participation // Whether this replica counts; in memory it does.
	// unclean says that the node before has not ended in order, and what it had not written was not taken in from
	// others yet: after being apart, this replica is unsure.
	unclean  bool
	restarts uint64 // The greatest number of unclean starts that is known.

	// older is the number of a batch that another replica remembers and this store did not hold
	// at the start; 0 while no replica remembers such a batch.
	older   uint64
	witness string // The node that remembers the batch; "" if the store itself says that it is older.

	shown map[ReplicaID]StoreVersion
	news  bool            // shown has changed since it was written to the store last.
	noted machine.Instant // When shown was written to the store last.

	// refused are the claims that are not believed, by the node that makes them. Two stores under one name would be
	// counted as one, so that two majorities need not meet.
	refused map[gossip.NodeID]claim

	copies map[ReplicaID]copyTaken       // Whose copy was taken in since this replica is unsure, in this generation.
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

// newStoreCheck returns what the store says of its past.
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

// endComparison ends the comparison: everybody who is there has compared.
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

// putBack notes that the store is older: that a node knows of a later batch.
func (s *storeCheck) putBack(batch uint64, witness string) {
	s.participation, s.older, s.witness = older, batch, witness
}

// reset begins anew: with another store, or since an operator has decided which copy counts.
func (s *storeCheck) reset() {
	s.participation, s.unclean, s.older, s.witness = takesPart, false, 0, ""
}

// forget forgets the numbers that were shown in another lineage: an operator has decided which copy counts.
func (s *storeCheck) forget() {
	clear(s.shown)
	s.news = true
	s.reset()
}

// why says for people why this replica takes no part, "" if it does.
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

// compare takes what an envelope shows of the store of its sender, and returns what is
// remembered beyond what the sender's node has found there, 0 for nothing. A message of a
// former life that comes late looks the same, and is of use for judging the present one.
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

// prune forgets replicas that count nowhere and are not there: what they come back with is
// dropped anyhow.
func (s *storeCheck) prune(counts func(ReplicaID) bool) {
	maps.DeleteFunc(s.shown, func(id ReplicaID, _ StoreVersion) bool { return !counts(id) })
}

// refuse notes that a node claims to be the replica of another one: somebody has copied a disk, or lies. The member
// that has been up for longer is heard and the other is not, on all nodes the same; refuse reports whether that is
// the one which claims. A disk that has moved is heard as soon as its first node is no member any more.
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

// disputed names, for people, the nodes that claim to be one replica, and says what to do. It is
// empty while no two nodes do.
func (s *storeCheck) disputed() string {
	var all []string
	for by, of := range s.refused { //quorate:unordered sorted below
		all = append(all, fmt.Sprintf("%s claims to be the replica %x, which is that of %s: one of their disks is a copy: stop that node and empty its directory", by, uint64(of.id), of.of))
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

// forgetCopies forgets whose copies were taken in: another register counts.
func (s *storeCheck) forgetCopies() { s.copies = map[ReplicaID]copyTaken{} }

// ended notes that a comparison with another replica has ended.
func (s *storeCheck) ended(x *pass) {
	if s.unclean && x.fenced {
		s.copies[x.peer.id] = copyTaken{began: x.began, sure: x.sure}
	}
}

// needsCopy reports whether the copy of a home of this replica's keys has to be asked for: it was not taken in yet, or
// not since the replica is sure, or before it was known who else is unsure, which was at a moment.
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

// stillUnsure reports whether a replica was still unsure after it was heard of all others that are
// unsure: so there was a moment at which all of them were.
func (s *storeCheck) stillUnsure(p *peer, at machine.Instant) bool {
	if p == nil {
		return false
	}
	t, took := s.copies[p.id]
	return took && !t.sure && t.began > at && p.unsure != 0
}

// hasCopy reports whether the copy of a replica was taken in while it was sure, or after it was heard of all others
// that are unsure.
func (s *storeCheck) hasCopy(id ReplicaID, at machine.Instant) bool {
	t, took := s.copies[id]
	return took && (t.sure || t.began > at)
}

// noteMissing notes since when a replica of the register is that of no member.
func (s *storeCheck) noteMissing(id ReplicaID, there bool, now machine.Instant) {
	if there {
		delete(s.gone, id)
	} else if s.gone[id] == 0 {
		s.gone[id] = now
	}
}

// restores reports whether a replica that has taken in what some sure ones hold has everything
// back that counts. A write is held by a majority of the set, this replica perhaps among them;
// so all the others but fewer than a majority hold it, as long as they are sure.
func (s Set) restores(self ReplicaID, taken func(ReplicaID) bool) bool {
	n := s.count(func(id ReplicaID) bool { return id != self && taken(id) })
	return 2*n > len(s)-1
}

// failedTogether reports whether a majority of the set has failed together, so that a write may be
// lost, and everybody's copy was taken in who is left, of a winning part at least.
func (s Set) failedTogether(failed, has, gone func(ReplicaID) bool) bool {
	return s.Majority(failed) && s.Wins(has) && s.count(func(id ReplicaID) bool { return has(id) || gone(id) }) == len(s)
}

// acknowledges reports whether a message says that its sender holds something, on which the
// receiver builds.
func acknowledges(body any) bool {
	switch body.(type) {
	case PutTaken, DeltasTaken, Answer:
		return true
	default:
		return false
	}
}

// compares reports whether a message is a question of one table to another.
func compares(body any) bool {
	switch body.(type) {
	case Compare, AskBuckets, Pull:
		return true
	default:
		return false
	}
}
