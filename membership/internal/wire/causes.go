// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/wire"
	pb "github.com/quorate/quorate/membership/internal/proto/quorate/membership/v1"
)

// causes encodes why members, and former members with a tombstone, were declared down;
// nil if none was.
func (t *table) causes(r records) *pb.Causes {
	var distinct []gossip.Cause
	of := map[gossip.Cause][]gossip.NodeID{}
	note := func(n gossip.NodeID, c gossip.Cause) {
		if c.IsZero() {
			return
		}
		if len(of[c]) == 0 {
			distinct = append(distinct, c)
		}
		of[c] = append(of[c], n)
	}
	for _, m := range r.members {
		note(m.Node, m.Downed)
	}
	for _, s := range r.tombstones {
		note(s.Node, s.Downed)
	}
	if len(distinct) == 0 {
		return nil
	}
	p := &pb.Causes{}
	for _, c := range distinct {
		p.By, p.Why = append(p.By, t.place(c.By)), append(p.Why, c.Why)
		p.NodeCount = append(p.NodeCount, uint32(len(of[c])))
		p.Node = append(p.Node, t.places(of[c])...)
	}
	return p
}

// fromCauses sets why the members and tombstones of r were declared down. It refuses a
// cause for an unknown node, and two causes for one node.
func (t nodes) fromCauses(p *pb.Causes, r records) error {
	n := len(p.GetBy())
	if err := columns("causes", n, 2*gossip.MaxMembers, len(p.GetWhy()), len(p.GetNodeCount())); err != nil {
		return err
	}
	downed := causesOf(r, n > 0)
	rest := p.GetNode()
	for i, place := range p.GetBy() {
		by, err := t.at(place)
		if err != nil {
			return err
		}
		var mine []uint32
		if mine, rest, err = split("nodes of a cause", rest, p.GetNodeCount()[i]); err != nil {
			return err
		}
		cause := gossip.Cause{By: by, Why: p.GetWhy()[i]}
		if len(mine) == 0 || cause.IsZero() {
			return wire.Malformed("cause %d is of nobody", i)
		}
		for _, place := range mine {
			node, err := t.at(place)
			if err != nil {
				return err
			}
			field := downed[node]
			if field == nil || !field.IsZero() {
				return wire.Malformed("a cause of %v, which is not in the message or has one", node)
			}
			*field = cause
		}
	}
	if len(rest) > 0 {
		return wire.Malformed("%d nodes of no cause", len(rest))
	}
	return nil
}

// causesOf returns pointers to the causes of members and tombstones, nothing if some is
// false.
func causesOf(r records, some bool) map[gossip.NodeID]*gossip.Cause {
	if !some {
		return nil
	}
	downed := make(map[gossip.NodeID]*gossip.Cause, len(r.members)+len(r.tombstones))
	for _, m := range r.members {
		downed[m.Node] = &m.Downed
	}
	for i := range r.tombstones {
		downed[r.tombstones[i].Node] = &r.tombstones[i].Downed
	}
	return downed
}
