// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package allocation_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/allocation/allocationtest"
)

// FuzzCheckAllocate lets the input change a valid answer, and compares the result of
// the check with the rules applied one by one to the whole answer.
func FuzzCheckAllocate(f *testing.F) {
	l := leastShard(f, 100, 0.1)
	f.Add(uint64(1), []byte{})
	f.Add(uint64(2), []byte{0, 0, 1, 1, 0, 2, 2, 1, 3})
	f.Add(uint64(3), []byte{3, 0, 0, 3, 0, 0, 0, 1, 200, 1, 2, 200})
	f.Fuzz(func(t *testing.T, seed uint64, edits []byte) {
		r := allocationtest.RandomAllocateRequest(rand.New(rand.NewPCG(seed, 0)))
		res := l.DecideAllocate(r)
		for ; len(edits) >= 3; edits = edits[3:] {
			id := allocation.Region("x")
			if int(edits[2]) < len(r.Regions) {
				id = r.Regions[edits[2]].ID
			}
			p := allocation.Placement{Shard: allocation.Shard(edits[1] % 64), Region: id}
			if edits[0]%4 == 3 || len(res.Placements) == 0 {
				res.Placements = append(res.Placements, p)
			} else {
				res.Placements[int(edits[0])%len(res.Placements)] = p
			}
		}
		require.Equal(t, honest(r, res), allocation.CheckAllocate(&r, &res) == nil, "%v\n%v", r, res)
	})
}

// honest is the contract of placements in its plainest form.
func honest(r allocation.AllocateRequest, res allocation.AllocateResult) bool {
	for i, p := range res.Placements {
		asked, target := false, false
		for _, q := range r.Shards {
			asked = asked || q.Shard == p.Shard
		}
		for j := range r.Regions {
			target = target || r.Regions[j].ID == p.Region && r.Regions[j].Eligible()
		}
		if !asked || !target {
			return false
		}
		for _, q := range res.Placements[:i] {
			if q.Shard == p.Shard {
				return false
			}
		}
	}
	return true
}

// FuzzCheckRebalance is FuzzCheckAllocate for moves.
func FuzzCheckRebalance(f *testing.F) {
	l := leastShard(f, 100, 1)
	f.Add(uint64(1), []byte{})
	f.Add(uint64(2), []byte{0, 0, 1, 1, 1, 5, 0, 2})
	f.Add(uint64(7), []byte{3, 0, 0, 1, 3, 0, 0, 1, 3, 4, 2, 200})
	f.Fuzz(func(t *testing.T, seed uint64, edits []byte) {
		r := allocationtest.RandomRebalanceRequest(rand.New(rand.NewPCG(seed, 0)))
		res := l.DecideRebalance(r)
		region := func(b byte) allocation.Region {
			if int(b) < len(r.Regions) {
				return r.Regions[b].ID
			}
			return "x"
		}
		for ; len(edits) >= 4; edits = edits[4:] {
			m := allocation.Move{Shard: allocation.Shard(edits[1] % 64), From: region(edits[2]), To: region(edits[3])}
			if edits[0]%4 == 3 || len(res.Moves) == 0 {
				res.Moves = append(res.Moves, m)
			} else {
				res.Moves[int(edits[0])%len(res.Moves)] = m
			}
		}
		require.Equal(t, fair(r, res), allocation.CheckRebalance(&r, &res) == nil, "%v\n%v", r, res)
	})
}

// fair is the contract of moves in its plainest form.
func fair(r allocation.RebalanceRequest, res allocation.RebalanceResult) bool {
	all := append(append([]allocation.Move(nil), r.Budget.InFlight...), res.Moves...)
	if len(res.Moves) > 0 && len(all) > r.Budget.Simultaneous {
		return false
	}
	for i, m := range res.Moves {
		from, to := false, false
		for j := range r.Regions {
			s := &r.Regions[j]
			for _, own := range s.Shards {
				from = from || s.ID == m.From && own == m.Shard && !s.Unreachable && !s.Suspended
			}
			to = to || s.ID == m.To && s.Eligible() && m.To != m.From
		}
		if !from || !to {
			return false
		}
		with := map[allocation.Region]int{}
		for j, other := range all {
			if other.Shard == m.Shard && j != len(r.Budget.InFlight)+i {
				return false
			}
			with[other.From]++
			with[other.To]++
		}
		if n := r.Budget.PerRegion; n > 0 && max(with[m.From], with[m.To]) > n {
			return false
		}
	}
	return true
}
