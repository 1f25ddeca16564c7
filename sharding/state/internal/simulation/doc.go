// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package simulation is a world in virtual time for the state of entities: owners that freeze, crash and
// are replaced without knowing it, over a store that loses answers, is late by half a minute, takes a
// part of a call, or is down. What decides there is what decides in production, package hold; the
// store is package memory. Given a seed a run repeats to the byte.
//
// # What must hold
//
// A [History] has what clients have asked and heard; it is compared with what the store has in the end:
//
//   - S1: a change that was acknowledged is there.
//   - S2: each change is there once at most, however often it was sent to the store.
//   - S3: a change that was acknowledged before another was asked for stands before it.
//   - S4: a state that was read is the beginning of what the store has in the end: nobody has seen what
//     did not stay.
//
// The [World] looks at each call of the store besides:
//
//   - S5: a record is changed only by the owner that is the highest of all that have claimed it.
//   - S6: the owner of a record that answers from memory has in memory what the store has.
//   - S7: when the faults are over, the rightful owner of every record can write.
//
// Together S1 to S4 say that the changes of a record are linearizable; what an owner reads that was
// replaced may be old. Package statetest has the same history kept of real stores.
package simulation
