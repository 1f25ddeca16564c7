// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package singleton_test

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/membership/singleton"
)

// Two nodes follow the same states: the older one starts the instance, the younger one
// when the older one is removed and fenced.
func Example() {
	older, younger := node(1), node(2)
	state := gossip.New(gossip.ClusterID{Born: 1, Nonce: 1}).Edit(older, func(e *gossip.Edit) {
		for _, id := range []gossip.NodeID{older, younger} {
			e.Join(gossip.Member{Node: id})
			e.SetStatus(id, gossip.Up, e.LastUpNumber()+1)
		}
	})
	var fences component.Fences // Of the second node; the first one hears of none.
	first, second := singleton.New(singleton.Config{}, new(component.Fences)), singleton.New(singleton.Config{}, &fences)
	var now machine.Instant
	var one, two singleton.Actions
	first.Update(now, older, state, &one)
	second.Update(now, younger, state, &two)
	fmt.Println(first.Phase(), one.Start.Compare(singleton.Term{}) > 0, second.Phase(), two.Start.Compare(singleton.Term{}) > 0)

	state = state.Edit(younger, func(e *gossip.Edit) {
		e.SetStatus(older, gossip.Down, 0)
		e.Remove(older, time.Unix(0, 0))
	})
	second.Update(now, younger, state, &two)
	fmt.Println(second.Phase())
	fences.Add(older)
	second.Fenced(now, older, &two)
	fmt.Println(second.Phase(), two.Start.Compare(one.Start) > 0)
	// Output:
	// oldest true younger false
	// younger
	// oldest true
}
