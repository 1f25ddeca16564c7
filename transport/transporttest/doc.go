// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package transporttest holds the suite that every transport must pass, and
// what tests of transports have in common.
//
// An implementation provides a [World] and calls [Test]:
//
//	func TestConformance(t *testing.T) {
//		transporttest.Test(t, transporttest.Plain, func(t testing.TB) transporttest.World { ... })
//	}
//
// The suite waits for events, never for time, and passes in real time as well
// as in the bubbles of testing/synctest.
package transporttest
