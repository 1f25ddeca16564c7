// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package simulation is a world in virtual time for reminders: buckets that move, freeze, crash and are
// replaced without knowing it, over a store that loses calls and answers, is late by half a minute, or
// is down; entities that do not acknowledge; wall clocks that jump. What decides there is what decides
// in production, packages buckets and hold; the store is package memory. Given a seed a run repeats to
// the byte.
//
// # What must hold
//
//   - M1: a reminder begins to fire when the wall clock of its node shows its time or later; an
//     occurrence of one that repeats is a whole number of its periods after the first.
//   - M2: after a change was acknowledged, the owner of the bucket begins nothing of what was before.
//     (An owner that was replaced and does not know it may; what it begins is counted.)
//   - M3: what was acknowledged is what the owner lists in the end, whatever crashed or moved.
//   - M4: a reminder that was acknowledged and is due reaches its entity; and when the faults are over,
//     within [Bound] of its time, of its acknowledgement or of their end.
//   - M5: when the faults are over, one that its entity has acknowledged does not fire again, and one
//     that repeats fires once in each period.
//   - M6: what is under way, or acknowledged and not saved, stays within its bound; in the end the
//     owners hold the reminders that there are, and no others.
//   - M7: when the faults are over, changes are answered.
package simulation
