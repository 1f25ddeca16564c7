// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// town is a loop whose nodes have disks and are started again where they stand.
type town struct {
	*loop
	seeds []gossip.Address
	disks map[gossip.Address]protocol.Record
	fails map[gossip.Address]error // What the disk at an address answers; errHangs: nothing.
	uid   gossip.UID

	minorities bool // The strategy may keep a minority.
}

// errHangs stands for a disk that does not answer.
var errHangs = errors.New("hangs")

func newTown(t *testing.T, seeds int) *town {
	t.Helper()
	w := &town{loop: newLoop(t), disks: map[gossip.Address]protocol.Record{}, fails: map[gossip.Address]error{}, uid: 100}
	for i := range seeds {
		w.seeds = append(w.seeds, address(i+1))
	}
	w.calls = func(n *node, call machine.Call) {
		require.Equal(t, protocol.CallRemember, call.Port)
		err := w.fails[n.id.Address]
		if errors.Is(err, errHangs) {
			return
		}
		w.after(2*time.Millisecond, func() {
			if n.dead {
				return
			}
			if err == nil {
				w.disks[n.id.Address] = call.Request.(protocol.Record)
			}
			n.step(machine.Called{ID: call.ID, Err: err})
		})
	}
	return w
}

// boot starts the i-th node with what its disk holds.
func (w *town) boot(i int) *node {
	w.t.Helper()
	w.uid++
	n := w.start(i, w.uid, func(_ *protocol.Config, deps *protocol.Dependencies) {
		deps.Record, deps.Remember = w.disks[address(i)], true
		if w.minorities {
			deps.Downing.Class.MajorityOnly = false
		}
	})
	n.step(protocol.Join{Seeds: w.seeds})
	return n
}

// settle starts nodes 1 to n and waits until all are up.
func (w *town) settle(n int) []*node {
	w.t.Helper()
	var nodes []*node
	for i := range n {
		nodes = append(nodes, w.boot(i+1))
	}
	w.until(30*time.Second, func() bool { return w.allUp(n) })
	w.run(5 * time.Second)
	return nodes
}

// supervise starts every node again a second after it has ended, for some time, and
// looks at each tenth of a second whether nodes of two clusters host.
func (w *town) supervise(d time.Duration) {
	w.t.Helper()
	ended := map[*node]time.Duration{}
	for end := w.now + d; w.now < end; w.run(100 * time.Millisecond) {
		for i := 1; i <= 9; i++ {
			n := w.nodes[address(i)]
			if n == nil || !n.dead {
				continue
			}
			if at, ok := ended[n]; !ok {
				ended[n] = w.now
			} else if w.now-at >= time.Second {
				w.boot(i)
			}
		}
		w.requireOneCluster()
	}
}

// requireOneCluster fails when nodes of two clusters host. covers I32.
func (w *town) requireOneCluster() {
	w.t.Helper()
	hosted := map[gossip.ClusterID][]gossip.NodeID{}
	for _, n := range w.nodes {
		if n.hosts() {
			c := n.machine.State().Cluster()
			hosted[c] = append(hosted[c], n.id)
		}
	}
	require.LessOrEqual(w.t, len(hosted), 1, "%v\n%s", hosted, w.loop)
}

// apart cuts the nodes named from all others.
func (w *town) apart(side ...int) {
	in := func(a gossip.Address) bool {
		return slices.ContainsFunc(side, func(i int) bool { return address(i) == a })
	}
	w.cut = func(from, to gossip.Address) bool { return in(from) != in(to) }
}

func (w *town) clusterOf(i int) gossip.ClusterID {
	return w.nodes[address(i)].machine.State().Cluster()
}

func lastWaiting(n *node) *protocol.Waiting {
	all := published[protocol.Waiting](n)
	if len(all) == 0 {
		return nil
	}
	return &all[len(all)-1]
}

// The first seed node is cut off, alone or with another, downs itself, is started
// again inside the partition with its disk or without, and founds nothing; after the
// heal it is in the cluster that it left. covers F3, I5, I32.
func TestASeedThatIsStartedAgainInsideThePartitionFoundsNothing(t *testing.T) {
	for _, c := range []struct {
		nodes, seeds int
		side         []int
		lost         bool
	}{
		{3, 3, []int{1}, false},
		{5, 3, []int{1}, false},
		{5, 3, []int{1, 4}, false},
		{5, 5, []int{1, 2}, false},
		{5, 1, []int{1}, false},
		{5, 2, []int{1, 3}, false},
		{5, 3, []int{1}, true},
		{5, 3, []int{1, 4}, true},
		{5, 5, []int{1, 2}, true},
	} {
		t.Run(fmt.Sprintf("%d nodes, %d seeds, %v, lost %v", c.nodes, c.seeds, c.side, c.lost), func(t *testing.T) {
			w := newTown(t, c.seeds)
			w.settle(c.nodes)
			before := w.clusterOf(c.nodes)
			w.apart(c.side...)
			if c.lost {
				for _, i := range c.side {
					delete(w.disks, address(i))
				}
			}
			w.supervise(time.Minute)
			for _, i := range c.side {
				require.True(t, w.clusterOf(i).IsZero(), "node %d is in no cluster", i)
				require.NotNil(t, lastWaiting(w.nodes[address(i)]), "and says for whom it waits")
			}
			w.cut = nil
			w.supervise(30 * time.Second)
			require.True(t, w.allUp(c.nodes), w.describe())
			require.Equal(t, before, w.clusterOf(1))
		})
	}
}

// The first seed node is started again while all others are frozen, or do not hear it
// for a while: no network fault is needed for a second cluster. covers F3, F24.
func TestASeedThatIsStartedAgainWhileOthersStandStillFoundsNothing(t *testing.T) {
	w := newTown(t, 3)
	nodes := w.settle(3)
	before := w.clusterOf(2)
	nodes[1].freeze()
	nodes[2].freeze()
	nodes[0].dead = true
	w.boot(1)
	w.run(7 * time.Second)
	require.True(t, w.clusterOf(1).IsZero())
	nodes[1].thaw()
	nodes[2].thaw()
	w.supervise(40 * time.Second)
	require.True(t, w.allUp(3), w.describe())
	require.Equal(t, before, w.clusterOf(1))
}

// After all nodes have ended any majority of them starts the cluster again, with a
// later birth although the clocks are behind, and a minority does not. covers F32, F53.
func TestAMajorityOfThoseWhoRememberStartsAgain(t *testing.T) {
	for _, back := range [][]int{{1, 2, 3}, {3, 4, 5}, {2, 4, 5}} {
		w := newTown(t, 3)
		nodes := w.settle(5)
		before := w.clusterOf(1)
		for _, n := range nodes {
			n.dead = true
		}
		w.wall = w.wall.Add(-48 * time.Hour)
		for _, i := range back[:2] {
			w.boot(i)
		}
		w.run(30 * time.Second)
		waiting := lastWaiting(w.nodes[address(back[0])])
		require.NotNil(t, waiting, "two of five are no majority, seed nodes or not")
		require.Equal(t, before.Born, waiting.Basis.Born)
		require.Len(t, waiting.Voters, 5)
		silent := 0
		for _, v := range waiting.Voters {
			if v.Status == protocol.VoterSilent {
				silent++
			}
		}
		require.Equal(t, 3, silent)
		w.boot(back[2])
		w.until(30*time.Second, func() bool { return w.nodes[address(back[2])].sees(3, gossip.Up) })
		require.Greater(t, w.clusterOf(back[0]).Born, before.Born, "epochs grow")
		w.run(10 * time.Second)
		require.Len(t, w.nodes[address(back[0])].machine.State().Config().Voters, 3, "lost votes are dropped by the first edit")
		w.requireOneCluster()
	}
}

// A node that has lost its disk speaks for no voter, and the nodes that wait say so.
// covers F50.
func TestALostDiskSpeaksForNobody(t *testing.T) {
	w := newTown(t, 3)
	nodes := w.settle(3)
	for _, n := range nodes {
		n.dead = true
	}
	delete(w.disks, address(2))
	w.boot(1)
	w.boot(2)
	w.run(time.Minute)
	require.True(t, w.clusterOf(1).IsZero(), "one of three")
	said := map[gossip.Address]protocol.VoterStatus{}
	for _, v := range lastWaiting(w.nodes[address(1)]).Voters {
		said[v.Voter.Node.Address] = v.Status
	}
	require.Equal(t, map[gossip.Address]protocol.VoterStatus{
		address(1): protocol.VoterFree, address(2): protocol.VoterLostMemory, address(3): protocol.VoterSilent,
	}, said)
	w.boot(3)
	w.until(30*time.Second, func() bool { return w.allUp(3) })
}

// A disk may be moved to another address: the node there speaks for the disk's voter.
func TestADiskAtAnotherAddressIsTheSameVoter(t *testing.T) {
	w := newTown(t, 2)
	nodes := w.settle(3)
	for _, n := range nodes {
		n.dead = true
	}
	w.disks[address(7)], w.disks[address(8)] = w.disks[address(2)], w.disks[address(3)]
	delete(w.disks, address(2))
	delete(w.disks, address(3))
	w.seeds = []gossip.Address{address(7), address(8)}
	w.boot(7)
	w.boot(8)
	w.until(30*time.Second, func() bool {
		return w.nodes[address(7)].sees(2, gossip.Up) && w.nodes[address(8)].sees(2, gossip.Up)
	})
}

// A node that hosts by the answers of a predecessor has stopped before the successor
// votes.
func TestNobodyVotesBeforeItsPredecessorsAnswersAreWorthNothing(t *testing.T) {
	w := newTown(t, 3)
	nodes := w.settle(3)
	w.apart(3)
	nodes[0].dead, nodes[1].dead = true, true
	w.boot(1)
	w.boot(2)
	for range 400 {
		w.run(10 * time.Millisecond)
		w.requireOneCluster()
	}
	w.until(10*time.Second, func() bool { return w.nodes[address(1)].hosts() })
	w.requireOneCluster()
}

// All leave together: the voters stay, so that any majority of them starts the cluster
// again, whoever was the last one out. covers F28.
func TestAfterAllHaveLeftAnyMajorityStartsAgain(t *testing.T) {
	w := newTown(t, 3)
	nodes := w.settle(3)
	for _, n := range nodes {
		n.step(protocol.Leave{Address: n.id.Address})
	}
	w.until(20*time.Second, func() bool {
		return !slices.ContainsFunc(nodes, func(n *node) bool { return !n.dead })
	})
	for _, n := range nodes {
		require.Equal(t, component.StopLeft, n.stopping.Reason)
		require.Len(t, w.disks[n.id.Address].Voters, 3)
	}
	w.boot(2)
	w.boot(3)
	w.until(30*time.Second, func() bool { return w.nodes[address(2)].sees(2, gossip.Up) })
}

// One after the other leaves: each is taken out of the voters, and the last one starts
// alone; the others wait for it.
func TestAfterAllHaveLeftInTurnTheLastStartsAgain(t *testing.T) {
	w := newTown(t, 3)
	nodes := w.settle(3)
	for _, n := range nodes {
		n.step(protocol.Leave{Address: n.id.Address})
		w.until(20*time.Second, func() bool { return n.dead })
		w.run(2 * time.Second)
	}
	w.boot(1)
	w.boot(2)
	w.run(30 * time.Second)
	require.True(t, w.clusterOf(1).IsZero())
	w.boot(3)
	w.until(30*time.Second, func() bool { return w.allUp(3) })
}

// A node counts as having seen a change of voters only when the change is on its disk:
// until then nothing converges that rests on it. Invariant R3.
func TestAConfigIsSeenWhenItIsOnTheDisk(t *testing.T) {
	w := newTown(t, 1)
	nodes := w.settle(2)
	slow := nodes[1]
	var calls []machine.CallID
	kept := w.calls
	w.calls = func(n *node, call machine.Call) {
		if n == slow {
			calls = append(calls, call.ID)
			return
		}
		kept(n, call)
	}
	third := w.boot(3)
	w.until(5*time.Second, func() bool { return len(calls) > 0 })
	w.run(time.Second)
	config := nodes[0].machine.State().Config()
	require.Contains(t, config.Voters, third.id)
	require.False(t, nodes[0].machine.State().Seen(slow.id))
	require.False(t, slow.machine.State().Seen(slow.id))
	require.Len(t, nodes[0].machine.Snapshot().Base, 2, "the voters before count until all have the new ones on disk")
	slow.step(machine.Called{ID: calls[0]})
	w.calls = kept
	w.until(5*time.Second, func() bool { return len(nodes[0].machine.Snapshot().Base) == 1 })
}

// A record that could not be written and was removed keeps no node out; one that may
// still be there ends the node, and so does a disk that hangs. covers F50.
func TestADiskThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		ends bool
	}{
		"removed": {fmt.Errorf("no space: %w", protocol.ErrRecordLost), false},
		"neither": {errors.New("input/output error"), true},
		"hangs":   {errHangs, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTown(t, 1)
			nodes := w.settle(2)
			w.fails[address(2)] = c.err
			w.boot(3)
			w.run(10 * time.Second)
			if c.ends {
				require.NotNil(t, nodes[1].stopping)
				require.Equal(t, component.StopDisk, nodes[1].stopping.Reason)
				return
			}
			require.Nil(t, nodes[1].stopping)
			require.Len(t, published[protocol.RecordLost](nodes[1]), 1)
			require.True(t, w.allUp(3), "it goes on without one")
		})
	}
}

// An operator founds a cluster with one node of a minority. After the heal two clusters
// meet: that of the majority goes on, the other suspends at once, ends with a status of
// its own, and its node joins when it is started again; epochs of the one that goes on
// are above those of the other from then on. covers I32, F7.
func TestOfTwoClustersThatMeetOneGoesOn(t *testing.T) {
	w := newTown(t, 3)
	w.settle(3)
	before := w.clusterOf(2)
	w.apart(1)
	w.supervise(30 * time.Second)
	alone := w.nodes[address(1)]
	alone.step(protocol.Form{})
	w.until(5*time.Second, func() bool { return alone.hosts() })
	other := alone.machine.State().EpochBorn()
	require.Greater(t, other, before.Born)
	w.cut = nil
	w.until(20*time.Second, func() bool { return len(published[protocol.Yielded](alone)) > 0 })
	require.False(t, alone.hosts(), "it suspends at once")
	require.Equal(t, before, published[protocol.Yielded](alone)[0].To)
	w.until(10*time.Second, func() bool { return alone.dead })
	require.Equal(t, component.StopYielded, alone.stopping.Reason)
	require.True(t, w.nodes[address(2)].hosts() && w.nodes[address(3)].hosts(), "nothing happens to the other")
	again := w.boot(1)
	w.until(20*time.Second, func() bool { return w.allUp(3) })
	require.Equal(t, before, again.machine.State().Cluster())
	require.Greater(t, w.nodes[address(2)].machine.State().EpochBorn(), other, "its epochs are not above those of the cluster that goes on")
}

// Of two clusters that are alike in voters and birth the nonces decide, and one goes on.
func TestExactlyOneOfTwoEqualClustersYields(t *testing.T) {
	w := newTown(t, 2)
	w.apart(1)
	for i := 1; i <= 2; i++ {
		w.boot(i)
	}
	w.run(10 * time.Second)
	for i := 1; i <= 2; i++ {
		w.nodes[address(i)].step(protocol.Form{})
	}
	w.run(15 * time.Second)
	a, b := w.clusterOf(1), w.clusterOf(2)
	require.Equal(t, a.Born, b.Born, "they were founded in one moment")
	w.cut = nil
	w.run(20 * time.Second)
	lower, higher := 1, 2
	if b.Compare(a) < 0 {
		lower, higher = 2, 1
	}
	require.False(t, w.nodes[address(lower)].dead)
	require.True(t, w.nodes[address(higher)].dead)
	require.Equal(t, component.StopYielded, w.nodes[address(higher)].stopping.Reason)
}

// An operator is refused while a member of a cluster that goes on answers.
func TestAnOperatorIsRefusedWhileAClusterGoesOn(t *testing.T) {
	w := newTown(t, 2)
	w.settle(2)
	w.drop = func(_, _ gossip.NodeID, message any) bool {
		_, request := message.(protocol.JoinRequest)
		return request
	}
	n := w.boot(3)
	w.run(3 * time.Second)
	n.step(protocol.Form{ID: 7})
	w.run(3 * time.Second)
	require.True(t, n.machine.State().Cluster().IsZero())
	require.NotZero(t, n.machine.Refusals(protocol.RefusedNotReady))
	answers := published[protocol.FormAnswered](n)
	require.Len(t, answers, 1)
	require.Equal(t, uint64(7), answers[0].ID)
	require.True(t, answers[0].Cluster.IsZero())
	require.Contains(t, answers[0].Reason, "is a member of a cluster that goes on")
}

// Nothing can be founded after the last birth that a record may hold, by no vote and by
// no operator: whoever wrote a later one down could not read it again.
func TestNothingIsFoundedAfterTheLastBirth(t *testing.T) {
	w := newTown(t, 2)
	w.disks[address(1)] = protocol.Record{Data: 7, Promise: gossip.LatestBirth}
	n := w.boot(1)
	w.run(10 * time.Second)
	n.step(protocol.Form{ID: 1})
	w.run(time.Second)
	require.NoError(t, w.disks[address(1)].Validate())
	require.True(t, n.machine.State().Cluster().IsZero())
	answers := published[protocol.FormAnswered](n)
	require.Len(t, answers, 1)
	require.Contains(t, answers[0].Reason, "clock")

	require.Contains(t, lastWaiting(n).Reason, "clock")

	w = newTown(t, 2)
	w.disks[address(2)] = protocol.Record{Data: 8, Promise: gossip.LatestBirth - 1}
	n = w.boot(2)
	w.run(10 * time.Second)
	n.step(protocol.Form{ID: 1})
	w.run(time.Second)
	require.NoError(t, w.disks[address(2)].Validate())
	require.Equal(t, int64(gossip.LatestBirth), n.machine.State().Cluster().Born)
}

// Answers of nodes that were not asked count for nothing: a stranger founds no cluster by
// a record of its own, wins no vote, draws no joiner away, and ends no cluster. covers
// B27, I35.
func TestWhoWasNotAskedIsNotBelieved(t *testing.T) {
	w := newTown(t, 3)
	joiner := w.boot(1)
	w.run(5 * time.Second)
	stranger := gossip.NodeID{Address: address(66), UID: 66}
	record := protocol.Record{
		Data: 66, Promise: 1 << 42, Cluster: gossip.ClusterID{Born: 1 << 42, Nonce: 6}, EpochBorn: 1 << 42,
		Stamp:  protocol.Stamp{Born: 1 << 42, Gen: 9, By: 66},
		Voters: []protocol.Voter{{Node: stranger, Data: 66}},
	}
	lies := []any{
		protocol.InitJoin{Attempt: 1, Claim: protocol.Claim{Record: record}},
		protocol.InitJoinNack{Attempt: 1, Claim: protocol.Claim{Record: record}},
		protocol.InitJoinAck{Attempt: 1, Cluster: record.Cluster, Claim: protocol.Claim{Record: record, Cluster: record.Cluster, Standing: true, Voters: []gossip.NodeID{stranger}}},
		protocol.AskVote{Birth: 1 << 42, Basis: record.Stamp, Settled: true},
		protocol.Vote{Birth: 1 << 42, Granted: true},
	}
	for _, lie := range lies {
		joiner.step(machine.Received{From: stranger, Message: lie})
	}
	require.Zero(t, joiner.machine.Snapshot().State)
	require.Zero(t, w.sent["JoinRequest"])
	require.Less(t, w.disks[address(1)].Promise, int64(1<<42))
	w.boot(2)
	w.until(20*time.Second, func() bool { return w.nodes[address(2)].sees(2, gossip.Up) })
	member := w.nodes[address(1)]
	for _, lie := range lies {
		member.step(machine.Received{From: stranger, Message: lie})
	}
	w.run(10 * time.Second)
	require.True(t, member.machine.State().Yielded().IsZero())
	require.True(t, member.hosts())
	require.NotZero(t, member.machine.Refusals(protocol.RefusedUnsolicited))
}

// The only voter leaves while a newcomer waits: it stays until the newcomer votes. Started
// again it remembers that it does not vote any more, and founds nothing.
func TestTheLastVoterStaysUntilAnotherVotes(t *testing.T) {
	w := newTown(t, 2)
	w.seeds = w.seeds[:1]
	first := w.settle(1)[0]
	w.drop = func(_, to gossip.NodeID, message any) bool {
		_, beat := message.(protocol.HeartbeatReply)
		return beat && to == first.id && w.now < 12*time.Second
	}
	second := w.boot(2)
	w.until(5*time.Second, func() bool { return len(first.machine.State().Members()) == 2 })
	first.step(protocol.Leave{Address: first.id.Address})
	w.until(15*time.Second, func() bool { return first.dead })
	w.run(time.Second)
	require.Equal(t, component.StopLeft, first.stopping.Reason)
	require.Equal(t, []gossip.NodeID{second.id}, second.machine.State().Config().Voters)
	require.Equal(t, second.id, w.disks[address(1)].Voters[0].Node)
	w.apart(1)
	again := w.boot(1)
	w.run(30 * time.Second)
	require.True(t, again.machine.State().Cluster().IsZero())
	require.True(t, second.hosts())
}

// All nodes end in the middle of a change of voters: a voter before the change that does
// not vote after it is needed all the same, and let in.
func TestAClusterIsFoundedUponAnUnfinishedChangeOfVoters(t *testing.T) {
	w := newTown(t, 3)
	nodes := w.settle(3)
	for i, n := range nodes {
		n.dead = true
		r := w.disks[address(i+1)]
		r.Stamp.Gen++
		r.Voters, r.Previous = r.Voters[:1], r.Voters
		w.disks[address(i+1)] = r
	}
	for i := range nodes {
		w.boot(i + 1)
	}
	w.until(20*time.Second, func() bool { return w.allUp(3) })
	w.requireOneCluster()
}
