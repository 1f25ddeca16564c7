// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/session"
)

// Option is a collaborator that only code can give.
type Option func(*options)

type options struct{ notices func(transport.Notice) }

// WithNotices calls f with every notice about connections.
func WithNotices(f func(transport.Notice)) Option {
	return func(o *options) { o.notices = f }
}

// Transport is a node on a [Network].
type Transport struct {
	endpoint *session.Endpoint
	network  *Network
}

var (
	_ transport.Transport = (*Transport)(nil)
	_ transport.Sourcer   = (*Transport)(nil)
	_ transport.Answerer  = (*Transport)(nil)
)

// New returns a transport that is not started. Of the configuration, Bind,
// AllowInsecure, TLS and PendingConnections have no effect.
func New(n *Network, id transport.Identity, cfg transport.Config, opts ...Option) (*Transport, error) {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	t := &Transport{network: n}
	endpoint, err := session.New(id, cfg, dialer{t}, o.notices)
	if err != nil {
		return nil, err
	}
	t.endpoint = endpoint
	return t, nil
}

// Transport returns what [New] does for a node on the network that tells its notices to
// somebody. It is the function that a node is given to make its transport:
//
//	membership.WithTransport(network.Transport)
func (n *Network) Transport(id transport.Identity, cfg transport.Config, notices func(transport.Notice)) (transport.Transport, error) {
	t, err := New(n, id, cfg, WithNotices(notices))
	if err != nil {
		return nil, err // A nil *Transport in the interface would not be nil.
	}
	return t, nil
}

// Handle implements [transport.Transport].
func (t *Transport) Handle(s transport.Service, h transport.Handler) { t.endpoint.Handle(s, h) }

// Self implements [transport.Transport].
func (t *Transport) Self() gossip.NodeID { return t.endpoint.Self() }

// Lane implements [transport.Transport].
func (t *Transport) Lane(to gossip.NodeID, k transport.LaneClass) transport.Lane {
	return t.endpoint.Lane(to, k)
}

// Answer implements [transport.Answerer].
func (t *Transport) Answer(to gossip.NodeID, k transport.LaneClass, s transport.Service, encode func([]byte) []byte) bool {
	return t.endpoint.Answer(to, k, s, encode)
}

// Block implements [transport.Transport].
func (t *Transport) Block(peer gossip.NodeID, why string) { t.endpoint.Block(peer, why) }

// Probe implements [transport.Transport].
func (t *Transport) Probe(ctx context.Context, address gossip.Address, roles ...string) (gossip.NodeID, error) {
	return t.endpoint.Probe(ctx, address, roles)
}

// Counters implements [transport.Transport].
func (t *Transport) Counters() transport.Counters { return t.endpoint.Counters() }

// Source implements [transport.Sourcer].
func (t *Transport) Source(peer gossip.NodeID) transport.Source { return t.endpoint.Source(peer) }

// Start puts the node on the network.
func (t *Transport) Start(context.Context) error {
	if !t.endpoint.Begin() {
		return transport.ErrClosed
	}
	return t.network.listen(t)
}

// Close implements [transport.Transport].
func (t *Transport) Close() error {
	t.endpoint.Shutdown()
	t.network.leave(t)
	t.endpoint.Wait()
	return nil
}

type dialer struct{ t *Transport }

func (d dialer) Dial(ctx context.Context, to gossip.Address, _ transport.LaneClass) (session.Pipe, error) {
	return d.t.network.dial(ctx, d.t.endpoint.Self().Address, to)
}
