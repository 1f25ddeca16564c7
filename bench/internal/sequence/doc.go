// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package sequence checks that every message came once and in order.
//
// A [Tally] adds up what the receivers of one process find. Each [Receiver] checks the
// numbers of several senders, which begin at 1 and rise by 1. What has not come is not
// known here: a sender knows how many it has sent, and the difference to the number of
// received messages is what was lost.
//
// Throughput counts messages that were checked. Counting does not share a cache line
// between receivers, or the check would be what is measured.
package sequence
