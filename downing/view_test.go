// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package downing_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/downing/downingtest"
	"github.com/quorate/quorate/gossip"
)

// cluster returns the state of n members that are up and voters, as seen by
// node 0 and by all others.
func cluster(n int) *gossip.State {
	s := gossip.New(gossip.ClusterID{Born: 1, Nonce: 1}).Edit(downingtest.Node(0), func(e *gossip.Edit) {
		for i := range n {
			e.Join(gossip.Member{Node: downingtest.Node(i), Status: gossip.Joining})
		}
	})
	s = s.Edit(downingtest.Node(0), func(e *gossip.Edit) {
		for i := range n {
			e.SetStatus(downingtest.Node(i), gossip.Up, gossip.UpNumber(i+1))
		}
		e.SetConfig(first(n))
	})
	for i := range n {
		s = s.See(downingtest.Node(i))
	}
	return s
}

// complain returns the state with complaints by one observer about others.
func complain(s *gossip.State, observer int, subjects ...int) *gossip.State {
	return s.Edit(downingtest.Node(observer), func(e *gossip.Edit) {
		for _, n := range subjects {
			e.Mark(downingtest.Node(n), gossip.Unreachable)
		}
	})
}

// Two sides of a real state, each of which knows only its own complaints, decide in
// opposite ways.
func TestViewsOfAStateThatFellApart(t *testing.T) {
	whole := cluster(5)
	base := whole.Config().Base(true)
	small := complain(complain(whole, 0, 2, 3, 4), 1, 2, 3, 4).See(downingtest.Node(0))
	large := whole
	for _, observer := range []int{2, 3, 4} {
		large = complain(large, observer, 0, 1)
	}
	for _, observer := range []int{2, 3} {
		large = large.See(downingtest.Node(observer))
	}
	d := decide(t, downing.NewView(small, downingtest.Node(0), base))
	require.Equal(t, downing.DownSide, d.Verdict)
	require.Equal(t, nodes(0, 1), d.Down)
	d = decide(t, downing.NewView(large, downingtest.Node(2), base))
	require.Equal(t, downing.KeepSide, d.Verdict)
	require.Equal(t, nodes(0, 1), d.Down)

	v := downing.NewView(large, downingtest.Node(2), base)
	side := v.Side()
	require.Equal(t, nodes(2, 3, 4), downingtest.IDs(side.Members()))
	require.Equal(t, nodes(0, 1), downingtest.IDs(side.Lost()))
	require.Empty(t, side.IndirectlyConnected())
	require.True(t, side.Has(downingtest.Node(4)))
	require.False(t, side.Has(downingtest.Node(0)))
	require.False(t, side.Has(downingtest.Node(9)))
	require.Nil(t, v.Member(downingtest.Node(9)))
	require.Equal(t, gossip.Up, v.Member(downingtest.Node(1)).Status)

	// Both sides may get the other's complaints once the partition has healed:
	// then all nodes have seen everything, and decide alike.
	healed := small.Merge(large)
	for n := range 5 {
		healed = healed.See(downingtest.Node(n))
	}
	d = decide(t, downing.NewView(healed, downingtest.Node(0), base))
	for n := range 5 {
		require.Equal(t, d, decide(t, downing.NewView(healed, downingtest.Node(n), base)))
	}
}

// A link breaks between two of five nodes that still get news of each other through
// the rest.
func TestViewOfABrokenLink(t *testing.T) {
	s := complain(complain(cluster(5), 3, 4), 4, 3)
	for n := range 5 {
		s = s.See(downingtest.Node(n))
	}
	v := downing.NewView(s, downingtest.Node(0), s.Config().Base(true))
	require.Equal(t, nodes(3, 4), downingtest.IDs(v.Side().IndirectlyConnected()))
	require.Equal(t, nodes(4), decide(t, v).Down)
}

// Who is to be counted on no more, by the word of a member that is not down, is told to the
// strategy, and is not on the side although it has seen the state.
func TestAViewTellsWhoIsToBeDownedByCommand(t *testing.T) {
	s := cluster(4).Edit(downingtest.Node(0), func(e *gossip.Edit) { e.Mark(downingtest.Node(3), gossip.Terminated) })
	s = complain(s, 1, 2)
	for i := range 4 {
		s = s.See(downingtest.Node(i))
	}
	v := downing.NewView(s, downingtest.Node(0), s.Config().Base(true))
	require.Equal(t, nodes(3), downingtest.IDs(v.Commanded()))
	require.Equal(t, nodes(3), downingtest.IDs(v.Side().Lost()))
	for _, down := range []int{0, 3} {
		after := s.Edit(downingtest.Node(1), func(e *gossip.Edit) { e.Down(downingtest.Node(down), "it is lost") })
		v := downing.NewView(after, downingtest.Node(1), s.Config().Base(true))
		require.Empty(t, v.Commanded())
	}
}
