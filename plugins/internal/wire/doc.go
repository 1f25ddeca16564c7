// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package wire has what the messages of all policies share: limits, tables, and the
// manifest of a plugin.
//
// Limits are kept in the conversions: a received message is checked before anything is
// allocated in proportion to what it declares. Errors match [ErrMalformed] and name the
// field. The messages of one policy are converted in the package of that policy.
//
// # Lifecycle and concurrency
//
// Only tables have state, and each belongs to the message that is being written. All
// functions are pure and may be called from any goroutine.
package wire
