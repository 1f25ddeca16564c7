// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Command quantile is a failure detector plugin that learns how long a node is silent between two
// answers, and suspects it after a multiple of a high quantile of that. Unlike phi it assumes no
// distribution: a network with rare long delays is judged by these, not by a deviation.
package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/sdk"
)

// settings are the settings under plugins.<name>.settings.
type settings struct {
	Quantile float64       // From 0.5 to 1, by default 0.99.
	Factor   float64       // A node is suspected after this many times the quantile: from 1 to 100, by default 3.
	Samples  int           // How many intervals are remembered of each node: from 10 to 10,000, by default 200.
	Least    time.Duration // The quantile that is assumed at least, above 0, by default 1 s.
}

// SetDefaults sets what a cluster with heartbeats each second needs.
func (s *settings) SetDefaults() {
	*s = settings{Quantile: 0.99, Factor: 3, Samples: 200, Least: time.Second}
}

func newDetectors(s settings) (fd.Factory, error) {
	switch {
	case !(s.Quantile >= 0.5 && s.Quantile <= 1):
		return nil, plugins.SettingError{Key: "quantile", Reason: fmt.Sprintf("%v is not from 0.5 to 1", s.Quantile)}
	case !(s.Factor >= 1 && s.Factor <= 100):
		return nil, plugins.SettingError{Key: "factor", Reason: fmt.Sprintf("%v is not from 1 to 100", s.Factor)}
	case s.Samples < 10 || s.Samples > 10_000:
		return nil, plugins.SettingError{Key: "samples", Reason: fmt.Sprintf("%d is not from 10 to 10000", s.Samples)}
	case s.Least <= 0:
		return nil, plugins.SettingError{Key: "least", Reason: fmt.Sprintf("%v is not above 0s", s.Least)}
	}
	return func() fd.Detector { return &detector{settings: s} }, nil
}

// detector judges one node.
type detector struct {
	settings

	heard     bool
	last      time.Time
	intervals []time.Duration // The last ones, in a ring.
	next      int             // Where in the ring the next one goes.
	limit     time.Duration   // After which silence the node is suspected.
}

// Heartbeat learns the time since the answer before.
func (d *detector) Heartbeat(at time.Time) {
	if d.heard && at.Before(d.last) {
		return
	}
	if interval := at.Sub(d.last); d.heard && d.Available(at) { // An outage is nothing to learn from.
		if len(d.intervals) < d.Samples {
			d.intervals = append(d.intervals, interval)
		} else {
			d.intervals[d.next] = interval
		}
		d.next = (d.next + 1) % d.Samples
	}
	d.heard, d.last, d.limit = true, at, d.tolerated()
}

// tolerated is how long the node may be silent.
func (d *detector) tolerated() time.Duration {
	usual := d.Least
	if n := len(d.intervals); n > 0 {
		sorted := slices.Sorted(slices.Values(d.intervals))
		usual = max(usual, sorted[int(d.Quantile*float64(n-1))])
	}
	return time.Duration(d.Factor * float64(usual))
}

// Available reports whether the silence is shorter than tolerated.
func (d *detector) Available(at time.Time) bool { return !d.heard || at.Sub(d.last) < d.limit }

// Monitoring reports whether there was an answer.
func (d *detector) Monitoring() bool { return d.heard }

func main() {
	sdk.Serve(sdk.FailureDetector(newDetectors), sdk.WithName("quantile"), sdk.WithVersion("1.0.0"))
}
