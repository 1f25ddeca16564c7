// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package wire has what the messages of all policies share: limits, tables, and
// what a plugin says about itself.
//
// Conversion is where limits are kept: a message that was received is checked before
// anything is allocated in proportion to what it says. Errors match [ErrMalformed] and
// name the field. The messages of one policy are converted in the package of that policy.
//
// # Lifecycle and concurrency
//
// Nothing here keeps state but the tables, each of which belongs to the message being
// written. All functions are pure and may be called from any goroutine.
package wire
