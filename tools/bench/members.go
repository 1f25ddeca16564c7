// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/membership/membershipsim"
	"github.com/quorate/quorate/simulation"
)

const (
	membersPoll  = 10 * time.Millisecond
	membersQuiet = 5 * time.Second // Between the last member and the measurement of a quiet cluster.
	membersLimit = 2 * time.Minute // For all to know all, and for a crash to be known.
)

// measureMembers has many real nodes in this process, over real sockets: how
// long until all are up everywhere, what a quiet node costs, and how long until
// a crash is known everywhere.
func measureMembers(ctx context.Context, s spec, _ *link) (outcome, error) {
	addresses, err := freeAddresses(ctx, s.Nodes)
	if err != nil {
		return outcome{}, err
	}
	began := time.Now()
	nodes, err := startNodes(ctx, addresses)
	defer func() { closeNodes(nodes) }() // Without the one that is closed before.
	if err != nil {
		return outcome{}, err
	}
	up, err := until(ctx, began, nodes, "all members are up everywhere", func() bool { return allUp(nodes) })
	if err != nil {
		return outcome{}, err
	}
	values := map[string]float64{"up": up.Seconds()}
	cpu, err := quietNodes(ctx, s, nodes, values)
	if err != nil {
		return outcome{}, err
	}
	// What its peers see is a connection that breaks and is refused then, as
	// with a process that was killed.
	victim := nodes[len(nodes)-1]
	nodes = nodes[:len(nodes)-1]
	began = time.Now()
	if err := victim.Close(); err != nil {
		return outcome{}, err
	}
	known, err := until(ctx, began, nodes, "the crash is known everywhere", func() bool { return knownGone(nodes, victim.Self(), false) })
	if err != nil {
		return outcome{}, err
	}
	removed, err := until(ctx, began, nodes, "the dead node is removed everywhere", func() bool { return knownGone(nodes, victim.Self(), true) })
	values["known"], values["removed"] = known.Seconds(), removed.Seconds()
	return outcome{Values: values, CPU: cpu}, err
}

// quietNodes measures a cluster to which nothing happens.
func quietNodes(ctx context.Context, s spec, nodes []*membership.Node, values map[string]float64) (cpu float64, err error) {
	if err := pause(ctx, membersQuiet); err != nil {
		return 0, err
	}
	bytes, used, began := bytesSent(nodes), cpuTime(), time.Now()
	if err := pause(ctx, 4*s.Time); err != nil {
		return 0, err
	}
	each := float64(len(nodes)) * time.Since(began).Seconds()
	used = cpuTime() - used
	values["bytes"] = float64(bytesSent(nodes)-bytes) / each
	values["cpu"] = microseconds(used) / 1000 / each
	return microseconds(used) / each, nil
}

// freeAddresses finds n addresses.
func freeAddresses(ctx context.Context, n int) (addresses []string, err error) {
	for port := firstPort; len(addresses) < n && port < lastPort; port++ {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		if isFree(ctx, address) {
			addresses = append(addresses, address)
		}
	}
	if len(addresses) < n {
		return nil, fmt.Errorf("bench: %d of the ports from %d to %d are free, %d are needed", len(addresses), firstPort, lastPort, n)
	}
	return addresses, nil
}

// The ports for many nodes lie below those that systems give to connections: a
// node that has started would else take the port of one that has not.
const (
	firstPort = 20_000
	lastPort  = 32_000
)

// isFree reports whether one can listen on an address.
func isFree(ctx context.Context, address string) bool {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	return err == nil && l.Close() == nil
}

// until waits until a condition holds, and returns how long after began.
func until(ctx context.Context, began time.Time, nodes []*membership.Node, what string, holds func() bool) (time.Duration, error) {
	for !holds() {
		if time.Since(began) > membersLimit {
			return 0, fmt.Errorf("bench: after %v it is not so that %s: %s", membersLimit, what, standOf(nodes))
		}
		for _, n := range nodes {
			if err := n.Err(); err != nil {
				return 0, fmt.Errorf("bench: before %s, %v ended: %w", what, n.Self(), err)
			}
		}
		if err := pause(ctx, membersPoll); err != nil {
			return 0, err
		}
	}
	return time.Since(began), nil
}

// standOf says for people how far nodes have come: how many see how many members
// of each status.
func standOf(nodes []*membership.Node) string {
	views := map[string]int{}
	for _, n := range nodes {
		statuses := map[gossip.Status]int{}
		for _, m := range n.View().State.Members() {
			statuses[m.Status]++
		}
		views[fmt.Sprint(statuses)]++
	}
	return fmt.Sprint(views)
}

// allUp reports whether every node knows every node as up.
func allUp(nodes []*membership.Node) bool {
	for _, n := range nodes {
		members := n.View().State.Members()
		if len(members) != len(nodes) {
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

// measureSimulated is how long, in virtual time, a cluster takes to form whose
// nodes start in one moment.
func measureSimulated(_ context.Context, s spec, _ *link) (outcome, error) {
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
		return outcome{}, errors.Join(err, membershipsim.Settled(w))
	}
	return outcome{Values: map[string]float64{"formed": formed.Seconds(), "wall": time.Since(began).Seconds()}}, nil
}

// simulatedAddress is the address of the i-th simulated node.
func simulatedAddress(i int) gossip.Address {
	return gossip.Address{Host: fmt.Sprintf("n%d", i), Port: 7946}
}
