// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package area

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/bench/internal/rig"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/sharding"
)

// newcomer is an entity that counts its messages: about the least that an
// entity can be.
type newcomer struct{ n uint64 }

// newcomers counts the entities of a process.
type newcomers struct{ arrived, repeated atomic.Uint64 }

// kind describes entities that the census counts.
func (c *newcomers) kind() sharding.Kind[*rig.Message] {
	return sharding.Kind[*rig.Message]{
		Name: kindName, Codec: rig.Codec{},
		New: func(*sharding.Context) sharding.Entity[*rig.Message] { return &counted{census: c} },
	}
}

// counted is a newcomer that reports to the counters of its process.
type counted struct {
	newcomer

	census *newcomers
}

// Receive counts a message.
func (e *counted) Receive(*sharding.Context, *rig.Message) error {
	if e.n++; e.n == 1 {
		e.census.arrived.Add(1)
	} else {
		e.census.repeated.Add(1)
	}
	return nil
}

// ground is a node whose shards all have a home.
type ground struct {
	region *sharding.Region[*rig.Message]
	census *newcomers
	before uint64 // Entities that exist already.
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
		if err := g.region.Tell(ctx, prefix+strconv.Itoa(i), &rig.Message{Seq: 1}); err != nil {
			return fmt.Errorf("bench: the first message to %s%d: %w", prefix, i, err)
		}
	}
	return nil
}

// await waits until so many entities have come to life.
func (g *ground) await(ctx context.Context, n uint64) error {
	deadline := time.Now().Add(rig.DrainLimit)
	for g.census.arrived.Load() < n {
		if time.Now().After(deadline) {
			return fmt.Errorf("bench: %d of %d entities have come to life", g.census.arrived.Load(), n)
		}
		if err := rig.Pause(ctx, time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}
