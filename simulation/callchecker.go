// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// CallChecker checks how machines call strategies that may block (I34): a component has at
// most one call to a port and key in flight. A call is in flight until it is answered,
// or past its limit by the clock of the node, or given up. The world itself checks
// that a late answer has no effect.
//
// It is added to a world by [CallChecker.Watch].
type CallChecker struct {
	// GivenUp reports whether a node has given up its call to a port, since the answer
	// is no longer needed. It is called after each step of a node with a call in
	// flight. Nil: nodes give no call up.
	GivenUp func(n *Node, port string) bool

	inFlight map[gossip.NodeID]map[string]*inFlight // By component and port.

	// Calls counts the calls that were made.
	Calls int
}

// inFlight is a call that has not been answered.
type inFlight struct {
	port    string
	id      machine.CallID
	until   machine.Instant
	givenUp bool
}

// Watch adds the check to a world.
func (c *CallChecker) Watch(w *World) {
	c.inFlight = make(map[gossip.NodeID]map[string]*inFlight)
	w.Check(c)
	w.Observe(func(o Observation) {
		if err := c.observed(o); err != nil {
			w.Fail(err)
		}
	})
}

func (c *CallChecker) observed(o Observation) error {
	calls := c.inFlight[o.Node.id]
	switch e := o.Event.(type) {
	case Ended:
		delete(c.inFlight, o.Node.id)
	case Answered:
		if p := calls[o.Component+" "+callName(e.Port, e.Key)]; p != nil && p.id == e.Called.ID {
			delete(calls, o.Component+" "+callName(e.Port, e.Key))
		}
	case Asked:
		return c.asked(o, e)
	}
	return nil
}

func (c *CallChecker) asked(o Observation, e Asked) error {
	c.Calls++
	n, key, now := o.Node, o.Component+" "+callName(e.Call.Port, e.Call.Key), o.Node.Now().Mono
	if p := c.inFlight[n.id][key]; p != nil && !p.givenUp && now < p.until {
		return fmt.Errorf("I34: %v makes call %d of %s while call %d is in flight for another %v",
			n.id, e.Call.ID, e.Call.Port, p.id, p.until.Sub(now))
	}
	if e.Busy {
		return nil // The call is answered already.
	}
	if c.inFlight[n.id] == nil {
		c.inFlight[n.id] = make(map[string]*inFlight)
	}
	c.inFlight[n.id][key] = &inFlight{port: e.Call.Port, id: e.Call.ID, until: now.Add(e.Call.Limit)}
	return nil
}

// Stepped records which calls were given up.
func (c *CallChecker) Stepped(_ *World, n *Node) error {
	if c.GivenUp == nil {
		return nil
	}
	for _, p := range c.inFlight[n.id] {
		p.givenUp = p.givenUp || c.GivenUp(n, p.port)
	}
	return nil
}

// Second does nothing.
func (*CallChecker) Second(*World) error { return nil }

var _ Checker = (*CallChecker)(nil)
