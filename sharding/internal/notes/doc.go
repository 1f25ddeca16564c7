// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package notes counts and logs what may befall messages and shards by the hundred: [Lines] has a line for each kind
// and reason soon after the first event, and then once in a while with the number since; [Losses] are the tells that
// failed after they were accepted; [Forgeries] are frames in a name that is not the sender's, of which some turn out
// to have been in order.
//
// All types are safe for concurrent use. Whoever notes something may hold the lock of a slot: lines are written on
// other goroutines, of the Go runtime, for the time of a line each, and none any more after End.
package notes
