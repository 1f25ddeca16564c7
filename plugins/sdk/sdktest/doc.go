// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package sdktest serves a strategy over the wire inside a test, so that the tests of a
// strategy also run as a cluster would ask it: with settings, over gRPC, its answers
// checked.
//
//	func TestContractOverTheWire(t *testing.T) {
//		downingtest.TestProvider(t, func(tb testing.TB) downing.Provider {
//			return sdktest.Downing(tb, sdk.Downing(newWitness), map[string]any{"url": url})
//		})
//	}
//
// Servers and connections are closed with the test. No process is started and no port is
// opened.
package sdktest
