// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Subscription tells of the entries of one name. It is for one goroutine at a time, except
// Close.
type Subscription struct {
	r    *Registry
	name string
	err  error         // Why nothing can be subscribed to.
	wake chan struct{} // Holds one token when there may be something to tell.

	told   told
	doubts doubts
	ready  []Event // What is to be told next.

	closed bool // Guarded by mu of the registry.
}

// Subscribe subscribes to a name. The first events tell of the entries that are there.
func (r *Registry) Subscribe(name string) *Subscription {
	s := &Subscription{r: r, name: name, err: checkName(name), wake: make(chan struct{}, 1), told: told{}, doubts: doubts{}}
	s.notify()
	if s.err != nil {
		return s
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.subs[name] = append(slices.Clone(r.subs[name]), s)
	return s
}

// Next waits for the next event, until ctx ends. What was found before the end is told
// first. Errors: [ErrEntry] for a name that nothing
// can have; [ErrClosed] when the subscription or the node has ended; those of [ddata.Get],
// after which Next may be called again.
func (s *Subscription) Next(ctx context.Context) (Event, error) {
	for {
		if s.err != nil {
			return Event{}, s.err
		}
		if len(s.ready) > 0 {
			e := s.ready[0]
			s.ready = s.ready[1:]
			e.Entry = e.Entry.clone() // What was told is compared with what follows.
			return e, nil
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return Event{}, context.Cause(ctx)
		}
		if err := s.look(ctx); err != nil {
			s.notify()
			return Event{}, err
		}
	}
}

// look finds what is to be told.
func (s *Subscription) look(ctx context.Context) error {
	if err := s.over(); err != nil {
		return err
	}
	all, err := s.r.all(ctx, s.name)
	if err != nil {
		return err
	}
	if _, here := s.r.data.Homes(Prefix + s.name); !here {
		all = s.doubts.fill(all, s.told, time.Now())
	}
	s.ready = s.told.learn(s.r.visible(all))
	return nil
}

// over returns an error if the subscription has ended.
func (s *Subscription) over() error {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	switch {
	case s.r.ended:
		return fmt.Errorf("%w: the node", ErrClosed)
	case s.closed:
		return fmt.Errorf("%w: the subscription", ErrClosed)
	default:
		return nil
	}
}

// Close ends the subscription. Calling it again does nothing.
func (s *Subscription) Close() {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	s.closed = true
	s.notify()
	left := slices.DeleteFunc(slices.Clone(s.r.subs[s.name]), func(o *Subscription) bool { return o == s })
	if s.r.subs[s.name] = left; len(left) == 0 {
		delete(s.r.subs, s.name)
	}
}

func (s *Subscription) notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
