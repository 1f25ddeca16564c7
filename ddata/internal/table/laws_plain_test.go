// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package table_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/ddata/crdt"
)

// Replicas that update, delete, expire and exchange at random are equal when they have exchanged
// everything, to the byte; at each moment every value is what its versions say, and no update
// is lost but for an expiry that has seen it.
func TestReplicasBecomeEqual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, rapid.IntRange(2, 5).Draw(t, "replicas"))
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			w.step(rapid.IntRange(0, 99).Draw(t, "what"))
		}
		w.check()
		w.settle()
		w.check()
		w.same()
	})
}

// An order of joins decides nothing in the end, also for those that are no semilattice:
// an expired image, what it covers, and what it does not cover, in every order.
func TestOldCopyIsNotMistakenForNewUpdate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, 4)
		key := w.key()
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			switch t := w.any(); rapid.IntRange(0, 5).Draw(w.t, "what") {
			case 0, 1:
				w.update(t, key)
			case 2, 3:
				w.exchange(t, w.any())
			case 4:
				w.expire(t, key)
			case 5:
				w.settle()
				w.sweep(func() {
					w.update(w.any(), key)
					if rapid.Bool().Draw(w.t, "again") {
						w.expire(w.any(), key)
					}
					w.exchange(w.any(), w.any())
				})
			}
			w.check()
		}
		w.settle()
		w.same()
	})
}

// Folding the same owners leaves equal tables equal, to the byte.
func TestRetiredOwnersLeaveTablesEqual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, 4)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			w.step(rapid.IntRange(0, 90).Draw(t, "what"))
		}
		w.settle()
		retired := []crdt.Origin{1, 2}
		hash := w.tables[0].OriginHash(retired)
		for _, o := range w.tables[1:] {
			require.Equal(t, hash, o.OriginHash(retired))
		}
		require.True(t, w.sweep(func() { w.update(w.tables[2], "c"); w.update(w.tables[3], "o") }, retired...))
		for _, o := range w.tables {
			require.NoError(t, o.Check())
			require.Zero(t, o.OriginHash(retired))
			require.NotContains(t, o.Origins(), crdt.Origin(1))
		}
		clear(w.made)
		w.tables = w.tables[2:]
		for range 20 {
			w.step(rapid.IntRange(0, 90).Draw(t, "what"))
		}
		w.settle()
		for key := range map[string]bool{"c": true, "c2": true, "s": true, "s2": true, "o": true, "o2": true, "w": true} {
			a, _ := w.tables[0].Get(key)
			b, _ := w.tables[1].Get(key)
			require.Equal(t, text(t, a), text(t, b))
		}
	})
}
