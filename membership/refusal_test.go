// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rpc "google.golang.org/grpc"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/membership/internal/wire"
	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/transporttest/strangertest"
)

// stranger speaks the protocol of the transport and is no member.
type stranger struct {
	strangertest.Stranger

	t *testing.T
}

// newStranger returns a stranger that answers each connection with the bytes that answer
// returns for its first message.
func newStranger(t *testing.T, answer func() []byte) *stranger {
	t.Helper()
	l := listen(t)
	address, err := gossip.ParseAddress(l.Addr().String())
	require.NoError(t, err)
	strangertest.Answer(t, l, answer)
	return strangerAs(t, gossip.NodeID{Address: address, UID: 66})
}

// strangerAs returns a stranger with a given identity, which cannot be dialled.
func strangerAs(t *testing.T, id gossip.NodeID) *stranger {
	return &stranger{t: t, Stranger: strangertest.Stranger{ID: id, Cluster: "test"}}
}

// open opens a lane to a node, as itself.
func (s *stranger) open(to gossip.NodeID) rpc.ClientStream {
	s.t.Helper()
	stream, end, err := s.Greet(s.t.Context(), to)
	s.t.Cleanup(end)
	require.NoError(s.t, err)
	return stream
}

// say sends messages of membership in the frame with a number.
func (s *stranger) say(stream rpc.ClientStream, number uint64, payloads ...[]byte) {
	s.t.Helper()
	require.NoError(s.t, stream.SendMsg(strangertest.Frame(number, protocol.Service, payloads...)))
}

func encoded(t *testing.T, message any) []byte {
	t.Helper()
	b, err := wire.Codec{}.Append(nil, message)
	require.NoError(t, err)
	return b
}

// A stranger has itself dialled by one heartbeat, and says in the name of the node itself
// that the node was removed. The node goes on: the refusal counts for the node that was
// dialled.
//
// covers B25, B27, I32.
func TestARefusalInAnotherNameEndsNobody(t *testing.T) {
	n, err := membership.Start(t.Context(), overGRPC(t), membership.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	defer func() { _ = n.Close() }()
	require.NoError(t, n.AwaitUp(t.Context()))
	self := n.Self()
	s := newStranger(t, func() []byte { return strangertest.Blocked(self, "you are removed") })
	heard := make(chan transport.Refused, 8)
	n.Notices(func(notice transport.Notice) {
		if r, ok := notice.(transport.Refused); ok && !r.Inbound {
			heard <- r
		}
	})
	s.say(s.open(self), 1, encoded(t, protocol.Heartbeat{Sequence: 1}))
	r := patience.Receive(t, heard, "the refusal of the stranger, who is dialled")
	require.Equal(t, s.ID, r.Node, "who was dialled")
	require.Equal(t, s.ID, r.Err.Peer, "who was dialled")
	require.Contains(t, r.Err.Error(), self.String(), "what it calls itself is shown")
	// What the refusal has told the machine comes before this command.
	require.NoError(t, n.Join(t.Context(), self.Address.String()))
	select {
	case <-n.Done():
		require.FailNow(t, "the node has ended", "%v", n.Err())
	case <-time.After(200 * time.Millisecond): //quorate:realtime What the refusal could have done by then it has not.
	}
	require.NotZero(t, n.Stats().Transport.RefusedOutbound[transport.ReasonBlocked])
}
