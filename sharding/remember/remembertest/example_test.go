// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package remembertest_test

import (
	"testing"

	"github.com/quorate/quorate/sharding/remember/remembertest"
	"github.com/quorate/quorate/sharding/remember/shardlog"
	"github.com/quorate/quorate/sharding/state/memory"
)

// The suite runs over a store: this is the body of func TestTheStoreKeepsTheContract(t *testing.T).
func ExampleTest() {
	t := new(testing.T) // The parameter of the test.
	remembertest.Test(t, remembertest.Place{New: func(t testing.TB) remembertest.Server {
		store, err := shardlog.New(memory.New(), shardlog.Default())
		if err != nil {
			t.Fatal(err)
		}
		return remembertest.Server{Store: store}
	}})
}
