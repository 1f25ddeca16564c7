// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/harness"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/membership/membershipsim"
	"github.com/quorate/quorate/simulation"
)

// Membership alone, first the table: many real nodes in one process that talk over sockets, how long they take to
// know each other ([measureBoot]) and to notice a crash, what a quiet node costs ([measureMembers]), and a thousand
// nodes in virtual time ([measureSimulated]). Processes that look each other up are in bootstrap.go.

// runningGroup is clusters of real nodes: all up, quiet, and after a crash.
func runningGroup() harness.Group {
	nodes := func(prefix string, n int, up, crash float64) harness.Experiment {
		figures := []figure.Figure{
			{Name: prefix + "all-up", Value: "up", Unit: "s", Better: figure.Lower, Target: up},
			{Name: prefix + "crash-known", Value: "known", Unit: "s", Better: figure.Lower, Target: crash},
			{Name: prefix + "crash-removed", Value: "removed", Unit: "s", Better: figure.Lower},
		}
		return harness.Experiment{
			Measure: measureMembers,
			Spec:    harness.Spec{Nodes: n, Limit: 8 * time.Minute},
			Figures: append(figures, steady(prefix)...),
		}
	}
	return harness.Group{
		Name: "members", About: "10 to 100 real nodes in one process, over sockets", Optional: true,
		Experiments: []harness.Experiment{nodes("10-", 10, 0, 0), nodes("30-", 30, 0, 0), nodes("50-", 50, 1.5, 0), nodes("100-", 100, 3, 5.5)},
	}
}

// steady has the figures of an undisturbed cluster, for each of its nodes.
func steady(prefix string) []figure.Figure {
	figures := []figure.Figure{{Name: prefix + "steady-bytes", Value: "bytes", Unit: "B/s", Better: figure.Lower}}
	if harness.SocketsCounted {
		figures = append(figures,
			figure.Figure{Name: prefix + "steady-wire-bytes", Value: "wire", Unit: "B/s", Better: figure.Lower, Target: 1500},
			figure.Figure{Name: prefix + "steady-packets", Value: "packets", Unit: "1/s", Better: figure.Lower},
			figure.Figure{Name: prefix + "steady-data-packets", Value: "data-packets", Unit: "1/s", Better: figure.Lower},
			figure.Figure{Name: prefix + "steady-connection-ends", Value: "connections", Better: figure.Lower})
	}
	return append(figures,
		figure.Figure{Name: prefix + "steady-cpu", Value: "cpu", Unit: "ms/s", Better: figure.Lower, Target: 1},
		figure.Figure{Name: prefix + "steady-heap", Value: "heap", Unit: "kB", Better: figure.Lower, Target: 500},
		figure.Figure{Name: prefix + "steady-stacks", Value: "stacks", Unit: "kB", Better: figure.Lower})
}

// bootGroup is clusters of real nodes that start in one moment.
func bootGroup() harness.Group {
	nodes := func(prefix string, n int, apart bool, up float64) harness.Experiment {
		return harness.Experiment{Measure: measureBoot, Spec: harness.Spec{Nodes: n, Apart: apart, Limit: 4 * time.Minute}, Figures: []figure.Figure{
			{Name: prefix + "all-up", Value: "up", Unit: "s", Better: figure.Lower, Target: up},
			{Name: prefix + "cpu", Value: "cpu", Unit: "ms", Better: figure.Lower},
			{Name: prefix + "messages", Value: "messages", Better: figure.Lower},
			{Name: prefix + "bytes", Value: "bytes", Unit: "kB", Better: figure.Lower},
			{Name: prefix + "connects", Value: "connects", Better: figure.Lower},
			{Name: prefix + "refused", Value: "refused", Better: figure.Lower, Zero: true},
		}}
	}
	return harness.Group{
		Name: "boot", About: "10 to 200 real nodes in one process start in one moment", Optional: true,
		Experiments: []harness.Experiment{
			nodes("10-", 10, false, 0), nodes("50-", 50, false, 1.5), nodes("50-apart-", 50, true, 1.5),
			nodes("100-", 100, false, 3), nodes("200-", 200, false, 5.5),
		},
	}
}

// bootstrapGroup is processes that look each other up.
func bootstrapGroup() harness.Group {
	return harness.Group{
		Name: "bootstrap", About: "10 processes form a cluster by themselves, one is started again", Optional: true,
		Experiments: []harness.Experiment{{Measure: measureBootstrap, Spec: harness.Spec{Nodes: 10, Limit: 4 * time.Minute}, Figures: []figure.Figure{
			{Name: "all-up", Value: "up", Unit: "s", Better: figure.Lower},
			{Name: "after-the-margin", Value: "after", Unit: "s", Better: figure.Lower, Target: 3},
			{Name: "up-again", Value: "back", Unit: "s", Better: figure.Lower, Target: 2},
		}}},
	}
}

// simulatedGroup is a cluster of a thousand nodes in virtual time.
func simulatedGroup() harness.Group {
	return harness.Group{
		Name: "simulated", About: "1,000 nodes that start in one moment, in virtual time", Optional: true,
		Experiments: []harness.Experiment{{Measure: measureSimulated, Once: true, Spec: harness.Spec{Nodes: 1000, Limit: 20 * time.Minute}, Figures: []figure.Figure{
			{Name: "1000-all-up", Value: "formed", Unit: "s", Better: figure.Lower, Target: 20},
			{Name: "1000-real-time", Value: "wall", Unit: "s", Better: figure.Lower},
		}}},
	}
}

// startMembers starts a member at each address. Only the first is a seed node, and founds
// the cluster at once; with three seed nodes the first start would wait for the fence.
// The nodes that have started are returned even with an error.
func startMembers(ctx context.Context, addresses []string, opts ...membership.Option) (nodes []*membership.Node, err error) {
	for _, address := range addresses {
		n, err := membership.Start(ctx, memberConfig(address, addresses[0]), append(opts, membership.WithLogger(quiet()))...)
		if err != nil {
			return nodes, err
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// closeMembers ends nodes at once, without leaving.
func closeMembers(nodes []*membership.Node) {
	for _, n := range nodes {
		closeMember(n)
	}
}

// addressesFor finds an address for each node, on one IP address or on one per node.
func addressesFor(ctx context.Context, s harness.Spec) (addresses []string, err error) {
	if !s.Apart {
		return harness.FreeAddresses(ctx, s.Nodes)
	}
	for i := range s.Nodes {
		address := fmt.Sprintf("127.0.%d.%d:%d", 1+i/250, 1+i%250, harness.FirstPort)
		if !harness.IsFree(ctx, address) {
			return nil, fmt.Errorf("bench: %s is not free", address)
		}
		addresses = append(addresses, address)
	}
	return addresses, nil
}

// bootMembers starts nodes and waits until all are up everywhere. Those that have started are returned
// even with an error.
func bootMembers(ctx context.Context, s harness.Spec, opts ...membership.Option) (nodes []*membership.Node, up time.Duration, err error) {
	addresses, err := addressesFor(ctx, s)
	if err != nil {
		return nil, 0, err
	}
	began := time.Now()
	if nodes, err = startMembers(ctx, addresses, opts...); err != nil {
		return nodes, 0, err
	}
	up, err = until(ctx, began, nodes, "all members are up everywhere", func() bool { return seesUp(nodes, len(nodes)) })
	return nodes, up, err
}

// quietFor is how long a quiet cluster is measured, in measuring times: what happens
// once in ten seconds has its part then.
const quietFor = 10

// measureMembers runs many real nodes in this process, over real sockets, and measures
// how long it takes until all are up everywhere, what a quiet node costs, and how long it
// takes until a crash is known everywhere.
func measureMembers(ctx context.Context, s harness.Spec, _ *harness.Link) (out figure.Outcome, err error) {
	empty := memoryUsageNow()
	nodes, up, err := bootMembers(ctx, s)
	defer func() { closeMembers(nodes) }() // Except the node that is closed before.
	if err != nil {
		return out, err
	}
	out.Values = map[string]float64{"up": up.Seconds()}
	if err := quietNodes(ctx, s, nodes, &out); err != nil {
		return out, err
	}
	each := memoryUsageNow().each(empty, len(nodes)) // What the process had before its first node is no node's.
	out.Values["heap"], out.Values["stacks"] = each.heap/1000, each.stacks/1000
	// The node's peers see a connection that breaks and is then refused, as with a
	// process that was killed.
	victim := nodes[len(nodes)-1]
	nodes = nodes[:len(nodes)-1]
	began := time.Now()
	closeMember(victim)
	known, err := until(ctx, began, nodes, "the crash is known everywhere", func() bool { return knownGone(nodes, victim.Self(), false) })
	if err != nil {
		return out, err
	}
	removed, err := until(ctx, began, nodes, "the dead node is removed everywhere", func() bool { return knownGone(nodes, victim.Self(), true) })
	out.Values["known"], out.Values["removed"] = known.Seconds(), removed.Seconds()
	return out, err
}

// quietNodes measures an undisturbed cluster.
func quietNodes(ctx context.Context, s harness.Spec, nodes []*membership.Node, out *figure.Outcome) error {
	if err := harness.Pause(ctx, quietTime); err != nil {
		return err
	}
	before, err := harness.SocketsNow()
	if err != nil {
		return err
	}
	bytes, used, began := bytesSent(nodes), harness.CPUTime(), time.Now()
	if err := harness.Pause(ctx, quietFor*s.Time); err != nil {
		return err
	}
	each := float64(len(nodes)) * time.Since(began).Seconds()
	out.CPU = harness.Microseconds(harness.CPUTime()-used) / each
	out.Values["bytes"], out.Values["cpu"] = float64(bytesSent(nodes)-bytes)/each, out.CPU/1000
	after, err := harness.SocketsNow()
	sent := after.Since(before)
	out.Values["wire"], out.Values["packets"], out.Values["data-packets"] = float64(sent.Bytes)/each, float64(sent.Packets)/each, float64(sent.Data)/each
	out.Values["connections"] = float64(len(after)) / float64(len(nodes))
	return err
}

// measureBoot starts many real nodes in this process in one moment, over real
// sockets, and says how long it takes until all are up everywhere and what that
// cost: processor time, messages by kind, bytes, connections, refusals.
func measureBoot(ctx context.Context, s harness.Spec, _ *harness.Link) (out figure.Outcome, err error) {
	var seen kinds
	used := harness.CPUTime()
	nodes, up, err := bootMembers(ctx, s, membership.WithTransport(seen.transport))
	defer closeMembers(nodes)
	if err != nil {
		return out, err
	}
	each := float64(len(nodes))
	out.CPU = harness.Microseconds(harness.CPUTime()-used) / each
	out.Values = map[string]float64{"up": up.Seconds(), "cpu": out.CPU / 1000}
	for _, n := range nodes {
		stats := n.Stats().Transport
		out.Values["messages"] += float64(stats.Sent) / each
		out.Values["bytes"] += float64(stats.BytesSent) / 1000 / each
		out.Values["connects"] += float64(stats.Connects) / each
		for _, refused := range stats.RefusedInbound {
			out.Values["refused"] += float64(refused)
		}
	}
	out.Note = fmt.Sprintf("%d nodes: %s", len(nodes), seen.String())
	return out, nil
}

// seesUp reports whether the nodes see so many members, all up.
func seesUp(nodes []*membership.Node, count int) bool {
	for _, n := range nodes {
		members := n.View().State.Members()
		if len(members) != count {
			return false
		}
		for _, m := range members {
			if m.Status < gossip.Up || m.Status > gossip.Ready {
				return false
			}
		}
	}
	return true
}

// knownGone reports whether every node knows that another is unreachable, down
// or removed, or only whether it is removed everywhere.
func knownGone(nodes []*membership.Node, gone gossip.NodeID, removed bool) bool {
	for _, n := range nodes {
		state := n.View().State
		m := state.Member(gone)
		if m != nil && (removed || m.Status != gossip.Down && state.Reachable(gone)) {
			return false
		}
	}
	return true
}

// bytesSent adds up what nodes have sent.
func bytesSent(nodes []*membership.Node) (sum uint64) {
	for _, n := range nodes {
		sum += n.Stats().Transport.BytesSent
	}
	return sum
}

// measureSimulated measures how long, in virtual time, a cluster takes to form whose
// nodes start at the same moment.
func measureSimulated(_ context.Context, s harness.Spec, _ *harness.Link) (figure.Outcome, error) {
	began := time.Now()
	w := simulation.New(simulation.Options{Seed: 1, RatePPM: 10_000})
	membershipsim.Serve(w)
	(&membershipsim.Invariants{}).Watch(w)
	var seeds []gossip.Address
	for i := range min(s.Nodes, 3) {
		seeds = append(seeds, simulatedAddress(i))
	}
	(&membershipsim.Operator{Seeds: seeds, RestartAfter: 2 * time.Second}).Operate(w)
	component := membershipsim.Component(membershipsim.Config{})
	for i := range s.Nodes {
		w.Start(simulatedAddress(i), func(env simulation.Env) []machine.Component {
			return []machine.Component{component(env)}
		})
	}
	formed, err := w.RunUntil(2*time.Minute, func() bool { return membershipsim.Settled(w) == nil })
	if err != nil {
		return figure.Outcome{}, errors.Join(err, membershipsim.Settled(w))
	}
	return figure.Outcome{Values: map[string]float64{"formed": formed.Seconds(), "wall": time.Since(began).Seconds()}}, nil
}

// simulatedAddress is the address of the i-th simulated node.
func simulatedAddress(i int) gossip.Address {
	return gossip.Address{Host: fmt.Sprintf("n%d", i), Port: 7946}
}
