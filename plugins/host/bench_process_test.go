// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process && linux

package host_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/host"
)

// BenchmarkLaunch measures how long a plugin takes from its configuration to its first
// decision, about 100 members: the copy, its checksum twice, certificates, handshake,
// settings, and the call.
func BenchmarkLaunch(b *testing.B) {
	base, cfg, v := clean(b), config(b, plugins.Downing, "good"), view(b, 100)
	for b.Loop() {
		p, err := host.Open(b.Context(), "subject", cfg, host.WithDirectory(base))
		require.NoError(b, err)
		_, err = provider(b, p).Decide(b.Context(), v)
		require.NoError(b, err)
		b.StopTimer()
		require.NoError(b, p.Close(b.Context()))
		b.StartTimer()
	}
}

// BenchmarkDecide measures one decision of a process that runs.
func BenchmarkDecide(b *testing.B) {
	for _, members := range []int{3, 100, 1000} {
		b.Run(fmt.Sprintf("members=%d", members), func(b *testing.B) {
			p, _ := open(b, config(b, plugins.Downing, "good"))
			d, v := provider(b, p), view(b, members)
			var took []time.Duration
			b.ReportAllocs()
			for b.Loop() {
				began := time.Now()
				_, err := d.Decide(b.Context(), v)
				took = append(took, time.Since(began))
				require.NoError(b, err)
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
		})
	}
}

// BenchmarkOutage measures for how long callers have no plugin when its process is killed,
// with the default back-off.
func BenchmarkOutage(b *testing.B) {
	cfg := config(b, plugins.Downing, "good")
	cfg.RestartBackoffMin, cfg.RestartBackoffMax = 0, 0
	p, w := open(b, cfg)
	var away []time.Duration
	for b.Loop() {
		before := p.Status()
		kill(b, before.PID)
		patience.Eventually(b, func() bool { return p.Status().Restarts > before.Restarts }, "it is replaced")
		e, _ := w.Last(plugins.Restarted)
		away = append(away, e.Away)
		if len(away)%4 == 0 {
			// A swap makes the plugin forget its failures. Otherwise the breaker would open,
			// and its time would be measured too.
			require.NoError(b, p.Swap(b.Context(), cfg))
		}
	}
	slices.Sort(away)
	b.ReportMetric(float64(away[len(away)/2].Milliseconds()), "p50-ms-away")
}
