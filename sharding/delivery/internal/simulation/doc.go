// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package simulation is a world in virtual time for deliveries: producers, which are the outbox of production, and
// entities, which are the inbox and Frame.Handle of production, over a network that loses, doubles, delays and reorders
// frames and acknowledgements. Entities restart with their memory (it is saved with each message) or without, stand
// still, close their window, and answer nonsense; producers restart with their queue or without. Where queues are
// files, disks fail, machines lose what was not synced, and messages hold what an attacker who knows all but the salt
// of the file takes for its records. Given a seed a run repeats to the byte.
//
// # What must hold
//
//   - D1: what was confirmed was handled.
//   - D2: an entity handles a message once as long as it remembers.
//   - D3: an entity handles what comes of one session in rising numbers as long as it remembers; if
//     the memory is saved and the producer has a queue, all of the producer in the order of its sends.
//   - D4: one frame at a time is under way to an entity, within what the entity has last allowed.
//   - D5: a producer holds no more than it may.
//   - D7: what was accepted, and not removed, is in the queue of a producer that begins again, in order, and besides
//     only what it has failed to keep or what a crash has brought back; a disk that fails is a typed error.
//   - D6: when the faults are over, what is held is confirmed soon, and nothing accepted by a producer with
//     a queue is missing.
package simulation
