// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package discoverytest checks that an implementation keeps the contract of
// [discovery.Discovery].
//
// Call [TestDiscovery] from a test of the implementation:
//
//	func TestMyDiscoveryKeepsTheContract(t *testing.T) {
//		discoverytest.TestDiscovery(t, func(testing.TB) discovery.Discovery { return mine.New(server) })
//	}
//
// The suite starts goroutines that look up at the same time, and waits for them;
// it is most telling under the race detector.
package discoverytest
