// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/membership/membershipsim"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/simulation"
	world "github.com/quorate/quorate/simulation"
	"github.com/quorate/quorate/simulation/simulationtest"
)

// Allocation strategies that do not do what they should, while nodes come and go: first
// strategies with a mixture of faults, slow ones, and both together with random faults; then
// strategies that never answer, or give no homes; last a recording that is replayed without
// the strategy.

// leastShard returns a strategy that answers as it should.
func leastShard(t *testing.T) allocation.Strategy {
	t.Helper()
	s, err := allocation.NewLeastShard(allocation.Default().LeastShard)
	require.NoError(t, err)
	return s
}

// mixture returns probabilities for everything that can become of a call.
func mixture() world.Calls {
	return world.Calls{
		Max: 200 * time.Millisecond, Hang: 0.08, Fail: 0.08, Garbage: 0.2, Crash: 0.08, Late: 0.15, Stuck: 0.08,
		Restart: time.Second, RestartMax: 8 * time.Second, StuckMax: 8 * time.Second,
	}
}

// A strategy that crashes, hangs, is late, slow or stuck, or answers garbage does no harm but
// to cost time, while nodes come and go and the coordinator changes: every shard has a home
// again within a bound, no bound of moves is exceeded, and no message is lost or processed
// twice.
// covers F34, F35, F37, F40, F56, F60, I1, I20, I21, I22, I34.
func TestStrangeStrategies(t *testing.T) {
	fates := map[string]int{}
	b := within(t, 1)
	for seed := range b.Seeds {
		c := simulation.Asking(seed, 5, "strategies", mixture(), leastShard(t))
		b.Count(c.World)
		c.Change()
		require.NoError(t, c.World.Run(75*time.Second), "seed %d", seed)
		c.World.Strategies().Set(world.Calls{})
		require.NoError(t, c.Finish(120*time.Second), "seed %d", seed)
		for _, f := range c.World.Strategies().Outcomes() {
			fates[f.Name] += f.Times
		}
	}
	t.Logf("%d seeds: %v", b.Ran(), fates)
	require.NotZero(t, fates["garbage"])
}

// A strategy that takes up to its limit answers about a cluster that has changed meanwhile.
// Such answers are dropped: no shard is given to a node that leaves or cannot be reached.
// Every shard gets a home all the same.
// covers F34, F35, F37, F40, F56, I21, I22, I34.
func TestSlowStrategies(t *testing.T) {
	b := within(t, 1)
	for seed := range b.Seeds {
		c := simulation.Asking(seed, 5, "strategies-slow", world.Calls{Min: 100 * time.Millisecond, Max: 4900 * time.Millisecond}, leastShard(t))
		b.Count(c.World)
		r := rand.New(rand.NewPCG(seed, 12))
		for round := range 6 {
			c.World.At(time.Duration(15+8*round)*time.Second, func() {
				c.Leave(r.IntN(5))
				c.World.After(time.Duration(r.IntN(4000))*time.Millisecond, func() { c.Leave(r.IntN(5)) })
			})
		}
		require.NoError(t, c.World.Run(75*time.Second), "seed %d", seed)
		c.World.Strategies().Set(world.Calls{})
		require.NoError(t, c.Finish(120*time.Second), "seed %d", seed)
	}
}

// Random faults together with faulty strategies, for allocation and for downing, do no more
// harm than random faults alone. With every other seed a witness decides which side of a
// split survives, so that this may be a side without a majority.
// covers F9, F11, F24, F34-F37, F40, F56, F60, I1, I3, I20, I21, I22, I34.
func TestRandomFaultsWithStrangeStrategies(t *testing.T) {
	b := within(t, 1)
	for seed := range b.Seeds {
		o := simulation.FaultyOptions(seed)
		o.World.Calls = mixture()
		o.Strategy, o.HomeTimeout = "strange", simulation.HomeTimeout
		o.Membership.Downing = membershipsim.AskedKeepMajority()
		witness := &membershipsim.Witness{}
		if seed%2 == 1 {
			o.Membership.Downing = witness.Downing()
		}
		c := simulation.New(o)
		b.Count(c.World)
		c.Ask(leastShard(t))
		if seed%2 == 1 {
			witness.Serve(c.World)
		}
		c.World.At(106*time.Second, func() { c.World.Strategies().Set(world.Calls{}) }) // The random faults have ended by then.
		_, err := simulation.RunFaults(c, simulation.Faults())
		simulationtest.RequireRun(t, seed, err)
	}
}

// settled waits until every shard has a home that all nodes know, and every message has an
// outcome. The load need not be even, since the strategy does not even it out.
func settled(c *simulation.Cluster, limit time.Duration) error {
	c.Quiet()
	return c.Await(limit, c.Settled, c.Drained)
}

// Although the strategy never gives a valid answer in time, every shard gets a home: the
// built-in strategy decides.
// covers F40, F56, F60, I20, I21, I22, I34.
func TestStrategyThatNeverAnswers(t *testing.T) {
	for _, m := range []struct {
		name  string
		calls world.Calls
	}{
		{"garbage", world.Calls{Garbage: 1}},
		{"late", world.Calls{Late: 1}},
		{"crash", world.Calls{Crash: 1}},
		{"stuck", world.Calls{Stuck: 1}},
		{"slow", world.Calls{Min: 10 * time.Second, Max: 10 * time.Second}},
	} {
		t.Run(m.name, func(t *testing.T) {
			b := within(t, 1)
			for seed := range b.Seeds {
				c := simulation.Asking(seed, 5, "strategies-"+m.name, m.calls, leastShard(t))
				b.Count(c.World)
				c.Change()
				require.NoError(t, c.World.Run(75*time.Second), "seed %d", seed)
				require.NoError(t, settled(c, 60*time.Second), "seed %d", seed)
				require.Zero(t, c.Ledger.Counts().Suspects)
			}
		})
	}
}

// heard is a strategy of which the last answer about moves is kept.
type heard struct {
	allocation.Strategy
	asked allocation.RebalanceRequest
	last  allocation.RebalanceResult
}

// Rebalance keeps the answer, and what it answers.
func (h *heard) Rebalance(ctx context.Context, r allocation.RebalanceRequest) (allocation.RebalanceResult, error) {
	res, err := h.Strategy.Rebalance(ctx, r)
	h.asked, h.last = r, res
	return res, err
}

// rests reports that the strategy has been asked at a time that is good for moves, with none in
// flight, and wants none.
func (h *heard) rests() error {
	fit, why := h.asked.Fitness.Fit()
	if !fit || len(h.asked.Budget.InFlight) > 0 || len(h.last.Moves) > 0 {
		return fmt.Errorf("%s %s", why, h.last.Reason)
	}
	return nil
}

// Each built-in strategy brings every shard to where it wants it, whatever has become of the nodes
// and of the coordinator before.
// covers F34, F35, F37, I1, I20, I21, I22.
func TestBuiltInStrategiesSettleAfterChanges(t *testing.T) {
	for _, name := range allocation.BuiltIns() {
		t.Run(name, func(t *testing.T) {
			b := within(t, 1)
			for seed := range b.Seeds {
				cfg := allocation.Default()
				cfg.Strategy = name
				builtIn, err := allocation.New(cfg)
				require.NoError(t, err)
				strategy := &heard{Strategy: builtIn}
				c := simulation.Asking(seed, 5, "strategies-"+name, world.Calls{Max: 50 * time.Millisecond}, strategy)
				b.Count(c.World)
				c.Change()
				require.NoError(t, c.World.Run(75*time.Second), "seed %d", seed)
				c.Quiet()
				require.NoError(t, c.Await(120*time.Second, c.Settled, c.Drained, strategy.rests), "seed %d", seed)
			}
		})
	}
}

// lazy is a strategy that places only the first places shards of a request.
type lazy struct {
	allocation.Strategy
	places int
}

// Allocate leaves all other shards out.
func (s lazy) Allocate(ctx context.Context, r allocation.AllocateRequest) (allocation.AllocateResult, error) {
	res, err := s.Strategy.Allocate(ctx, r)
	res.Placements = res.Placements[:min(s.places, len(res.Placements))]
	res.Reason = "some other time"
	return res, err
}

// angry is a strategy that panics or returns an error.
type angry struct{ allocation.Strategy }

func (angry) Allocate(context.Context, allocation.AllocateRequest) (allocation.AllocateResult, error) {
	panic("no")
}

func (angry) Rebalance(context.Context, allocation.RebalanceRequest) (allocation.RebalanceResult, error) {
	return allocation.RebalanceResult{}, errors.New("out of ideas")
}

// The built-in strategy decides when the strategy panics, or when it gives no shard a home,
// which breaks no contract.
// covers F40, I20, I21, I22, I34.
func TestStrategyThatGivesNoHomes(t *testing.T) {
	for name, s := range map[string]allocation.Strategy{
		"none":   lazy{leastShard(t), 0},
		"panics": angry{},
	} {
		t.Run(name, func(t *testing.T) {
			b := within(t, 1)
			for seed := range b.Seeds {
				c := simulation.Asking(seed, 5, "strategies-"+name, world.Calls{}, s)
				b.Count(c.World)
				c.Change()
				require.NoError(t, c.World.Run(75*time.Second), "seed %d", seed)
				require.NoError(t, settled(c, 60*time.Second), "seed %d", seed)
			}
		})
	}
}

// circling is a strategy that moves as many shards as may move, each to the region after its own: what is allowed and
// makes no sense. With still it says so to every other question only.
type circling struct {
	allocation.Strategy
	still bool
	asked *int
}

// Rebalance keeps all shards going round.
func (s circling) Rebalance(_ context.Context, r allocation.RebalanceRequest) (res allocation.RebalanceResult, _ error) {
	if *s.asked++; s.still && *s.asked%2 == 0 {
		return allocation.RebalanceResult{Reason: "not now"}, nil
	}
	for i := range r.Regions {
		for _, shard := range r.Regions[i].Shards {
			move := allocation.Move{Shard: shard, From: r.Regions[i].ID, To: r.Regions[(i+1)%len(r.Regions)].ID, Reason: "round"}
			next := allocation.RebalanceResult{Moves: append(slices.Clip(res.Moves), move)}
			if allocation.CheckRebalance(&r, &next) == nil {
				res = next
			}
		}
	}
	return res, nil
}

// A strategy whose answers are allowed and make no sense, and between them errors, garbage and late ones, sets no pace:
// shards go on to be hosted and moved, each twice in an idle-check at most, every message has an outcome, and a node
// sends no more than it does for twenty questions a second.
// covers F34, F35, F40, F56, I20, I21, I22, I34.
func TestSenselessStrategies(t *testing.T) {
	for _, m := range []struct {
		name  string
		calls world.Calls
		still bool
	}{
		{"round", world.Calls{}, false},
		{"by turns", world.Calls{}, true},
		{"mixture", mixture(), false},
	} {
		t.Run(m.name, func(t *testing.T) {
			b, moved := within(t, 3), 0
			for seed := range b.Seeds {
				asked := 0
				c := simulation.Asking(seed, 5, "strategies-senseless-"+m.name, m.calls, circling{leastShard(t), m.still, &asked})
				b.Count(c.World)
				require.NoError(t, c.World.Run(15*time.Second), "seed %d", seed)
				sent := c.World.Stats().Sent
				for range 60 {
					before := asked
					require.NoError(t, c.World.Run(time.Second), "seed %d", seed)
					require.LessOrEqual(t, asked-before, maxQuestions, "seed %d", seed)
				}
				require.Less(t, c.World.Stats().Sent-sent, uint64(60*5*maxMessages), "seed %d", seed)
				moved += c.Ledger.Counts().Moves[control.OutcomeMoved]
				require.NoError(t, settled(c, 60*time.Second), "seed %d", seed)
			}
			require.NotZero(t, moved)
		})
	}
}

const (
	// maxQuestions is how often a strategy is asked in a second (docs/plugins.md, "20 times a second for each kind"),
	// whenever the second begins.
	maxQuestions = 21

	// maxMessages is how many messages a node of the clusters here sends in a second, on average over a minute: those of
	// its heartbeats, gossip and entities, and of the moves of the questions.
	maxMessages = 50
)

// A run in which a strategy is called can be recorded, and replayed without the strategy.
// covers I30, I34.
func TestReplayAsksNoStrategy(t *testing.T) {
	var recording, trace, again bytes.Buffer
	play := func(o func(*world.Options), s allocation.Strategy) *simulation.Cluster {
		opt := world.Options{Seed: 1, RatePPM: 10_000, Calls: mixture()}
		o(&opt)
		c := simulation.New(simulation.Options{
			World: opt, Nodes: 4, Shards: 24, Every: 50 * time.Millisecond, Strategy: "strange", RestartAfter: 2 * time.Second,
		})
		c.Ask(s)
		c.World.At(15*time.Second, func() { c.Leave(0) })
		c.World.At(25*time.Second, func() { c.EndCoordinator(true) })
		require.NoError(t, c.World.Run(45*time.Second))
		require.NoError(t, c.World.Conclude())
		return c
	}
	first := play(func(o *world.Options) { o.Record, o.Trace = &recording, &trace }, leastShard(t))
	require.NotZero(t, first.World.Stats().Asked)
	r, err := world.ReadRecording(&recording)
	require.NoError(t, err)
	second := play(func(o *world.Options) { o.Replay, o.Trace = r, &again }, angry{})
	require.Zero(t, second.World.Stats().Asked)
	require.Equal(t, trace.String(), again.String())
	require.Equal(t, first.Ledger.Counts(), second.Ledger.Counts())
}
