// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package grpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/internal/tcp"
	"github.com/quorate/quorate/transport/session"
)

// Lanes of messages straight on TCP or TLS, beside gRPC on the same port. The opener
// offers the other wire (lane): with TLS in its handshake, and in any case by a preface,
// which the acceptor answers. If the acceptor takes gRPC alone the lane goes over that
// (fallBack), which is remembered to say it once (others). The acceptor is asked by gRPC
// to shake hands (auditor with TLS, plain without), and keeps the connection when the
// opener has chosen the other wire (serveLane).

// protocols are the application protocols of a listener, the preferred one first.
func protocols(cfg transport.Config) []string {
	if cfg.Lane == transport.LaneGRPC {
		return []string{protocol}
	}
	return []string{tcp.Protocol, protocol}
}

// lane opens the pipe of a message lane, over gRPC if the other end takes nothing else.
func (d *dialer) lane(ctx context.Context, to gossip.Address) (session.Pipe, error) {
	a := new(attempt)
	security, err := d.credentials(to, a, tcp.Protocol, protocol)
	if err != nil {
		return nil, err
	}
	raw, err := d.reach(ctx, to, a)
	if err != nil {
		return nil, a.err(fmt.Errorf("%w: dial %s: %w", errStream, to, err))
	}
	conn, auth, spoken, err := d.offer(ctx, to, security, raw)
	if err != nil {
		_ = raw.Close()
		return nil, a.err(fmt.Errorf("%w: dial %s: %w", errStream, to, err))
	}
	if !spoken {
		return d.fallBack(ctx, to, a, security, conn, auth)
	}
	d.others.forget(to)
	out := conn
	if plain, ok := conn.(*sniffedConn); ok {
		out = plain.Conn
	}
	return &dialled{tcp.New(tcp.Config{
		Conn: conn, Out: out, Limit: receiptBytes, Buffer: receiptBufferBytes, Pool: &d.pool,
		Close: func(bool) { _ = conn.Close() },
	}), a, d.identity}, nil
}

// offer completes the handshake of TLS, if there is one, and exchanges the prefaces. With
// TLS the other end chooses first: its connection is then for gRPC or for this wire.
// Without TLS the connection is for this wire or for nothing, and nil.
func (d *dialer) offer(ctx context.Context, to gossip.Address, security credentials.TransportCredentials, raw net.Conn) (conn net.Conn, auth credentials.AuthInfo, spoken bool, err error) {
	conn = raw
	if d.tls != nil {
		conn, auth, err = security.ClientHandshake(ctx, to.Host, raw)
		if err != nil || negotiated(auth) != tcp.Protocol {
			return conn, auth, false, err
		}
	}
	keepAlive(raw, aliveEvery, d.cfg.MaxSilence)
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	spoken, err = tcp.ExchangePreface(conn)
	if !stop() {
		err = errors.Join(err, ctx.Err())
	}
	switch {
	case err != nil || spoken:
		return conn, auth, spoken, err
	case d.tls != nil:
		return nil, nil, false, errors.New("the preface was not answered by one")
	}
	return nil, nil, false, raw.Close()
}

// fallBack opens the pipe of a message lane over gRPC, with TLS on the connection that is
// there. The other end may also have said that it speaks TLS alone: that is a refusal.
func (d *dialer) fallBack(ctx context.Context, to gossip.Address, a *attempt, security credentials.TransportCredentials, conn net.Conn, auth credentials.AuthInfo) (session.Pipe, error) {
	if err := a.err(nil); err != nil {
		return nil, err
	}
	connect := func(ctx context.Context) (net.Conn, error) { return d.reach(ctx, to, a) }
	if conn != nil {
		security, connect = given{security, auth}, only(conn)
	}
	pipe, err := d.stream(ctx, to, machine.LaneMessage, a, security, connect)
	if err != nil {
		if conn != nil {
			_ = conn.Close()
		}
		return nil, err
	}
	d.fellBack(to, d.others.learn(to))
	return pipe, nil
}

// given are the credentials of a connection whose handshake is complete.
type given struct {
	credentials.TransportCredentials

	auth credentials.AuthInfo
}

func (g given) ClientHandshake(_ context.Context, _ string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return conn, g.auth, nil
}

func (g given) Clone() credentials.TransportCredentials { return g }

// only returns a function that hands out one connection, once.
func only(conn net.Conn) func(context.Context) (net.Conn, error) {
	var once sync.Once
	return func(context.Context) (net.Conn, error) {
		c, err := net.Conn(nil), errStream
		once.Do(func() { c, err = conn, nil })
		return c, err
	}
}

// negotiated returns the application protocol that TLS has agreed on.
func negotiated(auth credentials.AuthInfo) string {
	info, _ := auth.(credentials.TLSInfo)
	return info.State.NegotiatedProtocol
}

// fallbackCache remembers the addresses that take messages over gRPC alone. It forgets all of
// them when there are maxFallbacks.
type fallbackCache struct {
	mu        sync.Mutex
	addresses map[gossip.Address]struct{}
}

const maxFallbacks = 4096

// learn reports whether it is news that an address takes messages over gRPC alone.
func (o *fallbackCache) learn(a gossip.Address) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, ok := o.addresses[a]; ok {
		return false
	}
	if o.addresses == nil || len(o.addresses) >= maxFallbacks {
		o.addresses = make(map[gossip.Address]struct{})
	}
	o.addresses[a] = struct{}{}
	return true
}

// forget is called when an address has taken the other wire.
func (o *fallbackCache) forget(a gossip.Address) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.addresses, a)
}

// takeLane takes an accepted connection whose opener has chosen the other wire by TLS, if
// the opener's preface says so too.
func (t *Transport) takeLane(raw, conn net.Conn, auth credentials.AuthInfo) error {
	spoken, head, err := tcp.Recognize(conn)
	if err == nil && spoken == tcp.Lane {
		return t.serveLane(raw, conn, auth)
	}
	t.endpoint.Refuse(raw.RemoteAddr().String(), gossip.NodeID{}, noPreface(head, err), true)
	return errors.Join(errStream, err)
}

// noPreface is the refusal of an opener whose first bytes are no preface.
func noPreface(head []byte, err error) *transport.RefusedError {
	return &transport.RefusedError{
		Reason: transport.ReasonMalformed,
		Detail: fmt.Sprintf("%d bytes that are no preface (%v); something that is not a node of this cluster dials, or the versions are incompatible", len(head), err),
	}
}

// serveLane answers the preface of an accepted connection, and serves the connection as a
// lane. The connection that was accepted is raw, that of TLS or of no TLS above it conn.
// The error tells gRPC that the connection is no more its own.
func (t *Transport) serveLane(raw, conn net.Conn, auth credentials.AuthInfo) error {
	c, g := callerAt(raw.RemoteAddr(), auth, t.identity)
	if g == nil {
		return errType // Each connection that is accepted has passed the gate.
	}
	if _, err := io.WriteString(conn, tcp.Preface); err != nil {
		return err
	}
	g.giveAway()
	keepAlive(g.Conn.Conn, keepaliveTime, t.cfg.MaxSilence)
	// Not on the opener's side, which looks for signs of life by itself: its bytes may wait
	// long where a handler takes its time.
	if err := limitUnacknowledged(g.Conn.Conn, t.cfg.MaxSilence); err != nil {
		return err
	}
	pipe := tcp.New(tcp.Config{
		Conn: conn, Out: conn, Limit: t.cfg.MaxFrameBytes, Buffer: bufferBytes, Pool: &t.pool, Close: g.closeLane,
	})
	// Owner: the endpoint. Ends with the connection. Waited for by Wait.
	if !t.endpoint.Go(func() { t.endpoint.Serve(pipe, c) }) {
		_ = g.Close()
	}
	return credentials.ErrConnDispatched
}

// plaintextHandshake is the server's handshake without TLS: it looks which wire the opener speaks.
type plaintextHandshake struct {
	credentials.TransportCredentials

	t *Transport
}

func (p plaintextHandshake) Clone() credentials.TransportCredentials { return p }

func (p plaintextHandshake) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	spoken, head, err := tcp.Recognize(raw)
	if r := p.judge(spoken, head, err); r != nil {
		p.t.endpoint.Refuse(raw.RemoteAddr().String(), gossip.NodeID{}, r, true)
	}
	if err != nil {
		return nil, nil, err
	}
	if spoken == tcp.Lane && p.t.cfg.Lane != transport.LaneGRPC {
		return nil, nil, p.t.serveLane(raw, raw, nil)
	}
	// gRPC answers with its greeting, whatever has come: by that the other end knows
	// that there is no TLS here, or no other wire.
	return p.TransportCredentials.ServerHandshake(&peekedConn{raw, head})
}

// judge returns the refusal of an opener by its first bytes, or nil.
func (p plaintextHandshake) judge(spoken tcp.OpenerProtocol, head []byte, err error) *transport.RefusedError {
	switch {
	case err != nil && len(head) == 0 && !timedOut(err):
		return nil // It came and went, as those do that look whether the port is open.
	case err != nil || spoken == tcp.Unknown:
		return noPreface(head, err)
	case spoken == tcp.TLS:
		return &transport.RefusedError{
			Reason: transport.ReasonInsecure,
			Detail: "the other end speaks TLS: give every node of the cluster a certificate (transport.tls), or none",
		}
	}
	return nil
}

// peekedConn is a connection of which some bytes have been read.
type peekedConn struct {
	net.Conn

	head []byte
}

func (c *peekedConn) Read(b []byte) (int, error) {
	if len(c.head) == 0 {
		return c.Conn.Read(b)
	}
	n := copy(b, c.head)
	c.head = c.head[n:]
	return n, nil
}

// probes is how often the system asks, within MaxSilence, whether the other end of a
// silent connection is still there.
const probes = 4

// keepAlive has the system end a connection that carries nothing and whose other end has
// gone without a word, after idle and MaxSilence.
func keepAlive(conn net.Conn, idle, silence time.Duration) {
	if plain, ok := conn.(*sniffedConn); ok {
		conn = plain.Conn
	}
	if c, ok := conn.(*net.TCPConn); ok {
		// It fails on a connection that has just ended, which is noticed soon enough.
		_ = c.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: idle, Interval: silence / probes, Count: probes})
	}
}
