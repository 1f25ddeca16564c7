// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package locations

import (
	"errors"
	"fmt"

	"github.com/quorate/quorate/allocation"
)

// ErrInvalid is wrapped by the error about a location that nothing can have: a kind that does not run on the node
// asked, a shard that the kind has not, an address that is none. Nothing has changed.
var ErrInvalid = errors.New("locations: invalid")

// UnconfirmedError says that locations of some shards may or may not have changed: too few replicas
// have answered in time, or the data refuses the change. To repeat the call is safe: to set twice is
// to set once. Those that are not among Shards have changed.
type UnconfirmedError struct {
	Kind   string
	Shards []allocation.Shard // Sorted.
	Err    error              // The first reason: an error of package ddata, or that of the context.
}

// Error says how many shards it is about, and why.
func (e *UnconfirmedError) Error() string {
	return fmt.Sprintf("locations: kind %q: %d shards, the first of them %d, are not confirmed, repeat the call: %v", e.Kind, len(e.Shards), e.Shards[0], e.Err)
}

// Unwrap returns the reason.
func (e *UnconfirmedError) Unwrap() error { return e.Err }

// UnreadError says that locations could not be read.
type UnreadError struct {
	Kind string
	Err  error // The first reason: an error of package ddata, or that of the context.
}

// Error says why.
func (e *UnreadError) Error() string {
	return fmt.Sprintf("locations: kind %q: cannot be read: %v", e.Kind, e.Err)
}

// Unwrap returns the reason.
func (e *UnreadError) Unwrap() error { return e.Err }
