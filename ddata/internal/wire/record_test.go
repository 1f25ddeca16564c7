// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"bytes"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/ddata/internal/wire"
	"github.com/quorate/quorate/gossip"
)

// drawShown draws what others have shown, sorted by id.
var drawShown = rapid.Custom(func(t *rapid.T) (all []protocol.StoreVersion) {
	for _, r := range drawSet.Draw(t, "of") {
		all = append(all, protocol.StoreVersion{
			ID: r.ID, UID: gossip.UID(rapid.Uint64().Draw(t, "uid")), Written: rapid.Uint64().Draw(t, "last"), Before: rapid.Uint64().Draw(t, "before"),
		})
	}
	return all
})

var drawMeta = rapid.Custom(func(t *rapid.T) protocol.Meta {
	return protocol.Meta{
		Register: drawMaybe.Draw(t, "register"), Caught: rapid.Bool().Draw(t, "caught"), Promised: drawBallot.Draw(t, "promised"),
		Accepted: drawBallot.Draw(t, "accepted"), Value: drawMaybe.Draw(t, "value"),
		Confirmed: protocol.SweepMark{
			Gen: rapid.Uint64().Draw(t, "gen"), UpTo: rapid.Uint64().Draw(t, "up to"), Tombs: rapid.Uint64().Draw(t, "tombs"), Late: list(drawKey).Draw(t, "late"),
		},
		Written: rapid.Uint64().Draw(t, "written"), Older: drawID.Draw(t, "older"), Shown: drawShown.Draw(t, "shown"),
		Behind: rapid.Bool().Draw(t, "behind"), Restarts: rapid.Uint64().Draw(t, "restarts"),
	}
})

// wholeMeta has every field set.
var wholeMeta = protocol.Meta{
	Register: &register, Caught: true, Promised: ballot, Accepted: protocol.Ballot{Round: 1, By: 0xa2}, Value: &register,
	Confirmed: protocol.SweepMark{Gen: 8, UpTo: 7, Tombs: 0x99, Late: []string{"visits", "basket"}}, Written: 300, Older: 0xa1,
	Shown: []protocol.StoreVersion{{ID: 0xa2, UID: 0xc1, Written: 300, Before: 7}, {ID: 0xa3}}, Behind: true, Restarts: 2,
}

// Law: what was stored is what is loaded, and nothing of the bytes is kept.
func TestRecordsSurviveTheDisk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawEntry.Draw(t, "entry")
		b, err := wire.AppendRecord([]byte("before"), x)
		require.NoError(t, err)
		require.Equal(t, "before", string(b[:6]))
		got, err := wire.DecodeRecord(types, x.Key, b[6:])
		require.NoError(t, err)
		clear(b)
		require.Equal(t, x, got)

		m := drawMeta.Draw(t, "meta")
		b = wire.AppendMeta([]byte("before"), m)
		require.Equal(t, "before", string(b[:6]))
		meta, err := wire.DecodeMeta(b[6:])
		require.NoError(t, err)
		clear(b)
		require.Equal(t, m, meta)
	})
}

// The bytes on the disk never change their meaning.
func TestGoldenRecords(t *testing.T) {
	for _, x := range entries {
		b, err := wire.AppendRecord(nil, x)
		require.NoError(t, err)
		golden(t, "record-"+x.Key, b)
		got, err := wire.DecodeRecord(types, x.Key, b)
		require.NoError(t, err)
		require.Equal(t, x, got)
	}
	b := wire.AppendMeta(nil, wholeMeta)
	golden(t, "meta", b)
	got, err := wire.DecodeMeta(b)
	require.NoError(t, err)
	require.Equal(t, wholeMeta, got)
	got, err = wire.DecodeMeta(wire.AppendMeta(nil, protocol.Meta{}))
	require.NoError(t, err)
	require.Zero(t, got)
}

// What no table holds is not stored.
func TestForeignRecords(t *testing.T) {
	b, err := wire.AppendRecord([]byte("before"), table.Entry{Key: "k", State: table.Live})
	require.ErrorIs(t, err, wire.ErrForeign)
	require.Equal(t, "before", string(b))
}

// Damage on the disk is noticed, and fields of a later version are passed over.
func TestMalformedRecords(t *testing.T) {
	record, err := wire.AppendRecord(nil, entries[0])
	require.NoError(t, err)
	meta := wire.AppendMeta(nil, wholeMeta)
	extra := join(varint(32, 7), text(33, []byte("new")))
	for name, test := range map[string]malformed{
		"no bytes":          {nil, "no bytes"},
		"a later format":    {[]byte{2}, "format version 2"},
		"no entry":          {[]byte{1}, "without an entry"},
		"an entry of text":  {join([]byte{1}, varint(3, 1)), "want bytes"},
		"a type of number":  {join([]byte{1}, varint(1, 1)), "want bytes"},
		"a live one, empty": {join([]byte{1}, text(3)), "without a value"},
		"a tag cut off":     {join(record, []byte{0x80}), "a tag"},
	} {
		x, err := wire.DecodeRecord(types, "k", test.b)
		require.Zero(t, x, name)
		require.ErrorIs(t, err, wire.ErrMalformed, name)
		require.ErrorContains(t, err, test.want, name)
	}
	_, err = wire.DecodeRecord(types, "", record)
	require.ErrorContains(t, err, "without a key")
	x, err := wire.DecodeRecord(types, "basket", join(record, extra))
	require.NoError(t, err)
	require.Equal(t, entries[0], x)
	x, err = wire.DecodeRecord(registry{}, "basket", record)
	require.NoError(t, err)
	require.Equal(t, table.Unknown{Name: texts.Name()}, x.Value)

	for name, test := range map[string]malformed{
		"no bytes":         {nil, "no bytes"},
		"a later format":   {[]byte{2}, "format version 2"},
		"a register":       {join([]byte{1}, text(1)), "generation 0"},
		"caught":           {join([]byte{1}, varint(2, 2)), "at most 1"},
		"promised":         {join([]byte{1}, varint(3, 2)), "want bytes"},
		"accepted":         {join([]byte{1}, varint(4, 2)), "want bytes"},
		"a value":          {join([]byte{1}, text(5)), "generation 0"},
		"a sweep":          {join([]byte{1}, text(6)), "want a varint"},
		"tombstones":       {join([]byte{1}, varint(7, 1)), "want a fixed64"},
		"a sweep up to":    {join([]byte{1}, text(11)), "want a varint"},
		"a late tombstone": {join([]byte{1}, varint(12, 1)), "want bytes"},
		"written":          {join([]byte{1}, text(8)), "want a varint"},
		"older":            {join([]byte{1}, varint(9, 1)), "want a fixed64"},
		"shown by nobody":  {join([]byte{1}, text(10)), "out of order"},
		"shown twice":      {join([]byte{1}, text(10, fixed(1, 2)), text(10, fixed(1, 2))), "out of order"},
		"shown: a uid":     {join([]byte{1}, text(10, fixed(1, 2), varint(2, 1))), "want a fixed64"},
		"a tag is cut off": {join(meta, []byte{0x80}), "a tag"},
	} {
		m, err := wire.DecodeMeta(test.b)
		require.Zero(t, m, name)
		require.ErrorIs(t, err, wire.ErrMalformed, name)
		require.ErrorContains(t, err, test.want, name)
	}
	m, err := wire.DecodeMeta(join(meta, extra))
	require.NoError(t, err)
	require.Equal(t, wholeMeta, m)
}

// No changed bit and no cut makes a decoder panic, or return what cannot be stored again.
func TestDamagedRecords(t *testing.T) {
	for _, x := range entries {
		whole, err := wire.AppendRecord(nil, x)
		require.NoError(t, err)
		damage(whole, func(b []byte) { stableRecord(t, x.Key, b) })
	}
	damage(wire.AppendMeta(nil, wholeMeta), func(b []byte) { stableMeta(t, b) })
}

// damage calls use with each beginning of the bytes, and with each bit changed.
func damage(whole []byte, use func(b []byte)) {
	for n := range whole {
		use(whole[:n])
	}
	for bit := range 8 * len(whole) {
		b := bytes.Clone(whole)
		b[bit/8] ^= 1 << (bit % 8)
		use(b)
	}
}

func stableRecord(t *testing.T, key string, b []byte) {
	t.Helper()
	x, err := wire.DecodeRecord(types, key, b)
	if err != nil {
		require.ErrorIs(t, err, wire.ErrMalformed)
		return
	}
	require.Equal(t, key, x.Key)
	first, err := wire.AppendRecord(nil, x)
	if err != nil {
		require.ErrorIs(t, err, wire.ErrForeign, "what is unknown is not stored again")
		return
	}
	again, err := wire.DecodeRecord(types, key, first)
	require.NoError(t, err)
	require.Equal(t, x, again)
}

func stableMeta(t *testing.T, b []byte) {
	t.Helper()
	m, err := wire.DecodeMeta(b)
	if err != nil {
		require.ErrorIs(t, err, wire.ErrMalformed)
		return
	}
	again, err := wire.DecodeMeta(wire.AppendMeta(nil, m))
	require.NoError(t, err)
	require.Equal(t, m, again)
}

func FuzzDecodeRecord(f *testing.F) {
	for _, x := range entries {
		b, err := wire.AppendRecord(nil, x)
		require.NoError(f, err)
		f.Add(x.Key, b)
	}
	f.Add("k", []byte{2})
	f.Fuzz(func(t *testing.T, key string, b []byte) { stableRecord(t, key, b) })
}

func FuzzDecodeMeta(f *testing.F) {
	f.Add(wire.AppendMeta(nil, wholeMeta))
	f.Add(wire.AppendMeta(nil, protocol.Meta{Caught: true}))
	f.Fuzz(stableMeta)
}

func BenchmarkRecord(b *testing.B) {
	for _, origins := range []int{1, 3} {
		x := counters(1, origins).Entries[0]
		stored, err := wire.AppendRecord(nil, x)
		require.NoError(b, err)
		b.Run("append/origins="+strconv.Itoa(origins), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := wire.AppendRecord(stored[:0], x); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("decode/origins="+strconv.Itoa(origins), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := wire.DecodeRecord(types, x.Key, stored); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
