// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membershipsim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/membership/membershipsim"
	"github.com/quorate/quorate/simulation"
)

// startIn starts the i-th node in a zone. It joins who is there of the first three.
func (p *parted) startIn(zone string, i int) {
	config := p.config
	config.Zone = zone
	component := membershipsim.Component(config)
	var seeds []gossip.Address
	for _, a := range addresses(0, max(min(i, 3), 1)) {
		if i == 0 || p.world.Node(a) != nil {
			seeds = append(seeds, a)
		}
	}
	p.node[address(i)] = p.world.Start(address(i), func(env simulation.Env) []machine.Component {
		return []machine.Component{component(env)}
	})
	p.node[address(i)].Input(protocol.Service, protocol.Join{Seeds: seeds})
}

// The link between two zones is cut while more nodes start in one of them. Zones are
// labels, so no two sides host at the same time, and never do two survive. Before the
// others have heard of those who start, the side with a majority of the five goes on.
//
// covers F9, I1, I2, I13.
func TestCutBetweenZonesWhileNodesStartLeavesOneSide(t *testing.T) {
	const starters = 3
	survived := 0
	for east := 1; east <= 4; east++ { // Of five nodes.
		for i, lead := range editLeads() {
			for _, grows := range []string{"east", "west"} {
				what := fmt.Sprintf("%d nodes east, %d more start %s, %v before the cut", east, starters, grows, lead)
				alive := zonesCut(t, uint64(10*east+i), east, starters, grows, lead, what)
				require.LessOrEqual(t, len(alive), 1, what)
				if lead == 0 {
					require.Equal(t, []int{map[bool]int{true: 0, false: 1}[east > 2]}, alive, what)
				}
				survived += len(alive)
			}
		}
	}
	t.Log("a side goes on in", survived, "cuts")
}

// zonesCut returns the sides that survive a cut between two zones of five nodes.
func zonesCut(t *testing.T, seed uint64, east, starters int, grows string, lead time.Duration, what string) []int {
	t.Helper()
	const n = 5
	p := world(seed, membershipsim.Config{})
	sides, zones := map[string]int{"east": 0, "west": 1}, map[string][]int{}
	for i := range n {
		zone := "west"
		if i < east {
			zone = "east"
		}
		zones[zone] = append(zones[zone], i)
		p.side[address(i)] = sides[zone]
		p.startIn(zone, i)
		_, err := p.world.RunUntil(time.Minute, func() bool { return membershipsim.Settled(p.world) == nil })
		require.NoError(t, err, "%v: %s", membershipsim.Settled(p.world), what)
	}
	p.sides = len(sides)
	p.settle(t)
	first := zones[grows][0]
	for i := n; i < n+starters; i++ {
		p.side[address(i)] = sides[grows]
		p.startIn(grows, i)
		p.node[address(i)].Input(protocol.Service, protocol.Join{Seeds: []gossip.Address{address(first)}})
	}
	require.NoError(t, p.world.Run(lead), what)
	p.cut()
	require.NoError(t, p.world.Run(40*time.Second), what)
	alive := p.sidesWhere(survives)
	require.Equal(t, alive, p.sidesWhere(p.invariants.Hosts), "who survives hosts: %s", what)
	return alive
}
