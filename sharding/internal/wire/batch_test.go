// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/wire"
)

// Batches, which hold parts of several streams: first their golden bytes, then that they say the
// same as the messages one by one and keep to their bound, and last batches that are malformed.

// batchOf returns a batch of streams, and how many messages are in it.
func batchOf(streams ...following) (b []byte, n int) {
	encoders := make([]wire.Encoder, len(streams)) // A link has one of its own.
	b = wire.BeginBatch(nil, 0, 0)
	for i, s := range streams {
		var unsent uint64
		b, unsent = encoders[i].Part(b, &s.Transmission, first, 10, now, new(wire.Numbering))
		n += int(unsent - first)
	}
	return b, n
}

// partsOf returns the messages of a batch, those before an error too.
func partsOf(t require.TestingT, d *wire.Decoder, b []byte) (all []*cell.Message, err error) {
	item, err := d.Item(b, now)
	require.NoError(t, err)
	_, err = item.(*wire.Batch).Parts(new(wire.Numbers), func(r *wire.Run) error {
		return r.Messages(now, cell.NewMessage, func(m *cell.Message) {
			require.Equal(t, r.Shard(), m.Shard)
			all = append(all, m)
		})
	})
	return all, err
}

func TestBatchIsOnTheWireForGood(t *testing.T) {
	seven, eight := followShard(7, runOfThree()...), followShard(8, runOfThree()[:1]...)
	b, n := batchOf(seven, eight)
	require.Equal(t, 4, n)
	golden(t, "batch", b)
	got, err := partsOf(t, new(wire.Decoder), b)
	require.NoError(t, err)
	require.Equal(t, append(alone(t, seven.messages), alone(t, eight.messages)...), got)
}

// The messages of a batch are the same as in envelopes of their own, in order, and
// protobuf reads it by the .proto file. A batch keeps to its bound, and leaves out what
// has no room.
func TestBatchesSurviveTheWire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var streams []following
		var want []*cell.Message
		for shard := range rapid.IntRange(1, 6).Draw(t, "parts") {
			var messages []*cell.Message
			for range rapid.IntRange(1, 4).Draw(t, "messages") {
				size := rapid.SampledFrom([]int{0, 1, 100, 130, 4000, wire.BatchBytes / 2, wire.BatchBytes}).Draw(t, "payload")
				messages = append(messages, &cell.Message{Entity: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "entity"), Payload: make([]byte, size)})
			}
			streams = append(streams, followShard(protocol.ShardID(shard), messages...))
			_, n := batchOf(streams...)
			_, before := batchOf(streams[:shard]...)
			want = append(want, alone(t, messages[:n-before])...)
		}
		b, n := batchOf(streams...)
		require.Len(t, want, n)
		require.LessOrEqual(t, len(b), wire.BatchBytes+64)
		decoder := new(wire.Decoder)
		for _, b := range [][]byte{b, again(t, b, document.New(t, "Envelope"))} {
			if n == 0 {
				_, err := decoder.Item(b, now)
				require.ErrorIs(t, err, wire.ErrMalformed, "nobody sends a batch without parts")
				continue
			}
			got, err := partsOf(t, decoder, b)
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
	})
}

// malformedBatches are batches of which the first part, of one message, is good.
func malformedBatches() map[string][]byte {
	stream := text(5, text(1, []byte("k")), text(3, someNode), text(4, someEpoch))
	item := text(18, text(4, []byte("e")))
	good := text(21, stream, varint(7, 1), item)
	batch := func(parts ...[]byte) []byte { return join(varint(1, 8), good, join(parts...)) }
	return map[string][]byte{
		"a part of a number":       batch(varint(21, 1)),
		"a part cut off":           batch(good[:len(good)-1]),
		"a part without a stream":  batch(text(21, varint(7, 1), item)),
		"a part without a number":  batch(text(21, stream, item)),
		"a part without messages":  batch(text(21, stream, varint(7, 1))),
		"an empty part":            batch(text(21)),
		"a bad stream":             batch(text(21, text(5, varint(3, 1)), varint(7, 1), item)),
		"a stream of a number":     batch(text(21, varint(5, 1), item)),
		"a number of text":         batch(text(21, stream, text(7), item)),
		"an item without entity":   batch(text(21, stream, varint(7, 1), text(18))),
		"an item that is cut off":  batch(text(21, stream, varint(7, 1), item[:len(item)-1])),
		"a length beyond the part": batch([]byte{0xaa, 0x01, 0xff, 0xff, 0x03}),
		"a tag cut off":            batch([]byte{0x80}),
	}
}

// What is wrong ends the batch. The messages before it count, and no other does.
func TestMalformedBatches(t *testing.T) {
	for name, b := range malformedBatches() {
		got, err := partsOf(t, new(wire.Decoder), b)
		require.ErrorIs(t, err, wire.ErrMalformed, name)
		require.Len(t, got, 1, name)
	}
	whole, _ := batchOf(followShard(7, runOfThree()...), followShard(8, runOfThree()...))
	for n := range whole {
		item, err := wire.DecodeItem(whole[:n], now)
		if err == nil {
			_, err = item.(*wire.Batch).Parts(new(wire.Numbers), func(r *wire.Run) error { return r.Messages(now, cell.NewMessage, func(*cell.Message) {}) })
		}
		if err != nil {
			require.ErrorIs(t, err, wire.ErrMalformed)
		}
	}
	stop := errors.New("stop")
	item, err := wire.DecodeItem(whole, now)
	require.NoError(t, err)
	_, err = item.(*wire.Batch).Parts(new(wire.Numbers), func(*wire.Run) error { return stop })
	require.ErrorIs(t, err, stop)
	// A field that a later version adds is skipped.
	got, err := partsOf(t, new(wire.Decoder), join(whole, varint(30, 3)))
	require.NoError(t, err)
	require.Len(t, got, 6)
}
