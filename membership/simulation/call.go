// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/membership/machine"
)

// ErrCallFailed answers a call that was drawn to fail.
var ErrCallFailed = errors.New("simulation: the strategy failed")

// Calls say what happens to strategy calls.
type Calls struct {
	// Min and Max bound how long a call takes, drawn evenly. Both zero: 1 to
	// 20 milliseconds.
	Min, Max time.Duration

	// Hang is the chance that a call is not answered before its limit.
	Hang float64

	// Fail is the chance that a call is answered with an error.
	Fail float64

	// Garbage is the chance that a call is answered with what the function
	// given to [World.Garble] makes up.
	Garbage float64
}

// Answer answers calls of one kind. It runs when the call is made, on behalf
// of the node that asked; its answer arrives later.
type Answer func(n *Node, request any) (any, error)

// Garble makes up an answer that breaks the contract of one kind of call.
type Garble func(r *rand.Rand, request any) any

// Answer says who answers calls of a kind.
func (w *World) Answer(kind string, a Answer) { w.answers[kind] = a }

// Garble says how answers of a kind can be wrong.
func (w *World) Garble(kind string, g Garble) { w.garblers[kind] = g }

// SetCalls changes what happens to calls from now on.
func (w *World) SetCalls(c Calls) {
	w.opt.Calls = c
	w.Log("calls %+v", c)
}

// call draws the fate of a strategy call. What was asked and what came of it
// are lines of the trace.
func (w *World) call(n *Node, from machine.ID, c machine.Call) {
	w.trace.add(line{at: w.now, place: n.place.index, peer: -1, verb: verbCalled, note: c.Kind})
	key := callKey{of: from, kind: c.Kind}
	if n.calls[key] {
		n.group.Enqueue(from, machine.Called{ID: c.ID, Err: machine.ErrBusy})
		return
	}
	n.calls[key] = true
	called, latency := w.fate(n, c)
	if latency >= c.Limit {
		called, latency = machine.Called{ID: c.ID, Err: context.DeadlineExceeded}, c.Limit
	}
	w.push(event{
		at: w.now + int64(latency), kind: kindInput, place: n.place.index, incarnation: n.incarnation,
		ref: w.inputs.put(input{to: from, in: called, answer: key}),
	})
}

func (w *World) fate(n *Node, c machine.Call) (machine.Called, time.Duration) {
	o := &w.opt.Calls
	least, most := o.Min, o.Max
	if most == 0 {
		least, most = time.Millisecond, 20*time.Millisecond
	}
	latency := least + time.Duration(w.calls.Int64N(max(int64(most-least), 1)))
	chance := w.calls.Float64()
	answer, garble := w.answers[c.Kind], w.garblers[c.Kind]
	switch {
	case answer == nil:
		return machine.Called{ID: c.ID, Err: fmt.Errorf("simulation: nobody answers calls of kind %q", c.Kind)}, latency
	case chance < o.Hang:
		return machine.Called{ID: c.ID, Err: context.DeadlineExceeded}, c.Limit
	case chance < o.Hang+o.Fail:
		return machine.Called{ID: c.ID, Err: ErrCallFailed}, latency
	case chance < o.Hang+o.Fail+o.Garbage && garble != nil:
		return machine.Called{ID: c.ID, Result: garble(w.calls, c.Request)}, latency
	}
	result, err := answer(n, c.Request)
	if err != nil {
		return machine.Called{ID: c.ID, Err: err}, latency
	}
	return machine.Called{ID: c.ID, Result: result}, latency
}
