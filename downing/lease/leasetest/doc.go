// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package leasetest has the conformance suite for stores of leases, which the stores of this
// project pass too. The author of a store calls [Test] from a test:
//
//	func TestTheStoreKeepsTheContract(t *testing.T) {
//		leasetest.Test(t, leasetest.Place{TTL: 3 * time.Second, New: func(t testing.TB) leasetest.Server { ... }})
//	}
//
// A part of the suite needs time to pass in the store. Where the time is that of package time,
// and the test runs in testing/synctest, none of it is real; elsewhere [Parallel] has the parts
// wait at the same time.
package leasetest
