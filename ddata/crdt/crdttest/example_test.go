// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package crdttest_test

import (
	"maps"
	"testing"

	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/crdt/crdttest"
)

// Your own type passes the suite in a test: this is the body of func TestLaws(t *testing.T).
func ExampleTestLaws() {
	t := new(testing.T) // The parameter of the test.
	crdttest.TestLaws(t, crdttest.Subject[crdt.PNCounterMap[string]]{
		Mutate: func(src crdttest.Source, at crdt.Origin, v crdt.PNCounterMap[string]) crdt.PNCounterMap[string] {
			key := []string{"a", "b"}[src.IntN(2)]
			if src.IntN(4) == 0 {
				return v.Remove(key)
			}
			return v.Add(at, key, int64(src.IntN(9))-4)
		},
		Observe: func(v crdt.PNCounterMap[string]) any { return maps.Collect(v.All()) },
	})
}
