// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membershipsim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/membership/membershipsim"
	"github.com/quorate/quorate/simulation"
)

// stubborn is a cluster whose last node hosts for ever from a time on and hears nothing
// any more, so that the others remove it, and something is done to the world meanwhile.
func stubborn(t *testing.T, nodes int, a *membershipsim.Assumption, meanwhile func(w *simulation.World, last int)) error {
	t.Helper()
	w := simulation.New(simulation.Options{Seed: 5})
	membershipsim.Serve(w)
	invariants := &membershipsim.Invariants{Assumption: a}
	invariants.Watch(w)
	if a != nil {
		a.Watch(w)
	}
	member, last := membershipsim.Component(membershipsim.Config{}), nodes-1
	for i := range nodes {
		n := w.Start(address(i), func(env simulation.Env) []machine.Component {
			c := member(env)
			if i == last {
				c.Machine = &lame{
					Machine: c.Machine.(*protocol.Machine),
					deaf:    func(machine.Input) bool { return from(env, 40*time.Second) },
					says: func(now machine.Now) any {
						if from(env, 39*time.Second) {
							return component.Standing{Until: now.Mono.Add(time.Hour)}
						}
						return nil
					},
				}
			}
			return []machine.Component{c}
		})
		n.Input(protocol.Service, protocol.Join{Seeds: addresses(0, 1)})
	}
	requireSettled(t, w, 30*time.Second)
	meanwhile(w, last)
	return w.Run(time.Minute)
}

func assumption() *membershipsim.Assumption {
	return &membershipsim.Assumption{Voters: 10, Parts: 5, Within: 25 * time.Second}
}

func nothing(*simulation.World, int) {}

// slowly has one link be slow.
func slowly(w *simulation.World, _ int) {
	w.Network().SetLink(address(0), address(1), simulation.Link{Max: 2 * time.Second})
}

// steps cuts the last node off from some of the others, and later from the rest.
func steps(first int) func(w *simulation.World, last int) {
	return func(w *simulation.World, last int) {
		w.At(37*time.Second, func() { w.Network().Split(addresses(0, first), addresses(last, last+1)) })
		w.At(41*time.Second, func() { w.Network().Split(addresses(0, last), addresses(last, last+1)) })
	}
}

// A node that goes on hosting after others took over from it is found at every size,
// where its standing rests on a sample as well.
//
// covers I2, I14.
func TestPlantedNodeThatHostsAlthoughItIsFencedIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		nodes     int
		a         *membershipsim.Assumption
		meanwhile func(*simulation.World, int)
	}{
		"few":                             {5, nil, nothing},
		"few, by steps":                   {10, assumption(), steps(7)},
		"few, slowly":                     {10, assumption(), slowly},
		"many, where nothing is assumed":  {12, nil, slowly},
		"many, at once":                   {12, assumption(), nothing},
		"many, by a split":                {12, assumption(), steps(0)},
		"many, after one link was broken": {12, assumption(), steps(1)},
		"many, long after what was slow": {12, assumption(), func(w *simulation.World, last int) {
			slowly(w, last)
			w.After(time.Second, w.Network().Heal)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorContains(t, stubborn(t, c.nodes, c.a, c.meanwhile), "is fenced, says")
			require.True(t, c.a == nil || c.a.HostedTwice == 0)
		})
	}
}

// Where the standing of a node rests on a sample, and news is slow or the node loses its
// contacts gradually, a node that hosts twice is counted, once.
//
// covers I2.
func TestWhatBreaksTheAssumptionIsCounted(t *testing.T) {
	for name, meanwhile := range map[string]func(*simulation.World, int){
		"slowly": slowly, "by steps": steps(6),
		"lossy": func(w *simulation.World, _ int) {
			w.Network().Lose("nothing", func(_, _ gossip.Address, _ any) bool { return false })
		},
		"asleep": func(w *simulation.World, _ int) { w.At(38*time.Second, func() { w.Freeze(address(3), time.Second) }) },
		"clogged": func(w *simulation.World, _ int) {
			w.At(37*time.Second, func() {
				for i := range 6 {
					w.Network().Clog(address(i))
				}
			})
			w.At(38*time.Second, w.Network().Heal)
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := assumption()
			require.NoError(t, stubborn(t, 12, a, meanwhile))
			require.Equal(t, 1, a.HostedTwice)
		})
	}
}
