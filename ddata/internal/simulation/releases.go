// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"math/rand/v2"

	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/internal/wire"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	numbers "github.com/quorate/quorate/machine/wire"
	"github.com/quorate/quorate/machine/wire/wiretest"
)

// Two releases in one group: in one world in three, some replicas are of a release that lacks a field. Messages in a
// world are values and are not encoded, but for those from and to such a replica.

// releases are the fields that the replicas at some addresses lack.
type releases map[gossip.Address]numbers.SparedField

// drawReleases draws fields for one seed in three, and for one in four of its addresses. It has a source of randomness
// of its own, so that all other draws of the seed stay as they are.
func drawReleases(seed uint64, addresses int) releases {
	source := rand.New(rand.NewPCG(seed, 0x2e1ea5e5))
	if source.IntN(3) > 0 {
		return nil
	}
	all, fields := releases{}, wire.Spared()
	for i := range addresses {
		if source.IntN(4) == 0 {
			all[Address(i)] = fields[source.IntN(len(fields))]
		}
	}
	return all
}

// codec returns the codec of the replica at an address; nil for the present release, whose messages are not encoded.
func (r releases) codec(a gossip.Address, of ...crdt.Type) machine.Codec {
	field, before := r[a]
	if !before {
		return nil
	}
	return wiretest.Without(wire.Codec{Types: types(of)}, field.Paths...)
}

// types are the types that the clients use.
type types []crdt.Type

// Type implements [wire.Types].
func (all types) Type(name string) (crdt.Type, bool) {
	for _, t := range all {
		if t.Name() == name {
			return t, true
		}
	}
	return nil, false
}
