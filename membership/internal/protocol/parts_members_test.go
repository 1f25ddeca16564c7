// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
)

// The parts by which nodes come, stay and go, on the bench of parts_test.go.

// accuse lets all of some nodes say that they cannot reach all of others.
func (b *bench) accuse(by, lost []int) {
	for _, i := range by {
		b.by(i, func(e *gossip.Edit) {
			for _, j := range lost {
				e.Mark(nodeAt(j), gossip.Unreachable)
			}
		})
	}
	for _, i := range by {
		b.state = b.state.See(nodeAt(i))
	}
	b.survey()
}

func TestTheLeaderOfASideDownsTheOthersWhenItsViewIsStable(t *testing.T) {
	b := newBench(t, 5)
	b.accuse([]int{1, 2, 3}, []int{4, 5})
	b.resolver.watchView()
	stable := time.Minute + b.stableAfter()
	require.Contains(t, b.out.Effects(), machine.Arm{Timer: timerStable, At: machine.Instant(stable)})
	b.at(stable)
	b.resolver.viewStable()
	require.Equal(t, gossip.Down, b.state.Member(nodeAt(4)).Status)
	require.Equal(t, gossip.Down, b.state.Member(nodeAt(5)).Status)
	require.Equal(t, gossip.Up, b.state.Member(nodeAt(2)).Status)
}

func TestASideWithoutAMajorityDownsItselfAndCanSayWhy(t *testing.T) {
	b := newBench(t, 5)
	b.accuse([]int{1, 2}, []int{3, 4, 5})
	b.resolver.watchView()
	b.at(time.Minute + b.stableAfter())
	b.resolver.viewStable()
	require.Equal(t, gossip.Down, b.state.Member(b.self).Status)
	require.Contains(t, new(endExplainer).downed(b.state, b.self), "by itself: ")
}

func TestWhoDoesNotLeadDecidesNothing(t *testing.T) {
	b := newBench(t, 5)
	b.self = nodeAt(2)
	b.accuse([]int{1, 2, 3}, []int{4, 5})
	b.resolver.watchView()
	b.at(time.Minute + b.stableAfter())
	b.resolver.viewStable()
	require.Equal(t, gossip.Up, b.state.Member(nodeAt(4)).Status)
}

// confirmed is an [ownLeave] that says the same always.
type confirmed bool

func (c confirmed) hasConfirmed() bool { return bool(c) }

func TestARemovedNodeIsFencedAFenceAfterItLostItsMajority(t *testing.T) {
	b := newBench(t, 3)
	f := newFences(b.core, b.strategies, confirmed(false))
	b.accuse([]int{1, 2}, []int{3})
	f.noteCuts(b.state.Records(), b.now.Mono)
	b.settled = b.state
	b.at(time.Minute + time.Second)
	f.removed([]*gossip.Member{b.state.Member(nodeAt(3))})
	fenced := machine.Instant(time.Minute).Add(byAnyClock(b.cfg.Fence))
	require.Contains(t, b.out.Effects(), machine.Arm{Timer: fenceTimer{nodeAt(3)}, At: fenced})
	require.Empty(t, effects[component.Fenced](b))
	f.fencePassed(nodeAt(3))
	require.Equal(t, []component.Fenced{{Node: nodeAt(3)}}, effects[component.Fenced](b))
}

func TestWhoLeftInOrderIsFencedAtOnceByWhoTookPart(t *testing.T) {
	b := newBench(t, 3)
	f := newFences(b.core, b.strategies, confirmed(false))
	b.settled = b.state
	was := *b.state.Member(nodeAt(3))
	was.Status = gossip.Exiting
	f.removed([]*gossip.Member{&was})
	require.Equal(t, []component.Fenced{{Node: nodeAt(3), Graceful: true}}, effects[component.Fenced](b))
}

// newTestDiscovery is a discovery with nodes 1 to 3 as seed nodes.
func newTestDiscovery(b *bench) *inquiry {
	d := &inquiry{core: b.core, memory: newMemory(b.core, func() {}), strategies: b.strategies, footing: b.footing}
	d.restart([]gossip.Address{nodeAt(1).Address, nodeAt(2).Address, nodeAt(3).Address})
	d.nextAttempt()
	return d
}

// asks has the inquiry ask nodes, so that their answers count.
func (b *bench) asks(d *inquiry, nodes ...int) {
	for _, i := range nodes {
		d.ask(nodeAt(i).Address)
	}
}

// claimOf is the claim of a node with the list of the test, and a record.
func claimOf(d *inquiry, r Record) Claim { return Claim{List: d.seeds, Record: r} }

// remembers is a record of voters that were in a cluster.
func remembers(data gossip.DataID, gen uint64, voters ...int) Record {
	r := Record{Data: data, Cluster: gossip.ClusterID{Born: bornAt, Nonce: 1}, Stamp: Stamp{Born: bornAt, Gen: gen, By: 1}}
	for _, i := range voters {
		r.Voters = append(r.Voters, Voter{Node: nodeAt(i), Data: gossip.DataID(i)})
	}
	return r
}

func TestTheBasisIsTheNewestRecordOfThoseWhoAnswer(t *testing.T) {
	b := newBench(t, 0)
	d := newTestDiscovery(b)
	require.False(t, d.basis().Remembers(), "nobody remembers a cluster: the seed nodes count")
	require.Len(t, d.basis().Voters, 3)
	b.asks(d, 2, 3)
	require.True(t, d.hear(nodeAt(2), "InitJoinNack", 1, claimOf(d, remembers(2, 4, 1, 2, 3))))
	require.True(t, d.hear(nodeAt(3), "InitJoinNack", 1, claimOf(d, remembers(3, 5, 3, 7))))
	require.Equal(t, remembers(3, 5, 3, 7).Stamp, d.basis().Stamp)
	require.Contains(t, d.whomToAsk(), nodeAt(7).Address, "a voter that somebody else remembers")
	b.at(time.Minute + d.answersLast() + time.Second)
	require.False(t, d.basis().Remembers(), "the answers are too old")
}

func TestAnAnswerThatWasNotAskedForIsRefused(t *testing.T) {
	b := newBench(t, 0)
	d := newTestDiscovery(b)
	require.False(t, d.hear(nodeAt(9), "InitJoinNack", 1, Claim{Record: remembers(9, 99, 9)}))
	b.asks(d, 2)
	require.False(t, d.hear(nodeAt(2), "InitJoinNack", 2, Claim{}), "the attempt is not this one")
	require.Empty(t, d.heard)
	require.EqualValues(t, 2, b.counts.Refused[RefusedUnsolicited])
}

// door is the [entrance] of a node that is not joining otherwise.
type door struct{ entered *gossip.State }

func (d *door) isTaken() bool         { return false }
func (d *door) isEntering() bool      { return d.entered != nil }
func (d *door) enter(s *gossip.State) { d.entered = s }

func TestVotesAreAskedForWhenThePromiseIsOnDisk(t *testing.T) {
	b := newBench(t, 0)
	b.phase, b.deps.Remember = phaseJoining, true
	d := newTestDiscovery(b)
	in := &door{}
	f := &formation{core: b.core, inquiry: d, contactSearch: newContactSearch(b.core, d), memory: d.memory, strategies: b.strategies, footing: b.footing, join: in}
	b.at(2 * time.Minute)
	d.note(nodeAt(2), claimOf(d, Record{Data: 2}))
	f.considerFounding()
	require.NotNil(t, f.election)
	require.Empty(t, sentTo[AskVote](b), "started again, this node could vote for a lower birth")
	d.memory.recordWritten(nil)
	f.askVotes()
	asked := sentTo[AskVote](b)
	require.Equal(t, f.election.birth, asked[2].Birth)
	require.Nil(t, in.entered)
	f.receiveVote(nodeAt(2), Vote{Birth: asked[2].Birth, Granted: true})
	require.NotNil(t, in.entered, "two of three seed nodes vote")
	require.Equal(t, asked[2].Birth, in.entered.Cluster().Born)
	require.Contains(t, in.entered.Config().Voters, nodeAt(2))
}

// Another cluster with more voters is yielded to when it was asked, is related, has claimed to
// go on for some seconds, and a majority of its voters has said so.
func TestAClusterYieldsToAProvenLargerOne(t *testing.T) {
	b := newBench(t, 1)
	d := newTestDiscovery(b)
	w := &otherClusters{core: b.core, inquiry: d, memory: d.memory}
	b.answeredBy(time.Minute)
	since := time.Minute
	says := func(from int, change func(*Claim)) bool {
		claim := Claim{
			List: d.seeds, Cluster: gossip.ClusterID{Born: 2 * bornAt, Nonce: 7}, Standing: true, Evidence: ListListed,
			Voters: []gossip.NodeID{nodeAt(2), nodeAt(3), nodeAt(4)},
		}
		change(&claim)
		w.meetCluster(nodeAt(from), "InitJoinAck", d.attempt, claim)
		return !b.state.Yielded().IsZero()
	}
	plain := func(*Claim) {}
	pass := func(by time.Duration) {
		since += by
		b.at(since)
		b.answeredBy(since)
		w.seekClusters()
	}
	require.False(t, says(2, plain), "node 2 was not asked")
	require.NotZero(t, b.counts.Refused[RefusedUnsolicited])
	pass(0)
	require.Contains(t, sentTo[InitJoin](b), 2)
	require.False(t, says(2, plain))
	require.Contains(t, sentTo[InitJoin](b), 4, "the voters that it names are asked at once")
	pass(6 * time.Second)
	require.False(t, says(2, plain), "one of three voters says so")
	require.False(t, says(3, func(c *Claim) { c.Standing = false }), "a voter does not have standing: it begins anew")
	require.False(t, says(2, plain))
	require.False(t, says(3, plain), "not for five seconds")
	pass(6 * time.Second)
	require.False(t, says(3, func(c *Claim) { c.Voters = nil }), "fewer voters")
	require.False(t, says(3, plain))
	pass(6 * time.Second)
	require.False(t, says(4, func(c *Claim) { c.Yielded = true }), "it is ending itself")
	require.True(t, says(2, plain))
	w.observe()
	require.Equal(t, gossip.ClusterID{Born: 2 * bornAt, Nonce: 7}, b.state.Yielded().To)
	require.Equal(t, []gossip.Address{nodeAt(2).Address, nodeAt(3).Address, nodeAt(4).Address}, b.state.Yielded().Addresses())
	require.True(t, b.hosting.dropped)
	require.Len(t, effects[Yielded](b), 1)
}

// What was heard of an unrelated cluster, without standing, or by a member that is new, ends
// nobody.
func TestNobodyYieldsForOtherReasons(t *testing.T) {
	for name, c := range map[string]struct {
		setUp  func(*bench, *otherClusters)
		change func(*Claim)
	}{
		"unrelated":         {change: func(c *Claim) { c.List, c.Evidence = addressesOf([]gossip.NodeID{nodeAt(7)}), ListKnown|AddressKnown }},
		"no standing there": {change: func(c *Claim) { c.Standing = false }},
		"no standing here": {setUp: func(b *bench, _ *otherClusters) {
			b.edit(func(e *gossip.Edit) {
				e.Join(memberAt(5))
				e.Join(memberAt(6))
				e.SetConfig([]gossip.NodeID{nodeAt(1), nodeAt(5), nodeAt(6)})
			})
		}, change: func(c *Claim) { c.Voters = append(c.Voters, nodeAt(4), nodeAt(7)) }},
		"this node is new":    {setUp: func(_ *bench, w *otherClusters) { w.enter(true) }},
		"it was large before": {setUp: func(b *bench, w *otherClusters) { w.before = []formerSize{{9, b.now.Mono.Add(time.Minute)}} }},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 1)
			d := newTestDiscovery(b)
			w := &otherClusters{core: b.core, inquiry: d, memory: d.memory}
			if c.setUp != nil {
				c.setUp(b, w)
				b.survey()
			}
			for i := range 3 {
				since := time.Minute + time.Duration(i)*6*time.Second
				b.at(since)
				b.answeredBy(since)
				w.seekClusters()
				claim := Claim{
					List: d.seeds, Cluster: gossip.ClusterID{Born: 2 * bornAt, Nonce: 7}, Standing: true, Evidence: ListListed,
					Voters: []gossip.NodeID{nodeAt(2), nodeAt(3)},
				}
				if c.change != nil {
					c.change(&claim)
				}
				for _, from := range claim.Voters {
					w.meetCluster(from, "InitJoinAck", d.attempt, claim)
				}
				require.True(t, b.state.Yielded().IsZero())
			}
		})
	}
}

func TestAJoiningNodeAsksAllAndThenTheOneThatGoesOn(t *testing.T) {
	b := newBench(t, 0)
	d := newTestDiscovery(b)
	var entered *gossip.State
	j := &joining{core: b.core, inquiry: d, contactSearch: newContactSearch(b.core, d), memory: d.memory, becomeMember: func(s *gossip.State) { entered = s }}
	j.formation = &formation{core: b.core, inquiry: d, contactSearch: j.contactSearch, memory: d.memory, strategies: b.strategies, footing: b.footing, join: j}
	j.start(d.seeds)
	require.Len(t, sentTo[InitJoin](b), 2)
	there := newBench(t, 3)
	cluster := there.state.Cluster()
	j.receiveInitJoinAck(nodeAt(2), InitJoinAck{Attempt: d.attempt, Cluster: cluster, Claim: Claim{Cluster: cluster, Evidence: ListKnown}})
	require.Empty(t, sentTo[JoinRequest](b), "its cluster may not go on")
	j.receiveInitJoinAck(nodeAt(2), InitJoinAck{Attempt: d.attempt, Cluster: cluster, Claim: Claim{Cluster: cluster, Standing: true, Evidence: ListKnown}})
	require.Equal(t, cluster, sentTo[JoinRequest](b)[2].Cluster)
	j.receiveWelcome(nodeAt(3), Welcome{Attempt: d.attempt, State: there.state})
	require.Nil(t, entered, "node 3 was not asked")
	j.receiveWelcome(nodeAt(2), Welcome{Attempt: d.attempt, State: there.state})
	require.Same(t, there.state, entered)
}

func newTestAdmission(b *bench) *admission {
	d := newTestDiscovery(b)
	return newAdmission(b.core, d, newContactSearch(b.core, d), b.footing, b.strategies, b.monitoring)
}

func TestANodeIsTakenInWhenItAnswersAtItsAddress(t *testing.T) {
	for name, c := range map[string]struct {
		answer Probed
		want   any
	}{
		"itself":       {Probed{Node: nodeAt(4)}, Welcome{Attempt: 1}},
		"another node": {Probed{Node: nodeAt(5)}, JoinRefused{Refusal: RefusedDialBack}},
		"nobody":       {Probed{Err: errors.New("refused")}, JoinRefused{Refusal: RefusedDialBack, Retry: true}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 3)
			b.answeredBy(time.Minute, 2, 3)
			a := newTestAdmission(b)
			a.receiveJoinRequest(nodeAt(4), JoinRequest{Attempt: 1, Member: memberAt(4), Settings: a.inquiry.compared(), Claim: a.inquiry.claim()})
			require.Len(t, effects[Probe](b), 1)
			require.Nil(t, b.state.Member(nodeAt(4)))
			c.answer.Address = nodeAt(4).Address
			a.probed(c.answer)
			if refused, ok := c.want.(JoinRefused); ok {
				got := sentTo[JoinRefused](b)[4]
				require.Equal(t, refused.Refusal, got.Refusal)
				require.Equal(t, refused.Retry, got.Retry)
				require.Nil(t, b.state.Member(nodeAt(4)))
				return
			}
			require.Equal(t, gossip.Joining, b.state.Member(nodeAt(4)).Status)
			require.Same(t, b.state, sentTo[Welcome](b)[4].State)
		})
	}
}

func TestASideThatCannotProveAMajorityTakesNobodyIn(t *testing.T) {
	b := newBench(t, 3)
	a := newTestAdmission(b)
	a.receiveJoinRequest(nodeAt(4), JoinRequest{Attempt: 1, Member: memberAt(4), Settings: a.inquiry.compared(), Claim: a.inquiry.claim()})
	require.Equal(t, RefusedNotReady, sentTo[JoinRefused](b)[4].Refusal)
	require.Empty(t, effects[Probe](b))
}

// joinFourth records node 4 as joining, which all see.
func (b *bench) joinFourth() {
	b.edit(func(e *gossip.Edit) { e.Join(memberAt(4)) })
	b.allSee()
	b.monitoring.round()
}

func TestANewcomerPassesTheGateWhenAllVotersHaveReachedIt(t *testing.T) {
	b := newBench(t, 3)
	g := newGate(b.core, b.monitoring)
	b.joinFourth()
	require.False(t, g.passes(nodeAt(4)))
	b.monitoring.hears(nodeAt(4), 1, b.now.Mono)
	require.True(t, g.tell(false), "this node leads")
	require.True(t, g.receive(nodeAt(2), Reached{Nodes: []gossip.UID{4}}))
	require.False(t, g.passes(nodeAt(4)), "node 3 has not reached it")
	g.receive(nodeAt(3), Reached{Nodes: []gossip.UID{4}})
	require.True(t, g.passes(nodeAt(4)))
	b.by(3, func(e *gossip.Edit) { e.Mark(nodeAt(4), gossip.Unreachable) })
	require.Equal(t, "it cannot be reached by "+nodeAt(3).String(), g.held(nodeAt(4)))
	b.by(4, func(e *gossip.Edit) { e.Mark(nodeAt(2), gossip.Unreachable) })
	require.Contains(t, g.held(nodeAt(4)), "it cannot reach "+nodeAt(2).String())
}

func newTestLeader(b *bench) *leader {
	l := newLeader(b.core, newGate(b.core, b.monitoring), b.answers, b.strategies, b.footing)
	l.exit, l.survey = confirmed(false), b.survey
	return l
}

func TestTheLeaderMakesANewcomerUpWhileAMajorityAnswersIt(t *testing.T) {
	b := newBench(t, 3)
	l := newTestLeader(b)
	b.joinFourth()
	b.monitoring.hears(nodeAt(4), 1, b.now.Mono)
	for _, i := range []int{2, 3} {
		l.gate.receive(nodeAt(i), Reached{Nodes: []gossip.UID{4}})
	}
	l.act()
	require.Equal(t, gossip.Joining, b.state.Member(nodeAt(4)).Status, "no majority has answered this node")
	b.answeredBy(time.Minute, 2)
	l.retry()
	require.Equal(t, gossip.Up, b.state.Member(nodeAt(4)).Status)
	require.Contains(t, b.state.Config().Voters, nodeAt(4))
}

func TestWhoSeesNoConvergenceDoesNotLead(t *testing.T) {
	b := newBench(t, 3)
	l := newTestLeader(b)
	b.answeredBy(time.Minute, 2, 3)
	b.edit(func(e *gossip.Edit) { e.SetStatus(nodeAt(3), gossip.Down, 3) })
	b.survey()
	l.act()
	require.NotNil(t, b.state.Member(nodeAt(3)))
	b.allSee()
	l.act()
	require.Nil(t, b.state.Member(nodeAt(3)), "all have seen it down")
	require.Equal(t, NotMember{Node: nodeAt(3), Status: gossip.Removed}, sentTo[NotMember](b)[3])
}

func TestALeavingNodeConfirmsWhenEveryComponentHasHandedOver(t *testing.T) {
	b := newBench(t, 3)
	l := newTestLeader(b)
	x := &leaving{core: b.core, leader: l, gossiper: newTestGossiper(b), footing: b.footing, explainer: &endExplainer{}}
	x.hold("one")
	x.hold("two")
	x.commandLeave(Leave{Address: b.self.Address})
	b.survey()
	x.observe()
	x.drained("one")
	require.Equal(t, []string{"two"}, x.held())
	require.False(t, x.hasConfirmed())
	require.False(t, b.hosting.dropped)
	x.drained("two")
	require.True(t, x.hasConfirmed())
	require.True(t, b.hosting.dropped, "it hosts nothing when it says so")
	require.True(t, l.isConfirmed(b.self))
	require.Contains(t, sentTo[ExitingConfirmed](b), 2)
}

func TestANodeThatWasDownedSaysWhoseNewsItWas(t *testing.T) {
	b := newBench(t, 3)
	e := &endExplainer{}
	e.noteNewsFrom(nodeAt(2))
	b.accuse([]int{3}, []int{1})
	said := e.downed(b.state, b.self)
	require.Contains(t, said, "says "+nodeAt(2).String())
	require.Contains(t, said, "unreachable for "+nodeAt(3).String())
}

// A node that lists itself alone waits longer after it has heard of members that know its
// address; on a loopback address it is no member of anything else.
func TestHowLongANodeThatListsItselfListens(t *testing.T) {
	b := newBench(t, 0)
	b.phase = phaseJoining
	d := newTestDiscovery(b)
	d.restart([]gossip.Address{b.self.Address})
	d.began = b.now.Mono
	f := &formation{core: b.core, inquiry: d}
	require.Equal(t, b.now.Mono.Add(aloneWait), f.listensUntil())
	b.at(time.Minute + 4*time.Second)
	d.askBack(nodeAt(7).Address, Claim{})
	claim := Claim{List: []gossip.Address{nodeAt(7).Address}, Cluster: gossip.ClusterID{Born: bornAt, Nonce: 1}}
	require.True(t, d.hear(nodeAt(7), "InitJoinAck", d.attempt, claim))
	require.Zero(t, d.known, "it does not know this node's address")
	claim.Evidence = AddressKnown
	require.True(t, d.hear(nodeAt(7), "InitJoinAck", d.attempt, claim))
	require.Equal(t, b.now.Mono.Add(knownWait), f.listensUntil())
	for _, host := range []string{"127.0.0.1", "::1", "localhost"} {
		b.self.Address.Host = host
		require.Equal(t, b.now.Mono, f.listensUntil(), host)
	}
}
