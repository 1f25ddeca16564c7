// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package trial tries a plugin out before a cluster asks it: by the conformance kit, and in the
// simulated worlds that try Quorate itself.
//
// # Checks
//
// A [Check] is one row of the report. Its name says where it comes from:
//
//	start            the handshake, the settings, one decision            every policy
//	kit/...          a part of plugins/plugintest, or of its suite        every policy
//	sim/every-fault  every split, crash and edit of a small cluster       downing
//	sim/partitions   what the sides of random partitions decide           downing
//	sim/chaos-7      random faults over 7 nodes                           downing
//	sim/split-9      splits in two and three over 9 nodes                 downing
//	sim/chaos-50     random faults over 50 nodes                          downing
//	sim/allocation   entities of 6 nodes that come and go                 allocation
//	sim/bootstrap    nodes that find each other, wrongly for long         join-decider, discovery
//	trace/...        answers to heartbeats, beside phi-accrual            failure-detector
//
// The checks of sim run seed after seed until their time is over, one seed at least; sim/every-fault and
// sim/partitions have a number of their own. A check
// fails when the run is violated, and when the plugin does not answer a question, or answers it
// against its contract, although the cluster would go on without that answer. A trace has figures
// and fails only without an answer: how many false marks are too many is the reader's to say.
//
// What a discovery method finds are real addresses: each of them stands for a node of the simulated
// cluster. So the check needs settings with which some are found, and fails when they change all the time.
//
// # Lifecycle
//
// [Plugin.Run] runs the checks one after the other, in the order above, and reports each when it
// is done. It ends the plugin's processes; cut short by its context it leaves none. The kit is
// code of tests: it runs in a process of its own, which is the calling program again (package kittest).
//
// # Limits
//
// The plugin runs outside of the simulated time: a world waits for it in real time, and a run is
// a function of its seed only as far as the answers are. A plugin that asks a service of its own
// needs that service while it is tried.
package trial
