// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membershipsim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/membership/membershipsim"
	"github.com/quorate/quorate/simulation"
	"github.com/quorate/quorate/simulation/simulationtest"
)

// unshared is a node of a build that knows nothing of exchanges of heartbeats that two nodes
// share: it does not read what is new in the messages of others, and its own have none of it.
type unshared struct{ *protocol.Machine }

// Membership tells the checks of the world whose machine it is.
func (u unshared) Membership() *protocol.Machine { return u.Machine }

// Step implements [machine.Machine].
func (u unshared) Step(now machine.Now, in machine.Input, out *machine.Outbox) {
	if received, ok := in.(machine.Received); ok {
		received.Message = before(received.Message)
		in = received
	}
	var made machine.Outbox
	u.Machine.Step(now, in, &made)
	for _, e := range made.Effects() {
		if s, ok := e.(machine.Send); ok {
			s.Message = before(s.Message)
			e = s
		}
		out.Add(e)
	}
}

// before returns a message as the version before would send it, or read it.
func before(message any) any {
	switch m := message.(type) {
	case protocol.Heartbeat:
		m.Shared = false
		return m
	case protocol.HeartbeatReply:
		m.Question = protocol.Question{}
		return m
	}
	return message
}

// Nodes that share exchanges of heartbeats and nodes that do not are one cluster, through
// faults of all sorts: who is replaced by a newer build, or goes back, breaks nothing.
//
// covers F13, F16, F25, I6, I7, I8, I9, I10, I29.
func TestBuildsThatShareNoExchangeBreakNothing(t *testing.T) {
	const nodes = 6
	first, n := simulationtest.Seeds(t, 1+seedsUsual/8)
	for seed := first; seed < first+n; seed++ {
		w := simulation.New(simulation.Options{
			Seed: seed, RatePPM: 10_000, WallSkew: time.Second, CodecEvery: 1,
			Network: simulation.Delivery{Loss: 0.002, Double: 0.002},
		})
		membershipsim.Serve(w)
		invariants := &membershipsim.Invariants{}
		invariants.Watch(w)
		operator := &membershipsim.Operator{Seeds: addresses(0, 3), RestartAfter: 2 * time.Second}
		operator.Operate(w)
		component := membershipsim.Component(membershipsim.Config{})
		for i := range nodes {
			starts := i
			w.Start(address(i), func(env simulation.Env) []machine.Component {
				c := component(env)
				starts++
				if starts%2 == 0 { // Another build with each start.
					c.Machine = unshared{c.Machine.(*protocol.Machine)}
				}
				return []machine.Component{c}
			})
		}
		_, err := w.RunUntil(time.Minute, func() bool { return membershipsim.Settled(w) == nil })
		require.NoError(t, err, "seed %d", seed)
		w.Chaos(simulation.Chaos{For: time.Minute, Every: 3 * time.Second, Faults: simulation.Faults()})
		simulationtest.RequireRun(t, seed, w.Run(time.Minute))
		_, err = w.RunUntil(2*time.Minute, func() bool { return membershipsim.Settled(w) == nil })
		require.NoError(t, err, "seed %d", seed)
	}
}
