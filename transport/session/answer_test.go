// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/transport/internal/wire"
)

// A message to a peer goes with the receipt for the frame that it answers: one message of
// the connection for both. The peer has to have said that it takes such messages, and this
// node must have a connection to the peer itself.
func TestAnAnswerGoesWithTheReceipt(t *testing.T) {
	const control = machine.LaneControl
	encode := func(b []byte) []byte { return append(b, 42) }
	for name, test := range map[string]struct{ takes, connected, want bool }{
		"taken":                          {true, true, true},
		"an opener that takes none":      {false, true, false},
		"a peer that cannot be answered": {true, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := &exchange{}
				a, b := newAcceptorAt(t, at(1, 1), x), newAcceptorAt(t, at(2, 2), x)
				x.set(a, b)
				defer a.close()
				defer b.close()
				defer x.set() // First: nobody dials while the nodes close.
				if test.connected {
					require.NoError(t, a.Lane(b.Self(), control).Append(1, encode))
					require.Equal(t, byte(42), <-b.got)
				}
				there := a.accept("real")
				hello, err := wire.AppendHello(nil, wire.Hello{
					Cluster: "bank", Protocol: gossip.ProtocolRange{Min: 1, Max: 1}, From: b.Self(), To: a.Self(),
					Lane: control, Session: 1, Token: tokenOf("real"), Answers: test.takes,
				})
				require.NoError(t, err)
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

// Answers that wait are bounded: above that a message has to take the lane.
func TestAnswersThatWaitAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &exchange{}
		a, b := newAcceptorAt(t, at(1, 1), x), newAcceptorAt(t, at(2, 2), x)
		x.set(a, b)
		defer a.close()
		defer b.close()
		defer x.set() // First: nobody dials while the nodes close.
		byteOf := func(v byte) func([]byte) []byte { return func(b []byte) []byte { return append(b, v) } }
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
