// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/fd/fdtest"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/sdk"
	"github.com/quorate/quorate/plugins/sdk/sdktest"
)

func defaults() settings {
	var s settings
	s.SetDefaults()
	return s
}

func TestTheContractIsKept(t *testing.T) {
	fdtest.TestDetector(t, func(testing.TB) fd.Detector { return &detector{settings: defaults()} })
}

func TestTheContractIsKeptOverTheWire(t *testing.T) {
	fdtest.TestJudge(t, func(tb testing.TB) fd.Judge {
		tb.Helper()
		return sdktest.FailureDetector(tb, sdk.FailureDetector(newDetectors), map[string]any{"factor": 2.5, "least": "1500ms"})
	})
}

// A node that is silent for long now and then is given as much time again; a regular one is not.
func TestWhatWasSeenBeforeIsTolerated(t *testing.T) {
	limit := func(pause time.Duration) time.Duration {
		d := &detector{settings: defaults()}
		at := time.Unix(0, 0)
		for i := range 300 {
			at = at.Add(time.Second)
			if i%20 == 0 {
				at = at.Add(pause)
			}
			d.Heartbeat(at)
		}
		return d.limit
	}
	require.Equal(t, 3*time.Second, limit(0))
	require.Equal(t, 7500*time.Millisecond, limit(1500*time.Millisecond))
	require.Equal(t, 3*time.Second, limit(time.Hour), "an outage is nothing to learn from")
}

func TestSettingsAreChecked(t *testing.T) {
	for key, change := range map[string]func(*settings){
		"quantile": func(s *settings) { s.Quantile = 1.01 },
		"factor":   func(s *settings) { s.Factor = 0.5 },
		"samples":  func(s *settings) { s.Samples = 1 },
		"least":    func(s *settings) { s.Least = 0 },
	} {
		s := defaults()
		change(&s)
		_, err := newDetectors(s)
		var fault plugins.SettingError
		require.ErrorAs(t, err, &fault)
		require.Equal(t, key, fault.Key)
	}
}
