// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package clustertest_test

import (
	"runtime/metrics"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster/clustertest"
)

// wakeUps returns how often a goroutine of this process has begun to run since it waited. The Go scheduler counts one
// of eight.
func wakeUps() (n uint64) {
	read := []metrics.Sample{{Name: "/sched/latencies:seconds"}}
	metrics.Read(read)
	for _, some := range read[0].Value.Float64Histogram().Counts {
		n += 8 * some
	}
	return n
}

// A node that does nothing, in a quiet cluster of ten, wakes goroutines only for heartbeats, gossip and the ticks of
// its parts: connections that nobody uses have no timers that ring.
func TestAQuietNodeSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const nodes, seconds, most = 10, 60, 88 // There are 73. With timers that ring on each connection there were 98.
		c := clustertest.Start(t, nodes)
		c.Advance(10 * time.Minute) // Longer than transport.idle-after.
		before := wakeUps()
		c.Advance(seconds * time.Second)
		require.LessOrEqual(t, (wakeUps()-before)/(nodes*seconds), uint64(most), "in a second of one node")
	})
}
