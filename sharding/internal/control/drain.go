// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control

// drain is whether this node is drained: order takes the command and tells the coordinators of all
// kinds, look publishes that nothing is hosted any more. It is not remembered beyond the process.
type drain struct {
	on      bool
	id      uint64 // The number of the last command.
	vacated bool   // The node hosts nothing, and NodeDrained was published.
}

// order takes a command.
func (d *drain) order(c *Control, in Drain) {
	changed := d.on != in.On
	*d = drain{on: in.On, id: in.ID} // Who asks again is told again.
	if !changed {
		return
	}
	verdict := "drained"
	if !in.On {
		verdict = "hosts again"
	}
	c.out.Decide("handoff", c.cfg.Self.String(), verdict, "the program or an operator has asked for it")
	for _, k := range c.kinds {
		if k.host != nil {
			k.host.register()
		}
	}
}

// look publishes once that the drained node hosts nothing.
func (d *drain) look(c *Control) {
	if !d.on || c.ended {
		return
	}
	for _, k := range c.kinds {
		if k.host != nil && k.host.hosting() > 0 {
			d.vacated = false
			return
		}
	}
	if !d.vacated {
		d.vacated = true
		c.out.Publish(NodeDrained{d.id})
	}
}
