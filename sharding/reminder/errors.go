// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package reminder

import (
	"errors"
	"fmt"

	"github.com/quorate/quorate/sharding/reminder/internal/buckets"
)

// What a call may end with, besides the errors of [sharding.Ask]. All but ErrUnknown say that nothing
// was changed. Every call may be repeated: to set or cancel a reminder twice is to do it once.
var (
	// ErrInvalid: what was asked for is not possible; the error says why. A retry is of no use.
	ErrInvalid = errors.New("invalid")
	// ErrFull: the entity has 256 reminders, or its page has no room. Cancel some.
	ErrFull = errors.New("no room")
	// ErrUnavailable: the store does not answer, or what it has of the entity's page cannot be read;
	// or the bucket moves. The error says which. A retry helps when that is over.
	ErrUnavailable = errors.New("not available")
	// ErrUnknown: the store has not answered in time. The change may be there, or may come.
	ErrUnknown = errors.New("perhaps changed")
)

// Error says which call has failed, and why. It wraps one of the sentinels of this file, or the error of
// [sharding.Ask].
type Error struct {
	Op       string // "set", "cancel" or "list".
	Kind, ID string
	Name     string // Empty for "list".
	Detail   string // More about the cause, for people; may be empty.
	Err      error
}

// Error names the call, the reminder and the cause.
func (e *Error) Error() string {
	of := fmt.Sprintf("%s %q", short(e.Kind), short(e.ID))
	if e.Name != "" {
		of = fmt.Sprintf("%q of %s", short(e.Name), of)
	}
	text := fmt.Sprintf("reminder: %s %s: %v", e.Op, of, e.Err)
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// short cuts a name that may be invalid, and of any length.
func short(name string) string {
	const most = 64
	if len(name) > most {
		return name[:most] + "..."
	}
	return name
}

// errorOf returns the error of an answer; nil if all went well.
func errorOf(a buckets.Answer) error {
	switch a.Code {
	case buckets.OK:
		return nil
	case buckets.Full:
		return ErrFull
	case buckets.Invalid:
		return ErrInvalid
	case buckets.Unavailable:
		return ErrUnavailable
	default:
		return ErrUnknown
	}
}
