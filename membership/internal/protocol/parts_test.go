// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
)

// Each part is tested here without a node: it is made with a core in a cluster, is fed,
// and its effects and the state are looked at. bench is the core, with what makes tests
// short: node 1 is the node itself, and in the beginning all members are up and have
// seen the state.
type bench struct {
	*core

	t             *testing.T
	strategies    *strategies
	surveyBuilder *surveyBuilder
	answers       *answers
	monitoring    *heartbeats
	resolver      *resolver
	footing       *footing
}

// nodeAt is the identity of the i-th node.
func nodeAt(i int) gossip.NodeID {
	return gossip.NodeID{Address: gossip.Address{Host: fmt.Sprintf("10.0.%d.%d", i/250, i%250), Port: 7946}, UID: gossip.UID(i)}
}

// memberAt is the i-th node as it joins.
func memberAt(i int) gossip.Member {
	return gossip.Member{
		Node: nodeAt(i), Status: gossip.Joining, Protocol: gossip.ProtocolRange{Min: 1, Max: 1}, Data: gossip.DataID(i),
		Loaded: gossip.Loaded{Version: 1, Strategies: []gossip.StrategyID{keepMajority().ID()}},
	}
}

func keepMajority() Strategy {
	return Downing{
		Config: downing.Default(), Decide: downing.KeepMajority{}.DecideNow, Class: downing.KeepMajority{}.Class(),
	}.strategy()
}

// bornAt is the birth of the cluster of a bench.
const bornAt = 1_000

// newBench returns a bench in a cluster of n members, or in none.
func newBench(t *testing.T, n int) *bench {
	t.Helper()
	cfg := Default()
	factory, err := fd.NewFactory(cfg.FailureDetector)
	require.NoError(t, err)
	registry, err := fd.NewRegistry(cfg.FailureDetector, factory, gossip.NodeID.Compare)
	require.NoError(t, err)
	c := newCore(cfg, memberAt(1), Dependencies{
		Rand: rand.New(rand.NewPCG(1, 2)), Record: Record{Data: 1},
		Downing: Downing{Config: downing.Default(), Limit: CallLimitDefault},
	})
	b := &bench{core: c, t: t, strategies: newStrategies(c, keepMajority()), answers: newAnswers(c)}
	c.me.Loaded = memberAt(1).Loaded
	b.surveyBuilder = &surveyBuilder{core: c, strategies: b.strategies, confirmed: func(gossip.NodeID) bool { return false }}
	b.monitoring = newHeartbeats(c, b.answers, registry, "")
	b.resolver = &resolver{core: c, strategies: b.strategies}
	b.footing = &footing{
		core: c, answers: b.answers, strategies: b.strategies, relay: newStandingRelay(c, b.answers, newReplies(c), b.strategies),
	}
	b.at(time.Minute)
	if n > 0 {
		b.phase = phaseMember
		b.state = b.state.Edit(b.self, func(e *gossip.Edit) {
			e.SetCluster(gossip.ClusterID{Born: bornAt, Nonce: 1})
			var voters []gossip.NodeID
			for i := range n {
				e.Join(memberAt(i + 1))
				e.SetStatus(nodeAt(i+1), gossip.Up, gossip.UpNumber(i+1))
				voters = append(voters, nodeAt(i+1))
			}
			slices.SortFunc(voters, gossip.NodeID.Compare)
			e.SetConfig(voters)
		})
		b.kept = b.kept.recordOf(b.state, true)
		b.allSee()
	}
	return b
}

// at sets the time, and forgets the effects before.
func (b *bench) at(since time.Duration) {
	b.last = b.now
	b.now = machine.Now{Mono: machine.Instant(since), Wall: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC).Add(since)}
	b.out = &machine.Outbox{}
}

// allSee lets all members see the state, and surveys it.
func (b *bench) allSee() {
	for _, member := range b.state.Members() {
		b.state = b.state.See(member.Node)
	}
	b.survey()
}

// survey does what the machine does with a new state before it tells the parts of it.
func (b *bench) survey() {
	before := b.surveyed.of
	b.surveyBuilder.surveyConvergence()
	b.strategies.takeOver()
	b.surveyBuilder.updateBase(before)
	b.monitoring.retarget()
}

// answeredBy notes that heartbeats which were sent at a moment were answered with standing.
func (b *bench) answeredBy(at time.Duration, nodes ...int) {
	for _, i := range nodes {
		b.answers.answered(nodeAt(i), machine.Instant(at))
		b.answers.isKnownTo(nodeAt(i), machine.Instant(at))
	}
}

// by changes the state as another node does.
func (b *bench) by(i int, change func(*gossip.Edit)) { b.state = b.state.Edit(nodeAt(i), change) }

// effects returns the effects of a type, in order.
func effects[T any](b *bench) []T {
	var all []T
	for _, e := range b.out.Effects() {
		if publish, ok := e.(machine.Publish); ok {
			e = publish.Event
		}
		if effect, ok := e.(T); ok {
			all = append(all, effect)
		}
	}
	return all
}

// sentTo returns the messages of a type that were sent, by the number of the node.
func sentTo[T any](b *bench) map[int]T {
	all := map[int]T{}
	for _, send := range effects[machine.Send](b) {
		if message, ok := send.Message.(T); ok {
			for i := range 200 {
				if nodeAt(i).Address == send.To.Address {
					all[i] = message
				}
			}
		}
	}
	return all
}

func TestAStateIsSeenOnlyWithItsVotersInTheRecord(t *testing.T) {
	b := newBench(t, 3)
	b.edit(func(e *gossip.Edit) { e.Mark(nodeAt(3), gossip.Unreachable) })
	require.True(t, b.state.Seen(b.self))
	b.edit(func(e *gossip.Edit) { e.SetConfig([]gossip.NodeID{nodeAt(1), nodeAt(2)}) })
	require.False(t, b.state.Seen(b.self), "after a restart this node would not know the voters")
	b.kept = b.kept.recordOf(b.state, false)
	require.True(t, b.markSeen(b.state).Seen(b.self))
}

func TestTheEndOfANodeTakesItsStandingFirstAndHappensOnce(t *testing.T) {
	b := newBench(t, 3)
	b.publishStanding(machine.Instant(2 * time.Minute))
	b.out = &machine.Outbox{}
	b.stop(component.StopLeft, "it is over")
	b.stop(component.StopDowned, "again")
	require.Len(t, b.out.Effects(), 3)
	require.Equal(t, machine.Publish{Event: component.Standing{}}, b.out.Effects()[0])
	require.Equal(t, machine.Publish{Event: component.Stopping{Reason: component.StopLeft, Detail: "it is over"}}, b.out.Effects()[2])
}

func TestTheSurveyKeepsTheVotersBeforeUntilAllHaveSeenTheNewOnes(t *testing.T) {
	b := newBench(t, 3)
	require.True(t, b.surveyed.converged)
	require.Equal(t, nodeAt(1), b.surveyed.leader)
	require.Len(t, b.surveyed.base, 1)
	b.edit(func(e *gossip.Edit) { e.SetConfig([]gossip.NodeID{nodeAt(1), nodeAt(2)}) })
	b.survey()
	require.False(t, b.surveyed.converged)
	require.Len(t, b.surveyed.base, 2)
	b.allSee()
	require.True(t, b.surveyed.converged)
	require.Equal(t, gossip.Base{{nodeAt(1), nodeAt(2)}}, b.surveyed.base)
}

func TestTheSurveyFindsTheLostAndWhetherTheOthersWin(t *testing.T) {
	b := newBench(t, 3)
	for _, i := range []int{2, 3} {
		b.edit(func(e *gossip.Edit) { e.Mark(nodeAt(i), gossip.Unreachable) })
	}
	b.survey()
	require.Equal(t, []gossip.NodeID{nodeAt(2), nodeAt(3)}, b.surveyed.lost)
	require.False(t, b.surveyed.outvoted, "nobody is down")
	b.edit(func(e *gossip.Edit) {
		e.SetStatus(nodeAt(2), gossip.Down, 2)
		e.SetStatus(nodeAt(3), gossip.Down, 3)
	})
	b.survey()
	require.True(t, b.surveyed.outvoted, "two of three voters are down")
}

func TestAStrategyIsTheNextOneWhenAllHaveLoadedIt(t *testing.T) {
	b := newBench(t, 2)
	other := keepMajority()
	other.Parameters = "other"
	require.True(t, b.strategies.load(LoadDowning{Strategy: other}))
	_, changes := b.strategies.next()
	require.False(t, changes, "node 2 has not loaded it")
	b.strategies.keep()
	b.by(2, func(e *gossip.Edit) { e.SetLoaded([]gossip.StrategyID{other.ID()}) })
	b.allSee()
	next, changes := b.strategies.next()
	require.True(t, changes)
	require.Equal(t, other.DowningStrategy, next)
}

func TestARecordIsKeptWhenTheDiskSaysSo(t *testing.T) {
	b := newBench(t, 0)
	b.deps.Remember = true
	kept := 0
	d := newMemory(b.core, func() { kept++ })
	promised := Record{Data: 1, Promise: 7}
	d.remember(promised)
	require.Zero(t, b.kept.Promise)
	require.Zero(t, kept)
	calls := effects[machine.Call](b)
	require.Len(t, calls, 1)
	require.Equal(t, promised, calls[0].Request)
	d.recordWritten(nil)
	require.Equal(t, promised, b.kept)
	require.Equal(t, 1, kept)
}

func TestANodeWhoseDiskMayHoldAnOldRecordEnds(t *testing.T) {
	b := newBench(t, 0)
	b.deps.Remember = true
	d := newMemory(b.core, func() { t.Error("nothing was kept") })
	d.remember(Record{Data: 1, Promise: 7})
	d.recordWritten(errors.New("no answer"))
	require.Equal(t, component.StopDisk, effects[component.Stopping](b)[0].Reason)
}

// What was written is lost with the file: the node goes on without a disk.
func TestANodeWhoseRecordWasRemovedRemembersInItsProcess(t *testing.T) {
	b := newBench(t, 0)
	b.deps.Remember = true
	d := newMemory(b.core, func() {})
	d.remember(Record{Data: 1, Promise: 7})
	d.recordWritten(fmt.Errorf("write: %w", ErrRecordLost))
	require.Len(t, effects[RecordLost](b), 1)
	b.at(2 * time.Minute)
	d.remember(Record{Data: 1, Promise: 8})
	require.Empty(t, effects[machine.Call](b))
	require.EqualValues(t, 8, b.kept.Promise)
}

func TestANodeHostsAFenceLongAfterAMajorityWasAsked(t *testing.T) {
	b := newBench(t, 5)
	b.footing.update()
	require.Zero(t, b.hosting.until, "nobody has answered")
	b.answeredBy(10*time.Second, 2)
	b.answeredBy(20*time.Second, 3)
	b.answeredBy(30*time.Second, 4)
	b.footing.update()
	require.Equal(t, machine.Instant(20*time.Second).Add(b.cfg.Fence), b.hosting.until, "1, 3 and 4 are three of five since 20 s")
	require.False(t, b.footing.connected(), "a minute has passed")
	b.answeredBy(time.Minute, 2, 3)
	require.True(t, b.footing.connected())
	require.True(t, b.footing.mayLetIn())
	b.dropStanding()
	b.answeredBy(time.Minute, 4)
	b.footing.update()
	require.Zero(t, b.hosting.until, "dropped is for good")
}

func TestANewcomerIsAnsweredWithStandingOnceItsPromotionIsKnownToAll(t *testing.T) {
	b := newBench(t, 3)
	r := newReplies(b.core)
	b.edit(func(e *gossip.Edit) {
		e.Join(memberAt(4))
		e.SetStatus(nodeAt(4), gossip.Up, 4)
		e.SetConfig([]gossip.NodeID{nodeAt(1), nodeAt(2), nodeAt(3), nodeAt(4)})
	})
	b.survey()
	r.receive(nodeAt(4), 9, Question{})
	require.Equal(t, HeartbeatReply{Sequence: 9, Known: true}, sentTo[HeartbeatReply](b)[4])
	b.at(2 * time.Minute)
	b.kept = b.kept.recordOf(b.state, true)
	b.allSee()
	r.sendLate()
	require.Equal(t, HeartbeatReply{Sequence: 9, Standing: true}, sentTo[HeartbeatReply](b)[4])
}

func TestAStrangerIsToldThatItIsNoMember(t *testing.T) {
	b := newBench(t, 3)
	newReplies(b.core).receive(nodeAt(9), 1, Question{})
	require.Equal(t, HeartbeatReply{Sequence: 1}, sentTo[HeartbeatReply](b)[9])
	require.Equal(t, NotMember{Node: nodeAt(9)}, sentTo[NotMember](b)[9])
}

func TestASilentNodeIsAccusedAndTakenBackWhenItAnswers(t *testing.T) {
	b := newBench(t, 3)
	h := b.monitoring
	h.round()
	require.Len(t, sentTo[Heartbeat](b), 2)
	silent := time.Minute + b.cfg.FailureDetector.Bounds().MaxSilence + time.Second
	b.at(silent)
	h.round()
	h.hears(nodeAt(2), 2, b.now.Mono)
	h.judgeSilence()
	require.Equal(t, gossip.Unreachable, b.ownRecord(nodeAt(3)))
	require.Zero(t, b.ownRecord(nodeAt(2)))
	h.round()
	b.at(silent + 10*time.Millisecond)
	h.hears(nodeAt(3), 3, b.now.Mono)
	h.takeBack(nodeAt(3))
	require.Zero(t, b.ownRecord(nodeAt(3)))
}

// An answer that took longer than the fence gives no standing, and is no sign of life to a node that has it. The time
// for which the asker did not run was not the answer's.
func TestALateAnswerIsNoSignOfLife(t *testing.T) {
	b := newBench(t, 3)
	h := b.monitoring
	b.hosting.until = machine.Never
	h.round()
	b.at(time.Minute + b.cfg.Fence)
	require.True(t, h.hears(nodeAt(2), 1, b.now.Mono))
	b.at(time.Hour)
	require.True(t, h.hasSlept())
	b.at(time.Hour + 1)
	require.False(t, h.hears(nodeAt(3), 1, b.now.Mono))
	require.False(t, h.hasAnswered(nodeAt(3)))
	b.hosting.until = b.now.Mono - 1
	require.True(t, h.hears(nodeAt(3), 1, b.now.Mono), "whose links are slow is not known")
}

func TestANodeThatSleptAccusesNobody(t *testing.T) {
	b := newBench(t, 3)
	b.monitoring.round()
	b.at(time.Hour)
	require.True(t, b.monitoring.hasSlept())
	b.monitoring.judgeSilence()
	require.Empty(t, b.state.Records())
}

func TestInALargeClusterNewsGoesToFewMembers(t *testing.T) {
	b := newBench(t, 100)
	c := &gossipPeers{core: b.core, monitors: b.monitoring.monitors}
	met := map[gossip.NodeID]bool{}
	for range 200 {
		for _, n := range c.pick(3) {
			met[n] = true
		}
	}
	require.LessOrEqual(t, len(met), len(b.monitoring.targets)+peersDrawn)
	require.NotContains(t, met, b.self)
}

func newTestGossiper(b *bench) *gossiper {
	return newGossiper(b.core, &gossipPeers{core: b.core, monitors: b.monitoring.monitors}, b.monitoring, b.strategies, &endExplainer{})
}

func TestNewsIsSentToWhoKnowsLess(t *testing.T) {
	b := newBench(t, 3)
	s := newTestGossiper(b)
	before := b.state.Digest()
	b.edit(func(e *gossip.Edit) { e.Mark(nodeAt(3), gossip.Unreachable) })
	s.receiveStatus(nodeAt(2), GossipStatus{Digest: before})
	delta := sentTo[GossipDelta](b)[2]
	require.Equal(t, b.state.Digest(), delta.Digest)
	require.True(t, s.knows(nodeAt(2)))
}

// Who shows the fingerprint of another state is sent this node's digest, so that the two
// are compared; nothing is believed of a fingerprint.
func TestAnotherFingerprintIsAnsweredByADigest(t *testing.T) {
	b := newBench(t, 3)
	s := newTestGossiper(b)
	mine, before := b.state.Fingerprint(), b.state
	s.compare(nodeAt(2), 0)
	s.compare(nodeAt(2), mine)
	s.compare(nodeAt(9), mine+1)
	require.Empty(t, effects[machine.Send](b))
	s.compare(nodeAt(2), mine+1)
	require.Equal(t, map[int]GossipStatus{2: {Digest: b.state.Digest()}}, sentTo[GossipStatus](b))
	s.compare(nodeAt(2), mine+1)
	require.Len(t, effects[machine.Send](b), 1, "once in a push interval")
	require.Same(t, before, b.state)
	require.Empty(t, s.known)
}

// The fingerprint that a heartbeat shows is that of the state at the moment of sending.
func TestAHeartbeatShowsTheStateOfTheMoment(t *testing.T) {
	b := newBench(t, 3)
	b.monitoring.show(nodeAt(3))
	b.edit(func(e *gossip.Edit) { e.Mark(nodeAt(2), gossip.Unreachable) })
	b.monitoring.round()
	require.Equal(t, map[int]Heartbeat{
		2: {Sequence: 1, Shared: true}, 3: {Sequence: 1, Shared: true, Fingerprint: b.state.Fingerprint()},
	}, sentTo[Heartbeat](b))
}

// While this node knows that not all have seen the state, or has met a member that it does
// not know, rounds send digests.
func TestOnlyAQuietRoundGoesWithAHeartbeat(t *testing.T) {
	b := newBench(t, 3)
	s := newTestGossiper(b)
	s.round()
	require.Empty(t, effects[machine.Send](b))
	require.NotZero(t, b.monitoring.shown)
	s.askSoon()
	s.round()
	require.Len(t, sentTo[GossipStatus](b), 1)
	s.unconverged = true
	s.round()
	require.Len(t, effects[machine.Send](b), 2)
	require.EqualValues(t, 3, b.counts.Rounds)
}

func TestGossipOfAnotherClusterIsRefused(t *testing.T) {
	b := newBench(t, 3)
	s := newTestGossiper(b)
	other := b.state.Digest()
	other.Cluster.Born++
	s.receiveStatus(nodeAt(2), GossipStatus{Digest: other})
	require.EqualValues(t, 1, b.counts.Refused[RefusedCluster])
	require.Empty(t, effects[machine.Send](b))
}
