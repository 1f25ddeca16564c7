// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
)

// closureBorn and closureNow are the birth of the clusters of these tests, and the
// time an hour later.
var (
	closureBorn = time.UnixMilli(1_800_000_000_000)
	closureNow  = closureBorn.Add(time.Hour)
)

// count reads a count: mostly a small one, otherwise one at a bound.
func (s *source) count() uint64 {
	hostile := []uint64{1 << 32, 1<<40 - 1, 1 << 40, 1<<40 + 3_600_000<<10, 1<<40 + 3_600_000<<10 + 1, 1<<62 - 1, 1 << 62, 1<<62 + 1, math.MaxUint64}
	n := s.n(24)
	if n < 16 {
		return uint64(1 + n%4)
	}
	return hostile[n-16]
}

// time reads a time in unix milliseconds.
func (s *source) time() int64 {
	hostile := []int64{closureNow.UnixMilli(), 1, closureNow.Add(gossip.MaxClockSkew).UnixMilli(), 7_258_118_400_000, -1, 0, math.MaxInt64}
	return hostile[s.n(len(hostile)-1)]
}

// closureStrategies are the strategies that the members of these tests know.
var closureStrategies = []gossip.DowningStrategy{{Name: "keep-majority"}, {Name: "down-all"}, {Name: "none"}}

func isLoaded(id gossip.StrategyID) bool { return id == closureStrategies[0].ID() }

// state reads a whole state, as a hostile member may send it.
func (s *source) state() (*gossip.State, error) {
	p := gossip.Raw{Cluster: gossip.ClusterID{Born: closureBorn.UnixMilli(), Nonce: 7}, LastUpNumber: gossip.UpNumber(4 + s.count()), PrunedBefore: s.time()}
	for i := range 5 {
		m := &gossip.Member{Node: node(i), Status: gossip.Up, UpNumber: gossip.UpNumber(i + 1)}
		m.Loaded = gossip.Loaded{Version: s.count(), Strategies: []gossip.StrategyID{closureStrategies[0].ID()}}
		m.Unknown = gossip.Unknown{Version: m.Loaded.Version, Fields: "\x18\x01"}
		switch s.n(9) {
		case 0:
			m.Status, m.UpNumber = gossip.Joining, 0
		case 1:
			m.UpNumber = gossip.UpNumber(s.count())
		case 2:
			if m.Status = gossip.Status(s.n(10)); m.Status == gossip.Down {
				m.Downed = s.cause()
			}
		case 3:
			m.Loaded.Strategies = nil
		case 4:
			p.Tombstones = append(p.Tombstones, gossip.Tombstone{Node: m.Node, Last: s.count(), RemovedAt: s.time(), Downed: s.cause()})
			continue
		}
		p.Members = append(p.Members, m)
		p.Clock = append(p.Clock, gossip.Dot{Node: m.Node, Count: s.count()})
		if s.n(2) > 0 {
			p.Seen = append(p.Seen, m.Node)
		}
		if s.n(4) == 0 {
			set := &gossip.ObserverRows{Observer: m.Node, Version: s.count()}
			if subject := node(s.n(4)); subject != m.Node {
				set.Rows = []gossip.Row{{Subject: subject, Status: gossip.Unreachable, Version: 1}}
			}
			p.Observers = append(p.Observers, set)
		}
	}
	p.Config = gossip.Voters{Gen: s.count(), By: node(s.n(4)).UID, Voters: s.nodes(), Previous: s.nodes()}
	p.Downing = gossip.DowningRegister{Gen: s.count(), DowningStrategy: closureStrategies[s.n(11)/6]}
	return gossip.FromParts(p)
}

// nodes reads a sorted set of nodes, mostly the set of all members.
func (s *source) nodes() []gossip.NodeID {
	var nodes []gossip.NodeID
	for i := range 5 {
		if s.n(5) > 0 {
			nodes = append(nodes, node(i))
		}
	}
	return nodes
}

// edit makes an edit of node 0 that the rules permit.
func (s *source) edit(e *gossip.Edit, st *gossip.State) {
	id := node(s.n(6))
	switch s.n(9) {
	case 0:
		e.Join(gossip.Member{Node: id, Loaded: gossip.Loaded{Version: s.count()}})
	case 1:
		if m := e.Member(id); m != nil && m.Loaded.Has(st.Downing().ID()) {
			e.SetStatus(id, gossip.Up, e.LastUpNumber()+1)
			electorate(e)
		}
	case 2:
		e.SetStatus(id, gossip.Leaving+gossip.Status(s.n(2)), 0)
	case 3:
		e.Remove(id, time.UnixMilli(closureNow.UnixMilli()))
	case 4:
		e.Mark(id, gossip.Unreachable)
	case 5:
		e.Clear(id)
	case 6:
		e.AddService(uint16(s.n(9)))
	case 7:
		electorate(e)
	case 8:
		e.RaiseEpochs(s.time())
	case 9:
		e.Down(id, strings.Repeat("\x00w\xff", s.n(120)))
	}
}

// electorate makes the members that take part the voters, as leaders do in each edit.
func electorate(e *gossip.Edit) {
	var voters []gossip.NodeID
	for i := range 7 {
		if m := e.Member(node(i)); m != nil && m.UpNumber > 0 && m.Status >= gossip.Up && m.Status <= gossip.Leaving {
			voters = append(voters, m.Node)
		}
	}
	e.SetConfig(voters)
}

// closureSeeds are bytes that reach the choices of a hostile member: a byte of 5 is
// harmless everywhere.
func closureSeeds() [][]byte {
	seeds := [][]byte{{}, slices.Repeat([]byte{1}, 400), slices.Repeat([]byte{5, 7, 9}, 140)}
	for i := range 120 { // Each choice in turn, in the known state and in the news.
		for _, b := range []byte{0, 2, 4, 16, 18, 20, 22, 24} {
			seed := slices.Repeat([]byte{5}, 200)
			seed[i] = b
			seeds = append(seeds, seed)
		}
	}
	raise := slices.Repeat([]byte{5}, 200)
	for i := 100; i < 140; i++ {
		seeds = append(seeds, slices.Concat(raise[:i], []byte{0, 8, 6}, raise[i:]))
	}
	return seeds
}

// News of a hostile member is refused with a typed error and changes nothing; or its
// result, and that of the edits that a node makes upon it, is accepted by a node with
// the same state before, by a joining node, and by any decoder. The counts of these
// edits may be above the bound of the moment; ten seconds later all nodes accept them.
//
// covers I35.
func FuzzClosure(f *testing.F) {
	for _, seed := range closureSeeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		src := source(data)
		known, err := src.state()
		if err != nil {
			return
		}
		fresh := gossip.Terms{Now: closureNow}
		if _, err := gossip.New(gossip.ClusterID{}).Accept(known, fresh); err != nil {
			return
		}
		news, err := src.state()
		if err != nil {
			return
		}
		terms := gossip.Terms{Now: closureNow, Base: known.Config().Base(false), Loaded: isLoaded}
		got, err := known.Accept(news, terms)
		if err != nil {
			require.ErrorIs(t, err, gossip.ErrInvalid)
			require.Same(t, known, got, "what is refused changes nothing")
			return
		}
		for range 6 {
			got = got.Restamp(node(0)).See(node(0))
			got = got.Edit(node(0), func(e *gossip.Edit) {
				for range src.n(3) {
					src.edit(e, got)
				}
			})
		}
		requireWellFormed(t, got)
		later := closureNow.Add(10 * time.Second)
		whole := rewire(t, got)
		require.NoError(t, got.Parts().ValidateAt(later))
		_, err = gossip.New(gossip.ClusterID{}).Accept(whole, gossip.Terms{Now: later})
		require.NoError(t, err, "by one that joins")
		terms.Now = later
		_, err = known.Accept(whole, terms)
		require.NoError(t, err, "by one that knew the same")
		d := got.Delta(known.Clock())
		require.NoError(t, d.Validate())
		if _, err = known.AcceptDelta(d, terms); err != nil {
			require.ErrorIs(t, err, gossip.ErrNotCovered)
		}
	})
}

// A hostile member tries one thing at a time, in a cluster of three members that have
// all seen the state: each attempt is refused with a fault of its own.
//
// covers I35.
func TestHostileNewsIsRefused(t *testing.T) {
	t.Parallel()
	strategy := closureStrategies[0]
	good := func() gossip.Raw {
		p := gossip.Raw{Cluster: gossip.ClusterID{Born: closureBorn.UnixMilli(), Nonce: 7}, LastUpNumber: 3}
		for i := range 3 {
			p.Members = append(p.Members, &gossip.Member{
				Node: node(i), Status: gossip.Up, UpNumber: gossip.UpNumber(i + 1),
				Loaded: gossip.Loaded{Version: 1, Strategies: []gossip.StrategyID{strategy.ID()}},
			})
			p.Clock = append(p.Clock, gossip.Dot{Node: node(i), Count: 5})
			p.Seen = append(p.Seen, node(i))
		}
		p.Config = gossip.Voters{Gen: 3, By: node(0).UID, Voters: p.Seen, Previous: p.Seen[:2]}
		p.Downing = gossip.DowningRegister{Gen: 1, DowningStrategy: strategy}
		return p
	}
	start := good()
	start.PrunedBefore = closureNow.UnixMilli() + 1
	known, err := gossip.FromParts(start)
	require.NoError(t, err)
	member := func(p *gossip.Raw, i int) *gossip.Member {
		m := *p.Members[i]
		p.Members[i] = &m
		return &m
	}
	for _, c := range []struct {
		name  string
		spoil func(*gossip.Raw)
		fault gossip.Fault
	}{
		{"last up-number", func(p *gossip.Raw) { p.LastUpNumber = 1 << 62 }, gossip.FaultCounter},
		{"up-number", func(p *gossip.Raw) { p.LastUpNumber, member(p, 2).UpNumber = 1<<62, 1<<62 }, gossip.FaultCounter},
		{"clock of its own", func(p *gossip.Raw) { p.Clock[2].Count = 1 << 62 }, gossip.FaultCounter},
		{"clock of another", func(p *gossip.Raw) { p.Clock[0].Count = 1 << 61 }, gossip.FaultCounter},
		{"generation", func(p *gossip.Raw) { p.Config.Gen = 1 << 62 }, gossip.FaultCounter},
		{"voters are one", func(p *gossip.Raw) { p.Config.Gen, p.Config.Voters = 4, []gossip.NodeID{node(2)} }, gossip.FaultVoters},
		{"previous voters are one", func(p *gossip.Raw) { p.Config.Gen, p.Config.Previous = 4, []gossip.NodeID{node(2)} }, gossip.FaultVoters},
		{"voters that nobody knows", func(p *gossip.Raw) {
			p.Config.Gen, p.Config.Previous = 4, p.Config.Voters // All voters that vote and stay are kept.
			p.Config.Voters = append(slices.Clone(p.Config.Voters), node(7), node(8), node(9))
		}, gossip.FaultVoters},
		{"voters without one who stays", func(p *gossip.Raw) {
			p.Config.Gen, p.Config.Previous, p.Config.Voters = 4, p.Config.Voters, p.Config.Voters[1:]
		}, gossip.FaultVoters},
		{"no voters", func(p *gossip.Raw) { p.Config = gossip.Voters{Gen: 9, By: 1} }, gossip.FaultVoters},
		{"strategy of nobody", func(p *gossip.Raw) {
			p.Downing = gossip.DowningRegister{Gen: 2, DowningStrategy: gossip.DowningStrategy{Name: "down-all"}}
		}, gossip.FaultStrategy},
		{"generation of the strategy", func(p *gossip.Raw) { p.Downing.Gen = 1 << 62 }, gossip.FaultCounter},
		{"version of what is loaded", func(p *gossip.Raw) { member(p, 0).Loaded.Version = 1 << 50 }, gossip.FaultCounter},
		{"rows", func(p *gossip.Raw) {
			p.Observers = []*gossip.ObserverRows{{Observer: node(1), Version: 1 << 61}}
		}, gossip.FaultCounter},
		{"pruned in the far future", func(p *gossip.Raw) { p.PrunedBefore = 7_226_582_400_000 }, gossip.FaultTime},
		{"removed long ago", func(p *gossip.Raw) {
			p.Tombstones = []gossip.Tombstone{{Node: node(1), Last: 5, RemovedAt: closureNow.UnixMilli()}}
			p.Members, p.Clock, p.Seen = slices.Delete(p.Members, 1, 2), slices.Delete(p.Clock, 1, 2), nil
		}, gossip.FaultTime},
		{"last clock entry of one that was removed", func(p *gossip.Raw) {
			p.Tombstones = []gossip.Tombstone{{Node: node(9), Last: 1 << 62, RemovedAt: closureNow.UnixMilli()}}
		}, gossip.FaultCounter},
		{"removed in the far future", func(p *gossip.Raw) {
			p.Tombstones = []gossip.Tombstone{{Node: node(9), RemovedAt: 7_226_582_400_000}}
		}, gossip.FaultTime},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := good()
			c.spoil(&p)
			last := &p.Clock[len(p.Clock)-1]
			last.Count = max(last.Count, 6)
			news, err := gossip.FromParts(p)
			require.NoError(t, err, "it is well formed by itself")
			got, err := known.Accept(news, gossip.Terms{Now: closureNow, Base: known.Config().Base(true), Loaded: isLoaded})
			requireFault(t, err, c.fault)
			require.Same(t, known, got)
			_, err = known.AcceptDelta(news.Delta(known.Clock()), gossip.Terms{Now: closureNow, Base: known.Config().Base(true), Loaded: isLoaded})
			requireFault(t, err, c.fault)
		})
	}
}

func requireFault(t *testing.T, err error, fault gossip.Fault) {
	t.Helper()
	var invalid *gossip.InvalidError
	require.ErrorAs(t, err, &invalid)
	require.Equal(t, fault, invalid.Fault, "%v", err)
}

// Two states that are each within the bounds may exceed them together. Edits stop at
// the bounds too, so that no node makes a state that no node accepts.
//
// covers I8.
func TestWhatIsMergedIsBounded(t *testing.T) {
	t.Parallel()
	crowd := func(from, n int) gossip.Raw {
		p := gossip.Raw{Cluster: gossip.ClusterID{Born: 1}}
		for i := from; i < from+n; i++ {
			id := gossip.NodeID{Address: gossip.Address{Host: fmt.Sprint("h", i), Port: 1}, UID: 1}
			p.Members = append(p.Members, &gossip.Member{Node: id, Status: gossip.Joining})
		}
		return p
	}
	a, err := gossip.FromParts(crowd(0, gossip.MaxMembers))
	require.NoError(t, err)
	b, err := gossip.FromParts(crowd(gossip.MaxMembers, 1))
	require.NoError(t, err)
	got, err := a.Accept(b, gossip.Terms{Now: closureNow})
	requireFault(t, err, gossip.FaultLimit)
	require.Same(t, a, got)
	self := a.Members()[0].Node
	a.Edit(self, func(e *gossip.Edit) { require.False(t, e.Join(gossip.Member{Node: node(1)}), "no more fit in") })

	p := crowd(0, 2)
	for i := range gossip.MaxMembers {
		p.Tombstones = append(p.Tombstones, gossip.Tombstone{Node: gossip.NodeID{Address: gossip.Address{Host: fmt.Sprint("t", i), Port: 1}, UID: 1}})
	}
	full, err := gossip.FromParts(p)
	require.NoError(t, err)
	full.Edit(self, func(e *gossip.Edit) {
		require.False(t, e.Remove(full.Members()[1].Node, closureNow), "no more fit in until some are forgotten")
	})
	p.Tombstones = []gossip.Tombstone{{Node: node(1)}}
	other, err := gossip.FromParts(p)
	require.NoError(t, err)
	got, err = full.Accept(other, gossip.Terms{Now: closureNow})
	requireFault(t, err, gossip.FaultLimit)
	require.Same(t, full, got)
}

// Counts that have reached their bound stay there, so that no node makes a state that
// no node accepts.
//
// covers I8.
func TestEditsStopAtTheEndOfTheCounts(t *testing.T) {
	t.Parallel()
	const end = 1 << 62
	p := gossip.Raw{
		LastUpNumber: end,
		Members: []*gossip.Member{
			{Node: node(0), Status: gossip.Up, UpNumber: end, Loaded: gossip.Loaded{Version: end}}, {Node: node(1), Status: gossip.Joining},
		},
		Clock:     []gossip.Dot{{Node: node(0), Count: end - 1}},
		Observers: []*gossip.ObserverRows{{Observer: node(0), Version: end}},
		Config:    gossip.Voters{Gen: end, By: 1, Voters: []gossip.NodeID{node(0)}},
		Downing:   gossip.DowningRegister{Gen: end, DowningStrategy: closureStrategies[0]},
	}
	s, err := gossip.FromParts(p)
	require.NoError(t, err)
	last := s.Edit(node(0), func(e *gossip.Edit) {
		require.False(t, e.SetStatus(node(1), gossip.Up, e.LastUpNumber()+1))
		require.False(t, e.SetConfig([]gossip.NodeID{node(1)}))
		require.False(t, e.SetDowning(closureStrategies[1]))
		require.False(t, e.SetLoaded([]gossip.StrategyID{1}))
		require.False(t, e.Mark(node(1), gossip.Unreachable))
		require.False(t, e.Clear(node(1)))
		require.False(t, e.SetPrunedBefore(time.UnixMilli(math.MaxInt64)))
		require.False(t, e.SetCluster(gossip.ClusterID{Born: math.MaxInt64, Nonce: 1}))
		require.False(t, e.SetCluster(gossip.ClusterID{Born: -1, Nonce: 1}))
		require.False(t, e.Yield(gossip.Yield{To: gossip.ClusterID{Born: math.MaxInt64, Nonce: 1}}))
		require.True(t, e.Remove(node(1), time.UnixMilli(math.MaxInt64)))
	})
	requireEqual(t, last, rewire(t, last), "it is valid")
	again := last.Edit(node(0), func(e *gossip.Edit) { require.True(t, e.AddService(1)) })
	require.Same(t, last, again, "there is no edit after the last")
}
