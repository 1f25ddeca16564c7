// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/quorate/quorate/ddata/internal/wire"
	"github.com/quorate/quorate/internal/patience/frugal"
)

// What others send costs no more than it has bytes, times a small number.
func TestDecodersAreFrugal(t *testing.T) {
	all := samples()
	var seeds [][]byte
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if b := encode(t, all[name]); len(b) < 4096 {
			seeds = append(seeds, b)
		}
	}
	frugal.Require(t, func(b []byte) { _, _ = codec.Decode(b) }, seeds...)
	frugal.Require(t, func(b []byte) { _, _ = wire.DecodeMeta(b) })
	frugal.Require(t, func(b []byte) { wire.NewJoiner(1000, new(wire.Drops)).Add(b) }, part(1, 0, 3, "a"))
}
