// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package area

import (
	"time"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/rig"
)

// What callers notice when a cluster changes while every entity is asked several times a second:
//
//	this process            peers, one a node
//	  watches ── ask ──────────> residents
//	  second node                first, third ... node
//	     └──── stays ─────────────> register of each node
//
// Each entity has a watch, which keeps the longest time between two answers, the errors
// and the node that answered. Each node has a register of the times at which entities
// began and ended to live on it; an entity that is in two registers at the same moment
// was active twice. This process is the second node, so that neither the oldest nor the
// youngest node is the one that measures.

// joinGroup is a node that joins under load.
func joinGroup() rig.Group {
	return rig.Group{
		Name: "join", About: "a third node joins two under load, 1,000 entities",
		Experiments: []rig.Experiment{{Measure: changed(0, joins), Spec: rig.Spec{Entities: 1000, Nodes: 3}, Figures: []figure.Figure{
			{Name: "failed-asks", Value: "failed", Better: figure.Lower, Zero: true},
			{Name: "longest-gap", Value: "gap", Unit: "ms", Better: figure.Lower, Target: gapMax},
			{Name: "longest-gap-before", Value: "gap-idle", Unit: "ms", Better: figure.Lower},
			{Name: "moved", Value: "moved", Unit: "%", Better: figure.Higher, Target: 30},
			{Name: "last-move-after", Value: "settled", Unit: "s", Better: figure.Lower},
			{Name: "active-twice", Value: "twice", Better: figure.Lower, Zero: true},
			{Name: "active-twice-ever", Value: "overlapped", Better: figure.Lower, Zero: true},
		}}},
	}
}

// gapMax is for how many milliseconds no entity may be silent when its node has not failed: each is
// asked every 100 ms.
const gapMax = 300

// rebalanceGroup is a node that joins under load, and takes over a third of very many shards.
func rebalanceGroup() rig.Group {
	spec := rig.Spec{Entities: 1000, Nodes: 3, Shards: 10_000, Limit: 5 * time.Minute}
	return rig.Group{
		Name: "rebalance", About: "a third node joins two that have 10,000 shards, 1,000 entities",
		Experiments: []rig.Experiment{{Measure: changed(0, rebalances), Spec: spec, Figures: []figure.Figure{
			{Name: "failed-asks", Value: "failed", Better: figure.Lower, Zero: true},
			{Name: "last-move-after", Value: "settled", Unit: "s", Better: figure.Lower},
			{Name: "moved-shards", Value: "moved", Better: figure.Higher, Target: 3300},
			{Name: "ask-p99", Value: "p99", Unit: "ms", Better: figure.Lower},
			{Name: "ask-p99-before", Value: "p99-idle", Unit: "ms", Better: figure.Lower},
			{Name: "active-twice", Value: "overlapped", Better: figure.Lower, Zero: true},
		}}},
	}
}

// rollingGroup is five nodes that are restarted one after the other, under load.
func rollingGroup() rig.Group {
	spec := rig.Spec{Entities: 1000, Nodes: 5, Proxy: true}
	return rig.Group{
		Name: "rolling", About: "five nodes under load are restarted one after the other",
		Experiments: []rig.Experiment{{Measure: changed(spec.Nodes-1, rolls), Spec: spec, Figures: []figure.Figure{
			{Name: "failed-asks", Value: "failed", Better: figure.Lower, Zero: true},
			{Name: "longest-gap", Value: "gap", Unit: "ms", Better: figure.Lower, Target: gapMax},
			{Name: "longest-gap-before", Value: "gap-idle", Unit: "ms", Better: figure.Lower},
			{Name: "ask-p99", Value: "p99", Unit: "ms", Better: figure.Lower},
			{Name: "all-restarted-after", Value: "took", Unit: "s", Better: figure.Lower},
			{Name: "active-twice", Value: "overlapped", Better: figure.Lower, Zero: true},
		}}},
	}
}

// killGroup is a node that is killed under load: the youngest, and the oldest, which leads.
func killGroup() rig.Group {
	kill := func(prefix string, oldest bool) rig.Experiment {
		return rig.Experiment{Measure: changed(1, kills), Spec: rig.Spec{Entities: 1000, Nodes: 3, Oldest: oldest}, Figures: []figure.Figure{
			{Name: prefix + "all-answer-after", Value: "answer", Unit: "s", Better: figure.Lower, Target: 10},
			{Name: prefix + "failed-asks-survivors", Value: "survivors", Better: figure.Lower, Zero: true},
			{Name: prefix + "longest-gap-survivors", Value: "gap", Unit: "ms", Better: figure.Lower, Target: gapMax},
			{Name: prefix + "longest-gap-before", Value: "gap-idle", Unit: "ms", Better: figure.Lower},
			{Name: prefix + "failed-asks-victim", Value: "victim", Better: figure.Lower},
			{Name: prefix + "active-twice", Value: "overlapped", Better: figure.Lower, Zero: true},
		}}
	}
	return rig.Group{
		Name: "kill", About: "kill -9 of one of three nodes under load, 1,000 entities",
		Experiments: []rig.Experiment{kill("", false), kill("oldest-", true)},
	}
}
