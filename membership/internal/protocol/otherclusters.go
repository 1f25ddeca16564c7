// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
)

// A member asks the nodes that should be in its cluster and are not ([otherClusters.seekClusters]).
// What a member of another cluster answers ([otherClusters.meetCluster]) counts when the two
// clusters are related, and when that cluster would go on if one of the two had to end. A
// claim alone ends nobody: it is believed when it was repeated for some seconds, and when a
// majority of the voters that it names say the same ([otherCluster.isProven]). Then this node's
// cluster yields ([otherClusters.yield], [otherClusters.observe]).
//
// Not both yield: each takes for itself the largest number of voters that its cluster had of
// late, and hears at most some seconds late how many the other has.

const (
	// meetInterval is the time between two questions of a member to seed nodes and remembered
	// voters that are not members: after a partition has healed, the members of two clusters
	// have no other reason to dial each other.
	meetInterval = 5 * time.Second

	// maxMeet bounds the nodes that one round asks.
	maxMeet = 16

	// relationLasts is how long two clusters count as related after one exchange showed it.
	relationLasts = 15 * time.Second

	// sizeLasts is how long a number of voters counts for this node's cluster, and how long
	// who was welcomed into it does not judge: it has not seen the numbers before.
	sizeLasts = 15 * time.Second

	// betterFor is for how long another cluster must have claimed to go on.
	betterFor = 5 * time.Second

	// provenWithin is how long the word of a voter of the other cluster counts.
	provenWithin = 10 * time.Second

	// askVotersInterval is the time between two rounds of questions to those voters. Each asks a
	// quarter of them, and more where they are few, so that all are asked in time.
	askVotersInterval = 2 * time.Second

	// maxOtherClusters bounds the clusters that are compared at a time.
	maxOtherClusters = 8
)

// otherClusters knows the other clusters of this cluster's name that answer, and decides
// whether this node's cluster yields to one of them.
type otherClusters struct {
	*core

	inquiry *inquiry
	memory  *memory

	// next is the index of the address at which the next round goes on, when one round cannot
	// ask all.
	next int

	// judgesFrom is when this node may judge which cluster goes on.
	judgesFrom machine.Instant

	// voters is how many voters are present now; before are larger numbers of late.
	voters int
	before []formerSize

	// clusters are the other clusters that answered of late.
	clusters []*otherCluster

	// ends says that this node's cluster has yielded, so that the node is about to end.
	ends bool
}

// formerSize is a number of voters that were present until some time.
type formerSize struct {
	voters int
	until  machine.Instant
}

// otherCluster is what the answers of its members say of another cluster.
type otherCluster struct {
	cluster gossip.ClusterID
	heard   machine.Instant // When a member of it answered last.
	related machine.Instant // Until when the two count as related.

	// answers counts the answers in a row that claim that this cluster goes on; since is when
	// the first of them came, last when the last did, and spoke when that of each member did.
	// voters are those that the last answer named, and next is the index of the voter with which
	// the next round of questions begins.
	since   machine.Instant
	last    machine.Instant
	answers int
	spoke   map[gossip.Address]machine.Instant
	voters  []gossip.Address
	next    int
}

// Yielded is published when this node's cluster has met another one of its name, and
// that one goes on: this node hosts nothing any more, ends shortly, and joins the
// other cluster when it is started again.
type Yielded struct {
	To     gossip.ClusterID
	Reason string
}

// enter begins to look for other clusters; welcomed says that a member has let this node in.
func (w *otherClusters) enter(welcomed bool) {
	if welcomed {
		w.judgesFrom = w.now.Mono.Add(sizeLasts)
	}
	w.out.Arm(timerMeet, w.now.Mono.Add(meetInterval))
}

// seekClusters asks nodes that should be members, and are not, which cluster they are in.
func (w *otherClusters) seekClusters() {
	if w.phase != phaseMember {
		return
	}
	w.out.Arm(timerMeet, w.now.Mono.Add(meetInterval))
	w.inquiry.forgetStrangers()
	all := slices.Concat(w.inquiry.seeds, w.memory.wanted.addresses())
	slices.SortFunc(all, gossip.Address.Compare)
	all = slices.DeleteFunc(slices.Compact(all), func(a gossip.Address) bool {
		return a == w.self.Address || w.state.ByAddress(a) != nil
	})
	for range min(len(all), maxMeet) {
		w.inquiry.ask(all[w.next%len(all)])
		w.next = (w.next + 1) % len(all)
	}
}

// meetCluster compares this node's cluster with that of a node that answered.
func (w *otherClusters) meetCluster(from gossip.NodeID, what string, attempt uint64, theirs Claim) {
	own := w.state.Cluster()
	if theirs.Cluster.IsZero() || theirs.Cluster == own || !w.inquiry.wasAsked(from, what, attempt) {
		return
	}
	r, mine := w.cluster(theirs.Cluster), w.inquiry.claim()
	if areRelatedClusters(mine, w.inquiry.knownAddresses().evidence(from.Address, theirs), theirs, theirs.Evidence) {
		r.related = w.now.Mono.Add(relationLasts)
	}
	related := w.now.Mono <= r.related
	w.inquiry.noteStranger(from, theirs, related)
	switch {
	case !related || theirs.Yielded || mine.Yielded:
	case !theirs.Standing || !theirs.rank().before(rank{w.largest(), own}):
		r.withdraw()
	case !mine.Standing || w.now.Mono < w.judgesFrom:
		// Only who has standing speaks for its cluster.
	default:
		r.claims(from.Address, theirs, w.now.Mono)
		if r.isProven(w.now.Mono) {
			w.yield(r, from, theirs)
		} else if r.answers == 1 {
			w.askVoters()
		}
	}
}

// otherCluster returns what is known of another cluster.
func (w *otherClusters) cluster(c gossip.ClusterID) *otherCluster {
	i := slices.IndexFunc(w.clusters, func(r *otherCluster) bool { return r.cluster == c })
	if i < 0 {
		if len(w.clusters) == maxOtherClusters {
			oldest := slices.MinFunc(w.clusters, func(a, b *otherCluster) int { return cmp.Compare(a.heard, b.heard) })
			w.clusters = slices.DeleteFunc(w.clusters, func(r *otherCluster) bool { return r == oldest })
		}
		w.clusters = append(w.clusters, &otherCluster{cluster: c, spoke: map[gossip.Address]machine.Instant{}})
		i = len(w.clusters) - 1
	}
	w.clusters[i].heard = w.now.Mono
	return w.clusters[i]
}

// withdraw forgets that the other cluster claimed to go on.
func (r *otherCluster) withdraw() {
	r.answers = 0
	clear(r.spoke)
}

// claims notes that a member of the other cluster claims that its cluster goes on.
func (r *otherCluster) claims(from gossip.Address, theirs Claim, now machine.Instant) {
	if now.Sub(r.last) > relationLasts {
		r.withdraw()
	}
	if r.answers == 0 {
		r.since = now
	}
	r.answers++
	r.last, r.spoke[from], r.voters = now, now, addressesOf(theirs.Voters)
}

// isProven reports whether the other cluster has claimed for long enough that it goes on, and
// most of its voters say so.
func (r *otherCluster) isProven(now machine.Instant) bool {
	proven := 0
	for _, v := range r.voters {
		if at, spoke := r.spoke[v]; spoke && now.Sub(at) <= provenWithin {
			proven++
		}
	}
	return r.answers > 1 && now.Sub(r.since) >= betterFor && 2*proven > len(r.voters)
}

// askVoters asks the voters of each cluster that claims to go on.
func (w *otherClusters) askVoters() {
	if w.phase != phaseMember || !w.state.Yielded().IsZero() {
		return
	}
	for _, r := range w.clusters {
		if r.answers == 0 || w.now.Mono.Sub(r.last) > provenWithin {
			continue
		}
		w.out.Arm(timerAskVoters, w.now.Mono.Add(askVotersInterval))
		for range min(len(r.voters), max(maxMeet, (len(r.voters)+3)/4)) {
			w.inquiry.ask(r.voters[r.next%len(r.voters)])
			r.next = (r.next + 1) % len(r.voters)
		}
	}
}

// measure notes how many voters are present.
func (w *otherClusters) measure() {
	n := len(presentVoters(w.state))
	if n < w.voters {
		w.before = append(w.before, formerSize{w.voters, w.now.Mono})
	}
	w.voters = n
	w.before = slices.DeleteFunc(w.before, func(s formerSize) bool { return w.now.Mono.Sub(s.until) > sizeLasts })
}

// largest is the largest number of voters that were present of late.
func (w *otherClusters) largest() int {
	w.measure()
	n := w.voters
	for _, s := range w.before {
		n = max(n, s.voters)
	}
	return n
}

// yield has this node's cluster yield to another one.
func (w *otherClusters) yield(r *otherCluster, from gossip.NodeID, theirs Claim) {
	w.out.Decide("cluster", w.state.Cluster().String(), fmt.Sprintf("yields to cluster %v", r.cluster), cutText(fmt.Sprintf(
		"%v is in another cluster of this name, which goes on: %d voters against %d, born %d against %d; its voters are at %v, it has the %s",
		from, len(theirs.Voters), w.largest(), r.cluster.Born, w.state.Cluster().Born, r.voters, theirs.listText())))
	to := gossip.Yield{To: r.cluster}
	copy(to.At[:], r.voters)
	w.edit(func(e *gossip.Edit) { e.Yield(to) })
}

// observe ends hosting on this node when its cluster has yielded, and ends the node when
// the news has had time to spread and to be read.
func (w *otherClusters) observe() {
	w.measure()
	to := w.state.Yielded().To
	if to.IsZero() || w.ends {
		return
	}
	w.ends = true
	w.dropStanding()
	w.out.Decide("cluster", w.self.String(), "yielded", yieldReason(to))
	w.out.Publish(Yielded{To: to, Reason: yieldReason(to)})
	w.out.Arm(timerYield, w.now.Mono.Add(w.cfg.FailureDetector.Bounds().MaxSilence))
}

func yieldReason(to gossip.ClusterID) string {
	return fmt.Sprintf("its cluster met cluster %v of the same name, which goes on: the node joins that when it is started again", to)
}

// endYielded ends the node.
func (w *otherClusters) endYielded() {
	if w.phase == phaseMember {
		w.stop(component.StopYielded, yieldReason(w.state.Yielded().To))
	}
}

// raiseEpochs returns the birth with which epochs must begin once a node with this record
// is a member, zero if that need not change. The node may have been in a cluster with
// later epochs than this one's, and storage may have seen those.
func raiseEpochs(s *gossip.State, r Record) int64 {
	if !r.Remembers() || r.Cluster == s.Cluster() || r.EpochBorn < s.EpochBorn() {
		return 0
	}
	return r.EpochBorn + 1
}
