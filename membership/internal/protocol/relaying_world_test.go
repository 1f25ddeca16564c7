// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/membership/membershipsim"
	"github.com/quorate/quorate/simulation"
	"github.com/quorate/quorate/simulation/simulationtest"
)

// The worlds of this file are clusters in which proofs are lent. A world is set up
// ([newLending]), its links are broken one by one ([lending.part]), and things happen to
// its nodes ([lending.disturb]). The check is that of [lending.check]: nobody hosts, by its
// own clock, once anybody has declared it fenced.

// lending is a world of voters that monitor three others each.
type lending struct {
	*simulation.World

	t      testing.TB
	rand   *rand.Rand
	n      int
	config membershipsim.Config
	nodes  []*simulation.Node
	until  map[gossip.NodeID]machine.Instant
	fenced map[gossip.NodeID]gossip.NodeID // By whom.
	force  []map[int]bool                  // Who relays, as each node believes; nil: by the usual rule.
	extra  map[int]bool                    // Who relays besides, without force.
	lost   map[[2]int]int                  // What is lost on links, by the numbers of the nodes.
	places map[gossip.Address]int          // The number of the node at an address.

	voteless map[int]bool // Who has not the role for voting, where there is one.

	removed int
}

// What is lost on a link.
const (
	allLost = 1 + iota
	gossipLost
	newsLost  // All but heartbeats, questions of relays, and the answers to them.
	signsLost // As newsLost, and the answers to heartbeats as well.
)

func place(i int) gossip.Address { return gossip.Address{Host: fmt.Sprintf("n%03d", i), Port: 7946} }

func newLending(t testing.TB, seed uint64, n int) *lending {
	t.Helper()
	w := simulation.New(simulation.Options{Seed: seed, RatePPM: 10_000, WallSkew: time.Second, Network: simulation.Delivery{Loss: 0.01, Max: 20 * time.Millisecond}})
	membershipsim.Serve(w)
	l := &lending{
		World: w, t: t, n: n, rand: w.Source(77), lost: map[[2]int]int{}, extra: map[int]bool{}, places: map[gossip.Address]int{}, voteless: map[int]bool{},
		until: map[gossip.NodeID]machine.Instant{}, fenced: map[gossip.NodeID]gossip.NodeID{},
		config: membershipsim.Config{Config: protocol.Default()},
	}
	l.config.Config.FailureDetector.MonitoredByNrOfMembers = 3
	w.Observe(func(o simulation.Observation) {
		switch e := o.Event.(type) {
		case simulation.Ended:
			delete(l.until, o.Node.ID())
		case component.Standing:
			l.until[o.Node.ID()] = e.Until
			l.check()
		case component.Fenced:
			if _, known := l.fenced[e.Node]; !known {
				l.fenced[e.Node] = o.Node.ID()
				l.removed++
			}
			l.check()
		}
	})
	for i := range n {
		l.places[place(i)] = i
	}
	w.Network().Lose("links", func(from, to gossip.Address, message any) bool {
		switch l.lost[[2]int{l.places[from], l.places[to]}] {
		case allLost:
			return true
		case gossipLost:
			return isGossip(message)
		case newsLost:
			return !isAsked(message) && !isSign(message)
		case signsLost:
			return !isAsked(message)
		}
		return false
	})
	return l
}

// start starts a node, and has it join by the first three.
func (l *lending) start(i int) { l.startBy(i, place(0), place(1), place(2)) }

func (l *lending) startBy(i int, seeds ...gossip.Address) {
	config := l.config
	if config.Config.Voters.Role != "" && !l.voteless[i] {
		config.Roles = []string{config.Config.Voters.Role}
	}
	member := membershipsim.Component(config)
	n := l.Start(place(i), func(env simulation.Env) []machine.Component {
		c := member(env)
		c.Machine.(*protocol.Machine).Believe(func(voter gossip.NodeID, usual bool) (relays, insists bool) {
			for k := range l.n {
				if l.force != nil && place(k) == voter.Address {
					return l.force[i][k], true
				}
			}
			return usual || l.extra[i], l.extra[i]
		})
		return []machine.Component{c}
	})
	n.Input(protocol.Service, protocol.Join{Seeds: seeds})
	l.nodes = append(l.nodes, n)
}

// form starts the first nodes, and waits until all are up, and almost all host: the network
// loses messages.
func (l *lending) form(nodes int) {
	for i := range nodes {
		if l.start(i); i == 2 { // The seed nodes have founded the cluster when the others begin.
			_, err := l.RunUntil(time.Minute, func() bool { return len(l.until) == 3 })
			require.NoError(l.t, err, "seed %d", l.Seed())
		}
	}
	_, err := l.RunUntil(2*time.Minute, func() bool {
		host := 0
		for _, n := range l.nodes {
			m := membershipsim.MachineOf(n).State().Member(n.ID())
			if m == nil || m.Status != gossip.Up {
				return false
			}
			if l.hosts(n) {
				host++
			}
		}
		return 50*host >= 49*nodes
	})
	require.NoError(l.t, err, "seed %d", l.Seed())
}

func (l *lending) hosts(n *simulation.Node) bool {
	until, ok := l.until[n.ID()]
	return ok && n.Alive() && n.Now().Mono <= until
}

// check looks for a node that hosts although somebody has declared it fenced.
func (l *lending) check() {
	for _, n := range l.nodes {
		if by, fenced := l.fenced[n.ID()]; fenced && l.hosts(n) {
			l.Fail(fmt.Errorf("standing: %v is fenced, says %v, and hosts for another %v", n.ID(), by, l.until[n.ID()].Sub(n.Now().Mono)))
		}
	}
}

// believeDifferently has each node believe in other relays, around a common core.
func (l *lending) believeDifferently() {
	common := map[int]bool{}
	for range 3 {
		common[l.rand.IntN(l.n)] = true
	}
	l.force = make([]map[int]bool, l.n)
	for i := range l.force {
		l.force[i] = map[int]bool{}
		for k := range common {
			l.force[i][k] = true
		}
		for l.rand.IntN(3) == 0 {
			k := l.rand.IntN(l.n)
			l.force[i][k] = !l.force[i][k]
		}
	}
	for k := range common {
		l.force[k][k] = true // Otherwise nobody may relay at all.
	}
}

// part loses what goes between some nodes and the others: all of it, or gossip alone.
// The nodes hear each other.
func (l *lending) part(some map[int]bool, spared int) {
	deaf := l.rand.Float64()
	for x := range l.n {
		for v := range l.n {
			if !some[x] || some[v] || v == spared {
				continue
			}
			what := gossipLost
			if l.rand.Float64() < deaf {
				what = allLost
			}
			l.lost[[2]int{v, x}], l.lost[[2]int{x, v}] = what, what
			if l.rand.IntN(10) == 0 {
				delete(l.lost, [2]int{x, v})
			}
		}
	}
}

// someOf draws nodes.
func (l *lending) someOf(n, most int) map[int]bool {
	some := map[int]bool{}
	for range 1 + l.rand.IntN(most) {
		some[l.rand.IntN(n)] = true
	}
	return some
}

func (l *lending) run(d time.Duration) bool { return l.Run(d) == nil }

func (l *lending) leave(i int) { membershipsim.Leave(l.World, place(i)) }

// disturb does something to a node.
func (l *lending) disturb() {
	i := l.rand.IntN(l.n)
	switch l.rand.IntN(8) {
	case 0:
		l.leave(i)
	case 1:
		l.Freeze(place(i), time.Duration(l.rand.Int64N(int64(12*time.Second))))
	case 2:
		if l.rand.IntN(3) == 0 {
			l.Crash(place(i))
		}
	case 3:
		if l.force != nil {
			k := l.rand.IntN(l.n)
			l.force[i][k] = !l.force[i][k]
		}
	case 4:
		if l.rand.IntN(2) == 0 {
			clear(l.lost)
		}
	case 5:
		l.Input(place(l.rand.IntN(l.n)), protocol.Service, protocol.Down{Address: place(i)})
	}
}

// links is a run in which a few nodes lose their links to the others, and some of them
// gossip alone: they are accused by some and answered by the rest, and learn nothing.
func (l *lending) links() error {
	if l.rand.IntN(3) > 0 {
		l.believeDifferently()
	}
	last := l.n - 1
	l.form(last)
	l.run(time.Duration(l.rand.Int64N(int64(time.Second))))
	some, spared := l.someOf(last, 3), -1
	switch l.rand.IntN(4) {
	case 0: // A newcomer is promoted, and they alone know.
		leader := membershipsim.MachineOf(l.nodes[0]).Snapshot().Leader
		for i := range last {
			if place(i) == leader.Address {
				some[i] = true
			}
		}
		l.start(last)
		spared = last
		_, _ = l.RunUntil(3*time.Second, func() bool {
			m := membershipsim.MachineOf(l.World.Node(leader.Address)).State().ByAddress(place(last))
			return m != nil && m.Status == gossip.Up
		})
		for v := range last {
			if !some[v] {
				l.lost[[2]int{v, last}], l.lost[[2]int{last, v}] = gossipLost, gossipLost
			}
		}
	case 1: // Two of them do not hear each other for a while.
		a, b := l.rand.IntN(last), l.rand.IntN(last)
		some[a], some[b] = true, true
		l.lost[[2]int{a, b}], l.lost[[2]int{b, a}] = allLost, allLost
		l.run(3500*time.Millisecond + time.Duration(l.rand.Int64N(int64(3*time.Second))))
		clear(l.lost)
	case 2:
		l.leave(l.rand.IntN(last))
	}
	l.part(some, spared)
	for range 8 {
		if !l.run(500*time.Millisecond + time.Duration(l.rand.Int64N(int64(2500*time.Millisecond)))) {
			return l.Failure()
		}
		l.disturb()
	}
	l.run(15 * time.Second)
	clear(l.lost)
	l.run(10 * time.Second)
	return l.Failure()
}

// seeds returns the seeds of a test: a few, all of them with the build tag seeds, or as many as QUORATE_SEEDS
// says from QUORATE_FIRST_SEED on.
func seeds(few, all uint64) (from, to uint64) {
	if simulationtest.Times > 1 {
		few = all
	}
	return seedsFrom(1, few)
}

func seedsFrom(first, usual uint64) (from, to uint64) {
	read := func(name string, otherwise uint64) uint64 {
		if n, err := strconv.ParseUint(os.Getenv(name), 10, 64); err == nil {
			return n
		}
		return otherwise
	}
	from = read("QUORATE_FIRST_SEED", first)
	return from, from + read("QUORATE_SEEDS", usual)
}

// covers I1, I2, I14: whatever becomes of the links between few and many, of the relays,
// and of what nodes believe about them.
func TestNobodyHostsByAProofOnceItIsFenced(t *testing.T) {
	from, to := seeds(7, 20)
	removed := 0
	for seed := from; seed < to; seed++ {
		l := newLending(t, seed, 7+int(seed%7))
		require.NoError(t, l.links(), "seed %d", seed)
		removed += l.removed
	}
	require.Positive(t, removed)
	t.Log(to-from, "runs, in which", removed, "nodes were fenced")
}

// few is a run among so few nodes that all monitor all: one joins, mostly as another leaves, and
// while that goes on some lose their links to the others, or gossip alone.
func (l *lending) few() error {
	l.config.Config.FailureDetector.MonitoredByNrOfMembers = 9
	joiner := l.rand.IntN(2) * (l.n - 1) // Of the lowest address, or of the highest.
	for i := range l.n {
		if i != joiner {
			l.startBy(i, place(1), place(2))
		}
	}
	_, err := l.RunUntil(time.Minute, func() bool { return len(l.until) == l.n-1 && membershipsim.Settled(l.World) == nil })
	require.NoError(l.t, err, "seed %d", l.Seed())
	l.startBy(joiner, place(1), place(2))
	some := l.someOf(l.n, 2)
	l.run(l.between(0, 1500*time.Millisecond))
	if l.rand.IntN(4) > 0 {
		l.leave(l.rand.IntN(l.n))
	}
	l.run(l.between(0, 400*time.Millisecond))
	l.part(some, -1)
	for range 5 {
		if !l.run(l.between(500*time.Millisecond, 3*time.Second)) {
			return l.Failure()
		}
		if l.rand.IntN(2) == 0 {
			l.disturb()
		}
	}
	l.run(15 * time.Second)
	clear(l.lost)
	l.run(10 * time.Second)
	return l.Failure()
}

// covers F15, I1, I2, I14: the same among so few that nothing is lent, while nodes join and leave.
// Seed 992 is the first that found a fence by the voters after an edit of which the removed node
// had not heard.
func TestNobodyHostsOnceItIsFencedAmongFew(t *testing.T) {
	from, to := seedsFrom(980, 20)
	if simulationtest.Times > 1 {
		from, to = seedsFrom(940, 60)
	}
	removed := 0
	for seed := from; seed < to; seed++ {
		l := newLending(t, seed, 4+int(seed%4))
		require.NoError(t, l.few(), "seed %d", seed)
		removed += l.removed
	}
	require.Positive(t, removed)
	t.Log(to-from, "runs, in which", removed, "nodes were fenced")
}

// The same storms of broken links among more nodes, with rings of three.
func TestNobodyHostsByAProofOnceItIsFencedAmongMore(t *testing.T) {
	from, to := seeds(1, 2)
	size, err := strconv.Atoi(os.Getenv("QUORATE_NODES"))
	if err != nil {
		size = 30
	}
	for seed := from; seed < to; seed++ {
		l := newLending(t, seed, size)
		require.NoError(t, l.links(), "seed %d", seed)
		t.Log("seed", seed, "fenced", l.removed)
	}
}
