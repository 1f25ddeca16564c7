// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
)

// cluster returns a converged state of n members that are all Up and have all
// edited it.
func cluster(t testing.TB, n int) *gossip.State {
	t.Helper()
	s := gossip.New(gossip.ClusterID{}).Edit(node(0), func(e *gossip.Edit) {
		e.SetCluster(gossip.ClusterID{Born: 1, Nonce: 1})
		for i := range n {
			require.True(t, e.Join(gossip.Member{Node: node(i), Roles: []string{"backend"}, AppVersion: "1.0.0"}))
			require.True(t, e.SetStatus(node(i), gossip.Up, e.LastUpNumber()+1))
		}
	})
	for i := range n {
		s = s.Edit(node(i), func(e *gossip.Edit) { e.AddService(1) })
	}
	for i := range n {
		s = s.See(node(i))
	}
	return s
}

func sizes(b *testing.B, f func(b *testing.B, s *gossip.State)) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			f(b, cluster(b, n))
		})
	}
}

func mark(s *gossip.State, observer, subject int) *gossip.State {
	return s.Edit(node(observer), func(e *gossip.Edit) { e.Mark(node(subject), gossip.Unreachable) })
}

// BenchmarkMergeEqual merges two states of equal content, one of them decoded, so that
// they share no memory.
func BenchmarkMergeEqual(b *testing.B) {
	sizes(b, func(b *testing.B, s *gossip.State) {
		o, err := gossip.FromParts(deepCopy(s.Parts()))
		require.NoError(b, err)
		for b.Loop() {
			s.Merge(o)
		}
	})
}

func BenchmarkMergeConcurrent(b *testing.B) {
	sizes(b, func(b *testing.B, s *gossip.State) {
		x, y := mark(s, 1, 2), mark(s, 3, 4)
		for b.Loop() {
			x.Merge(y)
		}
	})
}

func BenchmarkEdit(b *testing.B) {
	sizes(b, func(b *testing.B, s *gossip.State) {
		for b.Loop() {
			mark(s, 1, 2)
		}
	})
}

func BenchmarkDelta(b *testing.B) {
	sizes(b, func(b *testing.B, s *gossip.State) {
		x, digest := mark(s, 1, 2), s.Digest()
		for b.Loop() {
			x.DeltaTo(digest)
		}
	})
}

func BenchmarkApply(b *testing.B) {
	sizes(b, func(b *testing.B, s *gossip.State) {
		d := mark(s, 1, 2).DeltaTo(s.Digest())
		for b.Loop() {
			if _, err := s.Apply(d); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkEditAndDigest(b *testing.B) {
	sizes(b, func(b *testing.B, s *gossip.State) {
		for b.Loop() {
			mark(s, 1, 2).Digest() // Of a new state, since a state remembers its hashes.
		}
	})
}

func BenchmarkCompareDigest(b *testing.B) {
	sizes(b, func(b *testing.B, s *gossip.State) {
		digest := mark(s, 1, 2).Digest()
		for b.Loop() {
			s.CompareDigest(digest)
		}
	})
}

func BenchmarkConvergence(b *testing.B) {
	sizes(b, func(b *testing.B, s *gossip.State) {
		x := mark(s, 1, 2)
		for b.Loop() {
			x.Convergence(node(1), nil)
		}
	})
}

func BenchmarkLeader(b *testing.B) {
	sizes(b, func(b *testing.B, s *gossip.State) {
		for b.Loop() {
			s.Leader(node(1))
		}
	})
}

func BenchmarkSee(b *testing.B) {
	sizes(b, func(b *testing.B, s *gossip.State) {
		x := mark(s, 1, 2)
		for b.Loop() {
			x.See(node(3))
		}
	})
}

func BenchmarkPeers(b *testing.B) {
	sizes(b, func(b *testing.B, s *gossip.State) {
		rnd := rand.New(rand.NewPCG(1, 2))
		for b.Loop() {
			s.Peers(node(1), rnd, 4)
		}
	})
}

func BenchmarkFromParts(b *testing.B) {
	sizes(b, func(b *testing.B, s *gossip.State) {
		p := s.Parts()
		for b.Loop() {
			if _, err := gossip.FromParts(p); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// deepCopy copies the members and the hosts, as a decoder would.
func deepCopy(p gossip.Raw) gossip.Raw {
	fresh := func(n gossip.NodeID) gossip.NodeID {
		n.Address.Host = string([]byte(n.Address.Host))
		return n
	}
	members := make([]*gossip.Member, len(p.Members))
	for i, m := range p.Members {
		c := *m
		c.Node = fresh(m.Node)
		c.Roles = append([]string(nil), m.Roles...)
		members[i] = &c
	}
	p.Members = members
	clock := make([]gossip.Dot, len(p.Clock))
	for i, e := range p.Clock {
		clock[i] = gossip.Dot{Node: fresh(e.Node), Count: e.Count}
	}
	p.Clock = clock
	return p
}
