// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"errors"
	"fmt"

	"github.com/quorate/quorate/config/field"
)

var (
	// ErrUnknown is wrapped by the error of [Keeper.Acquire] if the time was over before the
	// store gave an answer that decides: the lease may be free, held by this keeper as far as
	// the store knows, or held by another. Whoever needs it asks again.
	ErrUnknown = errors.New("whether the lease is free is unknown")
	// ErrClosed is returned by a [Keeper] that was closed.
	ErrClosed = errors.New("the keeper of the lease is closed")
	// ErrNotTold is wrapped by the error of [Keeper.Release] and [Keeper.Close] if the lease is
	// no longer held here, and the store could not be told: it keeps others out until its time
	// is over.
	ErrNotTold = errors.New("the store could not be told that the lease is free")
	// ErrStuck is wrapped by the error of [Keeper.Close] if the store has not returned from a
	// call although the context of the call has ended; the goroutine of the call remains.
	ErrStuck = errors.New("the store does not return")
)

// RefusedError says who has the lease.
type RefusedError struct {
	Name   string // of the lease
	Holder string // as the store names it
}

// Error implements error.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("the lease %q is held by %q", e.Name, field.Clip(e.Holder))
}
