// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package fd_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/fd"
)

func BenchmarkPhiHeartbeat(b *testing.B) {
	p, now := newPhi(b, fd.Default()), start
	now = beat(p, now, 1100, time.Second)
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Second)
		p.Heartbeat(now)
	}
}

func BenchmarkPhi(b *testing.B) {
	p := newPhi(b, fd.Default())
	at := beat(p, start, 1100, time.Second).Add(4 * time.Second)
	b.ReportAllocs()
	for b.Loop() {
		p.Phi(at)
	}
}

// BenchmarkRegistryAnswer is the work for one answer: record it, and find the
// moment for which the timer is armed.
func BenchmarkRegistryAnswer(b *testing.B) {
	for _, n := range []int{9, 1000} {
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) {
			r, now := fullRegistry(b, n)
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(time.Second / time.Duration(n))
				r.Heartbeat(i%n, now)
				r.Due(nil)
				i++
			}
		})
	}
}

func fullRegistry(tb testing.TB, n int) (*fd.Registry[int], time.Time) {
	tb.Helper()
	factory, err := fd.NewFactory(fd.Default())
	require.NoError(tb, err)
	r, err := fd.NewRegistry(fd.Default(), factory, cmp.Compare[int])
	require.NoError(tb, err)
	now := start
	for range 1100 {
		now = now.Add(time.Second)
		for i := range n {
			r.Expect(i, now)
			r.Heartbeat(i, now)
		}
	}
	return r, now
}

func BenchmarkRing(b *testing.B) {
	for _, n := range []int{10, 1000} {
		random := rand.New(rand.NewPCG(1, 1))
		nodes := make([]int, n)
		for i := range nodes {
			nodes[i] = int(random.Uint32())
		}
		b.Run(fmt.Sprintf("new/nodes=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				fd.NewRing(9, nodes, identity, cmp.Compare[int])
			}
		})
		b.Run(fmt.Sprintf("receivers/nodes=%d", n), func(b *testing.B) {
			ring := fd.NewRing(9, nodes, identity, cmp.Compare[int])
			b.ReportAllocs()
			for b.Loop() {
				ring.Receivers(nodes[0], nil)
			}
		})
	}
}

// An answer costs no memory once the history is full.
func TestAnswersDoNotAllocate(t *testing.T) {
	r, now := fullRegistry(t, 9)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		now = now.Add(time.Second)
		r.Heartbeat(3, now)
		r.Due(nil)
	}))
}
