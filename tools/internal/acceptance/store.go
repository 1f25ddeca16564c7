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

// errFaultyStore is the error of the calls that a [faultyStore] fails.
var errFaultyStore = errors.New("the store is not there at present")

// faultyStore is a store of states that keeps what it promises, and no more (package sharding/state/store): it is slow,
// fails before or after it has done what it was asked for, and answers late.
type faultyStore struct {
	mu   sync.Mutex
	kept *memory.Store
	rand *rand.Rand
}

func newFaultyStore(r *rand.Rand) *faultyStore { return &faultyStore{kept: memory.New(), rand: r} }

// now returns what the store has.
func (s *faultyStore) now() *memory.Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept
}

// backUp copies what the store has, and returns the function that restores the copy.
func (s *faultyStore) backUp() (restore func()) {
	then := s.now().Clone()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.kept = then.Clone()
	}
}

// Load implements the store.
func (s *faultyStore) Load(ctx context.Context, claims []states.Claim) ([]states.Record, error) {
	return withFaults(ctx, s, func() ([]states.Record, error) { return s.now().Load(ctx, claims) })
}

// Save implements the store.
func (s *faultyStore) Save(ctx context.Context, writes []states.Write) ([]states.Head, error) {
	return withFaults(ctx, s, func() ([]states.Head, error) { return s.now().Save(ctx, writes) })
}

// withFaults makes a call, with the faults that are drawn for it.
func withFaults[T any](ctx context.Context, s *faultyStore, do func() (T, error)) (none T, _ error) {
	s.mu.Lock()
	fault, before, after := s.rand.IntN(100), s.rand.IntN(5), s.rand.IntN(5)
	s.mu.Unlock()
	if fault == 0 {
		before = 4000 // The call hangs: its context ends first, mostly.
	}
	if err := pause(ctx, before); err != nil {
		return none, err
	}
	if fault < 3 {
		return none, errFaultyStore
	}
	answer, err := do()
	if err == nil {
		err = pause(ctx, after)
	}
	if err == nil && fault < 5 { // It is done, and the answer is lost.
		err = errFaultyStore
	}
	if err != nil {
		return none, err
	}
	return answer, nil
}

// pause waits for some milliseconds, or until ctx ends.
func pause(ctx context.Context, milliseconds int) error {
	timer := time.NewTimer(time.Duration(milliseconds) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
