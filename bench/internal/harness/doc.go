// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package harness runs benchmarks, whatever they measure: it has their processes, rates and latencies,
// and what the machine can do at most. It knows nothing of the toolkit.
//
// An [Experiment] is carried out in a process of its own, and its peers in others:
//
//	runner ── pipe ──> measuring process ── pipe ──> peers, one a node
//	   ^   one result          │    <── answers ──       │
//	   └───────────────────────┘                         │
//	                           └──── TCP on loopback ────┘
//
// All of them are the same program in a role, which a [Spec] on the command line names.
// A [Process] is a child as its parent sees it, a [Link] is the parent as its child sees
// it: requests are lines of text, answers are lines of JSON. A process whose standard
// input ends has lost its parent and ends too, so that nothing stays behind. Only
// processes that were started here are ever killed, and every wait has an end.
//
// A [Flood] has senders that send as fast as they can, an [Asking] has askers that wait
// for each answer. Both let a quarter of the measuring time pass first, take a [Mark] of
// the receivers at the beginning and at the end of the measuring time, and count what
// happened between the two. Marks carry the clock of the receiver, so that clocks of two
// processes are never compared.
//
// Each [Receiver] checks that the messages of each sender came once and in order, and a
// [Tally] adds up what the receivers of a process find. How many messages are lost is the
// difference between what the senders say they have sent and what was received.
//
// Floors ([Channel], [TCP], [GRPC], [TCPAsk], [GRPCAsk]) send the same messages with the
// same checks, with nothing in between except a channel, a TCP connection or a gRPC stream.
package harness
