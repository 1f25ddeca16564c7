// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/wire"
)

// Runs, which are several messages of a stream in one envelope: first their deadlines and
// their golden bytes, then that a run says the same as its messages one by one, and last
// runs that are malformed.

// following is messages in a stream, and what their cell has to transmit.
type following struct {
	cell.Transmission
	messages []*cell.Message
}

// first is the number of the first message of a stream.
const first = 1

// follow puts messages into a stream from node 1 to the home at node 2, by the cell of their
// origin.
func follow(messages ...*cell.Message) following { return followShard(7, messages...) }

// followShard is follow for a shard.
func followShard(shard protocol.ShardID, messages ...*cell.Message) following {
	origin := cell.New(cell.Config{Kind: "account", Shard: shard, Self: node(1), WindowBytes: 1 << 30})
	var out cell.Actions
	origin.Apply(now, protocol.SetRoute{Home: node(2), Epoch: epoch(12), Base: epoch(2)}, &out)
	o := origin.Outbound().Transmission()
	for i, m := range messages {
		origin.Accept(now, m, &out)
		m.Kind, m.Shard, m.Base, m.Route, m.Seq = "account", shard, o.Base, o.Route, uint64(first+i)
	}
	return following{o, messages}
}

// runOfThree returns three messages: one with only a payload, one with every optional field,
// and one that is empty.
func runOfThree() []*cell.Message {
	return []*cell.Message{
		{Entity: "acct-42", Payload: []byte("deposit")},
		{Entity: "acct-42", Correlation: 77, Deadline: now.Add(5 * time.Second), Trace: []byte{1, 2, 3}, Codec: 1, Flags: 2, Payload: []byte("ask")},
		{Entity: "acct-43", Payload: []byte{}},
	}
}

// The time that is left until a deadline counts from when the message was written, if its
// sender knew what the clock of the receiver showed then. It never counts from a time that
// the receiver's clock has not reached yet.
func TestDeadlinesCountFromWhenTheyWereWritten(t *testing.T) {
	for name, test := range map[string]struct{ there, received, want machine.Instant }{
		"clock not known":    {0, 500, 500 + 100},
		"on time":            {500, 500, 500 + 100},
		"on its way for 60":  {500, 560, 500 + 100},
		"on its way for 200": {500, 700, 500 + 100},
		"clock ahead of now": {900, 500, 500 + 100},
	} {
		t.Run(name, func(t *testing.T) {
			all := follow(&cell.Message{Entity: "x", Deadline: now + 100}, &cell.Message{Entity: "x"}, &cell.Message{Entity: "y", Deadline: now})
			encoder := wire.Encoder{There: test.there}
			b, _ := encoder.Run(nil, &all.Transmission, first, 3, now)
			item, err := new(wire.Decoder).Item(b, test.received)
			require.NoError(t, err)
			var got []machine.Instant
			collect := func(m *cell.Message) { got = append(got, m.Deadline) }
			require.NoError(t, item.(*wire.Run).Messages(test.received, cell.NewMessage, collect))
			require.Equal(t, []machine.Instant{test.want, 0, cell.Overdue}, got)
			single, _ := encoder.Run(nil, &all.Transmission, first, 1, now)
			for _, b := range [][]byte{single, encoder.Message(nil, all.messages[0], now)} {
				item, err = wire.DecodeItem(b, test.received)
				require.NoError(t, err)
				require.Equal(t, test.want, item.(*cell.Message).Deadline)
			}
		})
	}
}

// decoded returns the messages of an envelope.
func decoded(t require.TestingT, d *wire.Decoder, b []byte) (all []*cell.Message) {
	item, err := d.Item(b, now)
	require.NoError(t, err)
	if m, ok := item.(*cell.Message); ok {
		return []*cell.Message{m}
	}
	run := item.(*wire.Run)
	require.Equal(t, "account", run.Kind())
	require.EqualValues(t, 7, run.Shard())
	require.NoError(t, run.Messages(now, cell.NewMessage, func(m *cell.Message) { all = append(all, m) }))
	return all
}

// alone returns messages as they would be decoded from envelopes of their own.
func alone(t require.TestingT, messages []*cell.Message) (all []*cell.Message) {
	for _, m := range messages {
		got, err := wire.DecodeItem(wire.AppendMessage(nil, m, now), now)
		require.NoError(t, err)
		all = append(all, got.(*cell.Message))
	}
	return all
}

func TestRunIsOnTheWireForGood(t *testing.T) {
	all := follow(runOfThree()...)
	b, unsent := new(wire.Encoder).Run(nil, &all.Transmission, first, 3, now)
	require.EqualValues(t, first+3, unsent)
	golden(t, "run", b)
	require.Equal(t, alone(t, all.messages), decoded(t, new(wire.Decoder), b))
}

// The messages of a run are the same as in envelopes of their own, however many fit into the
// run, and protobuf reads it by the .proto file.
func TestRunsSurviveTheWire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		messages := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) *cell.Message {
			m := &cell.Message{
				Entity:      rapid.SampledFrom([]string{"a", "b", strings.Repeat("c", 200)}).Draw(t, "entity"),
				Correlation: rapid.SampledFrom([]uint64{0, 0, 1, 1 << 60}).Draw(t, "correlation"),
				Flags:       rapid.SampledFrom([]uint32{0, 0, 1}).Draw(t, "flags"),
				Payload:     make([]byte, rapid.SampledFrom([]int{0, 1, 100, 130, 20 << 10, 40 << 10}).Draw(t, "payload")),
			}
			if m.Correlation != 0 {
				m.Deadline = now.Add(rapid.SampledFrom([]time.Duration{time.Second, 0, -time.Second}).Draw(t, "remaining"))
			}
			return m
		}), 1, 12).Draw(t, "messages")
		most := rapid.IntRange(1, 12).Draw(t, "most")
		all := follow(messages...)
		var encoder wire.Encoder
		var decoder wire.Decoder
		var got []*cell.Message
		for next := uint64(first); next != all.Window.Next(); {
			var b []byte
			before := len(got)
			b, next = encoder.Run(nil, &all.Transmission, next, most, now)
			got = append(got, decoded(t, &decoder, b)...)
			require.LessOrEqual(t, len(got)-before, most)
			if len(got)-before > 1 {
				require.LessOrEqual(t, len(b), 40<<10+32<<10+1<<10)
			}
			require.Equal(t, got[before:], decoded(t, &decoder, again(t, b, document.New(t, "Envelope"))))
		}
		require.Equal(t, alone(t, messages), got)
	})
}

func TestMalformedRuns(t *testing.T) {
	all := follow(runOfThree()...)
	b, _ := new(wire.Encoder).Run(nil, &all.Transmission, first, 3, now)
	none, err := new(wire.Decoder).Item(b[:len(b)-1], now)
	require.NoError(t, err, "the first items are there")
	n := 0
	count := func(*cell.Message) { n++ }
	require.ErrorIs(t, none.(*wire.Run).Messages(now, cell.NewMessage, count), wire.ErrMalformed)
	require.Equal(t, 2, n)
	stream := text(5, join(text(1, []byte("k")), text(3, someNode), text(4, someEpoch)))
	item := text(18, text(4, []byte("e")))
	for name, b := range map[string][]byte{
		"without a stream":   join(varint(1, 5), varint(7, 1), item),
		"without a number":   join(varint(1, 5), stream, item),
		"without an origin":  join(varint(1, 5), text(5, join(text(1, []byte("k")), text(4, someEpoch))), varint(7, 1), item),
		"without items":      join(varint(1, 5), stream, varint(7, 1)),
		"items of no run":    join(varint(1, 9), stream, varint(7, 1), item),
		"a run that is late": join(stream, varint(7, 1), item, varint(1, 5)),
	} {
		_, err := wire.DecodeItem(b, now)
		require.ErrorIs(t, err, wire.ErrMalformed, name)
	}
	for name, b := range map[string][]byte{
		"no entity":      text(18, text(15, []byte("p"))),
		"a varint":       varint(18, 1),
		"a bad field":    text(18, []byte{0xff}),
		"a long entity":  text(18, text(4, make([]byte, protocol.MaxEntityBytes+1))),
		"a bad tag next": join(item, []byte{0xff}),
	} {
		run, err := wire.DecodeItem(join(varint(1, 5), stream, varint(7, 1), b), now)
		require.NoError(t, err, name)
		require.ErrorIs(t, run.(*wire.Run).Messages(now, cell.NewMessage, count), wire.ErrMalformed, name)
	}
	// A field that a later version adds behind the items is skipped.
	run, err := wire.DecodeItem(join(varint(1, 5), stream, varint(7, 1), item, varint(19, 3)), now)
	require.NoError(t, err)
	require.NoError(t, run.(*wire.Run).Messages(now, cell.NewMessage, count))
}
