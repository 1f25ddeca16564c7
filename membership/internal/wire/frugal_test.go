// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience/frugal"
	"github.com/quorate/quorate/membership/internal/wire"
)

// What others send costs no more than it has bytes, times a small number.
func TestDecodersAreFrugal(t *testing.T) {
	var seeds [][]byte
	for _, message := range messages() {
		b, err := wire.Codec{}.Append(nil, message)
		require.NoError(t, err)
		if len(b) < 4096 {
			seeds = append(seeds, b)
		}
	}
	frugal.Require(t, func(b []byte) { _, _ = wire.Codec{}.Decode(b) }, seeds...)
}
