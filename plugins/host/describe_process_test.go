// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process && linux

package host_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/host"
)

// What a plugin says of its settings before it gets them: with it the host refuses what the plugin would refuse, and
// more if the plugin says so; without it, or when it cannot be used, the plugin gets them as they are.

const unusable = "the settings are not checked before the plugin gets them"

// The SDK says of a plugin which settings it takes, and the host refuses others without asking.
func TestSettingsAreHeldToTheSchemaBeforeThePluginGetsThem(t *testing.T) {
	base := clean(t)
	d, err := host.Describe(t.Context(), "subject", sdkConfig(t, nil), host.WithDirectory(base))
	require.NoError(t, err)
	require.NoError(t, d.Fault)
	require.Equal(t, "served 1.0.0 (downing, contract 1, class none)", d.Manifest.String())
	require.Contains(t, string(d.Schema.Text()), `"description":"What is logged for each question."`)
	require.NoError(t, d.Check(map[string]any{"greeting": "x", "delay": "1s"}))
	err = d.Check(map[string]any{"greetin": "x", "delay": "soon"})
	require.EqualError(t, err, `delay: "soon" is no duration such as 3s or 500ms; greetin: is unknown; there are delay, greeting, panic`)

	w := &watcher{}
	_, told := host.Open(t.Context(), "subject", sdkConfig(t, map[string]any{"greetin": "x", "delay": "soon"}), w.options(base)...)
	require.ErrorIs(t, told, plugins.ErrSettings)
	var faults plugins.SettingErrors
	require.ErrorAs(t, told, &faults)
	require.Equal(t, err.Error(), faults.Error())
	require.False(t, w.contains(unusable))
}

// The schema is the plugin's word: what it refuses is refused, whatever Configure would say, and what it takes goes to
// Configure, which may refuse it.
func TestASchemaThatLiesIsBelieved(t *testing.T) {
	with := func(schema string, settings map[string]any) error {
		c := sdkConfig(t, settings)
		c.Environment = map[string]string{"SCHEMA": schema}
		w := &watcher{}
		_, err := host.Open(t.Context(), "subject", c, w.options(clean(t))...)
		require.False(t, w.contains(unusable))
		return err
	}
	require.ErrorContains(t, with(`{"additionalProperties": false}`, map[string]any{"greeting": "x"}), "greeting: is unknown")
	err := with(`{}`, map[string]any{"greetin": "x"})
	require.ErrorIs(t, err, plugins.ErrSettings)
	require.ErrorContains(t, err, "greetin: is unknown; there are delay, greeting, panic")
}

// A description that cannot be used is said once, as an error, and the plugin runs with its settings. covers F56, F60.
func TestADescriptionThatCannotBeUsedIsSaidOnce(t *testing.T) {
	for name, c := range map[string]struct{ mode, schema, want string }{
		"no JSON":            {"describes", `{"type": `, "no JSON"},
		"no schema":          {"describes", `{"type": 7}`, "no JSON Schema"},
		"deep":               {"describes", strings.Repeat(`{"not":`, 100) + "{}" + strings.Repeat("}", 100), "more than 32 others"},
		"a $ref to a host":   {"describes", `{"$ref": "https://example.com/schema"}`, "no other document is read"},
		"a $ref without end": {"describes", `{"$ref": "#"}`, "without end"},
		"1 MiB":              {"describesmuch", "", "the limit is 65536"},
		"64 MiB":             {"describeshugely", "", "limit exceeded"},
		"no name":            {"describesnobody", "", "name"},
		"no answer":          {"hangdescribe", "", "deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config(t, plugins.Downing, c.mode, "SCHEMA="+c.schema)
			cfg.Settings = map[string]any{"any": "thing"}
			if c.mode == "hangdescribe" {
				cfg.StartTimeout = 3 * time.Second
			}
			p, w := open(t, cfg)
			_, err := provider(t, p).Decide(t.Context(), view(t, 3))
			require.NoError(t, err)
			require.Error(t, p.Declaration().Fault)
			require.Contains(t, p.Declaration().Fault.Error(), c.want)
			pid := p.Status().PID
			kill(t, pid)
			patience.Eventually(t, func() bool { s := p.Status(); return s.State == plugins.StateRunning && s.PID != pid }, "it is replaced")
			require.Equal(t, 1, strings.Count(w.log.String(), unusable), w.log.String())
			require.Contains(t, w.log.String(), "level=ERROR msg=\""+unusable)
		})
	}
}

// A method of the author that panics is a description that cannot be used, and the process goes on.
func TestASchemaThatPanicsIsAFault(t *testing.T) {
	c := sdkConfig(t, nil)
	c.Environment = map[string]string{"SCHEMA": "panic"}
	p, w := open(t, c)
	require.ErrorIs(t, p.Declaration().Fault, plugins.ErrFault)
	require.True(t, w.contains("as the environment says"))
	_, err := provider(t, p).Decide(t.Context(), view(t, 3))
	require.NoError(t, err)
}

// A plugin of an earlier release describes nothing, which is no fault; one that ends when it is asked is no plugin.
func TestAPluginThatDescribesNothingRuns(t *testing.T) {
	_, err := host.Open(t.Context(), "subject", config(t, plugins.Downing, "diesdescribe"), host.WithDirectory(clean(t)))
	require.ErrorIs(t, err, plugins.ErrNotPlugin)
	require.ErrorContains(t, err, "exit status 6")
	p, w := open(t, config(t, plugins.Downing, "good"))
	require.Zero(t, p.Declaration())
	require.False(t, w.contains(unusable))
}

// A swap is held to what the new process says of itself.
func TestASwapIsHeldToTheSchema(t *testing.T) {
	p, _ := open(t, sdkConfig(t, nil))
	err := p.Swap(t.Context(), sdkConfig(t, map[string]any{"delay": 3}))
	require.ErrorIs(t, err, plugins.ErrSettings)
	require.ErrorContains(t, err, "delay: 3 is no duration")
	require.NoError(t, p.Swap(t.Context(), sdkConfig(t, map[string]any{"delay": "1ms"})))
	require.NotNil(t, p.Declaration().Schema)
}
