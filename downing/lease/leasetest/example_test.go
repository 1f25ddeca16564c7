// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package leasetest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/downing/lease"
	"github.com/quorate/quorate/downing/lease/leasetest"
	"github.com/quorate/quorate/downing/lease/memory"
)

// Your own store passes the suite in a test: this is the body of func
// TestTheStoreKeepsTheContract(t *testing.T).
func ExampleTest() {
	t := new(testing.T) // The parameter of the test.
	leasetest.Test(t, leasetest.Place{
		TTL: 30 * time.Second,
		New: func(testing.TB) leasetest.Server {
			s := memory.New()
			return leasetest.Server{Open: func(testing.TB) lease.Store { return s }}
		},
		Run: func(t *testing.T, name string, part func(t *testing.T)) { // In virtual time.
			t.Helper()
			t.Run(name, func(t *testing.T) { synctest.Test(t, part) })
		},
	})
}
