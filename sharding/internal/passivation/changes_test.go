// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package passivation

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// What happens besides uses and evictions: a victim that is busy comes back, and the limit changes.

// played returns a run in which each letter of a text is used.
func played(cfg Config, uses string) *run {
	r := newRun(cfg)
	r.play(uses)
	return r
}

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

// named returns those who are to go next, up to a number, in their order. They are aside then.
func (r *run) named(n int) string {
	var names []byte
	for ; n > 0; n-- {
		s := r.order.Victim()
		if s == 0 {
			break
		}
		names = append(names, byte(r.keys[s]))
	}
	return string(names)
}

// going returns all in the order in which they are to go. They are aside then.
func (r *run) going() string { return r.named(len(r.keys)) }

// Who was named and is busy goes on as one that was just used, but that this is no use: it is not
// protected for it, its frequency is the same, and who belongs to the window comes back to the window. Several
// of them stay in their order.
func TestWhoWasBusyComesBack(t *testing.T) {
	for _, c := range []struct {
		cfg               Config
		uses              string
		busy              int
		first, afterwards string
	}{
		{Config{Limit: 4, Policy: LeastRecentlyUsed}, "abcd", 1, "a", "bcda"},
		{Config{Limit: 4, Policy: LeastRecentlyUsed}, "abcd", 3, "abc", "dabc"},
		{Config{Limit: 4, Policy: MostRecentlyUsed}, "abcd", 1, "c", "dcba"},
		{Config{Limit: 4, Policy: Segmented, Protected: 0.5}, "abcab", 2, "ca", "cab"},
		{Config{Limit: 4, Policy: LeastFrequentlyUsed}, "aabbc", 1, "a", "bca"},
		{Config{Limit: 4, Policy: LeastFrequentlyUsed}, "aabbcd", 2, "cd", "cdab"},
		{Config{Limit: 4, Policy: Composite, Main: LeastRecentlyUsed, Window: 0.5}, "abcd", 3, "abc", "abdc"},
		{Config{Limit: 4, Policy: WTinyLFU, Protected: 0.5, Window: 0.5}, "abcda", 2, "ba", "bacd"},
	} {
		r := played(c.cfg, c.uses)
		require.Equal(t, c.first, r.named(c.busy), c.cfg.title())
		r.order.Return()
		require.Equal(t, c.afterwards, r.going(), c.cfg.title())
		r.order.Return()
	}
}

// What enters starts from the frequency of the last one that went, and not of one that was named and stays,
// since it is busy: else whatever comes after a moment in which all are busy outlives what is used most.
func TestOnlyWhoGoesIsOutlived(t *testing.T) {
	r := played(Config{Limit: 10, Policy: LeastFrequentlyUsed, Aging: true}, "aaaabbbccd")
	require.Equal(t, "cdba", r.named(4))
	r.order.Return()
	r.play("ee")
	require.Equal(t, "d", r.named(1))
	r.leave(r.handles['d'])
	r.play("f")
	require.Equal(t, "cefba", r.going(), "f counts two uses, as c and e have, and came after them")

	r = played(Config{Limit: 4, Policy: Composite, Main: LeastFrequentlyUsed, Window: 0.25, Aging: true}, "aaabbbcccda")
	r.play("efgh") // Each passes through the window, and nobody goes from the main part.
	r.order.Resize(10)
	r.play("ijkl")
	require.Equal(t, "bchiajkl", r.going(), "h and i count one use there, and a two")
}

// After the limit has changed the parts of an order are those of the new limit, and what is known of
// uses has stayed.
func TestAChangedLimitChangesTheParts(t *testing.T) {
	for _, c := range []struct {
		cfg      Config
		before   string
		limit    int
		after    string
		expected string
	}{
		{Config{Limit: 4, Policy: LeastRecentlyUsed}, "abcda", 2, "", "da"},
		{Config{Limit: 4, Policy: LeastFrequentlyUsed}, "abcdada", 3, "", "cda"},
		{Config{Limit: 4, Policy: Segmented, Protected: 0.5}, "abcd", 8, "abcde", "eabcd"},  // Four are protected, not two.
		{Config{Limit: 8, Policy: Segmented, Protected: 0.5}, "abcdabcd", 4, "ade", "cead"}, // Two are protected, not four.
		{Config{Limit: 8, Policy: Segmented, Protected: 0.5}, "abcdabcd", 4, "e", "becd"},   // Also before one of them is used.
		{Config{Limit: 4, Policy: Composite, Window: 0.5}, "abcd", 8, "efghe", "abcdfghe"},  // Four are in the window, e among them.
		{Config{Limit: 8, Policy: Composite, Window: 0.5}, "abcdefgh", 4, "", "cdgh"},       // Two remain in the window.
	} {
		r := played(c.cfg, c.before)
		r.order.Resize(c.limit)
		r.evict()
		r.play(c.after)
		require.Equal(t, c.expected, r.going(), "%s to %d", c.cfg.title(), c.limit)
	}
}

// The sketch fades as the limit says that there is now, not as the one at first.
func TestTheSketchFadesByThePresentLimit(t *testing.T) {
	var k sketch
	k.grow(1000)
	for range 50 {
		k.add(7)
	}
	k.grow(10)
	for i := range uint32(2 * sketchFades * 10) {
		k.add(1000 + i)
	}
	require.LessOrEqual(t, k.frequency(7), uint64(maxCount/4+1), "halved twice")
}

// repeats is a trace in which each key is used once more, before so many others have come as chance has it
// within a bound, and then never again: the larger the window, the more of them it finds, and what was used
// often finds nothing.
func repeats(n, within int) (trace []uint32) {
	r := rand.New(rand.NewPCG(3, 4))
	due := make([][]uint32, n+within)
	for i := range n {
		key := uint32(i)
		trace = append(append(trace, key), due[i]...)
		at := i + 1 + r.IntN(within-1)
		due[at] = append(due[at], key)
	}
	return trace
}

// A window whose share follows the hit rate becomes large where that pays, so that far more is found than
// with one that stays small; and a changed limit leaves the share that was found.
func TestTheWindowFollowsTheHitRate(t *testing.T) {
	const limit = 100
	trace, stays := repeats(100_000, limit/2), byDefault(limit)
	stays.Policy = Composite
	require.Greater(t, rate(byDefault(limit), trace), rate(stays, trace)+10)
	r := newRun(byDefault(limit))
	found := 0
	for _, key := range trace[:20*climbSample*limit] {
		r.access(key)
		found = max(found, r.order.window.most)
	}
	require.Equal(t, share(limit, maxWindow), found, "the main part keeps its fifth")
	found = r.order.window.most
	r.order.Resize(2 * limit)
	require.InDelta(t, 2*found, r.order.window.most, 1)
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
