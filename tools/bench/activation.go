// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/sharding"
)

// newcomer is an entity that counts its messages: about the least that an
// entity can be.
type newcomer struct{ n uint64 }

// newcomers is the census of a process.
type newcomers struct{ arrived, repeated atomic.Uint64 }

// kind describes entities that the census counts.
func (c *newcomers) kind() sharding.Kind[*message] {
	return sharding.Kind[*message]{
		Name: kindName, Codec: codec{},
		New: func(*sharding.Context) sharding.Entity[*message] { return &counted{census: c} },
	}
}

// counted is a newcomer that reports to a census.
type counted struct {
	newcomer

	census *newcomers
}

// Receive counts.
func (e *counted) Receive(*sharding.Context, *message) error {
	if e.n++; e.n == 1 {
		e.census.arrived.Add(1)
	} else {
		e.census.repeated.Add(1)
	}
	return nil
}

// measureActivation is how many entities a second come to life: the first
// message to each of many ids.
func measureActivation(ctx context.Context, s spec, _ *link) (outcome, error) {
	settled, node, census, err := crowd(ctx)
	if err != nil {
		return outcome{}, err
	}
	defer drop(node)
	cpu, began := cpuTime(), time.Now()
	if err := settled.activate(ctx, s.Senders, s.Entities); err != nil {
		return outcome{}, err
	}
	elapsed, cpu := time.Since(began), cpuTime()-cpu
	return outcome{
		Values:     map[string]float64{"rate": float64(s.Entities) / elapsed.Seconds()},
		CPU:        microseconds(cpu) / float64(s.Entities),
		Duplicated: census.repeated.Load(),
	}, nil
}

// measureIdle is what an entity costs that has nothing to do: live heap and
// stacks, after a collection, before and after so many came to life.
func measureIdle(ctx context.Context, s spec, _ *link) (outcome, error) {
	settled, node, census, err := crowd(ctx)
	if err != nil {
		return outcome{}, err
	}
	defer drop(node)
	if err := pause(ctx, rest); err != nil {
		return outcome{}, err
	}
	heap, stack := live()
	if err := settled.activate(ctx, s.Senders, s.Entities); err != nil {
		return outcome{}, err
	}
	if err := pause(ctx, rest); err != nil {
		return outcome{}, err
	}
	heapNow, stackNow := live()
	n := float64(s.Entities)
	return outcome{
		Values: map[string]float64{
			"bytes": (heapNow + stackNow - heap - stack) / n,
			"heap":  (heapNow - heap) / n,
		},
		Duplicated: census.repeated.Load(),
	}, nil
}

// rest is how long after a burst of messages the goroutines are gone that served it.
const rest = 3 * time.Second

// live returns the bytes of live heap and of stacks.
func live() (heap, stack float64) {
	runtime.GC()
	runtime.GC() // What finalizers and pools let go in the first.
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc), float64(m.StackInuse)
}

// ground is a node whose shards all have a home.
type ground struct {
	region *sharding.Region[*message]
	census *newcomers
	before uint64 // Entities that live already.
}

// settlers is how many entities touch every shard: with the default number of
// shards the chance that one is missed is below one in ten thousand.
const settlers = 20_000

// crowd starts a node and has all shards allocated.
func crowd(ctx context.Context) (*ground, *cluster.Node, *newcomers, error) {
	node, err := startNode(ctx, nil, nil)
	if err != nil {
		return nil, nil, nil, err
	}
	census := new(newcomers)
	region, err := sharding.Start(node, census.kind())
	if err != nil {
		return nil, nil, nil, err
	}
	g := &ground{region: region, census: census}
	if err := g.tell(ctx, "settler-", 0, settlers, 1); err != nil {
		return nil, nil, nil, err
	}
	if err := g.await(ctx, settlers); err != nil {
		return nil, nil, nil, err
	}
	g.before = settlers
	return g, node, census, nil
}

// activate brings n entities to life and waits until all of them live.
func (g *ground) activate(ctx context.Context, senders, n int) error {
	failed := make(chan error, senders)
	var telling sync.WaitGroup
	// Owned by activate, which waits for them: they end when all are told.
	for i := range senders {
		telling.Go(func() { failed <- g.tell(ctx, "newcomer-", i, n, senders) })
	}
	telling.Wait()
	close(failed)
	for err := range failed {
		if err != nil {
			return err
		}
	}
	return g.await(ctx, g.before+uint64(n))
}

// tell sends the first message to every step-th id from first on.
func (g *ground) tell(ctx context.Context, prefix string, first, n, step int) error {
	for i := first; i < n; i += step {
		if err := g.region.Tell(ctx, prefix+strconv.Itoa(i), &message{seq: 1}); err != nil {
			return fmt.Errorf("bench: the first message to %s%d: %w", prefix, i, err)
		}
	}
	return nil
}

// await waits until so many entities have come to life.
func (g *ground) await(ctx context.Context, n uint64) error {
	deadline := time.Now().Add(drainLimit)
	for g.census.arrived.Load() < n {
		if time.Now().After(deadline) {
			return fmt.Errorf("bench: %d of %d entities have come to life", g.census.arrived.Load(), n)
		}
		if err := pause(ctx, time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}
