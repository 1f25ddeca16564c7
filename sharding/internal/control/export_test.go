// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control

// Fences returns how many nodes the control machine remembers as fenced.
func (c *Control) Fences() int { return c.fences.Len() }

// Miscounts reports whether a coordinator's table has other shards in a phase than it counts.
func (c *Control) Miscounts() bool {
	for _, k := range c.kinds {
		if k.coord == nil {
			continue
		}
		t := &k.coord.table
		visits, counted := t.shards.visits, t.phases
		t.recount()
		t.shards.visits = visits
		if t.phases != counted {
			return true
		}
	}
	return false
}

// Work returns how many entries of shards this node has gone over: in the tables of coordinators and the maps of
// regions.
func (c *Control) Work() (n uint64) {
	for _, k := range c.kinds {
		if k.coord != nil {
			n += k.coord.table.shards.visits
		}
		if k.host != nil {
			n += k.host.homes.visits
		}
	}
	return n
}
