// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package transporttest

import (
	"context"
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/transport"
)

// The suite: Test runs the tests in the order of its table, from the order of messages
// and broken connections to refusals, closing and idle lanes. Each test has a world of
// its own.

// Runner runs one test of the suite: [Plain], or a function that runs it in a bubble
// of testing/synctest.
type Runner func(t *testing.T, f func(t *testing.T))

// Plain runs a test in real time.
func Plain(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	f(t)
}

// Test runs the suite. Each test is in a world of its own.
func Test(t *testing.T, run Runner, world func(testing.TB) World) {
	tests := []struct {
		name string
		f    func(*testing.T, World)
	}{
		{"EveryLaneKeepsItsOrder", testOrder},
		{"ASessionHandlesEachMessageOnceOverBrokenConnections", testBroken},
		{"AFullLaneRefusesAndHoldsUpNoOther", testFull},
		{"ALaneWithRoomTakesAMessageOfAnySize", testRoom},
		{"AnUnknownServiceIsAnsweredAndNotFatal", testUnhandled},
		{"AnotherIncarnationIsRefusedAndLossesAreTold", testIncarnation},
		{"ABlockedPeerIsShutOut", testBlock},
		{"ClosingIsIdempotentAndFinal", testClose},
		{"AnAddressReachesWhoeverLivesThere", testAddress},
		{"AnAddressFollowsARestart", testRestart},
		{"AProbeSaysWhoAnswers", testProbe},
		{"HandshakesThatDoNotFitAreRefusedOnBothEnds", testRefusals},
		{"MessagesHaveALargestSize", testSizes},
		{"AStrangerSendsNoLargeFrames", testStranger},
		{"APeerThatStaysAwayIsGivenUp", testAway},
		{"APassageSaysWhatHasLeft", testPassage},
		{"ALaneAsksForMoreBeforeItTakesABatch", testDefer},
		{"AnAnswerNeedsNoFrame", testAnswer},
		{"IdleLanesCloseAndOpenAgain", testIdle},
		{"LanesWithoutAUIDAreForControl", testUnnamed},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			run(t, func(t *testing.T) {
				t.Helper()
				test.f(t, world(t))
			})
		})
	}
}

func testOrder(t *testing.T, w World) {
	t.Helper()
	const count = 2000
	a := Start(t, w, Spec{}, nil)
	for _, class := range classes() {
		b := Start(t, w, Spec{UID: 2}, nil)
		lane := a.Lane(b.Self(), class)
		for i := range count {
			Send(t, lane, i)
		}
		b.UntilReceived(t, count)
		b.RequireSequence(t, a.Self(), count)
		up := UntilNotice(t, a, func(n transport.PeerUp) bool { return n.Peer == b.Self() })
		require.Equal(t, class, up.Lane)
		require.Equal(t, uint16(3), up.Protocol)
	}
}

func testBroken(t *testing.T, w World) {
	t.Helper()
	const count, every = 6000, 500
	a := Start(t, w, Spec{}, nil)
	b := Start(t, w, Spec{UID: 2}, nil)
	lane := a.Lane(b.Self(), machine.LaneMessage)
	for i := range count {
		Send(t, lane, i)
		if i%every == every/2 {
			b.UntilReceived(t, i-every/4)
			w.Break(a.Self().Address, b.Self().Address)
		}
	}
	b.UntilReceived(t, count)
	b.RequireSequence(t, a.Self(), count)
	require.Zero(t, a.Counters().Lost)
	require.NotZero(t, a.Counters().Breaks)
}

func testFull(t *testing.T, w World) {
	t.Helper()
	hold := make(chan struct{})
	cfg := Config()
	cfg.WindowBytes = 64 << 10
	a := Start(t, w, Spec{Config: cfg}, nil)
	b := Start(t, w, Spec{UID: 2}, hold)
	c := Start(t, w, Spec{UID: 3}, nil)
	lane := a.Lane(b.Self(), machine.LaneMessage)
	count := 0
	for ; ; count++ {
		if err := lane.Append(Service, Number(count)); err != nil {
			require.ErrorIs(t, err, transport.ErrFull)
			break
		}
		require.Less(t, count, cfg.WindowBytes, "the window is not bounded")
	}
	require.ErrorIs(t, lane.Room(patience.Expiring(t, 100*time.Millisecond)), context.DeadlineExceeded)
	require.NotZero(t, a.Counters().Full)

	Send(t, a.Lane(c.Self(), machine.LaneMessage), 0)
	c.UntilReceived(t, 1)

	close(hold)
	Send(t, lane, count)
	b.UntilReceived(t, count+1)
	b.RequireSequence(t, a.Self(), count+1)
}

// A sender that has waited for room can append a message, even one larger than the rest of
// the window.
func testRoom(t *testing.T, w World) {
	t.Helper()
	hold := make(chan struct{})
	defer close(hold)
	cfg := Config()
	cfg.WindowBytes = 64 << 10
	a := Start(t, w, Spec{Config: cfg}, nil)
	b := Start(t, w, Spec{UID: 2}, hold)
	lane := a.Lane(b.Self(), machine.LaneMessage)
	large := func(n int) func([]byte) []byte { return func(b []byte) []byte { return append(b, make([]byte, n)...) } }
	require.NoError(t, lane.Append(Service, large(20<<10)))
	require.NoError(t, lane.Room(t.Context()))
	require.NoError(t, lane.Append(Service, large(60<<10)))
	require.ErrorIs(t, lane.Append(Service, large(1)), transport.ErrFull)
}

func testUnhandled(t *testing.T, w World) {
	t.Helper()
	a := Start(t, w, Spec{}, nil)
	b := Start(t, w, Spec{UID: 2}, nil)
	lane := a.Lane(b.Self(), machine.LaneControl)
	for range 3 {
		require.NoError(t, lane.Append(4711, Number(0)))
	}
	Send(t, lane, 0)
	b.UntilReceived(t, 1)
	here := UntilNotice(t, b, func(n transport.Unhandled) bool { return n.Service == 4711 })
	require.Equal(t, transport.Unhandled{Peer: a.Self(), Lane: machine.LaneControl, Service: 4711, Inbound: true}, here)
	there := UntilNotice(t, a, func(n transport.Unhandled) bool { return n.Service == 4711 })
	require.Equal(t, transport.Unhandled{Peer: b.Self(), Lane: machine.LaneControl, Service: 4711}, there)
	require.Equal(t, uint64(3), b.Counters().UnhandledHere)
	Send(t, lane, 1)
	b.UntilReceived(t, 2)
	require.Zero(t, a.Counters().Breaks)
}

// covers B23.
func testIncarnation(t *testing.T, w World) {
	t.Helper()
	hold := make(chan struct{})
	a := Start(t, w, Spec{}, nil)
	b := Start(t, w, Spec{UID: 2}, hold)
	old := b.Self()
	lane := a.Lane(old, machine.LaneMessage)
	for i := range 5 {
		Send(t, lane, i)
	}
	UntilNotice(t, a, func(n transport.PeerUp) bool { return n.Peer == old })
	w.Break(a.Self().Address, old.Address)
	closed := make(chan error)
	go func() { closed <- b.Close() }() // Owner: this test, which waits below.
	close(hold)
	require.NoError(t, <-closed)

	again := Start(t, w, Spec{UID: 22, Address: old.Address}, nil)
	Send(t, lane, 5)
	down := UntilNotice(t, a, func(n transport.PeerDown) bool { return n.Peer == old })
	require.Equal(t, transport.ReasonIncarnation, Refusal(t, down.Err).Reason)
	require.Positive(t, down.Lost)
	require.Equal(t, uint64(down.Lost), a.Counters().Lost)
	inbound := UntilNotice(t, again, func(n transport.Refused) bool { return n.Inbound })
	require.Equal(t, a.Self(), inbound.Node)

	fresh := a.Lane(again.Self(), machine.LaneMessage)
	Send(t, fresh, 0)
	again.UntilReceived(t, 1)
	again.RequireSequence(t, a.Self(), 1)
}

// covers B25.
func testBlock(t *testing.T, w World) {
	t.Helper()
	a := Start(t, w, Spec{}, nil)
	b := Start(t, w, Spec{UID: 2}, nil)
	lane := a.Lane(b.Self(), machine.LaneControl)
	Send(t, lane, 0)
	b.UntilReceived(t, 1)
	b.Block(a.Self(), "downed by the leader")

	down := UntilNotice(t, a, func(n transport.PeerDown) bool { return n.Peer == b.Self() })
	refused := Refusal(t, down.Err)
	require.Equal(t, transport.ReasonBlocked, refused.Reason)
	require.Contains(t, refused.Error(), "downed by the leader")
	UntilNotice(t, b, func(n transport.Refused) bool { return n.Inbound && n.Node == a.Self() })
	require.NotZero(t, b.Counters().RefusedInbound[transport.ReasonBlocked])

	err := b.Lane(a.Self(), machine.LaneControl).Append(Service, Number(0))
	require.Equal(t, transport.ReasonBlocked, Refusal(t, err).Reason)
	_, err = a.Probe(context.Background(), b.Self().Address)
	require.Equal(t, transport.ReasonBlocked, Refusal(t, err).Reason)
}

func testClose(t *testing.T, w World) {
	t.Helper()
	a := Start(t, w, Spec{}, nil)
	b := Start(t, w, Spec{UID: 2}, nil)
	lane := a.Lane(b.Self(), machine.LaneControl)
	Send(t, lane, 0)
	b.UntilReceived(t, 1)
	require.NoError(t, a.Close())
	require.NoError(t, a.Close())
	require.ErrorIs(t, lane.Append(Service, Number(1)), transport.ErrClosed)
	require.ErrorIs(t, lane.Room(context.Background()), transport.ErrClosed)
	_, err := a.Probe(context.Background(), b.Self().Address)
	require.ErrorIs(t, err, transport.ErrClosed)
	down := UntilNotice(t, a, func(transport.PeerDown) bool { return true })
	require.ErrorIs(t, down.Err, transport.ErrClosed)

	never := w.New(t, Spec{UID: 9}.withDefaults())
	require.NoError(t, never.Close())
	require.Error(t, never.Start(context.Background()))
}

func testAddress(t *testing.T, w World) {
	t.Helper()
	a := Start(t, w, Spec{}, nil)
	b := Start(t, w, Spec{UID: 2}, nil)
	anyone := a.Lane(gossip.NodeID{Address: b.Self().Address}, machine.LaneControl)
	named := a.Lane(b.Self(), machine.LaneControl)
	for i := range 100 {
		Send(t, anyone, i)
	}
	b.UntilReceived(t, 100)
	for i := 100; i < 200; i += 2 {
		Send(t, named, i)
		Send(t, anyone, i+1)
	}
	b.UntilReceived(t, 200)
	b.RequireSequence(t, a.Self(), 200)
	require.Equal(t, uint64(1), b.Counters().Accepts, "one connection for both")
}

func testRestart(t *testing.T, w World) {
	t.Helper()
	a := Start(t, w, Spec{}, nil)
	b := Start(t, w, Spec{UID: 2}, nil)
	anyone := a.Lane(gossip.NodeID{Address: b.Self().Address}, machine.LaneControl)
	Send(t, anyone, 0)
	b.UntilReceived(t, 1)
	require.NoError(t, b.Close())
	again := Start(t, w, Spec{UID: 22, Address: b.Self().Address}, nil)
	// What was appended before the break was noticed is lost with the old
	// incarnation, and told. What comes after reaches the new one.
	UntilNotice(t, a, func(n transport.PeerDown) bool {
		return n.Peer == b.Self()
	})
	Send(t, anyone, 0)
	again.UntilReceived(t, 1)
}

func testProbe(t *testing.T, w World) {
	t.Helper()
	a := Start(t, w, Spec{}, nil)
	b := Start(t, w, Spec{UID: 2}, nil)
	node, err := a.Probe(context.Background(), b.Self().Address)
	require.NoError(t, err)
	require.Equal(t, b.Self(), node)
	require.Zero(t, b.Counters().Accepts, "a probe opens no session")

	require.NoError(t, b.Close())
	_, err = a.Probe(context.Background(), b.Self().Address)
	require.Error(t, err)
}

// covers B26, B28, I32.
func testRefusals(t *testing.T, w World) {
	t.Helper()
	big := Config()
	big.MaxFrameBytes *= 2
	tests := []struct {
		name   string
		other  Spec
		lane   machine.Lane
		reason transport.Reason
		says   []string
	}{
		{"name", Spec{Cluster: "shop"}, machine.LaneControl, transport.ReasonClusterName, []string{`"shop"`, `"bank"`}},
		{"id", Spec{ID: gossip.ClusterID{Born: 2, Nonce: 2}}, machine.LaneMessage, transport.ReasonClusterID, []string{"another cluster"}},
		{"protocol", Spec{Protocol: gossip.ProtocolRange{Min: 999, Max: 1001}}, machine.LaneControl, transport.ReasonProtocol, []string{"999 to 1001", "1 to 3"}},
		{"limits", Spec{Config: big}, machine.LaneControl, transport.ReasonLimits, []string{"max-frame-bytes"}},
	}
	b := Start(t, w, Spec{UID: 2, ID: gossip.ClusterID{Born: 1, Nonce: 1}}, nil)
	for i, test := range tests {
		test.other.UID = gossip.UID(100 + i)
		a := Start(t, w, test.other, nil)
		require.NoError(t, a.Lane(b.Self(), test.lane).Append(Service, Number(0)), test.name)
		down := UntilNotice(t, a, func(transport.PeerDown) bool { return true })
		refused := Refusal(t, down.Err)
		require.Equal(t, test.reason, refused.Reason, test.name)
		require.Equal(t, b.Self(), refused.Peer, test.name)
		for _, s := range test.says {
			require.Contains(t, refused.Error(), s, test.name)
		}
		UntilNotice(t, a, func(n transport.Refused) bool { return !n.Inbound && n.Err.Reason == test.reason })
		UntilNotice(t, b, func(n transport.Refused) bool { return n.Inbound && n.Node == a.Self() })
		require.NotZero(t, a.Counters().RefusedOutbound[test.reason], test.name)
		require.NotZero(t, b.Counters().RefusedInbound[test.reason], test.name)
	}
	require.Zero(t, b.Counters().Received)
}

func testSizes(t *testing.T, w World) {
	t.Helper()
	a := Start(t, w, Spec{}, nil)
	b := w.New(t, Spec{UID: 2}.withDefaults())
	got := make(chan int, 1)
	b.Handle(Service, func(_ gossip.NodeID, frame []byte) { got <- len(frame) })
	require.NoError(t, b.Start(context.Background()))
	defer func() { require.NoError(t, b.Close()) }()
	lane := a.Lane(b.Self(), machine.LaneBulk)
	largest := Config().MaxMessageBytes()
	zeros := func(n int) func([]byte) []byte {
		return func(b []byte) []byte { return append(b, make([]byte, n)...) }
	}
	require.ErrorIs(t, lane.Append(Service, zeros(largest+1)), transport.ErrTooLarge)
	require.Equal(t, uint64(1), a.Counters().TooLarge)
	require.NoError(t, lane.Append(Service, zeros(largest)))
	require.Equal(t, largest, <-got)
	require.NoError(t, lane.Room(context.Background()))
	require.NoError(t, lane.Append(Service, zeros(0)))
	require.Zero(t, <-got)
	require.Error(t, lane.Append(0, zeros(1)))
	require.Error(t, lane.Append(Service, func([]byte) []byte { return nil }))
}

// covers B7, I36.
func testStranger(t *testing.T, w World) {
	t.Helper()
	const member = 3
	b := Start(t, w, Spec{UID: 2, Known: func(n gossip.NodeID) bool { return n.UID == member }}, nil)
	large := func(n int) func([]byte) []byte {
		return func(b []byte) []byte { return append(binary.BigEndian.AppendUint64(b, 0), make([]byte, n)...) }
	}
	send := func(uid gossip.UID, size int) *Node {
		a := Start(t, w, Spec{UID: uid}, nil)
		require.NoError(t, a.Lane(b.Self(), machine.LaneMessage).Append(Service, large(size)))
		return a
	}
	send(1, transport.StrangerFrameBytes/2)
	b.UntilReceived(t, 1)
	for i, size := range []int{transport.StrangerFrameBytes, 3 << 20} {
		a := send(gossip.UID(10+i), size)
		inbound := UntilNotice(t, b, func(n transport.Refused) bool { return n.Inbound && n.Node == a.Self() })
		require.Equal(t, transport.ReasonMalformed, inbound.Err.Reason)
		require.Contains(t, inbound.Err.Error(), "no member")
		require.NotZero(t, b.Counters().RefusedInbound[transport.ReasonMalformed])
	}
	send(member, 3<<20)
	b.UntilReceived(t, 2)
	require.Equal(t, uint64(2), b.Counters().Received)
}

func testAway(t *testing.T, w World) {
	t.Helper()
	cfg := Config()
	cfg.MaxSilence, cfg.GiveUpAfter = 200*time.Millisecond, 400*time.Millisecond
	a := Start(t, w, Spec{Config: cfg}, nil)
	gone := Start(t, w, Spec{UID: 2}, nil)
	require.NoError(t, gone.Close())
	lane := a.Lane(gone.Self(), machine.LaneControl)
	for i := range 3 {
		Send(t, lane, i)
	}
	down := UntilNotice(t, a, func(transport.PeerDown) bool { return true })
	require.ErrorIs(t, down.Err, transport.ErrUnreachable)
	require.Equal(t, 3, down.Lost)
	require.Equal(t, gone.Self(), down.Peer)

	back := Start(t, w, Spec{UID: 2, Address: gone.Self().Address}, nil)
	Send(t, lane, 0)
	back.UntilReceived(t, 1)
}

// Messages that were appended while the peer did not answer have not left, before and
// after the peer is given up; messages that a peer has received have left, also when
// that peer is gone.
func testPassage(t *testing.T, w World) {
	t.Helper()
	cfg := Config()
	cfg.MaxSilence, cfg.GiveUpAfter = 200*time.Millisecond, 400*time.Millisecond
	a := Start(t, w, Spec{Config: cfg}, nil)
	b := Start(t, w, Spec{UID: 2}, nil)
	gone := Start(t, w, Spec{UID: 3}, nil)
	require.NoError(t, gone.Close())
	left := track(t, a.Lane(b.Self(), machine.LaneMessage), 0)
	b.UntilReceived(t, 1)
	require.NoError(t, b.Close())
	lane := a.Lane(gone.Self(), machine.LaneMessage)
	kept := []tracked{track(t, lane, 0), track(t, lane, 1)}
	require.Same(t, kept[0].Passage, kept[1].Passage)
	require.GreaterOrEqual(t, kept[1].place, kept[0].place)
	for _, m := range kept {
		below, over := m.Written()
		require.LessOrEqual(t, below, m.place)
		require.False(t, over, "somebody may come back")
	}
	UntilNotice(t, a, func(n transport.PeerDown) bool { return n.Peer == gone.Self() })
	for _, m := range kept {
		below, over := m.Written()
		require.LessOrEqual(t, below, m.place)
		require.True(t, over)
	}
	below, _ := left.Written()
	require.Greater(t, below, left.place)
}

// tracked is a message's passage and place.
type tracked struct {
	transport.Passage

	place uint64
}

func track(t *testing.T, l transport.Lane, i int) tracked {
	t.Helper()
	p, place, err := l.Track(Service, Number(i))
	require.NoError(t, err)
	return tracked{p, place}
}

func testDefer(t *testing.T, w World) {
	t.Helper()
	cfg := Config()
	cfg.MaxSilence, cfg.GiveUpAfter = 200*time.Millisecond, 400*time.Millisecond
	a := Start(t, w, Spec{Config: cfg}, nil)
	b := Start(t, w, Spec{UID: 2}, nil)
	gone := Start(t, w, Spec{UID: 3}, nil)
	require.NoError(t, gone.Close())
	lane, calls := a.Lane(b.Self(), machine.LaneMessage), make(chan struct{}, 9)
	require.True(t, lane.Defer(func() {
		if lane.Defer(func() {}) {
			t.Error("an append would go with the batch that is taken")
		}
		Send(t, lane, 0)
		calls <- struct{}{}
	}), "it is not connected: nothing goes at once")
	<-calls // The lane was dialled, although nothing was appended.
	b.UntilReceived(t, 1)
	n := 1
	// When nothing waits any more, a message goes at once, and then the next may wait.
	for ; !lane.Defer(func() { calls <- struct{}{}; Send(t, lane, n); Send(t, lane, n+1) }); n++ {
		Send(t, lane, n)
	}
	b.UntilReceived(t, n+2)
	b.RequireSequence(t, a.Self(), n+2)

	lost := a.Lane(gone.Self(), machine.LaneMessage)
	require.True(t, lost.Defer(func() { calls <- struct{}{} }), "it is not connected")
	Send(t, lost, 0)
	require.True(t, lost.Defer(func() { calls <- struct{}{} }))
	UntilNotice(t, a, func(n transport.PeerDown) bool { return n.Peer == gone.Self() })
	<-calls
	<-calls
	<-calls // The third call comes when the session has ended.
	require.Empty(t, calls, "once each")
	require.NoError(t, a.Close())
	require.False(t, lane.Defer(func() { t.Error("was not asked for") }), "an append would fail")
}

func testAnswer(t *testing.T, w World) {
	t.Helper()
	a := Start(t, w, Spec{}, nil)
	answerer, ok := a.Transport.(transport.Answerer)
	if !ok {
		return // It is optional.
	}
	b := Start(t, w, Spec{UID: 2}, nil)
	require.False(t, answerer.Answer(b.Self(), machine.LaneControl, Service, Number(0)), "there is no connection")
	Send(t, a.Lane(b.Self(), machine.LaneControl), 0)
	Send(t, b.Lane(a.Self(), machine.LaneControl), 0)
	a.UntilReceived(t, 1)
	b.UntilReceived(t, 1)
	UntilNotice(t, a, func(transport.PeerUp) bool { return true })
	for i := 1; i <= 3; i++ {
		require.True(t, answerer.Answer(b.Self(), machine.LaneControl, Service, Number(i)))
	}
	b.UntilReceived(t, 4)
	b.RequireSequence(t, a.Self(), 4)
	require.Equal(t, uint64(3), a.Counters().Answers)
	require.Equal(t, uint64(1), a.Counters().FramesSent)
	require.False(t, answerer.Answer(b.Self(), machine.LaneMessage, Service, Number(4)), "that lane has no connection")
}

func testIdle(t *testing.T, w World) {
	t.Helper()
	cfg := Config()
	cfg.IdleAfter = 100 * time.Millisecond
	a := Start(t, w, Spec{Config: cfg}, nil)
	b := Start(t, w, Spec{UID: 2}, nil)
	control, message := a.Lane(b.Self(), machine.LaneControl), a.Lane(b.Self(), machine.LaneMessage)
	Send(t, control, 0)
	b.UntilReceived(t, 1)
	Send(t, message, 1)
	for _, class := range []transport.LaneClass{machine.LaneControl, machine.LaneMessage} {
		down := UntilNotice(t, a, func(d transport.PeerDown) bool { return d.Lane == class })
		require.Equal(t, transport.PeerDown{Peer: b.Self(), Lane: class, Err: transport.ErrIdle}, down)
	}
	Send(t, message, 2)
	Send(t, control, 3)
	b.UntilReceived(t, 4)
	require.Equal(t, uint64(4), b.Counters().Accepts, "each came twice")
	sent, got := a.Counters().Lanes, b.Counters().Lanes
	for lane, want := range map[transport.LaneClass][2]uint64{machine.LaneControl: {2, 2}, machine.LaneMessage: {2, 2}, machine.LaneBulk: {}} {
		require.Equal(t, want, [2]uint64{got[lane].Accepts, got[lane].Received}, "%s: connections and messages", lane)
		require.Equal(t, want, [2]uint64{sent[lane].Connects, sent[lane].Sent}, "%s: connections and messages", lane)
	}
}

func testUnnamed(t *testing.T, w World) {
	t.Helper()
	a := Start(t, w, Spec{}, nil)
	nobody := gossip.NodeID{Address: a.Self().Address}
	require.ErrorIs(t, a.Lane(nobody, machine.LaneMessage).Append(Service, Number(0)), transport.ErrUnnamed)
	require.ErrorIs(t, a.Lane(gossip.NodeID{}, machine.LaneControl).Append(Service, Number(0)), transport.ErrUnnamed)
}
