// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/gossip"
)

// node returns the i-th node of the tests.
func node(i int) gossip.NodeID {
	return gossip.NodeID{Address: gossip.Address{Host: fmt.Sprintf("10.0.0.%d", i), Port: 7946}, UID: gossip.UID(i*7 + 1)}
}

// universe keeps arbitrary states comparable: perished nodes are removed or unknown in
// every state, so that pruning them loses nothing.
type universe struct {
	nodes    []gossip.NodeID
	perished []bool
}

func drawUniverse(t *rapid.T) universe {
	u := universe{}
	for i := range 6 {
		u.nodes = append(u.nodes, node(i))
		u.perished = append(u.perished, rapid.IntRange(0, 4).Draw(t, "perished") == 0)
	}
	return u
}

// state draws any valid state of the universe.
func (u universe) state(t *rapid.T, label string) *gossip.State {
	small := func(name string, limit int) int { return rapid.IntRange(0, limit).Draw(t, label+"."+name) }
	p := gossip.Raw{
		Cluster:      gossip.ClusterID{Born: int64(small("born", 1)), Nonce: uint64(small("nonce", 1))},
		LastUpNumber: gossip.UpNumber(20 + small("last", 2)),
		PrunedBefore: int64(small("pruned", 10)),
		EpochBorn:    int64(small("epochs", 2)),
		Yielded:      gossip.Yield{To: gossip.ClusterID{Born: int64(small("yielded", 1)), Nonce: uint64(small("to", 1))}},
		Unknown:      unknown(small),
	}
	var live []gossip.NodeID
	for i, id := range u.nodes {
		switch which := small("which", 5); {
		case which == 0:
		case u.perished[i]:
			p.Tombstones = append(p.Tombstones, gossip.Tombstone{Node: id, Last: uint64(small("l", 3)), RemovedAt: int64(small("at", 9)), Downed: u.cause(small)})
		case which == 1:
			p.Tombstones = append(p.Tombstones, gossip.Tombstone{Node: id, Last: uint64(small("l", 3)), RemovedAt: 100 + int64(small("at", 9)), Downed: u.cause(small)})
		default:
			p.Members = append(p.Members, u.member(i, small))
			live = append(live, id)
		}
	}
	for _, id := range live {
		if n := small("clock", 3); n > 0 {
			p.Clock = append(p.Clock, gossip.Dot{Node: id, Count: uint64(n)})
		}
		if small("seen", 1) > 0 {
			p.Seen = append(p.Seen, id)
		}
		if set := rows(id, live, small); set != nil {
			p.Observers = append(p.Observers, set)
		}
	}
	if gen := small("config", 2); gen > 0 {
		p.Config = gossip.Voters{Gen: uint64(gen), By: gossip.UID(small("by", 1)), Voters: u.nodes[:small("voters", 3)], Previous: u.nodes[:small("previous", 2)]}
		if small("data", 1) > 0 {
			p.Config.Data = slices.Clone([]gossip.DataID{7, 0, 9}[:len(p.Config.Voters)])
		}
		p.Config.Unknown = unknown(small).Fields
	}
	if gen := small("downing", 2); gen > 0 {
		p.Downing = gossip.DowningRegister{
			Gen:             uint64(gen),
			DowningStrategy: gossip.DowningStrategy{Name: fmt.Sprint(small("name", 1)), Pure: small("pure", 1) > 0},
			Previous:        gossip.DowningStrategy{Name: fmt.Sprint(small("before", 1))},
			Unknown:         unknown(small).Fields,
		}
	}
	s, err := gossip.FromParts(p)
	require.NoError(t, err)
	return s
}

func (u universe) member(i int, small func(string, int) int) *gossip.Member {
	m := &gossip.Member{
		Node:       u.nodes[i],
		Status:     gossip.Joining + gossip.Status(small("status", 7)),
		Zone:       fmt.Sprint(small("zone", 1)),
		AppVersion: fmt.Sprint(small("version", 1)),
		Protocol:   gossip.ProtocolRange{Min: uint16(small("min", 1)), Max: uint16(1 + small("max", 1))},
		Settings:   uint64(small("settings", 1)),
		Data:       gossip.DataID(small("data", 1)),
	}
	if m.Status >= gossip.Up {
		m.UpNumber = gossip.UpNumber(1 + i + 6*small("up", 1) - small("twice", min(i, 1)))
		if m.Status >= gossip.Leaving && small("numbered", 1) == 0 {
			m.UpNumber = 0
		}
	}
	if m.Status == gossip.Down {
		m.Downed = u.cause(small)
	}
	m.Unknown = unknown(small)
	m.Roles = slices.Clone([]string{"a", "b", "c"}[:small("roles", 3)])
	for service := range uint16(3) {
		if small("service", 1) > 0 {
			m.Services = append(m.Services, service)
		}
	}
	if version := small("loads", 2); version > 0 {
		m.Loaded = gossip.Loaded{Version: uint64(version), Strategies: []gossip.StrategyID{1, 2, 3}[:small("loaded", 3)]}
	}
	return m
}

// unknown draws fields that this release does not know, or none.
func unknown(small func(string, int) int) gossip.Unknown {
	version := small("later", 2)
	return gossip.Unknown{Version: uint64(version), Fields: []string{"", "\x18\x01", "\x18\x02\x20\x01"}[small("fields", min(version, 1)*2)]}
}

// cause draws a cause for which a member was declared down, or none.
func (u universe) cause(small func(string, int) int) gossip.Cause {
	if small("caused", 3) == 0 {
		return gossip.Cause{}
	}
	return gossip.Cause{By: u.nodes[small("down-by", 1)], Why: []string{"", "a", "b"}[small("why", 2)]}
}

func rows(observer gossip.NodeID, live []gossip.NodeID, small func(string, int) int) *gossip.ObserverRows {
	version := small("rows", 2)
	if version == 0 {
		return nil
	}
	set := &gossip.ObserverRows{Observer: observer, Version: uint64(version)}
	for _, subject := range live {
		if st := small("row", 2); st > 0 && subject != observer {
			set.Rows = append(set.Rows, gossip.Row{
				Subject: subject, Status: gossip.ReachStatus(st), Version: uint64(1 + small("v", version-1)),
			})
		}
	}
	return set
}

// requireEqual compares two states and shows the difference as text.
func requireEqual(t require.TestingT, want, got *gossip.State, what string) {
	if h, ok := t.(interface{ Helper() }); ok {
		h.Helper()
	}
	require.Equal(t, want.Describe(), got.Describe(), what)
	require.True(t, want.Equal(got), what)
}

// requireWellFormed checks the invariants of every state.
//
// covers I8.
func requireWellFormed(t require.TestingT, s *gossip.State) {
	p := s.Parts()
	require.True(t, slices.IsSortedFunc(p.Members, func(a, b *gossip.Member) int { return a.Node.Compare(b.Node) }))
	require.True(t, slices.IsSortedFunc(p.Tombstones, func(a, b gossip.Tombstone) int { return a.Node.Compare(b.Node) }))
	members := map[gossip.NodeID]bool{}
	for _, m := range p.Members {
		require.False(t, members[m.Node], "member twice")
		members[m.Node] = true
		require.NoError(t, m.Validate())
		require.LessOrEqual(t, m.UpNumber, p.LastUpNumber)
	}
	for _, tomb := range p.Tombstones {
		require.False(t, members[tomb.Node], "member with a tombstone")
		require.GreaterOrEqual(t, tomb.RemovedAt, p.PrunedBefore)
	}
	for _, id := range p.Seen {
		require.True(t, members[id], "seen by no member")
	}
	for _, e := range p.Clock {
		require.True(t, members[e.Node], "clock of no member")
		require.Positive(t, e.Count)
	}
	for _, r := range s.Records() {
		require.True(t, members[r.Observer] && members[r.Subject], "row of no member")
	}
}

// rewire sends s through its parts, as an encoder would: the result has nothing
// auxiliary.
func rewire(t require.TestingT, s *gossip.State) *gossip.State {
	r, err := gossip.FromParts(s.Parts())
	require.NoError(t, err)
	return r
}

func TestPartsAreTheState(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := drawUniverse(t).state(t, "s")
		requireEqual(t, s, rewire(t, s), "parts")
		requireWellFormed(t, s)
	})
}
