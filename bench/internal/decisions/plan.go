// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package decisions

import (
	"slices"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/floor"
	"github.com/quorate/quorate/bench/internal/plan"
	"github.com/quorate/quorate/bench/internal/process"
	"github.com/quorate/quorate/plugins"
)

// Group is the launch, the decisions and the placements of plugins.
func Group() plan.Group {
	times := func(role, prefix string, nodes int, target float64, floors ...string) plan.Experiment {
		e := plan.Experiment{Spec: process.Spec{Role: role, Size: 64, Senders: 1, Entities: 1, Nodes: nodes}, Figures: []figure.Figure{
			{Name: prefix + "p50", Value: "p50", Unit: "us", Better: figure.Lower, Target: target},
			{Name: prefix + "p99", Value: "p99", Unit: "us", Better: figure.Lower},
		}}
		for _, f := range floors {
			e.Figures[0].Floors = append(e.Figures[0].Floors, f+"p50")
			e.Figures[1].Floors = append(e.Figures[1].Floors, f+"p99")
		}
		return e
	}
	return plan.Group{
		Name: "plugins", About: "strategies in another process: launch, decisions, swaps, heartbeats",
		Experiments: slices.Concat([]plan.Experiment{{
			Spec: process.Spec{Role: roleLaunch, Nodes: 100},
			Figures: []figure.Figure{
				{Name: "first-decision", Value: "launch", Unit: "ms", Better: figure.Lower, Target: 100},
			},
		}}, plan.WithAwake(
			times(floor.RoleGRPCAsk, "floor-grpc-", 0, 0).AsFloor(),
			times(roleDecide, "floor-of-two-", 2, 0).AsFloor(), // Only the way to the other process and back.
			times(roleDecide, "decision-", 100, 150, "floor-grpc-", "floor-of-two-"),
			times(roleDecide, "decision-of-1000-", 1000, 1000, "floor-grpc-", "floor-of-two-"),
			times(roleDecideChanged, "changed-decision-", 100, 0, "floor-grpc-", "floor-of-two-"),
		), []plan.Experiment{{
			Spec: process.Spec{Role: roleAllocate, Nodes: 100, Entities: 100_000, Batch: 10_000},
			Figures: []figure.Figure{
				{Name: "all-allocated", Value: "took", Unit: "s", Better: figure.Lower, Target: 5},
				{Name: "longest-batch", Value: "longest", Unit: "ms", Better: figure.Lower},
			},
		}}, swaps(), []plan.Experiment{
			second(roleBuiltInDetector, figure.Figure{Name: "floor-heartbeats-cpu"}).AsFloor(),
			second(rolePluginDetector, figure.Figure{Name: "heartbeats-cpu", Floors: []string{"floor-heartbeats-cpu"}, OfFloor: 2}),
			second(roleJudge, figure.Figure{Name: "floor-judge-cpu"}).AsFloor(),
			second(rolePluginJudge, figure.Figure{Name: "judge-cpu", Floors: []string{"floor-judge-cpu"}}),
		}),
	}
}

// heartbeats is how many nodes answer once a second.
const heartbeats = 1000

// second is the processor time of a second of heartbeats.
func second(role string, f figure.Figure) plan.Experiment {
	f.Value, f.Unit, f.Better = "cpu", "us", figure.Lower
	return plan.Experiment{Spec: process.Spec{Role: role, Nodes: heartbeats}, Figures: []figure.Figure{f}}
}

// swaps are swaps of a plugin of each policy while it is asked.
func swaps() []plan.Experiment {
	all := make([]plan.Experiment, 0, len(plugins.Policies()))
	for _, policy := range plugins.Policies() {
		all = append(all, plan.Experiment{Spec: process.Spec{Role: swapRole(policy)}, Figures: []figure.Figure{
			{Name: "swap-" + string(policy), Value: "took", Unit: "ms", Better: figure.Lower},
			{Name: "missed-in-swaps-" + string(policy), Value: "missed", Unit: "decisions", Better: figure.Lower, Zero: true},
		}})
	}
	return all
}

// The roles that measure strategies.
const (
	roleLaunch        = "launch"
	roleDecide        = "decide"
	roleDecideChanged = "decide-changed"
	roleAllocate      = "allocate"

	roleBuiltInDetector = "heartbeats-built-in" // The detector of a node as the node uses it.
	rolePluginDetector  = "heartbeats-plugin"   // The same with a judge that is a plugin.
	roleJudge           = "judge-built-in"      // The question to a judge of this process alone.
	rolePluginJudge     = "judge-plugin"        // The question to a plugin alone.
)

// swapRole is the role that measures swaps of plugins of a policy.
func swapRole(policy plugins.Policy) string { return "swap-" + string(policy) }

// swapRoles returns the policy of each role that measures swaps.
func swapRoles() map[string]plugins.Policy {
	roles := make(map[string]plugins.Policy)
	for _, policy := range plugins.Policies() {
		roles[swapRole(policy)] = policy
	}
	return roles
}

// Roles returns the roles of the benchmarks of strategies.
func Roles() process.Roles {
	all := map[string]process.Measurer{
		roleLaunch: measureLaunch, roleDecide: measureDecide, roleDecideChanged: measureDecide, roleAllocate: measureAllocate,
	}
	for role := range heartbeatParts() {
		all[role] = measureHeartbeats
	}
	for role := range swapRoles() {
		all[role] = measureSwap
	}
	return process.Roles{Measurers: all}
}
