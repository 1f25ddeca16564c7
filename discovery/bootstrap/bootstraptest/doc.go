// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package bootstraptest checks that an implementation keeps the contract of
// [bootstrap.JoinDecider].
//
// Call [TestJoinDecider] from a test of the implementation:
//
//	func TestMyDeciderKeepsTheContract(t *testing.T) {
//		bootstraptest.TestJoinDecider(t, func(testing.TB) bootstrap.JoinDecider { return mine.New() })
//	}
//
// A decider that panics or hangs fails the part of the suite that it is in, and no other.
//
// The package has no state. [Random] may be called from any goroutine, with a generator of
// the caller's own.
package bootstraptest
