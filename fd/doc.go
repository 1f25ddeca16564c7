// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package fd judges from heartbeats whether a remote node is alive, and decides
// which node monitors which.
//
// # Use
//
// A [Detector] judges one node. It is told when answers arrive and is asked for
// a verdict:
//
//	d, err := fd.NewPhiAccrual(fd.Default())
//	...
//	d.Heartbeat(now)          // an answer arrived
//	alive := d.Available(now) // is the node believed to be alive
//
// A [Registry] holds one detector for each monitored node, adds the bounds of
// silence and the rule for a node that never answers, and returns the next moment at
// which a verdict changes. A [Ring] says to which nodes a node sends its heartbeats.
// A [Judge] is the batch form of a detector, for detectors that live in another
// process.
//
// # The verdict
//
//	             Heartbeat                         silence passes the limit
//	  unknown  ------------->  available  --------------------------------->  unavailable
//	(available)                  ^    |                                            |
//	                             |____| Heartbeat                                  |
//	                             ^                                                 |
//	                             '------------------- Heartbeat -------------------'
//
// [Bounded] keeps the limit between two bounds, because suspicion alone has
// none: the less regular the answers were, the longer phi waits.
//
//	0 --------------- MinSilence ~~~~~~~~~~~~~~~~ MaxSilence --------> silence
//	    available      |   the detector decides   |   unavailable
//
// # Lifecycle and concurrency
//
// Everything here is a plain value: no goroutine, no lock, no clock, no I/O.
// Time is an argument. Only differences between times are used, so the times may
// come from a monotonic clock with any origin, or from virtual time. A detector,
// a registry and a judge have one owner at a time; a [Ring] is immutable and may
// be shared. Nothing needs to be closed.
//
// # Guarantees
//
//   - I11: phi is finite, at least zero, does not decrease while no answer
//     arrives, and falls below every allowed threshold when one does.
//   - With [Bounds], no verdict turns to unavailable before MinSilence after the
//     last answer, and every verdict has turned at MaxSilence.
//   - [Bounded.Limit] is exact to the nanosecond, and agrees with Available.
//   - [Registry.Due] names a node that has passed its limit until its caller has
//     acted on it, however late it is asked.
//   - The order of everything that is returned is a function of the inputs.
//
// # Non-guarantees
//
// No failure detector is both complete and accurate in an asynchronous network:
// a verdict is a suspicion, never a fact. A paused node is judged as a dead one
// is. The verdict of one node about another says nothing of what a third one
// sees. What follows from a verdict is decided elsewhere.
package fd
