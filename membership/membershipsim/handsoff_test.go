// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membershipsim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/membership/membershipsim"
	"github.com/quorate/quorate/simulation"
)

// handsOff are the strategies that leave it to an operator to down members: manual, and
// others that only report.
func handsOff(n int) []protocol.Downing {
	sections := membershipsim.Minorities(n)
	for _, name := range []string{downing.KeepMajorityName, downing.DownAllName, downing.ManualName} {
		c := downing.Default()
		c.Strategy = name
		sections = append(sections, c)
	}
	var all []protocol.Downing
	for _, c := range sections {
		if c.Strategy != downing.ManualName {
			c.Mode = downing.ModeReport
		}
		all = append(all, membershipsim.Decided(c))
	}
	return all
}

// decided collects the decisions of a world by topic and verdict.
func decided(w *simulation.World) map[string]int {
	all := map[string]int{}
	w.Observe(func(o simulation.Observation) {
		if d, ok := o.Event.(machine.Decide); ok {
			all[d.Topic+"/"+d.Verdict]++
		}
	})
	return all
}

// Where it is left to an operator, a split ends no node, whatever the strategy would do and
// however long it lasts. A side without a majority stops its work, the majority goes on with
// its own. What would be done is said once for each view, not again and again. When the
// network is whole, all go on together.
//
// covers F9, F10, I1, I2, I4.
func TestNobodyIsDownedWhereItIsLeftToAnOperator(t *testing.T) {
	runs, reports := 0, 0
	eachSplit(callSplitsStride, func(seed uint64, sides []int) {
		n := len(sides)
		strategies := handsOff(n)
		d := strategies[runs%len(strategies)]
		runs++
		what := fmt.Sprintf("seed %d, sides %v, %s %s", seed, sides, d.Config.Strategy, d.Parameters)
		p := world(seed, membershipsim.Config{Downing: d, Roles: []string{membershipsim.Core}})
		saw := decided(p.world)
		for i := range n {
			p.start(i)
		}
		p.settle(t)
		p.deal(sides)
		winner := p.winner(n)
		p.cut()
		require.NoError(t, p.world.Run(60*time.Second), what)
		var want []int
		if winner >= 0 {
			want = []int{winner}
		}
		require.Equal(t, want, p.sidesWhere(p.invariants.Hosts), what)
		for _, node := range p.world.Nodes() {
			for _, m := range membershipsim.MachineOf(node).State().Members() {
				require.Equal(t, gossip.Up, m.Status, what)
			}
		}
		require.Len(t, p.world.Nodes(), n, what)
		would := saw["downing-report/would keep-side"] + saw["downing-report/would down-side"] + saw["downing-report/would down-all"]
		require.Equal(t, d.Config.Strategy != downing.ManualName, would > 0, what)
		require.Less(t, would, 8*n, what)
		reports += would
		for a := range p.side {
			p.side[a] = 0
		}
		p.world.Network().Heal()
		requireSettled(t, p.world, time.Minute)
		require.Zero(t, saw["downing/down"], what)
	})
	t.Log(runs, "splits,", reports, "reports")
}

// An operator downs by command who is gone, and the others go on without them.
//
// covers F9, I4.
func TestAnOperatorDownsByCommandWhatTheStrategyLeaves(t *testing.T) {
	for i, d := range handsOff(5) {
		what := fmt.Sprintf("%s %s", d.Config.Strategy, d.Parameters)
		p := formed(t, uint64(i), 5, membershipsim.Config{Downing: d})
		p.world.Crash(address(3))
		p.world.Crash(address(4))
		require.NoError(t, p.world.Run(20*time.Second), what)
		for _, gone := range []int{3, 4} {
			p.world.Node(address(0)).Input(protocol.Service, protocol.Down{Address: address(gone)})
		}
		require.NoError(t, p.world.Run(10*time.Second), what)
		for _, node := range p.world.Nodes() {
			require.Len(t, membershipsim.MachineOf(node).State().Members(), 3, what)
			require.True(t, p.invariants.Hosts(node), what)
		}
	}
}

// The leader says when the parameters of a strategy do not fit the members, and when they
// fit again.
func TestALeaderSaysThatAStrategyDoesNotFit(t *testing.T) {
	c := downing.Default()
	c.Strategy, c.StaticQuorum.QuorumSize = downing.StaticQuorumName, 3
	p := world(7, membershipsim.Config{Downing: membershipsim.Decided(c)})
	saw := decided(p.world)
	p.start(0)
	p.settle(t)
	require.Equal(t, 1, saw["downing/unfit"], "one member, and a quorum of three")
	p.start(1)
	p.start(2)
	p.settle(t)
	require.Equal(t, 1, saw["downing/fits"])
}

// An operator downs so many voters that those who are left have no majority. They are not
// downed for it where that is left to the operator; but they host nothing.
//
// covers F9, I2, I4.
func TestThoseWhoAreLeftByAnOperatorAreNotDownedByThemselves(t *testing.T) {
	for i, d := range handsOff(5) {
		what := fmt.Sprintf("%s %s", d.Config.Strategy, d.Parameters)
		p := formed(t, uint64(i), 5, membershipsim.Config{Downing: d, Roles: []string{membershipsim.Core}})
		for gone := 2; gone < 5; gone++ {
			p.world.Crash(address(gone))
		}
		require.NoError(t, p.world.Run(20*time.Second), what)
		for gone := 2; gone < 5; gone++ {
			p.world.Node(address(0)).Input(protocol.Service, protocol.Down{Address: address(gone)})
		}
		require.NoError(t, p.world.Run(20*time.Second), what)
		require.Len(t, p.world.Nodes(), 2, what)
		for _, node := range p.world.Nodes() {
			require.Equal(t, gossip.Up, membershipsim.MachineOf(node).State().Member(node.ID()).Status, what)
			require.False(t, p.invariants.Hosts(node), what)
		}
	}
}
