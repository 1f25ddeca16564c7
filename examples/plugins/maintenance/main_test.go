// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/bootstrap"
	"github.com/quorate/quorate/discovery/bootstrap/bootstraptest"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/sdk"
	"github.com/quorate/quorate/plugins/sdk/sdktest"
)

// always are settings by which nodes may join at any time.
func always() map[string]any {
	return map[string]any{"join": "inside", "windows": []any{map[string]any{
		"days": []any{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}, "from": "00:00", "to": "00:00",
	}}}
}

func TestTheContractIsKept(t *testing.T) {
	bootstraptest.TestJoinDecider(t, func(tb testing.TB) bootstrap.JoinDecider {
		tb.Helper()
		d, err := newMaintenance(settings{Windows: []window{{Days: []day{0, 1, 2, 3, 4, 5, 6}}}, Zone: "UTC", Join: inside})
		require.NoError(tb, err)
		return d
	})
}

func TestTheContractIsKeptOverTheWire(t *testing.T) {
	bootstraptest.TestJoinDecider(t, func(tb testing.TB) bootstrap.JoinDecider {
		tb.Helper()
		return sdktest.JoinDecider(tb, sdk.JoinDecider(newMaintenance), always())
	})
}

// Windows are open by the clocks of their zone, over midnight and over a change of the clocks, and a node that waits
// is told until when.
func TestWindowsAreOpenAtTheirTimes(t *testing.T) {
	night := window{Days: []day{day(time.Saturday)}, From: 22 * 60, To: 4 * 60}
	noon := window{Days: []day{day(time.Monday), day(time.Thursday)}, From: 12 * 60, To: 13 * 60}
	for name, c := range map[string]struct {
		now, zone string
		windows   []window
		open      bool
		until     string
	}{
		"before":                   {"2026-11-30T11:59:59Z", "UTC", []window{noon}, false, "2026-11-30T12:00:00Z"},
		"at its beginning":         {"2026-11-30T12:00:00Z", "UTC", []window{noon}, true, "2026-11-30T13:00:00Z"},
		"at its end":               {"2026-11-30T13:00:00Z", "UTC", []window{noon}, false, "2026-12-03T12:00:00Z"},
		"over midnight":            {"2026-12-06T03:59:00Z", "UTC", []window{night}, true, "2026-12-06T04:00:00Z"},
		"a week until the next":    {"2026-12-06T04:00:00Z", "UTC", []window{night}, false, "2026-12-12T22:00:00Z"},
		"over a year":              {"2026-12-31T13:00:00Z", "UTC", []window{noon}, false, "2027-01-04T12:00:00Z"},
		"in another zone":          {"2026-12-06T03:30:00Z", "Europe/Berlin", []window{night}, false, "2026-12-12T22:00:00+01:00"},
		"as clocks go forward":     {"2026-03-29T01:30:00Z", "Europe/Berlin", []window{night}, true, "2026-03-29T04:00:00+02:00"},
		"as clocks go back":        {"2026-10-25T02:30:00Z", "Europe/Berlin", []window{night}, true, "2026-10-25T04:00:00+01:00"},
		"24 hours":                 {"2026-12-01T11:00:00Z", "UTC", []window{{noon.Days, 12 * 60, 12 * 60}}, true, "2026-12-01T12:00:00Z"},
		"the latest end counts":    {"2026-12-06T00:30:00Z", "UTC", []window{{night.Days, 22 * 60, 60}, night}, true, "2026-12-06T04:00:00Z"},
		"the first one that comes": {"2026-12-04T00:00:00Z", "UTC", []window{noon, night}, false, "2026-12-05T22:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := newMaintenance(settings{Windows: c.windows, Zone: c.zone, Join: outside})
			require.NoError(t, err)
			now, err := time.Parse(time.RFC3339, c.now)
			require.NoError(t, err)
			open, until := d.(*maintenance).window(now)
			require.Equal(t, c.open, open)
			require.Equal(t, c.until, until.Format(time.RFC3339))
		})
	}
}

// Nodes join on one side of the window alone, and there by the built-in rule.
func TestNodesJoinOnOneSide(t *testing.T) {
	self := discovery.Target{Host: "10.0.0.1", Port: 7946}
	alone := bootstrap.Observations{Service: "bank", Self: self, Required: 1, Points: []bootstrap.Observed{{Point: self}}}
	windows := []window{{Days: []day{day(time.Monday)}, From: 12 * 60, To: 13 * 60}}
	in, out := time.Date(2026, 11, 30, 12, 30, 0, 0, time.UTC), time.Date(2026, 11, 30, 13, 30, 0, 0, time.UTC)
	for _, c := range []struct {
		join   string
		now    time.Time
		action bootstrap.Action
		reason string
	}{
		{outside, in, bootstrap.Probe, "a window is open, and nodes join outside: waiting until Mon 2026-11-30 13:00 UTC"},
		{outside, out, bootstrap.Form, ""},
		{inside, in, bootstrap.Form, ""},
		{inside, out, bootstrap.Probe, "no window is open, and nodes join inside: waiting until Mon 2026-12-07 12:00 UTC"},
	} {
		d, err := newMaintenance(settings{Windows: windows, Zone: "UTC", Join: c.join})
		require.NoError(t, err)
		d.(*maintenance).now = func() time.Time { return c.now }
		got, err := d.Decide(t.Context(), alone)
		require.NoError(t, err)
		require.Equal(t, c.action, got.Action)
		require.Contains(t, got.Reason, c.reason)
		require.NotContains(t, got.Reason, "0001")
	}
}

func TestSettingsAreChecked(t *testing.T) {
	windows := []window{{Days: []day{1}}}
	for key, s := range map[string]settings{
		"windows":         {Zone: "UTC", Join: inside},
		"zone":            {Windows: windows, Zone: "Europe/Nowhere", Join: inside},
		"join":            {Windows: windows, Zone: "UTC", Join: "never"},
		"windows[1].days": {Windows: []window{windows[0], {}}, Zone: "UTC", Join: inside},
	} {
		_, err := newMaintenance(s)
		var fault plugins.SettingError
		require.ErrorAs(t, err, &fault)
		require.Equal(t, key, fault.Key)
	}
	_, err := newMaintenance(settings{Windows: windows, Zone: "Local", Join: inside})
	require.ErrorContains(t, err, `"Local" is no time zone`)
	var d day
	require.ErrorContains(t, d.UnmarshalText([]byte("monday")), "none of sun, mon")
	var c clock
	require.ErrorContains(t, c.UnmarshalText([]byte("24:00")), "00:00 to 23:59")
	require.NoError(t, c.UnmarshalText([]byte("22:30")))
	require.Equal(t, clock(22*60+30), c)
}
