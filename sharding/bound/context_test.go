// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package bound_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/bound"
)

type key struct{}

var errLost = errors.New("it is lost")

// gate is something that holds, or not, without a goroutine that tells of it.
type gate struct{ lost atomic.Bool }

func (g *gate) holds() bool { return !g.lost.Load() }

// Each look is true though nobody has ended the context, and so is a look at any context that is derived from it by
// this package, or has a value more. What has ended stays so.
func TestALookIsTrueThoughNobodyHasRun(t *testing.T) {
	for name, derive := range map[string]func(context.Context) (context.Context, func()){
		"itself": func(ctx context.Context) (context.Context, func()) { return ctx, func() {} },
		"with a value": func(ctx context.Context) (context.Context, func()) {
			return context.WithValue(ctx, key{}, 1), func() {}
		},
		"with a cancel": func(ctx context.Context) (context.Context, func()) {
			within, end := bound.WithCancel(context.WithValue(ctx, key{}, 1))
			return within, func() { end(nil) }
		},
		"with a timeout": func(ctx context.Context) (context.Context, func()) {
			within, end := bound.WithTimeout(ctx, time.Hour)
			return within, end
		},
	} {
		look := map[string]func(context.Context) bool{
			"Err": func(ctx context.Context) bool { return ctx.Err() != nil },
			"Done": func(ctx context.Context) bool {
				select {
				case <-ctx.Done():
					return true
				default:
					return false
				}
			},
		}
		for at, ended := range look {
			t.Run(name+" "+at, func(t *testing.T) {
				var g gate
				ctx, end := bound.New(t.Context(), g.holds, errLost)
				defer end(nil)
				derived, release := derive(ctx)
				defer release()
				require.False(t, ended(derived))
				g.lost.Store(true)
				require.True(t, ended(derived))
				require.ErrorIs(t, derived.Err(), context.Canceled)
				require.ErrorIs(t, context.Cause(derived), errLost)
				g.lost.Store(false)
				require.True(t, ended(derived), "it was at its end once")
				require.True(t, ended(ctx))
			})
		}
	}
}

// A context of the standard library that is derived hears of the end without a goroutine for it.
func TestDerivedContextsHearOfTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gate
		ctx, end := bound.New(t.Context(), g.holds, errLost)
		derived, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		g.lost.Store(true)
		require.Error(t, ctx.Err())
		require.ErrorIs(t, derived.Err(), context.Canceled)
		require.ErrorIs(t, context.Cause(derived), errLost)
		end(nil)
		require.ErrorIs(t, context.Cause(ctx), errLost, "the first cause stays")
	})
}

// A timeout ends with the error of a deadline, and Deadline says when. What else a context is bound to is no deadline.
func TestDeadlinesAreTrue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gate
		ctx, end := bound.New(t.Context(), g.holds, errLost)
		defer end(nil)
		_, limited := ctx.Deadline()
		require.False(t, limited)
		within, cancel := bound.WithTimeout(ctx, time.Minute)
		defer cancel()
		at, limited := within.Deadline()
		require.True(t, limited)
		require.Equal(t, time.Minute, time.Until(at))
		<-within.Done()
		require.ErrorIs(t, within.Err(), context.DeadlineExceeded)
		require.Zero(t, time.Until(at))
		require.NoError(t, ctx.Err())
	})
}
