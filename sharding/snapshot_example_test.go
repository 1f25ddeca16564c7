// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/sharding"
)

// basket counts what a customer wants to buy. It is not saved anywhere: after a crash the customer
// begins anew. When the shard moves in order the basket goes along.
type basket struct{ items map[string]int }

// Receive puts one of an article into the basket, and replies how many there are.
func (b *basket) Receive(c *sharding.Context, article *wrapperspb.StringValue) error {
	if b.items == nil {
		b.items = make(map[string]int)
	}
	b.items[article.GetValue()]++
	return c.Reply(wrapperspb.Int64(int64(b.items[article.GetValue()])))
}

// Snapshot returns the basket for the next home.
func (b *basket) Snapshot(*sharding.Context) ([]byte, error) { return json.Marshal(b.items) }

// Restore takes the basket over. Those of other versions of the program come here too while nodes are
// updated: what it does not understand it refuses, and the customer begins anew.
func (b *basket) Restore(_ *sharding.Context, snapshot []byte) error {
	return json.Unmarshal(snapshot, &b.items)
}

// An entity takes its memory along: the old home asks for it after the last message and Stop, and the
// new home restores another instance from it before Start and the first message.
func ExampleSnapshotter() {
	kind := sharding.Kind[*wrapperspb.StringValue]{
		Name: "basket", New: func(*sharding.Context) sharding.Entity[*wrapperspb.StringValue] { return new(basket) },
	}
	before, after := kind.New(nil).(*basket), kind.New(nil).(*basket)
	before.items = map[string]int{"apple": 2}

	snapshot, err := before.Snapshot(nil) // On the old home.
	fmt.Println(string(snapshot), err)
	err = after.Restore(nil, snapshot) // On the new one.
	fmt.Println(after.items, err)
	// Output:
	// {"apple":2} <nil>
	// map[apple:2] <nil>
}

var _ sharding.Snapshotter = (*basket)(nil)
