// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/internal/wire"
)

// The handshake from both sides. The opener dials, sends its Hello and checks the
// Welcome or notices the refusal (exchange); the acceptor decides whether it admits a
// Hello, first by what the Hello says (admit), then by who sends it (admitPeer).

// dial opens a pipe, and counts a refusal by the dialler itself.
func (e *Endpoint) dial(ctx context.Context, to gossip.Address, k transport.LaneClass) (Pipe, error) {
	pipe, err := e.dialer.Dial(ctx, to, k)
	if refused, ok := errors.AsType[*transport.RefusedError](err); ok {
		e.Refuse(to.String(), refused.Peer, refused, false)
	}
	return pipe, err
}

// hello returns a Hello of this node without session and token.
func (e *Endpoint) hello(to gossip.NodeID, k transport.LaneClass) wire.Hello {
	return wire.Hello{
		Cluster:   e.id.Cluster,
		ClusterID: e.id.ClusterID(),
		Protocol:  e.id.Protocol,
		From:      e.id.Node,
		To:        to,
		Lane:      k,
		MaxFrame:  uint64(e.cfg.MaxFrameBytes),
	}
}

// exchange sends a Hello, waits for the Welcome and checks that the addressed node has
// sent it.
func (e *Endpoint) exchange(pipe Pipe, to gossip.Address, h wire.Hello) (*wire.Welcome, error) {
	b := e.pool.Get()
	b.B = wire.AppendHello(b.B, h)
	// Recv fails when Send has failed, and may return a refusal that tells more.
	_ = pipe.Send(b)
	var in Incoming
	if err := pipe.Recv(&in); err != nil {
		return nil, fmt.Errorf("transport: handshake with %s: %w", to, err)
	}
	d, err := wire.ParseDownstream(in.Bytes)
	in.Free()
	switch {
	case err != nil:
		return nil, e.refuseAnswer(to, h.To, err.Error())
	case d.Refusal != nil:
		return nil, e.refusedBy(h.To, d.Refusal)
	case d.Welcome == nil:
		return nil, e.refuseAnswer(to, h.To, "no welcome where one is due")
	}
	return d.Welcome, e.checkWelcome(d.Welcome, h)
}

// refusedBy counts and notices that a dialled node refuses this node. The Peer of the
// refusal becomes the node that was dialled, with a uid only if one was dialled: the
// name that the answering side gives itself proves nothing, and is only shown to
// people.
func (e *Endpoint) refusedBy(meant gossip.NodeID, r *transport.RefusedError) *transport.RefusedError {
	if claimed := r.Peer; !claimed.IsZero() && claimed != meant {
		r.Detail = fmt.Sprintf("%s; it calls itself %s", r.Detail, claimed)
	}
	r.Peer = meant
	e.Refuse(meant.Address.String(), meant, r, false)
	return r
}

// checkWelcome makes sure that the Welcome is from the node that was dialled.
func (e *Endpoint) checkWelcome(w *wire.Welcome, h wire.Hello) error {
	var r *transport.RefusedError
	switch {
	case w.Node.Address != h.To.Address || h.To.UID != 0 && w.Node.UID != h.To.UID:
		r = &transport.RefusedError{
			Reason: transport.ReasonIncarnation, Peer: h.To,
			Detail: fmt.Sprintf("dialled %s and found %s", h.To, w.Node),
		}
	case w.Protocol < h.Protocol.Min || w.Protocol > h.Protocol.Max:
		r = &transport.RefusedError{
			Reason: transport.ReasonProtocol, Peer: h.To,
			Detail: fmt.Sprintf("answered with version %d, asked for %d to %d", w.Protocol, h.Protocol.Min, h.Protocol.Max),
		}
	default:
		return nil
	}
	e.Refuse(h.To.Address.String(), h.To, r, false)
	return r
}

// refuseAnswer refuses a peer whose answer makes no sense.
func (e *Endpoint) refuseAnswer(to gossip.Address, peer gossip.NodeID, detail string) error {
	r := &transport.RefusedError{Reason: transport.ReasonMalformed, Peer: peer, Detail: detail}
	e.Refuse(to.String(), peer, r, false)
	return r
}

// admit decides whether a caller may open a connection, and returns the
// protocol version that both sides speak.
func (e *Endpoint) admit(h *wire.Hello, c *Caller) (uint16, *transport.RefusedError) {
	refuse := func(r transport.Reason, format string, args ...any) *transport.RefusedError {
		return &transport.RefusedError{Reason: r, Peer: h.From, Detail: fmt.Sprintf(format, args...)}
	}
	mine, theirs := e.id.Protocol, h.Protocol
	version := min(mine.Max, theirs.Max)
	own := e.id.ClusterID()
	none := gossip.ClusterID{}
	switch self := e.id.Node; {
	case h.Cluster != e.id.Cluster:
		return 0, refuse(transport.ReasonClusterName,
			"%s is of cluster %q, %s of cluster %q: give both the same name, or take the address out of the seed nodes",
			h.From, h.Cluster, self, e.id.Cluster)
	case own != none && h.ClusterID != none && own.Compare(h.ClusterID) != 0 && h.Lane != machine.LaneControl:
		// On the control lane members of two clusters find out which of them goes on.
		return 0, refuse(transport.ReasonClusterID,
			"%s is a member of another cluster %q (born %d) than %s (born %d), and of the two one ends",
			h.From, h.Cluster, h.ClusterID.Born, self, own.Born)
	case version < max(mine.Min, theirs.Min):
		return 0, refuse(transport.ReasonProtocol,
			"%s speaks versions %d to %d, %s speaks %d to %d: upgrade the older one in steps that overlap",
			h.From, theirs.Min, theirs.Max, self, mine.Min, mine.Max)
	case h.MaxFrame > uint64(e.cfg.MaxFrameBytes):
		return 0, refuse(transport.ReasonLimits,
			"%s sends frames of up to %d bytes, %s takes %d: set transport.max-frame-bytes alike",
			h.From, h.MaxFrame, self, e.cfg.MaxFrameBytes)
	case h.To.Address != self.Address:
		return 0, refuse(transport.ReasonIncarnation,
			"%s was meant, this is %s: dial a node by the address that it has in the cluster", h.To, self)
	case h.To.UID != 0 && h.To.UID != self.UID:
		return 0, refuse(transport.ReasonIncarnation,
			"%s was meant, this is %s: the process was restarted, and the old incarnation will be downed", h.To, self)
	case h.From == self:
		return 0, refuse(transport.ReasonIncarnation,
			"somebody dials %s in its own name: no node opens connections to itself", self)
	case h.From.Address == self.Address:
		return 0, refuse(transport.ReasonIncarnation,
			"%s and %s claim the same address: give each node its own", h.From, self)
	}
	if r := e.admitPeer(h, c); r != nil {
		return 0, r
	}
	return version, nil
}

// admitPeer checks who the caller is, its certificate and whether it is blocked, where
// admit checks what its Hello says.
func (e *Endpoint) admitPeer(h *wire.Hello, c *Caller) *transport.RefusedError {
	if c.Verify != nil {
		if err := c.Verify(h.From.Address.Host); err != nil {
			return &transport.RefusedError{
				Reason: transport.ReasonCertificate, Peer: h.From,
				Detail: fmt.Sprintf("the certificate of %s: %v", h.From, err),
			}
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if why, ok := e.blocked[h.From]; ok {
		return blockedError(h.From, why)
	}
	return nil
}
