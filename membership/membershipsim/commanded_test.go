// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membershipsim_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/membership/membershipsim"
	"github.com/quorate/quorate/simulation"
)

// downAll gives one node of a side the commands to down all nodes that are on another.
func (p *parted) downAll(by, of int) {
	for _, n := range p.world.Nodes() {
		if p.side[n.ID().Address] == by {
			for _, a := range p.on(of) {
				n.Input(protocol.Service, protocol.Down{Address: a})
			}
			return
		}
	}
}

// An operator takes the other side for dead, which lives, and downs it by command: a second
// after the split, or when it has been noticed. Where a minority may be kept, nobody goes on
// by that alone.
//
// covers F9, F10, F14, I1, I2, I4.
func TestNobodyGoesOnByACommandAlone(t *testing.T) {
	runs, commanded := 0, 0
	eachSplit(callSplitsStride, func(seed uint64, sides []int) {
		strategies := membershipsim.Minorities(len(sides))
		v := &membershipsim.Witness{}
		d, after := v.Downing(), []time.Duration{time.Second, 6 * time.Second}[runs/2%2]
		if runs%2 == 1 {
			d = membershipsim.Decided(strategies[runs/2%len(strategies)])
		}
		by := runs / 4 % (slices.Max(sides) + 1)
		runs++
		what := fmt.Sprintf("seed %d, sides %v, commands on side %d after %v, %s", seed, sides, by, after, d.Config.Strategy)
		p, _ := splitWith(t, seed, sides, d, func(p *parted) { v.Serve(p.world) })
		p.world.After(after, func() {
			for of := range p.sides {
				if of != by {
					p.downAll(by, of)
				}
			}
		})
		if alive := p.survivors(t, 80*time.Second, what); len(alive) == 1 && alive[0] == by {
			commanded++
		}
	})
	t.Log(runs, "splits, of which", commanded, "were survived by the side that got the commands")
	require.Positive(t, commanded)
}

// A side gets no answer. The witness keeps the other one, which lets a newcomer in and so gives
// a generation and an up-number, and then ends, whichever way that comes about, while the first
// side still waits. That side does not go on, whether the network is whole again or not.
//
// covers F14, F28, I1, I2, I4, I29.
func TestASideThatWaitsDoesNotGoOnWhenTheSideThatWasKeptEnds(t *testing.T) {
	ends := []func(p *parted, w *simulation.World){
		func(p *parted, w *simulation.World) { // All crash.
			for _, a := range p.on(1) {
				w.Crash(a)
			}
		},
		func(p *parted, w *simulation.World) { // All leave.
			for _, a := range p.on(1) {
				w.Node(a).Input(protocol.Service, protocol.Leave{Address: a})
			}
		},
		func(p *parted, w *simulation.World) { // All are downed on their own side.
			for _, a := range p.on(1) {
				w.Node(a).Input(protocol.Service, protocol.Down{Address: a})
			}
		},
		func(p *parted, w *simulation.World) { // All are taken for dead by the side that waits, and are.
			p.downAll(0, 1)
			for _, a := range p.on(1) {
				w.Crash(a)
			}
		},
		func(p *parted, _ *simulation.World) { // All are taken for dead by the side that waits, and live.
			p.downAll(0, 1)
		},
	}
	runs := 0
	eachSplit(max(callSplitsStride/4, 1), func(seed uint64, sides []int) {
		if slices.Max(sides) > 1 {
			return // The side that gets no answer is 0, and the one that is kept is 1.
		}
		end, heals := runs%len(ends), runs/len(ends)%2 == 1
		runs++
		n, what := len(sides), fmt.Sprintf("seed %d, sides %v, end %d, heals: %t", seed, sides, end, heals)
		p := keptBeside(t, seed, sides)
		require.NotEmpty(t, p.on(0), what)
		waiting := membershipsim.MachineOf(p.node[p.on(0)[0]]).State().Config()
		given := membershipsim.MachineOf(p.node[address(n)]).State().Config()
		require.Less(t, waiting.Gen, given.Gen, what)
		ends[end](p, p.world)
		if heals {
			p.world.Network().Heal()
		}
		for range 600 {
			require.NoError(t, p.world.Run(100*time.Millisecond), what)
			require.NotContains(t, p.sidesWhere(p.invariants.Hosts), 0, what)
		}
		for _, a := range p.on(0) {
			m := membershipsim.MachineOf(p.world.Node(a))
			require.Equal(t, gossip.StatusNone, statusOf(m.State(), m.Self()), what)
		}
	})
	t.Log(runs, "splits")
	require.Positive(t, runs)
}

func statusOf(s *gossip.State, n gossip.NodeID) gossip.Status {
	if m := s.Member(n); m != nil {
		return m.Status
	}
	return gossip.StatusNone
}

// An operator looks a member up, and commands by what was found up to half a minute later, while
// members crash and are started again at their addresses. A command meets the incarnation that was
// looked up, or changes nothing: nobody is down by a command, and nobody leaves, that was not looked up.
//
// covers F7, F28, F29.
func TestALateCommandMeetsWhoWasLookedUpOrNobody(t *testing.T) {
	const nodes, runs = 5, 40
	met, missed := 0, 0
	for seed := range uint64(runs) {
		w, _ := cluster(simulation.Options{Seed: seed, CodecEvery: 50, RatePPM: 10_000}, nodes)
		requireSettled(t, w, time.Minute)
		r := w.Source(1)
		named := map[gossip.NodeID]bool{}
		for range 2 {
			of := w.Nodes()[1+r.IntN(nodes-1)].ID()
			named[of] = true
			w.After(time.Duration(r.Int64N(int64(30*time.Second))), func() {
				by := w.Nodes()[0]
				if m := membershipsim.MachineOf(by).State(); m.Member(of) != nil {
					met++
				} else if m.ByAddress(of.Address) != nil {
					missed++
				}
				if seed%2 == 0 {
					by.Input(protocol.Service, protocol.Down{Address: of.Address, UID: of.UID})
				} else {
					by.Input(protocol.Service, protocol.Leave{Address: of.Address, UID: of.UID})
				}
			})
			w.After(time.Duration(r.Int64N(int64(15*time.Second))), func() { w.Restart(of.Address) })
		}
		for range 600 {
			require.NoError(t, w.Run(100*time.Millisecond), "seed %d", seed)
			for _, m := range membershipsim.MachineOf(w.Nodes()[0]).State().Members() {
				commanded := m.Status == gossip.Leaving || m.Status == gossip.Exiting || strings.HasPrefix(m.Downed.Why, "command: ")
				require.False(t, commanded && !named[m.Node], "seed %d: %v is %v, and was not looked up", seed, m.Node, m.Status)
			}
		}
		requireSettled(t, w, time.Minute)
	}
	t.Log(met, "commands met who was looked up,", missed, "met nobody, though another one lived at the address")
	require.Positive(t, met)
	require.Greater(t, missed, runs/4)
}
