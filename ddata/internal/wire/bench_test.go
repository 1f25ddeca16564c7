// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/ddata/internal/table"
)

// usual is an envelope as it is when nothing is new.
func usual(body any) protocol.Envelope {
	return protocol.Envelope{
		From: 0x1234_5678_9abc_def0, Lineage: protocol.Lineage{Turn: 1, ID: 0x1122334455667788}, Gen: 200, Sealed: true, Caught: true, Body: body,
	}
}

// increments is a batch of increments of different keys by one origin.
func increments(n int) protocol.Deltas {
	m := protocol.Deltas{Seq: 5000, Stamp: 200}
	for i := range n {
		delta, _ := crdt.GCounter{}.Add(self, uint64(i+1)).Delta()
		m.Changes = append(m.Changes, table.Change{
			Key: fmt.Sprintf("counter-%08d", i), Type: counter, Origin: self, From: uint64(i), To: uint64(i + 1), Delta: delta,
		})
	}
	return m
}

// counters is a list of counters to which each of some origins has added something.
func counters(n, origins int) protocol.PullReply {
	m := protocol.PullReply{Pass: 9, Stamp: 200, Done: []uint16{77}}
	for i := range n {
		var v crdt.GCounter
		var versions table.Versions
		for o := range origins {
			at := crdt.Origin(uint64(self) + uint64(o)<<32)
			v = v.Add(at, uint64(100*i+o))
			versions = append(versions, table.Version{Origin: at, Count: uint64(i%1000 + 1)})
		}
		m.Entries = append(m.Entries, table.Entry{
			Key: fmt.Sprintf("counter-%08d", i), Type: counter, Value: v.Settled(), Versions: versions, State: table.Live,
		})
	}
	return m
}

func encode(t testing.TB, body any) []byte {
	t.Helper()
	b, err := codec.Append(nil, usual(body))
	require.NoError(t, err)
	return b
}

// What travels most is small: the bounds are those of the design.
func TestSizes(t *testing.T) {
	header := len(encode(t, protocol.Hello{}))
	require.Less(t, header, 40, "an envelope in which nothing is new")
	require.Less(t, len(encode(t, increments(1)))-header, 80, "one increment")
	t.Logf("header %d, one increment %d, each further one %d", header, len(encode(t, increments(1))), (len(encode(t, increments(65)))-len(encode(t, increments(1))))/64)
	for _, origins := range []int{1, 2} {
		each := float64(len(encode(t, counters(10_000, origins)))) / 10_000
		t.Logf("a counter of %d origins: %.1f bytes", origins, each)
		require.Less(t, each, 70.0)
	}
	added, ok := crdt.ORSet[string]{}.Add(self, "an element of a set").Delta()
	require.True(t, ok)
	add := encode(t, protocol.Deltas{Seq: 5000, Stamp: 200, Changes: []table.Change{
		{Key: "counter-00000000", Type: texts, Origin: self, From: 400, To: 401, Delta: added},
	}})
	t.Logf("an added element %d", len(add))
	require.Less(t, len(add), 300)
}

func BenchmarkCodec(b *testing.B) {
	for name, body := range map[string]any{
		"deltas=64": increments(64), "pulled=1000": counters(1000, 3), "hello": protocol.Hello{}, "swept": samples()["sweep-reply"],
	} {
		message := any(usual(body))
		encoded := encode(b, body)
		b.Run("append/"+name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(encoded)))
			buffer := make([]byte, 0, len(encoded))
			for b.Loop() {
				if _, err := codec.Append(buffer[:0], message); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("decode/"+name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(encoded)))
			for b.Loop() {
				if _, err := codec.Decode(encoded); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
