// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package downingtest checks that a downing provider keeps the contract of
// package downing.
//
// An author calls [TestProvider] from a test of their own:
//
//	func TestContract(t *testing.T) {
//		downingtest.TestProvider(t, func(testing.TB) downing.Provider { return mine.New() })
//	}
//
// The suite draws views from fixed seeds, so that a failure repeats. It starts
// goroutines only for the test of concurrent use, and waits for them.
package downingtest
