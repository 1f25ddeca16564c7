// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package allocation_test

import (
	"context"
	"fmt"

	"github.com/quorate/quorate/allocation"
)

func Example() {
	strategy, err := allocation.New(allocation.Default())
	if err != nil {
		fmt.Println(err)
		return
	}
	request := allocation.AllocateRequest{
		Kind: "account",
		Regions: []allocation.RegionState{
			{ID: "10.0.0.1:7946#a1", Shards: []allocation.Shard{0, 1}},
			{ID: "10.0.0.2:7946#b2"},
			{ID: "10.0.0.3:7946#c3", Leaving: true},
		},
		Shards: []allocation.Pending{{Shard: 2}, {Shard: 3}, {Shard: 4}},
	}
	result, err := strategy.Allocate(context.Background(), request)
	if err == nil {
		err = allocation.CheckAllocate(&request, &result)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range result.Placements {
		fmt.Printf("shard %d -> %s (%s)\n", p.Shard, p.Region, p.Reason)
	}
	// Output:
	// shard 2 -> 10.0.0.2:7946#b2 (least-shard: its share is 3 of 5 shards on 2 regions)
	// shard 3 -> 10.0.0.2:7946#b2 (least-shard: its share is 3 of 5 shards on 2 regions)
	// shard 4 -> 10.0.0.2:7946#b2 (least-shard: its share is 3 of 5 shards on 2 regions)
}

func ExampleLeastShard_DecideRebalance() {
	least, err := allocation.NewLeastShard(allocation.Default().LeastShard)
	if err != nil {
		fmt.Println(err)
		return
	}
	result := least.DecideRebalance(allocation.RebalanceRequest{
		Kind: "account",
		Regions: []allocation.RegionState{
			{ID: "10.0.0.1:7946#a1", Shards: []allocation.Shard{7, 3, 5, 1}},
			{ID: "10.0.0.2:7946#b2"},
		},
		Fitness: allocation.Fitness{OneVersion: true, NoneUnreachable: true, NoneJoining: true},
		Budget:  allocation.Budget{Simultaneous: 10},
	})
	fmt.Println(result.Reason)
	for _, m := range result.Moves {
		fmt.Println(m.Shard, m.From, "->", m.To)
	}
	// Output:
	// least-shard: 1 of 4 shards move, 1 remain out of balance
	// 7 10.0.0.1:7946#a1 -> 10.0.0.2:7946#b2
}

func ExampleConsistentHashing_DecideAllocate() {
	hashing, err := allocation.NewConsistentHashing(allocation.Default().ConsistentHashing)
	if err != nil {
		fmt.Println(err)
		return
	}
	request := allocation.AllocateRequest{Regions: []allocation.RegionState{{ID: "10.0.0.1:7946#a1"}, {ID: "10.0.0.2:7946#b2"}, {ID: "10.0.0.3:7946#c3"}}}
	for shard := range allocation.Shard(12) {
		request.Shards = append(request.Shards, allocation.Pending{Shard: shard})
	}
	before := hashing.DecideAllocate(request)
	request.Regions = request.Regions[:2] // The third goes; its shards alone get other homes.
	for i, p := range hashing.DecideAllocate(request).Placements {
		if was := before.Placements[i].Region; was != p.Region {
			fmt.Printf("shard %d: %s -> %s\n", p.Shard, was, p.Region)
		}
	}
	// Output:
	// shard 6: 10.0.0.3:7946#c3 -> 10.0.0.2:7946#b2
	// shard 7: 10.0.0.3:7946#c3 -> 10.0.0.2:7946#b2
	// shard 9: 10.0.0.3:7946#c3 -> 10.0.0.2:7946#b2
}

// A round of the older least-shard: the fullest region gives the emptiest what exceeds the
// threshold.
func ExampleLeastShardThreshold_DecideRebalance() {
	strategy, err := allocation.NewLeastShardThreshold(allocation.ThresholdConfig{RebalanceThreshold: 2, MaxSimultaneousRebalance: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	result := strategy.DecideRebalance(allocation.RebalanceRequest{
		Regions: []allocation.RegionState{{ID: "a", Shards: []allocation.Shard{4, 2, 3, 1}}, {ID: "b", Shards: []allocation.Shard{5}}},
		Fitness: allocation.Fitness{OneVersion: true, NoneUnreachable: true, NoneJoining: true},
		Budget:  allocation.Budget{Simultaneous: 10},
	})
	for _, m := range result.Moves {
		fmt.Printf("shard %d: %s -> %s\n", m.Shard, m.From, m.To)
	}
	fmt.Println(result.Reason)
	// Output:
	// shard 1: a -> b
	// least-shard-threshold: the fullest region exceeds the emptiest by 3 shards, 1 move
}

// A region is much busier than the others: three of its shards bring all of them within a tenth of
// a region of the mean.
func ExampleLoadAware_DecideRebalance() {
	strategy, err := allocation.NewLoadAware(allocation.Default().LoadAware)
	if err != nil {
		fmt.Println(err)
		return
	}
	request := allocation.RebalanceRequest{
		Regions: []allocation.RegionState{{ID: "a", Load: 0.9}, {ID: "b", Load: 0.3}, {ID: "c", Load: 0.3}},
		Fitness: allocation.Fitness{OneVersion: true, NoneUnreachable: true, NoneJoining: true},
		Budget:  allocation.Budget{Simultaneous: 10},
	}
	for shard := range allocation.Shard(30) {
		at := &request.Regions[shard/10]
		at.Shards = append(at.Shards, shard)
	}
	result := strategy.DecideRebalance(request)
	for _, m := range result.Moves {
		fmt.Printf("shard %d: %s -> %s\n", m.Shard, m.From, m.To)
	}
	fmt.Println(result.Moves[0].Reason)
	fmt.Println(result.Reason)
	// Output:
	// shard 0: a -> b
	// shard 1: a -> c
	// shard 2: a -> b
	// load-aware: 1.00 of its part is in use here, 0.40 there; the mean is 0.60
	// load-aware: 3 of 30 shards move; the mean use is 0.60, and 0 regions are then not within 0.10 of it
}

// A program says where a shard should live; the coordinator moves it there.
func ExampleExternal() {
	locations := new(allocation.LocationTable)
	strategy, err := allocation.NewExternal(allocation.Default().LeastShard, locations)
	if err != nil {
		fmt.Println(err)
		return
	}
	locations.Put("orders", 7, "10.0.0.2:7946")
	result, err := strategy.Rebalance(context.Background(), allocation.RebalanceRequest{
		Kind:    "orders",
		Regions: []allocation.RegionState{{ID: "10.0.0.1:7946#a1", Shards: []allocation.Shard{6, 7}}, {ID: "10.0.0.2:7946#b2"}},
		Budget:  allocation.Budget{Simultaneous: 10},
	})
	fmt.Println(result.Moves, err)
	// Output:
	// [{7 10.0.0.1:7946#a1 10.0.0.2:7946#b2 external: its location is there}] <nil>
}
