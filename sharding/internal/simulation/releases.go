// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"math/rand/v2"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	numbers "github.com/quorate/quorate/machine/wire"
	"github.com/quorate/quorate/machine/wire/wiretest"
	"github.com/quorate/quorate/membership/membershipsim"
	"github.com/quorate/quorate/sharding/internal/wire"
)

// Three releases in one world, for one seed in three: that of the world, one before, of which the members lack a field
// of membership and one of sharding, and a later one, of which they say something of themselves.

// releases are the releases of the nodes of a world, and the fields of control messages that some of them lack.
type releases struct {
	members membershipsim.Releases
	control map[gossip.Address]numbers.SparedField
}

// drawReleases draws the releases from sources of their own, so that it changes no other draw of the seed.
func drawReleases(seed uint64, nodes []gossip.Address) releases {
	all := releases{membershipsim.DrawReleases(seed, nodes), map[gossip.Address]numbers.SparedField{}}
	source, fields := rand.New(rand.NewPCG(seed, 0x2e1ea5e6)), wire.Spared()
	for _, a := range nodes {
		if all.members[a].Without != "" {
			all.control[a] = fields[source.IntN(len(fields))]
		}
	}
	return all
}

// codec returns the codec of the control messages of a node.
func (r releases) codec(a gossip.Address) machine.Codec {
	if field, before := r.control[a]; before {
		return wiretest.Without(wire.Codec{}, field.Paths...)
	}
	return wire.Codec{}
}

// member returns the configuration of the membership of a node.
func (r releases) member(c membershipsim.Config, a gossip.Address) membershipsim.Config {
	c.Release = r.members[a]
	return c
}
