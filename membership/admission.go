// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/membership/internal/wire"
	"github.com/quorate/quorate/transport"
)

// maxLarge is how many large messages a node holds decoded before its machine has
// taken them. A decoded message may be ten times as large as its bytes.
const maxLarge = 2

// admission admits messages of the transport to the membership machine. Any node that can
// connect can send; so admission checks what a sender may send before anything is decoded.
type admission struct {
	// large is held by each goroutine that decodes a large message, until the machine has
	// the message; its size is maxLarge. Other goroutines wait, which holds up their
	// peers.
	large chan struct{}

	// asked is the node that was last asked to let this node join: its answer is the only
	// large message that a non-member may send.
	asked atomic.Pointer[gossip.NodeID]
}

func newAdmission() admission { return admission{large: make(chan struct{}, maxLarge)} }

// sent notes which node a join request went to.
func (i *admission) sent(to gossip.NodeID, message any) {
	if _, ok := message.(protocol.JoinRequest); ok {
		i.asked.Store(&to)
	}
}

// sender returns what this node knows of a peer at present.
func (n *Node) sender(from gossip.NodeID) wire.Sender {
	asked := n.admission.asked.Load()
	return wire.Sender{Member: n.View().State.Member(from) != nil, Asked: asked != nil && *asked == from}
}

// known tells the transport whether a node may send large frames.
func (n *Node) known(from gossip.NodeID) bool { return n.sender(from) != wire.Sender{} }

// receive feeds a membership message to the machine, if its sender may send one of this
// size.
func (n *Node) receive(handle *machine.Handle, from gossip.NodeID, frame []byte) error {
	if len(frame) <= wire.StrangerSizeMax {
		return handle.Receive(n.ctx, from, frame)
	}
	if err := wire.Admit(frame, n.sender(from)); err != nil {
		n.counters.oversize.Add(1)
		return err
	}
	select {
	case n.admission.large <- struct{}{}:
	case <-n.ctx.Done():
		return context.Cause(n.ctx)
	}
	defer func() { <-n.admission.large }()
	return handle.Deliver(n.ctx, from, frame)
}

// receiver returns the handler that takes the messages of a component off the transport.
func (n *Node) receiver(c machine.Component, handle *machine.Handle) transport.Handler {
	feed := func(from gossip.NodeID, frame []byte) error { return handle.Receive(n.ctx, from, frame) }
	if c.Service == protocol.Service {
		feed = func(from gossip.NodeID, frame []byte) error { return n.receive(handle, from, frame) }
	}
	return func(from gossip.NodeID, frame []byte) {
		if err := feed(from, frame); err != nil && !errors.Is(err, machine.ErrClosed) && n.ctx.Err() == nil {
			n.counters.undecodable.Add(1)
			source := n.Source(from)
			n.limited.WarnContext(machine.About(n.ctx, "", "dropped", from.String(), c.Name), "message dropped", "from", from.String(),
				"address", source.Address, "certificate", source.Certificate, "component", c.Name, "error", err)
		}
	}
}
