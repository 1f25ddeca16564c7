// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package grpc_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/grpc"
	"github.com/quorate/quorate/transport/mutual/mutualtest"
	"github.com/quorate/quorate/transport/transporttest"
)

// BenchmarkLane is the throughput of one lane over TCP on the loopback
// interface: 64-byte messages, appended and handled.
func BenchmarkLane(b *testing.B) {
	wires(b, func(b *testing.B, n *network) {
		for _, size := range []int{64, 1024} {
			b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) { benchmarkLane(b, n, size) })
		}
	})
}

// wires runs a benchmark over each wire of message lanes, without TLS and with it.
func wires(b *testing.B, f func(*testing.B, *network)) {
	b.Helper()
	ca := mutualtest.NewAuthority(b, "ca")
	for _, lane := range []string{transport.LaneTCP, transport.LaneGRPC} {
		for _, secure := range []bool{false, true} {
			n := newNetwork(false)
			n.lane = lane
			if secure {
				n.tls = func(a gossip.Address) *grpc.TLS { return source(issue(b, ca, a.Host), ca) }
			}
			b.Run(fmt.Sprintf("lane=%s/tls=%t", lane, secure), func(b *testing.B) { f(b, n) })
		}
	}
}

func benchmarkLane(b *testing.B, n *network, size int) {
	from := transporttest.Start(b, n, transporttest.Spec{}, nil)
	to := n.New(b, transporttest.Spec{UID: 2, Cluster: "bank", Config: transporttest.Config(), Protocol: gossip.ProtocolRange{Min: 1, Max: 3}})
	handled, target, done := 0, make(chan int, 1), make(chan struct{})
	goal := -1
	to.Handle(transporttest.Service, func(gossip.NodeID, []byte) {
		handled++
		if goal < 0 {
			select {
			case goal = <-target:
			default:
			}
		}
		if handled == goal {
			close(done)
		}
	})
	if err := to.Start(context.Background()); err != nil {
		b.Fatal(err)
	}
	defer func() { _ = to.Close() }()
	lane := from.Lane(to.Self(), machine.LaneMessage)
	payload := bytes.Repeat([]byte{1}, size)
	encode := func(b []byte) []byte { return append(b, payload...) }
	send := func() {
		for lane.Append(transporttest.Service, encode) != nil {
			if err := lane.Room(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportAllocs()
	b.SetBytes(int64(size))
	sent := 0
	for b.Loop() {
		send()
		sent++
	}
	target <- sent + 1
	send()
	<-done
	b.ReportMetric(float64(from.Counters().Sent)/float64(from.Counters().FramesSent), "messages/frame")
}

// BenchmarkRoundTrip is the latency of a message and an answer to it.
func BenchmarkRoundTrip(b *testing.B) { wires(b, benchmarkRoundTrip) }

func benchmarkRoundTrip(b *testing.B, n *network) {
	spec := func(uid gossip.UID) transporttest.Spec {
		return transporttest.Spec{UID: uid, Cluster: "bank", Config: transporttest.Config(), Protocol: gossip.ProtocolRange{Min: 1, Max: 3}}
	}
	one, two := n.New(b, spec(1)), n.New(b, spec(2))
	answers := make(chan struct{}, 1)
	one.Handle(transporttest.Service, func(gossip.NodeID, []byte) { answers <- struct{}{} })
	back := two.Lane(one.Self(), machine.LaneMessage)
	two.Handle(transporttest.Service, func(gossip.NodeID, []byte) {
		if err := back.Append(transporttest.Service, transporttest.Number(1)); err != nil {
			b.Error(err)
		}
	})
	for _, t := range []interface{ Start(context.Context) error }{one, two} {
		if err := t.Start(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
	defer func() { _, _ = one.Close(), two.Close() }()
	lane := one.Lane(two.Self(), machine.LaneMessage)
	b.ReportAllocs()
	for b.Loop() {
		if err := lane.Append(transporttest.Service, transporttest.Number(1)); err != nil {
			b.Fatal(err)
		}
		<-answers
	}
}
