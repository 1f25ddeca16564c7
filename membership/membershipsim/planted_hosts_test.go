// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membershipsim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/membership/membershipsim"
	"github.com/quorate/quorate/simulation"
)

// stubborn is a cluster whose last node hosts for ever from a time on and hears nothing
// any more, so that the others remove it, and something is done to the world meanwhile.
func stubborn(t *testing.T, nodes int, meanwhile func(w *simulation.World, last int)) error {
	t.Helper()
	w := simulation.New(simulation.Options{Seed: 5})
	membershipsim.Serve(w)
	invariants := &membershipsim.Invariants{}
	invariants.Watch(w)
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

// A node that goes on hosting after others took over from it is found at every size, and
// whatever happens to the network meanwhile.
//
// covers I2, I14.
func TestPlantedNodeThatHostsAlthoughItIsFencedIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		nodes     int
		meanwhile func(*simulation.World, int)
	}{
		"few": {5, nothing}, "few, by steps": {10, steps(7)}, "few, slowly": {10, slowly},
		"many": {12, nothing}, "many, by steps": {12, steps(6)}, "many, slowly": {12, slowly},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorContains(t, stubborn(t, c.nodes, c.meanwhile), "is fenced, says")
		})
	}
}
