// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"errors"
	"fmt"
)

// The ways in which a message can fail. They are told apart because they differ
// in what a sender may do about them.
var (
	// ErrUnreachable: the home of the shard could not be reached, and the message
	// was never sent. Sending it again is safe.
	ErrUnreachable = errors.New("home of the shard is unreachable")
	// ErrOverloaded: a bounded queue on the way was full. The message was not
	// processed. Sending it again later is safe.
	ErrOverloaded = errors.New("overloaded")
	// ErrNotDelivered: the message was not processed and never will be. Sending
	// it again is safe.
	ErrNotDelivered = errors.New("not delivered")
	// ErrUnknownOutcome: the message was sent and the node that hosted the entity
	// is gone, or has not answered in time; it may or may not have been processed.
	// Sending it again is safe only when processing it twice is.
	ErrUnknownOutcome = errors.New("unknown outcome")
	// ErrEntityFailed: the entity could not be started, or failed while it
	// processed the message.
	ErrEntityFailed = errors.New("entity failed")
	// ErrNoStanding: this node may not host at present, because it does not hear
	// from enough others.
	ErrNoStanding = errors.New("node has no standing")
	// ErrExpired: the deadline of the message passed before an entity began to
	// process it. Sending it again is safe.
	ErrExpired = errors.New("deadline passed before the message was processed")
)

// Code is the form of an error on the wire. Values are never reused. The zero
// value says that there is none.
type Code uint8

// The codes.
const (
	CodeOK             Code = iota // No error.
	CodeUnreachable                // See [ErrUnreachable].
	CodeOverloaded                 // See [ErrOverloaded].
	CodeNotDelivered               // See [ErrNotDelivered].
	CodeUnknownOutcome             // See [ErrUnknownOutcome].
	CodeEntityFailed               // See [ErrEntityFailed].
	CodeNoStanding                 // See [ErrNoStanding].
	CodeExpired                    // See [ErrExpired].

	codeCount
)

// Codes is the number of values of [Code] that this version knows.
const Codes = int(codeCount)

// Err returns the sentinel of the code, nil for [CodeOK]. A code that this
// version does not know says nothing about what happened to the message, so it
// becomes an error that wraps [ErrUnknownOutcome].
func (c Code) Err() error {
	switch c {
	case CodeOK:
		return nil
	case CodeUnreachable:
		return ErrUnreachable
	case CodeOverloaded:
		return ErrOverloaded
	case CodeNotDelivered:
		return ErrNotDelivered
	case CodeUnknownOutcome:
		return ErrUnknownOutcome
	case CodeEntityFailed:
		return ErrEntityFailed
	case CodeNoStanding:
		return ErrNoStanding
	case CodeExpired:
		return ErrExpired
	default:
		return fmt.Errorf("code %d: %w", uint8(c), ErrUnknownOutcome)
	}
}

// String returns the text of the error, "ok" for [CodeOK].
func (c Code) String() string {
	if c == CodeOK {
		return "ok"
	}
	return c.Err().Error()
}

// SettingsError says that a region was refused because a setting of its kind
// differs from the coordinator's. All nodes must run a kind with equal settings:
// otherwise an entity could live in two shards.
type SettingsError struct {
	// Kind is the name of the kind.
	Kind string
	// Setting names the setting: "number-of-shards", "hash", "codec" or "role".
	Setting string
	// Coordinator and Region are the two values.
	Coordinator, Region string
}

// Error names the setting and both values.
func (e *SettingsError) Error() string {
	return fmt.Sprintf("kind %q: %s is %q here, but %q at the coordinator: all nodes need the same value",
		e.Kind, e.Setting, e.Region, e.Coordinator)
}
