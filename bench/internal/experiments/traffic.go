// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"slices"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/harness"
	"github.com/quorate/quorate/transport"
)

// The tables of tells and asks between senders and entities, on one node and between two processes, over both wires,
// by a client that is no member, and with telemetry.

// batch is how many messages the floor of gRPC puts into one of its own.
const batch = 100

// limitedShare is the least part that a rate may be where the number of entities in memory is limited,
// of the rate where it is not.
const limitedShare = 0.9

// localGroup is tells to entities of the same node.
func localGroup() harness.Group {
	floors := []string{"floor-channel"}
	spread := harness.Single(measureLocalTells, harness.Spec{Size: 64, Senders: harness.Senders, Entities: 1000}, figure.Figure{Name: "tell-64B-to-1000", Target: 5e6, CPU: 0.4, Floors: floors})
	beside := spread.Figures[0]
	beside.Name, beside.Target, beside.OfFloor = "to-1000-of-channel", 0, 0.6
	spread.Figures = append(spread.Figures, beside)
	limited := harness.Single(measureLocalTells, harness.Spec{Size: 64, Senders: harness.Senders, Entities: 1000, InMemory: 2000},
		figure.Figure{Name: "tell-64B-to-1000-limited", OfFloor: limitedShare, Floors: []string{"tell-64B-to-1000"}})
	return harness.Group{
		Name: "local", About: "tell 64 B to sharded entities of the same node, 4 senders",
		Experiments: []harness.Experiment{
			harness.ChannelFloor(),
			harness.Single(measureLocalTells, harness.Spec{Size: 64, Senders: harness.Senders, Entities: harness.Senders}, figure.Figure{Name: "tell-64B", Target: 5e6, Floors: floors}),
			spread,
			limited,
		},
	}
}

// remoteGroup is tells to the entities of another process.
func remoteGroup() harness.Group {
	sized := func(name string, size int, target float64) []harness.Experiment {
		s := harness.Spec{Size: size, Senders: harness.Senders, Entities: harness.Senders, Batch: 1}
		batched := s
		batched.Batch = batch
		floors := []string{"floor-grpc-100-" + name, "floor-tcp-" + name, "floor-grpc-" + name}
		return []harness.Experiment{
			harness.Single(harness.TCP, s, figure.Figure{Name: floors[1]}).AsFloor(),
			harness.Single(harness.GRPC, batched, figure.Figure{Name: floors[0]}).AsFloor(),
			harness.Single(harness.GRPC, s, figure.Figure{Name: floors[2]}).AsFloor(),
			harness.Single(measureRemote, s, figure.Figure{Name: "tell-" + name, Target: target, Floors: floors}),
		}
	}
	spread := harness.Single(measureRemote, harness.Spec{Size: 64, Senders: harness.Senders, Entities: 1000},
		figure.Figure{Name: "tell-64B-to-1000", Target: 2e6, CPU: 1, Floors: []string{"floor-grpc-100-64B", "floor-tcp-64B", "floor-grpc-64B"}})
	large := harness.Single(measureRemote, harness.Spec{Size: 1024, Senders: harness.Senders, Entities: 1000},
		figure.Figure{Name: "tell-1KiB-to-1000", Target: 600e3, CPU: 2.5, Floors: []string{"floor-grpc-100-1KiB", "floor-tcp-1KiB", "floor-grpc-1KiB"}})
	return harness.Group{
		Name: "remote", About: "tell 64 B and 1 KiB to the entities of another process, 4 senders",
		Experiments: slices.Concat(sized("64B", 64, 2.5e6), []harness.Experiment{spread}, sized("1KiB", 1024, 325e3), []harness.Experiment{large}),
	}
}

// askGroup is questions to the entities of another process: one at a time, for the latency,
// and many at a time, for the rate.
func askGroup() harness.Group {
	one, many := harness.Spec{Size: 64, Senders: 1, Entities: 1}, harness.Spec{Size: 64, Senders: 64, Entities: 64}
	sleepers := harness.Experiment{Measure: measureBlocked, Spec: harness.Spec{Size: 64, Senders: 8, Entities: 9000, Blocked: 1000}, Figures: []figure.Figure{
		{Name: "no-sleepers-p50", Value: "first-p50", Unit: "us", Better: figure.Lower},
		{Name: "no-sleepers-p99", Value: "first-p99", Unit: "us", Better: figure.Lower},
		{Name: "beside-sleepers-p50", Value: "p50", Unit: "us", Better: figure.Lower},
		{Name: "beside-sleepers-p99", Value: "p99", Unit: "us", Better: figure.Lower},
		{Name: "beside-sleepers-ratio", Value: "p99-ratio", Better: figure.Lower, Target: 2},
	}}
	latency := harness.WithAwake(
		harness.Latency(harness.TCPAsk, one, "floor-tcp-").AsFloor(),
		harness.Latency(harness.GRPCAsk, one, "floor-grpc-").AsFloor(),
		harness.Latency(measureAsk, one, "ask-", "floor-grpc-", "floor-tcp-").Aim(80, 200),
	)
	if awake := latency[3:]; len(awake) > 0 { // On processors that are kept awake, where that is possible.
		awake[2].Aim(80, 150)
	}
	return harness.Group{
		Name: "ask", About: "ask entities elsewhere, 1 and 64 at a time, and beside sleepers",
		Experiments: append(latency,
			harness.Single(harness.TCPAsk, many, figure.Figure{Name: "floor-tcp-64", Unit: "asks/s"}).AsFloor(),
			harness.Single(harness.GRPCAsk, many, figure.Figure{Name: "floor-grpc-64", Unit: "asks/s"}).AsFloor(),
			harness.Single(measureAsk, many, figure.Figure{Name: "ask-64", Unit: "asks/s", Target: 130e3, CPU: 15, Floors: []string{"floor-grpc-64", "floor-tcp-64"}}),
			sleepers,
		),
	}
}

// ofMember is the least part that the rate of a client that is no member may be of a member's.
const ofMember = 0.7

// clientGroup is the questions of a client that is no member, beside those of a member to the same
// entities in another process.
func clientGroup() harness.Group {
	one, many := harness.Spec{Size: 64, Senders: 1, Entities: 1}, harness.Spec{Size: 64, Senders: 64, Entities: 64}
	member, outside := harness.Latency(measureAsk, one, "member-ask-").AsFloor(), harness.Latency(measureClient, one, "ask-")
	member.Figures, outside.Figures[0].Floors = member.Figures[:1], []string{"member-ask-p50"}
	return harness.Group{
		Name: "client", About: "ask entities from a program that is no member, 1 and 64 at a time",
		Experiments: []harness.Experiment{
			harness.Single(measureAsk, many, figure.Figure{Name: "member-ask-64", Unit: "asks/s"}).AsFloor(),
			harness.Single(measureClient, many, figure.Figure{Name: "ask-64", Unit: "asks/s", OfFloor: ofMember, Floors: []string{"member-ask-64"}}),
			member, outside,
		},
	}
}

// withTLS is the least part that a rate with mutual TLS may be of the rate without.
const withTLS = 0.8

// wiresGroup is tells and asks between processes, over gRPC and straight over TCP, each without
// TLS and with mutual TLS. What goes straight over TCP stands beside the same over gRPC,
// and with TLS beside the same without.
func wiresGroup() harness.Group {
	latency := harness.Latency(measureAsk, harness.Spec{Size: 64, Senders: 1, Entities: 1}, "ask-")
	latency.Figures[0].OfFloor = 1 / withTLS
	rate := func(m harness.MeasureFunction, size, senders, entities int, name, unit string) []harness.Experiment {
		s := harness.Spec{Size: size, Senders: senders, Entities: entities}
		return overWires(harness.Single(m, s, figure.Figure{Name: name, Unit: unit, OfFloor: withTLS}))
	}
	return harness.Group{
		Name: "wires", About: "remote tell and ask straight over TCP and over gRPC, also with TLS",
		Experiments: slices.Concat(
			rate(measureRemote, 64, harness.Senders, 1000, "tell-64B-to-1000", "msg/s"),
			rate(measureRemote, 1024, harness.Senders, 1000, "tell-1KiB-to-1000", "msg/s"),
			overWires(latency),
			rate(measureAsk, 64, 64, 64, "ask-64", "asks/s"),
		),
	}
}

// overWires is an experiment over each wire, without TLS and with it. The figures aim, with
// TLS over TCP, at so many times those without TLS as their OfFloor says.
func overWires(of harness.Experiment) []harness.Experiment {
	variant := func(lane string, secure bool, name string, floors ...string) harness.Experiment {
		e := of
		e.Spec.Lane, e.Spec.Secure, e.Figures = lane, secure, slices.Clone(of.Figures)
		for i, f := range of.Figures {
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
	return []harness.Experiment{
		variant(transport.LaneGRPC, false, "grpc-").AsFloor(),
		variant(transport.LaneTCP, false, "tcp-", "grpc-").AsFloor(),
		variant(transport.LaneGRPC, true, "grpc-tls-", "grpc-").AsFloor(),
		variant(transport.LaneTCP, true, "tcp-tls-", "tcp-", "grpc-tls-"),
	}
}

// telemetryGroup is tells and asks between processes whose nodes have metrics that are
// fetched and traces that are sampled, each beside the same without.
func telemetryGroup() harness.Group {
	pair := func(m harness.MeasureFunction, name, unit string, size, senders int) []harness.Experiment {
		s := harness.Spec{Size: size, Senders: senders, Entities: senders}
		without := harness.Single(m, s, figure.Figure{Name: "without-" + name, Unit: unit}).AsFloor()
		s.Telemetry = true
		return []harness.Experiment{without, harness.Single(m, s, figure.Figure{Name: name, Unit: unit, Floors: []string{"without-" + name}})}
	}
	return harness.Group{
		Name: "telemetry", About: "remote tell and ask with metrics and traces, and without",
		Experiments: slices.Concat(
			pair(measureRemote, "tell-64B", "msg/s", 64, harness.Senders), pair(measureRemote, "tell-1KiB", "msg/s", 1024, harness.Senders), pair(measureAsk, "ask-64", "asks/s", 64, 64),
		),
	}
}
