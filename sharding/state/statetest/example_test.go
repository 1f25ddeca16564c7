// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package statetest_test

import (
	"testing"

	"github.com/quorate/quorate/sharding/state/memory"
	"github.com/quorate/quorate/sharding/state/statetest"
)

// Your own store passes the suite in a test: this is the body of func
// TestTheStoreKeepsTheContract(t *testing.T).
func ExampleTest() {
	t := new(testing.T) // The parameter of the test.
	statetest.Test(t, statetest.Place{
		New: func(testing.TB) statetest.Server { return statetest.Server{Store: memory.New()} },
	})
}
