// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/wire"
)

// appendAcks returns the envelope of acknowledgements that have a kind and a clock in common.
func appendAcks(all ...protocol.Ack) []byte {
	var list wire.AckList
	for _, a := range all {
		list.Add(a)
	}
	return list.Append(nil, all[0].Kind, all[0].Clock)
}

// acksOf returns the acknowledgements of an envelope, those before an error too.
func acksOf(t require.TestingT, b []byte) (all []protocol.Ack, err error) {
	item, err := wire.DecodeItem(b, now)
	require.NoError(t, err)
	err = item.(*wire.Acks).Each(func(a protocol.Ack) { all = append(all, a) })
	return all, err
}

// threeAcks returns acknowledgements of which two follow each other with the same base.
func threeAcks() []protocol.Ack {
	return []protocol.Ack{
		{Kind: "account", Shard: 7, Base: epoch(2), Seq: 300, Clock: now},
		{Kind: "account", Shard: 999, Base: epoch(2), Seq: 1, Clock: now},
		{Kind: "account", Shard: 8, Base: epoch(12), Seq: 2, Clock: now},
	}
}

func TestAcksAreOnTheWireForGood(t *testing.T) {
	b := appendAcks(threeAcks()...)
	golden(t, "acks", b)
	got, err := acksOf(t, b)
	require.NoError(t, err)
	require.Equal(t, threeAcks(), got)
	require.Less(t, len(b), 2*len(wire.AppendAck(nil, threeAcks()[0])), "a base that comes again is not said again")
}

// Acknowledgements in one envelope are those that went in, also when protobuf has
// read them by the .proto file, and when the list has been used before.
func TestAcksSurviveTheWire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind, clock := drawName.Draw(t, "kind"), machine.Instant(rapid.Int64Min(0).Draw(t, "clock"))
		bases := rapid.SliceOfN(drawEpoch, 1, 3).Draw(t, "bases")
		var list wire.AckList
		list.Add(protocol.Ack{Shard: 1, Base: bases[0], Seq: 1})
		list.Reset()
		var all []protocol.Ack
		for range rapid.IntRange(1, 30).Draw(t, "acks") {
			a := protocol.Ack{Kind: kind, Shard: drawShard.Draw(t, "shard"), Base: rapid.SampledFrom(bases).Draw(t, "base"), Seq: rapid.Uint64().Draw(t, "seq"), Clock: clock}
			list.Add(a)
			all = append(all, a)
		}
		b := list.Append(nil, kind, clock)
		got, err := acksOf(t, b)
		require.NoError(t, err)
		require.Equal(t, all, got)
		got, err = acksOf(t, again(t, b, document.New(t, "Envelope")))
		require.NoError(t, err)
		require.Equal(t, all, got)
	})
}

// numbersOf returns an envelope of acknowledgements with these numbers.
func numbersOf(numbers ...uint64) []byte {
	var b []byte
	for _, v := range numbers {
		b = protowire.AppendVarint(b, v)
	}
	return join(varint(1, 7), kind, text(20, b))
}

// malformedAcks are envelopes of which the first acknowledgement, if there is one, is good.
func malformedAcks() map[string][]byte {
	return map[string][]byte{
		"without a seq":         numbersOf(14, 1, 14),
		"a shard out of range":  numbersOf(14, 1, 1<<33, 1),
		"a base cut short":      numbersOf(14, 1, 15, 5, 1, 9, 1),
		"a base without a seq":  numbersOf(14, 1, 15, 5, 1, 9, 1, 2),
		"a base born too late":  numbersOf(14, 1, 15, math.MaxInt64+1, 1, 9, 1, 2, 1),
		"a number of ten bytes": join(varint(1, 7), kind, text(20, []byte{14, 1}, bytes.Repeat([]byte{0xff}, 10))),
		"a number cut off":      join(varint(1, 7), kind, text(20, []byte{14, 1, 14, 0x80})),
	}
}

// What is wrong ends the list. The acknowledgements before it count, and no other does.
func TestMalformedAcks(t *testing.T) {
	for name, b := range malformedAcks() {
		got, err := acksOf(t, b)
		require.ErrorIs(t, err, wire.ErrMalformed, name)
		require.Equal(t, []protocol.Ack{{Kind: "k", Shard: 7, Seq: 1}}, got, name)
	}
	whole := appendAcks(threeAcks()...)
	for n := range whole {
		item, err := wire.DecodeItem(whole[:n], now)
		if err != nil {
			require.ErrorIs(t, err, wire.ErrMalformed)
			continue
		}
		require.NoError(t, item.(*wire.Acks).Each(func(protocol.Ack) { require.Fail(t, "a list that is cut short is read in part") }))
	}
}
