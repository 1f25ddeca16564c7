// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package leases holds a lease for each shard that a node hosts, where that is asked for: [Leases.Ask] and
// [Leases.Give] carry out what the control machine wants, by a keeper and a goroutine for each lease, which tells the
// machine when the lease is held and when it is lost.
//
//	Ask ──> asked again and again ──> held ──> lost, or Give
//	               Waits says why      │
//	                                   └─ each message of the shard asks the keeper, by the clock
//
// A lease is given back when its shard has stopped, and all of them at [Leases.End]; one that was not given back ends
// by itself.
package leases
