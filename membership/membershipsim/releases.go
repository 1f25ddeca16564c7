// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membershipsim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	codec "github.com/quorate/quorate/machine/wire"
	"github.com/quorate/quorate/machine/wire/wiretest"
	"github.com/quorate/quorate/membership/internal/wire"
	"github.com/quorate/quorate/simulation"
)

// Release is the release that a node runs, by what tells it from the present one. The zero Release is the present one.
type Release struct {
	// Without is the field that the release before it lacks, by its name in the .proto file: "Heartbeat.shared".
	Without string

	// Later says that the release is a later one: its members say something of themselves in fields that the present
	// release does not know.
	Later bool
}

// Fields returns the names of the fields that a release before the present one may lack.
func Fields() (names []string) {
	for _, f := range wire.Spared() {
		names = append(names, f.Name)
	}
	return names
}

// codec returns the codec of the release. That of a later one differs in nothing that is sent: what its members say of
// themselves is in their records.
func (r Release) codec() machine.Codec {
	if r.Without == "" {
		return wire.Codec{}
	}
	spared := wire.Spared()
	i := slices.IndexFunc(spared, func(f codec.SparedField) bool { return f.Name == r.Without })
	machine.Assert(i >= 0, "the release lacks a field that it may lack", "field", r.Without)
	return wiretest.Without(wire.Codec{}, spared[i].Paths...)
}

// says returns what a node of the release says of itself in fields that the present release does not know.
func (r Release) says(n gossip.NodeID) gossip.Unknown {
	if !r.Later {
		return gossip.Unknown{}
	}
	fields := codec.AppendUint(codec.AppendFixed64(nil, 40, uint64(n.UID)), 39, 300)
	return gossip.Unknown{Version: 1, Fields: string(codec.AppendString(fields, 41, n.Address.Host))}
}

// Releases are the releases that the nodes of a world run, by their addresses; at other ones it is the present release.
type Releases map[gossip.Address]Release

// DrawReleases draws the releases for one world in three: in it a node of four runs a release before the present one,
// and one of four a later one. The draw has a source of its own, so that it changes no other draw of the seed.
func DrawReleases(seed uint64, nodes []gossip.Address) Releases {
	source := rand.New(rand.NewPCG(seed, 0x2e1ea5e5))
	if source.IntN(3) > 0 {
		return nil
	}
	all, fields := Releases{}, Fields()
	for _, a := range nodes {
		switch source.IntN(4) {
		case 0:
			all[a] = Release{Without: fields[source.IntN(len(fields))]}
		case 1:
			all[a] = Release{Later: true}
		}
	}
	return all
}

// Watch writes the releases into the trace of a world, and adds the check that what members of a later release say of
// themselves is in the records that all members have of them: nobody loses it, who does not understand it either.
func (r Releases) Watch(w *simulation.World) {
	if len(r) == 0 {
		return
	}
	for _, a := range slices.SortedFunc(maps.Keys(r), gossip.Address.Compare) {
		w.Log("release %v %+v", a, r[a])
	}
	w.Check(r)
}

// Stepped does nothing: what is lost stays lost.
func (Releases) Stepped(*simulation.World, *simulation.Node) error { return nil }

// Second looks at the records of all nodes.
func (r Releases) Second(w *simulation.World) error {
	said := map[gossip.NodeID]gossip.Unknown{}
	for _, n := range w.Nodes() {
		for _, m := range MachineOf(n).State().Members() {
			want, known := said[m.Node]
			if !known {
				want = r[m.Node.Address].says(m.Node)
				said[m.Node] = want
			}
			if m.Unknown != want {
				return fmt.Errorf("releases: %v has %d/%x of %v, which says %d/%x",
					n.ID(), m.Unknown.Version, m.Unknown.Fields, m.Node, want.Version, want.Fields)
			}
		}
	}
	return nil
}

var _ simulation.Checker = Releases(nil)
