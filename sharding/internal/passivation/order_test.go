// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package passivation

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/simulation/simulationtest"
)

// configs are all policies, with and without what can be chosen.
func configs(limit int) (all []Config) {
	base := Config{Limit: limit, Protected: 0.8, Window: 0.01}
	for p := range policies {
		c := base
		c.Policy = p
		switch p {
		case LeastFrequentlyUsed:
			all = append(all, c)
			c.Aging = true
		case Composite:
			for _, main := range []Policy{LeastRecentlyUsed, MostRecentlyUsed, Segmented, LeastFrequentlyUsed} {
				c.Main, c.Window = main, 0.2
				all = append(all, c)
			}
			c.Window = 0
		default:
		}
		all = append(all, c)
	}
	return all
}

func (c Config) title() string {
	return fmt.Sprintf("%v main=%v aging=%t window=%v", c.Policy, c.Main, c.Aging, c.Window)
}

// run is an order that evicts whenever it has too many.
type run struct {
	order   *Order
	handles map[uint32]Handle
	keys    map[Handle]uint32
}

func newRun(cfg Config) *run {
	return &run{New(cfg), map[uint32]Handle{}, map[Handle]uint32{}}
}

func (r *run) leave(s Handle) {
	r.order.Leave(s)
	delete(r.handles, r.keys[s])
	delete(r.keys, s)
}

func (r *run) access(key uint32) bool {
	if s := r.handles[key]; s != 0 {
		r.order.Use(s)
		return true
	}
	s := r.order.Enter(uint64(key))
	r.handles[key], r.keys[s] = s, key
	r.evict()
	return false
}

func (r *run) hits(trace []uint32) (n int) {
	for _, key := range trace {
		if r.access(key) {
			n++
		}
	}
	return n
}

// The traces: what is used follows a law of Zipf; the same with scans of what is never used again;
// a loop over more than the limit; and favourites that others replace.
func traces(n, limit int) map[string][]uint32 {
	r := rand.New(rand.NewPCG(1, 2))
	zipf := func(from uint32) func() uint32 {
		z := rand.NewZipf(r, 1.1, 1, uint64(20*limit))
		return func() uint32 { return from + uint32(z.Uint64()) }
	}
	all := map[string][]uint32{}
	steady, fresh := zipf(0), uint32(1<<30)
	for i := range n {
		all["zipf"] = append(all["zipf"], steady())
		all["loop"] = append(all["loop"], uint32(i%(limit+limit/4)))
		key := steady()
		if i/(2*limit)%2 == 1 {
			fresh++
			key = fresh
		}
		all["scan"] = append(all["scan"], key)
	}
	for era := range uint32(5) {
		next := zipf(era << 20)
		for range n / 5 {
			all["shift"] = append(all["shift"], next())
		}
	}
	return all
}

// Each policy does at each use what its slow model does, and never better than one that knows what comes.
func TestPoliciesAreTheirModels(t *testing.T) {
	for _, limit := range []int{1, 2, 7, 100} {
		for name, trace := range traces(1_500*simulationtest.Times, limit) {
			best := optimum(trace, limit)
			for _, cfg := range configs(limit) {
				fast, slow, hits := newRun(cfg), newModel(cfg), 0
				for i, key := range trace {
					hit := fast.access(key)
					require.Equal(t, slow.access(key), hit, "%s, limit %d, %s: use %d of key %d", cfg.title(), limit, name, i, key)
					if hit {
						hits++
					}
				}
				require.LessOrEqual(t, hits, best, "%s, limit %d, %s", cfg.title(), limit, name)
			}
		}
	}
}

// What each policy is for shows in its hit rate, as a part of what is possible.
func TestWhatEachPolicyIsFor(t *testing.T) {
	const n, limit = 100_000, 200
	rates := map[string]map[Policy]float64{}
	aged := map[string]float64{}
	for name, trace := range traces(n, limit) {
		rates[name] = map[Policy]float64{}
		best := float64(optimum(trace, limit))
		for p := range policies {
			rates[name][p] = float64(newRun(Config{Limit: limit, Policy: p, Main: LeastRecentlyUsed, Protected: 0.8, Window: 0.01}).hits(trace)) / best
		}
		aged[name] = float64(newRun(Config{Limit: limit, Policy: LeastFrequentlyUsed, Aging: true}).hits(trace)) / best
		t.Logf("%-6s optimum %.3f aged %.3f %v", name, best/n, aged[name], rates[name])
	}
	for _, c := range []struct {
		trace        string
		better       Policy
		than         Policy
		by           float64
		ofTheOptimum float64
	}{
		{"zipf", WTinyLFU, LeastRecentlyUsed, 0.05, 0.85},
		{"zipf", Segmented, LeastRecentlyUsed, 0.03, 0.8},
		{"scan", WTinyLFU, LeastRecentlyUsed, 0.1, 0.85},
		{"scan", Segmented, LeastRecentlyUsed, 0.05, 0.8},
		{"loop", MostRecentlyUsed, LeastRecentlyUsed, 0.9, 0.9},
		{"loop", WTinyLFU, LeastRecentlyUsed, 0.5, 0.5},
		{"shift", WTinyLFU, LeastFrequentlyUsed, 0.05, 0.8},
	} {
		r := rates[c.trace]
		require.Greater(t, r[c.better], r[c.than]+c.by, "%s: %v than %v", c.trace, c.better, c.than)
		require.Greater(t, r[c.better], c.ofTheOptimum, "%s: %v", c.trace, c.better)
	}
	require.Greater(t, aged["shift"], rates["shift"][LeastFrequentlyUsed]+0.05, "what was used often long ago is forgotten")
}

// Whatever happens in whatever order, each that is seated is in one list, a victim is not named
// twice before it was put back, and everybody can be made to go.
func TestOrdersHoldTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 12).Draw(t, "limit")
		cfg := rapid.SampledFrom(configs(limit)).Draw(t, "config")
		r := newRun(cfg)
		aside := map[Handle]bool{}
		leave := func(s Handle) {
			r.leave(s)
			delete(aside, s)
		}
		pick := func() uint32 { return rapid.Uint32Range(0, 30).Draw(t, "key") }
		t.Repeat(map[string]func(*rapid.T){
			"use": func(*rapid.T) {
				key := pick()
				if s := r.handles[key]; s != 0 {
					r.order.Use(s)
					delete(aside, s)
					return
				}
				s := r.order.Enter(uint64(key))
				require.NotContains(t, r.keys, s)
				r.handles[key], r.keys[s] = s, key
			},
			"leave": func(*rapid.T) {
				if s := r.handles[pick()]; s != 0 {
					leave(s)
				}
			},
			"busy": func(*rapid.T) {
				s := r.order.Victim()
				require.Equal(t, s == 0, len(aside) == len(r.handles))
				require.NotContains(t, aside, s)
				if s != 0 {
					require.Contains(t, r.keys, s)
					aside[s] = true
				}
			},
			"evict": func(*rapid.T) {
				for r.order.Excess() > 0 && len(aside) < len(r.handles) {
					leave(r.order.Victim())
				}
			},
			"return": func(*rapid.T) {
				r.order.Return()
				clear(aside)
			},
			"resize": func(t *rapid.T) { r.order.Resize(rapid.IntRange(0, 40).Draw(t, "to")) },
			"": func(t *rapid.T) {
				require.Equal(t, len(r.handles), r.order.Len())
				r.order.check(t, aside)
			},
		})
	})
}

// check looks at invariants O1 and O2, and at the lists of frequencies.
func (o *Order) check(t *rapid.T, aside map[Handle]bool) {
	in, seated := map[Handle]bool{}, 0
	for id := 1; id < len(o.lists); id++ {
		l, before, n := o.lists[id], Handle(0), 0
		for s := l.first; s != 0; before, s = s, o.entries[s].next {
			e := o.entries[s]
			require.Equal(t, listID(id), e.list)
			require.Equal(t, before, e.prev)
			require.False(t, in[s])
			require.Equal(t, aside[s], listID(id) == o.aside)
			in[s] = true
			n++
		}
		require.Equal(t, before, l.last)
		require.Equal(t, l.n, n)
		seated += n
	}
	require.Equal(t, o.len, seated)
	free := 0
	for s := o.free; s != 0; s = o.entries[s].next {
		require.False(t, in[s])
		free++
	}
	require.Equal(t, len(o.entries)-1, seated+free)
	if p, ok := o.policy.(*frequencyPolicy); ok {
		for id, count := p.lowest, uint32(0); id != 0; id = o.lists[id].next {
			require.Greater(t, o.lists[id].count, count)
			require.NotZero(t, o.lists[id].n)
			count = o.lists[id].count
		}
	}
}

// A larger limit forgets nothing of what the sketch knows.
func TestTheSketchGrowsWithItsEstimates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var k sketch
		k.grow(16)
		keys := rapid.SliceOfN(rapid.Uint32(), 1, 30).Draw(t, "keys")
		for _, key := range keys {
			k.add(key)
		}
		before := map[uint32]uint64{}
		for _, key := range keys {
			before[key] = k.frequency(key)
		}
		k.grow(rapid.IntRange(1, 10_000).Draw(t, "limit"))
		for key, n := range before {
			require.Equal(t, n, k.frequency(key))
		}
	})
}

// What is not used fades, within the time that is promised.
func TestTheSketchFades(t *testing.T) {
	var k sketch
	k.grow(100)
	for range 50 {
		k.add(7)
	}
	require.Equal(t, uint64(maxCount), k.frequency(7))
	for i := range uint32(4 * sketchFades * 100) {
		k.add(1000 + i)
	}
	require.Less(t, k.frequency(7), uint64(maxCount))
}

// A use of one that is seated takes no memory, and the memory of a seat is small.
func TestUsesAllocateNothing(t *testing.T) {
	for _, cfg := range configs(100) {
		r := newRun(cfg)
		trace := traces(2000, 100)["zipf"]
		r.hits(trace)
		i := 0
		require.Zero(t, testing.AllocsPerRun(1000, func() {
			if s := r.handles[trace[i%len(trace)]]; s != 0 {
				r.order.Use(s)
			}
			i++
		}), cfg.title())
	}
}

// Names lead back to their policies.
func TestNames(t *testing.T) {
	for p := range policies {
		back, err := Parse(p.String())
		require.NoError(t, err)
		require.Equal(t, p, back)
	}
	_, err := Parse("fifo")
	require.ErrorContains(t, err, `"fifo" is not a policy: write one of w-tinylfu`)
	require.Equal(t, "policy 9", Policy(9).String())
}

// The cost of a use, and of an eviction with each miss.
func BenchmarkPolicies(b *testing.B) {
	const limit = 10_000
	trace := traces(1<<17, limit)["zipf"]
	for p := range policies {
		cfg := Config{Limit: limit, Policy: p, Main: LeastRecentlyUsed, Protected: 0.8, Window: 0.01, Aging: true}
		b.Run(p.String(), func(b *testing.B) {
			r := newRun(cfg)
			r.hits(trace)
			i := 0
			for b.Loop() {
				r.access(trace[i&(len(trace)-1)])
				i++
			}
		})
	}
}
