// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package sharding_test

import (
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding"
)

// BenchmarkFlood measures four senders that tell 1,000 entities of their own node in turn, without
// a pause: whoever sends and whoever handles share the processors. Beside the time it reports how
// much of the processors a message takes.
func BenchmarkFlood(b *testing.B) {
	a := newArena(b, 1, func(c *sharding.Config) { c.MailboxSize = 16_384 })
	ids, message := a.ids(0, 1000), payload(64)
	b.ReportAllocs()
	b.ResetTimer()
	before := cpuTime(b)
	var senders sync.WaitGroup
	for range 4 {
		senders.Go(func() {
			for n := range b.N / 4 {
				if err := a.regions[0].Tell(b.Context(), ids[n%len(ids)], message); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	senders.Wait()
	a.sync(b, ids)
	b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
}

// cpuTime returns what this process has had of the processors.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
