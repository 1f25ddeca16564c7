// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/membership"
)

// The part that a gateway has in the leave of its node: a component of the node, whose machine is [leaveMachine], holds
// the node until no client has requests there any more; [Server.depart] carries out what the machine wants.

// leaveMachine tells the gateway to end its exchanges when the node leaves, and lets the node go when that is done.
type leaveMachine struct {
	name          string
	leaving, done bool
}

type (
	// endExchanges is the effect that has the gateway end its exchanges.
	endExchanges struct{}
	// exchangesEnded is the input that says that they are over.
	exchangesEnded struct{}
)

// Step implements [machine.Machine].
func (d *leaveMachine) Step(_ machine.Now, in machine.Input, out *machine.Outbox) {
	before := d.leaving && d.done
	switch in := in.(type) {
	case machine.Started:
		out.Publish(component.Busy{Component: d.name})
	case component.Changed:
		if me := in.State.Member(in.Self); me != nil && me.Status >= gossip.Leaving && !d.leaving {
			d.leaving = true
			out.Add(endExchanges{})
		}
	case exchangesEnded:
		d.done = true
	}
	if d.leaving && d.done && !before {
		out.Publish(component.Drained{Component: d.name})
	}
}

// attach has the node wait for the clients when it leaves. A node that has ended waits for nobody.
func (s *Server) attach() error {
	node, leaving := s.host.Sharding().Node(), make(chan struct{})
	for i := 1; ; i++ {
		name := "gateway"
		if i > 1 { // Other gateways of the node have the names before, also those that were closed.
			name = fmt.Sprintf("gateway-%d", i)
		}
		handle, err := node.Attach(membership.Attachment{
			Component: machine.Component{Name: name, Machine: &leaveMachine{name: name}},
			Other:     func(machine.Effect) { close(leaving) }, // The machine wants it once.
		})
		switch {
		case errors.Is(err, machine.ErrTaken):
			continue
		case errors.Is(err, membership.ErrClosed):
			return nil
		case err != nil:
			return fmt.Errorf("gateway: %w", err)
		}
		// Owned by the server: ends when its exchanges have, and Close waits for it.
		s.running.Go(func() { s.depart(leaving, handle) })
		return nil
	}
}

// depart ends the exchanges when the node leaves, and tells the node when they are over, also when Close has ended
// them.
func (s *Server) depart(leaving <-chan struct{}, handle *machine.Handle) {
	select {
	case <-leaving:
		s.log.Info("the node leaves, and the gateway sends its clients to others")
	case <-s.going:
	}
	s.end()
	_ = handle.PostWait(context.Background(), exchangesEnded{}) // An error says that the node has ended.
}
