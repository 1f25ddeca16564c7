// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership_test

import (
	"errors"
	"log/slog"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rpc "google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership"
	lanes "github.com/quorate/quorate/membership/internal/proto/quorate/transport/v1"
	"github.com/quorate/quorate/membership/internal/wire"
	"github.com/quorate/quorate/membership/machine"
	"github.com/quorate/quorate/membership/protocol"
	"github.com/quorate/quorate/membership/transport"
)

// bare is a codec for somebody who sends whatever bytes it likes.
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

// stranger speaks the protocol of the transport and is no member.
type stranger struct {
	t        *testing.T
	id       gossip.NodeID
	listener net.Listener
}

// newStranger returns one that answers each connection with the bytes that answer
// returns for its first message.
func newStranger(t *testing.T, answer func() []byte) *stranger {
	t.Helper()
	l := listen(t)
	host, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	number, err := strconv.ParseUint(port, 10, 16)
	require.NoError(t, err)
	server := rpc.NewServer(rpc.ForceServerCodecV2(bare{}))
	server.RegisterService(&rpc.ServiceDesc{
		ServiceName: "quorate.transport.v1.Lanes", HandlerType: (*any)(nil),
		Streams: []rpc.StreamDesc{{StreamName: "Open", ServerStreams: true, ClientStreams: true, Handler: func(_ any, s rpc.ServerStream) error {
			var hello []byte
			if err := s.RecvMsg(&hello); err != nil {
				return err
			}
			return s.SendMsg(answer())
		}}},
	}, nil)
	served := make(chan struct{})
	go func() { // Owned by the test: ends with Stop, which the cleanup waits for.
		defer close(served)
		_ = server.Serve(l)
	}()
	t.Cleanup(func() { server.Stop(); <-served })
	return &stranger{t: t, id: gossip.NodeID{Address: gossip.Address{Host: host, Port: uint16(number)}, UID: 66}, listener: l}
}

// open opens a lane to a node, as itself.
func (s *stranger) open(to gossip.NodeID) rpc.ClientStream {
	s.t.Helper()
	stream, end := s.tryOpen(to)
	s.t.Cleanup(end)
	require.NotNil(s.t, stream, "the node does not answer")
	return stream
}

// tryOpen is open for somebody who may be refused, and returns nil then. End ends the
// connection.
func (s *stranger) tryOpen(to gossip.NodeID) (stream rpc.ClientStream, end func()) {
	cc, err := rpc.NewClient("passthrough:///"+to.Address.String(), rpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, func() {}
	}
	end = func() { _ = cc.Close() }
	stream, err = cc.NewStream(s.t.Context(), &rpc.StreamDesc{StreamName: "Open", ServerStreams: true, ClientStreams: true},
		"/quorate.transport.v1.Lanes/Open", rpc.ForceCodecV2(bare{}))
	if err != nil {
		return nil, end
	}
	named := func(n gossip.NodeID) *lanes.Node {
		return &lanes.Node{Host: n.Address.Host, Port: uint32(n.Address.Port), Uid: uint64(n.UID)}
	}
	hello, err := proto.Marshal(&lanes.Upstream{Hello: &lanes.Hello{
		Cluster: "test", ProtocolMin: 1, ProtocolMax: 1, Lane: uint32(machine.LaneControl), Session: 1, From: named(s.id), To: named(to),
	}})
	if err != nil || stream.SendMsg(hello) != nil {
		return nil, end
	}
	var answer []byte
	if stream.RecvMsg(&answer) != nil {
		return nil, end
	}
	return stream, end
}

func (s *stranger) send(stream rpc.ClientStream, m *lanes.Upstream) {
	s.t.Helper()
	b, err := proto.Marshal(m)
	require.NoError(s.t, err)
	require.NoError(s.t, stream.SendMsg(b))
}

// say sends messages of membership in the frame with a number.
func (s *stranger) say(stream rpc.ClientStream, number uint64, payloads ...[]byte) {
	s.t.Helper()
	frame := &lanes.Upstream{Number: number}
	for _, p := range payloads {
		frame.Envelopes = append(frame.Envelopes, &lanes.Envelope{Service: uint32(protocol.Service), Payload: p})
	}
	s.send(stream, frame)
}

func encoded(t *testing.T, message any) []byte {
	t.Helper()
	b, err := wire.Codec{}.Append(nil, message)
	require.NoError(t, err)
	return b
}

// A stranger has itself dialled by one heartbeat, and says in the name of the node
// itself that the node was removed. The node goes on: who refuses is who was dialled.
//
// covers B25, B27, I32.
func TestARefusalInAnotherNameEndsNobody(t *testing.T) {
	n, err := membership.Start(t.Context(), overGRPC(t), membership.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	defer func() { _ = n.Close() }()
	require.NoError(t, n.AwaitUp(t.Context()))
	self := n.Self()
	s := newStranger(t, func() []byte {
		b, err := proto.Marshal(&lanes.Downstream{Refusal: &lanes.Refusal{
			Reason: lanes.Reason_REASON_BLOCKED, Detail: "you are removed",
			Node: &lanes.Node{Host: self.Address.Host, Port: uint32(self.Address.Port), Uid: uint64(self.UID)},
		}})
		require.NoError(t, err)
		return b
	})
	heard := make(chan transport.Refused, 8)
	n.Notices(func(notice transport.Notice) {
		if r, ok := notice.(transport.Refused); ok && !r.Inbound {
			heard <- r
		}
	})
	s.say(s.open(self), 1, encoded(t, protocol.Heartbeat{Sequence: 1}))
	select {
	case r := <-heard:
		require.Equal(t, s.id, r.Node, "who was dialled")
		require.Equal(t, s.id, r.Err.Peer, "who was dialled")
		require.Contains(t, r.Err.Error(), self.String(), "what it calls itself is shown")
	case <-time.After(10 * time.Second):
		require.FailNow(t, "the stranger was not dialled")
	}
	// What the refusal has told the machine comes before this command.
	require.NoError(t, n.Join(t.Context(), self.Address.String()))
	select {
	case <-n.Done():
		require.FailNow(t, "the node has ended", "%v", n.Err())
	case <-time.After(200 * time.Millisecond):
	}
	require.NotZero(t, n.Stats().Transport.RefusedOutbound[transport.ReasonBlocked])
}
