// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package majority

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/downing/lease"
	"github.com/quorate/quorate/downing/lease/internal/alarm"
	"github.com/quorate/quorate/downing/lease/internal/protocol"
	"github.com/quorate/quorate/gossip"
)

// The driver of Machine: each method takes the lock, steps the machine and carries out what
// it asks. An alarm makes the ticks; a call to the store has a goroutine, at most one at a
// time. Decide waits for the reply on a channel of its own.

// ErrClosed is returned by a [Strategy] that was closed.
var ErrClosed = errors.New("the strategy lease-majority is closed")

// WaitingError says that there is no decision because the lease could not be had yet.
type WaitingError struct {
	Lease, Store string
	Since        time.Time
	Reason       string
}

// Error names the lease, its store, since when it is waited for, and why.
func (e *WaitingError) Error() string {
	return fmt.Sprintf("waiting for the lease %q at %s since %s: %s", e.Lease, e.Store, e.Since.UTC().Format(time.RFC3339), e.Reason)
}

// Strategy is the downing strategy lease-majority of one node. Use [New]; Close it in the end.
// It is safe for concurrent use.
type Strategy struct {
	store    lease.Store
	settings Settings
	began    time.Time

	ctx    context.Context //nolint:containedctx // It ends with Close, and is the parent of the contexts of all calls.
	cancel context.CancelFunc
	calls  sync.WaitGroup
	turn   chan struct{} // Holds an element while a question is open.

	mu      sync.Mutex // guards what follows
	machine *Machine
	clock   protocol.Clock
	alarm   alarm.Alarm   // makes the ticks
	reply   chan Reply    // of the open question; nil without one
	changed chan struct{} // closed and replaced by each step
	wanted  time.Time     // since when the lease is waited for; zero: it is not
	closed  bool
}

var (
	_ downing.Holder = (*Strategy)(nil)
	_ downing.Fitted = (*Strategy)(nil)
)

// New returns the strategy with a store, which must not be closed before it. The error is a
// [field.Error] for each fault of the settings. Nothing is asked before the first decision: a
// store that is down does not keep a node from starting.
func New(store lease.Store, settings Settings) (*Strategy, error) {
	if err := settings.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", downing.LeaseMajorityName, err)
	}
	s := &Strategy{
		store: store, settings: settings, began: time.Now(), turn: make(chan struct{}, 1), changed: make(chan struct{}),
		machine: NewMachine(settings, rand.Text()),
	}
	s.clock.Read(s.began)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// Class says that the strategy is not pure, since the store decides, and may keep a minority.
func (s *Strategy) Class() downing.Class { return downing.Class{} }

// Keeps implements [downing.Holder].
func (s *Strategy) Keeps() time.Duration { return s.settings.ReleaseAfter }

// Misfit implements [downing.Fitted].
func (s *Strategy) Misfit(members []*gossip.Member) string {
	return downing.LeaseMajority{Role: s.settings.Role}.Misfit(members)
}

// Decide implements [downing.Provider]. The error is a [*WaitingError] while the lease cannot
// be had, and that of the view, or [ErrClosed].
func (s *Strategy) Decide(ctx context.Context, v downing.View) (downing.Decision, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return downing.Decision{}, ctx.Err()
	}
	reply, err := s.ask(v)
	if err != nil {
		return downing.Decision{}, err
	}
	select {
	case r := <-reply:
		return s.replied(r)
	case <-ctx.Done():
	case <-s.ctx.Done():
	}
	return s.giveUp(reply)
}

// ask begins a question.
func (s *Strategy) ask(v downing.View) (<-chan Reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	s.reply = make(chan Reply, 1)
	reply := s.reply
	s.step(Input{Kind: Asked, View: v})
	return reply, nil
}

// giveUp ends a question that was not answered in time.
func (s *Strategy) giveUp(reply <-chan Reply) (downing.Decision, error) {
	s.mu.Lock()
	select {
	case r := <-reply: // At the last moment.
		s.mu.Unlock()
		return s.replied(r)
	default:
	}
	_, reason, _ := s.machine.Waits()
	if s.closed {
		s.mu.Unlock()
		return downing.Decision{}, ErrClosed
	}
	s.reply = nil
	s.step(Input{Kind: Ended})
	s.mu.Unlock()
	if reason == "" {
		reason = "the side without a majority asks later than the other"
	}
	return s.replied(Reply{Err: errors.New(reason), Waits: true})
}

// replied returns the decision of a reply, or says since when it is waited for.
func (s *Strategy) replied(r Reply) (downing.Decision, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !r.Waits {
		s.wanted = time.Time{}
		return r.Decision, r.Err
	}
	if s.wanted.IsZero() {
		s.wanted = time.Now()
	}
	return downing.Decision{}, &WaitingError{Lease: s.settings.Lease, Store: s.settings.Store, Since: s.wanted, Reason: r.Err.Error()}
}

// Settled implements [downing.Holder].
func (s *Strategy) Settled() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted = time.Time{}
	if !s.closed {
		s.step(Input{Kind: Settled})
	}
}

// State is what the strategy does.
type State struct {
	// Lease and Store name the lease and its store.
	Lease, Store string
	// Token is the fencing token while the lease is held, else 0.
	Token uint64
	// Waiting is since when a decision waits for the lease; zero: none does.
	Waiting time.Time
}

// String returns a line such as "waiting for the lease "bank" at etcd since
// 2026-11-23T00:10:00Z".
func (s State) String() string {
	switch {
	case !s.Waiting.IsZero():
		return fmt.Sprintf("waiting for the lease %q at %s since %s", s.Lease, s.Store, s.Waiting.UTC().Format(time.RFC3339))
	case s.Token != 0:
		return fmt.Sprintf("holding the lease %q at %s with the token %d", s.Lease, s.Store, s.Token)
	default:
		return fmt.Sprintf("without the lease %q at %s", s.Lease, s.Store)
	}
}

// State returns what the strategy does.
func (s *Strategy) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	token, _ := s.machine.Token(s.clock.Read(time.Now()))
	return State{Lease: s.settings.Lease, Store: s.settings.Store, Token: token, Waiting: s.wanted}
}

// step steps the machine and carries out what it asks. The lock is held.
func (s *Strategy) step(in Input) {
	now := s.clock.Read(time.Now())
	out := s.machine.Step(in, now)
	if out.Call != nil {
		call := *out.Call
		s.calls.Go(func() { s.call(call) }) // One at a time; ends with the call, for which Close waits.
	}
	if out.Reply != nil && s.reply != nil {
		s.reply <- *out.Reply // It has room for one, and a question has one reply.
		s.reply = nil
	}
	close(s.changed)
	s.changed = make(chan struct{})
	if at, due := s.machine.Wake(); due && !s.closed {
		s.alarm.Set(at-now, s.tick)
	} else {
		s.alarm.Stop()
	}
}

func (s *Strategy) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.step(Input{Kind: Tick})
	}
}

// call asks the store and tells the machine what came of it.
func (s *Strategy) call(c Call) {
	ctx, cancel := context.WithTimeout(s.ctx, s.settings.RequestTimeout)
	defer cancel()
	in := Input{Kind: Answered}
	if c.Give {
		in.Err = s.store.Give(ctx, c.Claim)
	} else {
		in.Answer, in.Err = s.store.Take(ctx, c.Claim)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.step(in)
}

// Close ends the strategy, and waits for the call under way, for twice the request timeout at
// most. A lease by which a side was kept is left to end by itself: given back early, another
// side could get it. Any other one is given back. It may be called more than once.
func (s *Strategy) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.step(Input{Kind: Closed})
	limit := time.NewTimer(2 * s.settings.RequestTimeout)
	defer limit.Stop()
	for expired := false; s.machine.GivesBack() && !expired; {
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-limit.C:
			expired = true
		}
		s.mu.Lock()
	}
	s.mu.Unlock()
	s.cancel()
	return s.returned(limit)
}

// returned waits until no call is under way.
func (s *Strategy) returned(limit *time.Timer) error {
	done := make(chan struct{})
	go func() { // Ends when the store returns.
		defer close(done)
		s.calls.Wait()
	}()
	limit.Reset(s.settings.RequestTimeout)
	select {
	case <-done:
		return nil
	case <-limit.C:
		return lease.ErrStuck
	}
}
