// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package wire turns the requests and answers of strategies into messages of the
// contract with plugins and back.
//
//	downing.View ── ViewToProto ──▶ DowningDecideRequest ── ViewFromProto ──▶ downing.View
//	                                                                             │
//	downing.Decision ◀── DecisionFromProto ── DowningDecideResponse ◀── DecisionToProto
//
// and the same for the two calls of an allocation strategy. Conversion is where
// limits are kept: a message that was received is checked before anything is
// allocated in proportion to what it says. Errors match [ErrMalformed] and name
// the field.
//
// What the contract does not carry is lost on purpose: the protocols, services and
// settings of members, the versions of complaints, and the reasons of moves in
// flight.
//
// # Lifecycle and concurrency
//
// Nothing here keeps state. All functions are pure and may be called from any
// goroutine. Views and requests share strings and role lists with the messages
// they came from, and the other way round; nobody modifies either.
package wire
