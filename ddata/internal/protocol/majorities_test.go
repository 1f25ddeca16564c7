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

// A group without majorities says so at once, with what will or must happen.
func TestNoGroupIsWithoutMajoritiesInSilence(t *testing.T) {
	durable := func(r *replica) { r.durable, r.meta.Written = true, 0 }
	for name, test := range map[string]struct {
		up   []int
		gone []int
		as   func(*replica)
		want protocol.Fate
	}{
		"a minority is gone":             {[]int{1, 2}, []int{3}, goingOn, protocol.FateNone},
		"gone, in memory":                {[]int{1}, []int{2, 3}, goingOn, protocol.FateGoOn},
		"gone, in memory, to wait":       {[]int{1}, []int{2, 3}, func(*replica) {}, protocol.FateOperator},
		"gone, with numbers of replicas": {[]int{1}, []int{2, 3}, func(r *replica) { r.goOn, r.copies = true, 3 }, protocol.FateOperator},
		"gone, on disk":                  {[]int{1}, []int{2, 3}, durable, protocol.FateDisks},
	} {
		t.Run(name, func(t *testing.T) {
			f := alone(t, 3, 1, stable(1, 1, 2, 3), test.as)
			f.know(members(t, test.up, test.gone...), 1)
			for range 20 {
				f.run(100 * time.Millisecond)
				f.at(1).written()
			}
			got := protocol.FateNone
			for _, a := range f.at(1).alarms {
				got = a.Fate
			}
			require.Equal(t, test.want, got)
		})
	}
}
