// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip_test

import (
	"fmt"

	"github.com/quorate/quorate/gossip"
)

// Two nodes form a cluster: the first admits the second, both see the state,
// and the leader may act.
func Example() {
	a, _ := gossip.ParseNodeID("10.0.0.1:7946#a1")
	b, _ := gossip.ParseNodeID("10.0.0.2:7946#b2")

	atA := gossip.New(gossip.ClusterID{}).Edit(a, func(e *gossip.Edit) {
		e.SetCluster(gossip.ClusterID{Born: 1, Nonce: 7})
		e.Join(gossip.Member{Node: a})
		e.SetStatus(a, gossip.Up, 1)
	})
	atA = atA.Edit(a, func(e *gossip.Edit) { e.Join(gossip.Member{Node: b}) })

	atB := gossip.New(gossip.ClusterID{}).Merge(atA).See(b)
	atA = atA.Merge(atB)

	converged, _ := atA.Convergence(a, nil)
	fmt.Println(atA.Leader(a), converged)

	atA = atA.Edit(a, func(e *gossip.Edit) { e.SetStatus(b, gossip.Up, e.LastUpNumber()+1) })
	converged, why := atA.Convergence(a, nil)
	fmt.Println(converged, why)
	// Output:
	// 10.0.0.1:7946#a1 true
	// false not seen by 10.0.0.2:7946#b2
}

// A delta carries only what changed.
func ExampleState_DeltaTo() {
	a, _ := gossip.ParseNodeID("10.0.0.1:7946#a1")
	before := gossip.New(gossip.ClusterID{}).Edit(a, func(e *gossip.Edit) { e.Join(gossip.Member{Node: a}) })
	after := before.Edit(a, func(e *gossip.Edit) { e.AddService(3) })

	delta := after.DeltaTo(before.Digest())
	fmt.Println(delta.Full, len(delta.Edits), delta.Members[0].Services)

	applied, err := before.Apply(delta)
	fmt.Println(applied.Equal(after), err)
	// Output:
	// false 1 [3]
	// true <nil>
}

func ExampleCompareVersions() {
	fmt.Println(gossip.CompareVersions("1.0.0-RC1", "1.0.0"), gossip.CompareVersions("1.0.0+10-def", "1.0.0+3-abc"))
	// Output: -1 1
}

func ExampleWins() {
	a, _ := gossip.ParseNodeID("10.0.0.1:7946#a1")
	b, _ := gossip.ParseNodeID("10.0.0.2:7946#b2")
	side := func(id gossip.NodeID) bool { return id == a }
	fmt.Println(gossip.Wins([]gossip.NodeID{a, b}, side))
	// Output: true
}
