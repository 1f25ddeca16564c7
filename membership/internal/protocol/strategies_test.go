// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// keepFirst keeps the side of the node at the first address, however small.
func keepFirst(v downing.View) (downing.Decision, error) {
	side, d := v.Side(), downing.Decision{Verdict: downing.DownSide, Reason: "the first node is elsewhere"}
	lost := side.Members()
	for _, m := range side.Members() {
		if m.Node.Address == address(1) {
			d, lost = downing.Decision{Verdict: downing.KeepSide, Reason: "the first node is here"}, side.Lost()
		}
	}
	for _, m := range lost {
		if downing.CanBeDowned(m) {
			d.Down = append(d.Down, m.Node)
		}
	}
	return d, nil
}

// first is the strategy with which the nodes of the tests begin, second and third
// are others.
func first() gossip.DowningStrategy {
	return gossip.DowningStrategy{Name: downing.KeepMajorityName, Pure: true, MajorityOnly: true}
}

func second() protocol.Strategy {
	return protocol.Strategy{Decide: keepFirst, Load: 2, DowningStrategy: gossip.DowningStrategy{
		Name: "keep-first", Version: "2", Parameters: "x=1", Pure: true,
	}}
}

func third() protocol.Strategy {
	s := second()
	s.Name, s.Load = "keep-first-too", 3
	return s
}

func (n *node) load(s protocol.Strategy) { n.step(protocol.LoadDowning{Strategy: s}) }

func (n *node) register() gossip.DowningRegister { return n.machine.State().Downing() }

// decided tells whether a node took a decision about the strategy.
func (n *node) decided(verdict string) bool {
	return slices.IndexFunc(n.decisions, func(d machine.Decide) bool {
		return d.Topic == "downing" && d.Subject == "strategy" && d.Verdict == verdict
	}) >= 0
}

func TestStrategyIsChangedWhenAllMembersHaveIt(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(3)
	require.Equal(t, gossip.DowningRegister{Gen: 1, DowningStrategy: first()}, nodes[2].register())
	nodes[0].load(second())
	nodes[1].load(second())
	l.run(5 * time.Second)
	for _, n := range nodes {
		require.Equal(t, first(), n.register().DowningStrategy, "one member lacks the other")
	}
	require.True(t, nodes[0].decided("waiting"))
	require.Contains(t, nodes[0].decisions[len(nodes[0].decisions)-1].Reason, nodes[2].id.String())
	require.Len(t, nodes[0].machine.Strategies(), 2)

	nodes[2].load(second())
	l.run(3 * time.Second)
	for _, n := range nodes {
		require.Equal(t, gossip.DowningRegister{Gen: 2, DowningStrategy: second().DowningStrategy, Previous: first()}, n.register())
		require.Equal(t, []protocol.Unloaded{{Strategy: first()}}, published[protocol.Unloaded](n), "it is let go once")
		require.Equal(t, []gossip.DowningStrategy{second().DowningStrategy}, n.machine.Strategies())
		require.Equal(t, []gossip.StrategyID{second().ID()}, n.machine.State().Member(n.id).Loaded.Strategies)
	}
	require.True(t, nodes[0].decided("changed"))
}

// The new strategy decides: it keeps a side that the one before would not have kept.
func TestChangedStrategyDecides(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(5)
	for _, n := range nodes {
		n.load(second())
	}
	l.run(3 * time.Second)
	l.cut = splitAtThree()
	checkTakeOver(l, nodes)
	l.run(25 * time.Second)
	for i, n := range nodes {
		require.Equal(t, i < 2, n.stopping == nil, "%v", n.id)
		require.Equal(t, i < 2, n.hosts(), "%v", n.id)
	}
}

// A strategy that was replaced before every member had it is released, and so is the one
// before that; a strategy that is given again under the same identity takes its place.
func TestLastStrategyThatWasGivenIsTheOneWanted(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(3)
	nodes[0].load(second())
	l.run(time.Second)
	nodes[0].load(third())
	l.run(2 * time.Second)
	require.Equal(t, []protocol.Unloaded{{Strategy: second().DowningStrategy, Load: 2}}, published[protocol.Unloaded](nodes[0]))
	again := third()
	again.Load = 9
	nodes[0].load(again)
	back := protocol.Strategy{DowningStrategy: first(), Decide: downing.KeepMajority{}.DecideNow, Load: 10}
	nodes[0].load(back)
	l.run(2 * time.Second)
	require.Equal(t, []protocol.Unloaded{
		{Strategy: second().DowningStrategy, Load: 2},
		{Strategy: third().DowningStrategy, Load: 3},
		{Strategy: first()},
		{Strategy: third().DowningStrategy, Load: 9},
	}, published[protocol.Unloaded](nodes[0]))
	require.Equal(t, uint64(1), nodes[0].register().Gen)
}

func TestStrategyWithoutIdentityAndTooManyAreRefused(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(2)
	nodes[0].load(protocol.Strategy{Load: 5})
	require.Equal(t, uint64(5), published[protocol.Unloaded](nodes[0])[0].Load)
	require.Equal(t, uint64(1), nodes[0].machine.Refusals(protocol.RefusedMalformed))
	nodes[1].dead = true // Nothing converges, so nothing can be let go.
	for i := range gossip.MaxLoaded {
		s := second()
		s.Load, s.Version = uint64(10+i), string(rune('a'+i))
		nodes[0].load(s)
	}
	require.Equal(t, uint64(1), nodes[0].machine.Refusals(protocol.RefusedBusy))
	require.Equal(t, uint64(10+gossip.MaxLoaded-1), published[protocol.Unloaded](nodes[0])[1].Load)
}

// second as the configured strategy of a node.
func configured(_ *protocol.Config, d *protocol.Dependencies) {
	s := second()
	d.Downing.Config.Strategy, d.Downing.Version, d.Downing.Parameters = s.Name, s.Version, s.Parameters
	d.Downing.Decide, d.Downing.Class = s.Decide, downing.Class{Pure: true}
}

// covers F47: a node that has not loaded the strategy of the cluster is refused, and told
// which one that is; a node that has it joins, whatever the others were configured with.
func TestJoinerNeedsTheStrategyOfTheCluster(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(2)
	early := l.join(3, configured)
	l.run(time.Second)
	require.Equal(t, component.StopRefused, early.stopping.Reason)
	require.Contains(t, early.stopping.Detail, `"keep-majority" in the cluster and "keep-first" here`)
	differences := published[protocol.Refused](early)[0].Differences
	require.Contains(t, differences, protocol.Difference{Key: "downing.parameters", Joiner: "x=1"})
	require.Contains(t, differences, protocol.Difference{Key: "downing.version", Joiner: "2"})

	both := l.start(4, 4, configured)
	both.load(protocol.Strategy{DowningStrategy: first(), Decide: downing.KeepMajority{}.DecideNow})
	both.step(protocol.Join{Seeds: []gossip.Address{address(1)}})
	l.until(5*time.Second, func() bool { return nodes[0].sees(3, gossip.Up) })

	for _, n := range []*node{nodes[0], nodes[1], both} {
		n.load(second())
	}
	l.run(3 * time.Second)
	require.Equal(t, "keep-first", nodes[0].register().Name)
	late := l.join(5)
	l.run(time.Second)
	require.Equal(t, component.StopRefused, late.stopping.Reason)
	l.join(6, configured)
	l.until(5*time.Second, func() bool { return nodes[0].sees(4, gossip.Up) })
}

// A node may join at the very moment at which the strategy changes. Whatever comes
// first, nobody is up who could not decide.
func TestNobodyIsUpWithoutTheStrategyOfTheCluster(t *testing.T) {
	outcomes := map[string]int{}
	for at := time.Duration(0); at < 400*time.Millisecond; at += 4 * time.Millisecond {
		l := newLoop(t)
		l.latency = 5 * time.Millisecond
		nodes := l.cluster(3)
		for _, n := range nodes {
			n.load(second())
		}
		var joiner *node
		l.after(at, func() {
			joiner = l.start(4, 4)
			joiner.step(protocol.Join{Seeds: []gossip.Address{address(3)}})
		})
		l.run(4 * time.Second)
		switch {
		case joiner.stopping != nil:
			outcomes[joiner.stopping.Detail[:10]]++
			require.Equal(t, component.StopRefused, joiner.stopping.Reason)
			require.Equal(t, "keep-first", nodes[0].register().Name)
		default:
			outcomes["joined"]++
			require.Equal(t, first(), nodes[0].register().DowningStrategy, "the change waits for it")
			require.True(t, l.allUp(4))
			joiner.load(second())
			l.run(2 * time.Second)
			require.Equal(t, "keep-first", nodes[0].register().Name)
		}
	}
	t.Log(outcomes)
	require.Len(t, outcomes, 3, "it was first, too late, and in between")
}

// The cluster is cut at any moment of a change between a strategy that keeps the
// majority and one that keeps the minority. Both sides never survive.
func TestCutDuringAChangeNeverLeavesTwoSides(t *testing.T) {
	outcomes := map[string]int{}
	for at := time.Duration(0); at < 500*time.Millisecond; at += 17 * time.Millisecond {
		l := newLoop(t)
		l.latency = 2 * time.Millisecond
		nodes := l.cluster(5)
		for _, n := range nodes {
			n.load(second())
		}
		l.after(at, func() { l.cut = splitAtThree() })
		checkTakeOver(l, nodes)
		l.run(30 * time.Second)
		survivors := ""
		for i, n := range nodes {
			if n.stopping == nil {
				survivors += string(rune('1' + i))
			}
		}
		require.Contains(t, []string{"12", "345", ""}, survivors, "cut after %v", at)
		outcomes[survivors]++
	}
	t.Log(outcomes)
	require.Positive(t, outcomes["12"])
	require.Positive(t, outcomes["345"])
}

// While the cluster changes from a majority rule to a witness it is cut. The witness
// gives its vote to the side that asks first. That side survives: one that is lost by
// the rule before does not ask.
func TestSideThatIsLostDoesNotTakeTheVote(t *testing.T) {
	votes := map[bool]int{}
	for lag := time.Duration(0); lag < 400*time.Millisecond; lag += 23 * time.Millisecond {
		l := newLoop(t)
		l.latency = 2 * time.Millisecond
		nodes := l.cluster(5)
		small := splitAtThree()
		onSmall := func(a gossip.Address) bool { return small(a, address(5)) }
		var voted *bool
		l.calls = func(n *node, c machine.Call) {
			if view := viewOf(c); voted == nil || *voted == onSmall(view.Self.Address) {
				side := onSmall(view.Self.Address)
				voted = &side
				n.loop.after(time.Millisecond, func() { n.step(machine.Called{ID: c.ID, Result: keepLost(view)}) })
				return
			}
			n.loop.after(time.Millisecond, func() { n.step(machine.Called{ID: c.ID, Err: errors.New("the vote is given")}) })
		}
		witness := second()
		witness.Decide = nil
		for _, n := range nodes {
			n.load(witness)
		}
		l.until(5*time.Second, func() bool { return nodes[0].register().Gen > 1 })
		l.run(lag)
		l.cut = small
		checkTakeOver(l, nodes)
		l.run(60 * time.Second)
		if voted != nil {
			votes[*voted]++
		}
		for i, n := range nodes {
			require.Equal(t, voted != nil && *voted == (i < 2) || voted == nil && i >= 2, n.stopping == nil, "%v, cut after %v", n.id, lag)
		}
	}
	t.Log(votes)
	require.Positive(t, votes[true])
	require.Positive(t, votes[false])
}

// loadedEverywhere checks what the change of strategies promises to nodes that must
// decide: the register of a node never names a strategy that the node, or a live voter,
// has not loaded. A leaving voter that has stopped hosting may not hear of a change any
// more. Nor may a node that the voter does not count as a member: one that was admitted
// by a member that crashed before it told any other, or was removed after a cut.
// admitted by a member that crashed before it told anybody, or was removed after a cut.
func (l *loop) loadedEverywhere(t require.TestingT) {
	for i := range 10 {
		n := l.nodes[address(i)]
		if n == nil || n.dead || n.register().Gen == 0 {
			continue
		}
		if n.machine.State().Member(n.id).Status >= gossip.Leaving {
			continue
		}
		for _, member := range n.machine.State().Members() {
			other := l.nodes[member.Node.Address]
			if other.id != member.Node || other.dead || member.Status < gossip.Up || member.Status > gossip.Leaving {
				continue
			}
			if other.machine.State().Member(n.id) == nil {
				continue
			}
			require.Contains(t, other.machine.Strategies(), n.register().DowningStrategy,
				"%v is %v and cannot decide by the strategy that %v knows", member.Node, member.Status, n.id)
		}
	}
}

// No node waits for a leader that has finished leaving, and such a leader may change the
// strategy at the moment at which the last node stops announcing it. covers I4.
func TestALeaderThatLeavesMayStillChooseTheStrategy(t *testing.T) {
	chosen := 0
	for at := 100 * time.Millisecond; at < 140*time.Millisecond; at += time.Millisecond {
		l := newLoop(t)
		l.latency = time.Millisecond
		nodes := l.cluster(3)
		for _, n := range nodes {
			n.load(second())
		}
		l.run(at)
		for _, i := range []int{2, 0} {
			nodes[i].step(protocol.Leave{Address: nodes[i].id.Address})
			l.run(time.Millisecond)
		}
		nodes[1].load(protocol.Strategy{DowningStrategy: first(), Decide: downing.KeepMajority{}.DecideNow})
		l.run(82 * time.Millisecond)
		l.loadedEverywhere(t)
		if nodes[1].register().Gen > 1 {
			chosen++
		}
	}
	t.Log(chosen)
	require.Positive(t, chosen)
}

// covers I4: strategies are given to nodes, and nodes join, leave, crash and are
// cut off, in any order and at any time.
func TestNoVoterIsWithoutTheStrategyOfTheCluster(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		l := newLoop(t)
		l.latency = time.Duration(rapid.IntRange(1, 30).Draw(r, "latency")) * time.Millisecond
		nodes := l.cluster(3)
		given := []protocol.Strategy{{DowningStrategy: first(), Decide: downing.KeepMajority{}.DecideNow}, second(), third()}
		for range rapid.IntRange(5, 25).Draw(r, "steps") {
			n := nodes[rapid.IntRange(0, len(nodes)-1).Draw(r, "node")]
			switch rapid.IntRange(0, 9).Draw(r, "what") {
			case 0:
				if len(nodes) < 6 {
					nodes = append(nodes, l.join(len(nodes)+1))
				}
			case 1:
				n.step(protocol.Leave{Address: n.id.Address})
			case 2:
				n.dead = rapid.IntRange(0, 3).Draw(r, "crash") == 0 || n.dead
			case 3:
				l.cut = func(from, to gossip.Address) bool { return (from == n.id.Address) != (to == n.id.Address) }
			case 4:
				l.cut = nil
			default:
				strategy := given[rapid.IntRange(0, 2).Draw(r, "strategy")]
				for _, n := range nodes {
					if rapid.IntRange(0, 3).Draw(r, "all") > 0 {
						n.load(strategy)
					}
				}
			}
			l.run(time.Duration(rapid.IntRange(0, 1500).Draw(r, "ms")) * time.Millisecond)
			l.loadedEverywhere(r)
		}
	})
}
