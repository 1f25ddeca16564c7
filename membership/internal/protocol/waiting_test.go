// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// A waiting node reports of each voter since when its answer has been the same, not since
// when the node itself has been waiting: so an operator sees which voters have just come
// back, and which were there just before.
func TestWhoWaitsTellsSinceWhenAVoterAnswersSo(t *testing.T) {
	w := newTown(t, 5)
	for _, n := range w.settle(5) {
		n.dead = true
	}
	n := w.boot(1)
	said := func(i int) protocol.VoterAnswer {
		t.Helper()
		w.run(6 * time.Second) // The longest time between two lines, and a little.
		for _, v := range lastWaiting(n).Voters {
			if v.Voter.Node.Address == address(i) {
				return v
			}
		}
		require.Fail(t, "no voter", "%d of %v", i, lastWaiting(n).Voters)
		return protocol.VoterAnswer{}
	}
	has := func(i int, answer protocol.VoterStatus, since time.Duration) {
		t.Helper()
		v := said(i)
		require.Equal(t, answer, v.Status)
		require.InDelta(t, w.now-since, v.For, float64(7*time.Second), "the line may be 6 s old, and an answer is heard after 1 s")
	}
	began := w.now
	w.run(time.Minute)
	has(2, protocol.VoterSilent, began)
	delete(w.disks, address(3))
	came := w.now
	back := w.boot(2)
	w.boot(3)
	w.run(time.Minute)
	has(1, protocol.VoterFree, began)
	has(2, protocol.VoterFree, came)
	has(3, protocol.VoterLostMemory, came)
	has(4, protocol.VoterSilent, began)

	went := w.now
	back.dead = true
	w.run(time.Minute)
	has(2, protocol.VoterSilent, went)
	again := w.now
	w.boot(2)
	w.run(time.Minute)
	has(2, protocol.VoterFree, again)
}

// The nodes of a new cluster are not started at one moment. A node that is asked for its
// vote before it may give one gives it when it may; otherwise the candidate would let
// others go first for seconds, at every start.
func TestNodesThatStartOneAfterTheOtherFoundAsSoonAsTheyMay(t *testing.T) {
	for _, apart := range []time.Duration{200 * time.Millisecond, time.Second} {
		w := newTown(t, 3)
		for i := range 3 {
			w.boot(i + 1)
			w.run(apart)
		}
		second := w.now - 2*apart // When the second of two that are needed was started.
		w.until(20*time.Second, func() bool { return w.allUp(3) })
		require.Less(t, w.now-second, w.cfg.Fence+2*time.Second, "%v apart\n%s", apart, w.describe())
		w.requireOneCluster()
	}
}

// Where the answering nodes are enough no other has to come: the line says so, so that no
// operator founds a cluster by hand.
func TestWhoWaitsForAVoteAloneSaysSo(t *testing.T) {
	w := newTown(t, 3)
	n := w.boot(2)
	w.run(10 * time.Second)
	require.False(t, lastWaiting(n).Enough)
	require.Equal(t, "1 of 3 of the listed seed nodes are here and in no cluster; missing: 10.0.0.1:7946 (silent), 10.0.0.3:7946 (silent)",
		lastWaiting(n).Reason)
	w.drop = func(_, _ gossip.NodeID, message any) bool {
		_, vote := message.(protocol.Vote)
		return vote
	}
	w.boot(3)
	w.run(10 * time.Second)
	require.True(t, lastWaiting(n).Enough)
	require.Equal(t, "2 of 3 of the listed seed nodes are here and in no cluster; they are enough, a vote is under way; missing: 10.0.0.1:7946 (silent)",
		lastWaiting(n).Reason)
	w.drop = nil
	w.until(20*time.Second, func() bool { return w.allUp(2) })
}

// Each node of a cluster that yields says so in its decisions, not only the one that
// has met the other cluster, and names its own cluster as the one that ends.
func TestEachNodeThatYieldsSaysSoInItsDecisions(t *testing.T) {
	w := newTown(t, 5)
	w.settle(5)
	w.apart(1, 2)
	w.supervise(30 * time.Second)
	alone := w.nodes[address(1)]
	alone.step(protocol.Form{})
	other := w.nodes[address(2)]
	w.until(20*time.Second, func() bool { return alone.sees(2, gossip.Up) && other.sees(2, gossip.Up) })
	yields, goesOn := w.clusterOf(1), w.clusterOf(3)
	w.cut = nil
	w.until(30*time.Second, func() bool { return alone.dead && other.dead })
	var met []machine.Decide
	for _, n := range []*node{alone, other} {
		said := 0
		for _, d := range n.decisions {
			switch {
			case d.Topic != "cluster":
			case d.Subject == n.id.String():
				said++
				require.Equal(t, "yielded", d.Verdict)
				require.Contains(t, d.Reason, goesOn.String())
			default:
				met = append(met, d)
			}
		}
		require.Equal(t, 1, said, "%v says so once", n.id)
	}
	require.NotEmpty(t, met, "somebody met the other cluster")
	for _, d := range met {
		require.Equal(t, yields.String(), d.Subject)
		require.Equal(t, "yields to cluster "+goesOn.String(), d.Verdict)
	}
}

// A voter may still be in the cluster that has lost its majority, and may be leaving it: the
// line says so, and that neither is a reason to go on without it.
func TestWhoWaitsTellsWhoIsStillInTheLastCluster(t *testing.T) {
	w := newTown(t, 3)
	nodes := w.settle(3)
	nodes[0].dead, nodes[1].dead = true, true
	last := nodes[2]
	n := w.boot(1)
	says := func(said protocol.VoterStatus, text string) {
		t.Helper()
		w.until(15*time.Second, func() bool {
			waiting := lastWaiting(n)
			return waiting != nil && waiting.Voters[2].Status == said
		})
		require.Contains(t, lastWaiting(n).Reason, "10.0.0.3:7946 ("+text+")")
		require.False(t, lastWaiting(n).Enough)
		require.True(t, w.clusterOf(1).IsZero())
	}
	says(protocol.VoterInCluster, "in a cluster without a majority")
	last.step(protocol.Leave{Address: last.id.Address})
	says(protocol.VoterLeft, "has left")
}

// A voter that refuses the connection is not silent: the line says why, and how to mend the
// list. When it answers, that counts.
func TestAVoterThatRefusesIsNotSilent(t *testing.T) {
	w := newTown(t, 3)
	w.seeds = append(w.seeds, gossip.Address{Host: "localhost", Port: 7946})
	n := w.boot(1)
	said := func(a gossip.Address) string {
		w.run(6 * time.Second)
		for _, v := range lastWaiting(n).Voters {
			if v.Voter.Node.Address == a {
				return v.String()
			}
		}
		return ""
	}
	refuse := func(at, as gossip.Address) {
		n.step(protocol.PeerRefused{Peer: gossip.NodeID{Address: at}, As: as, Reason: "wrong\nincarnation"})
	}
	w.run(6 * time.Second)
	refuse(address(2), address(7))
	refuse(address(3), gossip.Address{})
	refuse(w.seeds[3], address(1))
	refuse(address(8), address(9))
	require.Equal(t, "answers as 10.0.0.7:7946: write that into the list", said(address(2)))
	require.Equal(t, "refuses this node: wrong; incarnation", said(address(3)))
	require.Equal(t, "is this node, which is called 10.0.0.1:7946: write that into the list", said(w.seeds[3]))
	require.Contains(t, lastWaiting(n).Reason, "10.0.0.2:7946 (answers as 10.0.0.7:7946: write that into the list)")
	w.boot(2)
	require.Equal(t, "in no cluster", said(address(2)))
}

// A node that waits names the cluster that answers and is not related, with both lists and
// what to do.
func TestWhoWaitsNamesTheUnrelatedClusterThatAnswers(t *testing.T) {
	w := newLand(t)
	w.lives(resident{list: []int{1, 2, 3}}, 1, 2, 3)
	w.formed(1, 2, 3)
	w.lives(resident{deployment: 1, list: []int{3, 21, 22}}, 21)
	w.live(20 * time.Second)
	waiting := lastWaiting(w.nodes[address(21)])
	require.Equal(t, protocol.VoterUnrelated, waiting.Voters[2].Status, "%v", waiting.Voters)
	require.Contains(t, waiting.Reason, "is in cluster "+w.clusterAt(1).String())
	require.Contains(t, waiting.Reason, "seed nodes [10.0.0.1:7946, 10.0.0.2:7946, 10.0.0.3:7946] there, seed nodes [10.0.0.3:7946, 10.0.0.21:7946, 10.0.0.22:7946] here")
	require.Len(t, published[protocol.Strangers](w.nodes[address(21)]), 1, "once")
	w.kill(1, 2, 3)
	w.live(time.Minute)
	strangers := published[protocol.Strangers](w.nodes[address(21)])
	require.Empty(t, strangers[len(strangers)-1].All, "it is forgotten")
}
