// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membershipsim_test

import (
	"fmt"
	"os"
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

// mishap is what happens to the calls of a downing strategy.
type mishap struct {
	name  string
	calls simulation.Calls
}

// mishaps are the mishaps of one sort each, and a mixture.
func mishaps() []mishap {
	return []mishap{
		{"mixture", simulation.Calls{
			Hang: 0.12, Fail: 0.12, Garbage: 0.2, Crash: 0.12, Late: 0.2, Stuck: 0.12,
			Restart: time.Second, RestartMax: 4 * time.Second, StuckMax: 4 * time.Second,
		}},
		{"garbage", simulation.Calls{Garbage: 1}},
		{"late", simulation.Calls{Late: 1}},
		{"crash", simulation.Calls{Crash: 1, Restart: 4 * time.Second, RestartMax: 8 * time.Second}},
		{"hang", simulation.Calls{Hang: 1}},
		{"fail", simulation.Calls{Fail: 1}},
		{"stuck", simulation.Calls{Stuck: 1, StuckMax: 6 * time.Second}},
		{"slow", simulation.Calls{Min: 10 * time.Second, Max: 10 * time.Second}},
		{"slow but in time", simulation.Calls{Min: 100 * time.Millisecond, Max: 4900 * time.Millisecond}},
	}
}

// eachSplit calls try for splits of 3 to 7 nodes into 2 and 3 sides: for each of
// them with QUORATE_SPLITS=all, else for one in stride. The number of a split is its
// seed.
func eachSplit(stride int, try func(seed uint64, sides []int)) {
	if _, all := os.LookupEnv("QUORATE_SPLITS"); all {
		stride = 1
	}
	number := 0
	for n := 3; n <= 7; n++ {
		for _, sides := range slices.Concat(partitions(n, 2), partitions(n, 3)) {
			if number++; number%stride == 0 {
				try(uint64(number), sides)
			}
		}
	}
}

// splitWith splits a cluster whose downing strategy has mishaps from then on.
func splitWith(t *testing.T, seed uint64, sides []int, d protocol.Downing, calls func(p *parted)) (*parted, int) {
	t.Helper()
	p := formed(t, seed, len(sides), membershipsim.Config{Downing: d})
	p.deal(sides)
	winner := p.winner(len(sides))
	calls(p)
	p.cut()
	return p, winner
}

// countsLateAnswers checks that membership counts each answer that comes too late.
func countsLateAnswers(w *simulation.World) {
	w.Observe(func(o simulation.Observation) {
		if a, ok := o.Event.(simulation.Answered); ok && a.Late {
			m := membershipsim.MachineOf(o.Node)
			before := m.Refusals(protocol.RefusedUnsolicited)
			w.After(0, func() {
				if m.Refusals(protocol.RefusedUnsolicited) != before+1 {
					w.Fail(fmt.Errorf("I34: %v has not counted the late answer %d", o.Node.ID(), a.Called.ID))
				}
			})
		}
	})
}

// A strategy that lets nothing but majorities survive may crash, hang, be late or
// answer whatever it likes: keep-majority decides in its place, so that the side
// with the majority survives whole, and nobody else does. The strategy itself
// decides likewise, so that it does not matter which of the two a side has.
//
// covers F9, F10, F40, F56, F60, I1, I2, I4, I13, I34.
func TestMajoritySurvivesWhateverItsStrategyDoes(t *testing.T) {
	runs, fates := 0, map[string]int{}
	eachSplit(callSplitsStride, func(seed uint64, sides []int) {
		m := mishaps()[runs%len(mishaps())]
		runs++
		p, winner := splitWith(t, seed, sides, membershipsim.AskedKeepMajority(), func(p *parted) { p.world.Strategies().Set(m.calls) })
		what := fmt.Sprintf("seed %d, sides %v, %s", seed, sides, m.name)
		require.NoError(t, p.world.Run(40*time.Second), what)
		want := []int{winner}
		if winner < 0 {
			want = nil
		}
		require.Equal(t, want, p.sidesWhere(survives), what)
		require.Equal(t, want, p.sidesWhere(p.invariants.Hosts), what)
		for i, side := range sides {
			require.Equal(t, side == winner, p.world.Node(address(i)) != nil, what)
		}
		for _, f := range p.world.Strategies().Outcomes() {
			fates[f.Name] += f.Times
		}
	})
	t.Log(runs, "splits", fates)
	for _, m := range []string{"answered", "garbage", "late", "crash", "hang", "fail", "stuck", "slow"} {
		require.NotZero(t, fates[m], m)
	}
}

// votedFor reports whether a side was given the vote, be it that it never heard of it.
func votedFor(v *membershipsim.Witness, side int, p *parted) bool {
	given := false
	for a, of := range p.side {
		if n := p.node[a]; n != nil && v.Against(n.ID()) {
			given = true
			if of == side {
				return false
			}
		}
	}
	return given
}

// A witness may let any side survive, so that nothing may decide in its place. While it
// cannot be asked every side waits; when it can be again, before sides give up, one side
// survives, whichever asks first.
//
// covers F9, F10, F40, F56, I1, I2, I4, I34.
func TestOneSideSurvivesOnceTheWitnessAnswers(t *testing.T) {
	runs, minorities := 0, 0
	eachSplit(callSplitsStride, func(seed uint64, sides []int) {
		m := mishaps()[runs%len(mishaps())]
		runs++
		v := &membershipsim.Witness{}
		p, winner := splitWith(t, seed, sides, v.Downing(), func(p *parted) {
			v.Serve(p.world)
			p.world.Strategies().Set(m.calls)
		})
		p.world.After(18*time.Second, func() { p.world.Strategies().Set(simulation.Calls{}) })
		what := fmt.Sprintf("seed %d, sides %v, %s", seed, sides, m.name)
		require.NoError(t, p.world.Run(60*time.Second), what)
		alive := p.sidesWhere(survives)
		require.Len(t, alive, 1, what)
		require.Equal(t, alive, p.sidesWhere(p.invariants.Hosts), what)
		if alive[0] != winner {
			minorities++
		}
	})
	require.NotZero(t, minorities, "a minority survived, too")
	t.Log(runs, "splits, of which", minorities, "were survived by a side without a majority")
}

// While somebody joins, leaves or is downed as the cluster is cut, it may be that
// nobody survives, but never do two sides, with either class of strategy and
// whatever becomes of its calls; and who survives hosts.
//
// covers F9, F14, F28, F40, F56, I1, I2, I4, I34.
func TestNoTwoSidesSurviveAnEditWithStrangeStrategies(t *testing.T) {
	runs, survived := 0, 0
	leads := editLeads()
	eachSplit(callSplitsStride, func(seed uint64, sides []int) {
		v, n := &membershipsim.Witness{}, len(sides)
		edit, lead := editLeave+runs%(edits-1), leads[runs/3%len(leads)]
		d := membershipsim.AskedKeepMajority()
		if runs/2%2 == 0 {
			d = v.Downing()
		}
		runs++
		what := fmt.Sprintf("seed %d, sides %v, edit %d, %v before the cut, %s", seed, sides, edit, lead, d.Config.Strategy)
		p := formed(t, seed, n, membershipsim.Config{Downing: d})
		p.deal(sides)
		if !d.Class.MajorityOnly {
			v.Serve(p.world)
		}
		p.world.Strategies().Set(mishaps()[0].calls)
		p.begin(edit, n, int(seed)%n)
		require.NoError(t, p.world.Run(lead), what)
		p.cut()
		survived += len(p.survivors(t, 80*time.Second, what))
	})
	t.Log(runs, "splits, of which", survived, "left a side that goes on")
	require.Positive(t, survived)
}

// The same with the strategies that decide at once, without asking anybody, and may let a
// minority survive: no set of voters has to be common to the sides. In every other run one
// member in two has the role that may count.
//
// covers F9, F10, F14, F28, I1, I2, I4.
func TestNoTwoSidesSurviveAnEditWhereAMinorityMaySurvive(t *testing.T) {
	runs, survived, minorities := 0, 0, 0
	leads := editLeads()
	eachSplit(callSplitsStride, func(seed uint64, sides []int) {
		n := len(sides)
		strategies := membershipsim.Minorities(n)
		d, edit, lead := membershipsim.Decided(strategies[runs%len(strategies)]), runs/2%edits, leads[runs/3%len(leads)]
		runs++
		what := fmt.Sprintf("seed %d, sides %v, edit %d, %v before the cut, strategy %d", seed, sides, edit, lead, (runs-1)%len(strategies))
		p := world(seed, membershipsim.Config{Downing: d})
		p.coreEach = 1 + int(seed)%2
		for i := range n {
			p.start(i)
		}
		p.settle(t)
		p.deal(sides)
		winner := p.winner(n)
		p.begin(edit, n, int(seed)%n)
		require.NoError(t, p.world.Run(lead), what)
		p.cut()
		alive := p.survivors(t, 60*time.Second, what)
		survived += len(alive)
		if len(alive) > 0 && alive[0] != winner {
			minorities++
		}
	})
	t.Log(runs, "splits, of which", survived, "left a side that goes on,", minorities, "of them without a majority")
	require.Positive(t, minorities)
}

// A node that has joined, and is cut off before the others have heard of it, is never
// given the vote: a witness cannot have ruled out whom it was not told of.
//
// covers F14, F28, I2, I4.
func TestSideWithoutAVoterIsNotKept(t *testing.T) {
	for seed := range uint64(8) {
		v := &membershipsim.Witness{}
		p := formed(t, seed, 3, membershipsim.Config{Downing: v.Downing()})
		v.Serve(p.world)
		p.world.Strategies().Set(simulation.Calls{Min: 4 * time.Second, Max: 4 * time.Second})
		p.world.Strategies().SetAt(address(3), simulation.Calls{}) // It would be the first to be answered.
		p.world.Network().Split([]gossip.Address{address(0), address(3)}, []gossip.Address{address(1), address(2)})
		p.sides = 3
		p.side = map[gossip.Address]int{address(0): 0, address(1): 1, address(2): 1, address(3): 2}
		p.start(3)
		require.NoError(t, p.world.Run(time.Second))
		joiner := p.world.Node(address(3))
		require.NotNil(t, membershipsim.MachineOf(joiner).State().Member(joiner.ID()), "it has joined")
		p.world.Network().Split([]gossip.Address{address(0), address(1), address(2)}, []gossip.Address{address(3)})
		require.NoError(t, p.world.Run(80*time.Second))
		hosts := p.sidesWhere(p.invariants.Hosts)
		require.Len(t, hosts, 1, "seed %d", seed)
		require.NotEqual(t, 2, hosts[0], "seed %d", seed)
		require.False(t, v.Against(p.node[address(hosts[0])].ID()), "seed %d", seed)
	}
}

// A side whose strategy never answers waits for down-own-side-after, and goes. It
// does not matter that it has the majority, or that the other side was given the vote.
//
// covers F56, I2, I4, I34.
func TestSideWithoutAnAnswerWaitsAndGoes(t *testing.T) {
	runs := 0
	patience := downing.Default().DownOwnSideAfter
	eachSplit(2*callSplitsStride, func(seed uint64, sides []int) {
		m := mishaps()[1+runs%(len(mishaps())-2)]
		silent := runs % (slices.Max(sides) + 2) // One side, or all.
		runs++
		v := &membershipsim.Witness{}
		p, _ := splitWith(t, seed, sides, v.Downing(), func(p *parted) {
			v.Serve(p.world)
			for i, side := range sides {
				if silent > slices.Max(sides) || side == silent {
					p.world.Strategies().SetAt(address(i), m.calls)
				}
			}
		})
		what := fmt.Sprintf("seed %d, sides %v, %s, silent %d", seed, sides, m.name, silent)
		require.NoError(t, p.world.Run(patience), what)
		for i, side := range sides {
			if silent > slices.Max(sides) || side == silent {
				n := p.world.Node(address(i))
				require.NotNil(t, n, what)
				require.True(t, survives(n), "it waits: %s", what)
				require.False(t, p.invariants.Hosts(n), "it hosts nothing meanwhile: %s", what)
			}
		}
		require.NoError(t, p.world.Run(patience), what)
		alive := p.sidesWhere(survives)
		if silent > slices.Max(sides) || votedFor(v, silent, p) {
			require.Empty(t, alive, what)
			return
		}
		require.Len(t, alive, 1, what)
		require.NotEqual(t, silent, alive[0], what)
	})
	t.Log(runs, "splits")
}

// keptBeside splits a cluster in two: side 0 gets no answer, and the witness keeps side 1, which
// lets a newcomer in, the node after the last.
func keptBeside(t *testing.T, seed uint64, sides []int) *parted {
	t.Helper()
	v, newcomer := &membershipsim.Witness{}, address(len(sides))
	p, _ := splitWith(t, seed, sides, v.Downing(), func(p *parted) {
		v.Serve(p.world)
		for i, side := range sides {
			if side == 0 {
				p.world.Strategies().SetAt(address(i), simulation.Calls{Hang: 1})
			}
		}
	})
	what := fmt.Sprintf("seed %d, sides %v", seed, sides)
	require.NoError(t, p.world.Run(20*time.Second), what)
	require.Equal(t, []int{1}, p.sidesWhere(p.invariants.Hosts), what)
	p.side[newcomer] = 1
	p.cut()
	p.startAt(newcomer, p.on(1))
	require.NoError(t, p.world.Run(5*time.Second), what)
	require.True(t, p.invariants.Hosts(p.node[newcomer]), what)
	return p
}

// A side gets no answer, and the witness keeps another one, which lets a newcomer in.
// Then the earlier members of the kept side are started again, one after the other, and
// find only the side that was not kept. Whether the newcomer goes on without them or not,
// that side does not go on with them.
//
// covers F14, F28, I1, I2, I4.
func TestWhoComesAgainOnASideThatWasNotKeptIsNotLetIn(t *testing.T) {
	runs, alone := 0, 0
	eachSplit(callSplitsStride, func(seed uint64, sides []int) {
		if slices.Max(sides) > 1 {
			return // The side that gets no answer is 0, and what others keep is 1.
		}
		runs++
		n, what := len(sides), fmt.Sprintf("seed %d, sides %v", seed, sides)
		p := keptBeside(t, seed, sides)
		for i, side := range sides {
			if side == 1 {
				p.side[address(i)] = 0
				p.world.Crash(address(i))
				p.startAt(address(i), p.on(0))
			}
		}
		p.world.Network().Heal()
		p.cut()
		for range 600 {
			require.NoError(t, p.world.Run(100*time.Millisecond), what)
			require.NotContains(t, p.sidesWhere(p.invariants.Hosts), 0, what)
		}
		if p.invariants.Hosts(p.node[address(n)]) {
			alone++
		}
	})
	t.Log(runs, "splits, of which", alone, "left the newcomer alone with the word of the witness")
	require.Equal(t, runs, alone)
}
