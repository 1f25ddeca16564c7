// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package area

import (
	"time"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/rig"
)

// runningGroup is clusters of real nodes: all up, quiet, and after a crash.
func runningGroup() rig.Group {
	nodes := func(prefix string, n int, up, crash float64) rig.Experiment {
		figures := []figure.Figure{
			{Name: prefix + "all-up", Value: "up", Unit: "s", Better: figure.Lower, Target: up},
			{Name: prefix + "crash-known", Value: "known", Unit: "s", Better: figure.Lower, Target: crash},
			{Name: prefix + "crash-removed", Value: "removed", Unit: "s", Better: figure.Lower},
		}
		return rig.Experiment{
			Measure: measureMembers,
			Spec:    rig.Spec{Nodes: n, Limit: 8 * time.Minute},
			Figures: append(figures, steady(prefix)...),
		}
	}
	return rig.Group{
		Name: "members", About: "10 to 100 real nodes in one process, over sockets", Optional: true,
		Experiments: []rig.Experiment{nodes("10-", 10, 0, 0), nodes("30-", 30, 0, 0), nodes("50-", 50, 1.5, 0), nodes("100-", 100, 3, 5.5)},
	}
}

// steady has the figures of an undisturbed cluster, for each of its nodes.
func steady(prefix string) []figure.Figure {
	figures := []figure.Figure{{Name: prefix + "steady-bytes", Value: "bytes", Unit: "B/s", Better: figure.Lower}}
	if rig.SocketsCounted {
		figures = append(figures,
			figure.Figure{Name: prefix + "steady-wire-bytes", Value: "wire", Unit: "B/s", Better: figure.Lower, Target: 1500},
			figure.Figure{Name: prefix + "steady-packets", Value: "packets", Unit: "1/s", Better: figure.Lower},
			figure.Figure{Name: prefix + "steady-data-packets", Value: "data-packets", Unit: "1/s", Better: figure.Lower},
			figure.Figure{Name: prefix + "steady-connection-ends", Value: "connections", Unit: "", Better: figure.Lower})
	}
	return append(figures,
		figure.Figure{Name: prefix + "steady-cpu", Value: "cpu", Unit: "ms/s", Better: figure.Lower, Target: 1},
		figure.Figure{Name: prefix + "steady-heap", Value: "heap", Unit: "kB", Better: figure.Lower, Target: 500},
		figure.Figure{Name: prefix + "steady-stacks", Value: "stacks", Unit: "kB", Better: figure.Lower})
}

// bootGroup is clusters of real nodes that start in one moment.
func bootGroup() rig.Group {
	nodes := func(prefix string, n int, apart bool, up float64) rig.Experiment {
		return rig.Experiment{Measure: measureBoot, Spec: rig.Spec{Nodes: n, Apart: apart, Limit: 4 * time.Minute}, Figures: []figure.Figure{
			{Name: prefix + "all-up", Value: "up", Unit: "s", Better: figure.Lower, Target: up},
			{Name: prefix + "cpu", Value: "cpu", Unit: "ms", Better: figure.Lower},
			{Name: prefix + "messages", Value: "messages", Unit: "", Better: figure.Lower},
			{Name: prefix + "bytes", Value: "bytes", Unit: "kB", Better: figure.Lower},
			{Name: prefix + "connects", Value: "connects", Unit: "", Better: figure.Lower},
			{Name: prefix + "refused", Value: "refused", Unit: "", Better: figure.Lower, Zero: true},
		}}
	}
	return rig.Group{
		Name: "boot", About: "10 to 200 real nodes in one process start in one moment", Optional: true,
		Experiments: []rig.Experiment{
			nodes("10-", 10, false, 0), nodes("50-", 50, false, 1.5), nodes("50-apart-", 50, true, 1.5),
			nodes("100-", 100, false, 3), nodes("200-", 200, false, 5.5),
		},
	}
}

// bootstrapGroup is processes that look each other up.
func bootstrapGroup() rig.Group {
	return rig.Group{
		Name: "bootstrap", About: "10 processes form a cluster by themselves, one is started again", Optional: true,
		Experiments: []rig.Experiment{{Measure: measureBootstrap, Spec: rig.Spec{Nodes: 10, Limit: 4 * time.Minute}, Figures: []figure.Figure{
			{Name: "all-up", Value: "up", Unit: "s", Better: figure.Lower},
			{Name: "after-the-margin", Value: "after", Unit: "s", Better: figure.Lower, Target: 3},
			{Name: "up-again", Value: "back", Unit: "s", Better: figure.Lower, Target: 2},
		}}},
	}
}

// simulatedGroup is a cluster of a thousand nodes in virtual time.
func simulatedGroup() rig.Group {
	return rig.Group{
		Name: "simulated", About: "1,000 nodes that start in one moment, in virtual time", Optional: true,
		Experiments: []rig.Experiment{{Measure: measureSimulated, Once: true, Spec: rig.Spec{Nodes: 1000, Limit: 20 * time.Minute}, Figures: []figure.Figure{
			{Name: "1000-all-up", Value: "formed", Unit: "s", Better: figure.Lower, Target: 20},
			{Name: "1000-real-time", Value: "wall", Unit: "s", Better: figure.Lower},
		}}},
	}
}
