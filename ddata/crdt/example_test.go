// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package crdt_test

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/ddata/crdt"
)

// Two nodes change a set at the same time. Adding wins over the removal that has not seen
// it, whatever is merged first.
func ExampleORSet() {
	const here, there = crdt.Origin(1), crdt.Origin(2)
	a := crdt.ORSet[string]{}.Add(here, "apple").Add(here, "pear")
	b := crdt.ORSet[string]{}.Merge(a).Add(there, "apple")
	a = a.Remove("apple")

	fmt.Println(slices.Collect(a.All()))
	fmt.Println(slices.Collect(a.Merge(b).All()))
	fmt.Println(slices.Collect(b.Merge(a).All()))
	// Output:
	// [pear]
	// [apple pear]
	// [apple pear]
}

// A replica tells others what it has added, and keeps the settled value.
func ExampleDiffer() {
	const here = crdt.Origin(1)
	mine := crdt.PNCounter{}.Add(here, 40)
	theirs := mine.Settled()

	mine = mine.Settled().Add(here, 3).Add(here, -1)
	delta, changed := mine.Delta()
	mine = mine.Settled()

	fmt.Println(changed, theirs.Merge(delta).Value(), mine.Value())
	// Output: true 42 42
}

// Values in a map are changed by their own mutators.
func ExampleORMap_Update() {
	const here = crdt.Origin(1)
	var carts crdt.ORMap[string, crdt.PNCounterMap[string]]
	carts = carts.Update(here, "ann", func(c crdt.PNCounterMap[string]) crdt.PNCounterMap[string] {
		return c.Add(here, "tea", 2).Add(here, "milk", 1)
	})
	for name, cart := range carts.All() {
		for item, n := range cart.All() {
			fmt.Println(name, item, n)
		}
	}
	// Output:
	// ann milk 1
	// ann tea 2
}

// A replicator does not know the Go types of the values that it holds.
func ExampleTypeOf() {
	types := map[string]crdt.Type{}
	for _, kind := range append(crdt.Builtin(), crdt.TypeOf[crdt.ORSet[uint16]]()) {
		types[kind.Name()] = kind
	}
	kind := types["orset[uint16]"]
	raw, err := kind.Append(nil, crdt.ORSet[uint16]{}.Add(1, 7).Add(1, 9))
	if err != nil {
		fmt.Println(err)
		return
	}
	value, err := kind.Decode(raw)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(slices.Collect(value.(crdt.ORSet[uint16]).All()))
	// Output: [7 9]
}
