// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package passivation

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What happens besides uses and evictions: the limit changes.

// play uses each letter of a text.
func (r *run) play(uses string) {
	for _, key := range []byte(uses) {
		r.access(uint32(key))
	}
}

// evict has all go that are too many.
func (r *run) evict() {
	for r.order.Excess() > 0 {
		r.leave(r.order.Victim())
	}
}

// What was counted while another limit was in force says nothing about the share of the window: the sample
// begins anew, and is compared with none before. The same limit once more changes nothing.
func TestAChangedLimitBeginsASample(t *testing.T) {
	const limit = 10
	for _, changed := range []int{limit + 1, limit * 10, limit / 2} {
		r := newRun(byDefault(limit))
		r.hits(traces(climbSample*limit, limit)["scan"])
		for range climbSample*limit - 1 {
			r.play("a")
		}
		climb := r.order.window.climb
		before := climb.share
		r.order.Resize(changed)
		for range climbSample*changed - 1 {
			r.play("a")
		}
		require.Less(t, climb.rate, 0.0, "%d: the sample has one use more", changed)
		r.order.Resize(changed)
		r.play("a")
		require.Equal(t, 1.0, climb.rate, "%d: each use has found it", changed) //nolint:testifylint // A quotient of equal numbers.
		require.Equal(t, before, climb.share, "%d", changed)                    //nolint:testifylint // It has not changed.
	}
}
