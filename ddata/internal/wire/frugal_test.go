// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata/internal/wire"
	"github.com/quorate/quorate/internal/patience/frugal"
)

// perByte is how many bytes a message or a record may take for each of its bytes. It is that of the values in them,
// which package crdt is held to: an entry has two bytes for each of its parts, and a hundred in memory, where keys and
// values have one byte each.
const perByte = 28

// What others send costs no more than it has bytes, times a number that the page about security says; nor does what a
// replica has stored.
func TestDecodersAreFrugal(t *testing.T) {
	all := samples()
	var seeds [][]byte
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if b := encode(t, all[name]); len(b) < 4096 {
			seeds = append(seeds, b)
		}
	}
	frugal.RequireWithin(t, perByte, func(b []byte) { _, _ = codec.Decode(b) }, seeds...)
	frugal.RequireWithin(t, perByte, func(b []byte) { _, _ = wire.DecodeMeta(append([]byte{1}, b...)) }, wire.AppendMeta(nil, wholeMeta)[1:])
	var stored [][]byte
	for _, x := range entries {
		b, err := wire.AppendRecord(nil, x)
		require.NoError(t, err)
		stored = append(stored, b[1:])
	}
	frugal.RequireWithin(t, perByte, func(b []byte) { _, _ = wire.DecodeRecord(types, "k", append([]byte{1}, b...)) }, stored...)
	frugal.Require(t, func(b []byte) { wire.NewJoiner(1000, new(wire.Drops)).Add(b) }, part(1, 0, 3, "a"))
}
