// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
)

// status builds a state with members of the given statuses at node(0), 1 ...
// all of which have seen it.
func statuses(t testing.TB, all ...gossip.Status) *gossip.State {
	t.Helper()
	p := gossip.Raw{LastUpNumber: 100}
	for i, st := range all {
		m := &gossip.Member{Node: node(i), Status: st}
		if st >= gossip.Up && st <= gossip.Leaving {
			m.UpNumber = gossip.UpNumber(i + 1)
		}
		p.Members = append(p.Members, m)
		p.Seen = append(p.Seen, m.Node)
		p.Clock = append(p.Clock, gossip.Dot{Node: m.Node, Count: 1})
	}
	s, err := gossip.FromParts(p)
	require.NoError(t, err)
	return s
}

// unseen returns s without some members in its seen set.
func unseen(t testing.TB, s *gossip.State, who ...int) *gossip.State {
	t.Helper()
	p := s.Parts()
	p.Seen = nil
	for i := range p.Members {
		keep := true
		for _, w := range who {
			keep = keep && i != w
		}
		if keep {
			p.Seen = append(p.Seen, node(i))
		}
	}
	s, err := gossip.FromParts(p)
	require.NoError(t, err)
	return s
}

// marked returns s with rows of an observer, seen by the same members as s.
func marked(t testing.TB, s *gossip.State, observer int, subjects ...int) *gossip.State {
	t.Helper()
	p := s.Parts()
	set := &gossip.ObserverRows{Observer: node(observer), Version: 1}
	for _, subject := range subjects {
		set.Rows = append(set.Rows, gossip.Row{Subject: node(subject), Status: gossip.Unreachable, Version: 1})
	}
	p.Observers = append(p.Observers, set)
	s, err := gossip.FromParts(p)
	require.NoError(t, err)
	return s
}

func TestConvergence(t *testing.T) {
	t.Parallel()
	const (
		joining, up, leaving, exiting, down = gossip.Joining, gossip.Up, gossip.Leaving, gossip.Exiting, gossip.Down
	)
	tests := []struct {
		name      string
		state     *gossip.State
		self      int
		confirmed int // The member that confirmed its exit, self for none.
		want      string
	}{
		{name: "all have seen", state: statuses(t, up, up, leaving)},
		{name: "up not seen", state: unseen(t, statuses(t, up, up), 1), want: "not seen by 10.0.0.1:7946#8"},
		{name: "leaving not seen", state: unseen(t, statuses(t, up, leaving), 1), want: "not seen by 10.0.0.1:7946#8"},
		{name: "joining need not see", state: unseen(t, statuses(t, up, joining, gossip.WeaklyUp), 1, 2)},
		{name: "exiting and down need not see", state: unseen(t, statuses(t, up, exiting, down), 1, 2)},
		{name: "first members must all see", state: unseen(t, statuses(t, joining, joining), 1), want: "not seen by 10.0.0.1:7946#8"},
		{name: "weakly up is no first member", state: unseen(t, statuses(t, joining, gossip.WeaklyUp), 1), want: "not seen by 10.0.0.1:7946#8"},
		{name: "unreachable up", state: marked(t, statuses(t, up, up, up), 1, 2), want: "unreachable 10.0.0.2:7946#f"},
		{name: "unreachable joining", state: marked(t, statuses(t, up, joining), 0, 1), want: "unreachable 10.0.0.1:7946#8"},
		{name: "unreachable exiting", state: marked(t, statuses(t, up, exiting), 0, 1)},
		{name: "unreachable down", state: marked(t, statuses(t, up, down), 0, 1)},
		{name: "self unreachable", state: marked(t, statuses(t, up, up), 1, 0)},
		{name: "observer down", state: marked(t, statuses(t, up, down, up), 1, 2)},
		{name: "observer exiting", state: marked(t, statuses(t, up, exiting, up), 1, 2)}, // Otherwise it would stay if it died in this state.
		{name: "observer joining counts", state: marked(t, statuses(t, up, joining, up), 1, 2), want: "unreachable 10.0.0.2:7946#f"},
		{name: "confirmed", state: marked(t, unseen(t, statuses(t, up, leaving), 1), 0, 1), confirmed: 1},
		{name: "confirmed leader of another side", state: marked(t, unseen(t, statuses(t, leaving, up, up), 0), 2, 0), self: 1, confirmed: 0, want: "not seen by 10.0.0.0:7946#1; unreachable 10.0.0.0:7946#1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			confirmed := func(id gossip.NodeID) bool { return test.confirmed != test.self && id == node(test.confirmed) }
			ok, why := test.state.Convergence(node(test.self), confirmed)
			require.Equal(t, test.want, why.String())
			require.Equal(t, test.want == "", ok)
			require.Equal(t, ok, test.state.Converged(node(test.self), confirmed))
		})
	}
	ok, why := statuses(t, up).Convergence(node(9), nil)
	require.False(t, ok)
	require.Equal(t, "this node is not a member", why.String())
}

// A member that leaves before it came up must not make the others believe that the
// first up-number was given.
func TestConvergenceOfFirstMembersOutlivesALeavingOne(t *testing.T) {
	t.Parallel()
	s := statuses(t, gossip.Joining, gossip.Joining).Edit(node(1), func(e *gossip.Edit) {
		require.True(t, e.SetStatus(node(1), gossip.Leaving, 0))
	})
	ok, why := s.Convergence(node(1), nil)
	require.False(t, ok)
	require.Equal(t, []gossip.NodeID{node(0)}, why.Unseen)
}

func TestLeader(t *testing.T) {
	t.Parallel()
	const up, down = gossip.Up, gossip.Down
	tests := []struct {
		name  string
		state *gossip.State
		self  int
		want  gossip.NodeID
	}{
		{name: "first that is up", state: statuses(t, gossip.Joining, up, up), want: node(1)},
		{name: "leaving leads", state: statuses(t, gossip.Leaving, up), want: node(0)},
		{name: "ready leads", state: statuses(t, gossip.Exiting, gossip.Ready), want: node(1)},
		{name: "down never", state: statuses(t, down, up), self: 1, want: node(1)},
		{name: "unreachable not", state: marked(t, statuses(t, up, up), 1, 0), self: 1, want: node(1)},
		{name: "self always", state: marked(t, statuses(t, up, up), 1, 0), want: node(0)},
		{name: "down observer not believed", state: marked(t, statuses(t, up, down, up), 1, 0), self: 2, want: node(0)},
		{name: "weakly up before joining", state: statuses(t, gossip.Exiting, gossip.Joining, gossip.WeaklyUp), want: node(2)},
		{name: "joining before exiting", state: statuses(t, gossip.Exiting, gossip.Joining), want: node(1)},
		{name: "nobody", state: statuses(t, down), want: gossip.NodeID{}},
		{name: "stranger", state: statuses(t, up), self: 7, want: gossip.NodeID{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, test.state.Leader(node(test.self)))
		})
	}
}

func TestAge(t *testing.T) {
	t.Parallel()
	s := gossip.New(gossip.ClusterID{}).Edit(node(0), func(e *gossip.Edit) {
		for i, role := range []string{"x", "y", "x", "y"} {
			e.Join(gossip.Member{Node: node(i), Roles: []string{role}})
		}
		require.True(t, e.SetStatus(node(2), gossip.Up, 1))
		require.True(t, e.SetStatus(node(0), gossip.Up, 2))
		require.False(t, e.SetStatus(node(1), gossip.Up, 2), "a number is given once")
		require.True(t, e.SetStatus(node(1), gossip.Up, 3))
	})
	ages := func(role string) (ids []gossip.NodeID) {
		for _, m := range s.ByAge(role) {
			ids = append(ids, m.Node)
		}
		return ids
	}
	require.Equal(t, []gossip.NodeID{node(2), node(0), node(1)}, ages(""))
	require.Equal(t, []gossip.NodeID{node(2), node(0)}, ages("x"))
	require.Equal(t, node(2), s.Oldest("x", nil).Node)
	require.Equal(t, node(0), s.Oldest("x", func(m *gossip.Member) bool { return m.Node != node(2) }).Node)
	require.Nil(t, s.Oldest("z", nil))
	require.True(t, s.Member(node(1)).OlderThan(s.Member(node(3))), "not up yet is youngest")
}

// covers I7.
func TestNewIncarnationNeedsTheOldOneDown(t *testing.T) {
	t.Parallel()
	old, again := node(1), node(1)
	again.UID = 99
	s := statuses(t, gossip.Up, gossip.Up)
	s = s.Edit(node(0), func(e *gossip.Edit) {
		require.False(t, e.Join(gossip.Member{Node: again}))
		require.True(t, e.SetStatus(old, gossip.Down, 0))
		require.True(t, e.Mark(old, gossip.Terminated))
		require.True(t, e.Join(gossip.Member{Node: again}))
		require.False(t, e.Join(gossip.Member{Node: old}), "a uid joins once")
		require.False(t, e.Clear(old), "terminated is for good")
		require.False(t, e.Mark(old, gossip.Unreachable))
		require.False(t, e.SetStatus(old, gossip.Up, 101))
	})
	require.Equal(t, again, s.ByAddress(again.Address).Node, "the one that is not down")
	s = s.Edit(node(0), func(e *gossip.Edit) {
		require.True(t, e.Remove(old, time.UnixMilli(5)))
		require.False(t, e.Remove(old, time.UnixMilli(6)))
		require.False(t, e.Join(gossip.Member{Node: old}), "removed for good")
	})
	require.Nil(t, s.Member(old))
	require.Empty(t, s.Records())
	require.Zero(t, s.Clock().Get(old))
	tomb, ok := s.Removed(old)
	require.True(t, ok)
	require.Equal(t, gossip.Tombstone{Node: old, Last: 1, RemovedAt: 5}, tomb)
}

func TestEditThatChangesNothingIsNoEdit(t *testing.T) {
	t.Parallel()
	s := statuses(t, gossip.Up, gossip.Up)
	require.Same(t, s, s.Edit(node(0), func(*gossip.Edit) {}))
	require.Same(t, s, s.Edit(node(0), func(e *gossip.Edit) {
		e.Mark(node(0), gossip.Unreachable)
		e.Mark(node(7), gossip.Unreachable)
		e.Clear(node(1))
		e.Remove(node(0), time.UnixMilli(1))
		e.SetStatus(node(1), gossip.Joining, 0)
		e.SetStatus(node(1), gossip.Removed, 0)
		e.SetConfig(nil)
		e.SetDowning(gossip.DowningStrategy{})
		e.SetCluster(gossip.ClusterID{})
		e.SetPrunedBefore(time.UnixMilli(0))
	}))
	require.Same(t, s, s.Edit(node(9), func(e *gossip.Edit) { e.SetConfig([]gossip.NodeID{node(1)}) }), "a stranger edits nothing")
	require.Same(t, s, s.See(node(0)))
	require.Same(t, s, s.See(node(9)))
	require.Same(t, s, s.Restamp(node(0)))
}

func TestReachability(t *testing.T) {
	t.Parallel()
	s := statuses(t, gossip.Up, gossip.Up, gossip.Up)
	s = mark(mark(s, 0, 2), 1, 2)
	require.False(t, s.Reachable(node(2)))
	require.Equal(t, []gossip.NodeID{node(0), node(1)}, s.Observers(node(2)))
	require.Equal(t, []gossip.NodeID{node(2)}, s.Unreachable())
	require.Len(t, s.Records(), 2)
	one := s.Edit(node(0), func(e *gossip.Edit) { require.True(t, e.Clear(node(2))) })
	require.False(t, one.Reachable(node(2)), "until all agree")
	require.True(t, one.ReachableFrom(node(0), node(2)))
	require.True(t, one.Merge(s).ReachableFrom(node(0), node(2)), "the newer rows win as a whole")
	down := one.Edit(node(0), func(e *gossip.Edit) { e.SetStatus(node(1), gossip.Down, 0) })
	require.True(t, down.Reachable(node(2)), "a member that is down is believed nothing")
}

func TestConfigAndBase(t *testing.T) {
	t.Parallel()
	s := statuses(t, gossip.Up, gossip.Up, gossip.Up)
	require.False(t, s.Config().Base(true).Wins(func(gossip.NodeID) bool { return true }), "nobody votes yet")
	s = s.Edit(node(0), func(e *gossip.Edit) { require.True(t, e.SetConfig([]gossip.NodeID{node(1), node(0), node(1)})) })
	s = s.Edit(node(0), func(e *gossip.Edit) { require.True(t, e.SetConfig([]gossip.NodeID{node(2)})) })
	require.Equal(t, gossip.Voters{Gen: 2, By: node(0).UID, Voters: []gossip.NodeID{node(2)}, Previous: []gossip.NodeID{node(0), node(1)}}, s.Config())
	only := func(ids ...gossip.NodeID) func(gossip.NodeID) bool {
		return func(id gossip.NodeID) bool {
			return slices.Contains(ids, id)
		}
	}
	require.True(t, s.Config().Base(true).Wins(only(node(2))))
	require.False(t, s.Config().Base(false).Wins(only(node(2))), "the old voters count too")
	require.False(t, s.Config().Base(false).Wins(only(node(2), node(1))), "half without the lowest")
	require.True(t, s.Config().Base(false).Wins(only(node(2), node(0))), "half with the lowest")
}

// No two disjoint sides win, and one of two sides always does.
func TestExactlyOneSideWins(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 7; n++ {
		var voters []gossip.NodeID
		for i := range n {
			voters = append(voters, node(i))
		}
		for side := range 1 << n {
			in := func(id gossip.NodeID) bool { return side>>(int(id.UID)/7)&1 == 1 }
			out := func(id gossip.NodeID) bool { return !in(id) }
			require.NotEqual(t, gossip.Wins(voters, in), gossip.Wins(voters, out))
		}
	}
	require.False(t, gossip.Wins(nil, func(gossip.NodeID) bool { return true }))
}

func TestPeers(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 1))
	s := mark(statuses(t, gossip.Up, gossip.Up, gossip.Up, gossip.Down, gossip.Joining), 0, 1).See(node(2)).See(node(3))
	count := map[gossip.NodeID]int{}
	const rounds = 10_000
	for range rounds {
		peers := s.Peers(node(0), rnd, 1)
		require.Len(t, peers, 1)
		count[peers[0]]++
	}
	require.Zero(t, count[node(0)], "self")
	require.Zero(t, count[node(1)], "unreachable from self")
	// One unseen of three: 0.8 directly and a third of the rest.
	require.InDelta(t, rounds*(0.8+0.2/3), count[node(4)], rounds*0.02)
	require.ElementsMatch(t, []gossip.NodeID{node(2), node(3), node(4)}, s.Peers(node(0), rnd, 9))
	require.Empty(t, gossip.New(gossip.ClusterID{}).Peers(node(0), rnd, 3))
}

func TestPeersOfALargeClusterAreSpread(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 1))
	s := mark(cluster(t, 1200), 0, 5)
	for i := 1; i < 1000; i++ {
		s = s.See(node(i))
	}
	lag := 0
	const rounds = 400
	for range rounds {
		if !s.Seen(s.Peers(node(0), rnd, 1)[0]) {
			lag++
		}
	}
	require.InDelta(t, rounds*(0.08+0.92*200/1198), lag, rounds*0.08)
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	s := mark(statuses(t, gossip.Up, gossip.Joining), 0, 1)
	s = s.Edit(node(0), func(e *gossip.Edit) {
		e.SetConfig([]gossip.NodeID{node(0)})
		e.SetDowning(gossip.DowningStrategy{Name: "keep-majority", Pure: true})
	})
	require.Equal(t, `cluster born=0 nonce=0
registers last-up=100 pruned-before=0
member 10.0.0.0:7946#1 up up=1 seen
member 10.0.0.1:7946#8 joining
observer 10.0.0.0:7946#1 version=1 10.0.0.1:7946#8=unreachable/1
config gen=1 by=1 voters=[10.0.0.0:7946#1] previous=[]
downing gen=1 name="keep-majority" version="" parameters="" pure=true majority-only=false
clock {10.0.0.0:7946#1=3 10.0.0.1:7946#8=1}
`, s.Describe())
}

func TestDowningStrategyIsReplacedAndRemembersTheOneBefore(t *testing.T) {
	t.Parallel()
	a := gossip.DowningStrategy{Name: "keep-majority", Version: "1", Pure: true, MajorityOnly: true}
	b := gossip.DowningStrategy{Name: "witness", Version: "1.0.0", Parameters: "url=https://w"}
	set := func(s *gossip.State, strategy gossip.DowningStrategy) *gossip.State {
		return s.Edit(node(0), func(e *gossip.Edit) { e.SetDowning(strategy) })
	}
	first := set(cluster(t, 2), a)
	require.Equal(t, gossip.DowningRegister{Gen: 1, DowningStrategy: a}, first.Downing())
	require.Same(t, first, set(first, a), "no change is no edit")
	second := set(first, b)
	require.Equal(t, gossip.DowningRegister{Gen: 2, DowningStrategy: b, Previous: a}, second.Downing())
	require.Contains(t, second.Describe(), `downing before name="keep-majority"`)
	require.Equal(t, second.Downing(), first.Merge(second).Downing())
	require.Equal(t, second.Downing(), second.Merge(first).Downing())
}

// The id is part of the wire: it never changes, and differs with each field.
func TestStrategyIDs(t *testing.T) {
	t.Parallel()
	require.Zero(t, gossip.DowningStrategy{}.ID())
	s := gossip.DowningStrategy{Name: "keep-majority", Version: "1", Pure: true, MajorityOnly: true}
	require.Equal(t, "c9bdb1147169bb18", s.ID().String())
	ids := map[gossip.StrategyID]bool{s.ID(): true}
	for _, other := range []gossip.DowningStrategy{
		{Name: "keep-majority1", Pure: true, MajorityOnly: true},
		{Name: "keep-majority", Parameters: "1", Pure: true, MajorityOnly: true},
		{Name: "keep-majority", Version: "2", Pure: true, MajorityOnly: true},
		{Name: "keep-majority", Version: "1", MajorityOnly: true},
		{Name: "keep-majority", Version: "1", Pure: true},
	} {
		require.NotContains(t, ids, other.ID())
		ids[other.ID()] = true
	}
	require.Equal(t, "000000000000000a", gossip.StrategyID(10).String())
}

func TestLoadedStrategiesAreTheLastWordOfTheirNode(t *testing.T) {
	t.Parallel()
	load := func(s *gossip.State, ids ...gossip.StrategyID) *gossip.State {
		return s.Edit(node(1), func(e *gossip.Edit) { e.SetLoaded(ids) })
	}
	s := load(cluster(t, 2), 7, 3)
	require.Equal(t, gossip.Loaded{Version: 1, Strategies: []gossip.StrategyID{3, 7}}, s.Member(node(1)).Loaded)
	require.True(t, s.Member(node(1)).Loaded.Has(7))
	require.Same(t, s, load(s, 3, 7), "no change is no edit")
	later := load(s, 9)
	require.False(t, later.Merge(s).Member(node(1)).Loaded.Has(7))
	require.False(t, s.Merge(later).Member(node(1)).Loaded.Has(7))
	require.Same(t, s, load(s, 1, 2, 3, 4, 5, 6, 7, 8, 9), "too many are refused")
	joined := s.Edit(node(0), func(e *gossip.Edit) {
		e.Join(gossip.Member{Node: node(5), Loaded: gossip.Loaded{Version: 1, Strategies: []gossip.StrategyID{4, 2}}})
	})
	require.Equal(t, []gossip.StrategyID{2, 4}, joined.Member(node(5)).Loaded.Strategies)
}

// An up-number that a leader gives again, since it does not know of the first time,
// never makes a member older or two members equal.
//
// covers I29.
func TestUpNumbersOfTwoLeaders(t *testing.T) {
	t.Parallel()
	s := statuses(t, gossip.Up, gossip.Up, gossip.Joining, gossip.Joining)
	up := func(s *gossip.State, by, i int, number gossip.UpNumber) *gossip.State {
		return s.Edit(node(by), func(e *gossip.Edit) { require.True(t, e.SetStatus(node(i), gossip.Up, number)) })
	}
	one := up(s, 0, 3, 101)
	two := up(up(s, 1, 2, 101), 1, 3, 102)
	both := one.Merge(two)
	requireEqual(t, both, two.Merge(one), "commutative")
	require.Equal(t, gossip.UpNumber(102), both.Member(node(3)).UpNumber, "the greater one")
	same := one.Merge(up(s, 1, 2, 101))
	a, b := same.Member(node(2)), same.Member(node(3))
	require.Equal(t, a.UpNumber, b.UpNumber)
	require.NotEqual(t, a.Age(), b.Age())
	require.Equal(t, a.Age().Compare(b.Age()) < 0, a.OlderThan(b))
	require.NotEqual(t, a.OlderThan(b), b.OlderThan(a))
	requireEqual(t, same, rewire(t, same), "a state with one number twice is a state")
}

// A removal outbids everything that the removed member can have given unseen.
//
// covers I29.
func TestRemovalOutbids(t *testing.T) {
	t.Parallel()
	strategy := func(name string) gossip.DowningStrategy { return gossip.DowningStrategy{Name: name} }
	s := statuses(t, gossip.Up, gossip.Up, gossip.Joining, gossip.Joining).Edit(node(1), func(e *gossip.Edit) {
		require.True(t, e.SetConfig([]gossip.NodeID{node(0), node(1)}))
		require.True(t, e.SetDowning(strategy("a")))
	})
	lost := s.Edit(node(0), func(e *gossip.Edit) {
		require.True(t, e.SetStatus(node(2), gossip.Up, e.LastUpNumber()+1))
		require.True(t, e.SetStatus(node(3), gossip.Up, e.LastUpNumber()+1))
		require.True(t, e.SetConfig([]gossip.NodeID{node(0), node(1), node(2), node(3)}))
		require.True(t, e.SetDowning(strategy("z")))
	})
	removed := s.Edit(node(1), func(e *gossip.Edit) { require.True(t, e.Remove(node(0), time.UnixMilli(1))) })
	require.Equal(t, []gossip.NodeID{node(0), node(1)}, removed.Config().Voters, "the same")
	require.Equal(t, strategy("a"), removed.Downing().DowningStrategy)
	next := s.Edit(node(1), func(e *gossip.Edit) {
		require.True(t, e.Remove(node(0), time.UnixMilli(1)))
		require.True(t, e.SetStatus(node(3), gossip.Up, e.LastUpNumber()+1))
		require.True(t, e.SetConfig([]gossip.NodeID{node(1), node(3)}))
		require.True(t, e.SetDowning(strategy("b")))
	})
	require.Equal(t, gossip.Voters{
		Gen: 4, By: node(1).UID, Voters: []gossip.NodeID{node(1), node(3)}, Previous: []gossip.NodeID{node(0), node(1)},
	}, next.Config())
	require.Equal(t, gossip.UpNumber(200_001), next.Member(node(3)).UpNumber)
	both := next.Merge(lost)
	require.Equal(t, next.Config(), both.Config(), "what was lost is not the last word")
	require.Equal(t, next.Downing(), both.Downing())
	require.Equal(t, next.Member(node(3)).UpNumber, both.Member(node(3)).UpNumber)
	require.Equal(t, removed.Config(), removed.Merge(s).Config(), "a removal alone is a generation, too")

	let := s.Edit(node(1), func(e *gossip.Edit) {
		require.True(t, e.SetStatus(node(0), gossip.Leaving, 0) && e.SetStatus(node(0), gossip.Exiting, 0))
		require.True(t, e.SetStatus(node(3), gossip.Up, e.LastUpNumber()+1))
	})
	require.Equal(t, gossip.UpNumber(100_001), let.Member(node(3)).UpNumber, "one that was let go is outbid")
	left := s.Edit(node(1), func(e *gossip.Edit) { require.True(t, e.SetStatus(node(1), gossip.Exiting, 0)) })
	require.Equal(t, s.LastUpNumber(), left.LastUpNumber(), "nobody outbids himself")
}

// The lost edit may have made the very member Exiting that removes the edit's author,
// and that makes itself Exiting in the same edit: making itself Exiting outbids
// nothing, and the removal does.
//
// covers I29.
func TestRemovalOutbidsWhoeverLetItsAuthorGo(t *testing.T) {
	t.Parallel()
	s := statuses(t, gossip.Up, gossip.Leaving, gossip.Leaving, gossip.Up, gossip.Joining).Edit(node(1), func(e *gossip.Edit) {
		require.True(t, e.SetConfig([]gossip.NodeID{node(0), node(1), node(2), node(3)}))
		require.True(t, e.SetDowning(gossip.DowningStrategy{Name: "a"}))
	})
	lost := s.Edit(node(0), func(e *gossip.Edit) {
		require.True(t, e.SetStatus(node(1), gossip.Exiting, 0) && e.SetStatus(node(2), gossip.Exiting, 0))
		require.True(t, e.SetStatus(node(4), gossip.Up, e.LastUpNumber()+1))
		require.True(t, e.SetConfig([]gossip.NodeID{node(0), node(3), node(4)}))
		require.True(t, e.SetDowning(gossip.DowningStrategy{Name: "z"}))
	})
	next := s.Edit(node(1), func(e *gossip.Edit) {
		require.True(t, e.Remove(node(0), time.UnixMilli(1)))
		require.True(t, e.SetStatus(node(1), gossip.Exiting, 0) && e.SetStatus(node(2), gossip.Exiting, 0))
		require.True(t, e.SetConfig([]gossip.NodeID{node(3)}))
		require.True(t, e.SetDowning(gossip.DowningStrategy{Name: "b"}))
	})
	require.Greater(t, next.Config().Gen, lost.Config().Gen)
	require.Greater(t, next.Downing().Gen, lost.Downing().Gen)
	require.Greater(t, next.LastUpNumber(), lost.LastUpNumber())
}
