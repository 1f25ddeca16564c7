// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/internal/client"
	"github.com/quorate/quorate/plugins/internal/supervisor"
)

// Calls are led to the active generation and counted per generation ([routes]). A
// strategy calls through [connection], which keeps the deadline and the rule for late
// answers, and reports missing answers to the supervisor.

// errCut is the cause with which a call is ended whose process is given up.
var errCut = errors.New("the process is not waited for any more")

// routes leads calls to the active process, and knows which are in flight.
type routes struct {
	mu      sync.Mutex // Guards what follows and the calls of every generation.
	current *generation
	next    uint64

	late atomic.Uint64 // Answers that came after their call was given up, and were dropped.
}

// calls are the calls in flight to one generation.
type calls struct {
	inFlight map[uint64]context.CancelCauseFunc
	retired  bool          // The generation gets no new calls.
	cut      bool          // Answers of the generation do not count any more.
	idle     chan struct{} // Closed when the generation is retired and has no call in flight.
}

func newCalls() calls {
	return calls{inFlight: make(map[uint64]context.CancelCauseFunc), idle: make(chan struct{})}
}

// lead sends calls to g, or nowhere if g is nil.
func (r *routes) lead(g *generation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current = g
}

// begin returns the generation that a call goes to, nil if there is none.
func (r *routes) begin(cancel context.CancelCauseFunc) (*generation, uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.current
	if g == nil {
		return nil, 0
	}
	r.next++
	g.calls.inFlight[r.next] = cancel
	return g, r.next
}

// end removes a finished call, and reports whether its answer, if there is one, still
// counts.
func (r *routes) end(g *generation, call uint64, answered bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(g.calls.inFlight, call)
	g.calls.settle()
	if g.calls.cut && (answered || g.calls.retired) {
		r.late.Add(1)
	}
	return !g.calls.cut
}

// retire sends g no new calls; its idle is closed when those in flight have ended.
func (r *routes) retire(g *generation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g.calls.retired = true
	g.calls.settle()
}

// cut ends the calls in flight to g. Answers that come nevertheless are dropped.
func (r *routes) cut(g *generation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.current == g {
		r.current = nil
	}
	g.calls.cut = true
	for _, cancel := range g.calls.inFlight {
		cancel(errCut)
	}
}

// settle closes idle if the generation is retired and has no call in flight.
func (c *calls) settle() {
	if !c.retired || len(c.inFlight) > 0 {
		return
	}
	select {
	case <-c.idle:
	default:
		close(c.idle)
	}
}

// connection is a connection to the process that is active when a call begins.
type connection struct{ plugin *Plugin }

var _ grpc.ClientConnInterface = connection{}

// Invoke calls the active process, within a span if the caller has one.
func (c connection) Invoke(ctx context.Context, method string, request, answer any, opts ...grpc.CallOption) error {
	ctx, over := client.Traced(ctx, c.plugin.name, method)
	err := c.invoke(ctx, method, request, answer, opts)
	over(err)
	return err
}

// invoke calls the active process. All calls go through here, so it keeps the deadline,
// the accounting, and the rule that an answer counts only while its process does.
func (c connection) invoke(caller context.Context, method string, request, answer any, opts []grpc.CallOption) error {
	p := c.plugin
	ctx, cancel := context.WithCancelCause(caller)
	defer cancel(nil)
	g, call := p.routes.begin(cancel)
	if g == nil {
		return p.unavailable()
	}
	began := time.Now()
	ctx, release := context.WithTimeout(ctx, g.spec.cfg.CallTimeout)
	defer release()
	err := g.process.Conn().Invoke(ctx, method, request, answer, opts...)
	if !p.routes.end(g, call, err == nil) {
		return p.unavailable()
	}
	code := status.Code(err)
	switch {
	case code == codes.Unavailable:
		p.unanswered(g)
		return &plugins.UnavailableError{Plugin: p.name, Since: time.Now(), Why: errors.New(status.Convert(err).Message())}
	case code == codes.DeadlineExceeded:
		if time.Since(began) >= g.spec.fair() {
			p.unanswered(g)
		}
	case code != codes.Canceled || caller.Err() == nil:
		p.answered(g)
	}
	return err
}

// unanswered tells the supervisor that a call had no answer.
func (p *Plugin) unanswered(g *generation) {
	p.tell(supervisor.CallEnded{Gen: g.number, Unanswered: true})
	g.doubt.Store(true)
}

// answered tells the supervisor of an answer, but only after an unanswered call: most
// answers need not be told.
func (p *Plugin) answered(g *generation) {
	if g.doubt.CompareAndSwap(true, false) {
		p.tell(supervisor.CallEnded{Gen: g.number})
	}
}

// NewStream is not needed: the contract has single calls only.
func (c connection) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, status.Error(codes.Unimplemented, "the contract has no streams")
}

// unavailable says why there is no process to call.
func (p *Plugin) unavailable() error {
	v := p.view.Load()
	e := &plugins.UnavailableError{Plugin: p.name, Since: v.AwaySince, NextTry: v.NextTry, Why: v.LastErr}
	switch {
	case v.State == supervisor.Stopped:
		e.Since, e.Why = v.Since, plugins.ErrClosed
	case !v.Away: // The process went between the call and this look.
		e.Since = time.Now()
	}
	return e
}
