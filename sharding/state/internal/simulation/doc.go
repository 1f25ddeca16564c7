// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package simulation is a world in virtual time for the state of entities: owners that freeze, crash and are replaced
// without knowing it, over a store that loses answers, is late by half a minute, takes a part of a call, or is down.
// The decisions are those of production, by package hold; the store is package memory. Two runs with the same seed are
// equal.
//
// # What must hold
//
// A [History] has what clients have asked for and were answered; it is compared with what the store has in the end:
//
//   - S1: a change that was acknowledged is there.
//   - S2: each change is there once at most, however often it was sent to the store.
//   - S3: a change that was acknowledged before another one was asked for comes before it.
//   - S4: a state that was read is the beginning of what the store has in the end: no read has returned a
//     change that was lost.
//
// The [World] also checks each call of the store:
//
//   - S5: a record is changed only by the owner that is the highest of all that have claimed it.
//   - S6: the owner of a record that answers from memory has in memory what the store has.
//   - S7: when the faults are over, the rightful owner of every record can write.
//
// Together S1 to S4 say that the changes of a record are linearizable; an owner that was replaced may read an old
// state. Package statetest keeps the same history with real stores.
package simulation
