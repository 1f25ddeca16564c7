// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/wire"
)

// A message with a row of each sort is written and read: laws and golden bytes first, then what later versions send,
// bounds, lists and memory; last any bytes.

type level uint8

// record has a row of each sort.
type record struct {
	level  level
	wide   uint64
	signed int64
	within time.Duration
	uid    gossip.UID
	flag   bool
	text   string
	reason string
	name   string
	data   []byte
	node   gossip.NodeID
	always part
	sparse part
	maybe  *part
	fixeds []gossip.UID
	uints  []uint16
	ints   []int64
	texts  []string
	parts  []part
	nodes  []gossip.NodeID
	hand   [2]byte
}

// part is a message in a record.
type part struct {
	count uint32
	deep  []part
}

func partTable(p *part, c *wire.Codec) {
	wire.Uint(c, 1, &p.count, 1000)
	wire.Messages(c, 2, &p.deep, 3, partTable)
}

func recordTable(r *record, c *wire.Codec) {
	wire.Uint(c, 1, &r.level, math.MaxUint64)
	wire.Uint(c, 2, &r.wide, math.MaxUint64)
	wire.Int(c, 3, &r.signed, math.MaxUint64)
	wire.Int(c, 4, &r.within, math.MaxInt64)
	wire.Fixed(c, 5, &r.uid)
	wire.Bool(c, 6, &r.flag)
	wire.Text(c, 7, &r.text, 100)
	wire.Clipped(c, 8, &r.reason, 10)
	wire.Name(c, 9, &r.name, 20)
	wire.Data(c, 10, &r.data, 50)
	wire.Node(c, 11, &r.node)
	wire.Message(c, 12, &r.always, partTable)
	wire.Sparse(c, 13, &r.sparse, partTable)
	wire.Optional(c, 14, &r.maybe, partTable)
	wire.Fixeds(c, 15, &r.fixeds, 10)
	wire.Uints(c, 16, &r.uints, 40_000, 10)
	wire.Ints(c, 17, &r.ints, 10)
	wire.Texts(c, 18, &r.texts, 20, 10)
	wire.Messages(c, 19, &r.parts, 10, partTable, func(p *part) error {
		if p.count == 999 {
			return wire.Malformed("part 999")
		}
		return nil
	})
	wire.Nodes(c, 20, &r.nodes, 2)
	if c.At(70) && (c.Reading() || r.hand != [2]byte{}) {
		wire.Row(c, 70, func(b []byte) []byte { return wire.AppendBytes(b, 70, r.hand[:]) }, func(f *wire.Field) error {
			b, err := f.Data(2)
			copy(r.hand[:], b)
			return err
		})
	}
}

func listOf[T any](t *rapid.T, of *rapid.Generator[T], label string) []T {
	all := rapid.SliceOfN(of, 0, 3).Draw(t, label)
	if len(all) == 0 {
		return nil
	}
	return all
}

func drawPart(depth int) *rapid.Generator[part] {
	return rapid.Custom(func(t *rapid.T) part {
		p := part{count: rapid.Uint32Max(998).Draw(t, "count")}
		if depth > 0 {
			p.deep = listOf(t, drawPart(depth-1), "deep")
		}
		return p
	})
}

var drawRecord = rapid.Custom(func(t *rapid.T) record {
	text := rapid.StringMatching(`[a-z]{0,9}`)
	r := record{
		level: level(rapid.Uint8().Draw(t, "level")), wide: rapid.Uint64().Draw(t, "wide"), signed: rapid.Int64().Draw(t, "signed"),
		within: time.Duration(rapid.Int64Min(0).Draw(t, "within")), uid: gossip.UID(rapid.Uint64().Draw(t, "uid")), flag: rapid.Bool().Draw(t, "flag"),
		text: text.Draw(t, "text"), reason: text.Draw(t, "reason"), name: text.Draw(t, "name"),
		always: drawPart(1).Draw(t, "always"), sparse: drawPart(1).Draw(t, "sparse"),
		fixeds: listOf(t, rapid.Custom(func(t *rapid.T) gossip.UID { return gossip.UID(rapid.Uint64().Draw(t, "uid")) }), "fixeds"),
		uints:  listOf(t, rapid.Uint16Max(40_000), "uints"), ints: listOf(t, rapid.Int64(), "ints"),
		texts: listOf(t, text, "texts"), parts: listOf(t, drawPart(2), "parts"),
	}
	if b := rapid.SliceOfN(rapid.Byte(), 0, 50).Draw(t, "data"); len(b) > 0 {
		r.data = b
	}
	if rapid.Bool().Draw(t, "some") {
		r.node = gossip.NodeID{Address: gossip.Address{Host: "a", Port: 1}, UID: 7}
		p := drawPart(1).Draw(t, "maybe")
		r.maybe, r.hand, r.nodes = &p, [2]byte{1, 2}, []gossip.NodeID{r.node, r.node}
	}
	return r
})

func write(t require.TestingT, r record) []byte {
	b, err := wire.Append(nil, &r, recordTable)
	require.NoError(t, err)
	return b
}

func readRecord(b []byte) (r record, err error) {
	err = wire.Read(b, &r, recordTable)
	return r, err
}

// fieldsOf returns the fields of a message, each as it is encoded.
func fieldsOf(t require.TestingT, b []byte) (all [][]byte) {
	require.NoError(t, wire.Each(b, func(f *wire.Field) error {
		all = append(all, f.Raw)
		return nil
	}))
	return all
}

// Law: what a table writes it reads, whatever bytes stood before it, and nothing of the input is kept; an empty message
// has no bytes but those of what is always there.
func TestATableReadsWhatItWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRecord.Draw(t, "record")
		b, err := wire.Append([]byte("before"), &r, recordTable)
		require.NoError(t, err)
		require.Equal(t, "before", string(b[:6]))
		got, err := readRecord(b[6:])
		require.NoError(t, err)
		require.Equal(t, b[6:], write(t, got))
		clear(b)
		require.Equal(t, r, got)
	})
	require.Equal(t, "6200", hex.EncodeToString(write(t, record{})))
}

// Law: the order of fields of different numbers does not matter, nor does what stands between them that a later version
// has added.
func TestFieldsComeInAnyOrderAndAmongLaterOnes(t *testing.T) {
	later := [][]byte{
		wire.AppendUint(nil, 60, 7), wire.AppendString(nil, 61, "later"), wire.AppendFixed64(nil, 5000, 1),
	}
	rapid.Check(t, func(t *rapid.T) {
		r := drawRecord.Draw(t, "record")
		fields := fieldsOf(t, write(t, r))
		number := func(b []byte) wire.Number {
			n, _, _ := wire.Tag(b)
			return n
		}
		at := rapid.Permutation(fields).Draw(t, "order")
		var b []byte
		for _, f := range at {
			b = append(b, rapid.SampledFrom(later).Draw(t, "later")...)
			if n := number(f); n < 18 || n > 20 {
				b = append(b, f...)
			}
		}
		for _, f := range fields { // Those of lists keep their order.
			if n := number(f); n >= 18 && n <= 20 {
				b = append(append(b, f...), later[0]...)
			}
		}
		got, err := readRecord(b)
		require.NoError(t, err)
		require.Equal(t, r, got)
	})
}

// The bytes are those of protobuf, and never change.
func TestGoldenBytesOfATable(t *testing.T) {
	r := record{
		level: 3, wide: 300, signed: -1, within: 5, uid: 7, flag: true, text: "é", reason: "why", name: "n", data: []byte{0xff},
		node:   gossip.NodeID{Address: gossip.Address{Host: "a", Port: 80}, UID: 2},
		sparse: part{count: 1}, maybe: &part{}, fixeds: []gossip.UID{1}, uints: []uint16{1, 300}, ints: []int64{-1, 1},
		texts: []string{"", "x"}, parts: []part{{}, {count: 2, deep: []part{{count: 1}}}}, hand: [2]byte{1, 2},
	}
	require.Equal(t, "0803"+"10ac02"+"18ffffffffffffffffff01"+"2005"+"290700000000000000"+"3001"+"3a02c3a9"+"4203776879"+"4a016e"+"5201ff"+
		"5a0e0a01611050190200000000000000"+"6200"+"6a020801"+"7200"+"7a080100000000000000"+"82010301ac02"+"8a010bffffffffffffffffff0101"+
		"92010092010178"+"9a01009a0106080212020801"+"b204020102", hex.EncodeToString(write(t, r)))
	got, err := readRecord(write(t, r))
	require.NoError(t, err)
	require.Equal(t, r, got)
}

// What a writer may not send is its own to see to, except for the text of a reason.
func TestAReasonIsCut(t *testing.T) {
	got, err := readRecord(write(t, record{reason: "123456789é"}))
	require.NoError(t, err)
	require.Equal(t, "123456789", got.reason)
}

func TestTablesRefuseWhatIsMalformed(t *testing.T) {
	tag := func(n wire.Number, t wire.Type) string { return string(wire.AppendTag(nil, n, t)) }
	text := func(n wire.Number, inside string) string {
		return tag(n, wire.BytesType) + string(wire.AppendVarint(nil, uint64(len(inside)))) + inside
	}
	number := func(n wire.Number, v uint64) string {
		return tag(n, wire.VarintType) + string(wire.AppendVarint(nil, v))
	}
	for name, c := range map[string]struct{ bytes, want string }{
		"a tag cut off":                {"\x80", "a tag"},
		"a number beyond its type":     {number(1, 256), "field 1 is 256, at most 255"},
		"a number of text":             {text(2, ""), "want a varint"},
		"a negative duration":          {number(4, math.MaxUint64), "field 4 is"},
		"a signed number of text":      {text(3, ""), "want a varint"},
		"a fixed64 of a varint":        {number(5, 1), "want a fixed64"},
		"a truth value of 2":           {number(6, 2), "at most 1"},
		"a text of other bytes":        {text(7, "\xff"), "not UTF-8"},
		"a long text":                  {text(7, strings.Repeat("x", 101)), "at most 100"},
		"a long reason":                {text(8, strings.Repeat("x", 11)), "at most 10"},
		"a name that does not print":   {text(9, "a\nb"), "do not print"},
		"long data":                    {text(10, strings.Repeat("x", 51)), "at most 50"},
		"a node of nothing":            {text(11, ""), "uid 0"},
		"a message of a number":        {number(12, 1), "want bytes"},
		"a message cut off":            {text(12, "\x08"), "cut off"},
		"a message with a bad field":   {text(12, number(1, 1001)), "at most 1000"},
		"a message twice":              {text(12, "") + text(12, ""), "field 12 comes twice"},
		"a sparse message twice":       {text(13, "") + number(1, 1) + text(13, ""), "field 13 comes twice"},
		"an optional message twice":    {text(14, "") + text(14, ""), "field 14 comes twice"},
		"fixed64s of a number":         {number(15, 1), "want bytes"},
		"fixed64s cut off":             {text(15, strings.Repeat("x", 9)), "9 bytes of numbers"},
		"too many fixed64s":            {text(15, strings.Repeat("x", 88)), "more than 10 values of field 15"},
		"fixed64s twice":               {text(15, "12345678") + text(15, "12345678"), "field 15 comes twice"},
		"numbers that are not packed":  {number(16, 1), "want bytes"},
		"numbers cut off":              {text(16, "\x01\x80"), "cut off"},
		"a number of a list too large": {text(16, "\xff\xff\x03"), "over 40000"},
		"too many numbers":             {text(16, strings.Repeat("\x01", 11)), "more than 10 values of field 16"},
		"numbers twice":                {text(16, "\x01") + text(16, "\x01"), "field 16 comes twice"},
		"signed numbers cut off":       {text(17, "\x80"), "cut off"},
		"a text of a list too long":    {text(18, strings.Repeat("x", 21)), "at most 20"},
		"too many texts":               {strings.Repeat(text(18, ""), 11), "more than 10 values of field 18"},
		"too many messages":            {strings.Repeat(text(19, ""), 11), "more than 10 values of field 19"},
		"too many messages inside":     {text(19, strings.Repeat(text(2, ""), 4)), "more than 3 values of field 2"},
		"a message that a check finds": {text(19, number(1, 999)) + text(19, number(1, 1)), "part 999"},
		"nodes of nothing":             {text(20, ""), "uid 0"},
		"too many nodes":               {strings.Repeat(text(20, "\x0a\x01a\x10\x50\x19\x02\x00\x00\x00\x00\x00\x00\x00"), 3), "more than 2 values of field 20"},
		"a field by hand":              {text(70, "123"), "at most 2"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readRecord([]byte(c.bytes))
			require.ErrorIs(t, err, wire.ErrMalformed)
			require.ErrorContains(t, err, c.want)
		})
	}
}

// Of a number or a text that comes twice the last one counts, as in protobuf, wherever the other fields are.
func TestTheLastValueCounts(t *testing.T) {
	b := append(write(t, record{level: 1, text: "a"}), write(t, record{level: 2})[:2]...)
	got, err := readRecord(append(b, wire.AppendString(wire.AppendUint(nil, 1, 3), 7, "b")...))
	require.NoError(t, err)
	require.Equal(t, record{level: 3, text: "b"}, got)
}

// A row that fails ends the writing as the reading, and its error is the first one.
func TestARowFails(t *testing.T) {
	first := errors.New("first")
	table := func(v *uint64, c *wire.Codec) {
		wire.Uint(c, 1, v, 10)
		c.Fail(nil)
		c.Fail(first)
		c.Fail(errors.New("second"))
		wire.Uint(c, 2, v, 10)
	}
	v := uint64(1)
	b, err := wire.Append([]byte("before"), &v, table)
	require.Equal(t, first, err)
	require.Equal(t, "before", string(b))
	require.Equal(t, first, wire.Read([]byte{8, 1}, &v, table))
	require.NoError(t, wire.Read(nil, &v, table), "the table of an empty message is not walked")
}

// One walk over a table reads all fields that stand in its order, and each other field costs one more.
func TestOneWalkReadsWhatIsInOrder(t *testing.T) {
	walks := 0
	table := func(v *[3]uint64, c *wire.Codec) {
		walks++
		for i := range v {
			wire.Uint(c, wire.Number(i+1), &v[i], 10)
		}
	}
	for in, want := range map[string]int{"\x08\x01\x10\x02\x10\x02\x18\x03": 1, "\x18\x03\x10\x02\x08\x01": 3, "\x08\x01\x20\x05\x10\x02": 3, "": 0} {
		walks = 0
		require.NoError(t, wire.Read([]byte(in), new([3]uint64), table))
		require.Equal(t, want, walks, "%x", in)
	}
}

// Numbers of lists and messages are marked by bits.
func TestNumbersOfListsAreBounded(t *testing.T) {
	table := func(v *[]string, c *wire.Codec) { wire.Texts(c, wire.MaxTable+1, v, 10, 10) }
	require.Panics(t, func() { _ = wire.Read(wire.AppendString(nil, wire.MaxTable+1, "x"), new([]string), table) })
}

// Lists of one message share its budget, those inside other lists too.
func TestListsOfATableShareTheRoom(t *testing.T) {
	const each = 300
	table := func(v *[][]string, c *wire.Codec) {
		wire.Messages(c, 1, v, math.MaxInt, func(v *[]string, c *wire.Codec) { wire.Texts(c, 1, v, 1, math.MaxInt) })
	}
	inside := bytes.Repeat([]byte{1<<3 | 2, 0}, each)
	var all [][]string
	require.NoError(t, wire.Read(append([]byte{1<<3 | 2, 0xd8, 0x04}, inside...), &all, table), "there are four KiB besides")
	require.Len(t, all[0], each)
	b := bytes.Repeat(append([]byte{1<<3 | 2, 0xd8, 0x04}, inside...), 100)
	err := wire.Read(b, new([][]string), table)
	require.ErrorIs(t, err, wire.ErrMalformed)
	require.ErrorContains(t, err, "less than a seventh")
}

// A list that is read in two walks, first counted and then taken in, has the budget of the message once.
func TestStreamsAreReadInSeveralWalks(t *testing.T) {
	type group struct {
		parts []part
		one   part
		sum   int
	}
	write := func(g *group, c *wire.Codec) {
		for _, p := range g.parts {
			wire.Stream(c, 1, &p, partTable, nil)
		}
	}
	sent := group{parts: []part{{count: 1}, {}, {count: 3, deep: []part{{count: 4}}}}}
	b, err := wire.Append(nil, &sent, write)
	require.NoError(t, err)
	require.Equal(t, "0a020801"+"0a00"+"0a06080312020804", hex.EncodeToString(b))

	var got group
	budget := wire.BudgetOf(b)
	require.NoError(t, wire.ReadIn(&budget, b, &got, func(g *group, c *wire.Codec) {
		wire.Stream(c, 1, &g.one, func(p *part, c *wire.Codec) { wire.Uint(c, 1, &p.count, 3) }, func(p *part) error {
			g.sum += int(p.count)
			return nil
		})
	}))
	require.Equal(t, 4, got.sum)
	require.Equal(t, wire.BudgetOf(b), budget, "nothing was made")
	stop := errors.New("stop")
	visit := func(p *part) error {
		if len(got.parts) == len(sent.parts) {
			return stop
		}
		got.parts = append(got.parts, *p)
		return nil
	}
	require.NoError(t, wire.ReadIn(&budget, b, &got, func(g *group, c *wire.Codec) { wire.Stream(c, 1, &g.one, partTable, visit) }))
	require.Equal(t, sent.parts, got.parts)
	require.NotEqual(t, wire.BudgetOf(b), budget)

	err = wire.Read(b, &got, func(g *group, c *wire.Codec) { wire.Stream(c, 1, &g.one, partTable, visit) })
	require.Equal(t, stop, err)
	err = wire.Read([]byte{1<<3 | 2, 1, 8}, &got, func(g *group, c *wire.Codec) { wire.Stream(c, 1, &g.one, partTable, visit) })
	require.ErrorIs(t, err, wire.ErrMalformed)
}

// Messages inside a message cost no more than the values in them.
func TestMessagesInsideAllocateNothing(t *testing.T) {
	r := record{parts: make([]part, 10), always: part{count: 1}, sparse: part{count: 1}}
	b := write(t, r)
	buffer := make([]byte, 0, len(b))
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() {
		var got record
		if err := wire.Read(b, &got, recordTable); err != nil {
			panic(err)
		}
	}), 3.0, "the message, the codec and the list")
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() {
		if _, err := wire.Append(buffer, &r, recordTable); err != nil {
			panic(err)
		}
	}), 1.0, "the codec")
}

// passed is a message that is passed on, as a version knows it that lacks the fields from 3 on.
type passed struct {
	to      uint32
	inside  []passed
	unknown string
}

func passedTable(m *passed, c *wire.Codec) {
	wire.Uint(c, 1, &m.to, 1000)
	wire.Messages(c, 2, &m.inside, 10, passedTable)
	wire.Keep(c, &m.unknown, 12)
}

func writePassed(t testing.TB, m passed) []byte {
	t.Helper()
	b, err := wire.Append(nil, &m, passedTable)
	require.NoError(t, err)
	return b
}

// What a version does not know of a message that it passes on, and of messages inside, goes on as it came, wherever it
// stood, field by field in its order.
func TestFieldsOfLaterVersionsAreKept(t *testing.T) {
	news := wire.AppendUint(wire.AppendString(nil, 5, "new"), 4, 300)
	news = wire.AppendUint(news, 5, 7)
	deep := wire.AppendUint(nil, 9, 1)
	want := passed{to: 3, inside: []passed{{}, {to: 1, inside: []passed{{unknown: string(deep)}}, unknown: string(deep)}}, unknown: string(news)}
	var around []byte // The fields of the message, with one that is not known before each.
	whole := writePassed(t, passed{to: want.to, inside: want.inside})
	for rest, unknown := whole, news; len(rest) > 0; {
		f, after, err := wire.Next(rest)
		require.NoError(t, err)
		if len(unknown) > 0 {
			later, left, err := wire.Next(unknown)
			require.NoError(t, err)
			around, unknown = append(around, later.Raw...), left
		}
		around, rest = append(around, f.Raw...), after
	}
	for _, b := range [][]byte{writePassed(t, want), around} {
		var got passed
		require.NoError(t, wire.Read(b, &got, passedTable))
		require.Equal(t, want, got)
	}
	require.Equal(t, append(whole, news...), writePassed(t, want))
}

// A message keeps as many bytes as its row says, by itself: those of messages inside count there.
func TestKeptFieldsAreBounded(t *testing.T) {
	most := wire.AppendString(nil, 5, "0123456789")
	var got passed
	full := writePassed(t, passed{inside: []passed{{unknown: string(most)}, {unknown: string(most)}}, unknown: string(most)})
	require.NoError(t, wire.Read(full, &got, passedTable))
	require.ErrorIs(t, wire.Read(wire.AppendUint(full, 3, 1), &got, passedTable), wire.ErrMalformed)
	within := writePassed(t, passed{inside: []passed{{unknown: string(wire.AppendString(most, 3, ""))}}})
	require.NoError(t, wire.Read(within, &got, passedTable))
	within = writePassed(t, passed{inside: []passed{{unknown: string(wire.AppendUint(most, 3, 1))}}})
	require.ErrorContains(t, wire.Read(within, &got, passedTable), "more than 12 bytes of fields that this version does not know")
}

// A message without such fields costs no more than if they were not kept.
func TestKeepingNothingCostsNothing(t *testing.T) {
	b := writePassed(t, passed{to: 3})
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() {
		var got passed
		if err := wire.Read(b, &got, passedTable); err != nil {
			panic(err)
		}
	}), 2.0, "the message and the codec")
}

// Any input gives no panic, and an error that wraps ErrMalformed or a message that is written and read again as it is.
func FuzzTable(f *testing.F) {
	f.Add(write(f, record{
		level: 3, signed: -1, text: "é", data: []byte{0xff}, node: gossip.NodeID{Address: gossip.Address{Host: "a", Port: 80}, UID: 2},
		maybe: &part{}, fixeds: []gossip.UID{1}, uints: []uint16{1, 300}, ints: []int64{-1}, texts: []string{"x"}, parts: []part{{}, {count: 2, deep: []part{{}}}},
	}))
	f.Add([]byte("\x9a\x01\x04\x12\x00\x12\x00\x92\x01\x00"))
	f.Add([]byte("\x62\x00\x62\x00"))
	f.Add([]byte("\x82\x01\x02\x80\x01\xe0\x03\x05"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := readRecord(b)
		if err != nil {
			require.ErrorIs(t, err, wire.ErrMalformed)
			return
		}
		first := write(t, r)
		again, err := readRecord(first)
		require.NoError(t, err)
		require.Equal(t, first, write(t, again))
	})
}

func BenchmarkTable(b *testing.B) {
	r := record{
		level: 3, wide: 300, uid: 7, flag: true, text: "some text", name: "a name", always: part{count: 1}, sparse: part{count: 2},
		uints: []uint16{1, 300}, texts: []string{"x", "y"}, parts: make([]part, 5),
	}
	encoded := write(b, r)
	b.Run("append", func(b *testing.B) {
		buffer := make([]byte, 0, len(encoded))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := wire.Append(buffer, &r, recordTable); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var got record
			if err := wire.Read(encoded, &got, recordTable); err != nil {
				b.Fatal(err)
			}
		}
	})
}
