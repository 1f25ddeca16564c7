// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package protocol decides for the keeper of one lease: when the store is asked, what its
// answers mean, and above all when the lease has ended by the holder's own clock. A [Core]
// reads no clock, calls no store and starts no goroutine: inputs and the time go in, at most
// one question to the store comes out.
//
// The safety argument is in DESIGN.md of the module, section "Leases".
package protocol
