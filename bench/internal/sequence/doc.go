// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package sequence checks that every message came once and in order.
//
// A [Tally] adds up what the receivers of one process find. Each [Receiver] checks the
// numbers of several senders, which begin at 1 and rise by 1. The number of lost messages
// is not known here: it is the difference between what a sender says it has sent and the
// number of received messages.
//
// Throughput counts checked messages. Receivers do not share a cache line for counting,
// or the check would be what is measured.
package sequence
