// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package ddata_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/membership"
)

// told is what a program was told about the updates of one counter.
type told struct {
	confirmed, perhaps uint64
	runs               int
}

// note counts an update by its outcome. An error that says that nothing is stored counts nowhere.
func (o *told) note(t *testing.T, err error) {
	t.Helper()
	_, unconfirmed := errors.AsType[*ddata.UnconfirmedError](err)
	_, quorum := errors.AsType[*ddata.NoQuorumError](err)
	_, not := errors.AsType[*ddata.NotStoredError](err)
	switch {
	case err == nil:
		o.confirmed++
	case unconfirmed || quorum:
		o.perhaps++
	default:
		require.True(t, not, "%v", err)
	}
}

// counts adds to counters, one update of each after the other, until the context ends.
func counts(ctx context.Context, t *testing.T, n *node, keys int, of []told, level ddata.Consistency) {
	for i := 0; ctx.Err() == nil; i = (i + 1) % keys {
		<-time.After(10 * time.Millisecond) //quorate:realtime It is virtual.
		limited, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		_, err := ddata.Update(limited, n, counter(fmt.Sprintf("k/%d", i)), level, func(at crdt.Origin, v crdt.GCounter) (crdt.GCounter, error) {
			of[i].runs++
			return v.Add(at, 1), nil
		})
		cancel()
		if ctx.Err() == nil || err == nil {
			of[i].note(t, err)
			continue
		}
		of[i].perhaps++
	}
}

// While nodes join, and one of those crashes a moment after it is up, a counter has each confirmed update once: the
// homes of keys change while the last of them does not answer, and what was sent to the others is not made again.
// covers I16.
func TestAConfirmedUpdateCountsOnce(t *testing.T) {
	for _, level := range []ddata.Consistency{ddata.Majority(), ddata.All()} {
		t.Run(level.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				const keys = 24
				w.config = func(_ int, _ *membership.Config, c *ddata.Config) {
					c.Groups = []ddata.GroupConfig{{Prefix: "k/", Replicas: 3}}
				}
				w.start(4)
				ctx, stop := context.WithCancel(t.Context())
				all := make([][]told, 4)
				var writers sync.WaitGroup
				for i, n := range w.nodes {
					all[i] = make([]told, keys)
					writers.Go(func() { counts(ctx, t, n, keys, all[i], level) })
				}
				for round := range 4 {
					pass(2 * time.Second)
					w.build()
					dies := w.build()
					require.NoError(t, dies.AwaitUp(patience.Context(t)))
					pass(time.Duration(round) * 500 * time.Millisecond)
					w.crash(dies)
					pass(9 * time.Second)
				}
				stop()
				writers.Wait()
				confirmed := uint64(0)
				for i := range keys {
					least, perhaps := uint64(0), uint64(0)
					for _, of := range all {
						least, perhaps = least+of[i].confirmed, perhaps+of[i].perhaps
					}
					got, err := w.nodes[0].read(fmt.Sprintf("k/%d", i), ddata.Majority())
					require.NoError(t, err)
					require.GreaterOrEqual(t, got, least, "key %d", i)
					require.LessOrEqual(t, got, least+perhaps, "key %d", i)
					confirmed += least
				}
				t.Logf("%d updates confirmed", confirmed)
				require.NotZero(t, confirmed)
			})
		})
	}
}

// A register that a majority has confirmed is read, although a node that has not seen it has written with a later
// time: each write at a majority is later than what a majority held.
func TestAConfirmedWriteOfASlowClockIsRead(t *testing.T) {
	for _, level := range []ddata.Consistency{ddata.Majority(), ddata.All()} {
		inBubble(t, func(t *testing.T, w *world) {
			w.start(3)
			title := ddata.NewKey[crdt.LWWRegister[string]]("title")
			set := func(n *node, now int64, text string, level ddata.Consistency) error {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				_, err := ddata.Update(ctx, n, title, level, func(at crdt.Origin, v crdt.LWWRegister[string]) (crdt.LWWRegister[string], error) {
					return v.Set(at, now, text), nil
				})
				return err
			}
			w.network.Cut(w.nodes[0].Self().Address, w.nodes[2].Self().Address)
			require.NoError(t, set(w.nodes[0], 100, "first", ddata.Majority()))
			if level == ddata.All() {
				w.network.HealAll()
			}
			require.NoError(t, set(w.nodes[2], 50, "second", level))
			v, err := ddata.Get(patience.Context(t), w.nodes[1], title, ddata.Majority())
			require.NoError(t, err)
			text, _ := v.Value()
			require.Equal(t, "second", text)
			require.NoError(t, set(w.nodes[0], 10, "local", ddata.Local()))
		})
	}
}
