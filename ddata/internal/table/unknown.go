// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"errors"
	"fmt"
)

// ErrUnknown is returned, wrapped, when an entry or a change has a value that this node
// cannot read.
var ErrUnknown = errors.New("a value that this node cannot read")

// Unknown stands for the value of an entry, or the delta of a change, of another replica that this node cannot read.
// The Type of the entry or change is nil.
type Unknown struct {
	// Name is the name of the type.
	Name string
	// Err says why a value of a type that this node knows cannot be read. It is nil if this
	// node does not know the type.
	Err error
}

// Reason returns why the value cannot be read, as an error that wraps [ErrUnknown].
func (u Unknown) Reason() error {
	if u.Err != nil {
		return fmt.Errorf("%w: type %s: %w", ErrUnknown, u.Name, u.Err)
	}
	return fmt.Errorf("%w: this node has no type %s", ErrUnknown, u.Name)
}

// unknown returns the reason of an [Unknown], nil for any other value.
func unknown(v any) error {
	if u, ok := v.(Unknown); ok {
		return u.Reason()
	}
	return nil
}
