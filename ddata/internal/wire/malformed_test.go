// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"bytes"
	"errors"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/ddata/internal/wire"
	raw "github.com/quorate/quorate/machine/wire"
)

// Fields as a sender may write them.
func varint(n raw.Number, v uint64) []byte {
	return raw.AppendVarint(raw.AppendTag(nil, n, raw.VarintType), v)
}

func fixed(n raw.Number, v uint64) []byte { return raw.AppendFixed64(nil, n, v) }

func text(n raw.Number, parts ...[]byte) []byte {
	b := slices.Concat(parts...)
	return append(raw.AppendVarint(raw.AppendTag(nil, n, raw.BytesType), uint64(len(b))), b...)
}

var join = slices.Concat[[]byte, byte]

// The numbers of bodies that the cases below use.
const (
	hello        = 16
	promise      = 18
	accept       = 19
	deltas       = 21
	deltasTaken  = 22
	put          = 23
	ask          = 25
	answer       = 26
	groups       = 28
	askBuckets   = 29
	pull         = 31
	pullReply    = 32
	entryRequest = 35
	commit       = 37
	removeKey    = 38
	committed    = 39
	olderStore   = 40
)

// malformed is a message and a part of the reason for which it is refused.
type malformed struct {
	b    []byte
	want string
}

func malformedHeaders() map[string]malformed {
	return map[string]malformed{
		"nothing":                 {nil, "without a body"},
		"a header alone":          {varint(1, 1), "without a body"},
		"two registers":           {join(text(7, varint(4, 1), varint(5, 1)), text(7, varint(4, 1), varint(5, 1))), "two registers"},
		"two bodies":              {join(text(hello), text(hello)), "two bodies"},
		"a body of a number":      {varint(hello, 1), "want bytes"},
		"group out of range":      {varint(1, 256), "at most 255"},
		"sender of a varint":      {varint(2, 1), "want a fixed64"},
		"turn out of range":       {varint(3, 1<<32), "at most"},
		"lineage of a varint":     {varint(4, 1), "want a fixed64"},
		"generation of text":      {text(5), "want a varint"},
		"flags of text":           {text(6), "want a varint"},
		"loaded of text":          {text(8), "want a varint"},
		"written of text":         {text(9), "want a varint"},
		"aged: of a varint":       {text(olderStore, varint(1, 1)), "want a fixed64"},
		"aged: written of text":   {text(olderStore, text(2)), "want a varint"},
		"a part of a parcel":      {text(15, varint(3, 2), text(4, []byte("a"))), "joined first"},
		"a tag cut off":           {[]byte{0x80}, "a tag"},
		"a length beyond the end": {[]byte{0x82, 0x01, 0xff, 0xff, 0x03}, "field 16"},
		"hello: ask":              {text(hello, varint(1, 2)), "at most 1"},
		"hello: cut off":          {text(hello, []byte{0x08}), "cut off"},
	}
}

func malformedRegisters() map[string]malformed {
	register := func(parts ...[]byte) []byte { return text(7, parts...) }
	set := func(parts ...[]byte) []byte { return register(text(6, parts...)) }
	ids := bytes.Repeat([]byte{1}, 8)
	homed := join(text(1, []byte{0}), text(2, text(1, ids)))
	return map[string]malformed{
		"no bytes":            {varint(7, 1), "want bytes"},
		"cut off":             {register([]byte{0x10}), "cut off"},
		"no generation":       {register(varint(5, 1)), "generation 0"},
		"no phase":            {register(varint(4, 1)), "phase 0"},
		"unknown phase":       {register(varint(4, 1), varint(5, 4)), "at most 3"},
		"long zone":           {register(text(1, bytes.Repeat([]byte("z"), 129))), "at most 128"},
		"empty zone":          {register(text(1)), "without a name"},
		"zone not UTF-8":      {register(text(1, []byte{0xff})), "not UTF-8"},
		"turn":                {register(varint(2, 1<<32)), "at most"},
		"lineage":             {register(varint(3, 1)), "want a fixed64"},
		"swept":               {register(text(9)), "want a varint"},
		"dropped":             {register(varint(10, 1)), "want a fixed64"},
		"retired of a number": {register(varint(11, 1)), "want bytes"},
		"held of a number":    {register(varint(12, 1)), "want bytes"},
		"no such bucket":      {register(text(12, text(1, []byte{0x80, 0x20}))), "over 4095"},
		"too many buckets":    {register(text(12, text(1, make([]byte, 4097)))), "4097 buckets"},
		"held homes":          {register(text(12, text(2, text(1, ids[:7])))), "7 bytes of numbers"},
		"held moves":          {register(text(12, varint(4, 2))), "at most 1"},
		"held nowhere":        {register(text(12)), "names no bucket"}, "held without homes": {register(text(12, text(1, []byte{0}))), "has no homes"}, "reset at no time": {register(text(13, text(1, []byte{0}))), "generation 0"},
		"reset nowhere":        {register(text(13)), "names no bucket"},
		"held too often":       {register(bytes.Repeat(text(12, homed), 4097)), "more than 4096"},
		"resets of a number":   {register(varint(13, 1)), "want bytes"},
		"reset of text":        {register(text(13, text(2))), "want a varint"},
		"spared of a number":   {register(text(13, varint(3, 1))), "want bytes"},
		"resets too often":     {register(bytes.Repeat(text(13, text(1, []byte{0}), varint(2, 1)), 4097)), "more than 4096"},
		"retired cut off":      {register(text(11, ids[:7])), "7 bytes of numbers"},
		"set of a number":      {register(varint(6, 1)), "want bytes"},
		"set cut off":          {set(text(1, ids[:7])), "7 bytes of numbers"},
		"set with zero":        {set(text(1, make([]byte, 8))), "out of order"},
		"set with a double":    {set(text(1, ids, ids)), "out of order"},
		"zones of a number":    {set(varint(2, 1)), "want bytes"},
		"more zones than ids":  {set(text(1, ids), text(2, []byte{0, 0})), "with 2 zones"},
		"a zone without name":  {set(text(1, ids), text(2, []byte{1})), "over 0"},
		"a zone cut off":       {set(text(1, ids), text(2, []byte{0x80})), "cut off"},
		"promise: ballot":      {text(promise, varint(2, 1)), "want bytes"},
		"promise: round":       {text(promise, text(2, varint(1, 1<<32))), "at most"},
		"promise: by":          {text(promise, text(2, varint(2, 1))), "want a fixed64"},
		"promise: refused":     {text(promise, varint(3, 2)), "at most 1"},
		"promise: slot":        {text(promise, text(1)), "want a varint"},
		"accept without value": {text(accept, varint(1, 1)), "to accept is missing"},
	}
}

func malformedData() map[string]malformed {
	name, from := text(1, []byte("gcounter")), fixed(2, 7)
	value := []byte{1, 0}
	change := func(parts ...[]byte) []byte { return text(deltas, name, from, text(5, parts...)) }
	entry := func(parts ...[]byte) []byte { return text(put, name, from, text(5, parts...)) }
	key := text(1, []byte("k"))
	long := text(1, bytes.Repeat([]byte("k"), table.MaxKey+1))
	return map[string]malformed{
		"type of a number":       {text(deltas, varint(1, 1)), "want bytes"},
		"type without name":      {text(deltas, text(1)), "without a name"},
		"type not UTF-8":         {text(deltas, text(1, []byte{0xff})), "not UTF-8"},
		"long type":              {text(deltas, text(1, bytes.Repeat([]byte("t"), wire.MaxTypeName+1))), "at most 1024"},
		"origin of a varint":     {text(deltas, varint(2, 1)), "want a fixed64"},
		"change of a number":     {text(deltas, varint(5, 1)), "want bytes"},
		"change cut off":         {change(key[:2]), "cut off"},
		"change without key":     {change(text(6, value)), "without a key"},
		"change: empty key":      {change(text(1)), "a key of 0 bytes"},
		"change: long key":       {change(long), "a key of 1025 bytes"},
		"change: no text":        {change(text(1, []byte{0xff})), "not UTF-8"},
		"change: key of number":  {change(varint(1, 1)), "wire type 0"},
		"change: no such type":   {change(key, varint(2, 1)), "type 1 of 1"},
		"change: none, no type":  {change(key, varint(2, 1), text(6, value)), "type 1 of 1"},
		"change: no such origin": {change(key, varint(3, 1)), "origin 1 of 1"},
		"change: numbers":        {change(key, varint(4, 2), varint(5, 1<<64-2)), "updates after 2"},
		"change: delta of text":  {change(key, varint(6, 2)), "wire type 0"},
		"change: whole of text":  {change(key, text(7)), "wire type 2"},
		"entry of a number":      {text(put, varint(5, 1)), "want bytes"},
		"entry cut off":          {entry(key[:2]), "cut off"},
		"entry without key":      {entry(text(4, value)), "without a key"},
		"entry: long key":        {entry(long), "a key of 1025 bytes"},
		"entry: state":           {entry(key, varint(2, 3)), "state 3"},
		"entry: no value":        {entry(key), "without a value"},
		"entry: no such type":    {entry(key, varint(3, 1), text(4, value)), "type 1 of 1"},
		"entry: expired":         {entry(key, varint(2, 2), varint(3, 1)), "type 1 of 1"},
		"entry: value of number": {entry(key, varint(4, 1)), "wire type 0"},
		"entry: no such origin":  {entry(key, text(5, []byte{1, 1})), "origin 1 of 1"},
		"entry: version cut off": {entry(key, text(5, []byte{0})), "cut off"},
		"entry: floor cut off":   {entry(key, text(6, []byte{0x80})), "cut off"},
		"entry: stamp of text":   {entry(key, text(7)), "wire type 2"},
		"answer: entry":          {text(answer, varint(5, 1)), "want bytes"},
		"answer: entry cut off":  {text(answer, text(5, key[:2])), "cut off"},
		"taken: empty gap":       {text(deltasTaken, text(3)), "a key of 0 bytes"},
		"taken: gap of a number": {text(deltasTaken, varint(3, 1)), "want bytes"},
		"taken: refusal":         {text(deltasTaken, varint(4, 1)), "want bytes"},
		"taken: refusal, no key": {text(deltasTaken, text(4)), "of no key"},
		"taken: long reason":     {text(deltasTaken, text(4, key, text(2, bytes.Repeat([]byte("r"), wire.MaxReason+1)))), "at most 512"},
		"ask without key":        {text(ask), "without its key"},
		"borrow without key":     {text(entryRequest), "without its key"},
		"remove without key":     {text(removeKey), "without its key"},
		"commit without key":     {text(commit, name, text(8, value)), "without its key"},
		"commit without type":    {text(commit, text(4, []byte("k")), text(8, value)), "type 0 of 0"},
		"commit: strength":       {text(commit, text(5, varint(1, 5))), "at most 4"},
		"commit: level":          {text(commit, text(5, varint(2, 1<<31))), "at most"},
		"commit: level of text":  {text(commit, varint(5, 1)), "want bytes"},
		"commit: limit":          {text(commit, varint(6, 1<<63)), "at most"},
		"committed: node":        {text(committed, text(3)), "uid 0"},
		"committed: verdict":     {text(committed, varint(2, 256)), "at most 255"},
		"committed: refusal":     {text(committed, varint(5, 1)), "want bytes"},
		"committed: no node":     {text(committed, text(5)), "by no node"},
		"committed: long reason": {text(committed, text(6, bytes.Repeat([]byte("r"), wire.MaxReason+1))), "at most 512"},
	}
}

func malformedPasses() map[string]malformed {
	return map[string]malformed{
		"pass of text":         {text(groups, text(1)), "want a varint"},
		"groups: sums":         {text(groups, text(3, make([]byte, 9))), "9 bytes of numbers"},
		"groups of a number":   {text(askBuckets, varint(2, 1)), "want bytes"},
		"pull: bucket":         {text(pull, text(2, varint(1, table.Buckets))), "at most 4095"},
		"pull: of a number":    {text(pull, varint(2, 1)), "want bytes"},
		"pull: cut off":        {text(pull, text(2, []byte{0x08})), "cut off"},
		"pull: keys":           {text(pull, text(2, text(2, make([]byte, 8)))), "16 for each key"},
		"pull: too many":       {text(pull, bytes.Repeat(text(2), table.Buckets+1)), "more than 4096 buckets"},
		"pulled: done":         {text(pullReply, text(5, []byte{0x80, 0x20})), "over 4095"},
		"pulled: done cut off": {text(pullReply, text(5, []byte{0x80})), "cut off"},
		"pulled: wants":        {text(pullReply, text(7, []byte{1})), "1 buckets of 0 keys"},
		"pulled: wanted":       {text(pullReply, text(8, make([]byte, 8))), "0 buckets of 1 keys"},
	}
}

// What is malformed, cut off, out of range or too long is refused with a reason.
func TestMalformedMessages(t *testing.T) {
	for of, all := range map[string]map[string]malformed{
		"header": malformedHeaders(), "register": malformedRegisters(), "data": malformedData(), "pass": malformedPasses(),
	} {
		for name, test := range all {
			t.Run(of+"/"+name, func(t *testing.T) {
				m, err := codec.Decode(test.b)
				require.Nil(t, m)
				require.ErrorIs(t, err, wire.ErrMalformed)
				require.NotErrorIs(t, err, wire.ErrUnknown)
				require.ErrorContains(t, err, test.want)
			})
		}
	}
}

// A body of a later version is an error of its own kind.
func TestUnknownBodies(t *testing.T) {
	m, err := codec.Decode(join(varint(1, 1), text(900, []byte("new"))))
	require.Nil(t, m)
	require.ErrorIs(t, err, wire.ErrUnknown)
	require.NotErrorIs(t, err, wire.ErrMalformed)
	require.ErrorContains(t, err, "900")
}

// Fields of a later version are passed over, wherever they are.
func TestUnknownFields(t *testing.T) {
	extra := join(varint(12, 7), text(13, []byte("new")), fixed(14, 5))
	for name, body := range samples() {
		b := encode(t, body)
		got, err := codec.Decode(join(extra, b, extra))
		require.NoError(t, err, name)
		require.Equal(t, usual(body), got, name)
	}
	key, value, homed := text(1, []byte("k")), text(4, []byte{1, 0}), join(text(1, []byte{0}), text(2, text(1, make([]byte, 7), []byte{1})))
	for _, b := range [][]byte{
		text(put, text(1, []byte("gcounter")), text(5, key, value, extra), extra),
		text(deltas, text(1, []byte("gcounter")), fixed(2, 7), text(5, extra, key), extra),
		text(promise, text(2, extra), text(5, varint(4, 1), varint(5, 1), text(6, extra), text(12, homed, extra), varint(15, 7)), extra),
		text(pull, text(2, extra), extra),
		text(deltasTaken, text(4, key, extra), extra),
		text(commit, text(1, []byte("gcounter")), text(4, []byte("k")), text(5, extra), extra),
		join(varint(6, 1<<40), text(hello)),
	} {
		_, err := codec.Decode(b)
		require.NoError(t, err)
	}
}

// No beginning of a message is a message, and no changed bit is taken for something that
// cannot be encoded.
func TestDamagedMessages(t *testing.T) {
	for name, body := range samples() {
		whole, err := codec.Append(nil, enveloped(body))
		require.NoError(t, err)
		for n := range whole {
			_, err := codec.Decode(whole[:n])
			require.ErrorIs(t, err, wire.ErrMalformed, name)
		}
		for bit := range 8 * len(whole) {
			b := bytes.Clone(whole)
			b[bit/8] ^= 1 << (bit % 8)
			stable(t, b)
		}
	}
}

// stable checks that bytes decode into an error of a known kind, or a message that can be
// encoded and is then the same.
func stable(t *testing.T, b []byte) {
	t.Helper()
	m, err := codec.Decode(b)
	if err != nil {
		require.NotEqual(t, errors.Is(err, wire.ErrMalformed), errors.Is(err, wire.ErrUnknown), err)
		return
	}
	first, err := codec.Append(nil, m)
	if err != nil {
		require.ErrorIs(t, err, wire.ErrForeign, "what is unknown is not passed on")
		return
	}
	again, err := codec.Decode(first)
	require.NoError(t, err)
	require.Equal(t, m, again)
	second, err := codec.Append(nil, again)
	require.NoError(t, err)
	require.Equal(t, first, second)
}

// trap is a type that panics over every value.
type trap struct{ crdt.Type }

func (trap) Name() string { return "trap" }

func (trap) Decode([]byte) (any, error) { panic("no value") }

func (trap) Append([]byte, any) ([]byte, error) { panic("no value") }

// A value that this node cannot read leaves the rest of the message readable, and the reason
// names its type. It is not passed on.
func TestUnknownValues(t *testing.T) {
	m := usual(protocol.Put{Op: 4, Entries: entries})
	b, err := codec.Append(nil, m)
	require.NoError(t, err)
	got, err := wire.Codec{Types: registry{"gcounter": counter}}.Decode(b)
	require.NoError(t, err)
	all := got.(protocol.Envelope).Body.(protocol.Put).Entries
	require.Equal(t, entries[1:], all[1:])
	require.Equal(t, table.Entry{
		Key: "basket", Value: table.Unknown{Name: texts.Name()}, Versions: theirs, State: table.Live,
	}, all[0])
	reason := all[0].Value.(table.Unknown).Reason()
	require.ErrorIs(t, reason, table.ErrUnknown)
	require.EqualError(t, reason, "a value that this node cannot read: this node has no type orset[string]")
	outcome, err := table.New(table.Config{Self: self}).Join(all[0])
	require.Equal(t, table.Refused, outcome)
	require.ErrorIs(t, err, table.ErrUnknown)
	require.ErrorContains(t, err, texts.Name())
	_, err = table.Merge(all[0], entries[0])
	require.ErrorContains(t, err, texts.Name())
	_, err = codec.Append(nil, got)
	require.ErrorIs(t, err, wire.ErrForeign)

	got, err = wire.Codec{Types: registry{"gcounter": trap{}, texts.Name(): counter}}.Decode(encode(t, samples()["deltas"]))
	require.NoError(t, err)
	changes := got.(protocol.Envelope).Body.(protocol.Deltas).Changes
	for i, want := range []string{"type gcounter: the type panicked: no value", "type orset[string]: gcounter: crdt: malformed"} {
		require.Nil(t, changes[i].Type)
		reason := changes[i].Delta.(table.Unknown).Reason()
		require.ErrorContains(t, reason, want)
		outcome, err := table.New(table.Config{Self: self}).Apply(changes[i])
		require.Equal(t, table.Refused, outcome)
		require.ErrorContains(t, err, want)
	}
	require.Equal(t, []uint64{2, 3, 0, 1}, []uint64{changes[0].From, changes[0].To, changes[1].From, changes[1].To})

	got, err = wire.Codec{Types: registry{}}.Decode(encode(t, samples()["commit"]))
	require.NoError(t, err)
	c := got.(protocol.Envelope).Body.(protocol.Commit)
	require.Equal(t, table.Unknown{Name: "gcounter"}, c.Delta)
	_, err = table.New(table.Config{Self: self}).Commit(c.Key, c.Type, 0, c.Delta)
	require.ErrorIs(t, err, table.ErrUnknown)
	require.ErrorContains(t, err, "gcounter")
	got, err = wire.Codec{Types: registry{}}.Decode(encode(t, protocol.Put{Entries: entries[2:3]}))
	require.NoError(t, err)
	require.Equal(t, table.Unknown{Name: "gcounter"}, got.(protocol.Envelope).Body.(protocol.Put).Entries[0].Value)
	got, err = wire.Codec{Types: registry{}}.Decode(encode(t, protocol.Deltas{Changes: []table.Change{{Key: "k", Type: counter, From: 1, To: 1}}}))
	require.NoError(t, err)
	require.Equal(t, table.Unknown{Name: "gcounter"}, got.(protocol.Envelope).Body.(protocol.Deltas).Changes[0].Delta)
}

// requireBuckets is a type with a name.
type requireBuckets struct {
	crdt.Type
	name string
}

func (n requireBuckets) Name() string { return n.name }

// What no machine makes is not encoded.
func TestForeignMessages(t *testing.T) {
	change := func(c table.Change) any { return usual(protocol.Deltas{Changes: []table.Change{c}}) }
	entry := func(e table.Entry) any { return usual(protocol.Put{Entries: []table.Entry{e}}) }
	for name, m := range map[string]any{
		"no envelope":          "text",
		"a pointer":            &protocol.Envelope{Body: protocol.Hello{}},
		"no body":              protocol.Envelope{},
		"a body of no message": protocol.Envelope{Body: protocol.Write{}},
		"a change backwards":   change(table.Change{Key: "k", Type: counter, From: 2, To: 1}),
		"a change of no type":  change(table.Change{Key: "k", To: 1, Delta: visits}),
		"an entry of no type":  entry(table.Entry{Key: "k", State: table.Live, Value: visits}),
		"an entry of no state": entry(table.Entry{Key: "k", Type: counter, Value: visits}),
		"an unknown state":     entry(table.Entry{Key: "k", Type: counter, Value: visits, State: 4}),
		"a type without name":  entry(table.Entry{Key: "k", Type: requireBuckets{counter, ""}, Value: visits, State: table.Live}),
		"a long name":          entry(table.Entry{Key: "k", Type: requireBuckets{counter, strings.Repeat("n", 1025)}, Value: visits, State: table.Live}),
		"a negative level":     usual(protocol.RemoveKey{Key: "k", Level: protocol.Level{N: -1}}),
	} {
		b, err := codec.Append([]byte("before"), m)
		require.ErrorIs(t, err, wire.ErrForeign, name)
		require.Equal(t, "before", string(b), name)
	}
	_, err := codec.Append(nil, entry(table.Entry{Key: "k", Type: trap{}, State: table.Live}))
	require.ErrorContains(t, err, "type trap panicked over a value: no value")
}

// Texts of refusals are cut, and never make a message unreadable.
func TestReasonsAreCut(t *testing.T) {
	for said, want := range map[string]string{
		"broken \xff text":             "broken  text",
		strings.Repeat("x", 511) + "ä": strings.Repeat("x", 511),
		strings.Repeat("x", 2000):      strings.Repeat("x", 512),
	} {
		got, err := codec.Decode(encode(t, protocol.PutTaken{Refusals: []protocol.Refusal{{Key: "k", Reason: said}}}))
		require.NoError(t, err)
		require.Equal(t, want, got.(protocol.Envelope).Body.(protocol.PutTaken).Refusals[0].Reason)
		m := protocol.Committed{Reason: said, Refusals: []protocol.NodeRefusal{{Node: node(1), Reason: said}}}
		got, err = codec.Decode(encode(t, m))
		require.NoError(t, err)
		require.Equal(t, want, got.(protocol.Envelope).Body.(protocol.Committed).Reason)
		require.Equal(t, want, got.(protocol.Envelope).Body.(protocol.Committed).Refusals[0].Reason)
	}
}

// allocated returns how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Messages that were made to be dear cost at most a small multiple of their bytes.
func TestMemoryIsInProportion(t *testing.T) {
	const size = 1 << 20
	fill := func(b []byte) []byte { return bytes.Repeat(b, size/len(b)) }
	key, value := text(1, []byte("k")), text(4, []byte{1, 0})
	name, from := text(1, []byte("gcounter")), fixed(2, 7)
	for what, b := range map[string][]byte{
		"changes":         text(deltas, name, from, fill(text(5, key))),
		"entries":         text(put, name, from, fill(text(5, key, value))),
		"tombstones":      text(put, fill(text(5, key, varint(2, 1)))),
		"unknown":         text(put, text(1, []byte("n")), fill(text(5, key, value))),
		"unreadable":      text(put, name, fill(text(5, key, text(4, []byte{9})))),
		"types":           text(put, fill(text(1, []byte("t")))),
		"origins":         text(put, fill(from)),
		"versions":        text(put, name, from, text(5, key, text(5, fill([]byte{0, 1})), value)),
		"versions, again": text(put, name, from, text(5, key, fill(text(5, []byte{0, 1})), value)),
		"gaps":            text(deltasTaken, fill(text(3, []byte("k")))),
		"refusals":        text(deltasTaken, fill(text(4, key))),
		"sums":            text(groups, text(3, make([]byte, size))),
		"sums, again":     text(groups, fill(text(3, make([]byte, 8)))),
		"buckets":         text(pull, bytes.Repeat(text(2), table.Buckets)),
		"keys":            text(pull, text(2, text(2, make([]byte, size)))),
		"done":            text(pullReply, text(5, make([]byte, size))),
		"zones":           text(7, fill(text(1, []byte("z")))),
		"held":            text(7, bytes.Repeat(text(12, text(1, []byte{0}), text(2, text(1, []byte("homesnow")))), table.Buckets)),
		"registers":       fill(text(7, varint(4, 1), varint(5, 1))),
		"nodes":           text(committed, fill(text(3, text(1, []byte("h")), varint(2, 1), fixed(3, 1)))),
	} {
		var err error
		cost := allocated(func() { _, err = codec.Decode(b) })
		t.Logf("%s: %d KiB for %d KiB: %v", what, cost>>10, len(b)>>10, err)
		require.Less(t, cost, uint64(len(b)*64+64<<10), what)
	}
}

// What decodes can be encoded, and is then the same.
func FuzzDecode(f *testing.F) {
	all := samples()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		f.Add(encode(f, all[name]))
	}
	b, err := codec.Append(nil, enveloped(protocol.Hello{Ask: true}))
	require.NoError(f, err)
	f.Add(b)
	f.Add(encode(f, protocol.Accept{Slot: 10, Ballot: ballot, Value: &without}))
	for _, bad := range []map[string]malformed{malformedHeaders(), malformedRegisters(), malformedData(), malformedPasses()} {
		for _, name := range slices.Sorted(maps.Keys(bad)) {
			if len(bad[name].b) < 512 {
				f.Add(bad[name].b)
			}
		}
	}
	f.Fuzz(stable)
}
