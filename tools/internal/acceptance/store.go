// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	states "github.com/quorate/quorate/sharding/state/store"

	"github.com/quorate/quorate/sharding/state/memory"
)

// errShaky is what a call of a [shaky] store fails with.
var errShaky = errors.New("the store is not there at present")

// shaky is a store of states that keeps what it promises, and no more (package sharding/state/store): it is slow,
// fails before or after it has done what it was asked for, and answers late.
type shaky struct {
	mu   sync.Mutex
	kept *memory.Store
	rand *rand.Rand
}

func newShaky(r *rand.Rand) *shaky { return &shaky{kept: memory.New(), rand: r} }

// now returns what the store has.
func (s *shaky) now() *memory.Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept
}

// copied makes a copy of what the store has, as a backup, and returns what puts it back.
func (s *shaky) copied() (restore func()) {
	then := s.now().Clone()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.kept = then.Clone()
	}
}

// Load implements the store.
func (s *shaky) Load(ctx context.Context, claims []states.Claim) ([]states.Record, error) {
	return shaken(ctx, s, func() ([]states.Record, error) { return s.now().Load(ctx, claims) })
}

// Save implements the store.
func (s *shaky) Save(ctx context.Context, writes []states.Write) ([]states.Head, error) {
	return shaken(ctx, s, func() ([]states.Head, error) { return s.now().Save(ctx, writes) })
}

// shaken does a call, and draws what goes wrong with it.
func shaken[T any](ctx context.Context, s *shaky, do func() (T, error)) (none T, _ error) {
	s.mu.Lock()
	fate, before, after := s.rand.IntN(100), s.rand.IntN(5), s.rand.IntN(5)
	s.mu.Unlock()
	if fate == 0 {
		before = 4000 // The call hangs: its context ends first, mostly.
	}
	if err := passes(ctx, before); err != nil {
		return none, err
	}
	if fate < 3 {
		return none, errShaky
	}
	answer, err := do()
	if err == nil {
		err = passes(ctx, after)
	}
	if err == nil && fate < 5 { // It is done, and the answer is lost.
		err = errShaky
	}
	if err != nil {
		return none, err
	}
	return answer, nil
}

// passes waits for some milliseconds, or until ctx ends.
func passes(ctx context.Context, milliseconds int) error {
	timer := time.NewTimer(time.Duration(milliseconds) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
