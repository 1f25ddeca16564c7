// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/component"
)

// meetInterval is the time between two questions of a member to seed nodes and remembered
// voters that are not members: after a partition has healed, the members of two clusters
// have no other reason to dial each other.
const meetInterval = 5 * time.Second

// meetMax bounds the nodes that one round asks.
const meetMax = 16

// meeting is what a member knows of other clusters of its name.
type meeting struct {
	*core

	inquiry *inquiry
	memory  *memory

	// asked are the addresses that were asked, and whose answers are believed, sorted.
	asked []gossip.Address

	// next is the index in asked at which the next round goes on, when one round cannot
	// ask all.
	next int

	// ends says that this node's cluster has yielded, so that the node is about to end.
	ends bool
}

// Yielded is published when this node's cluster has met another one of its name, and
// that one goes on: this node hosts nothing any more, ends shortly, and joins the
// other cluster when it is started again.
type Yielded struct {
	To     gossip.ClusterID
	Reason string
}

// seekClusters asks nodes that should be members, and are not, which cluster they are in.
func (w *meeting) seekClusters() {
	if w.phase != phaseMember {
		return
	}
	w.out.Arm(timerMeet, w.now.Mono.Add(meetInterval))
	all := slices.Concat(w.inquiry.seeds, w.memory.wanted.addresses())
	slices.SortFunc(all, gossip.Address.Compare)
	all = slices.DeleteFunc(slices.Compact(all), func(a gossip.Address) bool {
		return a == w.self.Address || w.state.ByAddress(a) != nil
	})
	w.asked = all
	question := InitJoin{Attempt: w.inquiry.attempt, Claim: w.inquiry.claim(Record{})}
	for range min(len(all), meetMax) {
		a := all[w.next%len(all)]
		w.next = (w.next + 1) % len(all)
		w.out.Send(gossip.NodeID{Address: a}, question)
	}
}

// meetCluster compares this node's cluster with that of a node that was asked. One of the
// two goes on: the one with standing, then the one with more voters, the older one, the
// one with the lower nonce. A cluster that the other one does not list yields too, since
// the other would not believe it.
func (w *meeting) meetCluster(from gossip.NodeID, theirs Claim) {
	if theirs.Cluster.IsZero() || theirs.Cluster == w.state.Cluster() || !w.state.Yielded().IsZero() {
		return
	}
	if _, asked := slices.BinarySearchFunc(w.asked, from.Address, gossip.Address.Compare); !asked {
		w.refuse(from, "InitJoinAck", RefusedUnsolicited, "no such question was asked")
		return
	}
	mine := w.inquiry.claim(theirs.Record)
	young := w.now.Mono.Sub(w.joinedAt) < w.foundingLimit()
	switch {
	case !theirs.Standing || !mine.Standing && young:
		return // The other cluster ends by itself, or this one is still being founded.
	case mine.Standing && theirs.Known && !theirs.before(mine):
		return
	}
	w.out.Decide("cluster", mine.Cluster.String(), fmt.Sprintf("yields to cluster %v", theirs.Cluster), fmt.Sprintf(
		"%v is in another cluster of this name, which goes on: standing %v against %v, voters %d against %d, born %d against %d",
		from, theirs.Standing, mine.Standing, theirs.Voters, mine.Voters, theirs.Cluster.Born, mine.Cluster.Born))
	w.edit(func(e *gossip.Edit) { e.Yield(theirs.Cluster) })
}

// before reports whether, of two clusters with standing, the one that c claims goes on.
func (c Claim) before(o Claim) bool {
	return cmp.Or(
		cmp.Compare(o.Voters, c.Voters), cmp.Compare(c.Cluster.Born, o.Cluster.Born), cmp.Compare(c.Cluster.Nonce, o.Cluster.Nonce),
	) < 0
}

// observe ends hosting on this node when its cluster has yielded, and ends the node when
// the news has had time to spread and to be read.
func (w *meeting) observe() {
	to := w.state.Yielded()
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
func (w *meeting) endYielded() {
	if w.phase == phaseMember {
		w.stop(component.StopYielded, yieldReason(w.state.Yielded()))
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
