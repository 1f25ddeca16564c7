// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/transport"
)

// connections hears what the transport says of connections and certificates. It logs that, tells the membership machine
// of refusals, and passes everything on to the program's listeners.
type connections struct {
	self    gossip.NodeID
	log     *slog.Logger
	limited *slog.Logger
	source  func(gossip.NodeID) transport.Source
	machine *machine.Handle // Set before the transport starts.
	unheard atomic.Uint64   // Refusals by peers that found the inbox full.

	mu        sync.Mutex // Guards listeners, which is replaced and never changed.
	listeners []func(transport.Notice)
}

// listen lets f hear of everything from now on.
func (c *connections) listen(f func(transport.Notice)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listeners = append(slices.Clone(c.listeners), f)
}

func (c *connections) all() []func(transport.Notice) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.listeners
}

// noticed handles a notice of the transport.
func (c *connections) noticed(notice transport.Notice) {
	switch e := notice.(type) {
	case transport.PeerUp:
		c.log.Debug("connected", "peer", e.Peer.String(), "lane", e.Lane)
	case transport.PeerDown:
		c.log.Debug("disconnected", "peer", e.Peer.String(), "lane", e.Lane, "lost", e.Lost, "error", e.Err)
	case transport.Certificates:
		if e.Err != nil {
			c.log.Error("changed certificate files cannot be used, those before stay in use", "files", e.Files, "error", e.Err)
		} else {
			c.log.Info("changed certificate files are in use", "files", e.Files)
		}
	case transport.FellBack:
		c.log.Info("messages go over gRPC: the node there takes nothing else, by transport.lane or as an older version", "peer", e.Peer.String())
	case transport.NotAccepted:
		c.limited.ErrorContext(aboutOf("", "accept"), "no connections are accepted: give the process more file descriptors, or look who holds them", "error", e.Err)
	case transport.Unhandled:
		c.unhandled(e)
	case transport.Refused:
		c.refused(e)
	}
	for _, f := range c.all() {
		f(notice)
	}
}

// aboutOf is [machine.About] for the lines about connections, which belong to no call.
func aboutOf(variant string, subject ...string) context.Context {
	return machine.About(context.Background(), variant, subject...)
}

// unhandled logs that a service has no handler, here or at the peer. Any node that can connect can name all services
// there are, from any port, so each host gets only a few lines.
func (c *connections) unhandled(e transport.Unhandled) {
	source, service := c.source(e.Peer), strconv.Itoa(int(e.Service))
	c.limited.WarnContext(aboutOf(service, "unhandled", e.Peer.Address.Host, strconv.FormatBool(e.Inbound)),
		"no handler for service", "peer", e.Peer.String(), "address", source.Address, "certificate", source.Certificate, "service", e.Service, "inbound", e.Inbound)
}

// refused logs that a connection is refused, and tells the machine.
func (c *connections) refused(e transport.Refused) {
	host, _, err := net.SplitHostPort(e.Address)
	if err != nil {
		host = e.Address
	}
	c.limited.Log(aboutOf(e.Err.Detail, "connection", host, e.Err.Reason.String(), strconv.FormatBool(e.Inbound)),
		connectionLevel(e.Err.Reason == transport.ReasonIncarnation), "connection refused", "peer", e.Address, "certificate", e.Certificate, "inbound", e.Inbound, "error", e.Err)
	switch {
	case !e.Inbound:
		c.refusedByPeer(e)
	case e.Err.Reason == transport.ReasonIncarnation && e.Node.Address != c.self.Address && e.Node.Address.Validate() == nil:
		_ = c.machine.Post(protocol.WronglyDialled{By: e.Node}) // The peer dials again.
	}
}

// refusedByPeer tells the machine that a peer refuses this node. The peer is the node that was dialled.
func (c *connections) refusedByPeer(e transport.Refused) {
	in := protocol.PeerRefused{
		Peer: e.Node, Removed: e.Err.Reason == transport.ReasonBlocked, Reason: e.Err.Error(),
		Final: e.Err.Reason == transport.ReasonClusterName || e.Err.Reason == transport.ReasonProtocol,
	}
	if in.Peer.IsZero() {
		in.Peer.Address, _ = gossip.ParseAddress(e.Address) // A zero address is shown as it is.
	}
	if e.Err.Reason == transport.ReasonIncarnation && e.Err.Peer.Address != in.Peer.Address {
		in.As = e.Err.Peer.Address
	}
	if err := c.machine.Post(in); errors.Is(err, machine.ErrFull) {
		c.unheard.Add(1) // The peer refuses again at the next attempt.
	}
}
