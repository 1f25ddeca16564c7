// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/wire"
)

// Streams by number: first their golden bytes, then that no loss and no order makes a part one of
// another stream, and last numbers that a host does not take.

// origin sends the messages of a few streams in batches, as a node does.
type origin struct {
	by       wire.Numbering
	encoders []wire.Encoder
	streams  []following // By shard.
}

// newOrigin returns a node with messages to as many shards. The payload of each names it.
func newOrigin(shards, messages int) *origin {
	o := &origin{by: wire.Numbering{Generation: 1}, encoders: make([]wire.Encoder, shards)}
	for shard := range shards {
		var list []*cell.Message
		for i := range messages {
			list = append(list, &cell.Message{Entity: "e", Payload: fmt.Appendf(nil, "%d/%d", shard, i+1)})
		}
		o.streams = append(o.streams, followShard(protocol.ShardID(shard), list...))
	}
	return o
}

// batch returns a batch of n messages from one on, of each stream that is named by its shard.
func (o *origin) batch(from, n int, shards ...int) []byte {
	b := wire.BeginBatch(nil, 0, o.by.Generation)
	for _, shard := range shards {
		b, _ = o.encoders[shard].Part(b, &o.streams[shard].Transmission, uint64(from), n, now, &o.by)
	}
	return b
}

// host takes batches.
type host struct {
	decoder wire.Decoder
	known   wire.Numbers
}

// take returns the payloads of a batch, and how many messages were refused.
func (h *host) take(t require.TestingT, b []byte) (all []string, refused int, err error) {
	item, err := h.decoder.Item(b, now)
	require.NoError(t, err)
	refused, err = item.(*wire.Batch).Parts(&h.known, func(r *wire.Run) error {
		return r.Messages(now, cell.NewMessage, func(m *cell.Message) {
			require.Equal(t, fmt.Sprintf("%d/%d", m.Shard, m.Seq), string(m.Payload))
			all = append(all, string(m.Payload))
		})
	})
	return all, refused, err
}

// good is take of a batch in which everything is in order.
func (h *host) good(t require.TestingT, b []byte) (all []string, refused int) {
	all, refused, err := h.take(t, b)
	require.NoError(t, err)
	return all, refused
}

func TestNumbersAreOnTheWireForGood(t *testing.T) {
	o, h := newOrigin(2, 3), new(host)
	first, second := o.batch(1, 1, 0, 1), o.batch(2, 2, 1, 0)
	golden(t, "batch-defines", first)
	golden(t, "batch-numbers", second)
	all, refused := h.good(t, first)
	require.Equal(t, []string{"0/1", "1/1"}, all)
	require.Zero(t, refused)
	all, refused = h.good(t, second)
	require.Equal(t, []string{"1/2", "1/3", "0/2", "0/3"}, all)
	require.Zero(t, refused)
	require.Less(t, len(second), len(first), "although it has more messages")
}

// A batch that is lost leaves numbers that the host refuses. What was sent before is spelled out
// when it comes again, so that it is taken, and what follows too.
func TestALostDefinitionIsMadeUpFor(t *testing.T) {
	o, h := newOrigin(2, 4), new(host)
	o.batch(1, 1, 0, 1)
	all, refused := h.good(t, o.batch(2, 2, 0))
	require.Empty(t, all)
	require.Equal(t, 2, refused)
	all, refused = h.good(t, o.batch(3, 1, 0))
	require.Equal(t, []string{"0/3"}, all, "it was sent before")
	require.Zero(t, refused)
	all, _ = h.good(t, o.batch(4, 1, 0))
	require.Equal(t, []string{"0/4"}, all)
}

// What the lane did not take has defined nothing.
func TestWhatDidNotLeaveIsSpelledOut(t *testing.T) {
	o, h := newOrigin(1, 2), new(host)
	o.batch(1, 1, 0)
	o.encoders[0].Forget()
	all, refused := h.good(t, o.batch(2, 1, 0))
	require.Equal(t, []string{"0/2"}, all)
	require.Zero(t, refused)
}

// A later session has numbers of its own. Those of the session before are refused from then on,
// and define nothing.
func TestNumbersEndWithTheSession(t *testing.T) {
	o, h := newOrigin(2, 9), new(host)
	h.good(t, o.batch(1, 1, 0, 1))
	late, defines := o.batch(2, 1, 0), o.batch(1, 1, 1)
	o.by = wire.Numbering{Generation: 2}
	all, _ := h.good(t, o.batch(3, 1, 1))
	require.Equal(t, []string{"1/3"}, all)
	all, refused := h.good(t, late)
	require.Empty(t, all)
	require.Equal(t, 1, refused)
	all, _ = h.good(t, defines)
	require.Equal(t, []string{"1/1"}, all, "a stream that is spelled out needs no number")
	all, _ = h.good(t, o.batch(4, 1, 1))
	require.Equal(t, []string{"1/4"}, all)
}

// When all numbers of a generation are given, streams are spelled out.
func TestNumbersAreBounded(t *testing.T) {
	o, h := newOrigin(1, 1), new(host)
	for range wire.MaxNumbers {
		require.False(t, o.by.Exhausted())
		o.batch(1, 1, 0)
		o.encoders[0].Forget()
	}
	require.True(t, o.by.Exhausted())
	for range 2 {
		all, refused := h.good(t, o.batch(1, 1, 0))
		require.Equal(t, []string{"0/1"}, all)
		require.Zero(t, refused)
	}
}

// Batches are lost, doubled and reordered, within sessions and across them. No message comes out
// as one of another stream, and what is sent a second time is never refused in its session.
func TestNumbersNameOneStreamEach(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const streams, messages = 4, 12
		o, h := newOrigin(streams, messages), new(host)
		sent := make([]int, streams)
		var way [][]byte
		for range rapid.IntRange(1, 40).Draw(t, "batches") {
			shard := rapid.IntRange(0, streams-1).Draw(t, "stream")
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				o.by = wire.Numbering{Generation: o.by.Generation + 1}
			case 1:
				o.encoders[shard].Forget()
			case 2:
				h.good(t, o.batch(1, 1, shard))
			case 3:
				if sent[shard] > 0 {
					again := o.batch(rapid.IntRange(1, sent[shard]).Draw(t, "again"), 3, shard)
					_, refused := h.good(t, again)
					require.Zero(t, refused)
					way = append(way, again)
				}
			default:
				if sent[shard] < messages {
					sent[shard]++
					way = append(way, o.batch(sent[shard], 1, shard, (shard+1)%streams))
				}
			}
			for range rapid.IntRange(0, 2).Draw(t, "come") {
				if len(way) > 0 {
					h.good(t, rapid.SampledFrom(way).Draw(t, "way"))
				}
			}
		}
	})
}

// Protobuf reads what is written by hand by the .proto file.
func TestNumbersSurviveTheWire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, h := newOrigin(2, 3), new(host)
		h.good(t, again(t, o.batch(1, 1, 0, 1), document.New(t, "Envelope")))
		all, refused := h.good(t, again(t, o.batch(2, 2, 0, 1), document.New(t, "Envelope")))
		require.Equal(t, []string{"0/2", "0/3", "1/2", "1/3"}, all)
		require.Zero(t, refused)
	})
}

// foreignNumbers are batches that say of numbers what no node says. If one is taken, the messages
// come again; the error of the others ends the batch.
func foreignNumbers() map[string][]byte {
	stream := text(5, text(1, []byte("k")), text(3, someNode), text(4, someEpoch))
	other := text(5, text(1, []byte("k")), varint(2, 1), text(3, someNode), text(4, someEpoch))
	item := text(18, text(4, []byte("e")))
	part := func(fields ...[]byte) []byte { return text(21, join(fields...), varint(7, 1), item) }
	batch := func(generation uint64, parts ...[]byte) []byte {
		return join(varint(1, 8), varint(7, generation), join(parts...))
	}
	return map[string][]byte{
		"refused: a number that is not known":   batch(3, part(varint(6, 1))),
		"refused: behind the last number":       batch(3, part(stream, varint(6, 2)), part(varint(6, 3))),
		"refused: before the last number":       batch(3, part(stream, varint(6, 2)), part(varint(6, 1))),
		"refused: the largest number":           batch(3, part(varint(6, wire.MaxNumbers))),
		"malformed: beyond the bound":           batch(3, part(stream, varint(6, wire.MaxNumbers+1))),
		"malformed: far beyond the bound":       batch(3, part(stream, varint(6, 1<<63))),
		"malformed: a number defined anew":      batch(3, part(stream, varint(6, 1)), part(other, varint(6, 1))),
		"malformed: without a generation":       batch(0, part(stream, varint(6, 1))),
		"malformed: without a place":            batch(3, text(21, varint(6, 1), item)),
		"malformed: neither stream nor number":  batch(3, part()),
		"malformed: the number zero":            batch(3, part(varint(6, 0))),
		"malformed: a number that is text":      batch(3, part(text(6, []byte("1")))),
		"malformed: a stream that is malformed": batch(3, part(text(5, varint(3, 1)), varint(6, 1))),
		"malformed: a stream without a kind":    batch(3, part(text(5, text(3, someNode), text(4, someEpoch)), varint(6, 1))),
	}
}

func TestForeignNumbers(t *testing.T) {
	bad := foreignNumbers()
	for _, name := range slices.Sorted(maps.Keys(bad)) {
		var known wire.Numbers
		item, err := wire.DecodeItem(bad[name], now)
		require.NoError(t, err, name)
		refused, err := item.(*wire.Batch).Parts(&known, func(*wire.Run) error { return nil })
		if name[0] == 'r' {
			require.NoError(t, err, name)
			require.Equal(t, 1, refused, name)
			continue
		}
		require.ErrorIs(t, err, wire.ErrMalformed, name)
		require.Zero(t, refused, name)
	}
}

// Whatever has come before, what is taken of a batch is taken of it a second time, and what was
// refused may be known by then.
func FuzzNumbers(f *testing.F) {
	bad := foreignNumbers()
	for _, name := range slices.Sorted(maps.Keys(bad)) {
		f.Add(bad[name], bad["refused: behind the last number"])
	}
	o := newOrigin(2, 3)
	f.Add(o.batch(1, 1, 0, 1), o.batch(2, 2, 1, 0))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		var known wire.Numbers
		take := func(b []byte) (runs []string, refused int, err error) {
			item, err := wire.DecodeItem(b, now)
			batch, ok := item.(*wire.Batch)
			if err != nil || !ok {
				return nil, 0, err
			}
			refused, err = batch.Parts(&known, func(r *wire.Run) error {
				require.NotEmpty(t, r.Kind())
				require.False(t, r.Origin().IsZero())
				runs = append(runs, fmt.Sprint(r.Kind(), r.Shard(), r.Origin(), r.Base()))
				return nil
			})
			if err != nil {
				require.ErrorIs(t, err, wire.ErrMalformed)
			}
			return runs, refused, err
		}
		_, _, _ = take(first)
		runs, refused, err := take(second)
		again, still, errAgain := take(second)
		if err != nil {
			require.Error(t, errAgain)
			return
		}
		require.NoError(t, errAgain)
		require.LessOrEqual(t, still, refused)
		require.GreaterOrEqual(t, len(again), len(runs))
	})
}
