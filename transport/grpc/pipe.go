// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package grpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	rpc "google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/transport/gate"
	"github.com/quorate/quorate/transport/mutual"
	"github.com/quorate/quorate/transport/session"
)

var (
	errType = errors.New("grpc: not a message of the transport")

	// errStream stands for any error of gRPC, whose types callers should not see.
	errStream = errors.New("connection broken")

	// errStranger is returned by the codec for a message too large for a peer that is
	// not known, see [transport.Identity.Known].
	errStranger = errors.New("grpc: too large for a stranger")
)

// closeGrace is how long the other end has to read a refusal and close the connection
// before this end closes it.
const closeGrace = time.Second

// messenger is what the two ends of a gRPC stream have in common.
type messenger interface {
	SendMsg(m any) error
	RecvMsg(m any) error
}

// pipe is one end of a stream.
type pipe struct {
	stream messenger
	out    outgoing   // Used by the one goroutine that sends.
	conn   *gatedConn // The connection of an accepted stream, if known.
	once   sync.Once
	close  func()
}

var _ session.Pipe = (*pipe)(nil)

func (p *pipe) Send(b *session.Buffer) error {
	p.out = outgoing{buffer: b}
	err := p.stream.SendMsg(&p.out)
	if !p.out.lent {
		b.Free()
	}
	p.out.buffer = nil // A pipe that is quiet for long keeps no buffer.
	return err
}

func (p *pipe) Recv(in *session.Incoming) error {
	if p.conn != nil {
		p.conn.expect(in.Large)
	}
	err := p.stream.RecvMsg(in)
	switch {
	case err == nil:
		return nil
	case p.conn != nil && p.conn.exceeded.Load():
		return session.ErrStranger(fmt.Sprintf("more than %d bytes", allowance))
	case strings.Contains(status.Convert(err).Message(), errStranger.Error()):
		return session.ErrStranger("a message")
	case status.Code(err) == codes.ResourceExhausted:
		return fmt.Errorf("%w: %s", session.ErrOversize, status.Convert(err).Message())
	default:
		return fmt.Errorf("%w: %s", errStream, status.Convert(err).Message())
	}
}

func (p *pipe) Close() { p.once.Do(p.close) }

var _ session.Acknowledger = (*pipe)(nil)

// Acknowledge implements [session.Acknowledger] for the accepting end.
func (p *pipe) Acknowledge() {
	if p.conn != nil {
		acknowledge(p.conn.Conn.Conn)
	}
}

// serverPipe returns the accepting end of a stream. The stream ends when the method
// that serves it returns, which happens right after Serve has closed the pipe. Only if
// the other end does not read, so that this takes too long, the connection itself is
// closed.
func serverPipe(stream rpc.ServerStream, conn *gatedConn) *pipe {
	return &pipe{stream: stream, conn: conn, close: func() {
		if conn != nil {
			conn.closeSoon()
		}
	}}
}

// clientPipe returns the opening end of a stream.
func clientPipe(stream rpc.ClientStream, cc *rpc.ClientConn, cancel context.CancelFunc) *pipe {
	return &pipe{stream: stream, close: func() {
		cancel()
		_ = cc.Close()
	}}
}

// caller describes the other end of an accepted stream, and returns its connection if
// it is one of the gate's.
func caller(ctx context.Context, identity mutual.Identity) (session.Caller, *gatedConn) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return session.Caller{Address: "unknown"}, nil
	}
	return callerAt(p.Addr, p.AuthInfo, identity)
}

// callerAt describes the other end of an accepted connection by its address and what its
// handshake of TLS has shown.
func callerAt(address net.Addr, auth credentials.AuthInfo, identity mutual.Identity) (session.Caller, *gatedConn) {
	c := session.Caller{Address: address.String(), Certificate: certificateOf(auth), Owner: gate.HostOf(address), Verify: verifier(auth, identity)}
	if certificate := shown(auth); certificate != nil {
		c.Owner = mutual.Name(certificate)
	}
	at, ok := address.(gatedAddr)
	if !ok {
		return c, nil
	}
	c.Admitted = func() { at.conn.Admit() }
	return c, at.conn
}
