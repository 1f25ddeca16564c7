// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//quorate:core

// Package hold has the decisions of package state, without any input or output: [Hold] says what
// follows from the answers of a store to one instance of an entity, and [Queue] which requests go
// into one call. Package state carries them out against real stores; its world does so in virtual
// time.
//
//	            Claim                  Save
//	unclaimed ────────> held <──────────────────> saving
//	    │                 head = (own, expected version): done
//	    │ a higher owner, another version, out of time
//	    └────────────────> ended <───────────────────┘
//
// Neither type is safe for concurrent use. Nothing here reads a clock.
package hold
