// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package clustertest_test

import (
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/sharding"
)

// Entities of a node that is killed live on elsewhere: this is the body of func
// TestCountersOutliveTheirNode(t *testing.T).
func ExampleStart() {
	t := new(testing.T) // The parameter of the test.
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		counters := clustertest.StartKind(c, counters())
		c.Kill(counters.Home("visits"))
		if _, err := sharding.Ask[number](t.Context(), counters.Any(), "visits", wrapperspb.Int64(2)); err != nil {
			t.Fatal(err)
		}
	})
}

// One entity is tested without other nodes: this is the body of func
// TestACounterAddsUp(t *testing.T).
func ExampleNewEntity() {
	t := new(testing.T) // The parameter of the test.
	synctest.Test(t, func(t *testing.T) {
		e := clustertest.NewEntity(clustertest.Start(t, 1), counters(), "visits")
		e.Tell(wrapperspb.Int64(2))
		if sum, err := clustertest.Ask[number](e, wrapperspb.Int64(3)); err != nil || sum.GetValue() != 5 {
			t.Fatal(sum, err)
		}
	})
}
