// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Command maintenance is a join decider plugin for weekly windows: nodes without a cluster join or form one only
// outside of them, such as while a network is worked on, or only inside of them, such as when somebody watches. Then
// the built-in rule decides, the lowest address. A node that waits asks again after membership.join-interval.
package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // An image may have no time zones.

	"github.com/quorate/quorate/discovery/bootstrap"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/sdk"
)

const (
	outside = "outside"
	inside  = "inside"

	maxWindows = 100
)

// settings are the settings under plugins.<name>.settings.
type settings struct {
	Windows []window // From 1 to 100.
	Zone    string   // The time zone of the windows, such as Europe/Berlin; by default UTC.
	Join    string   // When nodes join: outside, the default, or inside of the windows.
}

// SetDefaults sets the zone, and that nodes join outside.
func (s *settings) SetDefaults() { s.Zone, s.Join = "UTC", outside }

// window is a time of some days of the week.
type window struct {
	Days []day // The days on which it begins, at least one.
	From clock
	To   clock // Not above From: on the next day. Equal: 24 hours.
}

// day is a day of the week, as a text of three letters such as mon.
type day time.Weekday

// UnmarshalText reads a day.
func (d *day) UnmarshalText(text []byte) error {
	days := []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}
	at := slices.Index(days, string(text))
	if at < 0 {
		return fmt.Errorf("it is none of %s", strings.Join(days, ", "))
	}
	*d = day(at)
	return nil
}

// clock is a time of the day in minutes, as a text such as 22:30.
type clock int

// UnmarshalText reads a time.
func (c *clock) UnmarshalText(text []byte) error {
	at, err := time.Parse("15:04", string(text))
	if err != nil {
		return fmt.Errorf("it is not from 00:00 to 23:59")
	}
	*c = clock(at.Hour()*60 + at.Minute())
	return nil
}

type maintenance struct {
	settings
	zone *time.Location
	now  func() time.Time
}

func newMaintenance(s settings) (bootstrap.JoinDecider, error) {
	zone, err := time.LoadLocation(s.Zone)
	switch {
	case len(s.Windows) == 0 || len(s.Windows) > maxWindows:
		return nil, plugins.SettingError{Key: "windows", Reason: fmt.Sprintf("there are %d, from 1 to %d are needed", len(s.Windows), maxWindows)}
	case err != nil || s.Zone == "Local": // That differs between the nodes.
		return nil, plugins.SettingError{Key: "zone", Reason: fmt.Sprintf("%q is no time zone such as Europe/Berlin", s.Zone)}
	case s.Join != outside && s.Join != inside:
		return nil, plugins.SettingError{Key: "join", Reason: fmt.Sprintf("%q is neither outside nor inside", s.Join)}
	}
	for i, w := range s.Windows {
		if len(w.Days) == 0 {
			return nil, plugins.SettingError{Key: fmt.Sprintf("windows[%d].days", i), Reason: "there is none: name days such as mon"}
		}
	}
	return &maintenance{s, zone, time.Now}, nil
}

// Class promises nothing: what is decided depends on the time.
func (m *maintenance) Class() bootstrap.Class { return bootstrap.Class{} }

// Decide waits, or leaves the decision to the built-in rule.
func (m *maintenance) Decide(_ context.Context, o bootstrap.Observations) (bootstrap.Decision, error) {
	in, until := m.window(m.now())
	if in == (m.Join == inside) {
		return bootstrap.LowestAddress{}.DecideNow(o), nil
	}
	where := "no window is open"
	if in {
		where = "a window is open"
	}
	return bootstrap.Decision{Reason: fmt.Sprintf("%s, and nodes join %s: waiting until %s", where, m.Join, until.Format("Mon 2006-01-02 15:04 MST"))}, nil
}

// window says whether a window is open, and until when: the latest end of those that are, else the first beginning of
// another one.
func (m *maintenance) window(now time.Time) (open bool, until time.Time) {
	now = now.In(m.zone)
	var end, begin time.Time
	for _, w := range m.Windows {
		for days := -1; days <= 7; days++ { // One that is open began yesterday at the earliest.
			from, to := w.on(now, days)
			switch {
			case !slices.Contains(w.Days, day(from.Weekday())) || !to.After(now):
			case from.After(now):
				if begin.IsZero() || from.Before(begin) {
					begin = from
				}
			case to.After(end):
				end = to
			}
		}
	}
	if !end.IsZero() {
		return true, end
	}
	return false, begin
}

// on returns the window that begins some days after now.
func (w window) on(now time.Time, days int) (from, to time.Time) {
	year, month, date := now.Date()
	at := func(date int, c clock) time.Time {
		return time.Date(year, month, date, 0, int(c), 0, 0, now.Location())
	}
	from, to = at(date+days, w.From), at(date+days, w.To)
	if w.To <= w.From {
		to = at(date+days+1, w.To)
	}
	return from, to
}

func main() {
	sdk.Serve(sdk.JoinDecider(newMaintenance), sdk.WithName("maintenance"), sdk.WithVersion("1.0.0"))
}
