// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/machine/wire"
	"github.com/quorate/quorate/sharding"
)

type value = *wrapperspb.StringValue

// answer takes the reply of an entity.
type answer struct{ ack *Ack }

func (a *answer) Reply(message any) error {
	a.ack = message.(*Ack)
	return nil
}

// frameOf returns a frame with messages that have numbers.
func frameOf(session byte, numbers ...uint64) *Frame[value] {
	f := &Frame[value]{session: Session{session}}
	for _, n := range numbers {
		f.items = append(f.items, item[value]{number: n, message: wrapperspb.String("m")})
	}
	return f
}

// handled returns how many messages of a frame an inbox takes, and the ack.
func handled(t *testing.T, in *Inbox, f *Frame[value]) (int, *Ack) {
	t.Helper()
	n, c := 0, new(answer)
	require.NoError(t, f.Handle(c, in, func(value) error { n++; return nil }))
	return n, c.ack
}

func TestAnInbox(t *testing.T) {
	in := &Inbox{Window: 3, Sessions: 2}
	n, ack := handled(t, in, frameOf(1, 5, 9))
	require.Equal(t, 2, n)
	require.Equal(t, &Ack{Session{1}, 9, 3}, ack)

	n, ack = handled(t, in, frameOf(1, 5, 9, 12))
	require.Equal(t, 1, n, "the first two were handled")
	require.Equal(t, uint64(12), ack.confirmed)

	n, ack = handled(t, in, frameOf(2, 1, 2, 3, 4))
	require.Equal(t, 3, n, "the window is three; the numbers of another session are its own")
	require.Equal(t, uint64(3), ack.confirmed)

	n, ack = handled(t, in, frameOf(1))
	require.Zero(t, n)
	require.Equal(t, &Ack{Session{1}, 0, 3}, ack, "a question for the demand")

	in.Window = -1
	n, ack = handled(t, in, frameOf(1, 20))
	require.Zero(t, n)
	require.Equal(t, &Ack{Session{1}, 0, 0}, ack)
	in.Window = MaxFrame + 1
	_, ack = handled(t, in, frameOf(1, 20))
	require.Equal(t, MaxFrame, ack.demand)

	n, _ = handled(t, in, frameOf(3, 1))
	require.Equal(t, 1, n)
	require.Len(t, in.Seen, 2)
	n, _ = handled(t, in, frameOf(1, 12))
	require.Zero(t, n, "the second session is the one that was forgotten")

	in.Window = 0
	_, ack = handled(t, in, frameOf(1, 30))
	require.Equal(t, DefaultWindow, ack.demand)
	saved, err := json.Marshal(in)
	require.NoError(t, err)
	var read Inbox
	require.NoError(t, json.Unmarshal(saved, &read))
	require.Equal(t, *in, read)
	require.Error(t, new(Session).UnmarshalText([]byte("ff")))
}

// A message that fails is not acknowledged, and neither is what came before it in the frame.
func TestAMessageThatFails(t *testing.T) {
	in, c, n := new(Inbox), new(answer), 0
	failed := errors.New("no")
	err := frameOf(1, 1, 2, 3).Handle(c, in, func(value) error {
		if n++; n == 2 {
			return failed
		}
		return nil
	})
	require.ErrorIs(t, err, failed)
	require.Nil(t, c.ack)
	require.Equal(t, []Seen{{Session{1}, 1}}, in.Seen)
}

// plainEntity has no optional interface.
type plainEntity struct{ sharding.Entity[value] }

// What an entity takes along is its inbox; what it cannot read it refuses.
func TestWhatAnEntityTakesAlong(t *testing.T) {
	create := Entities(Inbox{Window: 7}, func(*sharding.Context) sharding.Entity[value] { return plainEntity{} })
	one, two := create(nil).(*entity[value]), create(nil).(*entity[value])
	b, err := one.Snapshot(nil)
	require.NoError(t, err)
	require.Nil(t, b, "nothing was seen")
	one.inbox.note(Session{1}, 5)
	b, err = one.Snapshot(nil)
	require.NoError(t, err)
	require.NoError(t, two.Restore(nil, b))
	require.Equal(t, one.inbox, two.inbox)
	require.Error(t, two.Restore(nil, []byte("garbage")))
	require.ErrorIs(t, two.Restore(nil, []byte(`{"memory":"AA=="}`)), errNoSnapshotter)
}

// Replies of the entity and messages without a producer go through the codec too.
func TestACodec(t *testing.T) {
	c := Codec[value](nil)
	require.Equal(t, "delivery+protobuf", c.Name())
	require.NoError(t, c.Check(new(Frame[value])))
	require.Error(t, Codec[string](sharding.JSON{}).Check(new(Frame[string])))
	require.Error(t, Codec[*func()](sharding.JSON{}).Check(new(Frame[*func()])))

	for _, f := range []*Frame[value]{Plain(wrapperspb.String("m")), Plain(wrapperspb.String("")), frameOf(1), frameOf(1, 1, 7, 1<<63)} {
		b, err := c.Append(nil, f)
		require.NoError(t, err)
		var read Frame[value]
		require.NoError(t, c.Decode(b, &read))
		require.Equal(t, f.session, read.session)
		require.Len(t, read.items, len(f.items))
		for i := range f.items {
			require.Equal(t, f.items[i].number, read.items[i].number)
			require.Equal(t, f.items[i].message.GetValue(), read.items[i].message.GetValue())
			read.items[i].encoded, err = c.Append([]byte{}, read.items[i].message)
			require.NoError(t, err)
		}
		again, err := c.Append(nil, &read)
		require.NoError(t, err)
		require.Equal(t, b, again, "the encoding does not depend on whether the messages are encoded")
	}
	b, err := c.Append(nil, wrapperspb.String("reply"))
	require.NoError(t, err)
	var reply wrapperspb.StringValue
	require.NoError(t, c.Decode(b, &reply))
	require.Equal(t, "reply", reply.GetValue())
}

// Frames and acks that nobody sends.
func TestWhatACodecRefuses(t *testing.T) {
	c := Codec[value](nil)
	encoded := func(f *Frame[value]) []byte {
		b, err := c.Append(nil, f)
		require.NoError(t, err)
		return b
	}
	many := make([]uint64, MaxFrame+1)
	for i := range many {
		many[i] = uint64(i) + 1
	}
	for name, b := range map[string][]byte{
		"no field":               {0xff},
		"numbers that fall":      encoded(frameOf(1, 2, 1)),
		"a number twice":         encoded(frameOf(1, 2, 2)),
		"the number 0":           encoded(frameOf(1, 0)),
		"too many":               encoded(frameOf(1, many...)),
		"plain and empty":        {},
		"plain with a number":    encoded(frameOf(0, 1)),
		"two that are plain":     append(encoded(Plain(wrapperspb.String("a"))), encoded(Plain(wrapperspb.String("b")))...),
		"a session of two bytes": wire.AppendBytes(nil, frameSession, []byte{1, 2}),
	} {
		require.Error(t, c.Decode(b, new(Frame[value])), name)
	}
	require.Error(t, c.Decode(wire.AppendUint(nil, ackDemand, MaxFrame+1), new(Ack)))
	require.Error(t, c.Decode(wire.AppendBytes(nil, ackSession, []byte("a text")), new(Ack)))
}

// Any bytes are a frame or an error, and a frame has the encoding that it came in, or one that reads the same.
func FuzzDecode(f *testing.F) {
	c := Codec[value](nil)
	for _, frame := range []*Frame[value]{Plain(wrapperspb.String("m")), frameOf(1, 1, 7)} {
		b, err := c.Append(nil, frame)
		require.NoError(f, err)
		f.Add(b)
	}
	b, err := c.Append(nil, &Ack{Session{1}, 7, 50})
	require.NoError(f, err)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		var ack Ack
		_ = c.Decode(b, &ack)
		var frame Frame[value]
		if c.Decode(b, &frame) != nil {
			return
		}
		require.NoError(t, frame.check())
		in := new(Inbox)
		if !frame.plain() {
			n, _ := handled(t, in, &frame)
			require.LessOrEqual(t, n, DefaultWindow)
		}
	})
}
