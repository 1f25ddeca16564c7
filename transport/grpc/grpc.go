// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package grpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	rpc "google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/internal/wire"
	"github.com/quorate/quorate/transport/mutual"
	"github.com/quorate/quorate/transport/session"
)

// The transport over TCP: New reads certificates and builds the endpoint of package
// session, which has the sessions and queues; Start listens and serves the one
// streaming method, whose streams become pipes, as do the connections that gRPC gives
// away in their handshake (lane.go); Close ends server, watching of files
// and endpoint. The rest delegates to the endpoint.

const (
	serviceName = "quorate.transport.v1.Lanes"
	methodName  = "Open"
	methodOpen  = "/" + serviceName + "/" + methodName

	headerBytes    = 16 << 10
	streams        = 256
	keepaliveFloor = 5 * time.Second
	keepaliveTime  = 30 * time.Second
)

// Option is a collaborator that only code can give.
type Option func(*options)

type options struct {
	notices  func(transport.Notice)
	listener net.Listener
	connect  func(ctx context.Context, address string) (net.Conn, error)
	tls      *TLS
}

// WithNotices calls f with every notice about connections and certificates.
func WithNotices(f func(transport.Notice)) Option { return func(o *options) { o.notices = f } }

// WithListener has the transport accept from l instead of listening by itself. The
// transport closes l. The rule that a node without TLS listens on the loopback
// interface only is then applied to the node's address and, if l is a listener of TCP,
// to the address of l.
func WithListener(l net.Listener) Option { return func(o *options) { o.listener = l } }

// WithDialer has the transport connect by f instead of by package net. The address is
// "host:port".
func WithDialer(f func(ctx context.Context, address string) (net.Conn, error)) Option {
	return func(o *options) { o.connect = f }
}

// WithTLS takes certificates from t instead of from the files of the
// configuration, which must then name none.
func WithTLS(t *TLS) Option { return func(o *options) { o.tls = t } }

// Transport connects a node with other nodes over TCP.
type Transport struct {
	endpoint *session.Endpoint
	cfg      transport.Config
	listener net.Listener
	tls      *TLS
	identity mutual.Identity
	files    *mutual.Files // Nil when certificates do not come from files.

	pool wire.Pool // Of accepted pipes that are not on gRPC.

	mu       sync.Mutex // Guards server, gate and watching.
	server   *rpc.Server
	gate     *listener
	watching context.CancelFunc // Ends the goroutine that watches the files.
}

var (
	_ transport.Transport = (*Transport)(nil)
	_ transport.Sourcer   = (*Transport)(nil)
	_ transport.Answerer  = (*Transport)(nil)
)

// New returns a transport that is not started. It reads the certificates, and
// reports every fault of the configuration.
func New(id transport.Identity, cfg transport.Config, opts ...Option) (*Transport, error) {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	if o.tls != nil && !cfg.TLS.IsZero() {
		return nil, errors.New("transport: certificates both by option and by configuration")
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	files, err := o.openFiles(cfg.TLS)
	if err != nil {
		return nil, err
	}
	identity := mutual.Identity{Cluster: id.Cluster, Required: cfg.RequireIdentity}
	if err := checkOwn(identity, o.tls, id.Roles); err != nil {
		return nil, fmt.Errorf("transport: %w", err)
	}
	d := newDialer(id.Node.Address, cfg, o.tls)
	d.identity = identity
	if o.connect != nil {
		d.connect = o.connect
	}
	endpoint, err := session.New(id, cfg, d, o.notices)
	if err != nil {
		return nil, err
	}
	d.fellBack = endpoint.FellBack
	return &Transport{endpoint: endpoint, cfg: cfg, listener: o.listener, tls: o.tls, identity: identity, files: files}, nil
}

// openFiles opens the certificate files, if any are named, and has them used for TLS.
func (o *options) openFiles(names transport.TLSFiles) (*mutual.Files, error) {
	if names.IsZero() {
		return nil, nil // Without files there is nothing to open, and that is no error.
	}
	notices := o.notices
	files, err := mutual.Open(names, func(c mutual.Change) {
		if notices != nil {
			notices(transport.Certificates{Files: c.Files, Err: c.Err})
		}
	})
	if err != nil {
		return nil, fmt.Errorf("transport: %w", err)
	}
	o.tls = files.TLS()
	return files, nil
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

// Start listens on Config.Bind, or the node's own address.
func (t *Transport) Start(ctx context.Context) error {
	listener, err := t.listen(ctx)
	if err != nil {
		return err
	}
	if !t.endpoint.Begin() {
		return errors.Join(transport.ErrClosed, listener.Close())
	}
	g := newDoor(listener, t.cfg, t.endpoint)
	server := rpc.NewServer(t.serverOptions()...)
	server.RegisterService(&rpc.ServiceDesc{
		ServiceName: serviceName,
		HandlerType: (*any)(nil),
		Streams: []rpc.StreamDesc{{
			StreamName: methodName, Handler: t.open, ServerStreams: true, ClientStreams: true,
		}},
	}, t)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.server, t.gate = server, g
	if t.files != nil {
		var ctx context.Context
		ctx, t.watching = context.WithCancel(context.Background())
		// Owner: the transport. Ended by Close, which waits for it.
		t.endpoint.Go(func() { t.files.Watch(ctx) })
	}
	// Owner: the transport. Ends by Stop in Close. Waited for by Close.
	if !t.endpoint.Go(func() { _ = server.Serve(g) }) {
		return errors.Join(transport.ErrClosed, listener.Close())
	}
	return nil
}

func (t *Transport) listen(ctx context.Context) (net.Listener, error) {
	self := t.endpoint.Self().Address
	bind := t.cfg.Bind
	if bind == "" || t.listener != nil {
		bind = self.String()
	}
	host, _, err := net.SplitHostPort(bind)
	if err != nil {
		return nil, fmt.Errorf("transport.bind: %q: must be host:port: %w", bind, err)
	}
	if t.tls == nil && !t.cfg.AllowInsecure && !loopback(host) {
		return nil, fmt.Errorf("transport: listen on %s: without TLS only on the loopback interface: configure transport.tls, or set transport.allow-insecure", bind)
	}
	l := t.listener
	if l == nil {
		var lc net.ListenConfig
		if l, err = lc.Listen(ctx, "tcp", bind); err != nil {
			return nil, fmt.Errorf("transport: listen on %s: %w: stop the process that has the port, or give the node another address", bind, err)
		}
	}
	if t.tls == nil && !t.cfg.AllowInsecure && !loopbackAddr(l.Addr()) {
		return nil, errors.Join(fmt.Errorf("transport: listen on %s, which is %s here: without TLS only on the loopback interface: "+
			"give the name a loopback address, configure transport.tls, or set transport.allow-insecure", bind, l.Addr()), l.Close())
	}
	return l, nil
}

func (t *Transport) serverOptions() []rpc.ServerOption {
	var security credentials.TransportCredentials = plaintextHandshake{insecure.NewCredentials(), t}
	if t.tls != nil {
		security = auditor{credentials.NewTLS(t.tls.Server(protocols(t.cfg)...)), t.tls, func(address string, r *transport.RefusedError) {
			t.endpoint.Refuse(address, gossip.NodeID{}, r, true)
		}, t.takeLane}
	}
	return []rpc.ServerOption{
		rpc.Creds(security),
		rpc.ForceServerCodecV2(codec{}),
		rpc.MaxRecvMsgSize(t.cfg.MaxFrameBytes),
		rpc.MaxSendMsgSize(t.cfg.MaxFrameBytes),
		rpc.MaxConcurrentStreams(streams),
		rpc.MaxHeaderListSize(headerBytes),
		rpc.ConnectionTimeout(t.cfg.HandshakeTimeout),
		rpc.ReadBufferSize(acceptBufferBytes),
		rpc.WriteBufferSize(receiptBufferBytes),
		rpc.HeaderTableSize(0), // A connection has one stream, so that no header is repeated.
		rpc.StaticStreamWindowSize(windowBytes),
		rpc.StaticConnWindowSize(windowBytes),
		rpc.WaitForHandlers(true),
		rpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepaliveFloor}),
		rpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionIdle: t.cfg.HandshakeTimeout, Time: keepaliveTime, Timeout: t.cfg.MaxSilence,
		}),
	}
}

// open is the handler of the stream.
func (t *Transport) open(_ any, stream rpc.ServerStream) error {
	c, conn := caller(stream.Context(), t.identity)
	t.endpoint.Serve(serverPipe(stream, conn), c)
	return nil
}

// Close implements [transport.Transport].
func (t *Transport) Close() error {
	t.endpoint.Shutdown()
	t.mu.Lock()
	server, gate := t.server, t.gate
	if t.watching != nil {
		t.watching()
	}
	t.mu.Unlock()
	if server != nil {
		server.Stop()
		gate.closeLanes()
	} else if t.listener != nil {
		_ = t.listener.Close()
	}
	t.endpoint.Wait()
	return nil
}
