// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package strangertest plays a program that speaks the wire of the transport and is no
// node: it sends a node, over TCP without TLS, any bytes that a test wants, and answers
// nodes that dial it with such bytes. First the stream and how it is opened, over gRPC or
// as message lanes are, then the answering side, then messages to send.
//
// A [Stranger] may be used by any number of goroutines; a stream by one goroutine that
// sends and one that receives.
package strangertest

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	rpc "google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/internal/tcp"
	"github.com/quorate/quorate/transport/internal/wire"
)

const (
	service = "quorate.transport.v1.Lanes"
	method  = "Open"
)

// bare is a codec that carries bytes as they are.
type bare struct{}

func (bare) Name() string { return "proto" }

func (bare) Marshal(v any) (mem.BufferSlice, error) {
	b, ok := v.([]byte)
	if !ok {
		return nil, errors.New("not bytes")
	}
	return mem.BufferSlice{mem.SliceBuffer(b)}, nil
}

func (bare) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// Stranger is a program that pretends to be the node ID.
type Stranger struct {
	ID      gossip.NodeID
	Cluster string // The cluster name in its Hello.
}

// Hello returns a Hello with a session that a node accepts as one of a node.
func (s Stranger) Hello(to gossip.NodeID) wire.Hello {
	return wire.Hello{
		Cluster: s.Cluster, Protocol: gossip.ProtocolRange{Min: 1, Max: 1}, Lane: machine.LaneControl,
		Session: 1, Token: wire.Token([]byte("a stranger token")), From: s.ID, To: to,
	}
}

// Greet opens a stream to a node, sends a Hello, and returns the stream when the node
// has answered, whatever the answer is. End closes the connection, also after an
// error.
func (s Stranger) Greet(ctx context.Context, to gossip.NodeID) (stream rpc.ClientStream, end func(), err error) {
	stream, end, err = open(ctx, to.Address)
	if err != nil {
		return nil, end, err
	}
	if err := stream.SendMsg(Bytes(s.Hello(to))); err != nil {
		return nil, end, err
	}
	var answer []byte
	return stream, end, stream.RecvMsg(&answer)
}

// Open opens a stream to a node, for messages of type []byte. The stream ends with the
// test.
func Open(t testing.TB, to gossip.Address, opts ...rpc.CallOption) rpc.ClientStream {
	t.Helper()
	stream, end, err := open(patience.Context(t), to, opts...)
	t.Cleanup(end)
	require.NoError(t, err)
	return stream
}

// Stream carries messages between a stranger and a node.
type Stream interface {
	SendMsg(m any) error // Sends a []byte.
	RecvMsg(m any) error // Waits for a message, and puts it where a *[]byte points.
}

// OpenLane opens a stream to a node over the wire of message lanes that is not gRPC. The
// stream ends with the test.
func OpenLane(t testing.TB, to gossip.Address) Stream {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(patience.Context(t), "tcp", to.String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	patience.Bound(t, conn)
	return ExchangePreface(t, conn)
}

// ExchangePreface exchanges the prefaces with a node on a connection, and returns the stream of the
// connection.
func ExchangePreface(t testing.TB, conn net.Conn) Stream {
	t.Helper()
	_, err := io.WriteString(conn, tcp.Preface)
	require.NoError(t, err)
	answer := make([]byte, len(tcp.Preface))
	_, err = io.ReadFull(conn, answer)
	require.NoError(t, err)
	require.Equal(t, tcp.Preface, string(answer))
	return lane{conn}
}

// lane is a stream of messages behind their lengths.
type lane struct{ net.Conn }

func (l lane) SendMsg(m any) error {
	b, ok := m.([]byte)
	if !ok {
		return errors.New("not bytes")
	}
	_, err := l.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...))
	return err
}

func (l lane) RecvMsg(m any) error {
	var length [4]byte
	if _, err := io.ReadFull(l, length[:]); err != nil {
		return err
	}
	b := make([]byte, binary.LittleEndian.Uint32(length[:]))
	*m.(*[]byte) = b
	_, err := io.ReadFull(l, b)
	return err
}

func open(ctx context.Context, to gossip.Address, opts ...rpc.CallOption) (stream rpc.ClientStream, end func(), err error) {
	cc, err := rpc.NewClient("passthrough:///"+to.String(), rpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, func() {}, err
	}
	stream, err = cc.NewStream(ctx, &rpc.StreamDesc{StreamName: method, ServerStreams: true, ClientStreams: true},
		"/"+service+"/"+method, append(opts, rpc.ForceCodecV2(bare{}))...)
	return stream, func() { _ = cc.Close() }, err
}

// Answer answers the first message of every caller on a listener with the bytes that
// the function answer returns, until the test ends.
func Answer(t testing.TB, l net.Listener, answer func() []byte) {
	t.Helper()
	server := rpc.NewServer(rpc.ForceServerCodecV2(bare{}))
	server.RegisterService(&rpc.ServiceDesc{
		ServiceName: service, HandlerType: (*any)(nil),
		Streams: []rpc.StreamDesc{{StreamName: method, ServerStreams: true, ClientStreams: true, Handler: func(_ any, s rpc.ServerStream) error {
			var hello []byte
			if err := s.RecvMsg(&hello); err != nil {
				return err
			}
			return s.SendMsg(answer())
		}}},
	}, nil)
	served := make(chan struct{})
	go func() { // Owner: the test. Ends with Stop, which the cleanup waits for.
		defer close(served)
		_ = server.Serve(l)
	}()
	t.Cleanup(func() { server.Stop(); <-served })
}

// Bytes encodes a Hello.
func Bytes(h wire.Hello) []byte { return wire.AppendHello(nil, h) }

// Frame encodes a frame with the given number, whose messages are all of one service.
func Frame(number uint64, service machine.Service, payloads ...[]byte) []byte {
	b := wire.Begin(nil)
	for _, p := range payloads {
		b, _ = wire.AppendEnvelope(b, uint16(service), func(b []byte) []byte { return append(b, p...) })
	}
	wire.SetNumber(b, number)
	return b
}

// Blocked encodes a refusal that says, in the name of a node, that its caller was
// removed.
func Blocked(node gossip.NodeID, detail string) []byte {
	return wire.AppendRefusal(nil, node, &transport.RefusedError{Reason: transport.ReasonBlocked, Detail: detail})
}
