// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience/frugal"
	"github.com/quorate/quorate/sharding/internal/wire"
)

// What others send costs no more than it has bytes, times a small number.
func TestDecodersAreFrugal(t *testing.T) {
	var seeds [][]byte
	for _, name := range slices.Sorted(maps.Keys(items())) {
		seeds = append(seeds, appendItem(nil, items()[name]))
	}
	seeds = append(seeds, appendAcks(threeAcks()...))
	frugal.Require(t, func(b []byte) { _, _ = wire.DecodeItem(b, now) }, seeds...)
	seeds = nil
	for _, name := range slices.Sorted(maps.Keys(controls())) {
		b, err := codec.Append(nil, controls()[name])
		require.NoError(t, err)
		seeds = append(seeds, b)
	}
	frugal.Require(t, func(b []byte) { _, _ = codec.Decode(b) }, seeds...)
}
