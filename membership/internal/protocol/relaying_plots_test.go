// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/membership/membershipsim"
)

// The links of random worlds seldom break in the order in which a single rule of lent
// proofs decides. The plots of this file break them in such orders, at moments that the
// seed draws: each holds one of the moments back that the rule takes the latest of. Most of
// them begin with a node that is mute ([lending.mute]): the others accuse it, and it notices
// nothing and goes on asking for its standing. The check is that of all worlds of lending.

// isAsked tells whether a message asks for standing, or gives it on being asked by a relay.
func isAsked(message any) bool {
	switch message.(type) {
	case protocol.Heartbeat, protocol.AskStanding, protocol.GiveStanding, protocol.LendStanding:
		return true
	}
	return false
}

// isSign tells whether a message is a sign of life, for want of which nodes are accused.
func isSign(message any) bool {
	_, sign := message.(protocol.HeartbeatReply)
	return sign
}

// mute loses the signs of life of nodes, and all news between them and the others.
func (l *lending) mute(nodes ...int) {
	l.link(newsLost, l.others(), nodes)
	l.link(signsLost, nodes, l.others(nodes...))
}

// link loses something of what some nodes send to others.
func (l *lending) link(what int, from, to []int) {
	for _, a := range from {
		for _, b := range to {
			if l.lost[[2]int{a, b}] = what; what == 0 || a == b {
				delete(l.lost, [2]int{a, b})
			}
		}
	}
}

// both is link in both directions.
func (l *lending) both(what int, some, others []int) {
	l.link(what, some, others)
	l.link(what, others, some)
}

// others are all nodes but some.
func (l *lending) others(but ...int) []int {
	var others []int
	for i := range l.n {
		if !slices.Contains(but, i) {
			others = append(others, i)
		}
	}
	return others
}

// draw draws different nodes, none of which is the first, which leads.
func (l *lending) draw(n int) []int {
	drawn := l.rand.Perm(l.n - 1)[:n]
	for i := range drawn {
		drawn[i]++
	}
	return drawn
}

// between draws a time.
func (l *lending) between(least, most time.Duration) time.Duration {
	return least + time.Duration(l.rand.Int64N(int64(most-least)))
}

// within runs until something is so, which it looks at each millisecond.
func (l *lending) within(limit time.Duration, done func() bool) {
	for began := l.Now(); !done(); {
		require.Less(l.t, l.Now()-began, limit, "seed %d", l.Seed())
		require.NoError(l.t, l.Run(time.Millisecond), "seed %d", l.Seed())
	}
}

// led returns the member that a node is to the first node, which leads.
func (l *lending) led(i int) *gossip.Member {
	return membershipsim.MachineOf(l.nodes[0]).State().ByAddress(place(i))
}

// hearLate: of those that go on one is asked by a mute node, and hears of nothing until
// shortly before the mute one is removed. Nobody but itself takes it for a relay. It may
// be about to leave.
func (l *lending) hearLate() {
	l.form(l.n)
	drawn := l.draw(2)
	x, late := drawn[:1], drawn[1:]
	l.extra[late[0]] = true
	if l.rand.IntN(2) == 0 {
		l.Input(place(late[0]), protocol.Service, component.Busy{Component: "work"})
		l.leave(late[0])
	}
	l.run(l.between(1200*time.Millisecond, 3*time.Second))
	l.mute(x...)
	l.both(newsLost, x, late)
	l.both(newsLost, late, l.others(x...))
	l.run(l.between(7*time.Second, 12*time.Second))
	l.both(0, late, l.others(x...))
}

// lendOld: two mute nodes hear each other. One relays until the end of its own standing.
func (l *lending) lendOld() {
	l.form(l.n)
	drawn := l.draw(2)
	l.extra[drawn[0]] = true
	l.run(l.between(1200*time.Millisecond, 2200*time.Millisecond))
	l.mute(drawn...)
	l.both(0, drawn, drawn)
}

// accuseLate: a node is mute and denied by all; a relay that it hears is mute later, and
// most of the others hear late what is said of the relay.
func (l *lending) accuseLate() {
	l.form(l.n)
	drawn := l.draw(2)
	x, relay := drawn[:1], drawn[1:]
	l.extra[relay[0]] = true
	l.run(l.between(1200*time.Millisecond, 2200*time.Millisecond))
	l.mute(x...)
	l.both(newsLost, drawn, l.others(x...))
	l.link(signsLost, x, l.others(drawn...))
	l.both(newsLost, x, relay)
	l.run(l.between(500*time.Millisecond, 3500*time.Millisecond))
	l.link(signsLost, relay, l.others(drawn...))
	accused := func() bool {
		records := membershipsim.MachineOf(l.nodes[0]).State().Records()
		return slices.ContainsFunc(records, func(r gossip.Record) bool { return r.Subject.Address == place(relay[0]) })
	}
	l.within(7*time.Second, accused)
	slow := l.others(append(drawn, 0)...)
	l.rand.Shuffle(len(slow), func(i, j int) { slow[i], slow[j] = slow[j], slow[i] })
	slow = slow[2:]
	l.link(newsLost, l.others(drawn...), slow)
	l.run(l.between(3*time.Second, 7*time.Second))
	l.link(0, l.others(drawn...), slow)
}

// promoteUnheard: a leader promotes a newcomer, of which one more node hears alone. Both are
// mute to the others, and the newcomer relays.
func (l *lending) promoteUnheard() {
	newcomer := l.n - 1
	l.form(newcomer)
	l.extra[newcomer] = true
	side := []int{0, 1 + l.rand.IntN(newcomer-1)}
	l.start(newcomer)
	l.within(20*time.Second, func() bool { m := l.led(newcomer); return m != nil && m.Status == gossip.Up })
	l.mute(side...)
	l.both(0, side, append(side, newcomer))
	l.both(newsLost, []int{newcomer}, l.others(append(side, newcomer)...))
}

// exitUnheard: a relay has confirmed that it hosts nothing, and is exiting, of which most
// others hear late. They accuse a node that it lends to, each by itself.
func (l *lending) exitUnheard() {
	l.form(l.n)
	drawn := l.draw(2)
	x, relay := drawn[:1], drawn[1:]
	l.extra[relay[0]] = true
	l.run(l.between(1200*time.Millisecond, 2200*time.Millisecond))
	l.leave(relay[0])
	l.within(5*time.Second, func() bool { return l.led(relay[0]).Status == gossip.Exiting })
	var slow []int
	for _, i := range l.others(append(drawn, 0)...) {
		if l.rand.IntN(4) > 0 {
			slow = append(slow, i)
		}
	}
	l.mute(x...)
	l.both(newsLost, relay, l.others())
	l.link(newsLost, l.others(drawn...), slow)
	l.run(l.between(7*time.Second, 10*time.Second))
	l.link(0, l.others(drawn...), slow)
}

// voteUnheard: newcomers are promoted, and they and a few others alone know. The sides
// hear nothing of each other.
func (l *lending) voteUnheard() {
	voters := l.n - 4
	l.form(voters)
	newcomers := l.others(l.others()[:voters]...)
	for _, i := range newcomers {
		l.start(i)
	}
	least := 1 + l.rand.IntN(len(newcomers))
	l.within(20*time.Second, func() bool {
		up := 0
		for _, i := range newcomers {
			if m := l.led(i); m != nil && m.Status == gossip.Up {
				up++
			}
		}
		return up >= least
	})
	few := append([]int{0}, newcomers...)
	for _, i := range l.rand.Perm(voters - 1)[:(voters-1)/2-1] {
		few = append(few, i+1)
	}
	l.both(allLost, few, l.others(few...))
}

// downAtOnce: the node with the slowest clock is downed by command in the moment in which
// its standing was renewed, and the news of it is fast.
func (l *lending) downAtOnce() {
	l.config.Config.Fence = 15 * time.Second // In which two clocks go further apart than the news takes.
	l.config.Config.PushDelay = time.Millisecond
	l.form(l.n)
	x := l.slowest()
	l.run(l.between(0, time.Second))
	before := l.until[l.nodes[x].ID()]
	l.within(3*time.Second, func() bool { return l.until[l.nodes[x].ID()] != before })
	for _, i := range l.others(x) {
		l.Network().Split([]gossip.Address{place(x)}, []gossip.Address{place(i)})
	}
	l.Input(place(0), protocol.Service, protocol.Down{Address: place(x)})
}

// slowest returns the node with the slowest clock but the first.
func (l *lending) slowest() int {
	began := map[int]machine.Instant{}
	for i, n := range l.nodes {
		began[i] = n.Now().Mono
	}
	l.run(time.Second)
	slowest := 1
	for i, n := range l.nodes[1:] {
		if n.Now().Mono.Sub(began[i+1]) < l.nodes[slowest].Now().Mono.Sub(began[slowest]) {
			slowest = i + 1
		}
	}
	return slowest
}

// accuseSome: a node is mute, and only those that monitor it have a record of their own.
func (l *lending) accuseSome() {
	l.form(l.n)
	l.run(l.between(0, time.Second))
	l.mute(l.draw(1)...)
}

// tieTurns: of four voters one leaves in the same edit in which one with the lowest address joins,
// and of the others one does not hear of that. It stands by half of the voters before, with the
// lowest of these, which hears it and accuses nobody; the two others of the voters after have cut
// it off long before, and half of these voters without their lowest is no majority.
func (l *lending) tieTurns() {
	const lowest = 1
	joiner, deaf, other, leaver := []int{0}, []int{2}, []int{3}, []int{4}
	for i := 1; i < 5; i++ {
		l.startBy(i, place(lowest), place(2))
	}
	state := func(i int) *gossip.State { return membershipsim.MachineOf(l.World.Node(place(i))).State() }
	l.within(time.Minute, func() bool { return len(l.until) == 4 && membershipsim.Settled(l.World) == nil })
	// The joiner is not up before the third has reached it, and the leaver not exiting before all
	// have seen the state, so that both wait for the third.
	l.both(allLost, joiner, other)
	l.startBy(0, place(lowest), place(2))
	status := func(at, of int) gossip.Status {
		if m := state(at).ByAddress(place(of)); m != nil {
			return m.Status
		}
		return 0
	}
	l.within(20*time.Second, func() bool { return status(2, 0) == gossip.Joining && status(3, 0) == gossip.Joining })
	l.both(gossipLost, other, l.others(other...))
	l.leave(leaver[0])
	l.within(20*time.Second, func() bool {
		return status(2, 4) == gossip.Leaving && state(lowest).Seen(state(lowest).ByAddress(place(2)).Node)
	})
	l.both(0, joiner, other)
	l.both(gossipLost, joiner, other)
	l.run(l.between(2500*time.Millisecond, 3*time.Second)) // The third reaches the joiner, and says so.
	l.both(gossipLost, deaf, l.others(deaf...))
	l.both(0, other, l.others(deaf...))
	l.within(20*time.Second, func() bool { return status(lowest, 0) == gossip.Up && status(lowest, 4) == gossip.Exiting })
	require.Equal(l.t, gossip.Leaving, status(2, 4), "it has heard of it")
	l.both(allLost, deaf, joiner)
	l.both(allLost, deaf, other)
	l.both(allLost, deaf, leaver)
}

// accuseAnew: a node is mute to one of few, which hears of the accusations of the others, and then of
// nothing until these have taken them back and made them again: meanwhile the node has had their answers.
func (l *lending) accuseAnew() {
	l.form(l.n)
	drawn := l.draw(2)
	x, late, others := drawn[:1], drawn[1:], l.others(drawn...)
	accuse := func(all bool, at int) func() bool { // All others do, or nobody of them, as one node knows.
		return func() bool {
			s := membershipsim.MachineOf(l.nodes[at]).State()
			return !slices.ContainsFunc(others, func(i int) bool { return s.ReachableFrom(l.nodes[i].ID(), l.nodes[x[0]].ID()) == all })
		}
	}
	l.mute(x...)
	l.link(0, x, late)
	l.within(10*time.Second, accuse(true, late[0]))
	l.both(newsLost, late, l.others())
	l.link(signsLost, x, late)
	l.link(0, x, others)
	l.within(3*time.Second, accuse(false, 0))
	l.run(l.between(4*time.Second, 7*time.Second))
	l.link(signsLost, x, others)
	l.within(10*time.Second, accuse(true, 0))
	l.both(0, late, others)
	l.Input(place(0), protocol.Service, protocol.Down{Address: place(x[0])})
}

// covers I1, I2, I14: nobody hosts by a proof once it is fenced, though of the moments that
// the fence counts from each one in turn comes last.
func TestNoPlotOutlastsTheFence(t *testing.T) {
	for _, plot := range []struct {
		name      string
		nodes     int
		more      uint64 // Sizes run from nodes on: this many different ones.
		monitored int
		seeds     uint64
		play      func(*lending)
	}{
		{"hear late", 11, 4, 3, 5, (*lending).hearLate},
		{"lend old", 11, 4, 3, 5, (*lending).lendOld},
		{"accuse late", 11, 4, 3, 5, (*lending).accuseLate},
		{"promote unheard", 11, 4, 3, 5, (*lending).promoteUnheard},
		{"exit unheard", 11, 1, 9, 12, (*lending).exitUnheard},
		{"vote unheard", 15, 4, 3, 5, (*lending).voteUnheard},
		{"down at once", 3, 4, 9, 8, (*lending).downAtOnce},
		{"accuse some", 11, 4, 3, 5, (*lending).accuseSome},
		{"tie turns", 5, 1, 9, 5, (*lending).tieTurns},
		{"accuse anew", 3, 4, 9, 8, (*lending).accuseAnew},
	} {
		t.Run(plot.name, func(t *testing.T) {
			removed := 0
			from, to := seeds((plot.seeds+1)/3, plot.seeds)
			for seed := from; seed < to; seed++ {
				l := newLending(t, seed, plot.nodes+int(seed%plot.more))
				l.config.Config.FailureDetector.MonitoredByNrOfMembers = plot.monitored
				plot.play(l)
				l.run(25 * time.Second)
				require.NoError(t, l.Failure(), "seed %d", seed)
				removed += l.removed
			}
			require.Positive(t, removed)
			t.Log(to-from, "runs, in which", removed, "nodes were fenced")
		})
	}
}
