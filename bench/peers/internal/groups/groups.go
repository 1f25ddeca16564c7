// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package groups has the tables of figures in which Quorate stands beside other libraries and beside the floors.
package groups

import (
	"maps"
	"slices"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/harness"
	"github.com/quorate/quorate/bench/peers/internal/actors"
	"github.com/quorate/quorate/bench/peers/internal/hollywood"
	"github.com/quorate/quorate/bench/peers/internal/memberlist"
	"github.com/quorate/quorate/bench/peers/internal/protoactor"
	"github.com/quorate/quorate/bench/peers/internal/quorate"
)

// The targets, in parts of the first floor.
const (
	localShare  = 0.65 // Of the rate of a channel.
	smallShare  = 0.3  // Of the rate of TCP, with messages of 64 B,
	largeShare  = 0.6  // and with those of 1 KiB.
	askTimes    = 1.2  // The median latency, in times that of a unary call.
	askingShare = 0.65 // Of the rate of questions over TCP.
)

const (
	tellers = harness.Senders
	many    = 1000 // Actors that are told in turn.
	askers  = 64
)

// others are the libraries that Quorate is compared with.
func others() []actors.Library { return []actors.Library{hollywood.Library(), protoactor.Library()} }

// Groups returns everything that can be measured, in the order in which it is shown.
func Groups() []harness.Group {
	return []harness.Group{localGroup(), remoteGroup(), askGroup(), quietGroup()}
}

// Servers returns the peers of all experiments, by their roles.
func Servers() map[string]harness.Server {
	all := maps.Clone(harness.Servers())
	for _, l := range append(others(), quorate.Library(), quorate.Raw(), actors.Unary()) {
		all[l.Name] = l.Serve
	}
	return all
}

// beside returns experiments with the peers, with Quorate, which aims at so many times the first floor, and with
// Quorate and its own codec if raw is set. Quorate stands on the floors and on the peers. The name is what follows that
// of the library.
func beside(raw bool, times float64, floors []string, name string, of func(l actors.Library, name string) harness.Experiment) (all []harness.Experiment) {
	for _, l := range others() {
		e := of(l, l.Name+"-"+name)
		e.Figures[0].Floors = slices.Clone(floors[:1])
		all = append(all, e.AsPeer())
	}
	on := slices.Clone(floors)
	for _, e := range all {
		on = append(on, e.Figures[0].Name)
	}
	e := of(quorate.Library(), "quorate-"+name)
	e.Figures[0].Floors, e.Figures[0].OfFloor = on, times
	all = append(all, e)
	if raw {
		e := of(quorate.Raw(), "quorate-raw-"+name)
		e.Figures[0].Floors = on
		all = append(all, e)
	}
	return all
}

// localGroup is tells to actors of the same process.
func localGroup() harness.Group {
	tells := func(name string, count int) []harness.Experiment {
		return beside(true, localShare, []string{"floor-channel"}, name, func(l actors.Library, name string) harness.Experiment {
			return harness.Single(l.LocalTells, harness.Spec{Size: 64, Senders: tellers, Entities: count}, figure.Figure{Name: name})
		})
	}
	return harness.Group{
		Name: "local", About: "tell 64 B to actors of the same process, 4 senders",
		Experiments: slices.Concat([]harness.Experiment{harness.ChannelFloor()}, tells("64B-to-1000", many), tells("64B-to-4", tellers)),
	}
}

// remoteGroup is tells to actors of another process.
func remoteGroup() harness.Group {
	tells := func(name string, size int, share float64) []harness.Experiment {
		floor := harness.Single(harness.TCP, harness.Spec{Size: size, Senders: tellers}, figure.Figure{Name: "floor-tcp-" + name}).AsFloor()
		return append([]harness.Experiment{floor}, beside(true, share, []string{"floor-tcp-" + name}, name+"-to-1000", func(l actors.Library, name string) harness.Experiment {
			return harness.Single(l.RemoteTells, harness.Spec{Size: size, Senders: tellers, Entities: many}, figure.Figure{Name: name})
		})...)
	}
	return harness.Group{
		Name: "remote", About: "tell 64 B and 1 KiB to 1,000 actors of another process",
		Experiments: append(tells("64B", 64, smallShare), tells("1KiB", 1024, largeShare)...),
	}
}

// askGroup is questions to actors of another process: one at a time, for the latency, and many at a time, for the rate.
func askGroup() harness.Group {
	one, all := harness.Spec{Size: 64, Senders: 1, Entities: 1}, harness.Spec{Size: 64, Senders: askers, Entities: askers}
	latency := []harness.Experiment{
		harness.Latency(actors.Unary().Asks, one, "floor-grpc-").AsFloor(),
		harness.Latency(harness.TCPAsk, one, "floor-tcp-").AsFloor(),
	}
	floors := []string{"floor-grpc-", "floor-tcp-"}
	for _, l := range others() {
		latency = append(latency, harness.Latency(l.Asks, one, l.Name+"-", floors[:1]...).AsPeer())
	}
	for _, l := range others() {
		floors = append(floors, l.Name+"-")
	}
	ours := harness.Latency(quorate.Library().Asks, one, "quorate-", floors...)
	ours.Figures[0].OfFloor = askTimes
	rates := beside(false, askingShare, []string{"floor-tcp-64", "floor-grpc-64"}, "64", func(l actors.Library, name string) harness.Experiment {
		return harness.Single(l.Asks, all, figure.Figure{Name: name, Unit: "asks/s"})
	})
	return harness.Group{
		Name: "ask", About: "ask actors of another process, 1 and 64 at a time",
		Experiments: slices.Concat(harness.WithAwake(append(latency, ours)...), []harness.Experiment{
			harness.Single(harness.TCPAsk, all, figure.Figure{Name: "floor-tcp-64", Unit: "asks/s"}).AsFloor(),
			harness.Single(actors.Unary().Asks, all, figure.Figure{Name: "floor-grpc-64", Unit: "asks/s"}).AsFloor(),
		}, rates),
	}
}

// quietGroup is clusters that nobody uses.
func quietGroup() harness.Group {
	nodes := func(prefix string, measure harness.MeasureFunction, floor string) harness.Experiment {
		figures := []figure.Figure{
			{Name: "cpu", Value: "cpu", Unit: "ms/s", Better: figure.Lower},
			{Name: "heap", Value: "heap", Unit: "kB", Better: figure.Lower},
		}
		if harness.SocketsCounted {
			figures = append(figures, figure.Figure{Name: "wire-bytes", Value: "wire", Unit: "B/s", Better: figure.Lower})
		}
		for i := range figures {
			if floor != "" {
				figures[i].Floors = []string{floor + figures[i].Name}
			}
			figures[i].Name = prefix + figures[i].Name
		}
		return harness.Experiment{Measure: measure, Spec: harness.Spec{Nodes: 10}, Figures: figures}
	}
	return harness.Group{
		Name: "quiet", About: "what each of 10 nodes costs in a cluster that nobody uses", Optional: true,
		Experiments: []harness.Experiment{
			nodes("memberlist-", actors.Quiet(memberlist.Members), "").AsPeer(),
			nodes("quorate-", actors.Quiet(quorate.Members), "memberlist-"),
		},
	}
}
