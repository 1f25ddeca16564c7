// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membershipsim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/membership/membershipsim"
	"github.com/quorate/quorate/simulation"
)

// formedOf returns a cluster in which the first of n nodes have the role that votes.
func formedOf(t *testing.T, seed uint64, voters, n int) *parted {
	t.Helper()
	config := protocol.Default()
	config.Voters.Role = "backend"
	w := simulation.New(simulation.Options{Seed: seed, RatePPM: 10_000, CodecEvery: 50})
	membershipsim.Serve(w)
	p := &parted{world: w, invariants: &membershipsim.Invariants{}, config: membershipsim.Config{Config: config}, side: map[gossip.Address]int{}, node: map[gossip.Address]*simulation.Node{}}
	p.invariants.Watch(w)
	for i := range n {
		c := p.config
		if i < voters {
			c.Roles = []string{"backend"}
		}
		component := membershipsim.Component(c)
		p.node[address(i)] = w.Start(address(i), func(env simulation.Env) []machine.Component {
			return []machine.Component{component(env)}
		})
		p.node[address(i)].Input(protocol.Service, protocol.Join{Seeds: addresses(0, min(i, 2)+1)})
	}
	requireSettled(t, w, time.Minute)
	require.NoError(t, w.Run(3*time.Second))
	for _, node := range w.Nodes() {
		require.True(t, p.invariants.Hosts(node))
	}
	return p
}

// Every split of six nodes of which three vote into 2 and 3 sides: two sides never host
// at the same time, and the side with two of the three goes on, whole, however few of
// the others are on it. Without one nobody does.
//
// covers F9, F10, I1, I2, I4, I13.
func TestTheSideWithMostOfThoseWhoVoteGoesOn(t *testing.T) {
	const n, voters = 6, 3
	survived := 0
	for sides := 2; sides <= 3; sides++ {
		for number, dealt := range partitions(n, sides) {
			if number%splitsStride != 0 {
				continue
			}
			p := formedOf(t, uint64(100*sides+number), voters, n)
			p.deal(dealt)
			winner := p.winner(voters)
			p.cut()
			require.NoError(t, p.world.Run(30*time.Second), dealt)
			hosting := p.sidesWhere(p.invariants.Hosts)
			if winner < 0 {
				require.Empty(t, hosting, dealt)
				continue
			}
			survived++
			require.Equal(t, []int{winner}, hosting, dealt)
			for i, side := range dealt {
				require.Equal(t, side == winner, p.world.Node(address(i)) != nil, dealt)
			}
		}
	}
	require.Positive(t, survived)
}
