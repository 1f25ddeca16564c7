// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package producer decides for a producer of package delivery: how many messages it may hold, what goes
// to which entity when, what an answer confirms, and when something is sent again. An outbox is a plain
// value: it is told the time, draws from the source that it was given, and carries nothing out.
//
//	Reserve ─> Put ─> (ready) ──Next──> (under way) ──Answered──> (ready), or gone when all is confirmed
//	                    ^                    │ Unanswered, or an answer without progress
//	                    └─────── (paused) <──┘
//
// # Invariants
//
//   - C1: one frame at a time is under way to an entity, and it begins with the first message that is
//     not confirmed. So the first message of a frame is seen only by an entity that has handled, in one
//     of its lives, all messages before it.
//   - C2: a frame has at most as many messages as the last answer has allowed, and at most one after a
//     call without an answer. The first frame for an entity for which nothing was held has one.
//   - C3: messages and bytes that are held are bounded; so are frames under way.
//   - C4: a message leaves by a confirmation alone. A confirmation of what its frame has not is refused.
package producer
