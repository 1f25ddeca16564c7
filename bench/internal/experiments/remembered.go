// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"cmp"
	"context"
	"fmt"
	"runtime/metrics"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/harness"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/epoch"
	"github.com/quorate/quorate/sharding/remember"
	"github.com/quorate/quorate/sharding/state/memory"
	"github.com/quorate/quorate/sharding/state/shardlog"
)

// measureRemembered measures how long it takes until all entities run that a store remembers, when the whole
// cluster, here a node, starts anew; and how much memory the process has meanwhile, beside what it had before
// the kind began. The store is in memory: what a database takes to read a few thousand rows comes on top.
func measureRemembered(ctx context.Context, s harness.Spec, _ *harness.Link) (out figure.Outcome, err error) {
	node, err := startNode(ctx, nil, func(cfg *cluster.Config) { cfg.Sharding.Remember.RecoveryRate = s.Rate })
	if err != nil {
		return out, err
	}
	defer dropNode(node)
	ids, err := remembering(ctx, cmp.Or(s.Before, cluster.Default().Sharding.NumberOfShards), s.Entities)
	if err != nil {
		return out, err
	}
	census := &entityCounts{}
	kind := census.kind()
	kind.Remember = ids
	empty := memoryUsageNow()
	before, peak := float64(inUse()), 0.0
	cpu, began := harness.CPUTime(), time.Now()
	if _, err := sharding.Start(node, kind); err != nil {
		return out, err
	}
	_, err = harness.Poll(ctx, 20*time.Millisecond, func(time.Duration) (bool, error) {
		peak = max(peak, float64(inUse()))
		return running(node) >= s.Entities, nil
	})
	elapsed, cpu := time.Since(began), harness.CPUTime()-cpu
	if err != nil {
		return out, fmt.Errorf("%d of %d entities run: %w", running(node), s.Entities, err)
	}
	n := float64(s.Entities)
	return figure.Outcome{
		Values: map[string]float64{
			"seconds": elapsed.Seconds(), "peak": (peak - before) / n, "bytes": memoryUsageNow().each(empty, s.Entities).all(),
		},
		CPU: harness.Microseconds(cpu) / n,
	}, nil
}

// running returns how many entities a node has, as the counters of its shards say.
func running(node *cluster.Node) (n int) {
	shards, err := node.Sharding().Shards(kindName)
	if err != nil {
		return 0
	}
	for _, s := range shards {
		n += s.Entities
	}
	return n
}

// inUse returns the memory that the process has from the system.
func inUse() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64() - s[1].Value.Uint64()
}

// remembering returns a store that has so many ids, each with its shard of a number of shards.
func remembering(ctx context.Context, shards, n int) (*shardlog.Store, error) {
	store, err := shardlog.New(memory.New(), shardlog.Default())
	if err != nil {
		return nil, err
	}
	of := make([][]string, shards)
	for i := range n {
		id := fmt.Sprintf("entity-%029d", i)
		at := xxhash.Sum64String(id) % uint64(shards)
		of[at] = append(of[at], id)
	}
	for i, ids := range of {
		if err := put(ctx, store, remember.Shard{Kind: kindName, Number: i, Of: shards}, ids); err != nil {
			return nil, err
		}
	}
	return store, put(ctx, store, remember.Shard{Kind: kindName}, []string{strconv.Itoa(shards)})
}

// put puts ids into a set.
func put(ctx context.Context, store *shardlog.Store, of remember.Shard, ids []string) error {
	set, _, err := store.Open(ctx, of, epoch.Epoch{Born: 1})
	if err != nil {
		return err
	}
	return set.Change(ctx, ids, nil)
}
