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

// A group in memory whose majority is gone for good.

// goingOn makes nodes go on by themselves.
func goingOn(r *replica) { r.goOn = true }

// fence tells a machine that removed members can host nothing any more.
func (r *replica) fence(nodes ...int) {
	for _, i := range nodes {
		r.step(component.Fenced{Node: node(i)})
	}
}

// One of those that are left takes in what the others hold, and goes on when all of them have agreed: what they hold
// stays, the lineage is another one, and the generations go on.
func TestAGroupInMemoryGoesOnWithoutItsMajority(t *testing.T) {
	f := newFleet(t, 5, goingOn)
	f.together()
	before := f.at(1).Register(0)
	require.Len(t, before.Current, 5)
	f.drop = func(from, to int, _ any) bool { return from > 2 || to > 2 || from != to }
	f.at(1).add(1)
	f.at(2).add(2)
	f.run(time.Second)
	f.drop = func(from, to int, _ any) bool { return from > 2 || to > 2 }
	state := members(t, []int{1, 2}, 3, 4, 5)
	f.know(state, 1, 2)
	f.run(3 * time.Second)
	require.Equal(t, before.Lineage, f.at(1).Register(0).Lineage, "they may host still")
	f.at(1).command(protocol.Read{Op: 1, Key: "k", Level: majority, Limit: time.Minute})
	f.at(1).fence(3, 4, 5)
	f.at(2).fence(3, 4, 5)
	f.run(3 * time.Second)
	for _, i := range []int{1, 2} {
		now := f.at(i).Register(0)
		require.Equal(t, before.Lineage.Turn+1, now.Lineage.Turn)
		require.Equal(t, before.Lineage.ID, now.Continues)
		require.Greater(t, now.Gen, before.Gen)
		require.True(t, set(1, 2).Same(now.Current))
		e, _ := f.at(i).table.Get("k")
		require.Len(t, e.Versions, 2, "what each of them held")
		require.EqualValues(t, 1, f.at(i).Counts().WentOn)
		require.Empty(t, f.at(i).wiped)
	}
	require.Equal(t, protocol.Confirmed, f.at(1).done[0].Verdict)
}

// The last one of a majority goes on while it leaves, and hands over what it holds: nobody else has it.
func TestAGroupGoesOnWhenTheLastOneLeaves(t *testing.T) {
	f := newFleet(t, 5, goingOn)
	f.know(members(t, []int{1, 2, 3}), 1, 2, 3)
	f.run(3 * time.Second)
	before := f.at(1).Register(0)
	require.Len(t, before.Current, 3)
	f.at(1).add(1)
	f.run(time.Second)
	f.drop = func(from, to int, _ any) bool { return from == 2 || from == 3 || to == 2 || to == 3 }
	f.know(membersOf(t, []int{4, 5}, []int{1}, []int{2, 3}), 1, 4, 5)
	for _, i := range []int{1, 4, 5} {
		f.at(i).fence(2, 3)
	}
	f.run(5 * time.Second)
	for _, i := range []int{4, 5} {
		now := f.at(i).Register(0)
		require.Equal(t, before.Lineage.ID, now.Continues)
		require.True(t, set(4, 5).Same(now.Current))
		e, _ := f.at(i).table.Get("k")
		require.Len(t, e.Versions, 1, "what the last one held")
	}
}

// Nobody goes on while one of those that are left does not agree: it may be there for another one that goes on.
func TestAGroupGoesOnWithAllThatAreLeft(t *testing.T) {
	reg := stable(1, 1, 2, 3, 4, 5)
	f := alone(t, 5, 1, reg, goingOn)
	f.know(members(t, []int{1, 2}, 3, 4, 5), 1)
	f.at(1).fence(3, 4, 5)
	f.run(time.Second)
	mustHear[protocol.Compare](f.at(2))
	f.run(5 * time.Second)
	_, asked := heardLast[protocol.Prepare](f.at(2))
	require.False(t, asked, "what it holds was not taken in")
	f.run(5 * time.Second)
	compare := mustHear[protocol.Compare](f.at(2))
	f.at(2).say(1, reg, protocol.Groups{Pass: compare.Pass, Same: true})
	f.run(5 * time.Second)
	ask := mustHear[protocol.Prepare](f.at(2))
	require.Equal(t, reg.Lineage, f.at(1).Register(0).Lineage)
	f.at(2).say(1, reg, protocol.Promise{Slot: ask.Slot, Ballot: ask.Ballot})
	accept := mustHear[protocol.Accept](f.at(2))
	require.Equal(t, reg.Lineage.ID, accept.Value.Continues)
	require.Equal(t, reg.Lineage, f.at(1).Register(0).Lineage)
	f.at(2).say(1, reg, protocol.Accepted{Slot: ask.Slot, Ballot: ask.Ballot})
	require.Equal(t, accept.Value.Lineage, f.at(1).Register(0).Lineage)
}

// A replica that is behind when the group goes on drops its copy: what it holds may have been swept by those who went
// on.
func TestWhoIsBehindDropsItsCopyWhenTheGroupHasGoneOn(t *testing.T) {
	for gen, keeps := range map[uint64]bool{2: true, 3: false} {
		reg := stable(1, 1, 2, 3)
		f := alone(t, 3, 2, reg)
		f.at(2).add(1)
		on := joint(&protocol.Register{Lineage: protocol.Lineage{Turn: 2, ID: 9}, Continues: reg.Lineage.ID, Gen: gen - 1, Current: set(1)}, 1, 2)
		f.at(1).say(2, on, protocol.Hello{})
		require.Equal(t, keeps, f.at(2).table.Len() > 0, "generation %d", gen)
	}
}

// Buckets in memory that have lost a winning part of their homes begin anew with what the others hold, as soon as the
// lost can host nothing any more, and nothing else is touched.
func TestBucketsInMemoryBeginAnewByThemselves(t *testing.T) {
	f := newFleet(t, 7, func(r *replica) { r.copies, r.goOn = 3, true })
	f.together()
	lost, kept, gone := f.keyAt(2, 6, 7), f.keyAt(1, 6, 7), f.keyAt(0, 6, 7)
	for _, key := range []string{lost, kept, gone} {
		require.Equal(t, protocol.Confirmed, f.write(key, 1))
	}
	f.end(6, 7)
	require.NotNil(t, heldIn(f.at(1).Register(0), lost), "they may host still")
	require.Equal(t, protocol.HomesLost, f.at(1).read(lost).Verdict)
	for i := 1; i <= 5; i++ {
		f.at(i).fence(6, 7)
	}
	f.run(10 * time.Second)
	r := f.at(1).Register(0)
	require.Equal(t, uint32(1), r.Lineage.Turn, "the lineage goes on")
	require.Empty(t, r.Held)
	for _, key := range []string{lost, kept, gone} {
		done := f.at(2).read(key)
		require.Equal(t, protocol.Confirmed, done.Verdict)
		require.NotNil(t, done.Entry, "one home of each was left")
		require.Equal(t, protocol.Confirmed, f.write(key, 5))
	}
	for i := 1; i <= 5; i++ {
		require.EqualValues(t, 1, f.at(i).Counts().WentOn)
		require.Equal(t, [][]protocol.ReplicaID{{6, 7}}, f.at(i).lost)
	}
}

// Buckets of which a home may come back, or may host still, do not begin anew.
func TestBucketsWaitForWhoMayComeBack(t *testing.T) {
	f := newFleet(t, 7, func(r *replica) { r.copies, r.goOn = 3, true })
	f.together()
	lost := f.keyAt(2, 6, 7)
	require.Equal(t, protocol.Confirmed, f.write(lost, 1))
	f.end(6, 7)
	for i := 1; i <= 5; i++ {
		f.at(i).fence(7)
	}
	f.run(10 * time.Second)
	require.NotNil(t, heldIn(f.at(1).Register(0), lost))
	require.Zero(t, f.at(1).Counts().WentOn)
}

// A group with numbers of replicas goes on without its majority: buckets whose homes are a winning part keep all they
// have, the others what is left.
func TestAGroupOfHomesGoesOnWithoutItsMajority(t *testing.T) {
	f := newFleet(t, 7, func(r *replica) { r.copies, r.goOn = 3, true })
	f.together()
	before := f.at(1).Register(0)
	lost, kept, nothing := f.keyAt(2, 4, 5, 6, 7), f.keyAt(1, 4, 5, 6, 7), f.keyAt(3, 4, 5, 6, 7)
	for _, key := range []string{lost, kept, nothing} {
		require.Equal(t, protocol.Confirmed, f.write(key, 1))
	}
	f.end(4, 5, 6, 7)
	require.Equal(t, before.Lineage, f.at(1).Register(0).Lineage, "they may host still")
	for i := 1; i <= 3; i++ {
		f.at(i).fence(4, 5, 6, 7)
	}
	f.run(20 * time.Second)
	for i := 1; i <= 3; i++ {
		r := f.at(i).Register(0)
		require.Equal(t, before.Lineage.Turn+1, r.Lineage.Turn)
		require.Equal(t, before.Lineage.ID, r.Continues)
		require.True(t, set(1, 2, 3).Same(r.Current))
		require.Equal(t, protocol.PhaseStable, r.Phase)
		require.Empty(t, r.Held)
		require.Equal(t, [][]protocol.ReplicaID{{4, 5, 6, 7}}, f.at(i).lost)
		require.Empty(t, f.at(i).wiped)
	}
	for key, there := range map[string]bool{lost: true, kept: true, nothing: false} {
		done := f.at(2).read(key)
		require.Equal(t, protocol.Confirmed, done.Verdict)
		require.Equal(t, there, done.Entry != nil, key)
		require.Equal(t, protocol.Confirmed, f.write(key, 5))
	}
}

// A group without majorities says so at once, with what will or must happen.
func TestNoGroupIsWithoutMajoritiesInSilence(t *testing.T) {
	durable := func(r *replica) { r.durable, r.meta.Written = true, 0 }
	for name, test := range map[string]struct {
		up   []int
		gone []int
		as   func(*replica)
		want protocol.Recovery
	}{
		"a minority is gone":             {[]int{1, 2}, []int{3}, goingOn, protocol.RecoveryNone},
		"gone, in memory":                {[]int{1}, []int{2, 3}, goingOn, protocol.RecoveryGoOn},
		"gone, in memory, to wait":       {[]int{1}, []int{2, 3}, func(*replica) {}, protocol.RecoveryOperator},
		"gone, with numbers of replicas": {[]int{1}, []int{2, 3}, func(r *replica) { r.goOn, r.copies = true, 3 }, protocol.RecoveryGoOn},
		"gone, on disk":                  {[]int{1}, []int{2, 3}, durable, protocol.RecoveryDisks},
	} {
		t.Run(name, func(t *testing.T) {
			f := alone(t, 3, 1, stable(1, 1, 2, 3), test.as)
			f.know(members(t, test.up, test.gone...), 1)
			for range 20 {
				f.run(100 * time.Millisecond)
				f.at(1).written()
			}
			got := protocol.RecoveryNone
			for _, a := range f.at(1).alarms {
				got = a.Recovery
			}
			require.Equal(t, test.want, got)
		})
	}
}
