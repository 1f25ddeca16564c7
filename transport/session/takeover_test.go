// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/internal/wire"
	"github.com/quorate/quorate/transport/session"
)

// Which process speaks for a node. After connections in memory, and acceptors that are
// dialled by processes of different owners, come sessions that only their owner takes over,
// numbers, nodes that get their place back, questions at the address of a node, tokens;
// last strangers that make room.

// half is one end of a connection inside the process.
type half struct {
	in, out chan []byte
	over    chan struct{} // Closed when either end closes.
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

// acceptor is a node that the tests dial.
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
	return newAcceptorAt(t, at(1, 1), &liar{})
}

func newAcceptorAt(t *testing.T, self gossip.NodeID, d session.Dialer) *acceptor {
	t.Helper()
	a := &acceptor{Endpoint: newEndpoint(t, self, d), t: t, got: make(chan byte, 8)}
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

// Dial opens a pipe to the acceptor in the name of one owner.
func (a *acceptor) Dial(context.Context, gossip.Address, transport.LaneClass) (session.Pipe, error) {
	return a.accept("real"), nil
}

// tokenOf returns the token that the process of an owner shows.
func tokenOf(owner string) wire.Token {
	sum := sha256.Sum256([]byte(owner))
	return wire.Token(sum[:len(wire.Token{})])
}

// hello sends a Hello on a new connection, and returns the connection with the answer.
func (a *acceptor) hello(owner string, from gossip.NodeID, number uint64, resumed bool) (*half, wire.Downstream) {
	a.t.Helper()
	there := a.accept(owner)
	hello := wire.AppendHello(nil, wire.Hello{
		Cluster: "bank", Protocol: gossip.ProtocolRange{Min: 1, Max: 1}, From: from, To: a.Self(),
		Lane: machine.LaneControl, Session: number, Resumed: resumed, Token: tokenOf(owner),
	})
	there.out <- hello
	return there, there.answer(a.t)
}

// answer waits for the next message of the acceptor.
func (h *half) answer(t *testing.T) wire.Downstream {
	t.Helper()
	var in session.Incoming
	require.NoError(t, h.Recv(&in), "the acceptor says why")
	d, err := wire.ParseDownstream(in.Bytes)
	require.NoError(t, err)
	return d
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

// exchange is how acceptors dial each other, by address.
type exchange struct {
	mu    sync.Mutex
	nodes map[gossip.Address]*acceptor
	dials atomic.Int32 // How many connections were attempted.
}

func (x *exchange) set(nodes ...*acceptor) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.nodes = make(map[gossip.Address]*acceptor)
	for _, n := range nodes {
		x.nodes[n.Self().Address] = n
	}
}

func (x *exchange) Dial(_ context.Context, to gossip.Address, _ transport.LaneClass) (session.Pipe, error) {
	x.dials.Add(1)
	x.mu.Lock()
	defer x.mu.Unlock()
	if n := x.nodes[to]; n != nil {
		return n.accept("somebody"), nil
	}
	return nil, errors.New("nobody listens")
}

// While no process answers at its address, a connected node is not displaced by
// another process that claims to be it. The node's own next connection displaces the
// one before. A node that has stayed away long enough loses its claim to another
// process.
//
// covers B24, B26.
func TestASessionIsTakenOverByItsOwnerAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAcceptor(t)
		defer a.close()
		first, d := a.hello("real", at(2, 2), 1, false)
		require.NotNil(t, d.Welcome)
		<-time.After(2 * transport.Default().MaxSilence)
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
		<-time.After(transport.Default().MaxSilence - transport.Default().HandshakeTimeout/4)
		_, d = a.hello("impostor", at(2, 2), 2, false)
		require.NotNil(t, d.Refusal, "its owner has had time to dial anew when it is refused, not when it came")
		<-time.After(transport.Default().MaxSilence)
		_, d = a.hello("another", at(2, 2), 2, false)
		require.NotNil(t, d.Welcome)
	})
}

// No session number shuts out the numbers that come after it, and an opener with too
// low a number is told the number that is known.
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

// A process that connected first in the name of a node loses the claim at once when the
// node connects, whatever session number the process began with, and does not get the claim
// back, since the node is asked at its address. Nor does the process get it long after, when
// another incarnation of the node lives there.
//
// covers B24, B26.
func TestANodeGetsItsPlaceFromWhoWasThereInItsName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var x exchange
		a, node, restarted := newAcceptorAt(t, at(1, 1), &x), newAcceptorAt(t, at(2, 2), &x), newAcceptorAt(t, at(2, 3), &x)
		defer a.close()
		defer restarted.close()
		x.set(a, node)
		squatter, d := a.hello("squatter", at(2, 2), 1<<48, false)
		require.NotNil(t, d.Welcome, "nobody has been there before")
		began := time.Now()
		lane := node.Lane(a.Self(), machine.LaneControl)
		require.NoError(t, lane.Append(1, func(b []byte) []byte { return append(b, 42) }))
		require.Equal(t, byte(42), <-a.got)
		require.Zero(t, time.Since(began))
		d = squatter.answer(t)
		require.NotNil(t, d.Refusal)
		require.Equal(t, transport.ReasonTaken, d.Refusal.Reason)
		require.Contains(t, d.Refusal.Detail, "squatter")
		for range 3 {
			_, d = a.hello("squatter", at(2, 2), 1<<48+1, false)
			require.NotNil(t, d.Refusal)
			require.Equal(t, transport.ReasonTaken, d.Refusal.Reason)
		}
		require.NoError(t, lane.Append(1, func(b []byte) []byte { return append(b, 43) }))
		require.Equal(t, byte(43), <-a.got)
		require.Equal(t, uint64(4), a.Counters().RefusedInbound[transport.ReasonTaken])
		require.Zero(t, node.Counters().Breaks)

		node.close()
		x.set(a, restarted)
		<-time.After(3 * transport.Default().GiveUpAfter)
		require.NoError(t, restarted.Lane(a.Self(), machine.LaneControl).Append(1, func(b []byte) []byte { return append(b, 44) }))
		require.Equal(t, byte(44), <-a.got)
		_, d = a.hello("squatter", at(2, 2), 1<<48+1, false)
		require.NotNil(t, d.Refusal, "the new incarnation says that it is not the old one")
	})
}

// A connection belongs to one process for its whole life.
//
// covers B5, B24.
func TestASecondHandshakeIsOfTheSameProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAcceptor(t)
		defer a.close()
		there, d := a.hello("real", at(2, 2), 1, true)
		require.NotNil(t, d.Welcome)
		require.False(t, d.Welcome.Known, "it may begin another session")
		hello := wire.AppendHello(nil, wire.Hello{
			Cluster: "bank", Protocol: gossip.ProtocolRange{Min: 1, Max: 1}, From: at(2, 2), To: a.Self(),
			Lane: machine.LaneControl, Session: 2, Token: tokenOf("other"),
		})
		there.out <- hello
		d = there.answer(t)
		require.NotNil(t, d.Refusal)
		require.Equal(t, transport.ReasonMalformed, d.Refusal.Reason)
	})
}

// A node whose connection broke reconnects at once, without being asked at its
// address: it may be a node that can dial and cannot be dialled.
//
// covers B24.
func TestAReconnectAsksNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var x exchange
		a := newAcceptorAt(t, at(1, 1), &x)
		defer a.close()
		began := time.Now()
		for _, number := range []uint64{1, 1, 2} {
			_, d := a.hello("real", at(2, 2), number, false)
			require.NotNil(t, d.Welcome)
			require.True(t, d.Welcome.Known)
		}
		require.Zero(t, time.Since(began))
		require.Zero(t, x.dials.Load())
	})
}

// silent is a dialer whose connections are never answered. It counts how many there
// are at a time.
type silent struct{ now, most, all atomic.Int32 }

func (s *silent) Dial(ctx context.Context, _ gossip.Address, _ transport.LaneClass) (session.Pipe, error) {
	s.all.Add(1)
	if now := s.now.Add(1); now > s.most.Load() {
		s.most.Store(now)
	}
	defer s.now.Add(-1)
	<-ctx.Done()
	return nil, ctx.Err()
}

// However many processes dial in the name of a node, the node is asked one question at
// a time.
//
// covers I36.
func TestANodeIsAskedOneQuestionAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s silent
		a := newAcceptorAt(t, at(1, 1), &s)
		defer a.close()
		_, d := a.hello("real", at(2, 2), 1, false)
		require.NotNil(t, d.Welcome)
		var others sync.WaitGroup
		for range 9 {
			others.Go(func() { // Waited for below.
				there := a.accept("impostor")
				hello := wire.AppendHello(nil, wire.Hello{
					Cluster: "bank", Protocol: gossip.ProtocolRange{Min: 1, Max: 1}, From: at(2, 2), To: a.Self(),
					Lane: machine.LaneControl, Session: 2, Token: tokenOf("impostor"),
				})
				there.out <- hello
				var in session.Incoming
				for there.Recv(&in) == nil {
					d, err := wire.ParseDownstream(in.Bytes)
					require.NoError(t, err)
					require.Nil(t, d.Welcome)
				}
			})
		}
		others.Wait()
		require.Equal(t, int32(1), s.most.Load())
		require.Less(t, s.all.Load(), int32(9), "who waits too long goes without")
	})
}

// caller returns a node that has something to say to node 1, and the far ends of the
// connections that it opens.
func caller(t *testing.T) (*acceptor, <-chan *half) {
	t.Helper()
	opened := make(chan *half, 1)
	node := newAcceptorAt(t, at(2, 2), dial(func() session.Pipe {
		here, there := connection()
		opened <- there
		return here
	}))
	require.NoError(t, node.Lane(at(1, 1), machine.LaneControl).Append(1, func(b []byte) []byte { return append(b, 1) }))
	return node, opened
}

// The token that a node shows to one peer is confirmed for that peer alone: a peer
// cannot show it to a third node.
//
// covers B26.
func TestATokenIsForOnePeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node, opened := caller(t)
		defer node.close()
		there := <-opened
		var in session.Incoming
		require.NoError(t, there.Recv(&in))
		shown, err := wire.ParseHello(in.Bytes)
		require.NoError(t, err)
		there.Close()
		for _, c := range []struct {
			by    gossip.NodeID
			token wire.Token
			own   bool
		}{
			{at(1, 1), shown.Token, true},
			{at(1, 2), shown.Token, false},
			{at(3, 1), shown.Token, false},
			{at(1, 1), tokenOf("other"), false},
			{at(1, 1), wire.Token{}, false},
		} {
			asking := node.accept("somebody")
			hello := wire.AppendHello(nil, wire.Hello{
				Cluster: "bank", Protocol: gossip.ProtocolRange{Min: 1, Max: 1}, From: c.by, To: node.Self(),
				Lane: machine.LaneControl, Asked: c.token,
			})
			asking.out <- hello
			require.Equal(t, c.own, asking.answer(t).Welcome.Own, "%v", c)
			asking.Close()
		}
	})
}

type dial func() session.Pipe

func (d dial) Dial(context.Context, gossip.Address, transport.LaneClass) (session.Pipe, error) {
	return d(), nil
}

// A node that is told that a later session of it is known begins one above that
// number.
//
// covers B24.
func TestWhoIsBehindGoesAboveTheNumberThatIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node, opened := caller(t)
		defer node.close()
		var numbers []uint64
		for range 2 {
			there := <-opened
			var in session.Incoming
			require.NoError(t, there.Recv(&in))
			h, err := wire.ParseHello(in.Bytes)
			require.NoError(t, err)
			numbers = append(numbers, h.Session)
			refusal := wire.AppendRefusal(nil, at(1, 1), &transport.RefusedError{Reason: transport.ReasonStale, Session: 77, Detail: "stale"})
			there.out <- refusal
		}
		require.Equal(t, []uint64{1, 78}, numbers)
	})
}

// When the memory for sessions is full, records of strangers that have gone are
// forgotten first, the oldest before the others, and a new peer is admitted. It is
// refused only while every peer is connected.
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
		require.LessOrEqual(t, session.Claims(a.Endpoint), room)
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
		visit(at(300, 300)).Close()
		for _, c := range connected {
			c.Close()
		}
		<-time.After(3 * transport.Default().GiveUpAfter)
		visit(at(400, 400))
		require.Equal(t, 1, session.Claims(a.Endpoint), "strangers are not remembered for ever")
	})
}
