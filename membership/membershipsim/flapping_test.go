// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membershipsim_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership/membershipsim"
	"github.com/quorate/quorate/simulation"
)

// Members that are neither well nor dead: slow links, links that lose much, processes that stand still
// again and again. The first tests say that such a member is removed or kept, those at the end that nobody
// is downed for what all slept through.

// setLinks gives all links of one node of n this quality.
func setLinks(w *simulation.World, of, n int, l simulation.Link) {
	for i := range n {
		w.Network().SetLink(address(i), address(of), l)
		w.Network().SetLink(address(of), address(i), l)
	}
}

// A member whose round trips are longer than the fence can host nothing. It is removed, however steadily it
// answers; one with shorter ones is not accused.
//
// covers F13, I13.
func TestAMemberThatAnswersTooLateToHostIsRemoved(t *testing.T) {
	const n = 5
	for _, milliseconds := range []int{700, 800, 1600, 2000, 2500, 3000, 6000} {
		way := time.Duration(milliseconds) * time.Millisecond
		for seed := range uint64(5) {
			slow := int(seed)
			what := fmt.Sprintf("%v each way of node %d", way, slow)
			p := formed(t, seed, n, membershipsim.Config{})
			w := p.world
			id := w.Node(address(slow)).ID()
			marks := 0
			w.Observe(func(o simulation.Observation) {
				if d, is := o.Event.(machine.Decide); is && d.Topic == "reachability" {
					marks++
				}
			})
			setLinks(w, slow, n, simulation.Link{Min: way, Max: way + 200*time.Millisecond})
			if way < time.Second {
				require.NoError(t, w.Run(time.Minute), what)
				require.Zero(t, marks, what)
				continue
			}
			_, err := w.RunUntil(15*time.Second, func() bool {
				return membershipsim.MachineOf(w.Node(address((slow+1)%n))).State().Member(id) == nil
			})
			require.NoError(t, err, what)
			require.NoError(t, w.Run(5*time.Second), what)
			for i := range n {
				require.True(t, i == slow || p.invariants.Hosts(w.Node(address(i))), what)
			}
		}
	}
}

// Round trips between all nodes that are longer than the fence, or those of so many nodes that nobody has standing, end
// nobody: all go on when that is over.
//
// covers F13.
func TestSlowLinksOfMostNodesEndNobody(t *testing.T) {
	const n = 5
	for _, slow := range []int{3, 5} {
		for _, milliseconds := range []int{1600, 2000, 2400} {
			way := time.Duration(milliseconds) * time.Millisecond
			for seed := range uint64(3) {
				what := fmt.Sprintf("%d nodes, %v each way, seed %d", slow, way, seed)
				p := formed(t, seed, n, membershipsim.Config{})
				w := p.world
				downed := downs(w)
				for i := range slow {
					setLinks(w, i, n, simulation.Link{Min: way, Max: way + 50*time.Millisecond})
				}
				require.NoError(t, w.Run(time.Minute), what)
				w.Network().Heal()
				require.NoError(t, w.Run(15*time.Second), what)
				require.Zero(t, *downed, what)
				require.Len(t, w.Nodes(), n, what)
				for _, node := range w.Nodes() {
					require.True(t, p.invariants.Hosts(node), what)
				}
			}
		}
	}
}

// flapper watches how often a node accuses another one.
type flapper struct {
	world   *simulation.World
	accused map[[2]string][]time.Duration
	third   time.Duration // When first a node accused another one for the third time within a minute.
	downed  time.Duration // When a member was downed after that.
	most    int
}

func watchFlaps(w *simulation.World) *flapper {
	f := &flapper{world: w, accused: map[[2]string][]time.Duration{}}
	w.Observe(func(o simulation.Observation) {
		d, is := o.Event.(machine.Decide)
		switch {
		case is && d.Topic == "downing" && d.Verdict == "down" && f.third > 0 && f.downed == 0:
			f.downed = w.Now()
		case is && d.Topic == "reachability" && d.Verdict == "unreachable":
			key := [2]string{o.Node.ID().String(), d.Subject}
			all := append(f.accused[key], w.Now())
			f.accused[key], f.most = all, max(f.most, len(all))
			if f.third == 0 && len(all) >= 3 && all[len(all)-1]-all[len(all)-3] < time.Minute {
				f.third = w.Now()
			}
		}
	})
	return f
}

// A member with links that lose much, or that are slow by turns, is accused again and again. When one node
// has accused it three times within a minute it is removed within 20 s.
//
// covers F13, I13.
func TestAMemberThatFlapsIsRemovedOrKept(t *testing.T) {
	const n, bad, within = 5, 4, 20 * time.Second
	flapped := 0
	for _, l := range []simulation.Link{
		{Min: time.Second, Max: 2 * time.Second},
		{Min: time.Millisecond, Max: 3 * time.Second},
		{Min: time.Millisecond, Max: 4 * time.Second},
		{Loss: 0.3},
		{Loss: 0.5},
		{Loss: 0.6},
	} {
		for seed := range uint64(10) {
			what := fmt.Sprintf("%+v, seed %d", l, seed)
			p := formed(t, seed, n, membershipsim.Config{})
			f := watchFlaps(p.world)
			setLinks(p.world, bad, n, l)
			require.NoError(t, p.world.Run(2*time.Minute), what)
			require.LessOrEqual(t, f.most, 4, what)
			if f.third > 0 && f.third+within < p.world.Now() {
				flapped++
				require.NotZero(t, f.downed, what)
				require.Less(t, f.downed-f.third, within, what)
			}
		}
	}
	require.Greater(t, flapped, 20)
}

// downs counts the members that are downed in a world.
func downs(w *simulation.World) *int {
	count := new(int)
	w.Observe(func(o simulation.Observation) {
		if d, is := o.Event.(machine.Decide); is && d.Topic == "downing" && d.Verdict == "down" {
			*count++
		}
	})
	return count
}

// A host on which all nodes run stands still, and they go on within some seconds of each other: nobody is downed,
// however long that was, for a node that stood still accuses nobody before it has listened to the others again, and
// nobody decides before that has lasted for stable-after.
//
// covers F24, I12.
func TestNobodyIsDownedForWhatAllSleptThrough(t *testing.T) {
	for _, apart := range []time.Duration{time.Second, 5 * time.Second} {
		for _, n := range []int{2, 3, 5, 12} {
			for _, pause := range []time.Duration{3 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute} {
				what := fmt.Sprintf("%d nodes, %v, %v apart", n, pause, apart)
				p := formed(t, uint64(n), n, membershipsim.Config{})
				w, r := p.world, rand.New(rand.NewPCG(uint64(n), uint64(pause)))
				downed := downs(w)
				for i := range n {
					from := time.Duration(r.Int64N(int64(time.Second)))
					until := pause + time.Duration(r.Int64N(int64(apart)))
					w.After(from, func() { w.Freeze(address(i), until-from) })
				}
				require.NoError(t, w.Run(pause+20*time.Second), what)
				require.Zero(t, *downed, what)
				require.Len(t, w.Nodes(), n, what)
			}
		}
	}
}

// Who runs while most others stand still cannot know that they do, and ends after six seconds: the pause that is
// allowed, and stable-after. The others go on without it.
//
// covers F24.
func TestWhoRunsAloneEnds(t *testing.T) {
	const n, pause = 5, 10 * time.Second
	p := formed(t, 1, n, membershipsim.Config{})
	w := p.world
	for i := range n {
		w.Freeze(address(i), pause)
		if i > 0 {
			w.After(pause, func() { w.Freeze(address(i), pause) })
		}
	}
	require.NoError(t, w.Run(pause+5*time.Second))
	require.Len(t, w.Nodes(), n)
	require.NoError(t, w.Run(pause+5*time.Second))
	require.Len(t, w.Nodes(), n-1)
	require.Nil(t, w.Node(address(0)))
	for _, node := range w.Nodes() {
		require.True(t, p.invariants.Hosts(node))
	}
}

// On a host that has no time for all nodes each of them stands still again and again, at other times than the others.
// One is downed at most, and no side ends.
//
// covers F24.
func TestAStarvedHostEndsOneNodeAtMost(t *testing.T) {
	for _, c := range []struct{ sleepMin, sleepMax, runMin, runMax int }{ // Milliseconds.
		{500, 2000, 200, 2000}, {1000, 3000, 200, 2000}, {2000, 6000, 200, 2000}, {2000, 6000, 1000, 6000}, {3000, 4000, 50, 200},
	} {
		for _, n := range []int{3, 5, 10} {
			what := fmt.Sprintf("%d nodes sleep %d to %d ms and run %d to %d ms", n, c.sleepMin, c.sleepMax, c.runMin, c.runMax)
			for seed := range uint64(3) {
				p := formed(t, seed, n, membershipsim.Config{})
				downed := downs(p.world)
				starve(p.world, addresses(0, n), func(r *rand.Rand) (sleep, run time.Duration) {
					draw := func(least, most int) time.Duration { return time.Duration(least+r.IntN(most-least)) * time.Millisecond }
					return draw(c.sleepMin, c.sleepMax), draw(c.runMin, c.runMax)
				})
				require.NoError(t, p.world.Run(90*time.Second), what)
				require.LessOrEqual(t, *downed, 1, what)
			}
		}
	}
}

// starve has nodes stand still and run by turns.
func starve(w *simulation.World, nodes []gossip.Address, draw func(*rand.Rand) (sleep, run time.Duration)) {
	r := rand.New(rand.NewPCG(w.Seed(), 77))
	var turn func(a gossip.Address)
	turn = func(a gossip.Address) {
		sleep, run := draw(r)
		w.After(run, func() {
			w.Freeze(a, sleep)
			w.After(sleep, func() { turn(a) })
		})
	}
	for _, a := range nodes {
		turn(a)
	}
}
