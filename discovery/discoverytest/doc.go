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
// That suite needs one state of the source only. [TestSource] has more to check, if the
// test can make the source of the method empty, large, failing or silent:
//
//	func TestMyDiscoveryKeepsTheContract(t *testing.T) {
//		discoverytest.TestSource(t, discoverytest.Source{
//			Holding: func(t testing.TB, n int) discovery.Discovery { return mine.New(serverWith(t, n)) },
//			Failing: func(t testing.TB) discovery.Discovery { return mine.New(serverThatFails(t)) },
//			Silent:  func(t testing.TB) discovery.Discovery { return mine.New(serverThatHangs(t)) },
//		})
//	}
//
// A method that keeps its answer current by itself gives another answer some time after its
// source has changed: [AwaitTargets] and [AwaitError] wait for it.
//
// A lookup that panics or hangs fails the test that it is in, and no other.
//
// The suite starts goroutines that look up at the same time, and waits for them;
// it is most telling under the race detector.
package discoverytest
