// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/harness"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/sharding"
)

// Entities by the number, first the table: how many come to life in a second ([measureActivation]), and how many
// bytes each one holds that has nothing to do ([measureIdle]). All shards have a home before an experiment begins
// ([startAllocatedNode]), so that nothing of their allocation is measured.

// activationGroup is the first message to each of many entities.
func activationGroup() harness.Group {
	return harness.Group{
		Name: "activation", About: "first message to each of 400,000 entities, 4 senders",
		Experiments: []harness.Experiment{
			harness.ChannelFloor(),
			{Measure: measureActivation, Spec: harness.Spec{Senders: harness.Senders, Entities: 400_000}, Figures: []figure.Figure{
				{Name: "activations", Value: "rate", Unit: "1/s", Better: figure.Higher, Target: 400e3, Floors: []string{"floor-channel"}},
			}},
		},
	}
}

// idleGroup is the memory of entities that have nothing to do.
func idleGroup() harness.Group {
	return harness.Group{
		Name: "idle", About: "live heap and stack of each of 1,000,000 idle entities",
		Experiments: []harness.Experiment{{Measure: measureIdle, Spec: harness.Spec{Senders: harness.Senders, Entities: 1_000_000}, Figures: []figure.Figure{
			{Name: "entity-bytes", Value: "bytes", Unit: "B", Better: figure.Lower, Target: 250},
			{Name: "entity-heap-bytes", Value: "heap", Unit: "B", Better: figure.Lower},
		}}},
	}
}

// rememberedGroup is the time until remembered entities run after a restart of all, and the memory that takes.
func rememberedGroup() harness.Group {
	spec := harness.Spec{Entities: 1_000_000}
	bounded := spec
	bounded.Rate = 100_000
	moved := spec
	moved.Before = 700
	recovery := func(s harness.Spec, suffix string) harness.Experiment {
		return harness.Experiment{Measure: measureRemembered, Spec: s, Figures: []figure.Figure{
			{Name: "recovery" + suffix, Value: "seconds", Unit: "s", Better: figure.Lower},
			{Name: "recovery-peak-bytes" + suffix, Value: "peak", Unit: "B", Better: figure.Lower},
			{Name: "remembered-bytes" + suffix, Value: "bytes", Unit: "B", Better: figure.Lower},
		}}
	}
	return harness.Group{
		Name: "remembered", About: "1,000,000 remembered entities run again after a restart of all",
		Experiments: []harness.Experiment{recovery(spec, ""), recovery(bounded, "-bounded"), recovery(moved, "-resharded")},
	}
}

// remindersGroup is what very many reminders take, and how late those are that fall due among them.
func remindersGroup() harness.Group {
	return harness.Group{
		Name: "reminders", About: "1,000,000 reminders: set, kept, and some that fall due among them", Optional: true,
		Experiments: []harness.Experiment{{Measure: measureReminders, Spec: harness.Spec{Entities: 1_000_000}, Figures: []figure.Figure{
			{Name: "set", Value: "set", Unit: "1/s", Better: figure.Higher},
			{Name: "recovery", Value: "recovery", Unit: "s", Better: figure.Lower},
			{Name: "reminder-bytes", Value: "bytes", Unit: "B", Better: figure.Lower},
			{Name: "late-p50", Value: "p50", Unit: "ms", Better: figure.Lower},
			{Name: "late-p99", Value: "p99", Unit: "ms", Better: figure.Lower},
		}}},
	}
}

// entityCounts counts the entities of a process, and the messages to those that have had one before.
type entityCounts struct{ arrived, repeated atomic.Uint64 }

// kind describes entities that the census counts.
func (c *entityCounts) kind() sharding.Kind[*harness.Message] {
	return sharding.Kind[*harness.Message]{
		Name: kindName, Codec: harness.Codec{},
		New: func(*sharding.Context) sharding.Entity[*harness.Message] { return &countingEntity{census: c} },
	}
}

// countingEntity is about the least that an entity can be: it counts its messages, and reports to the counts of its
// process.
type countingEntity struct {
	n      uint64
	census *entityCounts
}

// Receive counts a message.
func (e *countingEntity) Receive(*sharding.Context, *harness.Message) error {
	if e.n++; e.n == 1 {
		e.census.arrived.Add(1)
	} else {
		e.census.repeated.Add(1)
	}
	return nil
}

// allocatedNode is a node that hosts all shards of a kind: each has its home there before anything is measured.
type allocatedNode struct {
	node   *cluster.Node
	region *sharding.Region[*harness.Message]
	census entityCounts
}

// touchedEntities is how many entities touch every shard: with the default number of
// shards the chance that one is missed is below one in ten thousand.
const touchedEntities = 20_000

// startAllocatedNode starts a node, and has each shard get its home by a message to some entity of it.
func startAllocatedNode(ctx context.Context) (g *allocatedNode, err error) {
	g = new(allocatedNode)
	if g.node, err = startNode(ctx, nil, nil); err != nil {
		return nil, err
	}
	if g.region, err = sharding.Start(g.node, g.census.kind()); err != nil {
		return nil, err
	}
	return g, g.activate(ctx, "settler-", 1, touchedEntities)
}

// activate brings n entities to life and waits until all of them live.
func (g *allocatedNode) activate(ctx context.Context, prefix string, senders, n int) error {
	before := g.census.arrived.Load()
	err := harness.Together(senders, func(sender int) error {
		for i := sender; i < n; i += senders {
			if err := g.region.Tell(ctx, prefix+strconv.Itoa(i), &harness.Message{Seq: 1}); err != nil {
				return fmt.Errorf("bench: the first message to %s%d: %w", prefix, i, err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	_, err = harness.Poll(ctx, time.Millisecond, func(waited time.Duration) (bool, error) {
		arrived := g.census.arrived.Load() - before
		if arrived < uint64(n) && waited > harness.DrainTimeout {
			return false, fmt.Errorf("bench: %d of %d entities have come to life", arrived, n)
		}
		return arrived >= uint64(n), nil
	})
	return err
}

// measureActivation measures how many entities start in a second: it sends the first
// message to each of many ids.
func measureActivation(ctx context.Context, s harness.Spec, _ *harness.Link) (out figure.Outcome, err error) {
	g, err := startAllocatedNode(ctx)
	if err != nil {
		return out, err
	}
	defer dropNode(g.node)
	cpu, began := harness.CPUTime(), time.Now()
	if err := g.activate(ctx, "newcomer-", s.Senders, s.Entities); err != nil {
		return out, err
	}
	elapsed, cpu := time.Since(began), harness.CPUTime()-cpu
	return figure.Outcome{
		Values:     map[string]float64{"rate": float64(s.Entities) / elapsed.Seconds()},
		CPU:        harness.Microseconds(cpu) / float64(s.Entities),
		Duplicated: g.census.repeated.Load(),
	}, nil
}

// rest is how long after a burst of messages its goroutines have ended.
const rest = 3 * time.Second

// measureIdle measures what an idle entity costs: live heap and stacks, after a
// collection, before and after many entities were started.
func measureIdle(ctx context.Context, s harness.Spec, _ *harness.Link) (out figure.Outcome, err error) {
	g, err := startAllocatedNode(ctx)
	if err != nil {
		return out, err
	}
	defer dropNode(g.node)
	if err := harness.Pause(ctx, rest); err != nil {
		return out, err
	}
	before := memoryUsageNow()
	if err := g.activate(ctx, "newcomer-", s.Senders, s.Entities); err != nil {
		return out, err
	}
	if err := harness.Pause(ctx, rest); err != nil {
		return out, err
	}
	each := memoryUsageNow().each(before, s.Entities)
	return figure.Outcome{
		Values:     map[string]float64{"bytes": each.all(), "heap": each.heap},
		Duplicated: g.census.repeated.Load(),
	}, nil
}
