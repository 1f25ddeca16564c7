// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/membership/internal/wire"
	"github.com/quorate/quorate/transport"
)

// largeAtATime is how many large messages a node holds decoded before its machine has
// taken them. A decoded message may be ten times as large as its bytes.
const largeAtATime = 2

// admission stands between the transport and the membership machine. Any node that can
// connect can send; so admission checks what a sender may send before anything is decoded.
type admission struct {
	// large is held by each goroutine that decodes a large message, until the machine has
	// the message; its size is largeAtATime. Other goroutines wait, which holds up their
	// peers.
	large chan struct{}

	// asked is the node that was last asked to let this node join: its answer is the only
	// large message that a non-member may send.
	asked atomic.Pointer[gossip.NodeID]

	ctx     context.Context //nolint:containedctx // The life of the node.
	limited *slog.Logger
	source  func(gossip.NodeID) transport.Source
	view    func() View

	undecodable atomic.Uint64 // Messages that could not be decoded, or were larger than their sender may send.
	oversize    atomic.Uint64 // Of these, the latter.
}

// sent notes which node a join request went to.
func (i *admission) sent(to gossip.NodeID, message any) {
	if _, ok := message.(protocol.JoinRequest); ok {
		i.asked.Store(&to)
	}
}

// sender returns what this node knows of a peer at present.
func (i *admission) sender(from gossip.NodeID) wire.Sender {
	asked := i.asked.Load()
	return wire.Sender{Member: i.view().State.Member(from) != nil, Asked: asked != nil && *asked == from}
}

// known tells the transport whether a node may send large frames.
func (i *admission) known(from gossip.NodeID) bool { return i.sender(from) != wire.Sender{} }

// receive feeds a membership message to the machine, if its sender may send one of this
// size.
func (i *admission) receive(handle *machine.Handle, from gossip.NodeID, frame []byte) error {
	if len(frame) <= wire.MaxStrangerSize {
		return handle.Receive(i.ctx, from, frame)
	}
	if err := wire.Admit(frame, i.sender(from)); err != nil {
		i.oversize.Add(1)
		return err
	}
	select {
	case i.large <- struct{}{}:
	case <-i.ctx.Done():
		return context.Cause(i.ctx)
	}
	defer func() { <-i.large }()
	return handle.Deliver(i.ctx, from, frame)
}

// receiver returns the handler that takes the messages of a component off the transport.
func (i *admission) receiver(c machine.Component, handle *machine.Handle) transport.Handler {
	feed := func(from gossip.NodeID, frame []byte) error { return handle.Receive(i.ctx, from, frame) }
	if c.Service == protocol.Service {
		feed = func(from gossip.NodeID, frame []byte) error { return i.receive(handle, from, frame) }
	}
	return func(from gossip.NodeID, frame []byte) {
		if err := feed(from, frame); err != nil && !errors.Is(err, machine.ErrClosed) && i.ctx.Err() == nil {
			i.undecodable.Add(1)
			source := i.source(from)
			i.limited.WarnContext(aboutOf("", "dropped", from.String(), c.Name), "message dropped", "from", from.String(),
				"address", source.Address, "certificate", source.Certificate, "component", c.Name, "error", err)
		}
	}
}
