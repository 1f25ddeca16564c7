// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/internal/wire"
)

// pair returns two nodes that reach each other, and what closes them.
func pair(t *testing.T) (a, b *acceptor, stop func()) {
	t.Helper()
	x := &exchange{}
	a, b = newAcceptorAt(t, at(1, 1), x), newAcceptorAt(t, at(2, 2), x)
	x.set(a, b)
	return a, b, func() {
		x.set() // First: nobody dials while the nodes close.
		b.close()
		a.close()
	}
}

// byteOf encodes a message of one byte.
func byteOf(v byte) func([]byte) []byte {
	return func(b []byte) []byte { return append(b, v) }
}

// A message to a peer goes with the receipt for the frame that it answers: one message of
// the connection for both. The peer has to have said that it takes such messages, and this
// node must have a connection to the peer itself.
func TestAnAnswerGoesWithTheReceipt(t *testing.T) {
	const control = machine.LaneControl
	encode := byteOf(42)
	for name, test := range map[string]struct{ takes, connected, want bool }{
		"taken":                          {true, true, true},
		"an opener that takes none":      {false, true, false},
		"a peer that cannot be answered": {true, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b, stop := pair(t)
				defer stop()
				if test.connected {
					require.NoError(t, a.Lane(b.Self(), control).Append(1, encode))
					require.Equal(t, byte(42), <-b.got)
				}
				there := a.accept("real")
				hello := wire.AppendHello(nil, wire.Hello{
					Cluster: "bank", Protocol: gossip.ProtocolRange{Min: 1, Max: 1}, From: b.Self(), To: a.Self(),
					Lane: control, Session: 1, Token: tokenOf("real"), Answers: test.takes,
				})
				there.out <- hello
				require.NotNil(t, there.answer(t).Welcome)
				frame, _ := wire.AppendEnvelope(wire.Begin(nil), 1, encode)
				wire.SetNumber(frame, 1)
				there.out <- frame
				require.Equal(t, byte(42), <-a.got)
				synctest.Wait() // The receipt is due, and waits for more to acknowledge.

				require.Equal(t, test.want, a.Answer(b.Self(), control, 1, encode))
				got := there.answer(t)
				require.Equal(t, uint64(1), got.Acknowledged)
				if test.want {
					require.Equal(t, []wire.Answer{{Service: 1, Payload: []byte{42}}}, got.Answers)
					require.Equal(t, uint64(1), a.Counters().Answers)
				} else {
					require.Empty(t, got.Answers)
				}
				<-time.After(time.Second)
				require.Empty(t, there.in, "there is nothing more to acknowledge")
			})
		})
	}
}

// An answer that a handler gives leaves when the handler has returned, also while a receipt
// waits for more to acknowledge.
func TestTheAnswerOfAHandlerLeavesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, stop := pair(t)
		defer stop()
		answered := make(chan bool, 1)
		a.Handle(2, func(from gossip.NodeID, _ []byte) {
			answered <- a.Answer(from, machine.LaneControl, 1, byteOf(3))
			synctest.Wait() // The writer has looked, and found the handler at work.
		})
		require.NoError(t, a.Lane(b.Self(), machine.LaneControl).Append(1, byteOf(1)))
		require.Equal(t, byte(1), <-b.got)
		lane := b.Lane(a.Self(), machine.LaneControl)
		require.NoError(t, lane.Append(1, byteOf(2)))
		require.Equal(t, byte(2), <-a.got)
		synctest.Wait()
		before := time.Now()
		require.NoError(t, lane.Append(2, byteOf(0)))
		require.True(t, <-answered)
		require.Equal(t, byte(3), <-b.got)
		require.Zero(t, time.Since(before))
	})
}

// What answers a message that came with a receipt goes on the connection of that receipt,
// outside of the frames: nothing is owed for it. When the peer has sent a frame since, it goes
// with the receipt for that.
func TestWhatAnswersAReceiptGoesWhereThatCame(t *testing.T) {
	const control = machine.LaneControl
	synctest.Test(t, func(t *testing.T) {
		a, b, stop := pair(t)
		defer stop()
		require.NoError(t, b.Lane(a.Self(), control).Append(1, byteOf(9)))
		require.Equal(t, byte(9), <-a.got)
		frames := func() uint64 { return b.Counters().FramesSent }
		require.NoError(t, a.Lane(b.Self(), control).Append(1, byteOf(1)))
		require.Equal(t, byte(1), <-b.got)
		before := frames()
		require.True(t, b.Answer(a.Self(), control, 1, byteOf(2)))
		require.Equal(t, byte(2), <-a.got)
		require.Equal(t, before, frames())

		synctest.Wait()
		require.True(t, a.Answer(b.Self(), control, 1, byteOf(3)))
		require.Equal(t, byte(3), <-b.got)
		require.Equal(t, uint64(1), a.Counters().FramesSent, "outside of the frames")
		require.Equal(t, uint64(1), a.Counters().Answers)

		// The frames of a go on in order, and are acknowledged.
		require.NoError(t, a.Lane(b.Self(), control).Append(1, byteOf(4)))
		require.Equal(t, byte(4), <-b.got)
		require.True(t, b.Answer(a.Self(), control, 9, byteOf(5)), "nobody handles it")
		synctest.Wait()
		require.Equal(t, uint64(1), a.Counters().UnhandledHere)

		require.NoError(t, b.Lane(a.Self(), control).Append(1, byteOf(6)))
		require.Equal(t, byte(6), <-a.got)
		require.True(t, a.Answer(b.Self(), control, 1, byteOf(7)))
		require.Equal(t, byte(7), <-b.got)
		require.Equal(t, uint64(2), a.Counters().FramesSent)
		<-time.After(time.Second)
		require.Zero(t, a.Counters().Breaks+b.Counters().Breaks)
	})
}

// An acceptor of a version before takes nothing outside of the frames: what answers its
// receipt has to take the lane. Of one that takes it, no more waits than a bound.
func TestNothingIsSaidToWhoDoesNotHear(t *testing.T) {
	for name, hears := range map[string]bool{"a version before": false, "one that hears": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				welcome := wire.AppendWelcome(nil, wire.Welcome{Node: at(2, 2), Protocol: 1, Known: true, Answers: hears})
				receipt, _ := wire.AppendReceipt(nil, 1, nil)
				e, _ := deceived[transport.PeerDown](t, [][]byte{welcome, wire.AppendAnswer(receipt, 1, []byte{7})})
				heard := make(chan byte, 1)
				e.Handle(1, func(_ gossip.NodeID, b []byte) { heard <- b[0] })
				require.NoError(t, e.Lane(at(2, 2), machine.LaneControl).Append(1, byteOf(1)))
				require.Equal(t, byte(7), <-heard)
				require.False(t, e.Answer(at(2, 2), machine.LaneControl, 1, func(b []byte) []byte { return append(b, make([]byte, 5000)...) }))
				require.False(t, e.Answer(at(2, 2), machine.LaneControl, 1, func(b []byte) []byte { return b }))
				require.Equal(t, hears, e.Answer(at(2, 2), machine.LaneControl, 1, byteOf(2)))
				e.Shutdown()
				e.Wait()
			})
		})
	}
}

// What is said outside of the frames and cannot be read ends the connection, like a frame.
func TestWhatIsSaidBadlyEndsTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAcceptor(t)
		defer a.close()
		there, d := a.hello("real", at(2, 2), 1, false)
		require.NotNil(t, d.Welcome)
		there.out <- wire.AppendSaid(nil, 1, []byte{5})
		require.Equal(t, byte(5), <-a.got)
		there.out <- []byte{0x22, 2, 0x12, 0}
		require.Equal(t, transport.ReasonMalformed, there.answer(t).Refusal.Reason)
	})
}

// Answers that wait are bounded: above that a message has to take the lane.
func TestAnswersThatWaitAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, stop := pair(t)
		defer stop()
		require.NoError(t, a.Lane(b.Self(), machine.LaneControl).Append(1, byteOf(1)))
		require.NoError(t, b.Lane(a.Self(), machine.LaneControl).Append(1, byteOf(2)))
		require.Equal(t, byte(1), <-b.got)
		require.Equal(t, byte(2), <-a.got)
		synctest.Wait()
		large := func(b []byte) []byte { return append(b, make([]byte, 5000)...) }
		require.False(t, a.Answer(b.Self(), machine.LaneControl, 1, large))
		require.False(t, a.Answer(b.Self(), machine.LaneControl, 0, byteOf(3)), "service 0 is none")
		require.False(t, a.Answer(at(3, 3), machine.LaneControl, 1, byteOf(3)), "a stranger")
		require.True(t, a.Answer(b.Self(), machine.LaneControl, 1, byteOf(3)))
		require.Equal(t, byte(3), <-b.got)
		require.True(t, a.Answer(b.Self(), machine.LaneControl, 9, byteOf(4)))
		synctest.Wait()
		require.Equal(t, uint64(1), b.Counters().UnhandledHere, "nobody handles service 9")
	})
}

// Whatever the pauses between frames, each is acknowledged within a millisecond, or with the
// seven frames before it: the writer of receipts, which is woken for few frames, misses none.
func TestEachFrameIsAcknowledgedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &exchange{}
		a := newAcceptorAt(t, at(1, 1), x)
		defer a.close()
		there := a.accept("real")
		hello := wire.AppendHello(nil, wire.Hello{
			Cluster: "bank", Protocol: gossip.ProtocolRange{Min: 1, Max: 1}, From: at(2, 2), To: a.Self(),
			Lane: machine.LaneControl, Session: 1, Token: tokenOf("real"),
		})
		there.out <- hello
		require.NotNil(t, there.answer(t).Welcome)
		random := rand.New(rand.NewPCG(1, 2))
		sent, told, receipts := uint64(0), uint64(0), 0
		hear := func() {
			for len(there.in) > 0 {
				told, receipts = max(told, there.answer(t).Acknowledged), receipts+1
			}
		}
		const frames = 400
		for sent < frames {
			for range 1 + random.IntN(20) { // A burst: nothing is waited for but the handler.
				sent++
				frame, _ := wire.AppendEnvelope(wire.Begin(nil), 1, func(b []byte) []byte { return append(b, byte(sent)) })
				wire.SetNumber(frame, sent)
				there.out <- frame
				require.Equal(t, byte(sent), <-a.got)
				if random.IntN(2) == 0 {
					synctest.Wait()
					hear()
					require.Less(t, sent-told, uint64(8))
				}
				if random.IntN(4) == 0 {
					<-time.After(time.Duration(random.IntN(600)) * time.Microsecond)
				}
			}
			<-time.After(time.Millisecond)
			synctest.Wait()
			hear()
			require.Equal(t, sent, told)
		}
		require.Less(t, receipts, frames/2)
	})
}
