// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package remembertest_test

import (
	"testing"

	"github.com/quorate/quorate/sharding/remember"
	"github.com/quorate/quorate/sharding/remember/remembertest"
)

// open opens the store that is tested, with a directory of the test for its files.
func open(dir string) (remember.Store, error) { panic("not yet: " + dir) }

// The suite runs over a store: this is the body of func TestTheStoreKeepsTheContract(t *testing.T).
func ExampleTest() {
	t := new(testing.T) // The parameter of the test.
	remembertest.Test(t, remembertest.Place{New: func(t testing.TB) remembertest.Server {
		store, err := open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		return remembertest.Server{Store: store}
	}})
}
