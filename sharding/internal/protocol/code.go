// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import "fmt"

// Code says what became of a message. There is a code for each kind of failure after which the sender may do something
// else. Values are those of the wire, and never reused.
type Code uint8

// The codes.
const (
	// CodeOK: the message did not fail.
	CodeOK Code = iota
	// CodeUnreachable: the home of the shard could not be reached, and the message was
	// never sent. Sending it again is safe.
	CodeUnreachable
	// CodeOverloaded: a bounded queue on the way was full. The message was not
	// processed. Sending it again later is safe.
	CodeOverloaded
	// CodeNotDelivered: the message was not processed and never will be. Sending it
	// again is safe.
	CodeNotDelivered
	// CodeUnknownOutcome: the message was sent and the node that hosted the entity is
	// gone, or has not answered in time; it may or may not have been processed. Sending
	// it again is safe only when processing it twice is.
	CodeUnknownOutcome
	// CodeEntityFailed: the entity could not be started, or failed while it processed
	// the message.
	CodeEntityFailed
	// CodeNoStanding: this node may not host at present, because it has no answers from enough others.
	CodeNoStanding
	// CodeExpired: the deadline of the message passed before an entity began to process
	// it. Sending it again is safe.
	CodeExpired

	codeCount
)

// Codes is the number of values of [Code] that this version knows.
const Codes = int(codeCount)

// String says what happened, for people. A code that this version does not know counts as an unknown outcome.
func (c Code) String() string {
	switch c {
	case CodeOK:
		return "ok"
	case CodeUnreachable:
		return "home of the shard is unreachable"
	case CodeOverloaded:
		return "overloaded"
	case CodeNotDelivered:
		return "not delivered"
	case CodeUnknownOutcome:
		return "unknown outcome"
	case CodeEntityFailed:
		return "entity failed"
	case CodeNoStanding:
		return "node has no standing"
	case CodeExpired:
		return "deadline passed before the message was processed"
	default:
		return fmt.Sprintf("code %d: %v", uint8(c), CodeUnknownOutcome)
	}
}
