// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package fd_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/fd"
)

func TestDefaultIsValid(t *testing.T) {
	require.NoError(t, fd.Default().Validate())
	require.Equal(t, fd.Bounds{MinSilence: 3 * time.Second, MaxSilence: 5 * time.Second}, fd.Default().Bounds())
	require.NoError(t, fd.Default().Bounds().Validate())
}

// Each fault is reported by itself, with its key.
func TestConfigNamesTheKeyOfEachFault(t *testing.T) {
	for _, tc := range []struct {
		key   string
		spoil func(*fd.Config)
	}{
		{"strategy", func(c *fd.Config) { c.Strategy = "" }},
		{"threshold", func(c *fd.Config) { c.Threshold = 0.5 }},
		{"threshold", func(c *fd.Config) { c.Threshold = fd.MaxPhi }},
		{"threshold", func(c *fd.Config) { c.Threshold = math.NaN() }},
		{"max-sample-size", func(c *fd.Config) { c.MaxSampleSize = 1 }},
		{"max-sample-size", func(c *fd.Config) { c.MaxSampleSize = 10_001 }},
		{"min-std-deviation", func(c *fd.Config) { c.MinStdDeviation = 0 }},
		{"acceptable-heartbeat-pause", func(c *fd.Config) { c.AcceptableHeartbeatPause = -time.Second }},
		{"max-silence", func(c *fd.Config) { c.MaxSilence = 2 * time.Second }},
		{"max-silence", func(c *fd.Config) { c.MaxSilence = 2 * time.Hour }},
		{"max-silence", func(c *fd.Config) { c.HeartbeatInterval = 5 * time.Second }},
		{"heartbeat-interval", func(c *fd.Config) { c.HeartbeatInterval = 3 }},
		{"expected-response-after", func(c *fd.Config) { c.ExpectedResponseAfter = 0 }},
		{"monitored-by-nr-of-members", func(c *fd.Config) { c.MonitoredByNrOfMembers = 0 }},
	} {
		t.Run(tc.key, func(t *testing.T) {
			c := fd.Default()
			tc.spoil(&c)
			require.ErrorContains(t, c.Validate(), tc.key+": ")
			_, err := fd.NewFactory(c)
			require.Error(t, err)
			_, err = fd.NewPhiAccrual(c)
			require.Error(t, err)
		})
	}
}

func TestConfigReportsAllFaultsTogether(t *testing.T) {
	err := fd.Config{}.Validate()
	for _, key := range []string{
		"strategy", "threshold", "max-sample-size", "min-std-deviation", "acceptable-heartbeat-pause",
		"max-silence", "heartbeat-interval", "expected-response-after", "monitored-by-nr-of-members",
	} {
		require.ErrorContains(t, err, key)
	}
}

func TestFactoryOfAnUnknownStrategyNamesTheKnownOnes(t *testing.T) {
	c := fd.Default()
	c.Strategy = "oracle"
	_, err := fd.NewFactory(c)
	require.ErrorIs(t, err, fd.ErrUnknownStrategy)
	require.ErrorContains(t, err, fd.StrategyPhiAccrual)
	require.ErrorContains(t, err, fd.StrategyDeadline)
}

func TestDeadlineNeedsALimit(t *testing.T) {
	_, err := fd.NewDeadline(0)
	require.ErrorContains(t, err, "limit 0s")
	d, err := fd.NewDeadline(time.Second)
	require.NoError(t, err)
	d.Heartbeat(start)
	require.True(t, d.Available(start.Add(time.Second-1)))
	require.False(t, d.Available(start.Add(time.Second)))
}
