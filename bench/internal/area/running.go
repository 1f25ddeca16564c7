// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package area

import (
	"context"
	"runtime"
	"time"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/rig"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership"
)

// Measures membership alone: many real nodes in one process that talk
// over sockets, how long they take to know each other and to notice a crash, and what
// a quiet node costs. It also has a cluster of a thousand nodes in virtual time.

// quietTime is the time between the last member and the measurement of a quiet
// cluster.
const quietTime = 5 * time.Second

// quietFor is how long a quiet cluster is measured, in measuring times: what happens
// once in ten seconds has its part then.
const quietFor = 10

// measureMembers runs many real nodes in this process, over real sockets, and measures
// how long it takes until all are up everywhere, what a quiet node costs, and how long it
// takes until a crash is known everywhere.
func measureMembers(ctx context.Context, s rig.Spec, _ *rig.Link) (figure.Outcome, error) {
	addresses, err := rig.FreeAddresses(ctx, s.Nodes)
	if err != nil {
		return figure.Outcome{}, err
	}
	before := memoryNow()
	began := time.Now()
	nodes, err := startNodes(ctx, addresses)
	defer func() { closeNodes(nodes) }() // Except the node that is closed before.
	if err != nil {
		return figure.Outcome{}, err
	}
	up, err := until(ctx, began, nodes, "all members are up everywhere", func() bool { return allUp(nodes) })
	if err != nil {
		return figure.Outcome{}, err
	}
	values := map[string]float64{"up": up.Seconds()}
	cpu, err := quietNodes(ctx, s, nodes, values)
	if err != nil {
		return figure.Outcome{}, err
	}
	memoryNow().since(before).share(len(nodes), values)
	// The node's peers see a connection that breaks and is then refused, as with a
	// process that was killed.
	victim := nodes[len(nodes)-1]
	nodes = nodes[:len(nodes)-1]
	began = time.Now()
	if err := victim.Close(); err != nil {
		return figure.Outcome{}, err
	}
	known, err := until(ctx, began, nodes, "the crash is known everywhere", func() bool { return knownGone(nodes, victim.Self(), false) })
	if err != nil {
		return figure.Outcome{}, err
	}
	removed, err := until(ctx, began, nodes, "the dead node is removed everywhere", func() bool { return knownGone(nodes, victim.Self(), true) })
	values["known"], values["removed"] = known.Seconds(), removed.Seconds()
	return figure.Outcome{Values: values, CPU: cpu}, err
}

// quietNodes measures an undisturbed cluster.
func quietNodes(ctx context.Context, s rig.Spec, nodes []*membership.Node, values map[string]float64) (cpu float64, err error) {
	if err := rig.Pause(ctx, quietTime); err != nil {
		return 0, err
	}
	before, err := rig.SocketsNow()
	if err != nil {
		return 0, err
	}
	bytes, used, began := bytesSent(nodes), rig.CPUTime(), time.Now()
	if err := rig.Pause(ctx, quietFor*s.Time); err != nil {
		return 0, err
	}
	each := float64(len(nodes)) * time.Since(began).Seconds()
	used = rig.CPUTime() - used
	values["bytes"] = float64(bytesSent(nodes)-bytes) / each
	values["cpu"] = rig.Microseconds(used) / 1000 / each
	after, err := rig.SocketsNow()
	if err != nil {
		return 0, err
	}
	sent := after.Since(before)
	values["wire"], values["packets"], values["data-packets"] = float64(sent.Bytes)/each, float64(sent.Packets)/each, float64(sent.Data)/each
	values["connections"] = float64(len(after)) / float64(len(nodes))
	return rig.Microseconds(used) / each, nil
}

// footprint is what a process holds, in bytes.
type footprint struct{ heap, stacks float64 }

// memoryNow returns the live heap of this process and its stacks.
func memoryNow() footprint {
	runtime.GC()
	runtime.GC() // Frees what finalizers and pools released in the first.
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return footprint{float64(m.HeapAlloc), float64(m.StackInuse)}
}

// since is what the process holds more than before: what it had before its first node is no
// node's.
func (m footprint) since(before footprint) footprint {
	return footprint{m.heap - before.heap, m.stacks - before.stacks}
}

// share notes the memory of each of so many nodes, in kilobytes.
func (m footprint) share(nodes int, values map[string]float64) {
	values["heap"], values["stacks"] = m.heap/1000/float64(nodes), m.stacks/1000/float64(nodes)
}

// allUp reports whether all nodes see as many members as there are nodes, all up.
func allUp(nodes []*membership.Node) bool { return seesUp(nodes, len(nodes)) }

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
