// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/wire"
)

// Bytes that are no message of ours: first fields as a peer might write them, and tables of
// what is wrong with control messages and items; then how each is refused, messages that are
// cut off, fields of a later version, and the edges of values; last fuzzing and benchmarks.

// varint, text and fixed return the bytes of a field as a peer might write it.
func varint(n protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, n, protowire.VarintType), v)
}

func text(n protowire.Number, parts ...[]byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, n, protowire.BytesType), bytes.Join(parts, nil))
}

func fixed(n protowire.Number, v uint64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(nil, n, protowire.Fixed64Type), v)
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

var (
	long       = bytes.Repeat([]byte("x"), 2000)
	notUTF8    = []byte{0xff, 0xfe}
	kind       = text(2, []byte("k"))
	someEpoch  = join(varint(1, 5), varint(2, 1), varint(3, 1), varint(4, 2))
	someNode   = join(text(1, []byte("h")), varint(2, 1), fixed(3, 9))
	endOfGroup = protowire.AppendTag(nil, 3, protowire.EndGroupType)
)

// malformed is a sequence of bytes that is no message, and a part of the error that decoding
// it must return.
type malformed struct {
	b    []byte
	want string
}

func malformedControls() map[string]malformed {
	shard := func(parts ...[]byte) []byte { return join(varint(1, 9), kind, text(5, parts...)) }
	registration := func(parts ...[]byte) []byte { return join(varint(1, 5), kind, text(4, parts...)) }
	return map[string]malformed{
		"a scale of no shards":        {registration(text(30, varint(1, 3))), "no shard is in use"},
		"a scale of too many shards":  {registration(text(30, varint(2, 65537))), "at most 65536"},
		"a scale of a number":         {join(varint(1, 30), kind, varint(30, 1)), "want bytes"},
		"a rescale to no revision":    {join(varint(1, 30), kind, text(30, varint(2, 3))), "told no revision"},
		"a rescale without a scale":   {join(varint(1, 30), kind), "told no revision"},
		"a change to too many shards": {join(varint(1, 31), kind, varint(8, 65537)), "are to be in use"},
		"a long reason":               {join(varint(1, 32), kind, text(32, text(2, long))), "at most"},
		"nothing":                     {nil, "without a kind"},
		"no kind":                     {varint(1, 1), "without a kind"},
		"no type":                     {kind, "of type 0"},
		"unknown type":                {join(varint(1, 99), kind), "of type 99"},
		"type out of range":           {join(varint(1, 256), kind), "at most 255"},
		"type of another wire type":   {join(text(1, []byte("x")), kind), "want a varint"},
		"kind of another wire type":   {join(varint(1, 1), varint(2, 1)), "want bytes"},
		"long kind":                   {join(varint(1, 1), text(2, long)), "at most 128"},
		"kind not UTF-8":              {join(varint(1, 1), text(2, notUTF8)), "not UTF-8"},
		"a tag cut off":               {[]byte{0x80}, "cut off"},
		"a tag of field 0":            {[]byte{0x00}, "field"},
		"a field cut off":             {text(2, []byte("kind"))[:3], "cut off"},
		"a group that only ends":      {endOfGroup, "field 3"},
		"term of another wire type":   {join(kind, varint(3, 1)), "want bytes"},
		"term with a wrong field":     {join(kind, text(3, text(1, nil))), "want a varint"},
		"term with a wrong start":     {join(kind, text(3, text(2, nil))), "want a varint"},
		"term cut off":                {join(kind, text(3, []byte{0x08})), "cut off"},
		"registration of a number":    {join(kind, varint(4, 1)), "want bytes"},
		"registration: no settings":   {registration(varint(1, 1)), "want bytes"},
		"registration: too many":      {registration(text(1, varint(1, protocol.MaxShards+1))), "at most 65536"},
		"registration: long hash":     {registration(text(1, text(2, long))), "at most 128"},
		"registration: long codec":    {registration(text(1, text(3, long))), "at most 128"},
		"registration: long role":     {registration(text(1, text(4, long))), "at most 128"},
		"registration: proxy 2":       {registration(varint(2, 2)), "at most 1"},
		"registration: suspended 2":   {registration(varint(3, 2)), "at most 1"},
		"registration: capacity":      {registration(varint(4, 1<<32)), "at most"},
		"shards of a number":          {join(kind, varint(5, 1)), "want bytes"},
		"shard out of range":          {shard(varint(1, 1<<32)), "at most 4294967295"},
		"shard without an epoch":      {shard(varint(1, 1)), "without an epoch"},
		"epoch of a number":           {shard(varint(2, 1)), "want bytes"},
		"epoch of a fixed number":     {shard(fixed(2, 1)), "want bytes"},
		"epoch born before 1970":      {shard(text(2, varint(1, 1<<63))), "at most"},
		"epoch with a wrong term":     {shard(text(2, text(2, nil))), "want a varint"},
		"epoch with a wrong start":    {shard(text(2, text(3, nil))), "want a varint"},
		"epoch with a wrong version":  {shard(text(2, text(4, nil))), "want a varint"},
		"base of a number":            {shard(varint(3, 1)), "want bytes"},
		"state out of range":          {shard(text(2, someEpoch), varint(4, 6)), "at most 5"},
		"report without a state":      {join(varint(1, 4), kind, text(5, text(2, someEpoch))), "without a state"},
		"position of a number":        {shard(varint(5, 1)), "want bytes"},
		"position without an origin":  {shard(text(2, someEpoch), text(5, varint(2, 1))), "without an origin"},
		"position with a wrong seq":   {shard(text(2, someEpoch), text(5, text(1, someNode), text(2, nil))), "want a varint"},
		"node of a number":            {join(kind, varint(6, 1)), "want bytes"},
		"node without an address":     {join(kind, text(6, fixed(3, 9))), "malformed"},
		"node with a long host":       {join(kind, text(6, text(1, long))), "at most 255"},
		"node with a port too high":   {join(kind, text(6, text(1, []byte("h")), varint(2, 65536))), "at most 65535"},
		"node with a varint as uid":   {join(kind, text(6, text(1, []byte("h")), varint(2, 1), varint(3, 1))), "want a fixed64"},
		"node index out of range":     {join(varint(1, 7), kind, text(5, text(2, someEpoch), varint(6, 1)), text(6, someNode)), "node 1 of 1"},
		"node index beyond 32 bits":   {shard(text(2, someEpoch), varint(6, 1<<32)), "at most"},
		"from of another wire type":   {join(kind, text(7, nil)), "want a varint"},
		"to of another wire type":     {join(kind, text(8, nil)), "want a varint"},
		"wanted of a number":          {join(kind, varint(9, 1)), "want bytes"},
		"wanted out of range":         {join(kind, text(9, protowire.AppendVarint(nil, 1<<32))), "looked for"},
		"wanted cut off":              {join(kind, text(9, []byte{0x80})), "looked for"},
		"too many wanted":             {join(kind, text(9, make([]byte, 2*protocol.MaxShards+1))), "looked for"},
		"too many shards":             {join(kind, bytes.Repeat(text(5, text(2, someEpoch)), 3*protocol.MaxShards+1)), "more than 196608"},
		"layout of a number":          {join(kind, varint(16, 1)), "want bytes"},
		"layout without shards":       {join(kind, text(16, varint(1, 1))), "a layout without shards"},
		"layout with too many shards": {join(kind, text(16, varint(2, protocol.MaxShards+1))), "at most 65536"},
		"layout out of range":         {join(kind, text(16, varint(1, protocol.MaxLayouts+1))), "at most 65536"},
		"layouts out of order":        {join(kind, layoutOf(2), layoutOf(1)), "out of order"},
		"three layouts":               {join(kind, layoutOf(1), layoutOf(2), layoutOf(3)), "more than two layouts"},
		"too many layouts":            {join(kind, bytes.Repeat(text(16, varint(2, 1)), 65)), "more than 64"},
		"positions not known":         {shard(text(2, someEpoch), varint(4, 5), text(5, text(1, someNode))), "not known"},
		"settled of a number":         {join(kind, varint(17, 1)), "want bytes"},
		"follows of text":             {join(kind, text(18, nil)), "want a varint"},
		"long setting":                {join(kind, text(10, long)), "at most 1024"},
		"long value":                  {join(kind, text(11, long)), "at most 1024"},
		"long other value":            {join(kind, text(12, long)), "at most 1024"},
		"settings of a number":        {join(kind, varint(13, 1)), "want bytes"},
		"settings cut off":            {join(kind, text(13, []byte{0x08})), "cut off"},
		"id of text":                  {join(kind, text(14, nil)), "want a varint"},
		"explanation of a number":     {join(kind, varint(15, 1)), "want bytes"},
		"explanation cut off":         {join(kind, text(15, []byte{0x08})), "cut off"},
		"explained: shard":            {join(kind, text(15, varint(1, 1<<32))), "at most 4294967295"},
		"explained: phase":            {join(kind, text(15, varint(4, 7))), "at most 6"},
		"explained: long detail":      {join(kind, text(15, text(3, long))), "at most 1024"},
		"explained: long decision":    {join(kind, text(15, text(9, long))), "at most 1024"},
		"explained: long reason":      {join(kind, text(15, text(11, long))), "at most 1024"},
		"explained: since of text":    {join(kind, text(15, text(8, nil))), "want a varint"},
		"explained: deadline":         {join(kind, text(15, varint(12, 1<<63))), "at most"},
		"explained: nodes":            {join(kind, text(15, text(2, fixed(3, 9)))), "malformed"},
		"explained: home":             {join(kind, text(15, text(5, fixed(3, 9)))), "malformed"},
		"explained: target":           {join(kind, text(15, text(10, fixed(3, 9)))), "malformed"},
		"explained: epoch":            {join(kind, text(15, varint(6, 1))), "want bytes"},
		"explained: base":             {join(kind, text(15, varint(7, 1))), "want bytes"},
		"move of a number":            {join(kind, text(15, varint(13, 1))), "want bytes"},
		"move: from":                  {join(kind, text(15, text(13, text(1, fixed(3, 9))))), "malformed"},
		"move: to":                    {join(kind, text(15, text(13, text(2, fixed(3, 9))))), "malformed"},
		"move: started":               {join(kind, text(15, text(13, text(3, nil)))), "want a varint"},
		"move: ended":                 {join(kind, text(15, text(13, text(4, nil)))), "want a varint"},
		"move: outcome":               {join(kind, text(15, text(13, varint(5, 5)))), "at most 4"},
		"move: long reason":           {join(kind, text(15, text(13, text(6, long)))), "at most 1024"},
		"too many moves":              {join(kind, text(15, bytes.Repeat(text(13), control.MaxExplainedMoves+1))), "more than 16"},
		"a varint of eleven bytes":    {join(kind, []byte{0x38}, bytes.Repeat([]byte{0xff}, 11)), "field 7"},
		"a length beyond the message": {join(kind, []byte{0x2a, 0xff, 0xff, 0x03}), "field 5"},
	}
}

func malformedItems() map[string]malformed {
	message := func(parts ...[]byte) []byte { return join(varint(1, 1), kind, join(parts...)) }
	stream := func(parts ...[]byte) []byte { return text(5, text(1, []byte("k")), join(parts...)) }
	return map[string]malformed{
		"nothing":                   {nil, "without a kind"},
		"no type":                   {kind, "of type 0"},
		"unknown type":              {join(varint(1, 99), kind), "of type 99"},
		"flow without an entity":    {join(varint(1, 6), kind), "a flow without an entity"},
		"type of another wire type": {text(1, nil), "want a varint"},
		"long kind":                 {text(2, long), "at most 128"},
		"shard out of range":        {varint(3, 1<<32), "at most 4294967295"},
		"long entity":               {text(4, long), "at most 512"},
		"entity not UTF-8":          {text(4, notUTF8), "not UTF-8"},
		"stream of a number":        {varint(5, 1), "want bytes"},
		"stream: long kind":         {text(5, text(1, long)), "at most 128"},
		"stream: shard":             {text(5, varint(2, 1<<32)), "at most 4294967295"},
		"stream: origin":            {text(5, varint(3, 1)), "want bytes"},
		"stream: base":              {text(5, varint(4, 1)), "want bytes"},
		"stream: route":             {text(5, varint(5, 1)), "want bytes"},
		"stream: cut off":           {text(5, kind[:len(kind)-1]), "cut off"},
		"base of a number":          {varint(6, 1), "want bytes"},
		"seq of text":               {text(7, nil), "want a varint"},
		"clock out of range":        {varint(8, 1<<63), "at most"},
		"expired out of range":      {varint(19, 2), "at most 1"},
		"hops out of range":         {varint(9, 256), "at most 255"},
		"correlation of text":       {text(10, nil), "want a varint"},
		"remaining out of range":    {varint(11, 1<<63), "at most"},
		"long trace":                {text(12, bytes.Repeat([]byte{'x'}, 11<<10)), "at most 10240"},
		"codec out of range":        {varint(13, 1<<16), "at most"},
		"flags out of range":        {varint(14, 1<<32), "at most"},
		"payload of a number":       {varint(15, 1), "want bytes"},
		"code out of range":         {varint(16, 256), "at most"},
		"long detail":               {text(17, long), "at most 1024"},
		"acks of a number":          {varint(20, 1), "want bytes"},
		"no entity":                 {message(), "without an entity"},
		"no origin":                 {message(text(4, []byte("e")), stream(text(4, someEpoch)), varint(7, 1)), "place in a stream"},
		"no seq":                    {message(text(4, []byte("e")), stream(text(3, someNode), text(4, someEpoch))), "place in a stream"},
		"no base":                   {message(text(4, []byte("e")), stream(text(3, someNode)), varint(7, 1)), "place in a stream"},
		"cut off":                   {kind[:len(kind)-1], "cut off"},
		"a tag cut off":             {[]byte{0x80}, "cut off"},
	}
}

// Control messages that are malformed, cut off, out of range or too long are refused with a
// reason.
func TestMalformedControlMessages(t *testing.T) {
	for name, test := range malformedControls() {
		t.Run(name, func(t *testing.T) {
			m, err := codec.Decode(test.b)
			require.Nil(t, m)
			require.ErrorIs(t, err, wire.ErrMalformed)
			require.ErrorContains(t, err, test.want)
		})
	}
}

func TestMalformedItems(t *testing.T) {
	for name, test := range malformedItems() {
		t.Run(name, func(t *testing.T) {
			m, err := wire.DecodeItem(test.b, now)
			require.Nil(t, m)
			require.ErrorIs(t, err, wire.ErrMalformed)
			require.ErrorContains(t, err, test.want)
		})
	}
}

// The beginning of a message is refused, or read as a message of the same type.
func TestTruncatedMessages(t *testing.T) {
	for name, m := range controls() {
		whole, err := codec.Append(nil, m)
		require.NoError(t, err)
		for n := range whole {
			if got, err := codec.Decode(whole[:n]); err != nil {
				require.ErrorIs(t, err, wire.ErrMalformed, name)
			} else {
				require.IsType(t, m, got, name)
			}
		}
	}
	for name, m := range items() {
		whole := appendItem(nil, m)
		for n := range whole {
			if got, err := wire.DecodeItem(whole[:n], now); err != nil {
				require.ErrorIs(t, err, wire.ErrMalformed, name)
			} else {
				require.IsType(t, m, got, name)
			}
		}
	}
}

// Fields of a newer version are kept, byte for byte, when a message is passed on. In control
// messages they are ignored.
func TestUnknownFields(t *testing.T) {
	m := items()["message"].(*cell.Message)
	extra := join(varint(90, 7), text(91, []byte("new")), protowire.AppendFixed32(protowire.AppendTag(nil, 92, protowire.Fixed32Type), 5))
	got, err := wire.DecodeItem(join(extra[:3], appendItem(nil, m), extra[3:]), now)
	require.NoError(t, err)
	require.Equal(t, extra, got.(*cell.Message).Extra)
	passed := appendItem(nil, got)
	require.Equal(t, join(appendItem(nil, m), extra), passed)
	document.Parse(t, "Envelope", passed)

	for name, m := range controls() {
		b, err := codec.Append(nil, m)
		require.NoError(t, err)
		got, err := codec.Decode(join(extra, b, extra))
		require.NoError(t, err, name)
		require.Equal(t, m, got, name)
	}
	inner := join(varint(1, 9), kind, text(3, varint(1, 1), extra), text(4, text(1, extra), extra),
		text(5, text(2, someEpoch, extra), text(5, text(1, someNode, extra), extra), extra))
	_, err = codec.Decode(inner)
	require.NoError(t, err)
}

// runWith returns a run of three messages with some more fields in the first item.
func runWith(t testing.TB, fields ...[]byte) []byte {
	t.Helper()
	all := follow(runOfThree()...)
	b, _ := new(wire.Encoder).Run(nil, &all.Transmission, first, 3, now)
	var head []byte
	for at := 0; ; {
		number, kind, n := protowire.ConsumeTag(b[at:])
		require.Positive(t, n)
		if number == 18 {
			inner, m := protowire.ConsumeBytes(b[at+n:])
			require.Positive(t, m)
			return join(head, text(18, inner, join(fields...)), b[at+n+m:])
		}
		n += protowire.ConsumeFieldValue(number, kind, b[at+n:])
		head, at = append(head, b[at:at+n]...), at+n
	}
}

// An item of a run has fields of its own, those that go with every message, and those of a later version, which have
// numbers above all that an envelope has. Any other would be a field of the envelope in which the message is passed on:
// another type, stream or number than the one in which it came.
func TestAnItemHasNoFieldsOfAnEnvelope(t *testing.T) {
	fields, last := document.New(t, "Envelope").Descriptor().Fields(), 0
	for i := range fields.Len() {
		last = max(last, int(fields.Get(i).Number()))
	}
	for number := 1; number <= last; number++ {
		item, err := wire.DecodeItem(runWith(t, varint(protowire.Number(number), 3)), now)
		require.NoError(t, err)
		_, err = item.(*wire.Run).Items(now)
		if number >= 10 && number != 16 && number != 17 && number != 18 && number < 20 {
			continue // The content of a message; some of it is not a number.
		}
		require.ErrorIs(t, err, wire.ErrMalformed, "field %d", number)
	}
}

// A message that is passed on has the type, the stream and the number that it came with, whatever else came with it.
func TestWhatIsPassedOnStaysWhatItWas(t *testing.T) {
	smuggled := join(varint(1, 3), varint(3, 9), varint(7, 1<<40))
	for name, b := range map[string][]byte{
		"an item":                        runWith(t, smuggled),
		"an item of a later version":     runWith(t, text(90, smuggled), varint(91, 7)),
		"a message":                      join(appendItem(nil, items()["message"]), text(18, smuggled)),
		"a message with replies":         join(appendItem(nil, items()["message"]), text(22, smuggled)),
		"a message of a later version":   join(appendItem(nil, items()["message"]), text(90, smuggled)),
		"a message with parts of others": join(appendItem(nil, items()["message"]), text(21, smuggled)),
	} {
		requireLasting(t, name, b)
	}
}

// requireLasting checks the law of a codec that keeps what it does not know: what it decodes and encodes again is of
// the same type, stream and number, and says the same.
func requireLasting(t testing.TB, name string, b []byte) {
	t.Helper()
	item, err := wire.DecodeItem(b, now)
	if err != nil {
		require.ErrorIs(t, err, wire.ErrMalformed, name)
		return
	}
	lasts := func(m *cell.Message) {
		got, err := wire.DecodeItem(appendItem(nil, m), now)
		require.NoError(t, err, name)
		require.Equal(t, m, got, name)
	}
	switch item := item.(type) {
	case *cell.Message:
		lasts(item)
	case *wire.Run:
		if err := item.Messages(now, cell.NewMessage, lasts); err != nil {
			require.ErrorIs(t, err, wire.ErrMalformed, name)
		}
	}
}

// An empty payload is not decoded as nil; a deadline that has passed for the sender has
// passed for the receiver; and the detail of a reply, which may be any text of an entity, is
// made valid UTF-8 and cut to the bytes that fit.
func TestEdgesOfItems(t *testing.T) {
	m := *items()["message"].(*cell.Message)
	m.Payload, m.Trace, m.Deadline = nil, nil, now-5
	got, err := wire.DecodeItem(appendItem(nil, &m), now)
	require.NoError(t, err)
	require.NotNil(t, got.(*cell.Message).Payload)
	require.Equal(t, cell.Overdue, got.(*cell.Message).Deadline)
	require.True(t, got.(*cell.Message).Expired(0), "by whatever clock")

	for said, want := range map[string]string{
		"broken \xff text":                     "broken  text",
		strings.Repeat("x", 1023) + "ä":        strings.Repeat("x", 1023),
		strings.Repeat("x", 2000):              strings.Repeat("x", 1024),
		strings.Repeat("\xff", 5) + "ä":        "ä",
		"a text that is not cut and unbroken ": "a text that is not cut and unbroken ",
	} {
		got, err := wire.DecodeItem(wire.AppendReply(nil, &protocol.Reply{Kind: "k", Detail: said}), now)
		require.NoError(t, err)
		require.Equal(t, want, got.(*protocol.Reply).Detail)
	}
}

// A control message that can be decoded can be encoded and decoded again, without a change.
func FuzzDecodeControl(f *testing.F) {
	for _, name := range slices.Sorted(maps.Keys(controls())) {
		b, err := codec.Append(nil, controls()[name])
		require.NoError(f, err)
		f.Add(b)
	}
	bad := malformedControls()
	for _, name := range slices.Sorted(maps.Keys(bad)) {
		if len(bad[name].b) < 4096 {
			f.Add(bad[name].b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := codec.Decode(b)
		if err != nil {
			require.ErrorIs(t, err, wire.ErrMalformed)
			return
		}
		again, err := codec.Append(nil, m)
		require.NoError(t, err)
		got, err := codec.Decode(again)
		if err != nil && len(again) < len(b) {
			return // Without the fields that nobody knows it has less room than its lists take.
		}
		require.NoError(t, err)
		require.Equal(t, m, got)
	})
}

func FuzzDecodeItem(f *testing.F) {
	for _, name := range slices.Sorted(maps.Keys(items())) {
		f.Add(appendItem(nil, items()[name]))
	}
	all := follow(runOfThree()...)
	run, _ := new(wire.Encoder).Run(nil, &all.Transmission, first, 3, now)
	f.Add(run)
	f.Add(appendAcks(threeAcks()...))
	batch, _ := batchOf(followShard(7, runOfThree()...), followShard(8, runOfThree()...))
	f.Add(batch)
	f.Add(runWith(f, fixed(6, 3)))
	f.Add(runWith(f, text(90, varint(1, 3)), varint(91, 7)))
	badBatches := malformedBatches()
	for _, name := range slices.Sorted(maps.Keys(badBatches)) {
		f.Add(badBatches[name])
	}
	badAcks := malformedAcks()
	for _, name := range slices.Sorted(maps.Keys(badAcks)) {
		f.Add(badAcks[name])
	}
	f.Add(appendReplies(f, threeReplies()...))
	badReplies := malformedReplies()
	for _, name := range slices.Sorted(maps.Keys(badReplies)) {
		f.Add(badReplies[name])
	}
	bad := malformedItems()
	for _, name := range slices.Sorted(maps.Keys(bad)) {
		f.Add(bad[name].b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := wire.DecodeItem(b, now)
		if err != nil {
			require.ErrorIs(t, err, wire.ErrMalformed)
			return
		}
		switch m := m.(type) {
		case *wire.Run:
			fuzzRun(t, m)
			return
		case *wire.Acks:
			fuzzAcks(t, m)
			return
		case *wire.Replies:
			fuzzReplies(t, m)
			return
		case *wire.Batch:
			if _, err := m.Parts(new(wire.Numbers), func(r *wire.Run) error { fuzzRun(t, r); return nil }); err != nil {
				require.ErrorIs(t, err, wire.ErrMalformed)
			}
			return
		}
		got, err := wire.DecodeItem(appendItem(nil, m), now)
		require.NoError(t, err)
		require.Equal(t, m, got)
	})
}

// fuzzAcks reads acknowledgements, and checks that they are the same when they are sent again.
func fuzzAcks(t *testing.T, acks *wire.Acks) {
	t.Helper()
	var list wire.AckList
	var all []protocol.Ack
	err := acks.Each(func(a protocol.Ack) {
		list.Add(a)
		all = append(all, a)
	})
	if err != nil {
		require.ErrorIs(t, err, wire.ErrMalformed)
	}
	got, err := acksOf(t, list.Append(nil, acks.Kind, acks.Clock))
	require.NoError(t, err)
	require.Equal(t, all, got)
}

// fuzzReplies reads replies, and checks that each could have come by itself.
func fuzzReplies(t *testing.T, replies *wire.Replies) {
	t.Helper()
	err := replies.Each(func(r *protocol.Reply) {
		got, err := wire.DecodeItem(wire.AppendReply(nil, r), now)
		require.NoError(t, err)
		require.Equal(t, r, got)
	})
	if err != nil {
		require.ErrorIs(t, err, wire.ErrMalformed)
	}
}

// fuzzRun reads the messages of a run, and checks that each could have come by itself.
func fuzzRun(t *testing.T, run *wire.Run) {
	t.Helper()
	err := run.Messages(now, cell.NewMessage, func(m *cell.Message) {
		got, err := wire.DecodeItem(appendItem(nil, m), now)
		if m.Seq == 0 { // The numbers of the stream have overflowed.
			require.ErrorIs(t, err, wire.ErrMalformed)
			return
		}
		require.NoError(t, err)
		require.Equal(t, m, got)
	})
	if err != nil {
		require.ErrorIs(t, err, wire.ErrMalformed)
	}
}

// Decoding allocates in proportion to the bytes that came.
func TestDecodingAllocatesInProportion(t *testing.T) {
	b := join(varint(1, 9), kind, bytes.Repeat(text(5, text(2, someEpoch, fixed(5, 0xfeed))), 1000))
	allocs := testing.AllocsPerRun(10, func() {
		_, err := codec.Decode(b)
		require.NoError(t, err)
	})
	require.Less(t, allocs, 8*1000.0, "a few for each shard")
}

func BenchmarkWire(b *testing.B) {
	for _, name := range []string{"map", "report"} {
		m := controls()[name]
		bytes, err := codec.Append(nil, m)
		require.NoError(b, err)
		b.Run("encode="+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				bytes, _ = codec.Append(bytes[:0], m)
			}
		})
		b.Run("decode="+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := codec.Decode(bytes); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	m := items()["message"].(*cell.Message)
	envelope := wire.AppendMessage(nil, m, now)
	b.Run("encode=message", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			envelope = wire.AppendMessage(envelope[:0], m, now)
		}
	})
	b.Run("decode=message", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := wire.DecodeItem(envelope, now); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// layoutOf is a layout in force, as a field.
func layoutOf(number uint64) []byte { return text(16, varint(1, number), varint(2, 3)) }
