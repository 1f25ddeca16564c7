// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/ddata/internal/wire"
)

// message returns a message of a size that looks like no other one of the test.
func message(of byte, size int) []byte { return bytes.Repeat([]byte{0x08, of}, size/2) }

// cut returns the frames of a message.
func cut(id uint64, message []byte, limit int) [][]byte {
	return slices.Collect(wire.Cut(id, message, limit))
}

// Law: the frames of messages of several goroutines, mixed in any way that keeps the order of
// each, are at most as large as the limit and join to the messages.
func TestParcelsAreJoined(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(wire.MinLimit, 500).Draw(t, "limit")
		var queues [][][]byte
		var sent [][]byte
		step := rapid.Uint64Range(1, 1000).Draw(t, "step")
		for i := range rapid.IntRange(1, 4).Draw(t, "messages") {
			m := message(byte(i), rapid.IntRange(2, 3000).Draw(t, "size"))
			id := math.MaxUint64 - uint64(i)*step
			sent, queues = append(sent, m), append(queues, cut(id, m, limit))
		}
		var counts wire.Drops
		joiner := wire.NewJoiner(16_000, &counts)
		var got [][]byte
		for len(queues) > 0 {
			i := rapid.IntRange(0, len(queues)-1).Draw(t, "whose turn")
			require.LessOrEqual(t, len(queues[i][0]), limit)
			if m := joiner.Add(queues[i][0]); m != nil {
				got = append(got, m)
			}
			if queues[i] = queues[i][1:]; len(queues[i]) == 0 {
				queues = slices.Delete(queues, i, i+1)
			}
		}
		slices.SortFunc(got, bytes.Compare)
		slices.SortFunc(sent, bytes.Compare)
		require.Equal(t, sent, got)
		require.Zero(t, counts.Total())
		require.Zero(t, joiner.Size())
	})
}

// Whoever cuts may stop before the end.
func TestCuttingCanStop(t *testing.T) {
	for frame := range wire.Cut(1, message(1, 1000), 100) {
		require.LessOrEqual(t, len(frame), 100)
		break
	}
	require.Len(t, cut(1, message(1, 100), 100), 1)
	require.Equal(t, message(1, 100), cut(1, message(1, 100), 100)[0], "a message that fits is not cut")
	for _, frame := range cut(1, message(1, 1000), 1) {
		require.LessOrEqual(t, len(frame), wire.MinLimit)
	}
}

// part is a frame with a part as a sender may make it.
func part(id, index, count uint64, bytes string) []byte {
	return text(15, varint(1, id), varint(2, index), varint(3, count), text(4, []byte(bytes)))
}

// A message with a fault is dropped, for a reason that is counted once; the others are
// joined.
func TestMessagesWithFaultyPartsAreDropped(t *testing.T) {
	a, b := cut(7, message(1, 300), 100), cut(8, message(2, 300), 100)
	require.Len(t, a, 5)
	for name, c := range map[string]struct {
		frames [][]byte
		why    wire.Drop
		count  uint64
		joined int
	}{
		"whole":              {slices.Concat(a, b), wire.DropLost, 0, 2},
		"the first lost":     {slices.Concat(a[1:], b), wire.DropLost, 1, 1},
		"one lost":           {slices.Concat(a[:2], a[3:], b), wire.DropLost, 1, 1},
		"the last lost":      {slices.Concat(a[:4], b), wire.DropLost, 0, 1},
		"doubled":            {slices.Concat(a[:3], a[2:], b), wire.DropDoubled, 1, 1},
		"the first doubled":  {slices.Concat(a[:1], a, b), wire.DropDoubled, 1, 2},
		"begun again":        {slices.Concat(a[:3], a, b), wire.DropDoubled, 1, 2},
		"swapped":            {slices.Concat(a[:1], [][]byte{a[2], a[1]}, a[3:], b), wire.DropLost, 1, 1},
		"other number":       {[][]byte{part(1, 0, 3, "a"), part(1, 1, 4, "b"), part(1, 2, 4, "c")}, wire.DropChanged, 1, 0},
		"too large":          {slices.Concat(cut(9, message(3, 1200), 100), b), wire.DropLarge, 1, 1},
		"no bytes":           {[][]byte{part(1, 0, 3, "")}, wire.DropMalformed, 1, 0},
		"beyond the number":  {[][]byte{part(1, 3, 3, "a")}, wire.DropMalformed, 1, 0},
		"of no parts":        {[][]byte{part(1, 0, 0, "a")}, wire.DropMalformed, 1, 0},
		"cut off":            {[][]byte{a[0][:50]}, wire.DropMalformed, 1, 0},
		"cut off inside":     {[][]byte{text(15, []byte{0x0a})}, wire.DropMalformed, 1, 0},
		"id of text":         {[][]byte{text(15, text(1, []byte("a")))}, wire.DropMalformed, 1, 0},
		"something behind":   {[][]byte{append(slices.Clone(a[0]), 1)}, wire.DropMalformed, 1, 0},
		"of a later version": {[][]byte{text(15, varint(3, 1), text(4, []byte("a")), varint(9, 1))}, wire.DropMalformed, 0, 1},
		"more than are open": {slices.Concat(a[:1], b[:1], cut(10, message(3, 100), 80)[:1], cut(11, message(3, 100), 80)[:1], cut(12, message(3, 100), 80)[:1]), wire.DropCrowded, 1, 0},
		"too large together": {slices.Concat(cut(9, message(3, 900), 100)[:13], b), wire.DropCrowded, 1, 1},
		"too large, the old": {slices.Concat(b[:1], cut(9, message(3, 900), 100)[:13], b[1:]), wire.DropCrowded, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var counts wire.Drops
			joiner := wire.NewJoiner(1000, &counts)
			joined := 0
			for _, frame := range c.frames {
				if joiner.Add(frame) != nil {
					joined++
				}
				require.LessOrEqual(t, joiner.Size(), 1000)
			}
			require.Equal(t, c.joined, joined)
			require.Equal(t, c.count, counts.Of(c.why), c.why.String())
			require.Equal(t, c.count, counts.Total())
		})
	}
}

// A session that ends takes the open messages with it, and what the sender sends again is
// taken.
func TestParcelsEndWithTheirSession(t *testing.T) {
	var counts wire.Drops
	joiner := wire.NewJoiner(1000, &counts)
	frames := cut(7, message(1, 300), 100)
	for _, frame := range frames[:3] {
		require.Nil(t, joiner.Add(frame))
	}
	joiner.Break()
	require.Zero(t, joiner.Size())
	require.Equal(t, uint64(1), counts.Of(wire.DropBroken))
	require.Nil(t, joiner.Add(frames[3]), "the rest is of no use")
	require.Equal(t, uint64(1), counts.Of(wire.DropLost))
	for i, frame := range frames {
		require.Equal(t, i == len(frames)-1, joiner.Add(frame) != nil)
	}
}

// Law: whatever is lost, doubled or swapped, only messages that were sent come out, and those
// of which all parts came in order do.
func TestFaultsMakeNoMessages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var counts wire.Drops
		joiner := wire.NewJoiner(1000, &counts)
		for id := range uint64(6) {
			m := message(byte(id), 400)
			whole := cut(id, m, 100)
			frames := slices.Clone(whole)
			for range rapid.IntRange(0, 2).Draw(t, "faults") {
				at := rapid.IntRange(0, len(frames)-1).Draw(t, "at")
				switch rapid.IntRange(0, 2).Draw(t, "fault") {
				case 0:
					frames = slices.Delete(frames, at, at+1)
				case 1:
					frames = slices.Insert(frames, at, frames[at])
				case 2:
					frames[0], frames[at] = frames[at], frames[0]
				}
			}
			var got [][]byte
			for _, frame := range frames {
				if b := joiner.Add(frame); b != nil {
					got = append(got, b)
				}
			}
			for _, b := range got {
				require.Equal(t, m, b)
			}
			if slices.EqualFunc(frames, whole, bytes.Equal) {
				require.Len(t, got, 1)
			}
		}
	})
}

// The names of the reasons are those of the counters.
func TestReasonsHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for d := wire.DropMalformed; d <= wire.DropBroken; d++ {
		require.NotEqual(t, "none", d.String())
		require.False(t, seen[d.String()])
		seen[d.String()] = true
	}
	require.Equal(t, "none", (wire.DropBroken + 1).String())
}

// What a part announces costs nothing.
func TestAnnouncedPartsCostNothing(t *testing.T) {
	var counts wire.Drops
	joiner := wire.NewJoiner(1<<30, &counts)
	cost := allocated(func() {
		for id := range uint64(100) {
			joiner.Add(part(id, 0, math.MaxUint64, "a"))
		}
	})
	require.Less(t, cost, uint64(64<<10))
	require.Equal(t, 4, joiner.Size())
	require.Equal(t, uint64(96), counts.Of(wire.DropCrowded))
}

// Whatever comes, a joiner holds no more than it may.
func FuzzJoiner(f *testing.F) {
	frames := func(all ...[]byte) []byte {
		var b []byte
		for _, frame := range all {
			b = append(binary.AppendUvarint(b, uint64(len(frame))), frame...)
		}
		return b
	}
	a, b := cut(7, message(1, 300), 100), cut(8, message(2, 300), 100)
	f.Add(frames(slices.Concat(a, b)...))
	f.Add(frames(a[0], b[0], a[1], b[1], a[3], b[1], a[2], b[2]))
	f.Add(frames(part(1, 0, 3, "a"), part(1, 1, 4, "b"), part(2, 5, 4, "b")))
	f.Add(frames(cut(9, message(3, 1200), 100)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		var counts wire.Drops
		joiner := wire.NewJoiner(1000, &counts)
		for len(b) > 0 {
			n, size := binary.Uvarint(b)
			if size <= 0 || n > uint64(len(b)-size) {
				break
			}
			frame := b[size : size+int(n)]
			b = b[size+int(n):]
			before := joiner.Size()
			m := joiner.Add(frame)
			require.LessOrEqual(t, joiner.Size(), 1000)
			require.LessOrEqual(t, len(m), max(len(frame), 1000))
			require.LessOrEqual(t, joiner.Size(), before+len(frame))
		}
		joiner.Break()
		require.Zero(t, joiner.Size())
	})
}
