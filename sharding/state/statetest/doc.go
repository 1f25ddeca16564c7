// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package statetest has the conformance suite for stores of states, which the stores of this project
// pass too. The author of a store calls [Test] from a test:
//
//	func TestTheStoreKeepsTheContract(t *testing.T) {
//		statetest.Test(t, statetest.Place{New: func(t testing.TB) statetest.Server { ... }})
//	}
//
// First each rule of the store by itself; then many owners at once, of which most are replaced already,
// over a [Flaky] store. Where the time is that of package time, the parts may run in testing/synctest.
//
// The package has no state of its own.
package statetest
