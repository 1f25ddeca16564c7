// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"errors"
	"fmt"

	"github.com/quorate/quorate/sharding/state/hold"
	"github.com/quorate/quorate/sharding/state/store"
)

// The ways in which the record of an entity is lost to its instance, or cannot be used. The instance
// is stopped in each case, its replies do not leave, and the next instance begins with what the store
// has. Whether the last change is there says the table:
//
//	ErrFenced       perhaps: an attempt may have been written before the later owner came
//	ErrForeign      perhaps
//	ErrUnanswered   perhaps
//	ErrTooLarge     no
//	ErrInvalidKey   nothing was changed
//	ErrNewerForm    nothing was changed
//	ErrUnreadable   nothing was changed
var (
	// ErrFenced: a later owner has the record. This instance was replaced, whether its node knows
	// that or not.
	ErrFenced = hold.ErrFenced
	// ErrForeign: the record has changed under the name of this instance, without the instance. The
	// store does not keep its contract, was put back to an older state, or another program writes.
	ErrForeign = hold.ErrForeign
	// ErrUnanswered: the store has not answered within the limits, or the context has ended before.
	ErrUnanswered = hold.ErrUnanswered
	// ErrTooLarge: a state or an event has more bytes than the configuration allows.
	ErrTooLarge = errors.New("more bytes than may be saved")
	// ErrInvalidKey: a kind or an id is empty, too long or not UTF-8; see [store.Key].
	ErrInvalidKey = errors.New("a kind has 1 to 128 bytes and an id 1 to 1,024, of valid UTF-8")
	// ErrNewerForm: the record is in a form that this program does not know: a newer program has
	// written it.
	ErrNewerForm = errors.New("written in a newer form")
	// ErrUnreadable: the bytes of the record cannot be decoded.
	ErrUnreadable = errors.New("cannot be decoded")
)

// What a program has forgotten.
var (
	errNoStore  = errors.New("state: the store is nil")
	errNoKeeper = errors.New("state: the keeper is nil, as that of a node is whose states.store names no store")
)

// Error says which record could not be loaded or saved. It wraps one of the sentinels of this file,
// and what the store or the codec has said.
type Error struct {
	// Op is "load" or "save".
	Op  string
	Key store.Key
	// Owner is the instance that failed, and Found the head that the store has answered with; zero if
	// it has not answered.
	Owner store.Owner
	Found store.Head
	Err   error
}

// Error names the operation, the record and the cause; and the later owner, if there is one.
func (e *Error) Error() string {
	text := fmt.Sprintf("state: %s %v as %v: %v", e.Op, e.Key, e.Owner, e.Err)
	if e.Found != (store.Head{}) {
		text += fmt.Sprintf(": found version %d of %v", e.Found.Version, e.Found.Owner)
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
