// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membershipsim

import (
	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/simulation"
)

// Witness is a downing strategy that must be asked, and may let any side survive: the
// side that asks first. It stands for a strategy outside of the cluster that all nodes
// can reach. It is honest: a node outside a side that it has kept is never on a side that
// it keeps later. The zero value is ready for use in one world.
type Witness struct{ out map[gossip.NodeID]bool }

// Downing returns the witness as nodes use it.
func (*Witness) Downing() protocol.Downing {
	d := AskedKeepMajority()
	d.Config.Strategy, d.Class = "witness", downing.Class{}
	return d
}

// Serve has a world ask the witness for downing decisions.
func (v *Witness) Serve(w *simulation.World) {
	v.out = make(map[gossip.NodeID]bool)
	w.Strategies().Answer(protocol.CallDowning, func(_ *simulation.Node, request any) (any, error) {
		return v.Decide(request.(protocol.DowningRequest).View), nil
	})
	w.Strategies().Garble(protocol.CallDowning, GarbleDowning(downing.Class{}))
}

// Against reports whether the witness has kept a side without a given node.
func (v *Witness) Against(n gossip.NodeID) bool { return v.out[n] }

// Decide decides about a view, and remembers it.
func (v *Witness) Decide(view downing.View) downing.Decision {
	side := view.Side()
	if v.out[view.Self] {
		return downing.Decision{Verdict: downing.DownSide, Down: downable(side.Members()), Reason: "another side has the vote"}
	}
	lost := downable(side.Lost())
	if len(lost) == 0 {
		return downing.Decision{Reason: "there is nobody to decide about"}
	}
	for _, m := range view.Members {
		v.out[m.Node] = v.out[m.Node] || !side.Has(m.Node)
	}
	return downing.Decision{Verdict: downing.KeepSide, Down: lost, Reason: "this side has the vote"}
}

// downable returns the members among the given ones that can be downed.
func downable(members []*gossip.Member) []gossip.NodeID {
	var nodes []gossip.NodeID
	for _, m := range members {
		if downing.CanBeDowned(m) {
			nodes = append(nodes, m.Node)
		}
	}
	return nodes
}
