// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package downing_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/downing/downingtest"
	"github.com/quorate/quorate/gossip"
)

// The laws of every strategy: the suite for providers, and that neither the order of
// complaints nor their repetition matters. Then what each strategy does in the cases that
// make it what it is.

// strategy is a strategy under test, for clusters of n members.
type strategy struct {
	name string
	make func(n int) downing.Immediate
}

// core is the role of members 0 to n-2 where a role counts; see withCore.
const core = "core"

// strategies are all strategies that decide at once, with the parameters that matter.
func strategies() []strategy {
	return []strategy{
		{"keep-majority", func(int) downing.Immediate { return downing.KeepMajority{} }},
		{"static-quorum", func(n int) downing.Immediate { return downing.StaticQuorum{Quorum: n/2 + 1} }},
		{"static-quorum, too small", func(int) downing.Immediate { return downing.StaticQuorum{Quorum: 1} }},
		{"static-quorum, role", func(n int) downing.Immediate { return downing.StaticQuorum{Quorum: (n-1)/2 + 1, Role: core} }},
		{"static-quorum, role, too small", func(int) downing.Immediate { return downing.StaticQuorum{Quorum: 1, Role: core} }},
		{"keep-oldest", func(int) downing.Immediate { return downing.KeepOldest{} }},
		{"keep-oldest, down-if-alone", func(int) downing.Immediate { return downing.KeepOldest{DownIfAlone: true} }},
		{"keep-oldest, down-if-alone, role", func(int) downing.Immediate { return downing.KeepOldest{DownIfAlone: true, Role: core} }},
		{"manual", func(int) downing.Immediate { return downing.Manual{} }},
		{"down-all", func(int) downing.Immediate { return downing.All{} }},
	}
}

// withCore gives all members but the last the role.
func withCore(members []*gossip.Member) []*gossip.Member {
	for _, m := range members[:max(1, len(members)-1)] {
		m.Roles = []string{core}
	}
	return members
}

// A strategy that is built in is under all laws of this package.
func TestEveryBuiltInIsUnderTheLaws(t *testing.T) {
	for _, b := range downing.BuiltIns() {
		under := slices.ContainsFunc(strategies(), func(s strategy) bool { return s.name == b.Name || strings.HasPrefix(s.name, b.Name+",") })
		require.True(t, under, "add %s to strategies() in strategies_test.go, with each of its parameters", b.Name)
	}
}

func TestEveryStrategyKeepsTheContract(t *testing.T) {
	for _, s := range strategies() {
		t.Run(s.name, func(t *testing.T) {
			downingtest.TestProvider(t, func(testing.TB) downing.Provider { return s.make(5) })
		})
	}
}

// Records come in the order in which the news of them came, or sorted, and some twice: a
// decision is the same.
func TestTheOrderOfComplaintsDoesNotMatter(t *testing.T) {
	for _, s := range strategies() {
		provider, reached := s.make(5), map[downing.Verdict]int{}
		for seed := range uint64(3000) {
			rnd := rand.New(rand.NewPCG(seed, 3))
			v := downingtest.RandomView(rnd)
			withCore(v.Members)
			want, err := provider.DecideNow(v)
			require.NoError(t, err)
			reached[want.Verdict]++
			v.Unreachable = append(v.Unreachable, v.Unreachable...)
			rnd.Shuffle(len(v.Unreachable), func(i, j int) { v.Unreachable[i], v.Unreachable[j] = v.Unreachable[j], v.Unreachable[i] })
			got, err := provider.DecideNow(v)
			require.NoError(t, err)
			require.Equal(t, want, got, "%s, seed %d", s.name, seed)
			require.NoError(t, downing.Check(v, provider.Class(), got))
		}
		require.Positive(t, reached[downing.None], s.name)
	}
}

// split returns the view of one side of n members, of which all but the last have the
// role; edit may change the members first.
func split(n int, side []int, edit func(members []*gossip.Member)) downing.View {
	members := withCore(downingtest.Members(n))
	if edit != nil {
		edit(members)
	}
	return downingtest.SplitView(members, inside(nodes(side...)), gossip.Base{first(n)})
}

// status sets the status of a member.
func status(n int, s gossip.Status) func([]*gossip.Member) {
	return func(members []*gossip.Member) { members[n].Status = s }
}

func TestWhatEachStrategyKeeps(t *testing.T) {
	quorum := func(q int, role string) downing.Immediate { return downing.StaticQuorum{Quorum: q, Role: role} }
	oldest, alone := downing.KeepOldest{}, downing.KeepOldest{DownIfAlone: true}
	tests := []struct {
		name   string
		by     downing.Immediate
		n      int
		side   []int
		edit   func([]*gossip.Member)
		want   downing.Verdict
		reason string
	}{
		{"quorum", quorum(3, ""), 5, []int{0, 1, 2}, nil, downing.KeepSide, "3 of the 3 members that a side needs, and 3 of 5 voters"},
		{"no quorum", quorum(3, ""), 5, []int{3, 4}, nil, downing.DownSide, "no quorum: 2 of the 3 members"},
		{"a majority and no quorum", quorum(4, ""), 5, []int{0, 1, 2}, nil, downing.DownSide, "3 of the 4 members"},
		{"a quorum that is too small, and no majority", quorum(2, ""), 5, []int{0, 1}, nil, downing.DownSide, "2 of 5 voters"},
		{"a quorum that is too small, and a majority", quorum(2, ""), 5, []int{0, 1, 2}, nil, downing.KeepSide, "3 of 5 voters"},
		{"a quorum larger than the cluster", quorum(9, ""), 5, []int{0, 1, 2, 3}, nil, downing.DownSide, "4 of the 9 members"},
		{"a quorum of a role, no majority of all", quorum(2, core), 4, []int{0, 1}, nil, downing.KeepSide, "2 of the 2 core members"},
		{"no quorum of the role", quorum(2, core), 4, []int{0, 3}, nil, downing.DownSide, "1 of the 2 core members"},
		{"too many of the role", quorum(2, core), 5, []int{0, 1, 2}, nil, downing.DownSide, "there are 4, and two sides could have as many"},
		{"too many of the role, one of them exiting", quorum(2, core), 5, []int{0, 1}, status(3, gossip.Exiting), downing.DownSide, "there are 4"},
		{"joining members are not counted", quorum(2, core), 5, []int{0, 1}, status(3, gossip.Joining), downing.KeepSide, "2 of the 2 core"},
		{"a role that nobody has", quorum(1, "none"), 3, []int{0, 1}, nil, downing.DownSide, "0 of the 1 none members"},

		{"a minority with the oldest", oldest, 5, []int{0}, nil, downing.KeepSide, "1 of 5 members and the oldest"},
		{"a majority without the oldest", oldest, 5, []int{1, 2, 3, 4}, nil, downing.DownSide, "not the oldest"},
		{"the oldest alone", alone, 5, []int{0}, nil, downing.DownSide, "which is alone"},
		{"all but the oldest", alone, 5, []int{1, 2, 3, 4}, nil, downing.KeepSide, "all but the oldest"},
		{"the oldest and one more", alone, 5, []int{0, 4}, nil, downing.KeepSide, "2 of 5 members and the oldest"},
		{"one of two with the oldest", alone, 2, []int{0}, nil, downing.KeepSide, "and the oldest"},
		{"one of two without the oldest", alone, 2, []int{1}, nil, downing.DownSide, "not the oldest"},
		{"the oldest alone beside one that joins", alone, 3, []int{0}, status(2, gossip.Joining), downing.DownSide, "which is alone"},
		{"all but the oldest and one that joins", alone, 4, []int{1, 2}, status(3, gossip.Joining), downing.DownSide, "not the oldest"},
		{"all but the oldest and one that is down", alone, 4, []int{1, 2}, status(3, gossip.Down), downing.DownSide, "not the oldest"},
		{"the oldest leaves, and the next is here", oldest, 4, []int{1, 2}, status(0, gossip.Leaving), downing.DownSide, "may be the oldest to others"},
		{"the oldest leaves, and both are here", oldest, 4, []int{0, 1}, status(0, gossip.Leaving), downing.KeepSide, "and the oldest"},
		{"the oldest is exiting", oldest, 4, []int{1, 2}, status(0, gossip.Exiting), downing.KeepSide, "and the oldest"},
		{"the oldest is down, and not removed", oldest, 4, []int{1, 2}, status(0, gossip.Down), downing.DownSide, "may be the oldest to others"},
		{"the oldest of no role", downing.KeepOldest{Role: "none"}, 3, []int{0, 1}, nil, downing.DownSide, "no member is the oldest"},

		{"by hand", downing.Manual{}, 5, []int{0, 1, 2}, nil, downing.None, "waiting for a command to down members: 2 are lost (10.0.0.13:7946#1003, "},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			v := split(test.n, test.side, test.edit)
			d, err := test.by.DecideNow(v)
			require.NoError(t, err)
			require.NoError(t, downing.Check(v, test.by.Class(), d))
			require.Contains(t, d.Reason, test.reason)
			require.Equal(t, test.want, d.Verdict, d.Reason)
		})
	}
}

func TestAQuorumBelowOneIsRefused(t *testing.T) {
	_, err := downing.StaticQuorum{}.DecideNow(whole(3))
	require.ErrorContains(t, err, "the quorum is 0, which is below 1")
}

// Of each broken link one end goes, and only if the rest may go on: never all ends, and
// never the oldest where the oldest is needed.
func TestStrategiesKeepMostOfASideWithBrokenLinks(t *testing.T) {
	tests := []struct {
		name  string
		by    downing.Immediate
		n     int
		links [][2]int
		down  []gossip.NodeID
	}{
		{"quorum", downing.StaticQuorum{Quorum: 3}, 5, [][2]int{{1, 4}}, nodes(4)},
		{"quorum of a role", downing.StaticQuorum{Quorum: 2, Role: core}, 4, [][2]int{{1, 3}, {0, 2}}, nodes(2, 3)},
		{"quorum that needs both ends", downing.StaticQuorum{Quorum: 5}, 5, [][2]int{{1, 4}}, nil},
		{"oldest with all others", downing.KeepOldest{}, 4, [][2]int{{0, 1}, {0, 2}, {0, 3}}, nodes(1, 2, 3)},
		{"oldest with all others, not alone", downing.KeepOldest{DownIfAlone: true}, 4, [][2]int{{0, 1}, {0, 2}, {0, 3}}, nodes(0)},
		{"two others", downing.KeepOldest{DownIfAlone: true}, 4, [][2]int{{1, 2}}, nodes(2)},
		{"by hand", downing.Manual{}, 4, [][2]int{{1, 2}}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			v := whole(test.n, test.links...)
			withCore(v.Members)
			d, err := test.by.DecideNow(v)
			require.NoError(t, err)
			require.NoError(t, downing.Check(v, test.by.Class(), d))
			require.Equal(t, test.down, d.Down, d.Reason)
		})
	}
}

// Manual names as many members as find room in a reason.
func TestReasonsOfGreatViewsAreShort(t *testing.T) {
	for _, s := range strategies() {
		v := lossyView(1000)
		d, err := s.make(1000).DecideNow(v)
		require.NoError(t, err)
		require.NoError(t, downing.Check(v, s.make(1000).Class(), d))
	}
}

// The plan of lease-majority: the majority asks first, and the answer decides.
func TestPlanOfLeaseMajority(t *testing.T) {
	l := downing.LeaseMajority{MinorityDelay: 2 * time.Second}
	tests := []struct {
		name  string
		n     int
		side  []int
		delay time.Duration
	}{
		{"majority", 5, []int{0, 1, 2}, 0},
		{"minority", 5, []int{3, 4}, 2 * time.Second},
		{"half with the lowest", 4, []int{0, 3}, 0},
		{"half without the lowest", 4, []int{1, 2}, 2 * time.Second},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			v := split(test.n, test.side, nil)
			p, err := l.Plan(v)
			require.NoError(t, err)
			require.True(t, p.Ask)
			require.Equal(t, test.delay, p.Delay)
			for answer, want := range map[downing.LeaseAnswer]downing.Verdict{
				downing.LeaseGranted: downing.KeepSide, downing.LeaseRefused: downing.DownSide, downing.LeaseUnknown: downing.None, 9: downing.None,
			} {
				d := p.After(answer)
				require.Equal(t, want, d.Verdict, d.Reason)
				require.NoError(t, downing.Check(v, downing.Class{}, d))
				require.NotEmpty(t, d.Reason)
			}
		})
	}
	p, err := l.Plan(whole(3))
	require.NoError(t, err)
	require.False(t, p.Ask)
	require.Equal(t, downing.None, p.After(downing.LeaseRefused).Verdict)
	p, err = l.Plan(whole(3, [2]int{1, 2}))
	require.NoError(t, err)
	require.True(t, p.Ask, "a broken link is a reason to ask")
	require.Zero(t, p.Delay)
	require.Equal(t, nodes(2), p.After(downing.LeaseGranted).Down)
	_, err = l.Plan(downing.View{})
	require.ErrorIs(t, err, downing.ErrContract)
}
