// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package broker is the machine of a client that is no member: which node gets which request, what is sent
// again, and how each request ends.
//
//	Submit ──> waiting ──> queued at a node ──> Take: written ──> Heard ──> ended
//	              ^              │                    │
//	              └── Down ──────┘                    └── Down ──> ended: unknown outcome
//
// A request that no node has had is given to another one when its node is gone. One that has been written
// is not, unless the node says that nobody has handled it. So nothing is handled twice.
//
// The machine is stepped by whoever has something for it, one at a time. It reads no clock, starts no
// goroutine and does no I/O: what is to be done stands in the [Output] of a step.
package broker
