// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package shutdown ends a program in phases that share one deadline.
//
// An orchestrator that ends a process waits for a time and then kills it: Kubernetes for 30 s. What has to happen
// in that time has an order: be unready, so that nobody sends more; let requests end; hand over and leave the
// cluster; close what entities have used. Each step by itself with a time of its own is too long together, or too
// short alone. So phases share one deadline, and each keeps back what those behind it need at least.
//
// # Life cycle
//
// [New] makes a sequence of phases, [Sequence.Add] gives a phase a task, also while the program runs, and
// [Sequence.Run] runs all of them, once. A phase begins when those that it comes after are over, and is over when
// all its tasks have returned, or when its time is. Tasks of one phase run beside each other, and so do
// phases of which neither comes after the other.
//
// # Guarantees
//
//   - Run returns within the deadline, whatever tasks do, and within a moment if they heed their contexts.
//   - Each task is called at most once, and never after the deadline. A task that fails, panics or does not return
//     keeps no later phase from running.
//   - The context of a task ends before the time that later phases keep back.
//   - The [Report] names each task that has failed, that has not returned, and that was not begun; the log does when it
//     happens, and every five seconds what is waited for.
//
// # Limits
//
// A task that does not return when its context ends cannot be ended: it goes on until the process ends.
package shutdown
