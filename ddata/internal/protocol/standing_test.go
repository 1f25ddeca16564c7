// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/machine/component"
)

// Who may not host decides nothing; and a set follows the members as fast as the replicas catch up.

// suspended returns a machine among puppets that is told of its standing, and has none.
func suspended(t *testing.T, reg *protocol.Register) *fleet {
	t.Helper()
	return alone(t, 5, 1, reg, func(r *replica) { r.standing = true })
}

// mayHost tells a machine that its node may host for a while.
func (r *replica) mayHost(d time.Duration) {
	r.step(component.Standing{Until: r.f.now.Add(d)})
}

// A replica whose node may not host promises and accepts nothing, proposes nothing, and says so in what it answers.
func TestWhoMayNotHostDecidesNothing(t *testing.T) {
	reg := stable(1, 1, 2, 3)
	f := suspended(t, reg)
	propose := func() {
		f.at(2).say(1, reg, protocol.Prepare{Slot: 2, Ballot: protocol.Ballot{Round: 9, By: 2}})
		f.at(2).say(1, reg, protocol.Accept{Slot: 2, Ballot: protocol.Ballot{Round: 9, By: 2}, Value: joint(reg, 1, 2, 3, 4, 5)})
	}
	answered := func() (promise, accepted bool) {
		for _, l := range f.at(2).heard {
			_, p := l.message.Body.(protocol.Promise)
			_, a := l.message.Body.(protocol.Accepted)
			promise, accepted = promise || p, accepted || a
		}
		f.at(2).heard = nil
		return promise, accepted
	}
	propose()
	f.run(3 * time.Second) // It leads, and the members are others.
	for _, l := range f.at(2).heard {
		require.True(t, l.message.Suspended, "%T", l.message.Body)
		_, proposes := l.message.Body.(protocol.Prepare)
		require.False(t, proposes)
	}
	promise, accepted := answered()
	require.False(t, promise || accepted)
	f.at(1).mayHost(time.Minute)
	propose()
	promise, accepted = answered()
	require.True(t, promise && accepted)
}

// A majority is completed by replicas whose nodes may host, at a node that may host; a number of replicas by any.
func TestMajoritiesAreOfThoseThatMayHost(t *testing.T) {
	reg := stable(1, 1, 2, 3)
	f := suspended(t, reg)
	limit := 10 * time.Second
	change := f.at(1).add(1)
	f.at(1).command(protocol.Write{Op: 1, Change: change, Level: majority, Limit: limit})
	f.at(1).command(protocol.Write{Op: 2, Change: change, Level: protocol.Level{Name: protocol.Count, N: 2}, Limit: limit})
	f.at(1).command(protocol.Read{Op: 3, Key: "k", Level: majority, Limit: limit})
	answer := func(as bool) {
		for _, body := range []any{protocol.DeltasTaken{Seq: 1}, protocol.PutTaken{Op: 1}, protocol.PutTaken{Op: 2}, protocol.Answer{Op: 3}, protocol.PutTaken{Op: 3}} {
			f.at(2).speak(1, protocol.Envelope{From: 2, Lineage: reg.Lineage, Gen: reg.Gen, Suspended: !as, Body: body})
		}
	}
	answer(true)
	require.Len(t, f.at(1).done, 1, "this node may not host")
	require.Equal(t, protocol.OpID(2), f.at(1).done[0].Op)
	answer(false)
	f.at(1).mayHost(limit)
	f.run(time.Second)
	require.Len(t, f.at(1).done, 1, "the other may not host")
	answer(true)
	f.run(time.Second)
	answer(true)
	require.Len(t, f.at(1).done, 3)
}

// A joint phase ends when a majority of the new replicas has caught up and no other one comes further: a newcomer
// that has died, and is a member still, is not waited for.
func TestANewcomerThatIsSilentHoldsNothingUp(t *testing.T) {
	before := stable(1, 1, 2, 3)
	reg := joint(before, 1, 2, 3, 4)
	f := alone(t, 4, 1, reg)
	proposed := func() (ends bool) {
		for _, l := range f.at(2).heard {
			_, asks := l.message.Body.(protocol.Prepare)
			ends = ends || asks
		}
		return ends
	}
	step := func(d time.Duration, taken uint64) {
		for range d / (100 * time.Millisecond) {
			f.run(100 * time.Millisecond)
			for _, i := range []int{2, 3} {
				f.at(i).sayCaught(1, reg, protocol.Hello{})
			}
			if compare, ok := heardLast[protocol.Compare](f.at(3)); ok {
				f.at(3).sayCaught(1, reg, protocol.Groups{Pass: compare.Pass, Same: true})
			}
			if taken > 0 {
				taken++
				f.at(4).say(1, reg, protocol.Hello{Taken: taken})
			}
		}
	}
	step(2*time.Second, 1)
	require.True(t, f.at(1).Caught(0))
	require.False(t, proposed(), "the newcomer comes further")
	step(time.Second, 0)
	require.True(t, proposed())
}

// When a new replica is gone, those of then take its place: the set does not go back to one with members that are gone.
func TestADeathInAJointPhaseReplacesTheNewSet(t *testing.T) {
	before := stable(1, 1, 2, 3)
	reg := joint(before, 1, 2, 4)
	f := alone(t, 5, 1, reg)
	f.know(members(t, []int{1, 2, 5}, 3, 4), 1)
	f.run(time.Second)
	ask := mustHear[protocol.Prepare](f.at(2))
	f.at(2).say(1, reg, protocol.Promise{Slot: ask.Slot, Ballot: ask.Ballot})
	accept := mustHear[protocol.Accept](f.at(2))
	require.Equal(t, protocol.PhaseJoint, accept.Value.Phase)
	require.True(t, set(1, 2, 3).Same(accept.Value.Current))
	require.True(t, set(1, 2, 5).Same(accept.Value.Next))
}

// A replica that has come to count does so whatever comes next when the end of the change is sealed: before that a
// majority of the former set is needed too.
func TestAReplicaIsSettledWhenTheChangeIsSealed(t *testing.T) {
	reg := ended(joint(stable(1, 8, 9), 1, 2, 3))
	f := alone(t, 3, 3, reg)
	require.True(t, f.at(3).Route(0).Counts)
	require.False(t, f.at(3).Route(0).Settled)
	f.at(1).speak(3, protocol.Envelope{From: 1, Lineage: reg.Lineage, Gen: reg.Gen, Sealed: true, Body: protocol.Hello{}})
	require.True(t, f.at(3).Route(0).Settled)
}
