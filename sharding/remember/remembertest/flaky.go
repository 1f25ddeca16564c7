// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package remembertest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/quorate/quorate/sharding/epoch"
	"github.com/quorate/quorate/sharding/remember"
)

// flaky has calls of two nodes go wrong: some are lost, of some the answer is, and some are done after their
// caller has gone on. It is used by one goroutine at a time.
type flaky struct {
	stores []remember.Store
	rand   *rand.Rand
	late   sync.WaitGroup
}

// errLost is the error of a call that goes wrong.
var errLost = errors.New("remembertest: the connection is lost")

const maxLate = 50 * time.Millisecond // How late a call may come.

func newFlaky(a, b remember.Store, seed uint64) *flaky {
	return &flaky{stores: []remember.Store{a, b}, rand: rand.New(rand.NewPCG(seed, 3))}
}

// wait waits for the calls that are still under way.
func (f *flaky) wait() { f.late.Wait() }

// fate makes a call, or what becomes of it, and reports whether the caller hears of that.
func (f *flaky) fate(ctx context.Context, call func(ctx context.Context)) (heard bool) {
	switch f.rand.IntN(8) {
	case 0:
	case 1:
		call(ctx)
	case 2:
		after := time.Duration(f.rand.Int64N(int64(maxLate)))
		// The goroutine is owned by f: wait waits for it.
		f.late.Add(1)
		time.AfterFunc(after, func() {
			defer f.late.Done()
			call(context.WithoutCancel(ctx))
		})
	default:
		call(ctx)
		return true
	}
	return false
}

func (f *flaky) open(ctx context.Context, of remember.Shard, under epoch.Epoch) (remember.Set, []string, error) {
	st := f.stores[under.N%uint64(len(f.stores))] // An epoch is of one node.
	if f.rand.IntN(4) > 0 {                       // Mostly one that is heard of: an open that comes late may take the set from a later one of its epoch.
		return st.Open(ctx, of, under)
	}
	_, _, _ = st.Open(ctx, of, under)
	return nil, nil, errLost
}

func (f *flaky) change(ctx context.Context, set remember.Set, add, remove []string) error {
	answer := make(chan error, 1)
	if !f.fate(ctx, func(ctx context.Context) { answer <- set.Change(ctx, add, remove) }) {
		return errLost
	}
	return <-answer
}
