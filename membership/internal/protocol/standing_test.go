// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// A leader promotes a joiner, and no other node hears of that: in the states of the nodes
// that the joiner asks it has no vote, and those that go on without the leader would not
// wait for it. It has no standing by their answers, whether it is to vote or not; it has
// when they have heard.
//
// covers I1, I2, I14.
func TestJoinerWhosePromotionOthersHaveNotHeardOfHasNoStanding(t *testing.T) {
	for moment := range 20 {
		role := []string{"", "backend"}[moment%2] // The joiner does not have it.
		l := mixed(t, 3)
		nodes := l.cluster(3, votersWithRole(role))
		l.run(time.Duration(moment/2) * 100 * time.Millisecond)
		leader := nodes[0]
		var joiner *node
		promoted := func() bool {
			m := joiner.machine.State().Member(joiner.id)
			return m != nil && m.Status == gossip.Up
		}
		knows := func(n gossip.NodeID) bool { return n == leader.id || n == joiner.id }
		l.drop = func(from, to gossip.NodeID, message any) bool {
			m := leader.machine.State().ByAddress(address(4))
			return m != nil && m.Status == gossip.Up && isGossip(message) && knows(from) && !knows(to)
		}
		joiner = l.join(4, votersWithRole(role))
		l.until(5*time.Second, promoted)
		for range 300 {
			l.run(10 * time.Millisecond)
			for _, other := range nodes[1:] {
				require.Equal(t, gossip.Joining, other.machine.State().Member(joiner.id).Status)
			}
			require.False(t, joiner.hosts(), "it hosts %v after its promotion", l.now)
		}
		for _, n := range nodes {
			require.True(t, n.hosts(), "the others have their standing by both sets")
		}
		l.drop = nil
		l.until(2*time.Second, func() bool { return l.allUp(4) })
		l.until(time.Second, joiner.hosts)
	}
}

// From its promotion it takes a newcomer as long as it takes the others to know that all
// have heard of it, and not an interval of heartbeats more.
func TestNewcomerHostsAsSoonAsAllKnowOfIt(t *testing.T) {
	for size := 1; size <= 6; size++ {
		for moment := range 10 {
			l := newLoop(t)
			nodes := l.cluster(size)
			l.run(time.Duration(moment) * 100 * time.Millisecond)
			joiner := l.join(size + 1)
			l.until(5*time.Second, func() bool { return l.allUp(size + 1) })
			l.until(5*time.Second, func() bool {
				for _, n := range append(nodes, joiner) {
					if !n.machine.Snapshot().Converged {
						return false
					}
				}
				return true
			})
			took := l.until(5*time.Second, joiner.hosts)
			require.LessOrEqual(t, took, 2*l.latency, "of %d nodes", size)
		}
	}
}

// A joiner waits for as long as it takes to decide a partition. Members that know it
// answer all the while, although their answers give no standing, so that a member that
// has not heard of the joiner does not end it.
func TestJoinerThatIsKnownWaitsAlthoughOneHasNotHeardOfIt(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(3, func(_ *protocol.Config, d *protocol.Dependencies) {
		d.Downing.Decide = func(downing.View) (downing.Decision, error) { return downing.Decision{Reason: "waits"}, nil }
	})
	nodes[2].dead = true
	l.run(6 * time.Second)
	joiner := l.join(4)
	l.run(2 * l.cfg.RetryUnsuccessfulJoinAfter)
	require.Less(t, joiner.machine.State().Member(joiner.id).Status, gossip.Up)
	require.False(t, joiner.hosts())
	joiner.step(machine.Received{From: nodes[1].id, Message: protocol.NotMember{Node: joiner.id, Status: gossip.StatusNone}})
	require.Nil(t, joiner.stopping)
}

// The last voter leaves while another node joins. The joiner alone is left to remove it,
// and becomes up, although nobody ever gave it standing.
func TestJoinerGoesOnWhenTheLastVoterLeaves(t *testing.T) {
	l := newLoop(t)
	last := l.cluster(1)[0]
	// The leader does not hear that the joiner lives before it has left.
	l.drop = func(_, to gossip.NodeID, message any) bool {
		_, answers := message.(protocol.HeartbeatReply)
		return to == last.id && (answers || isGossip(message)) && last.machine.State().Member(last.id).Status < gossip.Leaving
	}
	joiner := l.join(2)
	l.until(5*time.Second, func() bool { return joiner.machine.State().Member(joiner.id) != nil })
	require.Equal(t, gossip.Joining, last.machine.State().Member(joiner.id).Status)
	last.step(protocol.Leave{Address: last.id.Address})
	l.until(15*time.Second, func() bool { return joiner.sees(1, gossip.Up) })
	l.run(time.Second)
	require.NotNil(t, last.stopping)
	require.Equal(t, component.StopLeft, last.stopping.Reason)
	l.until(5*time.Second, joiner.hosts)
}

// Answers to heartbeats come late and again, in whatever order: none takes back the standing that later
// ones have given.
//
// covers F16.
func TestALateAnswerTakesNoStandingBack(t *testing.T) {
	l := newLoop(t)
	of := l.cluster(3)[0]
	var answers []machine.Received
	l.drop = func(from, to gossip.NodeID, message any) bool {
		if _, answer := message.(protocol.HeartbeatReply); answer && to == of.id {
			answers = append(answers, machine.Received{From: from, Message: message})
		}
		return false
	}
	l.run(5 * time.Second)
	l.drop = nil
	require.Greater(t, len(answers), 6)
	for _, late := range answers {
		before := of.until
		of.step(late)
		require.GreaterOrEqual(t, of.until, before, "%+v", late)
	}
}
