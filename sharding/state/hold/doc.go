// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//quorate:core

// Package hold has the decisions of package state, without any input or output: [Hold] says what follows from the
// answers of a store to one instance of an entity, and [Queue] which requests are made in one call of the store.
// Package state carries them out with real stores; simulations of other modules do so in virtual time, for which the
// package is public. Programs use package state.
//
// # Life cycle
//
//	            Claim                  Save
//	unclaimed ────────> held <──────────────────> saving
//	    │                 head = (own, expected version): done
//	    │ a higher owner, another version, out of time
//	    └────────────────> ended <───────────────────┘
//
// # Guarantees
//
//   - As long as a hold has not ended, the store has what the instance knows of the record, but for the write that is
//     under way.
//   - A hold that has ended stays so. Its error is [ErrFenced], [ErrForeign] or [ErrUnanswered].
//   - A call of [Queue] has at most one request for each key, and requests for one key are made in their order.
//
// # Limits
//
// The package is for the packages of Quorate: its names may change in any release.
//
// # Concurrency
//
// Neither type is safe for concurrent use. Nothing here reads a clock.
package hold
