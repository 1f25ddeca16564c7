// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package background runs a function as an entity that needs no message: what packages singleton and
// daemon have in common. Each instance of the function is a permanent entity, whose start begins a goroutine that calls
// the function, and whose stop ends its context and waits for it.
//
// # Life cycle
//
//	the instance lives here      the context ends, and Run is waited for
//	(not here) ───────> running ───────> (not here)
//	     here again ^     │ an error, a panic
//	                └── resting, as an entity does after failures
//
// # Guarantees
//
//   - The context of Run has ended before another node starts the instance: a call of its Err or Done that begins later
//     finds it ended.
//   - Each start of an instance has an epoch above those of all its earlier ones in the cluster.
//
// # Limits
//
// A function that goes on after its context has ended runs beside its successor, and nothing but the
// epoch tells the two apart.
package background
