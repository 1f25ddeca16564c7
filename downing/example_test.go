// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package downing_test

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
)

func Example() {
	provider, err := downing.New(downing.Default())
	if err != nil {
		fmt.Println(err)
		return
	}
	// Nodes a and b cannot reach c any more.
	a, b, c := node("a"), node("b"), node("c")
	view := downing.View{
		Self: a,
		Members: []*gossip.Member{
			{Node: a, Status: gossip.Up, UpNumber: 1},
			{Node: b, Status: gossip.Up, UpNumber: 2},
			{Node: c, Status: gossip.Up, UpNumber: 3},
		},
		Unreachable: []gossip.Record{
			{Observer: a, Subject: c, Status: gossip.Unreachable, Version: 1},
			{Observer: b, Subject: c, Status: gossip.Unreachable, Version: 1},
		},
		Seen: []gossip.NodeID{a, b},
		Base: gossip.Base{{a, b, c}},
	}
	decision, err := provider.Decide(context.Background(), view)
	if err == nil {
		err = downing.Check(view, provider.Class(), decision)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(decision.Verdict, decision.Down)
	fmt.Println(decision.Reason)
	// Output:
	// keep-side [c:7946#1]
	// keep-majority: this side has 2 of 3 voters; downed are 1 lost and 0 indirectly connected
}

func node(host string) gossip.NodeID {
	return gossip.NodeID{Address: gossip.Address{Host: host, Port: 7946}, UID: 1}
}

func ExampleStableAfter() {
	fmt.Println(downing.StableAfter(5, 3*time.Second, 5*time.Second, 3*time.Second))
	fmt.Println(downing.StableAfter(1000, 3*time.Second, 5*time.Second, 3*time.Second))
	// Output:
	// 3s
	// 3.2s
}
