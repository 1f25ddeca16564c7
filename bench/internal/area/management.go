// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package area

import (
	"time"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/rig"
)

// managementGroup is what those who ask a node cost it.
func managementGroup() rig.Group {
	return rig.Group{
		Name: "management", About: "1,000 requests a second; probes beside 10,000 silent ones", Optional: true,
		Experiments: []rig.Experiment{
			{Measure: measureRequests, Spec: rig.Spec{Nodes: 5, Rate: 1000, Limit: 2 * time.Minute}, Figures: []figure.Figure{
				{Name: "requests-per-second", Value: "rate", Unit: "1/s", Better: figure.Higher, Target: 990},
				{Name: "requests-failed", Value: "failed", Unit: "", Better: figure.Lower, Zero: true},
				{Name: "marked-unreachable", Value: "marked", Unit: "", Better: figure.Lower, Zero: true},
				{Name: "request-cpu", Value: "request", Unit: "us", Better: figure.Lower},
				{Name: "quiet-cpu", Value: "without", Unit: "ms/s", Better: figure.Lower},
			}},
			{Measure: measureSilent, Spec: rig.Spec{Senders: 10_000, Limit: 2 * time.Minute}, Figures: []figure.Figure{
				{Name: "probe-alone-p99", Value: "alone", Unit: "ms", Better: figure.Lower},
				{Name: "probe-beside-silent-p50", Value: "p50", Unit: "ms", Better: figure.Lower},
				{Name: "probe-beside-silent-p99", Value: "p99", Unit: "ms", Better: figure.Lower, Target: 100},
				{Name: "probes-failed", Value: "failed", Unit: "", Better: figure.Lower, Zero: true},
			}},
		},
	}
}
