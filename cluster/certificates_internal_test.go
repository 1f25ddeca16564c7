// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/internal/patience/logtest"
	"github.com/quorate/quorate/transport/mutual/mutualtest"
)

// The log tells of the end of a certificate 30 days, 7 days and a day before it, once each, and when it is there. A new
// file ends that, and is told of in its turn.
func TestTheLogTellsBeforeACertificateEnds(t *testing.T) {
	const day = 24 * time.Hour
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		authority := mutualtest.NewAuthority(t, "bank")
		cfg := Default()
		cfg.Transport.TLS = authority.Write(t, dir, authority.Issue(t, mutualtest.Leaf{Until: 99 * day}))
		c, err := openCertificates(cfg)
		require.NoError(t, err)
		var log logtest.Buffer
		c.start(noop.NewMeterProvider(), gossip.NodeID{}, slog.New(slog.NewTextHandler(&log, nil)))
		defer c.stop()
		lines := func(after time.Duration) (own []string) {
			<-time.After(after)
			synctest.Wait()
			for line := range strings.Lines(log.Take()) {
				if strings.Contains(line, "the certificate CN=node") {
					own = append(own, line)
				}
			}
			return own
		}
		warns := func(after time.Duration, what string) {
			t.Helper()
			got := lines(after)
			require.Len(t, got, 1)
			require.Contains(t, got[0], what)
			require.Contains(t, got[0], "section=transport.tls")
			require.Contains(t, strings.Join(c.warnings(), "\n"), what)
		}
		require.Empty(t, lines(68*day))
		require.NotContains(t, strings.Join(c.warnings(), "\n"), "the certificate CN=node")
		warns(2*day, "expires within 30 days")
		require.Empty(t, lines(21*day))
		warns(2*day, "expires within 7 days")
		warns(5*day+day/2, "expires within a day")
		warns(day, "has expired on")
		require.Empty(t, lines(day))
		authority.Write(t, dir, authority.Issue(t, mutualtest.Leaf{Until: 99 * day}))
		require.Empty(t, lines(2*time.Hour))
		require.NotContains(t, strings.Join(c.warnings(), "\n"), "the certificate CN=node")
		warns(70*day, "expires within 30 days")
	})
}
