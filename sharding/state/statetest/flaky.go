// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package statetest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/quorate/quorate/sharding/state/store"
)

// Flaky is a store whose calls go wrong: some are lost on their way, some are done and the answer is
// lost, some are done in part, and some are done long after the caller has gone on.
type Flaky struct {
	store store.Store

	mu   sync.Mutex
	rand *rand.Rand // Guarded by mu.
	calm bool       // Guarded by mu.
	late sync.WaitGroup
}

var _ store.Store = (*Flaky)(nil)

// ErrLost is the error of a call that goes wrong.
var ErrLost = errors.New("statetest: the connection is lost")

const maxLate = 300 * time.Millisecond // How late a call may come.

// NewFlaky returns a store whose faults are drawn from a seed.
func NewFlaky(s store.Store, seed uint64) *Flaky {
	return &Flaky{store: s, rand: rand.New(rand.NewPCG(seed, 1))}
}

// Calm ends the faults, and waits for the calls that are still under way.
func (f *Flaky) Calm() {
	f.mu.Lock()
	f.calm = true
	f.mu.Unlock()
	f.late.Wait()
}

// Load implements [store.Store].
func (f *Flaky) Load(ctx context.Context, claims []store.Claim) ([]store.Record, error) {
	return disturbed(ctx, f, claims, f.store.Load)
}

// Save implements [store.Store].
func (f *Flaky) Save(ctx context.Context, writes []store.Write) ([]store.Head, error) {
	return disturbed(ctx, f, writes, f.store.Save)
}

// fate is what becomes of a call.
type fate uint8

const (
	fine fate = iota
	lostCall
	lostAnswer
	inPart
	comesLate
)

// draw draws the fate of a call with so many requests, of how many take effect, and when.
func (f *Flaky) draw(requests int) (fate, int, time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calm {
		return fine, requests, 0
	}
	late := time.Duration(f.rand.Int64N(int64(maxLate)))
	switch f.rand.IntN(16) {
	case 0:
		return lostCall, 0, 0
	case 1, 2:
		return lostAnswer, requests, 0
	case 3:
		return inPart, f.rand.IntN(requests + 1), 0
	case 4:
		f.late.Add(1) // Before Calm can wait for it.
		return comesLate, requests, late
	default:
		return fine, requests, 0
	}
}

// disturbed makes a call, or what its fate leaves of it.
func disturbed[Q, A any](ctx context.Context, f *Flaky, requests []Q, call func(context.Context, []Q) ([]A, error)) ([]A, error) {
	fate, effect, late := f.draw(len(requests))
	switch fate {
	case fine:
		return call(ctx, requests)
	case lostAnswer, inPart:
		if effect > 0 {
			_, _ = call(ctx, requests[:effect])
		}
	case comesLate:
		// The goroutine is owned by f: Calm waits for it.
		time.AfterFunc(late, func() {
			defer f.late.Done()
			_, _ = call(context.WithoutCancel(ctx), requests)
		})
	case lostCall:
	}
	return nil, ErrLost
}
