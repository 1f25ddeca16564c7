// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"slices"

	"github.com/quorate/quorate/sharding/internal/cell"
)

// RefusalError is an error of [Entity.Receive] that says that nothing was changed: the entity stays, and who asked
// gets Reply. What the call has ordered before does not happen: its reply, its timers, its [Context.Passivate], and
// of an entity of package state all changes of the state, events and what was to run after the save. The fields of an
// entity that keeps its memory by itself are not the runtime's: only the entity can undo what it has done to them, so
// it looks before it changes anything. What was sent to others has left.
//
// A refusal of a message that was told is heard by nobody, and one of a timer is a failure like any other error.
type RefusalError struct {
	// Reply is the answer, as in [Context.Reply]; nil ends the ask with [ErrEntityFailed] and the text of the error.
	Reply any
}

// Refuse returns a [*RefusalError] with a reply.
func Refuse(reply any) error { return &RefusalError{reply} }

// Error implements error.
func (r *RefusalError) Error() string { return "the message was refused" }

// effect is something that an entity has ordered during a call, and that happens when the call has returned without an
// error. So a refusal has nothing to undo.
type effect struct {
	timer string // The name of the timer that it sets or cancels.
	named bool   // It is about a timer with a name.
	sets  bool   // It sets that timer.
	do    func()
}

// settle has what the call has ordered happen, or drops it.
func (c *Context) settle(happens bool) {
	effects := c.effects
	c.effects = nil
	if happens {
		for _, e := range effects {
			e.do()
		}
	}
}

// refused takes an error that is a refusal for the outcome of the call.
func (c *Context) refused(r *RefusalError, err error) {
	c.effects, c.reply = nil, r.Reply
	if isNil(r.Reply) {
		c.reply = failure(detailOf(err))
	}
}

// hasTimer reports whether the entity has a timer with a name, counting what the call has ordered.
func (c *Context) hasTimer(name string) (has bool) {
	for _, e := range slices.Backward(c.effects) {
		if e.named && e.timer == name {
			return e.sets
		}
	}
	e := c.job.Entity()
	c.job.Slot().Do(func(*cell.Cell) {
		t, ok := e.Value.(*timed)
		has = ok && e.Live() && t.named[name] != nil
	})
	return has
}
