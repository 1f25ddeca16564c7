// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process && linux

package host_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/downing/downingtest"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/host"
)

// sdkConfig returns the configuration of a plugin that package sdk serves, with the strategy
// keep-majority.
func sdkConfig(t testing.TB, settings map[string]any) plugins.Config {
	t.Helper()
	path, err := served()
	require.NoError(t, err)
	return plugins.Config{Policy: plugins.Downing, Path: path, SHA256: plugins.Checksums{checksum(t, path)}, Settings: settings, StartTimeout: 10 * time.Second}
}

// The conformance suite of providers passes through host and SDK, and its calls do not end
// the process.
func TestSuiteThroughHostAndSDK(t *testing.T) {
	p, w := open(t, sdkConfig(t, nil))
	downingtest.TestProvider(t, func(testing.TB) downing.Provider { return provider(t, p) })
	require.Equal(t, []plugins.EventType{plugins.Started}, w.Types())
	require.Equal(t, downing.KeepMajority{}.Class(), provider(t, p).Class())
	t.Logf("%d calls", p.Status().Calls)
}

func TestSettingsAreCheckedByThePlugin(t *testing.T) {
	base := clean(t)
	for _, c := range []struct {
		settings map[string]any
		key      string
	}{
		{map[string]any{"greetin": "x"}, "greetin"},
		{map[string]any{"delay": "soon"}, "delay"},
		{map[string]any{"panic": 7}, "panic"},
		{map[string]any{"delay": "-1s"}, ""},
	} {
		_, err := host.Open(t.Context(), "subject", sdkConfig(t, c.settings), host.WithDirectory(base))
		var faults plugins.SettingErrors
		require.ErrorAs(t, err, &faults)
		require.ErrorIs(t, err, plugins.ErrSettings)
		require.Equal(t, c.key, faults[0].Field())
	}
}

// What a strategy logs is in the node's log under the plugin's name, and a panic is
// the failure of one call.
func TestPanicIsTheFailureOfOneCall(t *testing.T) {
	p, w := open(t, sdkConfig(t, map[string]any{"greeting": "good morning", "panic": true}))
	pid := p.Status().PID
	for range 3 {
		_, err := provider(t, p).Decide(t.Context(), view(t, 3))
		require.ErrorIs(t, err, plugins.ErrFault)
		require.ErrorContains(t, err, "as the settings say")
	}
	require.Equal(t, pid, p.Status().PID)
	require.Equal(t, uint64(3), p.Status().Failures)
	patience.Eventually(t, func() bool {
		return w.contains(`msg="the plugin logs" plugin=subject text="good morning" with.members=3`)
	}, "the line is logged")
	patience.Eventually(t, func() bool {
		return w.contains(`level=ERROR msg="the plugin logs" plugin=subject text="the strategy panicked" with.call=decide`)
	}, "the stack is logged")
}

// A process that replaces another has kept no members: it is sent them once, in the same call
// that left them out. Whoever asks for the strategy shares what is kept. covers F56.
func TestAReplacedProcessIsSentTheMembersAgain(t *testing.T) {
	p, _ := open(t, sdkConfig(t, nil))
	decides := func() downing.Decision {
		d, err := provider(t, p).Decide(t.Context(), view(t, 3))
		require.NoError(t, err)
		return d
	}
	want := decides()
	require.Equal(t, want, decides())
	require.Zero(t, p.Status().Resent)
	for restarts := uint64(1); restarts <= 3; restarts++ {
		pid := p.Status().PID
		kill(t, pid)
		patience.Eventually(t, func() bool {
			s := p.Status()
			return s.State == plugins.StateRunning && s.PID != pid
		}, "it is replaced")
		require.Equal(t, want, decides())
		require.Equal(t, want, decides())
		require.Equal(t, restarts, p.Status().Resent)
	}
	require.NoError(t, p.Swap(t.Context(), sdkConfig(t, map[string]any{"greeting": "again"})))
	require.Equal(t, want, decides())
	require.Equal(t, uint64(4), p.Status().Resent)
	require.Zero(t, p.Status().Failures)
}

// A served plugin that its host tells to stop ends by itself, before it would be killed.
func TestServedPluginStopsWhenTold(t *testing.T) {
	p, w := open(t, sdkConfig(t, nil))
	require.NoError(t, p.Close(t.Context()))
	e, ok := w.Last(plugins.Exited)
	require.True(t, ok)
	require.ErrorContains(t, e.Err, "exit status 0")
}

// A process that is only launched is started as every other, is not configured, and gets the bytes that it is sent.
// What it prints is taken by whoever asks for it.
func TestALaunchedProcessIsNotConfigured(t *testing.T) {
	base := clean(t)
	printed := new(host.Output)
	c := sdkConfig(t, map[string]any{"greeting": "unheard"})
	p, err := host.Launch(t.Context(), "subject", c, host.WithDirectory(base), host.WithOutput(printed))
	require.NoError(t, err)
	_, err = p.Call(patience.Context(t), "/quorate.plugin.v1.Downing/Decide", []byte{})
	require.Equal(t, codes.FailedPrecondition, status.Code(err), "%v", err)
	_, err = p.Call(patience.Context(t), "/quorate.plugin.v1.Downing/Decide", make([]byte, plugins.MaxRequestBytes+1))
	require.Equal(t, codes.ResourceExhausted, status.Code(err), "the plugin refuses it, not who sends it: %v", err)
	answer, err := p.Call(patience.Context(t), "/quorate.plugin.v1.Plugin/Configure", nil)
	require.NoError(t, err)
	require.Contains(t, string(answer), "served")
	require.NoError(t, p.Close())
	require.NoError(t, p.Close())
	<-p.Exited()
	require.ErrorContains(t, p.Err(), "exit status 0")

	c.SHA256 = plugins.Checksums{strings.Repeat("0", 64)}
	_, err = host.Launch(t.Context(), "subject", c, host.WithDirectory(base))
	require.ErrorIs(t, err, plugins.ErrChecksum)
	c.Path = "relative"
	_, err = host.Launch(t.Context(), "subject", c, host.WithDirectory(base))
	require.ErrorContains(t, err, "is not absolute")
}
