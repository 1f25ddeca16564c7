// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package grpc

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	rpc "google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/internal/wire"
	"github.com/quorate/quorate/transport/mutual"
	"github.com/quorate/quorate/transport/session"
)

// How a node opens a connection for a lane: the dialer connects, over TLS or on the
// loopback interface alone, then opens the stream of the lane; a lane of messages may do
// without gRPC (lane.go). What TLS or the first
// byte says about a refusal is kept in an attempt (tls.go) and returned in place of
// gRPC's error.

const (
	// receiptBytes is the largest message that a peer may answer with.
	receiptBytes = 64 << 10

	windowBytes = 1 << 20 // Bytes of flow control, for a stream and for its connection.

	// The buffers of a connection, on which messages travel one way and receipts
	// the other. A read or write larger than the buffer goes past it. Those for reading
	// are there as long as the connection, those for writing while something is written.
	bufferBytes        = 16 << 10 // For messages.
	controlBufferBytes = 4 << 10  // For messages of the control lane, of which a node has many.
	acceptBufferBytes  = 512      // For reading messages of an accepted connection, whose lane is not known when it begins.
	receiptBufferBytes = 2 << 10  // For writing receipts.
	noteBufferBytes    = 256      // For reading receipts.

	// aliveEvery is how long a lane of messages or of bulk is idle before the system asks
	// whether its other end is still there. A connection that owes an acknowledgement is
	// watched more closely, by the session.
	aliveEvery = 10 * time.Second

	// controlAliveEvery is the same for a lane of control, of which a node has many. The
	// acceptor asks as often, by a ping of gRPC, which is an answer to the system as well.
	controlAliveEvery = keepaliveTime

	maxBackoff = time.Second
)

// dialer opens pipes, each over a connection of its own.
type dialer struct {
	cfg      transport.Config
	tls      *TLS
	identity mutual.Identity
	connect  func(ctx context.Context, address string) (net.Conn, error)
	pool     wire.Pool // Of pipes that are not on gRPC.
	others   fallbackCache
	fellBack func(to gossip.Address, news bool)
}

// newDialer returns a dialer. When the node's own host is an IPv4 loopback address,
// the dialer binds its connections to that address, so that nodes of one machine
// differ.
func newDialer(self gossip.Address, cfg transport.Config, t *TLS) *dialer {
	d := &net.Dialer{Timeout: max(cfg.RedialAfter, time.Second)}
	if ip, err := netip.ParseAddr(self.Host); err == nil && ip.Is4() && ip.IsLoopback() {
		d.LocalAddr, d.Control = &net.TCPAddr{IP: net.IP(ip.AsSlice())}, lateSourcePort
	}
	return &dialer{cfg: cfg, tls: t, connect: func(ctx context.Context, address string) (net.Conn, error) {
		return d.DialContext(ctx, "tcp", address)
	}}
}

// Dial implements [session.Dialer].
func (d *dialer) Dial(ctx context.Context, to gossip.Address, class transport.LaneClass) (session.Pipe, error) {
	if class == machine.LaneMessage && d.cfg.Lane != transport.LaneGRPC {
		return d.lane(ctx, to)
	}
	a := new(attempt)
	security, err := d.credentials(to, a, protocol)
	if err != nil {
		return nil, err
	}
	return d.stream(ctx, to, class, a, security, func(ctx context.Context) (net.Conn, error) { return d.reach(ctx, to, a) })
}

// aliveAfter is how long a lane is idle before the system asks whether its other end is
// still there.
func aliveAfter(class transport.LaneClass) time.Duration {
	if class == machine.LaneControl {
		return controlAliveEvery
	}
	return aliveEvery
}

// reach connects to an address. Without TLS it refuses an address beyond this machine,
// and the connection notices when the other end speaks TLS.
func (d *dialer) reach(ctx context.Context, to gossip.Address, a *attempt) (net.Conn, error) {
	conn, err := d.connect(ctx, to.String())
	if err != nil || d.tls != nil {
		return conn, err
	}
	if !d.cfg.AllowInsecure && !loopbackAddr(conn.RemoteAddr()) {
		a.refuse(to, &transport.RefusedError{
			Reason: transport.ReasonInsecure,
			Detail: fmt.Sprintf("%s is %s here, which is not dialled without TLS: configure transport.tls, or set transport.allow-insecure", to, conn.RemoteAddr()),
		})
		return nil, errors.Join(errStream, conn.Close())
	}
	return &sniffedConn{Conn: conn, refused: func(r *transport.RefusedError) { a.refuse(to, r) }}, nil
}

// stream opens a stream of gRPC on a connection of its own.
func (d *dialer) stream(ctx context.Context, to gossip.Address, class transport.LaneClass, a *attempt, security credentials.TransportCredentials, connect func(context.Context) (net.Conn, error)) (session.Pipe, error) {
	cc, err := rpc.NewClient("passthrough:///peer", d.options(class, security, func(ctx context.Context, _ string) (net.Conn, error) {
		conn, err := connect(ctx)
		if err == nil {
			keepAlive(conn, aliveAfter(class), d.cfg.MaxSilence)
		}
		return conn, err
	})...)
	if err != nil {
		return nil, fmt.Errorf("transport: dial %s: %w", to, err)
	}
	life, cancel := context.WithCancel(context.Background())
	stop := context.AfterFunc(ctx, cancel)
	stream, err := cc.NewStream(life, &rpc.StreamDesc{StreamName: methodName, ServerStreams: true, ClientStreams: true}, methodOpen, rpc.ForceCodecV2(codec{}),
		rpc.MaxCallRecvMsgSize(receiptBytes), rpc.MaxCallSendMsgSize(d.cfg.MaxFrameBytes))
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		cancel()
		_ = cc.Close()
		return nil, a.err(fmt.Errorf("%w: dial %s: %s", errStream, to, status.Convert(err).Message()))
	}
	return &dialled{clientPipe(stream, cc, cancel), a, d.identity}, nil
}

// dialled is the opening end of a pipe. Its attempt tells what TLS says after Dial
// has returned: a rejection may arrive with the first read.
type dialled struct {
	session.Pipe

	attempt  *attempt
	identity mutual.Identity
}

var _ session.Certified = (*dialled)(nil)

// Covers implements [session.Certified]. Without TLS every peer may have any role.
func (d *dialled) Covers(roles []string) error {
	d.attempt.mu.Lock()
	defer d.attempt.mu.Unlock()
	if d.attempt.certificate == nil {
		return nil
	}
	return d.identity.Covers(d.attempt.certificate, roles)
}

func (d *dialled) Recv(in *session.Incoming) error {
	if err := d.Pipe.Recv(in); err != nil {
		return d.attempt.err(err)
	}
	return nil
}

func (d *dialer) options(class transport.LaneClass, security credentials.TransportCredentials, connect func(context.Context, string) (net.Conn, error)) []rpc.DialOption {
	pace := backoff.DefaultConfig
	pace.BaseDelay, pace.MaxDelay = maxBackoff/10, maxBackoff
	out := bufferBytes
	if class == machine.LaneControl {
		out = controlBufferBytes
	}
	return []rpc.DialOption{
		rpc.WithTransportCredentials(security),
		rpc.WithContextDialer(connect),
		rpc.WithNoProxy(),
		rpc.WithDisableServiceConfig(),
		rpc.WithDisableRetry(),
		rpc.WithDisableHealthCheck(),
		rpc.WithMaxHeaderListSize(headerBytes),
		rpc.WithReadBufferSize(noteBufferBytes),
		rpc.WithWriteBufferSize(out),
		rpc.WithStaticStreamWindowSize(receiptBytes),
		rpc.WithStaticConnWindowSize(receiptBytes),
		rpc.WithConnectParams(rpc.ConnectParams{Backoff: pace, MinConnectTimeout: d.cfg.HandshakeTimeout}),
	}
}

// credentials returns those for dialling an address, with the application protocols that
// are offered.
func (d *dialer) credentials(to gossip.Address, a *attempt, protocols ...string) (credentials.TransportCredentials, error) {
	if d.tls == nil {
		if !d.cfg.AllowInsecure && !loopback(to.Host) {
			return nil, &transport.RefusedError{
				Reason: transport.ReasonInsecure, Peer: gossip.NodeID{Address: to},
				Detail: "not dialled without TLS: configure transport.tls, or set transport.allow-insecure",
			}
		}
		return insecure.NewCredentials(), nil
	}
	cfg, err := d.tls.Client(to.Host, protocols...)
	if err != nil {
		return nil, fmt.Errorf("transport: certificates: %w", err)
	}
	verify := cfg.VerifyConnection
	cfg.VerifyConnection = func(state tls.ConnectionState) error { return cmp.Or(verify(state), a.shown(state, d.identity)) }
	return auditor{credentials.NewTLS(cfg), d.tls, func(_ string, r *transport.RefusedError) { a.refuse(to, r) }, nil}, nil
}

// loopbackAddr reports whether a socket is bound to the loopback interface. An address
// that is not of TCP, as in tests, counts as loopback.
func loopbackAddr(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return !ok || tcp.IP.IsLoopback()
}

// loopback reports whether a host is, by its text, this machine: localhost or a
// loopback IP address. A name may still be resolved to another address, see
// [loopbackAddr].
func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}
