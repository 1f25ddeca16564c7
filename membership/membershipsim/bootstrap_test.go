// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membershipsim_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/discovery/bootstrap"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/membership/membershipsim"
	"github.com/quorate/quorate/membership/membershipsim/scenario"
	"github.com/quorate/quorate/simulation"
	"github.com/quorate/quorate/simulation/simulationtest"
)

// Discovery tells nodes what is inconsistent, late, partial, doubled, empty or wrong, and
// fails, while links are cut and nodes are started again with and without what they
// remember. There is never a second cluster, and one in the end. Seeds that have found a
// defect that was planted:
//
//	5/110 5/171 5/191  a majority of what each node has found may form a cluster
//
// covers F2, F4, F5, F6, I30.
func TestBootstrapFormsOneCluster(t *testing.T) {
	runs := []storm{
		{"bootstrap", 5, 110}, {"bootstrap", 5, 171}, {"bootstrap", 5, 191}, {"bootstrap", 2, 1795954584841}, {"bootstrap", 5, 1795954580364},
	}
	if simulationtest.Times > 1 {
		runs = append(runs, storm{"bootstrap", 40, 1})
	}
	first, n := simulationtest.Seeds(t, seedsUsual)
	for i := range n {
		runs = append(runs, storm{"bootstrap", []int{3, 4, 5, 7, 10}[i%5], first + i})
	}
	for _, r := range runs {
		_, err := scenario.Run(scenario.Options{Scenario: r.scenario, Nodes: r.nodes, Seed: r.seed})
		require.NoError(t, err, "%+v", r)
	}
}

// bootstrapped starts nodes that look each other up, of which each is told all.
func bootstrapped(seed uint64, n int) *simulation.World {
	w := simulation.New(simulation.Options{Seed: seed, CodecEvery: 1, RatePPM: 10_000})
	membershipsim.Serve(w)
	var nodes []gossip.Address
	for i := range n {
		nodes = append(nodes, gossip.Address{Host: fmt.Sprintf("10.0.0.%d", 9+i), Port: 7946})
	}
	discovered := &membershipsim.Discovered{Nodes: nodes}
	discovered.Serve(w)
	supervisor := &membershipsim.Supervisor{Discover: true, Max: time.Second}
	supervisor.Supervise(w)
	config := bootstrap.Default()
	component := membershipsim.Component(membershipsim.Config{
		Disk: true, Bootstrap: &protocol.Bootstrap{Config: config, Limit: config.ResolveTimeout},
	})
	for _, a := range nodes {
		w.Start(a, func(env simulation.Env) []machine.Component { return []machine.Component{component(env)} })
	}
	return w
}

// Ten nodes that look each other up are one cluster within the margin and three seconds,
// and the one with the lowest address has formed it: 10.0.0.9, which is not the lowest
// text. One that remembers it is up again within two seconds.
//
// covers F1.
func TestTheLowestAddressFormsAfterTheMargin(t *testing.T) {
	margin := bootstrap.Default().StableMargin
	for seed := range uint64(5) {
		var formed []string
		w := bootstrapped(seed, 10)
		w.Observe(func(o simulation.Observation) {
			if d, ok := o.Event.(machine.Decide); ok && d.Topic == "join" && strings.HasPrefix(d.Verdict, "formed") {
				formed = append(formed, o.Node.ID().Address.Host)
				require.Greater(t, o.At, margin-margin/50)
			}
		})
		passed := requireSettled(t, w, margin+3*time.Second)
		require.Equal(t, []string{"10.0.0.9"}, formed)
		again := gossip.Address{Host: "10.0.0.12", Port: 7946}
		w.Restart(again)
		back, err := w.RunUntil(2*time.Second, func() bool {
			n := w.Node(again)
			m := membershipsim.MachineOf(n).State().Member(n.ID())
			return m != nil && m.Status == gossip.Up
		})
		require.NoError(t, err)
		t.Log("one cluster after", passed, "and one that was started again up after", back)
	}
}

// Discovery, the decider and the failure detectors answer what is allowed and makes no sense, garbage, late, or by
// turns one thing and another, and the downing strategy fails likewise. No node asks them, or sends messages, at their
// pace; once discovery and the deciders are right there is a cluster, and of it no member goes whatever the failure
// detectors say, since all answer.
//
// covers F1, F2, F56, F60, I30, I34.
func TestSenselessStrategiesSetNoPace(t *testing.T) {
	const nodes, right = 5, time.Minute
	config := bootstrap.Default()
	for seed := range uint64(6) {
		w := simulation.New(simulation.Options{Seed: seed, Scenario: "senseless", CodecEvery: 3, RatePPM: 10_000, Calls: mishaps()[0].calls})
		membershipsim.Serve(w)
		discovered := &membershipsim.Discovered{RightFrom: right, Amiss: 1}
		for i := range nodes {
			discovered.Nodes = append(discovered.Nodes, address(i))
		}
		discovered.Serve(w)
		new(membershipsim.Judges).Serve(w)
		(&membershipsim.Supervisor{Discover: true, Max: time.Second}).Supervise(w)
		component := membershipsim.Component(membershipsim.Config{
			Disk: true, Judged: true, Downing: membershipsim.AskedKeepMajority(),
			Bootstrap: &protocol.Bootstrap{Config: config, Limit: config.ResolveTimeout, Asked: true},
		})
		for _, a := range discovered.Nodes {
			w.Start(a, func(env simulation.Env) []machine.Component { return []machine.Component{component(env)} })
		}
		for range right / time.Second {
			requireQuiet(t, w, nodes)
		}
		w.Strategies().Set(simulation.Calls{})
		requireSettled(t, w, time.Minute)
		w.Strategies().Set(mishaps()[0].calls)
		before := w.Nodes()
		for range time.Minute / time.Second {
			requireQuiet(t, w, nodes)
		}
		require.Equal(t, before, w.Nodes(), "seed %d: nobody went", seed)
		require.NoError(t, membershipsim.Settled(w), "seed %d", seed)
	}
}

// maxMessages is how many messages a node of such a cluster sends in a second at most, on average.
const maxMessages = 60

// requireQuiet runs a world for a second, and demands that its nodes send no more than that.
func requireQuiet(t *testing.T, w *simulation.World, nodes uint64) {
	t.Helper()
	before := w.Stats().Sent
	require.NoError(t, w.Run(time.Second))
	require.LessOrEqual(t, w.Stats().Sent-before, maxMessages*nodes, "seed %d at %v", w.Seed(), w.Now())
}
