// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membershipsim

import (
	"fmt"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/simulation"
)

// Events checks what nodes publish, event by event, as a subscriber sees it:
//
//	I25 from one published state to the next each member goes forwards, joins once,
//	    and disappears only when it was removed
//	I7  of two incarnations at one address at most one is not down, once either has
//	    been up: the second comes up when the first is out. Two members may have let
//	    in one each at the same time (docs/bootstrap.md, "two processes run under one name").
//
// [Events.Watch] adds the check to a world.
type Events struct {
	last map[gossip.NodeID]*gossip.State

	// Checked counts the events that were checked.
	Checked int
}

// Watch adds the check to a world.
func (c *Events) Watch(w *simulation.World) {
	c.last = make(map[gossip.NodeID]*gossip.State)
	w.Observe(func(o simulation.Observation) {
		switch e := o.Event.(type) {
		case simulation.Ended:
			delete(c.last, o.Node.ID())
		case component.Changed:
			w.Fail(c.changed(o.Node.ID(), e.State))
		}
	})
}

func (c *Events) changed(self gossip.NodeID, is *gossip.State) error {
	was := c.last[self]
	if was == is {
		return nil
	}
	c.last[self] = is
	c.Checked++
	if was != nil {
		if err := forwards(self, was, is); err != nil {
			return fmt.Errorf("I25: from one event to the next: %w", err)
		}
		if shared(was.Members(), is.Members()) {
			return nil
		}
	}
	return oneIncarnation(self, is)
}

// oneIncarnation checks I7. Members are sorted by address.
func oneIncarnation(self gossip.NodeID, s *gossip.State) error {
	var other *gossip.Member
	for _, m := range s.Members() {
		if m.Status >= gossip.Down {
			continue
		}
		if other != nil && other.Node.Address == m.Node.Address && (m.UpNumber != 0 || other.UpNumber != 0) {
			return fmt.Errorf("I7: at %v, %v is %v while %v is %v", self, other.Node, other.Status, m.Node, m.Status)
		}
		other = m
	}
	return nil
}
