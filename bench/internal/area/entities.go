// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package area

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/rig"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/sharding"
)

// Entities by the number, first the table: how many come to life in a second ([measureActivation]), and how many
// bytes each one holds that has nothing to do ([measureIdle]). All shards have a home before an experiment begins
// ([crowd]), so that nothing of their allocation is measured.

// activationGroup is the first message to each of many entities.
func activationGroup() rig.Group {
	return rig.Group{
		Name: "activation", About: "first message to each of 400,000 entities, 4 senders",
		Experiments: []rig.Experiment{
			rig.ChannelFloor(),
			{Measure: measureActivation, Spec: rig.Spec{Senders: rig.Senders, Entities: 400_000}, Figures: []figure.Figure{
				{Name: "activations", Value: "rate", Unit: "1/s", Better: figure.Higher, Target: 400e3, Floors: []string{"floor-channel"}},
			}},
		},
	}
}

// idleGroup is the memory of entities that have nothing to do.
func idleGroup() rig.Group {
	return rig.Group{
		Name: "idle", About: "live heap and stack of each of 1,000,000 idle entities",
		Experiments: []rig.Experiment{{Measure: measureIdle, Spec: rig.Spec{Senders: rig.Senders, Entities: 1_000_000}, Figures: []figure.Figure{
			{Name: "entity-bytes", Value: "bytes", Unit: "B", Better: figure.Lower, Target: 250},
			{Name: "entity-heap-bytes", Value: "heap", Unit: "B", Better: figure.Lower},
		}}},
	}
}

// rememberedGroup is the time until remembered entities run after a restart of all, and the memory that takes.
func rememberedGroup() rig.Group {
	spec := rig.Spec{Entities: 1_000_000}
	bounded := spec
	bounded.Rate = 100_000
	moved := spec
	moved.Before = 700
	recovery := func(s rig.Spec, suffix string) rig.Experiment {
		return rig.Experiment{Measure: measureRemembered, Spec: s, Figures: []figure.Figure{
			{Name: "recovery" + suffix, Value: "seconds", Unit: "s", Better: figure.Lower},
			{Name: "recovery-peak-bytes" + suffix, Value: "peak", Unit: "B", Better: figure.Lower},
			{Name: "remembered-bytes" + suffix, Value: "bytes", Unit: "B", Better: figure.Lower},
		}}
	}
	return rig.Group{
		Name: "remembered", About: "1,000,000 remembered entities run again after a restart of all",
		Experiments: []rig.Experiment{recovery(spec, ""), recovery(bounded, "-bounded"), recovery(moved, "-resharded")},
	}
}

// remindersGroup is what very many reminders take, and how late those are that fall due among them.
func remindersGroup() rig.Group {
	return rig.Group{
		Name: "reminders", About: "1,000,000 reminders: set, kept, and some that fall due among them", Optional: true,
		Experiments: []rig.Experiment{{Measure: measureReminders, Spec: rig.Spec{Entities: 1_000_000}, Figures: []figure.Figure{
			{Name: "set", Value: "set", Unit: "1/s", Better: figure.Higher},
			{Name: "recovery", Value: "recovery", Unit: "s", Better: figure.Lower},
			{Name: "reminder-bytes", Value: "bytes", Unit: "B", Better: figure.Lower},
			{Name: "late-p50", Value: "p50", Unit: "ms", Better: figure.Lower},
			{Name: "late-p99", Value: "p99", Unit: "ms", Better: figure.Lower},
		}}},
	}
}

// newcomers counts the entities of a process.
type newcomers struct{ arrived, repeated atomic.Uint64 }

// kind describes entities that the census counts.
func (c *newcomers) kind() sharding.Kind[*rig.Message] {
	return sharding.Kind[*rig.Message]{
		Name: kindName, Codec: rig.Codec{},
		New: func(*sharding.Context) sharding.Entity[*rig.Message] { return &newcomer{census: c} },
	}
}

// newcomer is an entity that counts its messages, about the least that an entity can be, and reports to the
// counters of its process.
type newcomer struct {
	n      uint64
	census *newcomers
}

// Receive counts a message.
func (e *newcomer) Receive(*sharding.Context, *rig.Message) error {
	if e.n++; e.n == 1 {
		e.census.arrived.Add(1)
	} else {
		e.census.repeated.Add(1)
	}
	return nil
}

// ground is a node whose shards all have a home.
type ground struct {
	node   *cluster.Node
	region *sharding.Region[*rig.Message]
	census newcomers
}

// settlers is how many entities touch every shard: with the default number of
// shards the chance that one is missed is below one in ten thousand.
const settlers = 20_000

// crowd starts a node and has all shards allocated.
func crowd(ctx context.Context) (g *ground, err error) {
	g = new(ground)
	if g.node, err = startNode(ctx, nil, nil); err != nil {
		return nil, err
	}
	if g.region, err = sharding.Start(g.node, g.census.kind()); err != nil {
		return nil, err
	}
	return g, g.activate(ctx, "settler-", 1, settlers)
}

// activate brings n entities to life and waits until all of them live.
func (g *ground) activate(ctx context.Context, prefix string, senders, n int) error {
	before := g.census.arrived.Load()
	err := rig.Together(senders, func(sender int) error {
		for i := sender; i < n; i += senders {
			if err := g.region.Tell(ctx, prefix+strconv.Itoa(i), &rig.Message{Seq: 1}); err != nil {
				return fmt.Errorf("bench: the first message to %s%d: %w", prefix, i, err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	_, err = rig.Poll(ctx, time.Millisecond, func(waited time.Duration) (bool, error) {
		arrived := g.census.arrived.Load() - before
		if arrived < uint64(n) && waited > rig.DrainLimit {
			return false, fmt.Errorf("bench: %d of %d entities have come to life", arrived, n)
		}
		return arrived >= uint64(n), nil
	})
	return err
}

// measureActivation measures how many entities start in a second: it sends the first
// message to each of many ids.
func measureActivation(ctx context.Context, s rig.Spec, _ *rig.Link) (out figure.Outcome, err error) {
	g, err := crowd(ctx)
	if err != nil {
		return out, err
	}
	defer dropNode(g.node)
	cpu, began := rig.CPUTime(), time.Now()
	if err := g.activate(ctx, "newcomer-", s.Senders, s.Entities); err != nil {
		return out, err
	}
	elapsed, cpu := time.Since(began), rig.CPUTime()-cpu
	return figure.Outcome{
		Values:     map[string]float64{"rate": float64(s.Entities) / elapsed.Seconds()},
		CPU:        rig.Microseconds(cpu) / float64(s.Entities),
		Duplicated: g.census.repeated.Load(),
	}, nil
}

// rest is how long after a burst of messages its goroutines have ended.
const rest = 3 * time.Second

// measureIdle measures what an idle entity costs: live heap and stacks, after a
// collection, before and after many entities were started.
func measureIdle(ctx context.Context, s rig.Spec, _ *rig.Link) (out figure.Outcome, err error) {
	g, err := crowd(ctx)
	if err != nil {
		return out, err
	}
	defer dropNode(g.node)
	if err := rig.Pause(ctx, rest); err != nil {
		return out, err
	}
	before := footprintNow()
	if err := g.activate(ctx, "newcomer-", s.Senders, s.Entities); err != nil {
		return out, err
	}
	if err := rig.Pause(ctx, rest); err != nil {
		return out, err
	}
	each := footprintNow().each(before, s.Entities)
	return figure.Outcome{
		Values:     map[string]float64{"bytes": each.all(), "heap": each.heap},
		Duplicated: g.census.repeated.Load(),
	}, nil
}
