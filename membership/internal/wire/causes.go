// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/wire"
)

// rawCauses are the columns of causes. The nodes of all causes lie together, one cause after the other.
type rawCauses struct {
	by        []uint32
	why       []string
	nodeCount []uint32
	node      []uint32
}

func (p *rawCauses) fields(c *wire.Codec) {
	const most = 2 * gossip.MaxMembers
	wire.Uints(c, 1, &p.by, math.MaxUint32, most)
	wire.Texts(c, 2, &p.why, math.MaxInt, most)
	wire.Uints(c, 3, &p.nodeCount, math.MaxUint32, most)
	wire.Uints(c, 4, &p.node, math.MaxUint32, most)
}

// causes encodes why members, and former members with a tombstone, were declared down;
// nil if none was.
func (t *table) causes(r records) *rawCauses {
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
	p := &rawCauses{}
	for _, c := range distinct {
		p.by, p.why = append(p.by, t.place(c.By)), append(p.why, c.Why)
		p.nodeCount = append(p.nodeCount, uint32(len(of[c])))
		p.node = append(p.node, t.places(of[c])...)
	}
	return p
}

// fromCauses sets why the members and tombstones of r were declared down. It refuses a
// cause for an unknown node, and two causes for one node.
func (t nodes) fromCauses(p *rawCauses, r records) error {
	if p == nil {
		return nil
	}
	n := len(p.by)
	if err := columns("causes", n, 2*gossip.MaxMembers, len(p.why), len(p.nodeCount)); err != nil {
		return err
	}
	downed := causesOf(r, n > 0)
	rest := p.node
	for i, place := range p.by {
		by, err := t.at(place)
		if err != nil {
			return err
		}
		var mine []uint32
		if mine, rest, err = split("nodes of a cause", rest, p.nodeCount[i]); err != nil {
			return err
		}
		cause := gossip.Cause{By: by, Why: p.why[i]}
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
