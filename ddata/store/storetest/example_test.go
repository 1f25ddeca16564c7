// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package storetest_test

import (
	"math/rand/v2"
	"testing"

	"github.com/quorate/quorate/ddata/store"
	"github.com/quorate/quorate/ddata/store/storetest"
)

// A store of your own passes the suite in a test: this is the body of
// func TestContract(t *testing.T).
func ExampleTestStore() {
	t := new(testing.T) // The parameter of the test.
	storetest.TestStore(t, func(testing.TB) storetest.Open {
		return store.NewMemory(rand.NewPCG(1, 2)).Open
	})
}
