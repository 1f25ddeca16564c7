// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// booth is one node that looks for a cluster, with a disk that answers when the test says
// so. The test speaks for the other seed nodes.
type booth struct {
	*town
	node  *node
	sent  []any            // Messages that the node sent, except its questions.
	calls []machine.CallID // Writes that the disk has not answered.
}

// newBooth starts the i-th of three listed seed nodes with a record.
func newBooth(t *testing.T, i int, record protocol.Record) *booth {
	t.Helper()
	b := &booth{town: newTown(t, 3)}
	b.town.calls = func(_ *node, call machine.Call) { b.calls = append(b.calls, call.ID) }
	b.drop = func(_, _ gossip.NodeID, message any) bool {
		if _, question := message.(protocol.InitJoin); !question {
			b.sent = append(b.sent, message)
		}
		return true
	}
	if record.Data != 0 {
		b.disks[address(i)] = record
	}
	b.node = b.boot(i)
	return b
}

// says sends a message of the i-th seed node to the node. Its list is that of the node.
func (b *booth) says(i int, message any) {
	related := func(c protocol.Claim) protocol.Claim {
		c.List, c.Evidence = b.seeds, protocol.ListListed|protocol.ListKnown
		return c
	}
	switch m := message.(type) {
	case protocol.InitJoinNack:
		m.Claim = related(m.Claim)
		message = m
	case protocol.InitJoinAck:
		m.Claim = related(m.Claim)
		message = m
	case protocol.AskVote:
		m.Claim = related(m.Claim)
		message = m
	}
	b.node.step(machine.Received{From: gossip.NodeID{Address: address(i), UID: gossip.UID(i)}, Message: message})
}

// free makes the i-th seed node say that it is in no cluster, and what it remembers.
func (b *booth) free(i int, record protocol.Record) {
	if record.Data == 0 {
		record.Data = gossip.DataID(i)
	}
	b.says(i, protocol.InitJoinNack{Attempt: 1, Claim: protocol.Claim{Record: record}})
}

// synced lets the disk answer.
func (b *booth) synced() {
	b.t.Helper()
	require.NotEmpty(b.t, b.calls, "something is written")
	id := b.calls[0]
	b.calls = b.calls[1:]
	b.node.step(machine.Called{ID: id})
}

// said returns what the node has said of one type since the last time.
func said[T any](b *booth) []T {
	var all []T
	for _, m := range b.sent {
		if typed, ok := m.(T); ok {
			all = append(all, typed)
		}
	}
	b.sent = nil
	return all
}

// birth is one above the clock of the test's nodes.
func (b *booth) birth() int64 { return b.wall.Add(b.now + time.Second).UnixMilli() }

// remembered is the record of the i-th node after a cluster of all three.
func remembered(i int, gen uint64) protocol.Record {
	r := protocol.Record{
		Data: gossip.DataID(i), Promise: 100, Cluster: gossip.ClusterID{Born: 100, Nonce: 1},
		Stamp: protocol.Stamp{Born: 100, Gen: gen, By: 1},
	}
	for v := 1; v <= 3; v++ {
		r.Voters = append(r.Voters, protocol.Voter{Node: gossip.NodeID{Address: address(v), UID: 9}, Data: gossip.DataID(v)})
	}
	return r
}

// A vote, a question for votes, and an entry each wait for the disk.
func TestNothingLeavesBeforeItIsOnTheDisk(t *testing.T) {
	b := newBooth(t, 3, protocol.Record{})
	b.run(b.youngest())
	b.says(1, protocol.AskVote{Birth: b.birth(), Settled: true})
	b.run(time.Second)
	require.Empty(t, said[protocol.Vote](b), "the promise is not on the disk yet")
	b.synced()
	votes := said[protocol.Vote](b)
	require.Len(t, votes, 1)
	require.True(t, votes[0].Granted, votes[0].Reason)

	b = newBooth(t, 1, protocol.Record{})
	b.run(b.youngest() + time.Second)
	b.free(2, protocol.Record{})
	b.run(100 * time.Millisecond)
	require.Empty(t, said[protocol.AskVote](b), "its own promise is not on the disk yet")
	b.synced()
	asked := said[protocol.AskVote](b)
	require.Len(t, asked, 1)
	b.says(2, protocol.Vote{Birth: asked[0].Birth, Granted: true})
	b.run(time.Second)
	require.True(t, b.node.machine.State().Cluster().IsZero(), "the cluster is not on the disk yet")
	b.synced()
	require.Equal(t, asked[0].Birth, b.node.machine.State().Cluster().Born)
}

// Whether a node gives its vote depends on the node that asks and on the question; each
// case differs in one thing from a case in which the vote is given.
func TestWhenAVoteIsRefused(t *testing.T) {
	unsettled := remembered(3, 2)
	unsettled.Previous = unsettled.Voters[:1]
	for name, c := range map[string]struct {
		record protocol.Record
		before func(b *booth) // Called before the question.
		ask    func(b *booth) protocol.AskVote
		reason string // Empty: the vote is given.
	}{
		"nothing remembered": {ask: func(b *booth) protocol.AskVote { return protocol.AskVote{Birth: b.birth(), Settled: true} }},
		"the same voters": {record: remembered(3, 2), ask: func(b *booth) protocol.AskVote {
			return protocol.AskVote{Birth: b.birth(), Basis: remembered(1, 2).Stamp, Settled: true}
		}},
		"newer voters": {record: remembered(3, 2), ask: func(b *booth) protocol.AskVote {
			return protocol.AskVote{Birth: b.birth(), Basis: remembered(1, 3).Stamp, Settled: true}
		}},
		"older voters": {record: remembered(3, 2), reason: "remembers newer voters", ask: func(b *booth) protocol.AskVote {
			return protocol.AskVote{Birth: b.birth(), Basis: remembered(1, 1).Stamp, Settled: true}
		}},
		"no voters": {record: remembered(3, 2), reason: "remembers newer voters", ask: func(b *booth) protocol.AskVote {
			return protocol.AskVote{Birth: b.birth(), Settled: true}
		}},
		"a change that is over": {record: remembered(3, 2), reason: "the last change of voters is over", ask: func(b *booth) protocol.AskVote {
			return protocol.AskVote{Birth: b.birth(), Basis: remembered(1, 2).Stamp}
		}},
		"a change that may not be over": {record: unsettled, ask: func(b *booth) protocol.AskVote {
			return protocol.AskVote{Birth: b.birth(), Basis: remembered(1, 2).Stamp}
		}},
		"the birth above the promised one": {record: remembered(3, 2), ask: func(*booth) protocol.AskVote {
			return protocol.AskVote{Birth: 101, Basis: remembered(1, 2).Stamp, Settled: true}
		}},
		"a birth that was promised": {record: remembered(3, 2), reason: "has promised birth 100", ask: func(*booth) protocol.AskVote {
			return protocol.AskVote{Birth: 100, Basis: remembered(1, 2).Stamp, Settled: true}
		}},
		"a birth after the last one": {reason: "has promised", ask: func(*booth) protocol.AskVote {
			return protocol.AskVote{Birth: gossip.LatestBirth + 1, Settled: true}
		}},
		"it votes for another one": {reason: "voted for another", ask: func(b *booth) protocol.AskVote {
			return protocol.AskVote{Birth: b.birth() + 1, Settled: true}
		}, before: func(b *booth) {
			b.says(2, protocol.AskVote{Birth: b.birth(), Settled: true})
			b.synced()
			require.True(b.t, said[protocol.Vote](b)[0].Granted)
		}},
		"it is about to join": {reason: "about to join", ask: func(b *booth) protocol.AskVote {
			return protocol.AskVote{Birth: b.birth(), Settled: true}
		}, before: func(b *booth) {
			id := gossip.ClusterID{Born: 50, Nonce: 1}
			b.says(2, protocol.InitJoinAck{Attempt: 1, Cluster: id, Claim: protocol.Claim{Record: remembered(2, 2), Cluster: id, Standing: true}})
			require.NotEmpty(b.t, said[protocol.JoinRequest](b))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBooth(t, 3, c.record)
			b.run(b.youngest())
			if c.before != nil {
				c.before(b)
			}
			b.says(1, c.ask(b))
			if c.reason == "" {
				b.synced()
			}
			votes := said[protocol.Vote](b)
			require.Len(t, votes, 1)
			require.Equal(t, c.reason == "", votes[0].Granted)
			require.Contains(t, votes[0].Reason, c.reason)
		})
	}
}

// A process neither votes nor asks for votes before every node that hosts by the answers
// of its predecessor has stopped.
func TestAYoungProcessTakesNoPartInAVote(t *testing.T) {
	b := newBooth(t, 3, protocol.Record{})
	b.run(b.youngest() - 100*time.Millisecond)
	b.says(1, protocol.AskVote{Birth: b.birth(), Settled: true})
	b.run(50 * time.Millisecond)
	require.Empty(t, b.calls, "it promises nothing yet")
	require.Empty(t, said[protocol.Vote](b))
	b.run(100 * time.Millisecond)
	b.synced()
	votes := said[protocol.Vote](b)
	require.Len(t, votes, 1)
	require.True(t, votes[0].Granted, votes[0].Reason)

	b = newBooth(t, 3, protocol.Record{})
	b.cfg.JoinInterval = b.cfg.Fence / 5 // Candidates do not wait that long for a vote.
	b.node = b.boot(3)
	b.says(1, protocol.AskVote{Birth: b.birth(), Settled: true})
	votes = said[protocol.Vote](b)
	require.Len(t, votes, 1)
	require.False(t, votes[0].Granted)
	require.Contains(t, votes[0].Reason, "has just started")

	b = newBooth(t, 1, protocol.Record{})
	b.free(2, protocol.Record{})
	b.free(3, protocol.Record{})
	b.run(b.youngest() - 100*time.Millisecond)
	require.Empty(t, b.calls, "it stands for nothing yet")
	b.run(200 * time.Millisecond)
	b.synced()
	require.Len(t, said[protocol.AskVote](b), 2)
}

// A node that has answered once and is silent since counts no more: its vote is not asked
// for, and without it no node stands.
func TestAnAnswerDoesNotLast(t *testing.T) {
	b := newBooth(t, 1, protocol.Record{})
	b.free(2, protocol.Record{})
	b.run(b.youngest() + time.Second)
	b.synced()
	require.Len(t, said[protocol.AskVote](b), 1)
	b.town.calls = func(_ *node, call machine.Call) {
		b.after(0, func() { b.node.step(machine.Called{ID: call.ID}) })
	}
	b.run(2 * b.cfg.JoinIntervalMax)
	b.sent = nil
	b.run(time.Minute)
	require.Empty(t, said[protocol.AskVote](b))
	b.free(2, protocol.Record{})
	b.run(time.Second)
	require.Len(t, said[protocol.AskVote](b), 1, "until it answers again")
}

// While some node is in a cluster none is founded: there may be one to join.
func TestNobodyStandsWhileSomebodyIsInACluster(t *testing.T) {
	b := newBooth(t, 1, protocol.Record{})
	b.free(2, protocol.Record{})
	other := gossip.ClusterID{Born: 50, Nonce: 1}
	b.says(3, protocol.InitJoinNack{Attempt: 1, Member: true, Claim: protocol.Claim{Record: protocol.Record{Data: 3}, Cluster: other}})
	b.run(b.youngest() + 3*time.Second)
	require.Empty(t, b.calls)
	b.free(3, protocol.Record{}) // It has ended, and looks for one too.
	b.run(time.Second)
	require.NotEmpty(t, b.calls)
}

// The node with the lowest address stands first, so that candidates do not split the
// votes.
func TestTheLowestAddressStandsFirst(t *testing.T) {
	for i := 1; i <= 3; i++ {
		b := newBooth(t, i, protocol.Record{})
		b.run(b.youngest())
		for other := 1; other <= 3; other++ {
			if other != i {
				b.free(other, protocol.Record{})
			}
		}
		b.run(time.Second)
		require.Equal(t, i == 1, len(b.calls) > 0, "node %d", i)
	}
}

// A cluster is born after everything that the answering nodes know of: their promises,
// the clusters that they were in, and the epochs of these.
func TestABirthComesAfterAllThatIsKnown(t *testing.T) {
	late := time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	for name, r := range map[string]protocol.Record{
		"promise": {Promise: late},
		"epochs":  {EpochBorn: late},
		"stamp": {
			Cluster: gossip.ClusterID{Born: late, Nonce: 1}, Stamp: protocol.Stamp{Born: late, Gen: 1, By: 1},
			Voters: []protocol.Voter{{Node: gossip.NodeID{Address: address(2), UID: 9}, Data: 2}, {Node: gossip.NodeID{Address: address(3), UID: 9}, Data: 3}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			own := r
			own.Data = 2
			b := newBooth(t, 2, own)
			b.run(b.youngest())
			b.free(3, r)
			b.run(time.Second)
			b.synced()
			asked := said[protocol.AskVote](b)
			require.NotEmpty(t, asked)
			require.Equal(t, late+1, asked[0].Birth)
		})
	}
}

// A vote counts once, for the birth that was asked for, of the process that was asked.
func TestWhichVotesCount(t *testing.T) {
	stand := func(t *testing.T) (*booth, int64) {
		t.Helper()
		b := newBooth(t, 1, remembered(1, 2))
		b.run(b.youngest())
		b.seedsRemember(2, 3)
		b.run(time.Second)
		b.synced()
		asked := said[protocol.AskVote](b)
		require.Len(t, asked, 2)
		return b, asked[0].Birth
	}
	for name, vote := range map[string]func(b *booth, birth int64){
		"refused":       func(b *booth, birth int64) { b.says(2, protocol.Vote{Birth: birth}) },
		"another birth": func(b *booth, birth int64) { b.says(2, protocol.Vote{Birth: birth - 1, Granted: true}) },
		"another process": func(b *booth, birth int64) {
			b.node.step(machine.Received{From: gossip.NodeID{Address: address(2), UID: 77}, Message: protocol.Vote{Birth: birth, Granted: true}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, birth := stand(t)
			vote(b, birth)
			b.run(time.Second)
			require.Empty(t, b.calls, "nothing is founded")
		})
	}
	b := newBooth(t, 1, protocol.Record{})
	b.run(b.youngest())
	b.free(2, protocol.Record{})
	b.run(time.Second)
	b.synced()
	b.free(2, remembered(2, 2))
	b.says(2, protocol.Vote{Birth: said[protocol.AskVote](b)[0].Birth, Granted: true})
	b.run(time.Second)
	require.Empty(t, b.calls, "who remembers a cluster does not speak for a listed seed node")

	b, birth := stand(t)
	b.says(2, protocol.Vote{Birth: birth, Granted: true})
	b.run(time.Second)
	require.NotEmpty(t, b.calls, "two of three found it")
}

// seedsRemember lets seed nodes say that they are in no cluster and remember one.
func (b *booth) seedsRemember(seeds ...int) {
	for _, i := range seeds {
		b.free(i, remembered(i, 2))
	}
}

// A node that votes for one birth after another is not drawn into the cluster of the
// first, nor does it enter a cluster that it did not vote for while that one has no
// majority.
func TestAVoterEntersWhatItVotedForLast(t *testing.T) {
	b := newBooth(t, 3, protocol.Record{})
	b.run(b.youngest())
	first := b.birth()
	b.says(1, protocol.AskVote{Birth: first, Settled: true})
	b.synced()
	b.run(b.cfg.JoinInterval * 5)
	second := b.birth()
	require.Greater(t, second, first)
	b.says(2, protocol.AskVote{Birth: second, Settled: true})
	b.synced()
	require.Len(t, said[protocol.Vote](b), 2)
	enters := func(i int, born int64) bool {
		id := gossip.ClusterID{Born: born, Nonce: 1}
		b.says(i, protocol.InitJoinAck{Attempt: 1, Cluster: id, Claim: protocol.Claim{Record: protocol.Record{Data: gossip.DataID(i)}, Cluster: id}})
		return len(said[protocol.JoinRequest](b)) > 0
	}
	require.False(t, enters(1, first), "it has promised more since")
	require.False(t, enters(1, second+1), "it did not vote for that one")
	require.True(t, enters(2, second))
}

// A cluster is founded upon all voters of the basis, not only upon those that voted: the
// others count as lost votes until the first of them is up.
func TestAClusterIsFoundedUponAllVoters(t *testing.T) {
	b := newBooth(t, 1, remembered(1, 2))
	b.run(b.youngest())
	b.seedsRemember(2)
	b.run(time.Second)
	b.synced()
	b.says(2, protocol.Vote{Birth: said[protocol.AskVote](b)[0].Birth, Granted: true})
	b.run(time.Second)
	b.synced()
	config := b.node.machine.State().Config()
	require.Equal(t, []gossip.NodeID{b.node.id, {Address: address(2), UID: 2}, {Address: address(3), UID: 9}}, config.Voters)
	require.Equal(t, []gossip.DataID{1, 2, 3}, config.Data)
	require.False(t, b.node.hosts(), "and hosts nothing by its own word")
}

// Births end with the year 2200: where somebody remembers the last one an operator is
// told so, and nothing is founded that no record could hold.
func TestAnOperatorFoundsNothingAfterTheLastBirth(t *testing.T) {
	b := newBooth(t, 1, protocol.Record{})
	b.free(2, protocol.Record{Promise: gossip.LatestBirth})
	b.node.step(protocol.Form{ID: 7})
	answers := published[protocol.FormAnswered](b.node)
	require.Len(t, answers, 1)
	require.True(t, answers[0].Cluster.IsZero())
	require.Contains(t, answers[0].Reason, "delete the data directories")
	require.Empty(t, b.calls)
}

// The newest record of all nodes that answer is the basis: a node that does not speak for
// its voters does not stand, whatever it remembers itself. Of two equal records the one
// that knows the change to be over is the basis.
func TestTheNewestRecordIsTheBasis(t *testing.T) {
	for gen := uint64(1); gen <= 3; gen++ {
		b := newBooth(t, 1, remembered(1, 2))
		b.run(b.youngest())
		others := remembered(2, gen)
		others.Voters = others.Voters[1:]
		b.free(2, others)
		b.free(3, remembered(3, 1))
		b.run(time.Second)
		require.Equal(t, gen < 3, len(b.calls) > 0, "generation %d", gen)
	}
	changing := remembered(1, 2)
	changing.Previous = changing.Voters[:1]
	b := newBooth(t, 1, changing)
	b.run(b.youngest())
	b.seedsRemember(2)
	b.run(time.Second)
	b.synced()
	require.True(t, said[protocol.AskVote](b)[0].Settled)
}

// Upon a change of voters that may not be over a cluster is founded by votes that also
// win among the voters before the change, and begins with both sets.
func TestAnUnfinishedChangeNeedsTheVotersBefore(t *testing.T) {
	changing := remembered(1, 2)
	changing.Voters, changing.Previous = changing.Voters[:1], changing.Voters
	b := newBooth(t, 1, changing)
	b.run(b.youngest() + time.Second)
	require.Empty(t, b.calls, "one of one, and one of three")
	second := changing
	second.Data = 2
	b.free(2, second)
	b.run(time.Second)
	b.synced()
	b.says(2, protocol.Vote{Birth: said[protocol.AskVote](b)[0].Birth, Granted: true})
	b.run(time.Second)
	b.synced()
	config := b.node.machine.State().Config()
	require.Equal(t, []gossip.NodeID{b.node.id}, config.Voters)
	require.Equal(t, []gossip.NodeID{b.node.id, {Address: address(2), UID: 2}, {Address: address(3), UID: 9}}, config.Previous)
}

// A node that has voted stands after the vote is over and others had their turn, even if
// it had waited for its own turn before: otherwise nodes that voted together would stand
// together, for ever.
func TestWhoHasVotedLetsOthersTry(t *testing.T) {
	b := newBooth(t, 3, protocol.Record{})
	answered := func() { b.free(1, protocol.Record{}); b.free(2, protocol.Record{}) }
	b.run(b.youngest())
	answered()
	b.run(4 * b.cfg.JoinInterval)
	b.says(1, protocol.AskVote{Birth: b.birth(), Settled: true})
	b.synced()
	require.Len(t, said[protocol.Vote](b), 1)
	vote, turn := 4*b.cfg.JoinInterval, 6*b.cfg.JoinInterval
	for range 9 {
		answered()
		b.run((vote + turn) / 10)
		require.Empty(t, b.calls, "it promises nothing to itself")
	}
	for range 10 {
		answered()
		b.run(b.cfg.JoinInterval)
	}
	require.NotEmpty(t, b.calls, "it stands when nobody else has")
}

// A candidate has voted for itself: it gives no vote to another one, and founds the
// cluster that its own votes are for.
func TestWhoStandsVotesForNobodyElse(t *testing.T) {
	b := newBooth(t, 1, protocol.Record{})
	b.run(b.youngest())
	b.free(2, protocol.Record{})
	b.free(3, protocol.Record{})
	b.run(time.Second)
	b.synced()
	asked := said[protocol.AskVote](b)
	require.Len(t, asked, 2)
	b.says(3, protocol.AskVote{Birth: asked[0].Birth + 10, Settled: true})
	require.Empty(t, b.calls, "it promises nothing to the other one")
	votes := said[protocol.Vote](b)
	require.Len(t, votes, 1)
	require.False(t, votes[0].Granted)
	require.Contains(t, votes[0].Reason, "has just voted for another one")
	b.says(2, protocol.Vote{Birth: asked[0].Birth, Granted: true})
	b.run(time.Second)
	b.synced()
	require.Equal(t, asked[0].Birth, b.node.machine.State().Cluster().Born)
}

// A node that has given its vote lets the candidate found the cluster, although its own
// address is the lowest.
func TestWhoHasVotedDoesNotStandAtOnce(t *testing.T) {
	b := newBooth(t, 1, protocol.Record{})
	b.run(b.youngest())
	b.says(2, protocol.AskVote{Birth: b.birth(), Settled: true})
	b.synced()
	require.True(t, said[protocol.Vote](b)[0].Granted)
	b.free(2, protocol.Record{})
	b.free(3, protocol.Record{})
	b.run(b.cfg.JoinInterval)
	require.Empty(t, b.calls)
	b.run(4 * b.cfg.JoinInterval)
	require.NotEmpty(t, b.calls, "nothing came of it")
}

// None of the voters of a new cluster may come: then its founder ends instead of being a
// member of a cluster that nothing hosts, and its supervisor starts it for the next vote.
func TestWhoFoundsAClusterToWhichNobodyComesEnds(t *testing.T) {
	b := newBooth(t, 1, protocol.Record{})
	b.run(b.youngest())
	b.free(2, protocol.Record{})
	b.run(time.Second)
	b.synced()
	b.says(2, protocol.Vote{Birth: said[protocol.AskVote](b)[0].Birth, Granted: true})
	b.run(time.Second)
	b.synced()
	b.town.calls = func(_ *node, call machine.Call) {
		b.after(0, func() { b.node.step(machine.Called{ID: call.ID}) })
	}
	require.False(t, b.node.machine.State().Cluster().IsZero())
	took := b.until(time.Minute, func() bool { return b.node.dead })
	require.Equal(t, component.StopJoinFailed, b.node.stopping.Reason)
	require.Contains(t, b.node.stopping.Detail, "no majority of its voters")
	require.Greater(t, took, b.cfg.Fence, "those who voted had time to come")
	require.Empty(t, slices.DeleteFunc(published[component.Standing](b.node), func(s component.Standing) bool { return s.Until == 0 }))
}
