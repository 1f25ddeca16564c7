// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"bytes"
	"encoding/hex"
	"io"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/wire"
)

// Values of each form are appended and read back, by a message with a field of each. After
// laws and golden bytes come malformed bytes and bounds, texts that are clipped, causes,
// and memory; last any bytes.

// message has a field of each form.
type message struct {
	count uint64
	flag  bool
	uid   gossip.UID
	text  string
	data  []byte
	node  gossip.NodeID
	inner *message
}

func (m *message) append(b []byte) []byte {
	b = wire.AppendUint(b, 1, m.count)
	b = wire.AppendBool(b, 2, m.flag)
	b = wire.AppendFixed64(b, 3, uint64(m.uid))
	b = wire.AppendString(b, 4, m.text)
	b = wire.AppendBytes(b, 5, m.data)
	b = wire.AppendNode(b, 16, m.node)
	if m.inner != nil {
		dst, at := wire.Begin(b, 3000)
		b = wire.End(m.inner.append(dst), at)
	}
	return b
}

func (m *message) set(f *wire.Field) (err error) {
	switch f.Number {
	case 1:
		return wire.Set(&m.count, f, math.MaxUint64)
	case 2:
		return wire.SetBool(&m.flag, f)
	case 3:
		return wire.SetFixed(&m.uid, f)
	case 4:
		return wire.SetText(&m.text, f, math.MaxInt)
	case 5:
		m.data, err = f.Data(math.MaxInt)
		return err
	case 16:
		return wire.SetNode(&m.node, f)
	case 3000:
		m.inner = new(message)
		return f.Each(m.inner.set)
	default:
		return nil
	}
}

func draw(t *rapid.T, depth int) *message {
	m := &message{
		count: rapid.Uint64().Draw(t, "count"), flag: rapid.Bool().Draw(t, "flag"),
		uid: gossip.UID(rapid.Uint64().Draw(t, "uid")), text: rapid.String().Draw(t, "text"),
	}
	if data := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "data"); len(data) > 0 {
		m.data = data
	}
	if rapid.Bool().Draw(t, "has a node") {
		m.node = gossip.NodeID{
			Address: gossip.Address{Host: rapid.StringMatching(`[a-z]{1,20}`).Draw(t, "host"), Port: rapid.Uint16Min(1).Draw(t, "port")},
			UID:     gossip.UID(rapid.Uint64Min(1).Draw(t, "node uid")),
		}
	}
	if depth > 0 && rapid.Bool().Draw(t, "has an inner one") {
		m.inner = draw(t, depth-1)
	}
	return m
}

// Law: an appended value is read back, whatever bytes stood before it.
func TestWhatIsAppendedIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, before := draw(t, 2), rapid.SliceOf(rapid.Byte()).Draw(t, "before")
		b := m.append(append([]byte(nil), before...))
		require.Equal(t, string(before), string(b[:len(before)]))
		var got message
		require.NoError(t, wire.Each(b[len(before):], got.set))
		require.Equal(t, m, &got)
	})
}

// Law: each size function returns the number of bytes that its append function
// appends.
func TestSizesAreThoseOfWhatIsAppended(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := wire.Number(rapid.Uint32Range(1, 1<<29-1).Draw(t, "number"))
		v, data := rapid.Uint64().Draw(t, "value"), make([]byte, rapid.IntRange(0, 300).Draw(t, "bytes"))
		require.Len(t, wire.AppendVarint(nil, v), wire.SizeVarint(v))
		require.Len(t, wire.AppendTag(nil, n, wire.BytesType), wire.SizeTag(n))
		require.Len(t, wire.AppendUint(nil, n, v), wire.SizeUint(n, v))
		require.Len(t, wire.AppendBool(nil, n, v%2 == 0), wire.SizeBool(n, v%2 == 0))
		require.Len(t, wire.AppendBytes(nil, n, data), wire.SizeBytes(n, len(data)))
	})
}

// The bytes are those of protobuf, and never change.
func TestGoldenBytes(t *testing.T) {
	m := message{
		count: 300, flag: true, uid: 7, text: "é", data: []byte{0xff},
		node:  gossip.NodeID{Address: gossip.Address{Host: "a", Port: 80}, UID: 2},
		inner: &message{text: strings.Repeat("x", 130)},
	}
	require.Equal(t, "08ac02"+"1001"+"190700000000000000"+"2202c3a9"+"2a01ff"+
		"82010e0a01611050190200000000000000"+
		"c2bb018e01"+"190000000000000000"+"228201"+strings.Repeat("78", 130), hex.EncodeToString(m.append(nil)))
}

func TestWhatIsMalformedIsRefused(t *testing.T) {
	group := func(n wire.Number, inside string) string {
		return string(wire.AppendTag(nil, n, 3)) + inside + string(wire.AppendTag(nil, n, 4))
	}
	tag := func(n wire.Number, t wire.Type) string { return string(wire.AppendTag(nil, n, t)) }
	for name, c := range map[string]struct{ bytes, want string }{
		"a tag cut off":            {"\x80", "a tag"},
		"a tag of 11 bytes":        {strings.Repeat("\x80", 10) + "\x01", "a tag"},
		"number 0":                 {"\x00\x00", "a tag"},
		"a number too large":       {string(wire.AppendVarint(nil, 1<<32)) + "\x00", "a tag"},
		"an unknown wire type":     {tag(9, 6), "field 9 of wire type 6"},
		"a varint cut off":         {"\x08\x80", "field 1 of wire type 0 is cut off"},
		"a varint of 65 bits":      {"\x08" + strings.Repeat("\xff", 9) + "\x02", "field 1"},
		"a fixed64 cut off":        {tag(9, wire.Fixed64Type) + "1234567", "field 9"},
		"a fixed32 cut off":        {tag(9, wire.Fixed32Type) + "123", "field 9"},
		"bytes cut off":            {tag(9, wire.BytesType) + "\x04123", "field 9"},
		"bytes without end":        {tag(9, wire.BytesType) + strings.Repeat("\xff", 9) + "\x01", "field 9"},
		"a group without end":      {tag(9, 3), "field 9"},
		"a group in another's end": {tag(9, 3) + tag(8, 4), "field 9"},
		"an end without a group":   {tag(9, 4), "field 9"},
		"groups without end":       {strings.Repeat(tag(9, 3), 20_000) + strings.Repeat(tag(9, 4), 20_000), "field 9"},
		"a count of bytes":         {"\x0a\x00", "want a varint"},
		"a uid of a varint":        {"\x18\x00", "want a fixed64"},
		"a text of a varint":       {"\x20\x00", "want bytes"},
		"a truth value of 2":       {"\x10\x02", "field 2 is 2, at most 1"},
		"a text of other bytes":    {"\x22\x01\xff", "not UTF-8"},
		"a node of a varint":       {"\x80\x01\x01", "want bytes"},
		"a node of nothing":        {"\x82\x01\x00", "uid 0"},
		"a node cut off":           {"\x82\x01\x01\x0a", "field 1"},
		"a node's port":            {"\x82\x01\x04\x10\x80\x80\x04", "at most 65535"},
	} {
		t.Run(name, func(t *testing.T) {
			err := wire.Each([]byte(c.bytes), new(message).set)
			require.ErrorIs(t, err, wire.ErrMalformed)
			require.ErrorContains(t, err, c.want)
		})
	}
	later := tag(50, wire.Fixed32Type) + "1234" + group(60, tag(1, wire.VarintType)+"\x01"+group(2, "")) + tag(70, wire.Fixed64Type) + "12345678"
	require.NoError(t, wire.Each([]byte(later), new(message).set), "fields of a later version are passed over")
}

func TestBoundsAreInclusive(t *testing.T) {
	f, rest, err := wire.Next(wire.AppendString(nil, 1, "four"))
	require.NoError(t, err)
	require.Empty(t, rest)
	_, err = f.Text(4)
	require.NoError(t, err)
	_, err = f.Text(3)
	require.ErrorIs(t, err, wire.ErrMalformed)
	f, _, err = wire.Next(wire.AppendUint(nil, 1, 9))
	require.NoError(t, err)
	_, err = f.Uint(9)
	require.NoError(t, err)
	_, err = f.Uint(8)
	require.ErrorIs(t, err, wire.ErrMalformed)
}

func TestNodesOfGeneratedCode(t *testing.T) {
	id, err := wire.NodeOf("a", 65535, 0)
	require.NoError(t, err)
	require.Equal(t, gossip.NodeID{Address: gossip.Address{Host: "a", Port: 65535}}, id)
	_, err = wire.NodeOf("a", 65536, 1)
	require.ErrorIs(t, err, wire.ErrMalformed)
}

// A clipped text can be sent, whatever the text was.
func TestAClippedTextCanTravel(t *testing.T) {
	require.Equal(t, "ab", wire.Clip("abcd", 2))
	require.Equal(t, "a", wire.Clip("aé", 2), "no half of a character")
	require.Equal(t, "ab", wire.Clip("a\xffb", 3))
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOf(rapid.Byte()).Draw(t, "text"))
		limit := rapid.IntRange(0, 20).Draw(t, "limit")
		got := wire.Clip(text, limit)
		require.LessOrEqual(t, len(got), limit)
		require.True(t, utf8.ValidString(got))
	})
}

func TestMalformedKeepsItsCause(t *testing.T) {
	err := wire.Malformed("node %d: %w", 3, io.EOF)
	require.EqualError(t, err, "malformed: node 3: EOF")
	require.ErrorIs(t, err, wire.ErrMalformed)
	require.ErrorIs(t, err, io.EOF)
}

// Reading allocates no memory, except for texts.
func TestReadingAllocatesNothing(t *testing.T) {
	b := (&message{count: 1, flag: true, uid: 5, data: make([]byte, 200)}).append(nil)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for rest := b; len(rest) > 0; {
			f, next, err := wire.Next(rest)
			if err != nil {
				panic(err)
			}
			rest = next
			switch f.Type {
			case wire.VarintType:
				_, err = f.Uint(math.MaxUint64)
			case wire.BytesType:
				_, err = f.Data(math.MaxInt)
			default:
				_, err = f.Fixed64()
			}
			if err != nil {
				panic(err)
			}
		}
	}))
}

// Any input gives no panic, and an error that wraps ErrMalformed or fields that
// together are the input.
func FuzzEach(f *testing.F) {
	f.Add((&message{count: 1 << 40, flag: true, uid: 5, text: "text", data: make([]byte, 200), inner: &message{}}).append(nil))
	f.Add([]byte("\x82\x01\x0e\x0a\x01a\x10P\x19\x02\x00\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte("\x4b\x08\x01\x13\x14\x4c\x4d1234"))
	f.Add([]byte("\x08\x80"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var all []byte
		err := wire.Each(b, func(f *wire.Field) error {
			all = append(all, f.Raw...)
			return nil
		})
		require.Equal(t, string(b[:len(all)]), string(all))
		if err == nil {
			require.Len(t, all, len(b))
		} else {
			require.ErrorIs(t, err, wire.ErrMalformed)
		}
		var m message
		if err := wire.Each(b, m.set); err != nil {
			require.ErrorIs(t, err, wire.ErrMalformed)
			return
		}
		var again message
		require.NoError(t, wire.Each(m.append(nil), again.set))
		require.Equal(t, m.append(nil), again.append(nil))
	})
}

// Lists have the length that they are made with, up to what the bytes of the message allow together.
func TestListsAreBoundedByTheMessage(t *testing.T) {
	b := bytes.Repeat([]byte{1<<3 | 2, 0, 2 << 3, 1}, 1000)
	require.Equal(t, 1000, wire.Count(b, 1))
	require.Equal(t, 1000, wire.Count(append(b, 1<<3|2), 1), "up to what is malformed")
	require.Zero(t, wire.Count(b, 3))

	budget := wire.BudgetOf(b)
	most := (4<<10 + 7*len(b)) / 8
	none, err := wire.List[uint64](&budget, 0)
	require.NoError(t, err)
	require.Nil(t, none)
	first, err := wire.List[uint64](&budget, most-1)
	require.NoError(t, err)
	require.Empty(t, first)
	require.Equal(t, most-1, cap(first))
	_, err = wire.List[uint64](&budget, 2)
	require.ErrorIs(t, err, wire.ErrMalformed, "there is room for one more")
	_, err = wire.List[uint64](&budget, 1)
	require.NoError(t, err)
	_, err = wire.List[[100]byte](&budget, math.MaxInt)
	require.ErrorIs(t, err, wire.ErrMalformed)
}
