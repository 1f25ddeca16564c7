// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package decisions

import (
	"slices"

	"github.com/quorate/quorate/bench/internal/floor"
	"github.com/quorate/quorate/bench/internal/plan"
	"github.com/quorate/quorate/bench/internal/process"
)

// Group is the launch, the decisions and the placements of plugins.
func Group() plan.Group {
	times := func(role, prefix string, nodes int, target float64, floors ...string) plan.Experiment {
		e := plan.Experiment{Spec: process.Spec{Role: role, Size: 64, Senders: 1, Entities: 1, Nodes: nodes}, Figures: []plan.Figure{
			{Name: prefix + "p50", Value: "p50", Unit: "us", Better: plan.Lower, Target: target},
			{Name: prefix + "p99", Value: "p99", Unit: "us", Better: plan.Lower},
		}}
		for _, f := range floors {
			e.Figures[0].Floors = append(e.Figures[0].Floors, f+"p50")
			e.Figures[1].Floors = append(e.Figures[1].Floors, f+"p99")
		}
		return e
	}
	return plan.Group{
		Name: "plugins", About: "strategies in another process: launch, decisions, 100,000 shards",
		Experiments: slices.Concat([]plan.Experiment{{
			Spec: process.Spec{Role: roleLaunch, Nodes: 100},
			Figures: []plan.Figure{
				{Name: "first-decision", Value: "launch", Unit: "ms", Better: plan.Lower, Target: 150},
			},
		}}, plan.WithAwake(
			times(floor.RoleGRPCAsk, "floor-grpc-", 0, 0).AsFloor(),
			times(roleDecide, "floor-of-two-", 2, 0).AsFloor(), // Only the way to the other process and back.
			times(roleDecide, "decision-", 100, 150, "floor-grpc-", "floor-of-two-"),
			times(roleDecideChanged, "changed-decision-", 100, 0, "floor-grpc-", "floor-of-two-"),
		), []plan.Experiment{{
			Spec: process.Spec{Role: roleAllocate, Nodes: 100, Entities: 100_000, Batch: 10_000},
			Figures: []plan.Figure{
				{Name: "all-allocated", Value: "took", Unit: "s", Better: plan.Lower, Target: 5},
				{Name: "longest-batch", Value: "longest", Unit: "ms", Better: plan.Lower},
			},
		}}),
	}
}

// The roles that measure strategies, and those of the plugins that the host of
// plugins starts.
const (
	roleLaunch           = "launch"
	roleDecide           = "decide"
	roleDecideChanged    = "decide-changed"
	roleAllocate         = "allocate"
	roleDowningPlugin    = "downing-plugin"
	roleAllocationPlugin = "allocation-plugin"
)

// Roles returns the roles of the benchmarks of strategies.
func Roles() process.Roles {
	return process.Roles{Measurers: map[string]process.Measurer{roleLaunch: measureLaunch, roleDecide: measureDecide, roleDecideChanged: measureDecide, roleAllocate: measureAllocate}}
}
