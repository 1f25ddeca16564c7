// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"context"
	"time"
)

// Context is a context that looks, at each look at it, whether what it is bound to still holds. It is made by [New],
// [WithCancel] or [WithTimeout], and is safe for concurrent use.
type Context struct {
	context.Context //nolint:containedctx // It ends with this context, and is what derived ones hear of.

	parent context.Context //nolint:containedctx // Is looked at too: the embedded context hears of its end, and does not look.
	end    context.CancelCauseFunc
	holds  func() bool // Nil: always.
	why    error       // The cause with which the context ends when holds says no.
}

// New returns a context that ends with its parent, when the returned function is called, and when holds says no: then
// with the cause why. Holds is called at each look, on any goroutine; it must not block, nor look at the context.
func New(parent context.Context, holds func() bool, why error) (*Context, context.CancelCauseFunc) {
	inner, end := context.WithCancelCause(parent)
	return &Context{inner, parent, end, holds, why}, end
}

// WithCancel returns a context that ends with its parent, and when the returned function is called. In place of
// context.WithCancelCause it is for a parent that looks: the context looks as well.
func WithCancel(parent context.Context) (*Context, context.CancelCauseFunc) {
	return New(parent, nil, nil)
}

// WithTimeout is [WithCancel] with an end after a time.
func WithTimeout(parent context.Context, limit time.Duration) (*Context, context.CancelFunc) {
	outer, end := WithCancel(parent)
	inner, cancel := context.WithTimeout(outer.Context, limit)
	return &Context{inner, outer, end, nil, nil}, func() {
		cancel()
		end(nil)
	}
}

// look ends the context if it has to end by now.
func (c *Context) look() {
	switch {
	case c.Context.Err() != nil:
	case c.parent.Err() != nil:
		c.end(context.Cause(c.parent))
	case c.holds != nil && !c.holds():
		c.end(c.why)
	}
}

// Err implements [context.Context].
func (c *Context) Err() error {
	c.look()
	return c.Context.Err()
}

// Done implements [context.Context].
func (c *Context) Done() <-chan struct{} {
	c.look()
	return c.Context.Done()
}

var _ context.Context = (*Context)(nil)
