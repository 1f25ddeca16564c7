// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package area

import (
	"slices"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/rig"
	"github.com/quorate/quorate/plugins"
)

// pluginsGroup is the launch, the decisions and the placements of plugins.
func pluginsGroup() rig.Group {
	times := func(m rig.Measurer, prefix string, nodes int, target float64, floors ...string) rig.Experiment {
		e := rig.Experiment{Measure: m, Spec: rig.Spec{Size: 64, Senders: 1, Entities: 1, Nodes: nodes}, Figures: []figure.Figure{
			{Name: prefix + "p50", Value: "p50", Unit: "us", Better: figure.Lower, Target: target},
			{Name: prefix + "p99", Value: "p99", Unit: "us", Better: figure.Lower},
		}}
		for _, f := range floors {
			e.Figures[0].Floors = append(e.Figures[0].Floors, f+"p50")
			e.Figures[1].Floors = append(e.Figures[1].Floors, f+"p99")
		}
		return e
	}
	return rig.Group{
		Name: "plugins", About: "strategies in another process: launch, decisions, swaps, heartbeats",
		Experiments: slices.Concat([]rig.Experiment{{
			Measure: measureLaunch, Spec: rig.Spec{Nodes: 100},
			Figures: []figure.Figure{
				{Name: "first-decision", Value: "launch", Unit: "ms", Better: figure.Lower, Target: 100},
			},
		}}, rig.WithAwake(
			times(rig.GRPCAsk, "floor-grpc-", 0, 0).AsFloor(),
			times(decide(false), "floor-of-two-", 2, 0).AsFloor(), // Only the way to the other process and back.
			times(decide(false), "decision-", 100, 150, "floor-grpc-", "floor-of-two-"),
			times(decide(false), "decision-of-1000-", 1000, 1000, "floor-grpc-", "floor-of-two-"),
			times(decide(true), "changed-decision-", 100, 0, "floor-grpc-", "floor-of-two-"),
		), []rig.Experiment{{
			Measure: withPlugin(plugins.Allocation, measureAllocate), Spec: rig.Spec{Nodes: 100, Entities: 100_000, Batch: 10_000},
			Figures: []figure.Figure{
				{Name: "all-allocated", Value: "took", Unit: "s", Better: figure.Lower, Target: 5},
				{Name: "longest-batch", Value: "longest", Unit: "ms", Better: figure.Lower},
			},
		}}, swaps(), []rig.Experiment{
			second(parts{node: true}, figure.Figure{Name: "floor-heartbeats-cpu"}).AsFloor(),
			second(parts{node: true, judge: true, plugin: true}, figure.Figure{Name: "heartbeats-cpu", Floors: []string{"floor-heartbeats-cpu"}, OfFloor: 2}),
			second(parts{judge: true}, figure.Figure{Name: "floor-judge-cpu"}).AsFloor(),
			second(parts{judge: true, plugin: true}, figure.Figure{Name: "judge-cpu", Floors: []string{"floor-judge-cpu"}}),
		}),
	}
}

// heartbeats is how many nodes answer once a second.
const heartbeats = 1000

// second is the processor time of a second of heartbeats.
func second(of parts, f figure.Figure) rig.Experiment {
	f.Value, f.Unit, f.Better = "cpu", "us", figure.Lower
	return rig.Experiment{Measure: of.measure, Spec: rig.Spec{Nodes: heartbeats}, Figures: []figure.Figure{f}}
}

// swaps are swaps of a plugin of each policy while it is asked.
func swaps() []rig.Experiment {
	all := make([]rig.Experiment, 0, len(plugins.Policies()))
	for _, policy := range plugins.Policies() {
		all = append(all, rig.Experiment{Measure: withPlugin(policy, measureSwap), Figures: []figure.Figure{
			{Name: "swap-" + string(policy), Value: "took", Unit: "ms", Better: figure.Lower},
			{Name: "missed-in-swaps-" + string(policy), Value: "missed", Unit: "decisions", Better: figure.Lower, Zero: true},
		}})
	}
	return all
}
