// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// Moves that even the load out: first with the built-in strategy, their number, their bounds
// and when none begin; then with a strategy that is called, which is right, wrong, silent,
// late or undecided; last shards that do not stop.

// wide returns the kind of most tests with another number of shards.
func wide(shards uint32) control.KindConfig {
	k := six()
	k.Settings.Shards = shards
	return k
}

// spread returns how many shards each node hosts.
func spread(nodes ...*peer) []int {
	var n []int
	for _, c := range nodes {
		n = append(n, len(c.hosting))
	}
	return n
}

// A third node gets a third of the shards, a few at a time. Each shard is without a home only
// while it stops and starts, and when the load is even no shard moves any more.
// covers F37, I21.
func TestJoinEvensOut(t *testing.T) {
	f := newFleet(t)
	nodes := f.cluster(2, wide(1000))
	before := nodes[0].Inspect("k").Homes
	joined := f.start(3, wide(1000))
	most, took := 0, 0
	for range 10_000 {
		f.run(time.Millisecond)
		took++
		i := nodes[0].Inspect("k")
		most = max(most, i.Moving)
		if len(joined.hosting) >= 333 && i.Moving == 0 {
			break
		}
	}
	f.run(100 * time.Millisecond)
	f.settled(1000, nodes[0], nodes[1], joined)
	require.Equal(t, []int{334, 333, 333}, spread(nodes[0], nodes[1], joined))
	require.Equal(t, 4, most, "as many as one region may take part in")
	require.Less(t, took, 2000, "rounds follow each other")
	moves := published[control.MoveEnded](nodes[0])
	require.Len(t, moves, 333)
	for _, m := range moves {
		require.Equal(t, control.OutcomeMoved, m.Moved.Outcome)
		require.Equal(t, joined.id, m.Moved.To)
		require.LessOrEqual(t, m.Moved.Ended.Sub(m.Moved.Started), 15*time.Millisecond)
	}
	require.Len(t, nodes[0].Moves("k"), 256, "the history is bounded")
	require.Equal(t, moves[332].Moved, nodes[0].Moves("k")[255], "the newest is the last")

	after := nodes[1].Inspect("k").Homes
	for i := range after {
		require.Equal(t, before[i].Base, after[i].Base, "the streams go on")
	}
	f.run(time.Minute)
	require.Equal(t, after, nodes[1].Inspect("k").Homes, "a balanced cluster rests")
	decided := nodes[0].decided("rebalance")
	require.Len(t, decided, 2)
	require.Contains(t, decided[0], "k: begins: least-shard: 4 of 1000 shards move, 329 remain out of balance")
	require.Contains(t, decided[1], "k: rests: 333 shards moved, 0 called off, 0 lost, in ")
}

// The number of moves under way keeps to the bounds of the kind, in all and for one region.
func TestBoundsOfMoves(t *testing.T) {
	kind := wide(400)
	kind.MaxSimultaneous, kind.MaxSimultaneousPerRegion = 5, 3
	f := newFleet(t)
	nodes := f.cluster(1, kind)
	for i := range 4 {
		f.start(2+i, kind)
	}
	most := 0
	for range 3000 {
		f.run(time.Millisecond)
		most = max(most, nodes[0].Inspect("k").Moving)
	}
	require.Equal(t, 3, most, "all of them come from one region")
	require.Len(t, nodes[0].hosts(), 80)

	kind.MaxSimultaneousPerRegion = 30
	f = newFleet(t)
	nodes = f.cluster(1, kind)
	f.start(2, kind)
	most = 0
	for range 3000 {
		f.run(time.Millisecond)
		most = max(most, nodes[0].Inspect("k").Moving)
	}
	require.Equal(t, 5, most)
	require.Len(t, nodes[0].hosts(), 200)
}

// The load is not evened out onto a region without standing, nor while a member is joining.
// It is evened out when the region has standing, and when no member is joining any more.
func TestUnfitClusterIsLeftAlone(t *testing.T) {
	f := newFleet(t)
	a := f.start(1, six())
	f.run(5 * time.Second)
	b := f.start(2, six())
	b.step(component.Standing{Until: 0})
	f.run(time.Second)
	require.Empty(t, b.hosts(), "it has no standing")
	b.step(component.Standing{Until: machine.Never})
	f.run(time.Second)
	require.Len(t, b.hosts(), 3)
	f.settled(6, a, b)

	f.edit(func(e *gossip.Edit) bool {
		return e.Join(gossip.Member{Node: member(3), Services: []uint16{uint16(protocol.Service)}})
	})
	c := f.start(4, six())
	f.run(30 * time.Second)
	require.Empty(t, c.hosts(), "a member is joining, and so a region about to come")
	f.edit(func(e *gossip.Edit) bool {
		return e.SetStatus(member(3), gossip.Down, 0) && e.Remove(member(3), time.Unix(9, 0))
	})
	f.publish()
	for _, id := range f.ids() {
		f.nodes[id].step(component.Fenced{Node: member(3)})
	}
	f.run(time.Second)
	require.Len(t, c.hosts(), 2)
}

// A member that is joining and that cannot be reached does not keep the load from being
// evened out: it may stay so for as long as a link is broken.
func TestANewcomerThatWaitsKeepsNothingFromBeingEvenedOut(t *testing.T) {
	f := newFleet(t)
	a := f.start(1, six())
	f.run(5 * time.Second)
	f.edit(func(e *gossip.Edit) bool {
		return e.Join(gossip.Member{Node: member(3), Services: []uint16{uint16(protocol.Service)}}) &&
			e.Mark(member(3), gossip.Unreachable)
	})
	b := f.start(2, six())
	f.run(10 * time.Second)
	f.settled(6, a, b)
	require.Len(t, b.hosts(), 3)
}

// moveTo returns the answer that moves the first n shards of a request to a node.
func moveTo(r allocation.RebalanceRequest, n int, to *peer) allocation.RebalanceResult {
	res := allocation.RebalanceResult{Reason: "it wants to"}
	target := allocation.Region(to.id.String())
	for i := range r.Regions {
		from := &r.Regions[i]
		for _, s := range from.Shards {
			if from.ID != target && len(res.Moves) < n {
				res.Moves = append(res.Moves, allocation.Move{Shard: s, From: from.ID, To: target, Reason: "so"})
			}
		}
	}
	return res
}

// foreign returns a fleet of two nodes that share the shards evenly, and whose strategy is
// called.
func foreign(t *testing.T) (f *fleet, a, b *peer) {
	t.Helper()
	f = newFleet(t)
	f.answers = func(c machine.Call) (any, error) {
		least, err := allocation.NewLeastShard(allocation.Default().LeastShard)
		require.NoError(t, err)
		return least.DecideAllocate(c.Request.(allocation.AllocateRequest)), nil
	}
	a, b = f.start(1, asked()), f.start(2, asked())
	f.run(5 * time.Second)
	f.settled(6, a, b)
	return f, a, b
}

// A strategy that is called is told the bounds and the moves under way. Its moves go to the
// targets that it named: it is not asked again where the shards should live.
func TestStrategyMoves(t *testing.T) {
	f, a, b := foreign(t)
	placements, rounds := len(a.calls), len(a.rounds)
	require.NotZero(t, rounds, "asked after the regions came")
	f.evens = func(c machine.Call) (any, error) {
		r := c.Request.(allocation.RebalanceRequest)
		require.Equal(t, "k", r.Kind)
		require.Equal(t, 5*time.Second, c.Limit)
		require.Equal(t, 32, r.Budget.Simultaneous)
		require.Equal(t, 4, r.Budget.PerRegion)
		require.NoError(t, r.Validate())
		if fit, why := r.Fitness.Fit(); !fit {
			return nil, errors.New(why)
		}
		return moveTo(r, 2-len(r.Budget.InFlight), b), nil
	}
	f.run(10 * time.Second)
	f.settled(6, a, b)
	require.Len(t, b.hosts(), 6, "round after round")
	require.Len(t, a.calls, placements, "not asked where")
	require.Equal(t, "mine: so", a.Moves("k")[0].Reason)
	require.Contains(t, a.decided("rebalance")[0], "k: begins: mine: it wants to")
}

// When the strategy returns an error, an answer of another type, or moves that break the
// contract, no shard moves, and the decision log says why.
// covers F40.
func TestWrongMovesAreNotMade(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*allocation.RebalanceResult) (any, error)
		why    string
	}{
		"unknown region": {func(r *allocation.RebalanceResult) (any, error) {
			r.Moves[0].To = "nowhere"
			return *r, nil
		}, "not in the request"},
		"too many moves": {func(r *allocation.RebalanceResult) (any, error) {
			for len(r.Moves) < 40 {
				r.Moves = append(r.Moves, r.Moves[0])
			}
			return *r, nil
		}, "40 moves, 32 more may begin"},
		"to its own home": {func(r *allocation.RebalanceResult) (any, error) { r.Moves[0].To = r.Moves[0].From; return *r, nil }, "moves to where it is"},
		"unknown shard":   {func(r *allocation.RebalanceResult) (any, error) { r.Moves[0].Shard = 99; return *r, nil }, "does not host it"},
		"another type":    {func(*allocation.RebalanceResult) (any, error) { return allocation.AllocateResult{}, nil }, "the answer is a allocation.AllocateResult"},
		"an error":        {func(*allocation.RebalanceResult) (any, error) { return nil, errors.New("out of ideas") }, "out of ideas"},
	} {
		t.Run(name, func(t *testing.T) {
			f, a, b := foreign(t)
			f.evens = func(c machine.Call) (any, error) {
				res := moveTo(c.Request.(allocation.RebalanceRequest), 1, b)
				return test.change(&res)
			}
			homes := a.Inspect("k").Homes
			f.run(25 * time.Second)
			require.Equal(t, homes, a.Inspect("k").Homes)
			require.Contains(t, a.decided("rebalance")[0], "k: nothing moves: strategy mine: ")
			require.Contains(t, a.decided("rebalance")[0], test.why)
			require.LessOrEqual(t, len(a.decided("rebalance")), 3, "asked again at the idle check")
			f.settled(6, a, b)
		})
	}
}

// A call to a strategy that does not answer which shards should move ends at its limit, and
// a later answer is ignored. Shards that need homes meanwhile get them after that.
// covers F40.
func TestStrategyThatNeverSaysWhatMoves(t *testing.T) {
	f, a, b := foreign(t)
	var hanging []machine.Call
	before := len(a.rounds)
	a.mute = true
	f.run(11 * time.Second)
	hanging = a.rounds[before:]
	require.Len(t, hanging, 1)
	f.set(gossip.Leaving, b)
	f.run(6 * time.Second)
	require.True(t, b.left, "handed back when the limit has passed")
	f.settled(6, a)
	require.Contains(t, strings.Join(a.decided("rebalance"), "\n"), "k: nothing moves: strategy mine: it did not answer in time")
	homes := a.Inspect("k").Homes
	a.step(machine.Called{ID: hanging[0].ID, Result: moveTo(hanging[0].Request.(allocation.RebalanceRequest), 1, a)})
	require.Equal(t, homes, a.Inspect("k").Homes)
}

// When the regions have changed since the strategy was asked, its answer moves no shard, and
// the strategy is asked again.
func TestMovesOfAnOldView(t *testing.T) {
	f, a, _ := foreign(t)
	a.mute = true
	before := len(a.rounds)
	f.run(11 * time.Second)
	require.Len(t, a.rounds, before+1)
	question := a.rounds[before]
	c := f.start(3, asked())
	f.run(10 * time.Millisecond)
	a.mute = false
	a.step(machine.Called{ID: question.ID, Result: moveTo(question.Request.(allocation.RebalanceRequest), 1, a)})
	require.Empty(t, a.Moves("k"))
	require.Zero(t, a.Inspect("k").Moving)
	f.run(time.Second)
	require.Greater(t, len(a.rounds), before+1)
	require.Len(t, a.rounds[len(a.rounds)-1].Request.(allocation.RebalanceRequest).Regions, 3)
	require.Empty(t, c.hosts())
}

// A move that would undo an earlier one is left out for some time, so that a strategy cannot
// let a shard go to and fro.
func TestMoveIsNotUndoneByTheNextRound(t *testing.T) {
	f, a, b := foreign(t)
	f.evens = func(c machine.Call) (any, error) {
		r := c.Request.(allocation.RebalanceRequest)
		var res allocation.RebalanceResult
		for i := range r.Regions {
			for _, s := range r.Regions[i].Shards {
				if s == 0 && len(r.Budget.InFlight) == 0 {
					res.Moves = []allocation.Move{{Shard: 0, From: r.Regions[i].ID, To: r.Regions[1-i].ID}}
				}
			}
		}
		return res, nil
	}
	f.run(60 * time.Second)
	f.settled(6, a, b)
	moves := published[control.MoveEnded](a)
	require.NotEmpty(t, moves)
	require.LessOrEqual(t, len(moves), 7)
	for i := 1; i < len(moves); i++ {
		require.GreaterOrEqual(t, moves[i].Moved.Started.Sub(moves[i-1].Moved.Ended), 9*time.Second)
	}
	require.Contains(t, strings.Join(a.decided("rebalance"), "\n"), "k: left out: mine: 1 moves would undo what was moved within the last 10s")
}

// A shard whose entities do not stop holds up no other shard. Its move is called off, and
// another shard moves in its place.
// covers F39, I21.
func TestStuckShardHoldsUpNoOther(t *testing.T) {
	f := newFleet(t)
	nodes := f.cluster(2, wide(100))
	stuck := nodes[0].hosts()[0]
	f.stops = func(s protocol.ShardID) time.Duration {
		if s == stuck {
			return -1
		}
		return 10 * time.Millisecond
	}
	joined := f.start(3, wide(100))
	f.run(2 * time.Second)
	require.Len(t, joined.hosts(), 32, "all but the one")
	f.run(2 * time.Second)
	f.settled(100, nodes[0], nodes[1], joined)
	require.Len(t, joined.hosts(), 33, "another one in its place")
	moves := nodes[0].Moves("k")
	require.Contains(t, fmt.Sprint(moves), "called off")
	require.Contains(t, nodes[0].hosting, stuck)
}

// With on-stuck set to abandon, the home releases a shard that does not stop in time, and
// the shard moves.
// covers F39, I21.
func TestStuckEntitiesAreAbandoned(t *testing.T) {
	kind := six()
	kind.OnStuck = control.OnStuckAbandon
	f := newFleet(t)
	nodes := f.cluster(2, kind)
	homes := nodes[0].Inspect("k").Homes
	f.stops = func(protocol.ShardID) time.Duration { return -1 }
	lost := 0
	f.drop = func(_, _ gossip.NodeID, m control.Message) bool {
		if _, release := m.(control.Release); release && lost < 2 {
			lost++
			return true // The coordinator repeats the message.
		}
		return false
	}
	f.set(gossip.Leaving, nodes[1])
	f.run(2900 * time.Millisecond)
	require.Equal(t, 3, nodes[0].Inspect("k").Moving)
	f.run(3 * time.Second)
	f.settled(6, nodes[0])
	require.True(t, nodes[1].left)
	require.Contains(t, nodes[0].decided("handoff"), "k: abandoned: "+nodes[1].id.String()+" did not stop 3 shards within the handoff timeout")
	for _, h := range nodes[0].Inspect("k").Homes {
		require.Equal(t, homes[h.Shard].Base, h.Base, "the streams go on")
	}
}
