// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package supervisor decides when the process of a plugin is launched, asked for
// its health, replaced and killed.
//
// A [Machine] is a [machine.Machine]: from an event and the time it derives what is to be
// done. It starts no goroutine, reads no clock and touches no process, so that every
// order of events can be tried, and it runs in a simulated node as it does in a real one.
// Package host drives it with a [machine.Driver].
//
//	machine.Started, Fired, Called ─┐             ┌─> machine.Arm, Call   (driver)
//	Launched, LaunchFailed, Exited ─┼─> Machine ──┼─> Launch, Kill,
//	CallEnded, Drained, Swap, Stop ─┘             │   Activate, Drain     (who runs processes)
//	                                              └─> machine.Publish     (who subscribes)
//
// [machine.Started] begins the supervision. Health checks are calls; the machine bounds
// them by itself too, so that an answer that never comes does no harm.
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
// Each launch has a [Generation], a number that only grows. At most one generation at a
// time is active, which means that calls go to it. Inputs of generations that have ended
// are ignored, so answers may arrive in any order.
//
// # Swap
//
// [Swap] launches a generation with another [Spec] while the active one works on. When
// the new generation is launched, and so checked, it becomes active in one effect
// ([Activate]), and the old one drains: it gets no new calls, and is killed when those in
// flight have ended, or after DrainTimeout. If the launch fails, nothing has changed. If
// the old generation dies meanwhile, it is restarted as always: the new one may still
// fail.
//
// # Concurrency
//
// A machine has one owner. Of its inputs it keeps nothing but errors.
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
//   - I4: whenever nothing else will happen by itself, the timer is armed.
//   - I5: [Ended] is published once, after Stop or a failed first launch, when no process
//     is left.
//   - I6: each Swap is answered by one [Swapped].
//   - I7: a [View] that has changed is published before anything else of its step.
//   - I8: Loop of the view counts each failure after which the back-off has grown.
//   - I9: with Debug no process is killed for what it does not answer.
package supervisor
