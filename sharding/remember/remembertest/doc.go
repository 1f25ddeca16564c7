// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package remembertest checks that a store of remembered entities keeps the contract of [remember.Store]:
//
//	func TestTheStoreKeepsTheContract(t *testing.T) {
//		remembertest.Test(t, remembertest.Place{New: func(t testing.TB) remembertest.Server {
//			return remembertest.Server{Store: open(t)}
//		}})
//	}
//
// The suite has its own kinds, whose names begin with "remembertest". It starts goroutines, which end with each part.
package remembertest
