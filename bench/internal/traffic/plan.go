// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package traffic measures tells and asks between senders and entities, on one node and
// between two processes, with and without telemetry.
package traffic

import (
	"slices"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/floor"
	"github.com/quorate/quorate/bench/internal/plan"
	"github.com/quorate/quorate/bench/internal/process"
	"github.com/quorate/quorate/transport"
)

// batch is how many messages the floor of gRPC puts into one of its own.
const batch = 100

// withLimit is the least part that a rate may be where the number of entities in memory is limited,
// of the rate where it is not.
const withLimit = 0.9

// Local is tells to entities of the same node.
func Local() plan.Group {
	floors := []string{"floor-channel"}
	spread := plan.Single(process.Spec{Role: roleLocal, Size: 64, Senders: plan.Senders, Entities: 1000}, figure.Figure{Name: "tell-64B-to-1000", Target: 5e6, CPU: 0.4, Floors: floors})
	beside := spread.Figures[0]
	beside.Name, beside.Target, beside.OfFloor = "to-1000-of-channel", 0, 0.6
	spread.Figures = append(spread.Figures, beside)
	limited := plan.Single(process.Spec{Role: roleLocal, Size: 64, Senders: plan.Senders, Entities: 1000, InMemory: 2000},
		figure.Figure{Name: "tell-64B-to-1000-limited", OfFloor: withLimit, Floors: []string{"tell-64B-to-1000"}})
	return plan.Group{
		Name: "local", About: "tell 64 B to sharded entities of the same node, 4 senders",
		Experiments: []plan.Experiment{
			floor.Channel(),
			plan.Single(process.Spec{Role: roleLocal, Size: 64, Senders: plan.Senders, Entities: plan.Senders}, figure.Figure{Name: "tell-64B", Target: 5e6, Floors: floors}),
			spread,
			limited,
		},
	}
}

// Remote is tells to the entities of another process.
func Remote() plan.Group {
	sized := func(name string, size int, target float64) []plan.Experiment {
		s := process.Spec{Size: size, Senders: plan.Senders, Entities: plan.Senders, Batch: 1}
		batched := s.As(floor.RoleGRPC)
		batched.Batch = batch
		floors := []string{"floor-grpc-100-" + name, "floor-tcp-" + name, "floor-grpc-" + name}
		return []plan.Experiment{
			plan.Single(s.As(floor.RoleTCP), figure.Figure{Name: floors[1]}).AsFloor(),
			plan.Single(batched, figure.Figure{Name: floors[0]}).AsFloor(),
			plan.Single(s.As(floor.RoleGRPC), figure.Figure{Name: floors[2]}).AsFloor(),
			plan.Single(s.As(RoleRemote), figure.Figure{Name: "tell-" + name, Target: target, Floors: floors}),
		}
	}
	spread := plan.Single(process.Spec{Role: RoleRemote, Size: 64, Senders: plan.Senders, Entities: 1000},
		figure.Figure{Name: "tell-64B-to-1000", Target: 2e6, CPU: 1, Floors: []string{"floor-grpc-100-64B", "floor-tcp-64B", "floor-grpc-64B"}})
	large := plan.Single(process.Spec{Role: RoleRemote, Size: 1024, Senders: plan.Senders, Entities: 1000},
		figure.Figure{Name: "tell-1KiB-to-1000", Target: 600e3, CPU: 2.5, Floors: []string{"floor-grpc-100-1KiB", "floor-tcp-1KiB", "floor-grpc-1KiB"}})
	return plan.Group{
		Name: "remote", About: "tell 64 B and 1 KiB to the entities of another process, 4 senders",
		Experiments: slices.Concat(sized("64B", 64, 2.5e6), []plan.Experiment{spread}, sized("1KiB", 1024, 325e3), []plan.Experiment{large}),
	}
}

// Ask is questions to the entities of another process: one at a time, for the latency,
// and many at a time, for the rate.
func Ask() plan.Group {
	one := func(role, prefix string, target bool) plan.Experiment {
		e := plan.Experiment{Spec: process.Spec{Role: role, Size: 64, Senders: 1, Entities: 1}, Figures: []figure.Figure{
			{Name: prefix + "p50", Value: "p50", Unit: "us", Better: figure.Lower},
			{Name: prefix + "p99", Value: "p99", Unit: "us", Better: figure.Lower},
		}}
		if target {
			e.Figures[0].Target, e.Figures[0].Floors = 80, []string{"floor-grpc-p50", "floor-tcp-p50"}
			e.Figures[1].Target, e.Figures[1].Floors = 200, []string{"floor-grpc-p99", "floor-tcp-p99"}
		}
		return e
	}
	many := func(role string, f figure.Figure) plan.Experiment {
		f.Value, f.Unit, f.Better = "rate", "asks/s", figure.Higher
		return plan.Experiment{Spec: process.Spec{Role: role, Size: 64, Senders: 64, Entities: 64}, Figures: []figure.Figure{f}}
	}
	sleepers := plan.Experiment{Spec: process.Spec{Role: roleBlocked, Size: 64, Senders: 8, Entities: 9000, Blocked: 1000}, Figures: []figure.Figure{
		{Name: "no-sleepers-p50", Value: "first-p50", Unit: "us", Better: figure.Lower},
		{Name: "no-sleepers-p99", Value: "first-p99", Unit: "us", Better: figure.Lower},
		{Name: "beside-sleepers-p50", Value: "p50", Unit: "us", Better: figure.Lower},
		{Name: "beside-sleepers-p99", Value: "p99", Unit: "us", Better: figure.Lower},
		{Name: "beside-sleepers-ratio", Value: "p99-ratio", Unit: "", Better: figure.Lower, Target: 2},
	}}
	latency := plan.WithAwake(
		one(floor.RoleTCPAsk, "floor-tcp-", false).AsFloor(),
		one(floor.RoleGRPCAsk, "floor-grpc-", false).AsFloor(),
		one(RoleAsk, "ask-", true),
	)
	for _, e := range latency[3:] { // On processors that are kept awake; there are none of these where that is not possible.
		if e.Spec.Role == RoleAsk {
			e.Figures[1].Target = 150
		}
	}
	return plan.Group{
		Name: "ask", About: "ask entities elsewhere, 1 and 64 at a time, and beside sleepers",
		Experiments: append(latency,
			many(floor.RoleTCPAsk, figure.Figure{Name: "floor-tcp-64"}).AsFloor(),
			many(floor.RoleGRPCAsk, figure.Figure{Name: "floor-grpc-64"}).AsFloor(),
			many(RoleAsk, figure.Figure{Name: "ask-64", Target: 130e3, CPU: 15, Floors: []string{"floor-grpc-64", "floor-tcp-64"}}),
			sleepers,
		),
	}
}

// withTLS is the least part that a rate with mutual TLS may be of the rate without.
const withTLS = 0.8

// Wires is tells and asks between processes, over gRPC and straight over TCP, each without
// TLS and with mutual TLS. What goes straight over TCP stands beside the same over gRPC,
// and with TLS beside the same without.
func Wires() plan.Group {
	spec := func(role string, size, senders, entities int) process.Spec {
		return process.Spec{Role: role, Size: size, Senders: senders, Entities: entities}
	}
	rate := func(name, unit string) figure.Figure {
		return figure.Figure{Name: name, Value: "rate", Unit: unit, Better: figure.Higher, OfFloor: withTLS}
	}
	late := func(value string, ofFloor float64) figure.Figure {
		return figure.Figure{Name: "ask-" + value, Value: value, Unit: "us", Better: figure.Lower, OfFloor: ofFloor}
	}
	return plan.Group{
		Name: "wires", About: "remote tell and ask straight over TCP and over gRPC, also with TLS",
		Experiments: slices.Concat(
			overWires(spec(RoleRemote, 64, plan.Senders, 1000), rate("tell-64B-to-1000", "msg/s")),
			overWires(spec(RoleRemote, 1024, plan.Senders, 1000), rate("tell-1KiB-to-1000", "msg/s")),
			overWires(spec(RoleAsk, 64, 1, 1), late("p50", 1/withTLS), late("p99", 0)),
			overWires(spec(RoleAsk, 64, 64, 64), rate("ask-64", "asks/s")),
		),
	}
}

// overWires is an experiment over each wire, without TLS and with it. The figures aim, with
// TLS over TCP, at so many times those without TLS as their OfFloor says.
func overWires(s process.Spec, figures ...figure.Figure) []plan.Experiment {
	variant := func(lane string, secure bool, name string, floors ...string) plan.Experiment {
		e := plan.Experiment{Spec: s, Figures: slices.Clone(figures)}
		e.Spec.Lane, e.Spec.Secure = lane, secure
		for i, f := range figures {
			e.Figures[i].Name = name + f.Name
			if !secure || lane != transport.LaneTCP {
				e.Figures[i].OfFloor = 0
			}
			for _, floor := range floors {
				e.Figures[i].Floors = append(e.Figures[i].Floors, floor+f.Name)
			}
		}
		return e
	}
	return []plan.Experiment{
		variant(transport.LaneGRPC, false, "grpc-").AsFloor(),
		variant(transport.LaneTCP, false, "tcp-", "grpc-").AsFloor(),
		variant(transport.LaneGRPC, true, "grpc-tls-", "grpc-").AsFloor(),
		variant(transport.LaneTCP, true, "tcp-tls-", "tcp-", "grpc-tls-"),
	}
}

// Telemetry is tells and asks between processes whose nodes have metrics that are
// fetched and traces that are sampled, each beside the same without.
func Telemetry() plan.Group {
	pair := func(role, name, unit string, size, senders int) []plan.Experiment {
		without := plan.Single(process.Spec{Role: role, Size: size, Senders: senders, Entities: senders}, figure.Figure{Name: "without-" + name}).AsFloor()
		with := without
		with.Floor, with.Spec.Telemetry = false, true
		with.Figures = []figure.Figure{{Name: name, Value: "rate", Unit: unit, Better: figure.Higher, Floors: []string{"without-" + name}}}
		without.Figures[0].Unit = unit
		return []plan.Experiment{without, with}
	}
	return plan.Group{
		Name: "telemetry", About: "remote tell and ask with metrics and traces, and without",
		Experiments: slices.Concat(
			pair(RoleRemote, "tell-64B", "msg/s", 64, plan.Senders), pair(RoleRemote, "tell-1KiB", "msg/s", 1024, plan.Senders), pair(RoleAsk, "ask-64", "asks/s", 64, 64),
		),
	}
}

// The roles that other groups compare theirs with.
const (
	// RoleAsk measures questions to entities of another process.
	RoleAsk = "ask"
	// RoleRemote measures tells to entities of another process.
	RoleRemote = "remote"
)

// The other roles that measure messages, and that of the peer that hosts the entities.
const (
	roleLocal = "local"
	roleHost  = "host"
	// roleBlocked measures questions beside entities that sleep.
	roleBlocked = "blocked"
)

// Roles returns the roles of the benchmarks of messages.
func Roles() process.Roles {
	return process.Roles{
		Measurers: map[string]process.Measurer{roleLocal: measureLocal, RoleRemote: measureRemote, RoleAsk: measureAsk, roleBlocked: measureBlocked, roleClient: measureClient},
		Servers:   map[string]process.Server{roleHost: serveHost, roleGateway: serveGateway},
	}
}
