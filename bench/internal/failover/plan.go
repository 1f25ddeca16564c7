// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"time"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/plan"
	"github.com/quorate/quorate/bench/internal/process"
)

// Join is a node that joins under load.
func Join() plan.Group {
	return plan.Group{
		Name: "join", About: "a third node joins two under load, 1,000 entities",
		Experiments: []plan.Experiment{{Spec: process.Spec{Role: roleJoin, Entities: 1000, Nodes: 3}, Figures: []figure.Figure{
			{Name: "failed-asks", Value: "failed", Unit: "", Better: figure.Lower, Zero: true},
			{Name: "longest-gap", Value: "gap", Unit: "ms", Better: figure.Lower, Target: gapMax},
			{Name: "longest-gap-before", Value: "gap-idle", Unit: "ms", Better: figure.Lower},
			{Name: "moved", Value: "moved", Unit: "%", Better: figure.Higher, Target: 30},
			{Name: "last-move-after", Value: "settled", Unit: "s", Better: figure.Lower},
			{Name: "active-twice", Value: "twice", Unit: "", Better: figure.Lower, Zero: true},
			{Name: "active-twice-ever", Value: "overlapped", Unit: "", Better: figure.Lower, Zero: true},
		}}},
	}
}

// gapMax is for how many milliseconds no entity may be silent when its node has not failed: each is
// asked every 100 ms.
const gapMax = 300

// Rebalance is a node that joins under load, and takes over a third of very many shards.
func Rebalance() plan.Group {
	spec := process.Spec{Role: roleRebalance, Entities: 1000, Nodes: 3, Shards: 10_000, Limit: 5 * time.Minute}
	return plan.Group{
		Name: "rebalance", About: "a third node joins two that have 10,000 shards, 1,000 entities",
		Experiments: []plan.Experiment{{Spec: spec, Figures: []figure.Figure{
			{Name: "failed-asks", Value: "failed", Unit: "", Better: figure.Lower, Zero: true},
			{Name: "last-move-after", Value: "settled", Unit: "s", Better: figure.Lower},
			{Name: "moved-shards", Value: "moved", Unit: "", Better: figure.Higher, Target: 3300},
			{Name: "ask-p99", Value: "p99", Unit: "ms", Better: figure.Lower},
			{Name: "ask-p99-before", Value: "p99-idle", Unit: "ms", Better: figure.Lower},
			{Name: "active-twice", Value: "overlapped", Unit: "", Better: figure.Lower, Zero: true},
		}}},
	}
}

// Rolling is five nodes that are restarted one after the other, under load.
func Rolling() plan.Group {
	spec := process.Spec{Role: roleRolling, Entities: 1000, Nodes: 5, Proxy: true}
	return plan.Group{
		Name: "rolling", About: "five nodes under load are restarted one after the other",
		Experiments: []plan.Experiment{{Spec: spec, Figures: []figure.Figure{
			{Name: "failed-asks", Value: "failed", Unit: "", Better: figure.Lower, Zero: true},
			{Name: "longest-gap", Value: "gap", Unit: "ms", Better: figure.Lower, Target: gapMax},
			{Name: "longest-gap-before", Value: "gap-idle", Unit: "ms", Better: figure.Lower},
			{Name: "ask-p99", Value: "p99", Unit: "ms", Better: figure.Lower},
			{Name: "all-restarted-after", Value: "took", Unit: "s", Better: figure.Lower},
			{Name: "active-twice", Value: "overlapped", Unit: "", Better: figure.Lower, Zero: true},
		}}},
	}
}

// Kill is a node that is killed under load: the youngest, and the oldest, which leads.
func Kill() plan.Group {
	kill := func(prefix string, oldest bool) plan.Experiment {
		return plan.Experiment{Spec: process.Spec{Role: roleKill, Entities: 1000, Nodes: 3, Oldest: oldest}, Figures: []figure.Figure{
			{Name: prefix + "all-answer-after", Value: "answer", Unit: "s", Better: figure.Lower, Target: 10},
			{Name: prefix + "failed-asks-survivors", Value: "survivors", Unit: "", Better: figure.Lower, Zero: true},
			{Name: prefix + "longest-gap-survivors", Value: "gap", Unit: "ms", Better: figure.Lower, Target: gapMax},
			{Name: prefix + "longest-gap-before", Value: "gap-idle", Unit: "ms", Better: figure.Lower},
			{Name: prefix + "failed-asks-victim", Value: "victim", Unit: "", Better: figure.Lower},
			{Name: prefix + "active-twice", Value: "overlapped", Unit: "", Better: figure.Lower, Zero: true},
		}}
	}
	return plan.Group{
		Name: "kill", About: "kill -9 of one of three nodes under load, 1,000 entities",
		Experiments: []plan.Experiment{kill("", false), kill("oldest-", true)},
	}
}

// The roles that measure changes of a cluster, and that of each of its other nodes.
const (
	roleJoin      = "join"
	roleKill      = "kill"
	roleRebalance = "rebalance"
	roleRolling   = "rolling"
	roleMember    = "member"
)

// Roles returns the roles of the benchmarks of joins and failures.
func Roles() process.Roles {
	return process.Roles{
		Measurers: map[string]process.Measurer{
			roleJoin: measureJoin, roleKill: measureKill, roleRebalance: measureRebalance, roleRolling: measureRolling,
		},
		Servers: map[string]process.Server{roleMember: serveMember},
	}
}
