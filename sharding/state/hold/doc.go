// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//quorate:core

// Package hold has the decisions of package state, without any input or output: [Hold] says what
// follows from the answers of a store to one instance of an entity, and [Queue] which requests go
// into one call. Package state carries them out against real stores; simulated worlds do so in virtual
// time, for which the package is public. Programs use package state.
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
//   - While a hold has not ended, what its instance knows of the record is what the store has, but for the write
//     that is under way.
//   - A hold that has ended stays so, and says why: [ErrFenced], [ErrForeign] or [ErrUnanswered].
//   - A call of [Queue] has each key once, and requests of one key in their order.
//
// # Limits
//
// The packages of Quorate alone are promised anything: the names may change in any release.
//
// # Concurrency
//
// Neither type is safe for concurrent use. Nothing here reads a clock.
package hold
