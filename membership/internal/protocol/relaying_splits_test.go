// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/membership/membershipsim"
	"github.com/quorate/quorate/simulation"
	"github.com/quorate/quorate/simulation/simulationtest"
)

// All splits of 11 to 14 nodes are enumerated by classes ([classes]): in one class are the
// splits that differ only in which node of a role is on which side. A cluster is formed and
// dealt out ([lending.deal]), something happens to it ([happenings]), and its sides are cut
// off from each other ([lending.splitAs]).

// The roles of nodes in a split, besides the leader, which is the first relay and has the
// lowest address.
const (
	roleRelay = iota
	roleVoter // A voter that does not relay.
	roleOther // A member that does not vote.
	roles
)

// class says how many nodes of each role are on each side; the leader is on the first one.
type class struct {
	on     [roles][3]int
	stands int // How many splits there are of this class.
}

func (c class) size(side int) (nodes int) {
	for _, on := range c.on {
		nodes += on[side]
	}
	return nodes
}

// order compares the sides a and b of a class, which have no names.
func (c class) order(a, b int) int {
	for _, on := range c.on {
		if d := cmp.Compare(on[a], on[b]); d != 0 {
			return d
		}
	}
	return 0
}

// classes returns the classes of the splits of a leader and of the given numbers of nodes
// of each role, into two or three sides, none of which is empty.
func classes(of [roles]int, sides int) []class {
	all := []class{{stands: 1}}
	for role, n := range of {
		var next []class
		for _, c := range all {
			for a := range n + 1 {
				for b := range n - a + 1 {
					if last := n - a - b; sides == 3 || last == 0 {
						dealt := c
						dealt.on[role] = [3]int{a, b, last}
						dealt.stands *= choose(n, a) * choose(n-a, b)
						next = append(next, dealt)
					}
				}
			}
		}
		all = next
	}
	return slices.DeleteFunc(all, func(c class) bool {
		return c.size(1) == 0 || sides == 3 && (c.size(2) == 0 || c.order(1, 2) < 0)
	})
}

// splits is how many splits a class of some sides stands for. Two sides that are alike were
// counted both ways.
func (c class) splits(sides int) int {
	if sides == 3 && c.order(1, 2) == 0 {
		return c.stands / 2
	}
	return c.stands
}

func choose(n, k int) int {
	ways := 1
	for i := range k {
		ways = ways * (n - i) / (i + 1)
	}
	return ways
}

func TestClassesStandForAllSplits(t *testing.T) {
	// Stirling numbers of the second kind.
	for n, want := range map[int][2]int{11: {1023, 28501}, 12: {2047, 86526}, 13: {4095, 261625}, 14: {8191, 788970}} {
		for _, others := range []int{0, 2} {
			for i, sides := range []int{2, 3} {
				sum := 0
				for _, c := range classes([roles]int{4, n - 5 - others, others}, sides) {
					sum += c.splits(sides)
				}
				require.Equal(t, want[i], sum, "%d nodes, %d sides", n, sides)
			}
		}
	}
}

// happening is what a cluster goes through around a cut.
type happening struct {
	name   string
	what   int  // What is lost between the sides.
	oneWay bool // And from the first side to the others only.
	before func(*lending)
	after  func(*lending)
	calm   bool // The side with a majority goes on.

	minority bool // The strategy keeps the side of the oldest member, majority or not.
}

// happenings are those that each class is run with.
func happenings() []happening {
	whole := []happening{
		{name: "nothing", calm: true},
		{name: "a member leaves", before: func(l *lending) { l.leave(l.rand.IntN(l.n - 1)); l.lead() }},
		{name: "a member is downed", before: func(l *lending) {
			i := l.rand.IntN(l.n - 1)
			l.Input(place((i+1)%(l.n-1)), protocol.Service, protocol.Down{Address: place(i)})
			l.lead()
		}},
		{name: "a node joins", before: func(l *lending) { l.start(l.n - 1); l.lead() }},
		{name: "a promotion is known to few", before: func(l *lending) {
			l.start(l.n - 1)
			l.within(20*time.Second, func() bool { m := l.led(l.n - 1); return m != nil && m.Status == gossip.Up })
		}},
		{name: "a relay freezes", after: func(l *lending) {
			l.run(l.between(0, 6*time.Second))
			l.Freeze(l.relay(), l.between(time.Second, 12*time.Second))
		}},
		{name: "a relay dies", after: func(l *lending) {
			l.run(l.between(0, 6*time.Second))
			l.Crash(l.relay())
		}},
		{name: "a relay leaves", before: func(l *lending) {
			a := l.relay()
			membershipsim.Leave(l.World, a)
			l.run(l.between(0, 1500*time.Millisecond))
		}},
		{name: "a relay is replaced", before: func(l *lending) {
			l.Crash(l.relay())
			l.run(l.between(3*time.Second, 10*time.Second))
		}},
	}
	all := slices.Clone(whole)
	for _, h := range whole {
		if h.name == "nothing" || h.name == "a member leaves" || h.name == "a relay freezes" || h.name == "a relay dies" {
			h.name, h.minority, h.calm = h.name+", a minority may be kept", true, false
			all = append(all, h)
		}
	}
	return append(all,
		happening{name: "beliefs differ", before: (*lending).believeDifferently},
		happening{name: "a cut in one direction", oneWay: true},
		happening{name: "a cut of gossip", what: gossipLost},
	)
}

// lead lets a little time pass, in which an edit is under way.
func (l *lending) lead() { l.run(l.between(0, 260*time.Millisecond)) }

// relay draws a voter that relays, by the word of the leader.
func (l *lending) relay() gossip.Address {
	relays := membershipsim.MachineOf(l.nodes[0]).Relays()
	return relays[l.rand.IntN(len(relays))].Node.Address
}

// withoutVotes says how many of the last nodes have no vote; if none is, nobody is asked
// for a role.
func (l *lending) withoutVotes(n int) {
	for i := range n {
		l.voteless[l.n-2-i] = true
		l.config.Config.Voters.Role = "votes"
	}
}

// deal returns the side of each node: of the nodes of a role it is drawn who is where.
func (l *lending) deal(c class) []int {
	sides := make([]int, l.n)
	var cast [roles][]int
	relays := membershipsim.MachineOf(l.nodes[0]).Relays()
	for _, i := range l.rand.Perm(len(l.nodes)) {
		is := func(m *gossip.Member) bool { return m.Node.Address == place(i) }
		switch {
		case i == 0: // The leader.
		case slices.ContainsFunc(relays, is):
			cast[roleRelay] = append(cast[roleRelay], i)
		case l.voteless[i]:
			cast[roleOther] = append(cast[roleOther], i)
		default:
			cast[roleVoter] = append(cast[roleVoter], i)
		}
	}
	for role, nodes := range cast {
		for side, n := range c.on[role] {
			for _, i := range nodes[:n] {
				sides[i] = side
			}
			nodes = nodes[n:]
		}
	}
	return sides
}

// splitAs cuts a formed cluster into sides, and lets the best side take over. No two sides
// host, and nobody hosts who is fenced.
func (l *lending) splitAs(c class, h happening) error {
	last := l.n - 1
	l.form(last)
	sides := l.deal(c)
	if h.before != nil {
		h.before(l)
	}
	for a := range sides {
		for b := range sides {
			if sides[a] != sides[b] && (!h.oneWay || sides[a] == 0) {
				l.lost[[2]int{a, b}] = cmp.Or(h.what, allLost)
			}
		}
	}
	if h.after != nil {
		h.after(l)
	}
	l.run(40 * time.Second)
	if l.Failure() != nil || h.oneWay || h.what != 0 {
		return l.Failure()
	}
	var alive, majority []int
	for side := range 3 {
		if slices.ContainsFunc(l.nodes, func(n *simulation.Node) bool { return sides[l.places[n.ID().Address]] == side && l.hosts(n) }) {
			alive = append(alive, side)
		}
		voters := c.on[roleRelay][side] + c.on[roleVoter][side]
		if side == 0 {
			voters++
		}
		if of := last - len(l.voteless); 2*voters > of || side == 0 && 2*voters == of {
			majority = append(majority, side)
		}
	}
	if len(alive) > 1 || h.calm && !slices.Equal(alive, majority) {
		return fmt.Errorf("the sides %v of %v host, %v has a majority", alive, sides, majority)
	}
	return nil
}

// stride is how far apart the runs are that a test does: it does all with
// QUORATE_SPLITS=all, and one of so many as QUORATE_SPLITS says.
func stride(t *testing.T, usual int) int {
	t.Helper()
	switch said := os.Getenv("QUORATE_SPLITS"); said {
	case "":
		return usual
	case "all":
		return 1
	default:
		n, err := strconv.Atoi(said)
		require.NoError(t, err)
		return max(n, 1)
	}
}

// Every class of splits of 11 to 14 nodes into two and three sides, with the relays on any of them, and of those with
// two members without a vote into two sides: each goes through every happening. A run of the test does one of two
// thousand, with the build tag seeds one of a thousand, from QUORATE_FIRST_SEED on; with QUORATE_SPLITS=all it takes a
// quarter of an hour of a processor.
//
// covers F9, F10, F14, I1, I2, I13.
func TestSplitsAmongManyLeaveOneSideHosting(t *testing.T) {
	usual := 1999
	if simulationtest.Times > 1 {
		usual = 997
	}
	every, first := stride(t, usual), 0
	if every > 1 {
		from, _ := seeds(0, 0)
		first = int(from) % every
	}
	number, splits, runs, removed := 0, 0, 0, 0
	for n := 11; n <= 14; n++ {
		for _, of := range [][2]int{{0, 2}, {0, 3}, {2, 2}} {
			others, sides := of[0], of[1]
			for _, c := range classes([roles]int{4, n - 5 - others, others}, sides) {
				splits += c.splits(sides)
				for _, h := range happenings() {
					if number++; number%every != first {
						continue
					}
					l := newLending(t, uint64(number), n+1)
					l.withoutVotes(others)
					if h.minority {
						l.config.Downing = membershipsim.Decided(membershipsim.Minorities(n)[0])
					}
					require.NoError(t, l.splitAs(c, h), "seed %d: %d nodes, %v, %s", number, n, c.on, h.name)
					runs++
					removed += l.removed
				}
			}
		}
	}
	require.Positive(t, removed)
	t.Logf("%d of %d runs of the classes of %d splits, in which %d nodes were fenced", runs, number, splits, removed)
}
