// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package measure measures rates and latencies.
//
// A [Flood] has senders that send as fast as they can, an [Asking] has askers that wait
// for each answer. Both let a quarter of the measuring time pass first, take a [Mark] of
// the receivers at the beginning and at the end of the measuring time, and count what
// happened between the two. The sending and the receiving side may be two processes:
// marks carry the clock of the receiver, so that clocks are never compared.
//
// Everything here belongs to the goroutine that calls it, except for the functions that
// are given to Flood and Asking, which are called by one goroutine for each sender.
package measure
