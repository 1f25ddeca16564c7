// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"context"
	"time"
)

// bound is a context that looks, at each look at it, whether what it is bound to still holds.
type bound struct {
	context.Context //nolint:containedctx // It ends with this context, and is what derived ones hear of.

	parent context.Context //nolint:containedctx // Is looked at too: the embedded context hears of its end, and does not look.
	end    context.CancelCauseFunc
	holds  func() bool // Nil: always.
	why    error       // The cause with which the context ends when holds says no.
}

// New returns a context that ends with its parent, when the returned function is called, and when holds says no: then
// with the cause why, or [context.Canceled] if that is nil. The function has to be called, since it frees what the
// context uses; later calls change nothing. Holds is called at each look, on any goroutine; it must not block, nor look
// at the context. Nil stands for one that always says yes.
func New(parent context.Context, holds func() bool, why error) (context.Context, context.CancelCauseFunc) {
	inner, end := context.WithCancelCause(parent)
	return &bound{inner, parent, end, holds, why}, end
}

// WithCancel is [context.WithCancelCause] for a parent that looks: the context looks as well.
func WithCancel(parent context.Context) (context.Context, context.CancelCauseFunc) {
	return New(parent, nil, nil)
}

// WithTimeout is [context.WithTimeout] for a parent that looks: the context looks as well.
func WithTimeout(parent context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	outer, end := New(parent, nil, nil)
	inner, cancel := context.WithTimeout(outer, limit)
	return &bound{inner, outer, end, nil, nil}, func() {
		cancel()
		end(nil)
	}
}

// look ends the context if it has to end by now.
func (c *bound) look() {
	switch {
	case c.Context.Err() != nil:
	case c.parent.Err() != nil:
		c.end(context.Cause(c.parent))
	case c.holds != nil && !c.holds():
		c.end(c.why)
	}
}

// Err implements [context.Context].
func (c *bound) Err() error {
	c.look()
	return c.Context.Err()
}

// Done implements [context.Context].
func (c *bound) Done() <-chan struct{} {
	c.look()
	return c.Context.Done()
}
