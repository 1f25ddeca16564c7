// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// A strategy whose answers are allowed and make no sense sets no pace: neither of the questions that it is asked, nor
// of the moves of a shard.

// round returns the answer that moves as many shards as may move, each to the region after its own.
func round(r allocation.RebalanceRequest) (res allocation.RebalanceResult) {
	room := min(r.Budget.Room(), r.Budget.PerRegion)
	for i := range r.Regions {
		for _, s := range r.Regions[i].Shards {
			moves := slices.ContainsFunc(r.Budget.InFlight, func(m allocation.Move) bool { return m.Shard == s })
			move := allocation.Move{Shard: s, From: r.Regions[i].ID, To: r.Regions[(i+1)%len(r.Regions)].ID}
			next := allocation.RebalanceResult{Moves: append(res.Moves, move)}
			if !moves && room > 0 && allocation.CheckRebalance(&r, &next) == nil {
				res, room = next, room-1
			}
		}
	}
	return res
}

// senseless are answers to what should move, to the n-th question.
var senseless = map[string]func(n int, r allocation.RebalanceRequest) (any, error){
	"round": func(_ int, r allocation.RebalanceRequest) (any, error) { return round(r), nil },
	"one at a time": func(_ int, r allocation.RebalanceRequest) (any, error) {
		moves := round(r).Moves
		return allocation.RebalanceResult{Moves: moves[:min(1, len(moves))]}, nil
	},
	"errors": func(int, allocation.RebalanceRequest) (any, error) { return nil, errors.New("no") },
	"in turn": func(n int, r allocation.RebalanceRequest) (any, error) {
		return [...]any{round(r), allocation.RebalanceResult{Reason: "not now"}, "no"}[n%3], nil
	},
}

// A strategy that has each shard go round and round, with moves that take a few milliseconds, moves it twice in an
// idle-check at most, and is asked twenty times a second at most, whether its answers are allowed or not.
// covers F40, I34.
func TestAStrategySetsNoPace(t *testing.T) {
	for name, evens := range senseless {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t)
			var at []time.Duration
			var first *peer
			f.evens = func(c machine.Call) (any, error) {
				at = append(at, f.now)
				return evens(len(at), c.Request.(allocation.RebalanceRequest))
			}
			f.answers = func(c machine.Call) (any, error) { // One home an answer.
				at = append(at, f.now)
				res := to(c.Request.(allocation.AllocateRequest), first)
				res.Placements = res.Placements[:1]
				return res, nil
			}
			k := asked()
			k.Settings.Shards = 60
			first = f.start(1, k)
			f.start(2, k)
			f.start(3, k)
			f.run(2 * time.Minute)
			require.Greater(t, len(at), 60)
			for i := 20; i < len(at); i++ {
				require.GreaterOrEqual(t, at[i]-at[i-20], time.Second, "question %d", i)
			}
			requireRest(t, published[control.MoveEnded](first))
		})
	}
}

// requireRest demands that no shard moved a third time within an idle-check.
func requireRest(t *testing.T, moves []control.MoveEnded) {
	t.Helper()
	ended := map[protocol.ShardID][]control.Moved{}
	for _, m := range moves {
		if m.Moved.Outcome == control.OutcomeMoved {
			ended[m.Moved.Shard] = append(ended[m.Moved.Shard], m.Moved)
		}
	}
	for id, moved := range ended {
		for i := 2; i < len(moved); i++ {
			require.GreaterOrEqual(t, moved[i].Started.Sub(moved[i-2].Ended), 10*time.Second, "shard %v", id)
		}
	}
}
