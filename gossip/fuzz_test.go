// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
)

// source turns fuzz bytes into choices. After the last byte every choice is 0.
type source []byte

func (s *source) n(limit int) int {
	if len(*s) == 0 {
		return 0
	}
	b := (*s)[0]
	*s = (*s)[1:]
	return int(b) % (limit + 1)
}

// parts reads parts that are nearly well formed: most choices are harmless,
// a few spoil something.
func (s *source) parts() gossip.Raw {
	p := gossip.Raw{
		Cluster: gossip.ClusterID{Born: int64(s.n(1))}, LastUpNumber: gossip.UpNumber(s.n(20)), PrunedBefore: int64(s.n(3)),
	}
	for range s.n(5) {
		switch id := node(s.n(6)); s.n(6) {
		case 0:
			p.Tombstones = append(p.Tombstones, gossip.Tombstone{Node: id, Last: uint64(s.n(3)), RemovedAt: int64(s.n(20)) - 1, Downed: s.cause()})
		case 1:
			p.Clock = append(p.Clock, gossip.Dot{Node: id, Count: uint64(s.n(3))})
		case 2:
			p.Seen = append(p.Seen, id)
		case 3:
			p.Config = gossip.Voters{Gen: uint64(s.n(2)), Voters: []gossip.NodeID{id}}
		default:
			m := &gossip.Member{Node: id, Status: gossip.Status(s.n(10)), UpNumber: gossip.UpNumber(s.n(9))}
			if m.Status == gossip.Down {
				m.Downed = s.cause()
			}
			p.Members = append(p.Members, m)
			if n := s.n(3); n > 0 {
				p.Clock = append(p.Clock, gossip.Dot{Node: id, Count: uint64(n)})
			}
			if s.n(1) > 0 {
				p.Seen = append(p.Seen, id)
			}
		}
	}
	for range s.n(2) {
		set := &gossip.ObserverRows{Observer: node(s.n(6)), Version: uint64(s.n(3))}
		for range s.n(2) {
			set.Rows = append(set.Rows, gossip.Row{Subject: node(s.n(6)), Status: gossip.ReachStatus(s.n(3)), Version: uint64(s.n(2))})
		}
		p.Observers = append(p.Observers, set)
	}
	return p
}

// cause reads a cause: mostly none, sometimes one that no node accepts.
func (s *source) cause() gossip.Cause {
	whys := []string{"", "a", "b", "\x00", "\xff", strings.Repeat("w", gossip.MaxCauseBytes), strings.Repeat("w", gossip.MaxCauseBytes+1)}
	if s.n(3) != 1 {
		return gossip.Cause{}
	}
	return gossip.Cause{By: node(s.n(6)), Why: whys[s.n(len(whys)-1)]}
}

// Any parts are refused with a typed error, or are a state that merges as the laws
// demand.
//
// covers I6, I8.
func FuzzFromPartsAndMerge(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0, 9, 0, 2, 0, 4, 3, 1, 1, 1, 1, 4, 1, 0, 2, 1, 1, 0, 3, 1, 1, 2, 1, 0, 1, 1})
	f.Add([]byte{1, 9, 2, 3, 0, 0, 1, 5, 1, 4, 8, 0, 2, 1, 2, 5, 3, 2, 1, 1, 0, 0, 0, 9, 0, 2, 1, 4, 3, 1, 1, 1})
	f.Add([]byte{0, 9, 0, 1, 0, 4, 99, 1, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		src := source(data)
		a, errA := gossip.FromParts(src.parts())
		b, errB := gossip.FromParts(src.parts())
		for _, err := range []error{errA, errB} {
			if err != nil && !errors.As(err, new(*gossip.InvalidError)) {
				t.Fatalf("untyped error %v", err)
			}
		}
		if errA != nil || errB != nil {
			return
		}
		m := a.Merge(b)
		requireWellFormed(t, m)
		// A member is removed by a tombstone that the other side would have forgotten,
		// and leaves no trace, so only states with equal PrunedBefore are compared.
		if a.PrunedBefore().Equal(b.PrunedBefore()) {
			requireNotBackwards(t, a, m)
			requireEqual(t, m, b.Merge(a), "commutative")
			require.Same(t, m, m.Merge(b))
		}
		if d := b.Delta(a.Clock()); d.Validate() == nil {
			got, err := a.Apply(d)
			if err == nil {
				requireWellFormed(t, got)
				if a.PrunedBefore().Equal(b.PrunedBefore()) {
					requireNotBackwards(t, a, got)
				}
			}
		}
	})
}

func FuzzAddress(f *testing.F) {
	for _, text := range []string{"a:1", "[::1]:80", "0.0.0.0:1", ":", "a:1#ff", "x:99999", "a b:1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if a, err := gossip.ParseAddress(text); err == nil {
			require.NoError(t, a.Validate())
			again, err := gossip.ParseAddress(a.String())
			require.NoError(t, err)
			require.Equal(t, a, again)
		}
		if n, err := gossip.ParseNodeID(text); err == nil {
			again, err := gossip.ParseNodeID(n.String())
			require.NoError(t, err)
			require.Equal(t, n, again)
		}
		require.Zero(t, gossip.CompareVersions(text, text))
	})
}
