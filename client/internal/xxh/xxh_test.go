// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package xxh_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/client/internal/xxh"
)

// The values are those of the specification's reference implementation, for each way through the
// function: no byte, single bytes, four, eight, a stripe and more. Module gateway compares it with that of the
// cluster.
func TestSum64(t *testing.T) {
	for text, want := range map[string]uint64{
		"":    0xef46db3751d8e999,
		"a":   0xd24ec4f1a98c6e5b,
		"abc": 0x44bc2cf5ad770999,
		"Nobody inspects the spammish repetition":                         0xfbcea83c8a378bf1,
		"Call me Ishmael. Some years ago--never mind how long precisely-": 0x02a2e85470d6fd96,
	} {
		require.Equal(t, want, xxh.Sum64(text), "%q", text)
	}
	require.NotEqual(t, xxh.Sum64(strings.Repeat("x", 32)), xxh.Sum64(strings.Repeat("x", 33)))
}
