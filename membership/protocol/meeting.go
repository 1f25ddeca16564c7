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

// meetInterval is the time between two questions of a member to seed nodes and
// remembered voters that are no members: after a partition has healed the members of
// two clusters have no other reason to dial each other.
const meetInterval = 5 * time.Second

// meetMax bounds the nodes that one round asks.
const meetMax = 16

// meeting is what a member knows of other clusters of its name.
type meeting struct {
	asked []gossip.Address // Who was asked, and so is believed. Sorted.
	next  int              // Where the next round goes on, when there are too many for one.
	ends  bool             // This node's cluster has yielded, and the node is about to end.
}

// Yielded is published when this node's cluster has met another one of its name, and
// that one goes on: this node hosts nothing any more, ends shortly, and joins the
// other cluster when it is started again.
type Yielded struct {
	To     gossip.ClusterID
	Reason string
}

// seekClusters asks those who should be members, and are not, what they are in.
func (m *Machine) seekClusters() {
	if m.phase != phaseMember {
		return
	}
	m.out.Arm(timerMeet, m.now.Mono.Add(meetInterval))
	all := slices.Concat(m.join.seeds, m.memory.wanted.addresses())
	slices.SortFunc(all, gossip.Address.Compare)
	all = slices.DeleteFunc(slices.Compact(all), func(a gossip.Address) bool {
		return a == m.self.Address || m.state.ByAddress(a) != nil
	})
	w := &m.meeting
	w.asked = all
	question := InitJoin{Attempt: m.join.attempt, Claim: m.claim(Record{})}
	for range min(len(all), meetMax) {
		a := all[w.next%len(all)]
		w.next = (w.next + 1) % len(all)
		m.out.Send(gossip.NodeID{Address: a}, question)
	}
}

// meetCluster is told by a node that was asked what it is in. Of two clusters one
// goes on: that with standing before one without, then that with more voters, the
// older, that with the lower nonce. One that the other does not list yields too,
// since the other would not believe it.
func (m *Machine) meetCluster(from gossip.NodeID, theirs Claim) {
	if theirs.Cluster.IsZero() || theirs.Cluster == m.state.Cluster() || !m.state.Yielded().IsZero() {
		return
	}
	if _, asked := slices.BinarySearchFunc(m.meeting.asked, from.Address, gossip.Address.Compare); !asked {
		m.refuse(from, "InitJoinAck", RefusedUnsolicited, "no such question was asked")
		return
	}
	mine := m.claim(theirs.Record)
	young := m.now.Mono.Sub(m.join.joinedAt) < m.foundingLimit()
	switch {
	case !theirs.Standing || !mine.Standing && young:
		return // It ends by itself, or this one is not yet what it will be.
	case mine.Standing && theirs.Known && !theirs.before(mine):
		return
	}
	m.out.Decide("cluster", mine.Cluster.String(), fmt.Sprintf("yields to cluster %v", theirs.Cluster), fmt.Sprintf(
		"%v is in another cluster of this name, which goes on: standing %v against %v, voters %d against %d, born %d against %d",
		from, theirs.Standing, mine.Standing, theirs.Voters, mine.Voters, theirs.Cluster.Born, mine.Cluster.Born))
	m.edit(func(e *gossip.Edit) { e.Yield(theirs.Cluster) })
}

// before reports whether, of two clusters that both have standing, that of c goes on.
func (c Claim) before(o Claim) bool {
	return cmp.Or(
		cmp.Compare(o.Voters, c.Voters), cmp.Compare(c.Cluster.Born, o.Cluster.Born), cmp.Compare(c.Cluster.Nonce, o.Cluster.Nonce),
	) < 0
}

// observeYield ends hosting on this node when its cluster has yielded, and the node
// when the news has had time to spread and to be read.
func (m *Machine) observeYield() {
	to := m.state.Yielded()
	if to.IsZero() || m.meeting.ends {
		return
	}
	m.meeting.ends = true
	m.dropStanding()
	m.out.Decide("cluster", m.self.String(), "yielded", yieldReason(to))
	m.out.Publish(Yielded{To: to, Reason: yieldReason(to)})
	m.out.Arm(timerYield, m.now.Mono.Add(m.cfg.FailureDetector.Bounds().MaxSilence))
}

func yieldReason(to gossip.ClusterID) string {
	return fmt.Sprintf("its cluster met cluster %v of the same name, which goes on: the node joins that when it is started again", to)
}

// endYielded ends the node.
func (m *Machine) endYielded() {
	if m.phase == phaseMember {
		m.stop(component.StopYielded, yieldReason(m.state.Yielded()))
	}
}

// raiseEpochs returns the birth with which epochs must begin once a node with this
// record is a member, zero if that needs no change: the node may have been in a
// cluster with later epochs than this one's, and storage may have seen those.
func raiseEpochs(s *gossip.State, r Record) int64 {
	if !r.Remembers() || r.Cluster == s.Cluster() || r.EpochBorn < s.EpochBorn() {
		return 0
	}
	return r.EpochBorn + 1
}
