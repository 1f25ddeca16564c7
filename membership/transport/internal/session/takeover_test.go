// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"context"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/machine"
	"github.com/quorate/quorate/membership/transport"
	"github.com/quorate/quorate/membership/transport/internal/session"
	"github.com/quorate/quorate/membership/transport/internal/wire"
)

// half is one end of a connection inside the process.
type half struct {
	in, out chan []byte
	over    chan struct{} // Closed by either end.
	once    *sync.Once
}

func connection() (a, b *half) {
	up, down, over, once := make(chan []byte, 64), make(chan []byte, 64), make(chan struct{}), new(sync.Once)
	return &half{down, up, over, once}, &half{up, down, over, once}
}

func (h *half) Send(b *wire.Buffer) error {
	defer b.Free()
	select {
	case h.out <- slices.Clone(b.B):
		return nil
	case <-h.over:
		return io.ErrClosedPipe
	}
}

func (h *half) Recv(in *session.Incoming) error {
	select {
	case in.Bytes = <-h.in:
		return nil
	default:
	}
	select {
	case in.Bytes = <-h.in:
		return nil
	case <-h.over:
		return io.EOF
	}
}

func (h *half) Close() { h.once.Do(func() { close(h.over) }) }

// acceptor is a node that others dial.
type acceptor struct {
	*session.Endpoint

	t      *testing.T
	served sync.WaitGroup
	got    chan byte
}

func newEndpoint(t *testing.T, self gossip.NodeID, d session.Dialer) *session.Endpoint {
	t.Helper()
	e, err := session.New(transport.Identity{Node: self, Cluster: "bank", Protocol: gossip.ProtocolRange{Min: 1, Max: 1}}, transport.Default(), d, nil)
	require.NoError(t, err)
	require.True(t, e.Begin())
	return e
}

func newAcceptor(t *testing.T) *acceptor {
	t.Helper()
	a := &acceptor{Endpoint: newEndpoint(t, at(1, 1), &liar{}), t: t, got: make(chan byte, 8)}
	a.Handle(1, func(_ gossip.NodeID, frame []byte) { a.got <- frame[0] })
	return a
}

func (a *acceptor) close() {
	a.Shutdown()
	a.Wait()
	a.served.Wait()
}

// accept serves a connection of an owner and returns its other end.
func (a *acceptor) accept(owner string) *half {
	here, there := connection()
	a.served.Go(func() { a.Serve(here, session.Caller{Address: "127.0.0.1:9", Owner: owner}) }) // Ends with the connection; close waits.
	return there
}

// Dial has the acceptor dialled by somebody whose connections are all of one owner.
func (a *acceptor) Dial(context.Context, gossip.Address, transport.LaneKind) (session.Pipe, error) {
	return a.accept("real"), nil
}

// hello says hello on a new connection, and returns it with the answer.
func (a *acceptor) hello(owner string, from gossip.NodeID, number uint64, resumed bool) (*half, wire.Downstream) {
	a.t.Helper()
	there := a.accept(owner)
	hello, err := wire.AppendHello(nil, wire.Hello{
		Cluster: "bank", Protocol: gossip.ProtocolRange{Min: 1, Max: 1}, From: from, To: a.Self(),
		Lane: machine.LaneControl, Session: number, Resumed: resumed,
	})
	require.NoError(a.t, err)
	there.out <- hello
	var in session.Incoming
	require.NoError(a.t, there.Recv(&in), "the acceptor says why")
	d, err := wire.ParseDownstream(in.Bytes)
	require.NoError(a.t, err)
	return there, d
}

func (h *half) ended() bool {
	synctest.Wait()
	select {
	case <-h.over:
		return true
	default:
		return false
	}
}

// A node that is connected is not displaced by who shows another certificate, or comes
// from another address, and says that it is the same node. Its own next connection
// displaces it. Who has stayed away leaves the place to others.
//
// covers B24, B26.
func TestASessionIsTakenOverByItsOwnerAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAcceptor(t)
		defer a.close()
		first, d := a.hello("real", at(2, 2), 1, false)
		require.NotNil(t, d.Welcome)
		for _, resumed := range []bool{false, true} {
			_, d = a.hello("impostor", at(2, 2), 1, resumed)
			require.NotNil(t, d.Refusal)
			require.Equal(t, transport.ReasonTaken, d.Refusal.Reason)
			require.Contains(t, d.Refusal.Detail, "real")
			require.Contains(t, d.Refusal.Detail, "impostor")
		}
		require.False(t, first.ended())
		require.Equal(t, uint64(2), a.Counters().RefusedInbound[transport.ReasonTaken])

		second, d := a.hello("real", at(2, 2), 1, true)
		require.NotNil(t, d.Welcome)
		require.True(t, d.Welcome.Known)
		require.True(t, first.ended())
		second.Close()
		synctest.Wait()
		_, d = a.hello("impostor", at(2, 2), 2, false)
		require.NotNil(t, d.Refusal, "its owner has time to dial anew")
		<-time.After(transport.Default().MaxSilence)
		_, d = a.hello("another", at(2, 2), 2, false)
		require.NotNil(t, d.Welcome)
	})
}

// No number of a session shuts out those that come after it, and who is behind hears
// so, with the number that is known.
//
// covers B24.
func TestNumbersOfSessionsLeaveRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAcceptor(t)
		defer a.close()
		for _, number := range []uint64{1<<64 - 1, 1 << 63, 1<<48 + 1<<32 + 1} {
			_, d := a.hello("real", at(2, 2), number, false)
			require.NotNil(t, d.Refusal, number)
			require.Equal(t, transport.ReasonMalformed, d.Refusal.Reason, number)
		}
		_, d := a.hello("real", at(2, 2), 1<<48, false)
		require.NotNil(t, d.Welcome)
		_, d = a.hello("real", at(2, 2), 7, false)
		require.NotNil(t, d.Refusal)
		require.Equal(t, transport.ReasonStale, d.Refusal.Reason)
		require.Equal(t, uint64(1<<48), d.Refusal.Session)
		require.Equal(t, uint64(1), a.Counters().RefusedInbound[transport.ReasonStale])
		_, d = a.hello("real", at(2, 2), 1<<48+1, false)
		require.NotNil(t, d.Welcome)
	})
}

// A node whose number was overtaken, by somebody with the same certificate, gets its
// place back by itself.
//
// covers B24.
func TestANodeOutpacesWhoWasThereInItsName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAcceptor(t)
		defer a.close()
		_, d := a.hello("real", at(2, 2), 1<<48, false)
		require.NotNil(t, d.Welcome)
		e := newEndpoint(t, at(2, 2), a)
		lane := e.Lane(a.Self(), machine.LaneControl)
		require.NoError(t, lane.Append(1, func(b []byte) []byte { return append(b, 42) }))
		require.Equal(t, byte(42), <-a.got)
		// Also in the middle of a session.
		_, d = a.hello("real", at(2, 2), 1<<48+1<<20, false)
		require.NotNil(t, d.Welcome)
		synctest.Wait()
		<-time.After(2 * transport.Default().RedialAfter)
		for i := byte(1); ; i++ {
			require.Less(t, i, byte(100))
			require.NoError(t, lane.Append(1, func(b []byte) []byte { return append(b, i) }))
			synctest.Wait()
			if len(a.got) > 0 {
				break
			}
			<-time.After(time.Second)
		}
		e.Shutdown()
		e.Wait()
	})
}

// When the memory for sessions is full, those of strangers that have gone are forgotten
// first, the oldest before the others, and a newcomer is taken in. It is refused only
// while everybody is connected.
//
// covers I36.
func TestStrangersThatHaveGoneMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const room = 4
		member := at(50, 50)
		a := &acceptor{t: t, got: make(chan byte, 8)}
		var err error
		a.Endpoint, err = session.New(transport.Identity{
			Node: at(1, 1), Cluster: "bank", Protocol: gossip.ProtocolRange{Min: 1, Max: 1},
			Known: func(n gossip.NodeID) bool { return n == member },
		}, transport.Default(), &liar{}, nil)
		require.NoError(t, err)
		session.RememberAtMost(a.Endpoint, room)
		require.True(t, a.Begin())
		defer a.close()
		visit := func(from gossip.NodeID) *half {
			there, d := a.hello("real", from, 1, false)
			require.NotNil(t, d.Welcome, from.String())
			return there
		}
		remembered := func(from gossip.NodeID) bool {
			there, d := a.hello("real", from, 1, true)
			there.Close()
			synctest.Wait()
			return d.Welcome != nil && d.Welcome.Known
		}
		visit(member).Close()
		for i := range uint16(3 * room) {
			<-time.After(time.Millisecond)
			visit(at(100+i, gossip.UID(100+i))).Close()
			synctest.Wait()
		}
		require.True(t, remembered(member), "the member is remembered")
		require.True(t, remembered(at(111, 111)), "the last stranger too")

		var connected []*half
		for i := range uint16(room) {
			connected = append(connected, visit(at(200+i, gossip.UID(200+i))))
		}
		_, d := a.hello("real", at(300, 300), 1, false)
		require.NotNil(t, d.Refusal, "everybody is connected")
		require.Equal(t, transport.ReasonConnections, d.Refusal.Reason)
		connected[0].Close()
		synctest.Wait()
		visit(at(300, 300))
	})
}
