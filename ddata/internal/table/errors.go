// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"errors"
	"fmt"

	"github.com/quorate/quorate/ddata/crdt"
)

// Errors that callers branch on.
var (
	// ErrConflict is returned by Commit when the entry has changed.
	ErrConflict = errors.New("the entry has changed meanwhile")
	// ErrKey is returned, wrapped, for a key that is empty, longer than [MaxKey] bytes,
	// not UTF-8, or has characters that do not print.
	ErrKey = errors.New("invalid key")
	// ErrDeleted is returned for an update of a key that is deleted and not swept yet.
	ErrDeleted = errors.New("the key is deleted")
	// ErrTooLarge is returned, wrapped, for a value over the maximum.
	ErrTooLarge = errors.New("the value is too large")
	// ErrFull is returned, wrapped, when the table would pass its maximum.
	ErrFull = errors.New("the table is full")
	// ErrFunction is returned, wrapped, when an update function has failed, beside
	// its error; or when it has panicked, or returned a value of another type or one that
	// cannot be encoded.
	ErrFunction = errors.New("the update function failed")
	// ErrValue is returned, wrapped, when a type panics over a value, or an entry or a
	// change is not one that a table makes.
	ErrValue = errors.New("invalid value")
	// ErrExhausted is returned for an update when the replica has no life left for the key
	// (see [Owner]): it has to take another name.
	ErrExhausted = errors.New("the origin has no life left for the key")
)

// TypeError is returned when a value of another type is under the key.
type TypeError struct {
	Key  string
	Have string // The name of the type that is there.
	Got  string // The name of the type that was given.
}

// Error names the key and both types.
func (e *TypeError) Error() string {
	return fmt.Sprintf("key %q holds a %s, not a %s", e.Key, e.Have, e.Got)
}

var _ error = (*TypeError)(nil)

func typeError(key string, have, got crdt.Type) error {
	return &TypeError{Key: key, Have: have.Name(), Got: got.Name()}
}
