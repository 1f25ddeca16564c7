// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package protocol_test

import (
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/membership/internal/wire"
	"github.com/quorate/quorate/membership/membershipsim"
	"github.com/quorate/quorate/simulation"
)

// How long it takes until crashed nodes are fenced ([lending.untilFenced]), and what a quiet
// cluster sends and computes ([traffic]), in worlds of lending with the default settings.
// The figures of docs/verification.md are of these tests.

// withDefaults gives a world the default settings.
func (l *lending) withDefaults() *lending {
	l.config.Config = protocol.Default()
	return l
}

// untilFenced crashes nodes at once, and returns how long it takes until each of them is
// fenced at all others.
func (l *lending) untilFenced(crash []int) time.Duration {
	left := map[gossip.NodeID]int{}
	for _, i := range crash {
		left[l.nodes[i].ID()] = len(l.nodes) - len(crash)
	}
	began, last := l.Now(), time.Duration(0)
	l.Observe(func(o simulation.Observation) {
		if e, ok := o.Event.(component.Fenced); ok && left[e.Node] > 0 {
			left[e.Node]--
			last = l.Now() - began
		}
	})
	for _, i := range crash {
		l.Crash(place(i))
	}
	_, err := l.RunUntil(30*time.Second, func() bool {
		return !slices.ContainsFunc(crash, func(i int) bool { return left[l.nodes[i].ID()] > 0 })
	})
	require.NoError(l.t, err, "seed %d, crash of %v of %d", l.Seed(), crash, l.n)
	return last
}

// One node that crashes is fenced at all others, so that its work may move, within 9.6
// seconds; of several that crash at once, relays or not, the last one within 11.6. The
// other 0.4 are for new homes. One message of a hundred is lost, and clocks differ by up
// to two percent. covers I9.
func TestCrashesOfSeedsAreFencedInTime(t *testing.T) {
	from, to := seeds(6, 12)
	var took [2][]time.Duration // Of one node, and of several.
	for seed := from; seed < to; seed++ {
		size := []int{11, 14, 30}[seed%3]
		l := newLending(t, seed, size).withDefaults()
		l.form(size)
		l.run(l.between(3*time.Second, 5*time.Second))
		several := 1
		if seed/3%2 == 1 {
			several = 2 + l.rand.IntN(4)
		}
		i := min(several, 2) - 1
		took[i] = append(took[i], l.untilFenced(l.rand.Perm(size)[:several]))
		require.NoError(t, l.Failure(), "seed %d", seed)
		require.Less(t, took[i][len(took[i])-1], []time.Duration{9600 * time.Millisecond, 11600 * time.Millisecond}[i], "seed %d", seed)
	}
	for i, of := range []string{"one crash", "two to five at once"} {
		slices.Sort(took[i])
		if n := len(took[i]); n > 0 {
			t.Logf("%s: %d runs, half within %v, the slowest %v", of, n, took[i][n/2], took[i][n-1])
		}
	}
}

// traffic is what the nodes of a cluster have sent: encoded, without what the transport
// adds.
type traffic struct {
	messages, bytes map[gossip.Address]int // All of it.
	lending         map[gossip.Address]int // The bytes of it by which proofs are lent.
}

// count counts what is sent from now on.
func (l *lending) count() traffic {
	c := traffic{map[gossip.Address]int{}, map[gossip.Address]int{}, map[gossip.Address]int{}}
	var buffer []byte
	l.Network().Lose("nothing, but counts", func(from, _ gossip.Address, message any) bool {
		var err error
		buffer, err = wire.Codec{}.Append(buffer[:0], message)
		require.NoError(l.t, err)
		c.messages[from]++
		c.bytes[from] += len(buffer)
		switch message.(type) {
		case protocol.AskStanding, protocol.GiveStanding, protocol.LendStanding:
			c.lending[from] += len(buffer)
		}
		return false
	})
	return c
}

func cpuTime() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// A relay of a quiet cluster sends fewer than 40 bytes a second for each voter, which are 12
// kB at 300 voters and 40 kB at 1,000, and everybody else 60 bytes a second more than without relays.
// QUORATE_NODES says how large the cluster is. covers I28.
func TestWhatRelaysSend(t *testing.T) {
	const seconds = 10
	n, err := strconv.Atoi(os.Getenv("QUORATE_NODES"))
	if err != nil {
		n = 50
	}
	l := newLending(t, 1, n).withDefaults()
	l.Network().SetDelivery(simulation.Delivery{})
	l.form(n)
	l.run(10 * time.Second)
	counted, began := l.count(), cpuTime()
	require.NoError(t, l.Run(seconds*time.Second))
	cpu := (cpuTime() - began) / time.Duration(n*seconds)
	isRelay := map[gossip.Address]bool{}
	for _, m := range membershipsim.MachineOf(l.nodes[0]).Relays() {
		isRelay[m.Node.Address] = true
	}
	require.Len(t, isRelay, 5)
	var relay, other, more, messages int
	for i := range n {
		a := place(i)
		if isRelay[a] {
			relay, messages = max(relay, counted.bytes[a]/seconds), max(messages, counted.messages[a]/seconds)
			continue
		}
		other += counted.bytes[a] / seconds
		more = max(more, counted.lending[a]/seconds)
	}
	t.Logf("%d voters: a relay sends up to %d messages of %d bytes a second; any other node %d bytes, of which %d to relays; %v of a processor for a second of a node, the simulation included",
		n, messages, relay, other/(n-5), more, cpu)
	require.Less(t, relay-other/(n-5), 40*n)
	require.Less(t, more, 60)
}
