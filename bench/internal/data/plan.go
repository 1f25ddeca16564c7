// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package data measures replicated data: updates that wait for nobody, for a majority and
// for disks; what a change costs on the wire; and a node that joins and takes over a
// million keys, while nobody may take any node for lost.
//
// Each cluster has three processes with a node each. The second node is in the process that
// measures, so that neither the oldest nor the youngest node is the one that changes
// values. Correct comes first here too: whatever was added is compared in the end with what
// each node reads, and an update that is missing anywhere, or counted twice, is in the
// record of the figure.
package data

import (
	"slices"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/floor"
	"github.com/quorate/quorate/bench/internal/plan"
	"github.com/quorate/quorate/bench/internal/process"
	"github.com/quorate/quorate/bench/internal/traffic"
)

const (
	// slower is how much longer than an ask a majority update may take.
	slower = 2
	// asFast is the part of the rate of tells that topics have to reach, which leaves room
	// for what two runs of the same differ by.
	asFast = 0.9
	// atOnce is how many updates wait at a time, where many do.
	atOnce = 64
)

// Group is replicated data on three nodes.
func Group() plan.Group {
	return plan.Group{
		Name: "data", About: "replicated data on three nodes: updates, topics, bytes, 1 M keys",
		Experiments: slices.Concat(local(), majority(), many(), topics(), wire(), []plan.Experiment{some(), keys()}),
	}
}

// updates is an experiment whose figure is a rate of updates.
func updates(s process.Spec, f figure.Figure) plan.Experiment {
	f.Value, f.Unit, f.Better = "rate", "1/s", figure.Higher
	return plan.Experiment{Spec: s, Figures: []figure.Figure{f}}
}

// local is updates that wait for nobody. Their floor is a map behind a lock.
func local() []plan.Experiment {
	floors := []string{"floor-map"}
	own := process.Spec{Role: roleLocal, Senders: plan.Senders, Entities: plan.Senders}
	some := own
	some.Entities = 1000
	return []plan.Experiment{
		updates(own.As(roleFloorMap), figure.Figure{Name: floors[0]}).AsFloor(),
		updates(own, figure.Figure{Name: "local", Target: 1e6, Floors: floors}),
		updates(some, figure.Figure{Name: "local-to-1000", Floors: floors}),
	}
}

// majority is one update at a time that waits for a majority, beside an ask.
func majority() []plan.Experiment {
	one := func(role, prefix string, ofFloor float64, floors ...string) plan.Experiment {
		return plan.Experiment{Spec: process.Spec{Role: role, Size: 64, Senders: 1, Entities: 1}, Figures: []figure.Figure{
			{Name: prefix + "p50", Value: "p50", Unit: "us", Better: figure.Lower, OfFloor: ofFloor, Floors: suffixed(floors, "p50")},
			{Name: prefix + "p99", Value: "p99", Unit: "us", Better: figure.Lower, Floors: suffixed(floors, "p99")},
		}}
	}
	return plan.WithAwake(
		one(floor.RoleTCPAsk, "floor-tcp-", 0).AsFloor(),
		one(traffic.RoleAsk, "ask-", 0).AsFloor(),
		one(roleMajority, "majority-", slower, "ask-", "floor-tcp-"),
	)
}

// suffixed returns names with an end.
func suffixed(names []string, end string) (all []string) {
	for _, name := range names {
		all = append(all, name+end)
	}
	return all
}

// many is updates of which 64 wait at a time: for a majority, and for its disks. A floor of
// the second writes as many records to a file, and has each batch on the disk.
func many() []plan.Experiment {
	s := process.Spec{Size: 64, Senders: atOnce, Entities: atOnce}
	return []plan.Experiment{
		updates(s.As(floor.RoleTCPAsk), figure.Figure{Name: "floor-tcp-64"}).AsFloor(),
		updates(s.As(traffic.RoleAsk), figure.Figure{Name: "ask-64"}).AsFloor(),
		updates(s.As(roleMajority), figure.Figure{Name: "majority-64", Target: 40e3, Floors: []string{"ask-64", "floor-tcp-64"}}),
		updates(s.As(roleFloorDisk), figure.Figure{Name: "floor-fsync-64"}).AsFloor(),
		updates(s.As(roleDurable), figure.Figure{Name: "durable-64", Target: 5e3, Floors: []string{"floor-fsync-64"}}),
	}
}

// topics is messages from each of some publishers to a subscriber in another process, beside
// as many tells to an entity there.
func topics() []plan.Experiment {
	s := process.Spec{Size: 64, Senders: plan.Senders, Entities: plan.Senders}
	return []plan.Experiment{
		plan.Single(s.As(traffic.RoleRemote), figure.Figure{Name: "tell-64B"}).AsFloor(),
		plan.Single(s.As(roleTopic), figure.Figure{Name: "topic-64B", OfFloor: asFast, Floors: []string{"tell-64B"}}),
	}
}

// wire is what one more element of a large set costs.
func wire() []plan.Experiment {
	return []plan.Experiment{{Spec: process.Spec{Role: roleElement, Entities: 10_000}, Figures: []figure.Figure{
		{Name: "element-bytes", Value: "bytes", Unit: "B", Better: figure.Lower, Target: 300},
	}}}
}

// keys is a million keys: their memory, a node that takes them over, and what they cost when
// nothing changes.
func keys() plan.Experiment {
	return plan.Experiment{Spec: process.Spec{Role: roleKeys, Senders: plan.Senders, Entities: 1_000_000}, Figures: []figure.Figure{
		{Name: "joined-after", Value: "joined", Unit: "s", Better: figure.Lower, Target: 10},
		{Name: "counts-after", Value: "counts", Unit: "s", Better: figure.Lower},
		{Name: "joined-cpu", Value: "cpu", Unit: "s", Better: figure.Lower},
		{Name: "joined-bytes", Value: "wire", Unit: "B", Better: figure.Lower},
		{Name: "standings-lost", Value: "lapses", Unit: "", Better: figure.Lower, Zero: true},
		{Name: "marked-unreachable", Value: "marks", Unit: "", Better: figure.Lower, Zero: true},
		{Name: "heartbeat-p99", Value: "beat", Unit: "ms", Better: figure.Lower},
		{Name: "heartbeat-p99-before", Value: "beat-before", Unit: "ms", Better: figure.Lower},
		{Name: "spread-after", Value: "spread", Unit: "s", Better: figure.Lower},
		{Name: "key-bytes", Value: "key", Unit: "B", Better: figure.Lower, Target: 400},
		{Name: "round-bytes", Value: "round", Unit: "B", Better: figure.Lower, Target: 2000},
	}}
}

// some is ten thousand keys that a node takes over: how long one that is up does not count yet.
func some() plan.Experiment {
	return plan.Experiment{Spec: process.Spec{Role: roleKeys, Senders: plan.Senders, Entities: 10_000}, Figures: []figure.Figure{
		{Name: "counts-after-10k", Value: "counts", Unit: "s", Better: figure.Lower, Target: 1},
	}}
}

// The roles that measure data, and those of their peers.
const (
	roleLocal     = "data-local"
	roleMajority  = "data-majority"
	roleDurable   = "data-durable"
	roleElement   = "data-element"
	roleKeys      = "data-keys"
	roleFloorMap  = "data-floor-map"
	roleFloorDisk = "data-floor-disk"
	roleTopic     = "data-topic"
	roleReplica   = "data-replica"
	roleReader    = "data-reader"
)

// Roles returns the roles of the benchmarks of data.
func Roles() process.Roles {
	return process.Roles{
		Measurers: map[string]process.Measurer{
			roleLocal: measureLocal, roleMajority: measureMajority, roleDurable: measureMajority, roleElement: measureElement,
			roleKeys: measureKeys, roleFloorMap: measureMap, roleFloorDisk: measureDisk, roleTopic: measureTopic,
		},
		Servers: map[string]process.Server{roleReplica: serveReplica, roleReader: serveReader},
	}
}
