// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package downing_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/downing/downingtest"
	"github.com/quorate/quorate/gossip"
)

var keepMajority downing.KeepMajority

// nodes returns the ids of the nodes with these numbers.
func nodes(ns ...int) []gossip.NodeID {
	ids := make([]gossip.NodeID, len(ns))
	for i, n := range ns {
		ids[i] = downingtest.Node(n)
	}
	return ids
}

// first returns the ids of nodes 0 to n-1.
func first(n int) []gossip.NodeID { return downingtest.IDs(downingtest.Members(n)) }

// inside returns the predicate of a set of nodes.
func inside(ids []gossip.NodeID) func(gossip.NodeID) bool {
	return func(id gossip.NodeID) bool { return slices.Contains(ids, id) }
}

// whole returns the view of n members that are all connected, except for the given
// links: the two ends of each complain about each other.
func whole(n int, links ...[2]int) downing.View {
	v := downingtest.SplitView(downingtest.Members(n), func(gossip.NodeID) bool { return true }, gossip.Base{first(n)})
	for _, l := range links {
		a, b := downingtest.Node(l[0]), downingtest.Node(l[1])
		v.Unreachable = append(v.Unreachable, downingtest.Complaint(a, b), downingtest.Complaint(b, a))
	}
	return v
}

// decide lets keep-majority decide and checks the decision.
func decide(t require.TestingT, v downing.View) downing.Decision {
	d, err := keepMajority.DecideNow(v)
	require.NoError(t, err)
	require.NoError(t, downing.Check(v, keepMajority.Class(), d))
	return d
}

func TestKeepMajorityOfACleanSplit(t *testing.T) {
	tests := []struct {
		name   string
		n      int
		side   []int
		want   downing.Verdict
		down   []int
		reason string
	}{
		{
			"majority", 5,
			[]int{2, 3, 4},
			downing.KeepSide,
			[]int{0, 1},
			"keep-majority: this side has 3 of 5 voters; downed are 2 lost and 0 indirectly connected",
		},
		{
			"minority", 5,
			[]int{0, 1},
			downing.DownSide,
			[]int{0, 1},
			"keep-majority: this side has no majority: 2 of 5 voters",
		},
		{
			"half with the lowest", 4,
			[]int{0, 3},
			downing.KeepSide,
			[]int{1, 2},
			"keep-majority: this side has 2 of 4 voters, exactly half, with the lowest, 10.0.0.10:7946#1000; downed are 2 lost and 0 indirectly connected",
		},
		{
			"half without the lowest", 4,
			[]int{1, 2},
			downing.DownSide,
			[]int{1, 2},
			"keep-majority: this side has no majority: 2 of 4 voters, exactly half, without the lowest, 10.0.0.10:7946#1000",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			v := downingtest.SplitView(downingtest.Members(test.n), inside(nodes(test.side...)), gossip.Base{first(test.n)})
			d := decide(t, v)
			require.Equal(t, downing.Decision{Verdict: test.want, Down: nodes(test.down...), Reason: test.reason}, d)
		})
	}
}

func TestKeepMajorityLeavesAHealthyClusterAlone(t *testing.T) {
	require.Equal(t, downing.Decision{Reason: "keep-majority: everybody is reachable"}, decide(t, whole(5)))
}

func TestKeepMajorityWithoutVotersDecidesNothing(t *testing.T) {
	v := downingtest.SplitView(downingtest.Members(3), inside(nodes(0)), gossip.Base{nil})
	d := decide(t, v)
	require.Equal(t, downing.None, d.Verdict)
	require.Contains(t, d.Reason, "no voters")
}

// Members that are not up yet do not vote, and go with their side.
func TestKeepMajorityTakesJoiningMembersAlong(t *testing.T) {
	members := downingtest.Members(6)
	members[3].Status, members[4].Status, members[5].Status = gossip.Joining, gossip.WeaklyUp, gossip.Joining
	base := gossip.Base{first(3)}
	d := decide(t, downingtest.SplitView(members, inside(nodes(2, 3, 4)), base))
	require.Equal(t, downing.DownSide, d.Verdict)
	require.Equal(t, nodes(2, 3, 4), d.Down)
	d = decide(t, downingtest.SplitView(members, inside(nodes(0, 1, 5)), base))
	require.Equal(t, downing.KeepSide, d.Verdict)
	require.Equal(t, nodes(2, 3, 4), d.Down)
}

// A vote counts only while its voter is up, or exits and has seen the view: the others are
// votes that nobody has.
func TestKeepMajorityCountsLostVotes(t *testing.T) {
	tests := []struct {
		name   string
		status gossip.Status
		want   downing.Verdict
	}{
		{"up", gossip.Up, downing.KeepSide},
		{"preparing", gossip.Preparing, downing.KeepSide},
		{"leaving", gossip.Leaving, downing.KeepSide},
		{"exiting", gossip.Exiting, downing.KeepSide},
		{"down", gossip.Down, downing.DownSide},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			members := downingtest.Members(5)
			members[4].Status = test.status
			v := downingtest.SplitView(members, inside(nodes(2, 3, 4)), gossip.Base{first(5)})
			require.Equal(t, test.want, decide(t, v).Verdict)
		})
	}
	t.Run("exiting, and it has not seen the view", func(t *testing.T) {
		members := downingtest.Members(5)
		members[4].Status = gossip.Exiting
		v := downingtest.SplitView(members, inside(nodes(2, 3, 4)), gossip.Base{first(5)})
		v.Seen = nodes(2, 3)
		require.Equal(t, downing.DownSide, decide(t, v).Verdict, "it may be on the other side")
		v.Seen, v.Unreachable = nodes(2, 3, 4), append(v.Unreachable, downingtest.Complaint(nodes(0)[0], nodes(4)[0]))
		require.Equal(t, downing.KeepSide, decide(t, v).Verdict, "the complaint is older")
	})
	t.Run("removed", func(t *testing.T) {
		v := downingtest.SplitView(downingtest.Members(4), inside(nodes(2, 3)), gossip.Base{first(5)})
		require.Equal(t, downing.DownSide, decide(t, v).Verdict)
	})
}

// While a change of the voters is under way a side must win by both sets.
func TestKeepMajorityNeedsEverySetOfTheBase(t *testing.T) {
	base := gossip.Base{first(5), first(3)}
	v := downingtest.SplitView(downingtest.Members(5), inside(nodes(2, 3, 4)), base)
	d := decide(t, v)
	require.Equal(t, downing.DownSide, d.Verdict)
	require.Contains(t, d.Reason, "3 of 5 voters; and 1 of 3 voters of before the change under way")
	v.Base = base[:1]
	require.Equal(t, downing.KeepSide, decide(t, v).Verdict)
}

func TestExitingMembersAreNotDowned(t *testing.T) {
	members := downingtest.Members(4)
	members[3].Status = gossip.Exiting
	v := downingtest.SplitView(members, inside(nodes(0, 1, 2)), gossip.Base{first(3)})
	require.Equal(t, downing.None, decide(t, v).Verdict)
	// An exiting member that no longer answers does not make others suspect either.
	v = whole(4, [2]int{2, 3})
	v.Members = members
	require.Equal(t, downing.None, decide(t, v).Verdict)
}

// covers F12: links within a side are broken.
func TestIndirectlyConnectedMembers(t *testing.T) {
	tests := []struct {
		name  string
		n     int
		links [][2]int
		want  downing.Verdict
		down  []int
		text  string
	}{
		{"one link: the younger end goes", 5, [][2]int{{0, 1}}, downing.KeepSide, []int{1}, "this side has 4 of 5 voters; downed are 0 lost and 1 indirectly"},
		{"one link of three", 3, [][2]int{{0, 1}}, downing.KeepSide, []int{1}, "has 2 of 3"},
		{"one link of two: half with the lowest stays", 2, [][2]int{{0, 1}}, downing.KeepSide, []int{1}, "has 1 of 2"},
		{"the end with more broken links goes", 5, [][2]int{{0, 3}, {0, 4}}, downing.KeepSide, []int{0}, "has 4 of 5"},
		{"star with a dead centre", 5, [][2]int{{2, 0}, {2, 1}, {2, 3}, {2, 4}}, downing.KeepSide, []int{2}, "has 4 of 5"},
		{"two pairs of five: one end each", 5, [][2]int{{0, 1}, {2, 3}}, downing.KeepSide, []int{1, 3}, "has 3 of 5"},
		{"chain: a majority of it, with a link", 5, [][2]int{{0, 2}, {0, 3}, {0, 4}, {1, 3}, {1, 4}, {2, 4}}, downing.KeepSide, []int{3, 4}, "has 3 of 5 voters, and no majority without either end of 1 broken links"},
		{"ring: a majority of it, with a link", 5, [][2]int{{0, 2}, {1, 3}, {2, 4}, {3, 0}, {4, 1}}, downing.KeepSide, []int{3, 4}, "has 3 of 5 voters, and no majority without either end of 1 broken links"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := decide(t, whole(test.n, test.links...))
			require.Equal(t, test.want, d.Verdict, d.Reason)
			require.Equal(t, nodes(test.down...), d.Down)
			require.Contains(t, d.Reason, test.text)
		})
	}
}

// One broken link within the winning side, of which neither end can be spared, costs
// no member but the lost ones; once these are no longer voters, one end goes.
func TestALinkThatTheMajorityNeedsIsDecidedAboutLater(t *testing.T) {
	v := downingtest.SplitView(downingtest.Members(5), inside(nodes(0, 1, 2)), gossip.Base{first(5)})
	v.Unreachable = append(v.Unreachable, downingtest.Complaint(downingtest.Node(1), downingtest.Node(2)))
	d := decide(t, v)
	require.Equal(t, downing.KeepSide, d.Verdict)
	require.Equal(t, nodes(3, 4), d.Down)
	v.Members[3].Status, v.Members[4].Status = gossip.Down, gossip.Down
	d = decide(t, v)
	require.Equal(t, downing.None, d.Verdict)
	require.Contains(t, d.Reason, "which are kept until those who are down do not count any more")
	v.Members, v.Base = v.Members[:3], gossip.Base{first(3)}
	d = decide(t, v)
	require.Equal(t, downing.KeepSide, d.Verdict)
	require.Equal(t, nodes(2), d.Down)
}

// A voter outweighs a member that does not vote.
func TestWhoDoesNotVoteGoesBeforeWhoDoes(t *testing.T) {
	v := whole(3, [2]int{0, 2})
	v.Members[0].Status = gossip.Joining
	v.Base = gossip.Base{nodes(2)}
	require.Equal(t, nodes(0), decide(t, v).Down)
	v.Members[0].Status = gossip.Up // A member that is up but in no set of voters does not vote either.
	require.Equal(t, nodes(0), decide(t, v).Down)
}

// Some members are lost and, at the same time, a link between the others is broken.
func TestLostAndIndirectlyConnected(t *testing.T) {
	v := downingtest.SplitView(downingtest.Members(7), inside(nodes(0, 1, 2, 3, 4, 5)), gossip.Base{first(7)})
	v.Unreachable = append(v.Unreachable, downingtest.Complaint(downingtest.Node(1), downingtest.Node(2)))
	d := decide(t, v)
	require.Equal(t, nodes(2, 6), d.Down)
	require.Contains(t, d.Reason, "downed are 1 lost and 1 indirectly connected")
}

// An old complaint by the other side about a member of this side must not cost this
// side the vote, nor the member.
func TestComplaintsFromTheOtherSide(t *testing.T) {
	v := downingtest.SplitView(downingtest.Members(5), inside(nodes(0, 1, 4)), gossip.Base{first(5)})
	v.Unreachable = append(v.Unreachable, downingtest.Complaint(downingtest.Node(2), downingtest.Node(4)))
	d := decide(t, v)
	require.Equal(t, downing.KeepSide, d.Verdict)
	require.Equal(t, nodes(2, 3), d.Down)
}

// A complaint by a lost voter does not prove that the voter is still there: if it
// counted, both sides of this split would find a majority.
func TestLostObserversDoNotCount(t *testing.T) {
	v := downingtest.SplitView(downingtest.Members(5), inside(nodes(0, 1)), gossip.Base{first(5)})
	v.Unreachable = append(v.Unreachable, downingtest.Complaint(downingtest.Node(2), downingtest.Node(0)))
	require.Equal(t, downing.DownSide, decide(t, v).Verdict)
}

// A member whose address was taken by a newer incarnation will not answer, whatever
// the old incarnation has seen.
func TestTerminatedMembersAreLost(t *testing.T) {
	v := whole(5)
	v.Unreachable = append(v.Unreachable, gossip.Record{
		Observer: downingtest.Node(0), Subject: downingtest.Node(1), Status: gossip.Terminated, Version: 1,
	})
	d := decide(t, v)
	require.Equal(t, downing.KeepSide, d.Verdict)
	require.Equal(t, nodes(1), d.Down)
}

func TestComplaintsThatCountForNothing(t *testing.T) {
	v := whole(4)
	v.Members[3].Status = gossip.Down
	v.Seen = nodes(0)
	v.Unreachable = []gossip.Record{
		downingtest.Complaint(downingtest.Node(3), downingtest.Node(1)),
		downingtest.Complaint(downingtest.Node(0), downingtest.Node(3)),
		downingtest.Complaint(downingtest.Node(9), downingtest.Node(1)),
		downingtest.Complaint(downingtest.Node(0), downingtest.Node(9)),
		downingtest.Complaint(downingtest.Node(2), downingtest.Node(2)),
	}
	require.Equal(t, downing.None, decide(t, v).Verdict)
}

func TestViewsThatMakeNoSense(t *testing.T) {
	tests := []struct {
		name  string
		spoil func(v *downing.View)
		want  string
	}{
		{"stranger", func(v *downing.View) { v.Self = downingtest.Node(9) }, "asks, but is no member"},
		{"down", func(v *downing.View) { v.Members[0].Status = gossip.Down }, "asks, but is down itself"},
		{"out of order", func(v *downing.View) { slices.Reverse(v.Members) }, "out of order"},
		{"nil member", func(v *downing.View) { v.Members[1] = nil }, "is nil"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			v := whole(3)
			test.spoil(&v)
			_, err := keepMajority.DecideNow(v)
			require.ErrorContains(t, err, test.want)
			require.ErrorIs(t, err, downing.ErrContract)
			_, err = downing.All{}.DecideNow(v)
			require.ErrorContains(t, err, test.want)
			require.ErrorContains(t, downing.Check(v, downing.Class{}, downing.Decision{}), test.want)
		})
	}
}

func TestBuiltInProvidersKeepTheContract(t *testing.T) {
	for _, name := range []string{downing.KeepMajorityName, downing.DownAllName} {
		t.Run(name, func(t *testing.T) {
			downingtest.TestProvider(t, func(tb testing.TB) downing.Provider {
				tb.Helper()
				c := downing.Default()
				c.Strategy = name
				p, err := downing.New(c)
				if err != nil {
					tb.Fatal(err)
				}
				return p
			})
		})
	}
}

func TestDownAll(t *testing.T) {
	members := downingtest.Members(4)
	members[3].Status = gossip.Exiting
	v := downingtest.SplitView(members, inside(nodes(0, 1)), gossip.Base{first(4)})
	d, err := downing.All{}.DecideNow(v)
	require.NoError(t, err)
	require.NoError(t, downing.Check(v, downing.All{}.Class(), d))
	require.Equal(t, downing.Decision{
		Verdict: downing.DownAll, Down: nodes(0, 1, 2),
		Reason: "down-all: 1 members are lost, 0 links within this side are broken",
	}, d)
	d, err = downing.All{}.DecideNow(whole(3))
	require.NoError(t, err)
	require.Equal(t, downing.None, d.Verdict)
}
