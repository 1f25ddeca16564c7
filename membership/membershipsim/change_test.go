// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membershipsim_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/membership/membershipsim"
	"github.com/quorate/quorate/simulation"
)

// strategyOf returns what a node is given to decide by d.
func strategyOf(d protocol.Downing) protocol.Strategy {
	return protocol.Strategy{Decide: d.Decide, DowningStrategy: gossip.DowningStrategy{
		Name: d.Config.Strategy, Version: d.Version, Parameters: d.Parameters,
		Pure: d.Class.Pure, MajorityOnly: d.Class.MajorityOnly,
	}}
}

// serveBoth has a world ask keep-majority or a witness, as the call says.
func serveBoth(v *membershipsim.Witness, w *simulation.World) {
	v.Serve(w)
	id := strategyOf(v.Downing()).ID()
	w.Strategies().Answer(protocol.CallDowning, func(_ *simulation.Node, request any) (any, error) {
		r := request.(protocol.DowningRequest)
		if r.Strategy == id {
			return v.Decide(r.View), nil
		}
		return downing.KeepMajority{}.DecideNow(r.View)
	})
}

// changeLags are how long after the first node knows of the change the cluster is
// cut. It takes some 50 ms until all know of it, and as long again until all know
// that all do.
func changeLags() []time.Duration {
	return []time.Duration{0, 2 * time.Millisecond, 7 * time.Millisecond, 15 * time.Millisecond, 25 * time.Millisecond, 40 * time.Millisecond, 90 * time.Millisecond, 400 * time.Millisecond}
}

// newest returns the highest generation of the register that a node knows.
func (p *parted) newest() uint64 { return slices.Max(p.generations()) }

// registers returns how many generations of the register nodes know.
func (p *parted) registers() int {
	known := p.generations()
	slices.Sort(known)
	return len(slices.Compact(known))
}

func (p *parted) generations() []uint64 {
	var known []uint64
	for _, n := range p.world.Nodes() {
		known = append(known, membershipsim.MachineOf(n).State().Downing().Gen)
	}
	return known
}

// change gives the nodes another strategy, one after the other, and returns some time after
// the first of them knows of the change.
func (p *parted) change(t *testing.T, to protocol.Downing, lag time.Duration, what string) {
	t.Helper()
	for i := range len(p.side) {
		p.world.Node(address(i)).Input(protocol.Service, protocol.LoadDowning{Strategy: strategyOf(to)})
		if i < len(p.side)-1 {
			require.NoError(t, p.world.Run(time.Duration(p.world.Seed()%7)*61*time.Millisecond), what)
		}
	}
	for p.newest() == 1 {
		require.NoError(t, p.world.Run(time.Millisecond), what)
		require.Less(t, p.world.Now(), 3*time.Minute, "the change never came: %s", what)
	}
	require.NoError(t, p.world.Run(lag), what)
}

// A cluster is cut while it changes from keep-majority to a witness, which may keep
// a minority, or back. Sides may know different strategies; still two never
// survive, nor does one host what the other has taken over. The nodes are given
// the strategy one after the other, so that a leader that does not wait for all is
// found out, and calls have mishaps.
//
// covers F9, F14, F56, I1, I2, I4, I34.
func TestSplitDuringAChangeOfStrategyLeavesOneSide(t *testing.T) {
	runs, survived, mixed, minorities := 0, 0, 0, 0
	lags := changeLags()
	eachSplit(callSplitsStride/3, func(seed uint64, sides []int) { // A minority is kept in one of thirty.
		v := &membershipsim.Witness{}
		from, to := membershipsim.AskedKeepMajority(), v.Downing()
		if runs%2 == 1 {
			from, to = to, from
		}
		lag := lags[runs/2%len(lags)]
		runs++
		what := fmt.Sprintf("seed %d, sides %v, to %s, cut after %v", seed, sides, to.Config.Strategy, lag)
		p := formed(t, seed, len(sides), membershipsim.Config{Downing: from})
		p.deal(sides)
		winner := p.winner(len(sides))
		serveBoth(v, p.world)
		if runs%3 == 0 {
			p.world.Strategies().Set(mishaps()[0].calls)
			p.world.After(15*time.Second, func() { p.world.Strategies().Set(simulation.Calls{}) })
		}
		p.change(t, to, lag, what)
		mixed += p.registers() - 1
		p.config.Downing = v.Downing() // Sides that are undecided may host: the invariants look at who takes over.
		p.cut()
		alive := p.survivors(t, 80*time.Second, what)
		survived += len(alive)
		if len(alive) > 0 && alive[0] != winner {
			minorities++
		}
	})
	t.Log(runs, "splits, of which", survived, "left a side that goes on,", minorities, "a minority;", mixed, "cut through a change")
	require.Positive(t, survived)
	require.Positive(t, minorities)
	require.Greater(t, mixed, runs/4)
}

// A cluster is cut while it changes between strategies that decide at once, of which some may
// keep a minority, some only report and one is manual. Sides that know different ones never
// both host, and a side is never kept beside one that hosts because nothing is decided there.
//
// covers F9, F14, I1, I2, I4.
func TestSplitDuringAChangeBetweenBuiltInStrategiesLeavesOneSide(t *testing.T) {
	runs, hosting, mixed := 0, 0, 0
	lags := changeLags()
	eachSplit(callSplitsStride, func(seed uint64, sides []int) {
		strategies := handsOff(len(sides))
		for _, c := range membershipsim.Minorities(len(sides)) {
			strategies = append(strategies, membershipsim.Decided(c))
		}
		n := len(strategies)
		from, to := strategies[runs%n], strategies[(runs+1+runs/n%(n-1))%n]
		lag := lags[runs/2%len(lags)]
		runs++
		what := fmt.Sprintf("seed %d, sides %v, from %s %s to %s %s, cut after %v", seed, sides,
			from.Config.Strategy, from.Parameters, to.Config.Strategy, to.Parameters, lag)
		p := formed(t, seed, len(sides), membershipsim.Config{Downing: from, Roles: []string{membershipsim.Core}})
		p.deal(sides)
		p.change(t, to, lag, what)
		mixed += p.registers() - 1
		p.config.Downing = membershipsim.Decided(membershipsim.Minorities(1)[0]) // Undecided sides may host for a while.
		p.cut()
		require.NoError(t, p.world.Run(40*time.Second), what)
		hosts := p.sidesWhere(p.invariants.Hosts)
		require.LessOrEqual(t, len(hosts), 1, what)
		hosting += len(hosts)
	})
	t.Log(runs, "splits, of which", hosting, "left a side that hosts;", mixed, "cut through a change")
	require.Positive(t, hosting)
	require.Greater(t, mixed, runs/4)
}

// On each side the strategy of the leader, which is the node at the lowest address,
// is away for good. Where the side has another member that one decides in its place;
// a side of one waits and goes.
//
// covers F56, I4, I13, I34.
func TestAnotherMemberDecidesInPlaceOfTheLeader(t *testing.T) {
	runs := 0
	eachSplit(2*callSplitsStride, func(seed uint64, sides []int) {
		m := mishaps()[1+runs%3*2] // Garbage, crash, fail: the witness hears of none of them.
		runs++
		v := &membershipsim.Witness{}
		size := make([]int, slices.Max(sides)+1)
		p, _ := splitWith(t, seed, sides, v.Downing(), func(p *parted) {
			v.Serve(p.world)
			for i, side := range sides {
				if size[side]++; size[side] == 1 {
					p.world.Strategies().SetAt(address(i), m.calls)
				}
			}
		})
		what := fmt.Sprintf("seed %d, sides %v, %s", seed, sides, m.name)
		require.NoError(t, p.world.Run(25*time.Second), what)
		alone := 0
		for _, n := range size {
			if n == 1 {
				alone++
			}
		}
		require.Len(t, p.sidesWhere(survives), min(len(size), alone+1), "one, and those that wait: %s", what)
		require.NoError(t, p.world.Run(30*time.Second), what)
		alive := p.sidesWhere(survives)
		require.Len(t, alive, min(1, len(size)-alone), what)
		require.Equal(t, alive, p.sidesWhere(p.invariants.Hosts), what)
	})
	t.Log(runs, "splits")
}

// One node is given the strategy before again in the moment in which the leader may
// change to the one that all have. The node decides by the one that the cluster then
// has, whichever that is, and the change comes when it is given the other once more.
//
// covers I4.
func TestStrategyIsTakenBackWhileTheClusterChangesToIt(t *testing.T) {
	late := 0
	for seed := range uint64(40) {
		from, to := strategyOf(membershipsim.AskedKeepMajority()), strategyOf((&membershipsim.Witness{}).Downing())
		n := 3 + int(seed%3)
		p := formed(t, 1+seed, n, membershipsim.Config{Downing: membershipsim.AskedKeepMajority()})
		give := func(i int, s protocol.Strategy) {
			p.world.Node(address(i)).Input(protocol.Service, protocol.LoadDowning{Strategy: s})
		}
		for i := range n {
			give(i, to)
		}
		what := fmt.Sprintf("seed %d, %d nodes", seed, n)
		require.NoError(t, p.world.Run(time.Duration(seed)*8*time.Millisecond), what)
		give(n-1, from)
		require.NoError(t, p.world.Run(5*time.Second), what)
		require.Equal(t, 1, p.registers(), what)
		if p.newest() > 1 {
			late++
		}
		give(n-1, to)
		require.NoError(t, p.world.Run(5*time.Second), what)
		for _, node := range p.world.Nodes() {
			require.Equal(t, to.DowningStrategy, membershipsim.MachineOf(node).State().Downing().DowningStrategy, what)
			require.Equal(t, []gossip.DowningStrategy{to.DowningStrategy}, membershipsim.MachineOf(node).Strategies(), what)
		}
	}
	t.Log(late, "of 40 came too late")
	require.Positive(t, late)
	require.Less(t, late, 40)
}
