// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package allocationtest checks that an allocation strategy keeps the contract
// of package allocation.
//
// An author calls [TestStrategy] from a test of their own:
//
//	func TestContract(t *testing.T) {
//		allocationtest.TestStrategy(t, func(testing.TB) allocation.Strategy { return mine.New() })
//	}
//
// The suite draws requests from fixed seeds, so that a failure repeats. It
// starts goroutines only for the test of concurrent use, and waits for them.
package allocationtest
