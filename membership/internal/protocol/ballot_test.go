// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// A vote is not given if it was promised to a higher birth, would found a cluster upon
// voters that are not the newest or upon a change that is known to be over, or would be
// the second within moments. Each condition is tested by itself: no other keeps the vote.
func TestAVoteIsGivenOnceAndForTheNewestVoters(t *testing.T) {
	w := newTown(t, 3)
	for _, n := range w.settle(3) {
		n.dead = true
	}
	voter := w.boot(1)
	candidate := gossip.NodeID{Address: address(2), UID: 77}
	var votes []protocol.Vote
	w.drop = func(_, to gossip.NodeID, message any) bool {
		if vote, ok := message.(protocol.Vote); ok && to == candidate {
			votes = append(votes, vote)
		}
		return false
	}
	w.run(10 * time.Second) // It may vote by now.
	record := w.disks[address(1)]
	require.True(t, record.Settled())
	older, newer := record.Stamp, record.Stamp
	older.Gen--
	newer.Gen++
	born := record.Promise + 1_000
	for _, c := range []struct {
		ask   protocol.AskVote
		wants string // Of the reason; none: the vote is given.
	}{
		{protocol.AskVote{Birth: record.Promise, Basis: record.Stamp, Settled: true}, "it has promised birth"},
		{protocol.AskVote{Birth: born, Basis: older, Settled: true}, "it remembers newer voters"},
		{protocol.AskVote{Birth: born, Basis: record.Stamp}, "it knows that the last change of voters is over"},
		{protocol.AskVote{Birth: born, Basis: record.Stamp, Settled: true}, ""},
		{protocol.AskVote{Birth: born + 1, Basis: record.Stamp, Settled: true}, "it has just voted for another one"},
	} {
		votes = nil
		c.ask.Claim.List = w.seeds
		voter.step(machine.Received{From: candidate, Message: c.ask})
		w.run(time.Second)
		require.Len(t, votes, 1, "%+v", c.ask)
		require.Equal(t, c.wants == "", votes[0].Granted, "%+v: %s", c.ask, votes[0].Reason)
		require.Contains(t, votes[0].Reason, c.wants)
	}
	w.run(10 * time.Second)
	votes = nil
	voter.step(machine.Received{From: candidate, Message: protocol.AskVote{Birth: born + 2, Basis: newer, Claim: protocol.Claim{List: w.seeds}}})
	w.run(time.Second)
	require.Len(t, votes, 1)
	require.True(t, votes[0].Granted, votes[0].Reason)
	require.Equal(t, born+2, w.disks[address(1)].Promise)
}

// Where a minority may survive, fewer nodes than all remembered voters may have gone on
// without the nodes that answer: so all voters are needed, and a node that misses a voter
// goes on hosting for the margin.
func TestWhereAMinorityMaySurviveAllVotersStartAgain(t *testing.T) {
	w := newTown(t, 3)
	w.minorities = true
	for _, n := range w.settle(3) {
		n.dead = true
	}
	w.boot(1)
	w.boot(2)
	w.run(time.Minute)
	require.True(t, w.clusterOf(1).IsZero() && w.clusterOf(2).IsZero(), "two of three found a cluster")
	require.False(t, lastWaiting(w.nodes[address(1)]).Enough)
	came := w.now
	w.boot(3)
	w.until(30*time.Second, func() bool { return w.allUp(3) })
	require.Greater(t, w.now-came, 2*w.cfg.Fence, "the fence alone was waited for")
}

// Neither a vote nor the question for one leaves before the promise is on the disk: a
// node that forgot it in a crash would vote twice.
func TestNoVoteLeavesBeforeItsPromiseIsOnTheDisk(t *testing.T) {
	w := newTown(t, 3)
	w.settle(3)
	for i := 1; i <= 3; i++ {
		w.nodes[address(i)].dead = true
	}
	w.sent = map[string]int{}
	w.fails[address(1)] = errHangs
	candidate, voter := w.boot(1), w.boot(2)
	w.until(10*time.Second, func() bool { return candidate.dead })
	require.Equal(t, component.StopDisk, candidate.stopping.Reason, "it has begun to vote for itself")
	require.Zero(t, w.sent["AskVote"])

	w.fails[address(2)] = errHangs
	voter.step(machine.Received{From: candidate.id, Message: protocol.AskVote{
		Birth: w.disks[address(2)].Promise + 1_000, Basis: w.disks[address(2)].Stamp, Settled: true, Claim: protocol.Claim{List: w.seeds},
	}})
	w.until(10*time.Second, func() bool { return voter.dead })
	require.Equal(t, component.StopDisk, voter.stopping.Reason, "it has begun to vote")
	require.Zero(t, w.sent["Vote"])
}

// What an operator founds is born after everything that the answering nodes know of,
// whatever the clock says: its epochs must not be below those that storage has seen.
func TestWhatAnOperatorFoundsIsBornAfterAllThatIsKnown(t *testing.T) {
	w := newTown(t, 5)
	for _, n := range w.settle(5) {
		n.dead = true
	}
	known := w.disks[address(2)]
	known.Promise += time.Hour.Milliseconds()
	w.disks[address(2)] = known
	n := w.boot(1)
	w.boot(2)
	w.run(10 * time.Second)
	n.step(protocol.Form{ID: 1})
	w.until(10*time.Second, func() bool { return n.hosts() })
	require.Greater(t, w.clusterOf(1).Born, known.Promise)
	require.Greater(t, n.machine.State().EpochBorn(), known.Promise)
}

// A node becomes a member only when it would remember that: a node that joined and forgot
// could found another cluster upon the voters before.
func TestNobodyEntersBeforeTheVotersAreOnTheDisk(t *testing.T) {
	w := newTown(t, 2)
	w.settle(2)
	w.fails[address(3)] = errHangs
	n := w.boot(3)
	w.until(20*time.Second, func() bool { return n.dead })
	require.Equal(t, component.StopDisk, n.stopping.Reason)
	require.True(t, n.machine.State().Cluster().IsZero(), "it is a member, and would not know it after a restart")
}

// The voters before a change count until the change is known to be over: the new voters
// are no majority by themselves.
func TestTheVotersBeforeAnUnfinishedChangeHaveTheirSay(t *testing.T) {
	w := newTown(t, 3)
	for _, n := range w.settle(3) {
		n.dead = true
	}
	record := w.disks[address(1)]
	record.Stamp.Gen++
	record.Previous = record.Voters
	for _, v := range record.Previous {
		if v.Node.Address == address(1) {
			record.Voters = []protocol.Voter{v}
		}
	}
	w.disks[address(1)] = record
	n := w.boot(1)
	w.run(time.Minute)
	require.True(t, n.machine.State().Cluster().IsZero(), "one of three founds a cluster")
	w.boot(2)
	w.until(20*time.Second, func() bool { return w.allUp(2) })
}
