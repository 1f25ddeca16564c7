// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package plugins_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/plugins"
)

func valid() plugins.Config {
	c := plugins.Default()
	c.Policy, c.Path, c.SHA256 = plugins.Downing, "/usr/lib/witness", plugins.Checksums{strings.Repeat("0f", 32)}
	return c
}

func TestDurationsOfZeroMeanTheDefault(t *testing.T) {
	var c plugins.Config
	c.Policy, c.Path, c.Unpinned = plugins.Allocation, "p", true
	require.NoError(t, c.Validate())
	want := plugins.Default()
	want.Policy, want.Path, want.Unpinned = c.Policy, c.Path, true
	require.Equal(t, want, c.WithDefaults())
	require.NoError(t, valid().Validate())
}

func TestEveryFaultIsNamedWithItsKey(t *testing.T) {
	for key, spoil := range map[string]func(*plugins.Config){
		"policy":              func(c *plugins.Config) { c.Policy = "downin" },
		"path":                func(c *plugins.Config) { c.Path = "" },
		"sha256":              func(c *plugins.Config) { c.SHA256 = nil },
		"unpinned":            func(c *plugins.Config) { c.Unpinned = true },
		"args":                func(c *plugins.Config) { c.Args = make([]string, 65) },
		"environment":         func(c *plugins.Config) { c.Environment = map[string]string{"A=B": "c"} },
		"settings":            func(c *plugins.Config) { c.Settings = map[string]any{"x": math.NaN()} },
		"start-timeout":       func(c *plugins.Config) { c.StartTimeout = time.Hour },
		"call-timeout":        func(c *plugins.Config) { c.CallTimeout = 5*time.Second + 1 },
		"health-interval":     func(c *plugins.Config) { c.HealthInterval = -1 },
		"health-timeout":      func(c *plugins.Config) { c.HealthTimeout = 1 },
		"restart-backoff-min": func(c *plugins.Config) { c.RestartBackoffMin = time.Minute },
		"limits.memory-bytes": func(c *plugins.Config) { c.Limits.MemoryBytes = 1 << 20 },
		"limits.tasks":        func(c *plugins.Config) { c.Limits.Tasks = -2 },
		"user":                func(c *plugins.Config) { c.User = "a:b" },
		"group":               func(c *plugins.Config) { c.Group = "a\nb" },
		"restart-backoff-max": func(c *plugins.Config) { c.RestartBackoffMax = 2 * time.Hour },
	} {
		c := valid()
		spoil(&c)
		err := c.Validate()
		require.Error(t, err, key)
		var field interface {
			error
			Field() string
		}
		require.ErrorAs(t, err, &field)
		require.Equal(t, key, field.Field(), "%v", err)
		require.True(t, strings.HasPrefix(field.Error(), key+": "), "%v", err)
	}
}

// One checksum a platform: any of them is that of the file, and each must be one.
func TestChecksumsAreHeldAgainstTheirForm(t *testing.T) {
	one, two := strings.Repeat("0f", 32), strings.Repeat("ab", 32)
	for want, sums := range map[string]plugins.Checksums{
		"": {one, two},
		"sha256: is an empty list: give the checksum of the file":  {},
		`sha256: "xyz" is not 64 hexadecimal digits`:               {"xyz"},
		`sha256[1]: "" is not 64 hexadecimal digits`:               {one, ""},
		`sha256[1]: "` + strings.ToUpper(one) + `" is there twice`: {one, strings.ToUpper(one)},
		"sha256: has 65 checksums, the limit is 64":                many(65),
		`sha256[0]: "` + one + `0" is not 64 hexadecimal digits`:   {one + "0", two},
	} {
		c := valid()
		c.SHA256 = sums
		if err := c.Validate(); want != "" {
			require.EqualError(t, err, want)
		} else {
			require.NoError(t, err)
		}
	}
	require.True(t, plugins.Checksums{one, two}.Match(strings.ToUpper(two)))
	require.False(t, plugins.Checksums{one}.Match(two))
	require.False(t, plugins.Checksums(nil).Match(""))
}

// many returns as many checksums, each once.
func many(n int) (sums plugins.Checksums) {
	for i := range n {
		sums = append(sums, fmt.Sprintf("%064x", i))
	}
	return sums
}

func TestFaultsAreReportedTogether(t *testing.T) {
	c := valid()
	c.SHA256, c.Policy, c.Args = plugins.Checksums{"xyz"}, "", []string{"a\x00b"}
	c.Environment = map[string]string{"PLUGIN_MIN_PORT": "1", plugins.CookieKey: "x"}
	c.Settings = map[string]any{"x": strings.Repeat("y", plugins.MaxSettingsBytes)}
	var joined interface{ Unwrap() []error }
	require.ErrorAs(t, c.Validate(), &joined)
	require.Len(t, joined.Unwrap(), 6)
}

// One message names the plugin, the file, the cause and the cure.
func TestErrorsSayWhatAnOperatorNeeds(t *testing.T) {
	cause := plugins.SettingErrors{{Key: "url", Reason: "is empty"}, {Reason: "too few"}}
	var err error = &plugins.Error{Plugin: "witness", Path: "/w", Err: plugins.ErrSettings, Cause: cause, Cure: "see its manual"}
	require.EqualError(t, err, `plugin "witness" (/w): settings refused: url: is empty; too few; see its manual`)
	require.ErrorIs(t, err, plugins.ErrSettings)
	require.ErrorIs(t, cause, plugins.ErrSettings)
	var one plugins.SettingError
	require.ErrorAs(t, err, &one)
	require.Equal(t, "url", one.Field())

	err = &plugins.CallError{Plugin: "w", Call: "decide", Err: plugins.ErrStrategy, Cause: errors.New("witness does not answer")}
	require.EqualError(t, err, `plugin "w": decide: strategy has no answer: witness does not answer`)
	require.ErrorIs(t, fmt.Errorf("x: %w", err), plugins.ErrStrategy)

	at := time.Date(2026, 11, 21, 18, 0, 0, 0, time.UTC)
	err = &plugins.UnavailableError{Plugin: "w", Since: at, Why: errors.New("killed"), NextTry: at.Add(time.Second)}
	require.EqualError(t, err, `plugin "w": unavailable since 2026-11-21T18:00:00Z: killed; next try at 2026-11-21T18:00:01Z`)
	require.ErrorIs(t, err, plugins.ErrUnavailable)

	require.ErrorIs(t, &plugins.Error{Err: plugins.ErrClosed}, plugins.ErrClosed)
	require.ErrorIs(t, &plugins.CallError{Err: plugins.ErrLimit}, plugins.ErrLimit)
	require.ErrorIs(t, &plugins.UnavailableError{}, plugins.ErrUnavailable)
}

func TestManifestsPrintInOneLine(t *testing.T) {
	m := plugins.Manifest{Name: "witness", Version: "1.0.0", Policy: plugins.Downing, Contract: plugins.Version1}
	for class, want := range map[plugins.Class]string{
		{}:                               "none",
		{Pure: true}:                     "pure",
		{MajorityOnly: true}:             "majority-only",
		{Pure: true, MajorityOnly: true}: "pure, majority-only",
	} {
		m.Class = class
		require.Equal(t, "witness 1.0.0 (downing, contract 1, class "+want+")", m.String())
	}
}
