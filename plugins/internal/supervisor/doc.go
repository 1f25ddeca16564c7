// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package supervisor decides when the process of a plugin is launched, asked for
// its health, replaced and killed.
//
// A [Machine] is fed what happened ([Input]) and the time, and answers with what
// is to be done ([Effect]). It starts no goroutine, reads no clock and touches no
// process, so that every order of events can be tried.
//
//	             Launched                    Exited, unhealthy
//	Starting ───────────────> Running ───────────────────────────┐
//	   ▲  │                      ▲                               │
//	   │  │ LaunchFailed         │ Swap: the new one is Launched  │
//	   │  └──────────┐           │ (from any state)              │
//	   │             ▼                                           │
//	   ├───────── Waiting <──────────────────────────────────────┤
//	   │  back-off       fewer than BreakerFailures in the window│
//	   │                                                         │
//	   └───────── Broken  <──────────────────────────────────────┘
//	     BreakerOpen       that many, or the one trial failed
//
// # Generations
//
// Each launch has a [Generation], a number that only grows. One generation at a
// time is active, which means that calls go to it. Inputs of generations that are
// no more are ignored, so answers may arrive in any order.
//
// # Swap
//
// [Swap] launches a generation with another [Spec] while the active one works on.
// When it is launched, and so checked, it becomes active in one effect
// ([Activate]), and the old one drains: it gets no new calls, and is killed when
// those in flight have ended, or after DrainLimit. If the launch fails, nothing
// has changed. If the old one dies meanwhile, it is restarted as always: the new
// one may fail yet.
//
// # Concurrency
//
// A machine has one owner. It keeps nothing of what it is given but errors.
//
// # Guarantees
//
//   - I1: a generation becomes active only after it was launched, and never after
//     its end or its Kill was ordered. At most one is active.
//   - I2: of one spec there is at most one process at a time: a restart waits for
//     the end of the old one.
//   - I3: after k failures in a row the next launch is BackoffMin·2^(k-1) later, but
//     at most BackoffMax; with BreakerFailures in BreakerWindow, or when a trial
//     has failed, it is BreakerOpen later. Except for swaps, which people order.
//   - I4: whenever nothing else will happen by itself, [Machine.Wake] names a time.
//   - I5: [Ended] comes once, after Stop or a failed first launch, when no process
//     is left.
//   - I6: each Swap is answered by one [Swapped].
package supervisor
