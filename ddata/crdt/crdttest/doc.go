// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package crdttest checks that a replicated type keeps the laws of package crdt.
//
// An author of a type calls [TestLaws] from a test, with the mutators of the type:
//
//	func TestPresenceKeepsTheLaws(t *testing.T) {
//		crdttest.TestLaws(t, crdttest.Subject[Presence]{
//			Mutate:  func(src crdttest.Source, at crdt.Origin, v Presence) Presence { return v.Seen(at, src.IntN(9)) },
//			Observe: func(v Presence) any { return v.Online() },
//		})
//	}
//
// The suite makes random histories of some replicas from fixed seeds, so that a failure
// repeats: replicas change their values, exchange whole values and deltas, some of which
// are lost, doubled or late. It starts no goroutine. [Check] runs one history from a
// source of the caller, for example one that shrinks.
package crdttest
