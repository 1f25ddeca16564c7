// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package bench measures what a cluster does in a second, and what the machine
// could do at most. [Main] is the program; see its help for how to call it.
//
// # What is measured
//
// An experiment measures one or more figures. It is given as many runs as the
// user wants, three at least unless told otherwise, each in a process of its
// own: what one run leaves behind in memory does not help or hurt the next. The
// median counts.
//
// Beside the figures of the product stand its floors: the same work done by a
// goroutine and a channel, by a raw TCP connection, by a raw gRPC stream. Floors
// and figures take turns,
//
//	run 1:  floor, figure, floor, figure ...
//	run 2:  floor, figure, floor, figure ...
//
// so that a slow minute of the machine slows both. The ratio of the two is what
// can be compared between machines. A figure whose floor moved by more than a
// fifth between its runs is marked as unstable: the machine was busy.
//
// Latencies are measured on the machine as it is and, where the system can do it, a
// second time with its processors kept awake by a process that gives way to any other.
//
// # Correct first
//
// Every message carries its sender and a sequence number, and is checked by the
// entity that receives it. Throughput counts messages that were received and
// found in order. What was lost, doubled or out of order is part of the result;
// anything but zero ends the program with an error.
//
// # Processes
//
//	runner ── pipe ──> measuring process ── pipe ──> peers, one a node
//	   ^   one result          │    <── answers ──       │
//	   └───────────────────────┘                         │
//	                           └──── TCP on loopback ────┘
//
// All of them are the same program with a role. A process whose standard input
// ends has lost its parent and ends too, so that nothing stays behind. Only
// processes that were started here are ever killed. Every wait has an end.
package bench
