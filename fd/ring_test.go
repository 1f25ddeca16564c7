// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package fd_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/fd"
)

func identity(n int) uint32 { return uint32(n) }

func TestHashUIDCombinesBothHalves(t *testing.T) {
	require.Equal(t, uint32(0), fd.HashUID(0))
	require.Equal(t, uint32(7), fd.HashUID(7))
	require.Equal(t, uint32(7), fd.HashUID(7<<32))
	require.Equal(t, uint32(0), fd.HashUID(0xffff_ffff_ffff_ffff))
	require.Equal(t, uint32(0x1234_5678^0x9abc_def0), fd.HashUID(0x1234_5678_9abc_def0))
}

func TestRingWalk(t *testing.T) {
	ten := []int{0, 10, 20, 30, 40, 50, 60, 70, 80, 90}
	for _, tc := range []struct {
		name        string
		nodes       []int
		monitors    int
		self        int
		unreachable []int
		want        []int
	}{
		{"successors", ten, 3, 20, nil, []int{30, 40, 50}},
		{"around the end", ten, 3, 80, nil, []int{90, 0, 10}},
		{"unreachable on the way are not counted", ten, 3, 20, []int{30, 40}, []int{30, 40, 50, 60, 70}},
		{"unreachable after k are skipped", ten, 3, 20, []int{30, 40, 50, 60, 80}, []int{30, 40, 50, 70, 90, 0}},
		{"unreachable behind the last are not met", ten, 3, 20, []int{60}, []int{30, 40, 50}},
		{"fewer than k reachable", ten, 3, 0, []int{10, 20, 30, 40, 50, 60, 70, 90}, []int{10, 20, 30, 80}},
		{"everybody", ten, 9, 40, []int{0, 90}, []int{50, 60, 70, 80, 90, 0, 10, 20, 30}},
		{"alone", []int{7}, 9, 7, nil, []int{}},
		{"empty", nil, 9, 7, nil, []int{}},
		{"not on the ring", ten, 2, 25, nil, []int{30, 40}},
		{"not on the ring, behind the end", ten, 2, 95, nil, []int{0, 10}},
		{"duplicates count once", []int{1, 2, 2, 3, 1}, 9, 1, nil, []int{2, 3}},
		{"at least one monitor", ten, 0, 0, nil, []int{10}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ring := fd.NewRing(tc.monitors, tc.nodes, identity, cmp.Compare[int])
			got := ring.Receivers(tc.self, func(n int) bool { return slices.Contains(tc.unreachable, n) })
			require.Equal(t, tc.want, got)
		})
	}
}

func TestMutualRingWalk(t *testing.T) {
	ten := []int{0, 10, 20, 30, 40, 50, 60, 70, 80, 90}
	for _, tc := range []struct {
		name        string
		monitors    int
		self        int
		unreachable []int
		want        []int
	}{
		{"both ways, the odd one ahead", 3, 20, nil, []int{30, 40, 10}},
		{"around the end", 4, 0, nil, []int{10, 20, 90, 80}},
		{"unreachable on the way are not counted", 4, 20, []int{30, 10}, []int{30, 40, 50, 10, 0, 90}},
		{"fewer than k reachable", 5, 0, []int{10, 20, 30, 40, 50, 60}, []int{10, 20, 30, 70, 80, 90}},
		{"everybody", 9, 40, []int{0}, []int{50, 60, 70, 80, 90, 0, 10, 20, 30}},
		{"not on the ring", 2, 25, nil, []int{30, 20}},
		{"one monitor", 1, 90, nil, []int{0}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ring := fd.NewMutualRing(tc.monitors, ten, identity, cmp.Compare[int])
			got := ring.Receivers(tc.self, func(n int) bool { return slices.Contains(tc.unreachable, n) })
			require.Equal(t, tc.want, got)
		})
	}
}

func TestRingOrdersEqualHashesByNode(t *testing.T) {
	same := func(int) uint32 { return 42 }
	ring := fd.NewRing(2, []int{3, 1, 4, 2}, same, cmp.Compare[int])
	require.Equal(t, []int{1, 2, 3, 4}, ring.Nodes())
	require.Equal(t, []int{4, 1}, ring.Receivers(3, nil))
	require.Equal(t, []int{1, 2}, ring.Observers(3, nil))
	require.Nil(t, ring.Observers(9, nil))
}

// ringCase is a ring of any size, with any set of nodes unreachable. Hashes
// collide often, so that the tie rule is used.
type ringCase struct {
	k           int
	mutual      bool
	nodes       []int
	unreachable map[int]bool
}

func (c ringCase) ring() fd.Ring[int] {
	if c.mutual {
		return fd.NewMutualRing(c.k, c.nodes, collide, cmp.Compare[int])
	}
	return fd.NewRing(c.k, c.nodes, collide, cmp.Compare[int])
}

// sides is how many nodes take a node before it on the ring, and how many after it.
func (c ringCase) sides() (before, after int) {
	if c.mutual {
		return c.k - c.k/2, c.k / 2
	}
	return c.k, 0
}

func (c ringCase) isUnreachable(n int) bool { return c.unreachable[n] }

func collide(n int) uint32 { return fd.HashUID(uint64(n)*0x9e37_79b9_7f4a_7c15) >> 26 }

func drawRing(t *rapid.T) ringCase {
	c := ringCase{
		k:           rapid.IntRange(1, 10).Draw(t, "k"),
		nodes:       rapid.SliceOfNDistinct(rapid.IntRange(0, 1000), 1, 40, rapid.ID).Draw(t, "nodes"),
		mutual:      rapid.Bool().Draw(t, "mutual"),
		unreachable: map[int]bool{},
	}
	for _, n := range c.nodes {
		c.unreachable[n] = rapid.IntRange(0, 3).Draw(t, "reachable") == 0
	}
	return c
}

// before returns up to n nodes before i on the ring, the nearest first, for which pass
// returns true.
func before(order []int, i, n int, pass func(int) bool) []int { return beside(order, i, n, -1, pass) }

// beside is before, or after with the step 1.
func beside(order []int, i, n, step int, pass func(int) bool) []int {
	var found []int
	for d := 1; d < len(order) && len(found) < n; d++ {
		if node := order[(i+step*d+len(order))%len(order)]; pass(node) {
			found = append(found, node)
		}
	}
	return found
}

// around returns the nodes that take the one at i: so many before it and after it.
func (c ringCase) around(order []int, i int, pass func(int) bool) []int {
	behind, ahead := c.sides()
	return append(before(order, i, behind, pass), beside(order, i, ahead, 1, pass)...)
}

// The properties R1, R2 and R3 of Ring: every node is monitored, also while others are
// unreachable, and by nodes that are reachable themselves.
func TestRingMonitorsEveryNode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawRing(t)
		ring := c.ring()
		order := ring.Nodes()
		require.Len(t, order, len(c.nodes))
		for i, n := range order {
			observers := ring.Observers(n, c.isUnreachable)
			require.GreaterOrEqual(t, len(observers), min(c.k, len(order)-1))
			for _, o := range c.around(order, i, func(int) bool { return true }) {
				require.Contains(t, observers, o, "R1: %d is not monitored by %d beside it", n, o)
			}
			if !c.unreachable[n] {
				for _, o := range c.around(order, i, func(o int) bool { return !c.unreachable[o] }) {
					require.Contains(t, observers, o, "R2: %d is not monitored by %d beside it", n, o)
				}
			}
			receivers := ring.Receivers(n, c.isUnreachable)
			require.LessOrEqual(t, len(receivers), 2*c.k, "R3")
			require.NotContains(t, receivers, n)
		}
	})
}

func TestRingMonitorsEveryNodeByExactlyKWhenAllAreReachable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawRing(t)
		ring := c.ring()
		for _, n := range c.nodes {
			require.Len(t, ring.Receivers(n, nil), min(c.k, len(c.nodes)-1))
			require.Len(t, ring.Observers(n, nil), min(c.k, len(c.nodes)-1))
		}
	})
}

// The ring is a function of the set of nodes: all nodes agree on it.
func TestRingDoesNotDependOnTheOrderOfNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawRing(t)
		other := c
		other.nodes = append(rapid.Permutation(c.nodes).Draw(t, "permutation"), c.nodes[0])
		require.Equal(t, c.ring().Nodes(), other.ring().Nodes())
		for _, n := range c.nodes {
			require.Equal(t, c.ring().Receivers(n, c.isUnreachable), other.ring().Receivers(n, c.isUnreachable))
		}
	})
}

// The property R4: a node that enters changes what the k nodes beside it take, one
// node each, and nothing else. Read backwards, the same holds for a node that leaves.
func TestRingIsStableWhenANodeEnters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawRing(t)
		if len(c.nodes) <= c.k+1 {
			return
		}
		larger := c
		newcomer := 2000 + rapid.IntRange(0, 1000).Draw(t, "newcomer")
		larger.nodes = append(slices.Clone(c.nodes), newcomer)
		order := larger.ring().Nodes()
		affected := c.around(order, slices.Index(order, newcomer), func(int) bool { return true })
		for _, n := range c.nodes {
			was, is := c.ring().Receivers(n, nil), larger.ring().Receivers(n, nil)
			if !slices.Contains(affected, n) {
				require.Equal(t, was, is)
				continue
			}
			require.Contains(t, is, newcomer)
			kept := slices.DeleteFunc(slices.Clone(is), func(k int) bool { return k == newcomer })
			require.Subset(t, was, kept)
			require.Len(t, kept, c.k-1)
		}
	})
}

// The property R5, which is what a mutual ring is for.
func TestNeighboursOnAMutualRingTakeEachOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawRing(t)
		c.mutual = true
		ring := c.ring()
		order := ring.Nodes()
		reachable := func(n int) bool { return !c.unreachable[n] }
		for i, n := range order {
			if c.unreachable[n] {
				continue
			}
			for _, neighbour := range append(before(order, i, c.k/2, reachable), beside(order, i, c.k/2, 1, reachable)...) {
				require.Contains(t, ring.Receivers(n, c.isUnreachable), neighbour)
				require.Contains(t, ring.Receivers(neighbour, c.isUnreachable), n)
			}
		}
	})
}

// With random incarnation numbers, nodes with neighbouring addresses are rarely
// neighbours on the ring.
func TestRingScattersNeighbours(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	uids := make([]uint64, 100)
	nodes := make([]int, len(uids))
	for i := range uids {
		uids[i], nodes[i] = random.Uint64(), i
	}
	ring := fd.NewRing(9, nodes, func(n int) uint32 { return fd.HashUID(uids[n]) }, cmp.Compare[int])
	adjacent := 0
	for _, n := range nodes {
		if slices.Contains(ring.Receivers(n, nil), (n+1)%len(nodes)) {
			adjacent++
		}
	}
	require.Less(t, adjacent, 25, "9 of 99 are expected by chance")
}
