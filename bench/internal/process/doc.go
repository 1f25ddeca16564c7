// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package process runs each experiment in a process of its own, and the peers of that
// process in others.
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
package process
