// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"slices"
	"time"
)

// figure says what of an experiment's outcome is shown.
type figure struct {
	name   string   // Of the figure; unique within its group.
	value  string   // Of the outcome.
	unit   string   // For people.
	better string   // "higher" or "lower".
	target float64  // What is to be reached; zero for none.
	zero   bool     // The target is zero.
	floors []string // Figures of the same group beside which it stands; the first one counts.
}

// experiment measures figures.
type experiment struct {
	spec    spec
	floor   bool // It does not measure the product.
	once    bool // It is the same in each run: a function of a seed.
	figures []figure
}

// group is a set of experiments that take turns.
type group struct {
	name, about string
	optional    bool // Not part of a run that names no group.
	experiments []experiment
}

// The words for which way is better.
const (
	higher = "higher"
	lower  = "lower"
)

// senders is how many goroutines flood.
const senders = 4

// batch is how many messages the floor of gRPC puts into one of its own.
const batch = 100

// groups returns everything that can be measured.
func groups() []group {
	return []group{
		localGroup(), remoteGroup(), askGroup(), activationGroup(), idleGroup(), joinGroup(), killGroup(), telemetryGroup(), pluginsGroup(), membersGroup(), bootGroup(), simulatedGroup(),
	}
}

// groupNames returns the names of all groups, in their order.
func groupNames() (names []string) {
	for _, g := range groups() {
		names = append(names, g.name)
	}
	return names
}

// single is an experiment with one figure of its rate.
func single(s spec, f figure) experiment {
	f.value, f.unit, f.better = "rate", "msg/s", higher
	return experiment{spec: s, figures: []figure{f}}
}

// asFloor marks an experiment as a floor.
func (e experiment) asFloor() experiment {
	e.floor = true
	return e
}

// withAwake returns the experiments, and after them the same on processors that are
// kept awake, where that is possible.
func withAwake(experiments ...experiment) []experiment {
	if !awakePossible {
		return experiments
	}
	const prefix = "awake-"
	all := experiments
	for _, e := range experiments {
		e.spec.Awake = true
		e.figures = slices.Clone(e.figures)
		for i := range e.figures {
			f := &e.figures[i]
			f.name, f.floors = prefix+f.name, slices.Clone(f.floors)
			for j := range f.floors {
				f.floors[j] = prefix + f.floors[j]
			}
		}
		all = append(all, e)
	}
	return all
}

// channelFloor is the floor of what happens in one process.
func channelFloor() experiment {
	return single(spec{Role: roleChannel, Size: 64, Senders: senders}, figure{name: "floor-channel"}).asFloor()
}

func localGroup() group {
	floors := []string{"floor-channel"}
	return group{
		name: "local", about: "tell 64 B to sharded entities of the same node, 4 senders",
		experiments: []experiment{
			channelFloor(),
			single(spec{Role: roleLocal, Size: 64, Senders: senders, Entities: senders}, figure{name: "tell-64B", target: 5e6, floors: floors}),
			single(spec{Role: roleLocal, Size: 64, Senders: senders, Entities: 1000}, figure{name: "tell-64B-to-1000", floors: floors}),
		},
	}
}

func remoteGroup() group {
	sized := func(name string, size int, target float64) []experiment {
		s := spec{Size: size, Senders: senders, Entities: senders, Batch: 1}
		batched := s.as(roleGRPC)
		batched.Batch = batch
		floors := []string{"floor-grpc-100-" + name, "floor-tcp-" + name, "floor-grpc-" + name}
		return []experiment{
			single(s.as(roleTCP), figure{name: floors[1]}).asFloor(),
			single(batched, figure{name: floors[0]}).asFloor(),
			single(s.as(roleGRPC), figure{name: floors[2]}).asFloor(),
			single(s.as(roleRemote), figure{name: "tell-" + name, target: target, floors: floors}),
		}
	}
	spread := single(spec{Role: roleRemote, Size: 64, Senders: senders, Entities: 1000},
		figure{name: "tell-64B-to-1000", floors: []string{"floor-grpc-100-64B", "floor-tcp-64B", "floor-grpc-64B"}})
	return group{
		name: "remote", about: "tell 64 B and 1 KiB to the entities of another process, 4 senders",
		experiments: slices.Concat(sized("64B", 64, 2.5e6), []experiment{spread}, sized("1KiB", 1024, 325e3)),
	}
}

func askGroup() group {
	one := func(role, prefix string, target bool) experiment {
		e := experiment{spec: spec{Role: role, Size: 64, Senders: 1, Entities: 1}, figures: []figure{
			{name: prefix + "p50", value: "p50", unit: "us", better: lower},
			{name: prefix + "p99", value: "p99", unit: "us", better: lower},
		}}
		if target {
			e.figures[0].target, e.figures[0].floors = 100, []string{"floor-grpc-p50", "floor-tcp-p50"}
			e.figures[1].target, e.figures[1].floors = 220, []string{"floor-grpc-p99", "floor-tcp-p99"}
		}
		return e
	}
	many := func(role string, f figure) experiment {
		f.value, f.unit, f.better = "rate", "asks/s", higher
		return experiment{spec: spec{Role: role, Size: 64, Senders: 64, Entities: 64}, figures: []figure{f}}
	}
	return group{
		name: "ask", about: "ask the entities of another process, 1 and 64 at a time",
		experiments: append(withAwake(
			one(roleTCPAsk, "floor-tcp-", false).asFloor(),
			one(roleGRPCAsk, "floor-grpc-", false).asFloor(),
			one(roleAsk, "ask-", true),
		),
			many(roleTCPAsk, figure{name: "floor-tcp-64"}).asFloor(),
			many(roleGRPCAsk, figure{name: "floor-grpc-64"}).asFloor(),
			many(roleAsk, figure{name: "ask-64", target: 150e3, floors: []string{"floor-grpc-64", "floor-tcp-64"}}),
		),
	}
}

func activationGroup() group {
	return group{
		name: "activation", about: "first message to each of 400,000 entities, 4 senders",
		experiments: []experiment{
			channelFloor(),
			{spec: spec{Role: roleActivation, Senders: senders, Entities: 400_000}, figures: []figure{
				{name: "activations", value: "rate", unit: "1/s", better: higher, target: 400e3, floors: []string{"floor-channel"}},
			}},
		},
	}
}

func idleGroup() group {
	return group{
		name: "idle", about: "live heap and stack of each of 1,000,000 idle entities",
		experiments: []experiment{{spec: spec{Role: roleIdle, Senders: senders, Entities: 1_000_000}, figures: []figure{
			{name: "entity-bytes", value: "bytes", unit: "B", better: lower, target: 300},
			{name: "entity-heap-bytes", value: "heap", unit: "B", better: lower},
		}}},
	}
}

func joinGroup() group {
	return group{
		name: "join", about: "a third node joins two under load, 1,000 entities",
		experiments: []experiment{{spec: spec{Role: roleJoin, Entities: 1000, Nodes: 3}, figures: []figure{
			{name: "failed-asks", value: "failed", unit: "", better: lower, zero: true},
			{name: "longest-gap", value: "gap", unit: "ms", better: lower, target: 300},
			{name: "longest-gap-before", value: "gap-idle", unit: "ms", better: lower},
			{name: "moved", value: "moved", unit: "%", better: higher, target: 30},
			{name: "last-move-after", value: "settled", unit: "s", better: lower},
			{name: "active-twice", value: "twice", unit: "", better: lower, zero: true},
			{name: "active-twice-ever", value: "overlapped", unit: "", better: lower, zero: true},
		}}},
	}
}

func killGroup() group {
	kill := func(prefix string, oldest bool) experiment {
		return experiment{spec: spec{Role: roleKill, Entities: 1000, Nodes: 3, Oldest: oldest}, figures: []figure{
			{name: prefix + "all-answer-after", value: "answer", unit: "s", better: lower, target: 10},
			{name: prefix + "failed-asks-survivors", value: "survivors", unit: "", better: lower, zero: true},
			{name: prefix + "failed-asks-victim", value: "victim", unit: "", better: lower},
			{name: prefix + "active-twice", value: "overlapped", unit: "", better: lower, zero: true},
		}}
	}
	return group{
		name: "kill", about: "kill -9 of one of three nodes under load, 1,000 entities",
		experiments: []experiment{kill("", false), kill("oldest-", true)},
	}
}

func telemetryGroup() group {
	pair := func(role, name, unit string, size, senders int) []experiment {
		without := single(spec{Role: role, Size: size, Senders: senders, Entities: senders}, figure{name: "without-" + name}).asFloor()
		with := without
		with.floor, with.spec.Telemetry = false, true
		with.figures = []figure{{name: name, value: "rate", unit: unit, better: higher, floors: []string{"without-" + name}}}
		without.figures[0].unit = unit
		return []experiment{without, with}
	}
	return group{
		name: "telemetry", about: "remote tell and ask with metrics and traces, and without",
		experiments: slices.Concat(
			pair(roleRemote, "tell-64B", "msg/s", 64, senders), pair(roleRemote, "tell-1KiB", "msg/s", 1024, senders), pair(roleAsk, "ask-64", "asks/s", 64, 64),
		),
	}
}

func pluginsGroup() group {
	times := func(role, prefix string, nodes int, target float64, floors ...string) experiment {
		e := experiment{spec: spec{Role: role, Size: 64, Senders: 1, Entities: 1, Nodes: nodes}, figures: []figure{
			{name: prefix + "p50", value: "p50", unit: "us", better: lower, target: target},
			{name: prefix + "p99", value: "p99", unit: "us", better: lower},
		}}
		for _, f := range floors {
			e.figures[0].floors = append(e.figures[0].floors, f+"p50")
			e.figures[1].floors = append(e.figures[1].floors, f+"p99")
		}
		return e
	}
	return group{
		name: "plugins", about: "strategies in another process: launch, decisions, 100,000 shards",
		experiments: slices.Concat([]experiment{{
			spec: spec{Role: roleLaunch, Nodes: 100},
			figures: []figure{
				{name: "first-decision", value: "launch", unit: "ms", better: lower, target: 150},
			},
		}}, withAwake(
			times(roleGRPCAsk, "floor-grpc-", 0, 0).asFloor(),
			times(roleDecide, "floor-of-two-", 2, 0).asFloor(), // The way alone.
			times(roleDecide, "decision-", 100, 150, "floor-grpc-", "floor-of-two-"),
		), []experiment{{
			spec: spec{Role: roleAllocate, Nodes: 100, Entities: 100_000, Batch: 10_000},
			figures: []figure{
				{name: "all-allocated", value: "took", unit: "s", better: lower, target: 5},
				{name: "longest-batch", value: "longest", unit: "ms", better: lower},
			},
		}}),
	}
}

func membersGroup() group {
	nodes := func(prefix string, n int, up, crash float64) experiment {
		return experiment{spec: spec{Role: roleMembers, Nodes: n, Limit: 8 * time.Minute}, figures: []figure{
			{name: prefix + "all-up", value: "up", unit: "s", better: lower, target: up},
			{name: prefix + "crash-known", value: "known", unit: "s", better: lower, target: crash},
			{name: prefix + "crash-removed", value: "removed", unit: "s", better: lower},
			{name: prefix + "steady-bytes", value: "bytes", unit: "B/s", better: lower, target: 2500},
			{name: prefix + "steady-cpu", value: "cpu", unit: "ms/s", better: lower, target: 2},
		}}
	}
	return group{
		name: "members", about: "50 and 100 real nodes in one process, over sockets", optional: true,
		experiments: []experiment{nodes("50-", 50, 1.5, 0), nodes("100-", 100, 3, 5.5)},
	}
}

func bootGroup() group {
	nodes := func(prefix string, n int, apart bool, up float64) experiment {
		return experiment{spec: spec{Role: roleBoot, Nodes: n, Apart: apart, Limit: 4 * time.Minute}, figures: []figure{
			{name: prefix + "all-up", value: "up", unit: "s", better: lower, target: up},
			{name: prefix + "cpu", value: "cpu", unit: "ms", better: lower},
			{name: prefix + "messages", value: "messages", unit: "", better: lower},
			{name: prefix + "bytes", value: "bytes", unit: "kB", better: lower},
			{name: prefix + "connects", value: "connects", unit: "", better: lower},
			{name: prefix + "refused", value: "refused", unit: "", better: lower, zero: true},
		}}
	}
	return group{
		name: "boot", about: "10 to 200 real nodes in one process start in one moment", optional: true,
		experiments: []experiment{
			nodes("10-", 10, false, 0), nodes("50-", 50, false, 1.5), nodes("50-apart-", 50, true, 1.5),
			nodes("100-", 100, false, 3), nodes("200-", 200, false, 5.5),
		},
	}
}

func simulatedGroup() group {
	return group{
		name: "simulated", about: "1,000 nodes that start in one moment, in virtual time", optional: true,
		experiments: []experiment{{once: true, spec: spec{Role: roleSimulated, Nodes: 1000, Limit: 20 * time.Minute}, figures: []figure{
			{name: "1000-all-up", value: "formed", unit: "s", better: lower, target: 20},
			{name: "1000-real-time", value: "wall", unit: "s", better: lower},
		}}},
	}
}
