// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/wire"
)

// appendReplies returns the envelope of replies that have a clock in common.
func appendReplies(t require.TestingT, all ...protocol.Reply) []byte {
	var list wire.ReplyList
	for _, r := range all {
		require.True(t, list.Add(&r))
	}
	require.Equal(t, len(all), list.Len())
	return list.Append(nil, all[0].Clock)
}

// repliesOf returns the replies of an envelope, those before an error too.
func repliesOf(t require.TestingT, b []byte) (all []protocol.Reply, err error) {
	item, err := wire.DecodeItem(b, now)
	require.NoError(t, err)
	err = item.(*wire.Replies).Each(func(r *protocol.Reply) { all = append(all, *r) })
	return all, err
}

// threeReplies returns replies of which two follow each other with the same kind.
func threeReplies() []protocol.Reply {
	return []protocol.Reply{
		{Kind: "account", Shard: 7, Correlation: 300, Payload: []byte("paid"), Clock: now},
		{Kind: "account", Shard: 999, Correlation: 301, Code: protocol.CodeEntityFailed, Detail: "no money", Clock: now},
		{Kind: "branch", Shard: 8, Correlation: 2, Codec: 1, Flags: 1, Payload: []byte{0}, Clock: now},
	}
}

func TestRepliesAreOnTheWireForGood(t *testing.T) {
	b := appendReplies(t, threeReplies()...)
	golden(t, "replies", b)
	got, err := repliesOf(t, b)
	require.NoError(t, err)
	require.Equal(t, threeReplies(), got)
}

// drawReply draws a reply of one of two kinds.
var drawReply = rapid.Custom(func(t *rapid.T) protocol.Reply {
	r := protocol.Reply{
		Kind: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "kind"), Shard: drawShard.Draw(t, "shard"),
		Correlation: rapid.Uint64().Draw(t, "correlation"), Code: protocol.Code(rapid.Uint8().Draw(t, "code")),
		Detail: rapid.StringN(0, 20, 100).Draw(t, "detail"), Codec: rapid.Uint16().Draw(t, "codec"), Flags: rapid.Uint32().Draw(t, "flags"),
	}
	if size := rapid.IntRange(0, 3).Draw(t, "size"); size > 0 {
		r.Payload = make([]byte, size*100) // Lengths of one byte, and of two.
	}
	return r
})

// Replies in one envelope are those that went in, also when protobuf has read
// them by the .proto file, and when the list has been used before.
func TestRepliesSurviveTheWire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clock := machine.Instant(rapid.Int64Min(0).Draw(t, "clock"))
		var list wire.ReplyList
		require.True(t, list.Add(&protocol.Reply{Kind: "a", Correlation: 1}))
		list.Reset()
		require.Zero(t, list.Len())
		all := rapid.SliceOfN(drawReply, 1, 30).Draw(t, "replies")
		for i := range all {
			require.True(t, list.Add(&all[i]))
			all[i].Clock = clock
		}
		b := list.Append(nil, clock)
		got, err := repliesOf(t, b)
		require.NoError(t, err)
		require.Equal(t, all, got)
		got, err = repliesOf(t, again(t, b, document.New(t, "Envelope")))
		require.NoError(t, err)
		require.Equal(t, all, got)
	})
}

// A list takes no reply for which its envelope has no room, and is as before.
func TestAListOfRepliesIsBounded(t *testing.T) {
	var list wire.ReplyList
	one := protocol.Reply{Kind: "a", Correlation: 1<<64 - 1, Code: 255, Shard: protocol.MaxShards - 1, Payload: make([]byte, 1000), Detail: "d"}
	for list.Add(&one) {
		require.Less(t, list.Len(), wire.ReplyListBytes/1000+1)
	}
	b := list.Append(nil, now)
	require.LessOrEqual(t, len(b), wire.ReplyListBytes+20, "the beginning of the envelope has 20 bytes at most")
	require.Greater(t, len(b), wire.ReplyListBytes-1200)
	all, err := repliesOf(t, b)
	require.NoError(t, err)
	require.Len(t, all, list.Len())
	require.False(t, new(wire.ReplyList).Add(&protocol.Reply{Kind: "a", Payload: make([]byte, wire.ReplyListBytes)}))
}

// replyField returns a reply of a list with these fields.
func replyField(fields ...[]byte) []byte { return text(22, join(fields...)) }

// malformedReplies are envelopes of which the first reply is good.
func malformedReplies() map[string][]byte {
	envelope := func(b []byte) []byte {
		return join(varint(1, 9), varint(8, 5), replyField(kind, varint(10, 1)), b)
	}
	return map[string][]byte{
		"a reply of a number":          envelope(varint(22, 1)),
		"a reply cut off":              envelope(replyField(varint(10, 2))[:3]),
		"a field of a reply cut off":   envelope(replyField([]byte{0x80})),
		"a shard out of range":         envelope(replyField(varint(3, 1<<32))),
		"a detail that is too long":    envelope(replyField(text(17, make([]byte, 1025)))),
		"a correlation of text":        envelope(replyField(text(10, nil))),
		"a tag cut off in an envelope": envelope([]byte{0x80}),
	}
}

// What is wrong ends the list. The replies before it count, and no other does.
func TestMalformedReplies(t *testing.T) {
	for name, b := range malformedReplies() {
		got, err := repliesOf(t, b)
		require.ErrorIs(t, err, wire.ErrMalformed, name)
		require.Equal(t, []protocol.Reply{{Kind: "k", Correlation: 1, Clock: 5}}, got, name)
	}
	got, err := repliesOf(t, join(varint(1, 9), replyField(varint(10, 1))))
	require.ErrorIs(t, err, wire.ErrMalformed, "the first reply has no kind")
	require.Empty(t, got)
	got, err = repliesOf(t, join(varint(1, 9), replyField(kind, varint(10, 1)), text(99, kind), replyField(varint(10, 2))))
	require.NoError(t, err, "a field of a later version")
	require.Len(t, got, 2)
	_, err = wire.DecodeItem(join(varint(1, 9), varint(8, 5)), now)
	require.ErrorIs(t, err, wire.ErrMalformed, "no replies")
}
