// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package ddata

import (
	"context"
	"sync"
	"time"

	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/machine"
)

// The operations of the program that wait for the machine: begin numbers one, ask posts
// its input and waits for the effect that answers, end is for all of them.

// calls are the operations that wait for an answer of the machine.
type calls struct {
	r *Replicator

	mu    sync.Mutex // Guards what follows.
	last  protocol.OpID
	open  map[protocol.OpID]chan any // Each with room for one answer.
	ended bool
}

// call is one operation. It belongs to one goroutine.
type call struct {
	r      *Replicator
	group  *group
	key    string
	op     protocol.OpID
	answer chan any // The machine's answers, each to the input that was posted last.
}

// begin returns a new operation, which the caller has to end.
func (s *calls) begin(g *group, key string) *call {
	c := &call{r: s.r, group: g, key: key, answer: make(chan any, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	c.op = s.last
	if s.open == nil {
		s.open = map[protocol.OpID]chan any{}
	}
	if s.ended {
		close(c.answer)
	} else {
		s.open[c.op] = c.answer
	}
	return c
}

// end forgets the operation.
func (c *call) end() {
	c.r.calls.mu.Lock()
	defer c.r.calls.mu.Unlock()
	delete(c.r.calls.open, c.op)
}

// answer hands an effect to the operation that waits for it.
func (s *calls) answer(op protocol.OpID, effect any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if answer := s.open[op]; answer != nil {
		select {
		case answer <- effect:
		default: // The machine answers each input once: this is an answer to one that was given up.
		}
	}
}

// end ends all operations.
func (s *calls) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for op, answer := range s.open {
		close(answer)
		delete(s.open, op)
	}
}

const (
	// noDeadlineTimeout is how long an operation may take whose context has no deadline.
	noDeadlineTimeout = 24 * time.Hour
	// reportTimeout is how long the machine may take to say how far an operation came whose context
	// has ended.
	reportTimeout = 100 * time.Millisecond
)

// limitOf returns how long an operation may take.
func limitOf(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return min(max(time.Until(deadline), 0), noDeadlineTimeout)
	}
	return noDeadlineTimeout
}

// ask posts an input and returns the answer, nil if there is none, and then why: the error
// of the context, or [ErrClosed]. Posted tells whether the machine may have taken the input.
// When the context ends, the machine still says how far the operation came.
func (c *call) ask(ctx context.Context, in machine.Input) (answer any, posted bool, err error) {
	if err := c.r.handle.PostWait(ctx, in); err != nil {
		return nil, false, c.r.over(ctx)
	}
	select {
	case answer := <-c.answer:
		if answer == nil {
			return nil, true, c.r.closed()
		}
		return answer, true, nil
	case <-ctx.Done():
	}
	patience := time.NewTimer(reportTimeout)
	defer patience.Stop()
	if c.r.handle.Post(protocol.Cancel{Op: c.op}) == nil {
		select {
		case answer := <-c.answer:
			return answer, true, context.Cause(ctx)
		case <-patience.C:
		}
	}
	return nil, true, context.Cause(ctx)
}

// finish asks, and returns how the operation has ended. Without an answer of the machine the
// outcome is unconfirmed, with nothing known of the nodes; posted is false if the machine has not
// even heard of the operation.
func (c *call) finish(ctx context.Context, in machine.Input) (o *outcome, posted bool) {
	answer, posted, err := c.ask(ctx, in)
	o = &outcome{err: err}
	if d, ok := answer.(protocol.Done); ok {
		o.Done = d
	} else {
		o.Verdict = protocol.Unconfirmed
	}
	if o.Verdict == protocol.Unconfirmed && o.err == nil {
		// The machine looks at the time too, and was the first to see that it is over.
		o.err = context.DeadlineExceeded
	}
	route := c.group.route.Load()
	for _, node := range o.Answered {
		o.answered = append(o.answered, node.String())
	}
	for _, id := range o.Missing {
		o.missing = append(o.missing, nameOf(route.Route, id))
	}
	return o, posted
}
