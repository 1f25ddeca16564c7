// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience/frugal"
	"github.com/quorate/quorate/membership/internal/wire"
)

// perByte is how many bytes a message may take for each of its bytes. A member of a state has about 30 bytes, as places
// in lists that name it once, and all that is known of it in memory: 17 for a byte of the largest state.
const perByte = 18

// What others send costs no more than it has bytes, times a number that the page about security says.
func TestDecodersAreFrugal(t *testing.T) {
	var seeds [][]byte
	for _, message := range messages() {
		b, err := wire.Codec{}.Append(nil, message)
		require.NoError(t, err)
		if len(b) < 4096 {
			seeds = append(seeds, b)
		}
	}
	decode := func(b []byte) { _, _ = wire.Codec{}.Decode(b) }
	frugal.RequireFactor(t, perByte, decode, map[string][]byte{"the largest state": largest(t), "all lists at their limits": crowded()})
	frugal.RequireWithin(t, perByte, decode, seeds...)
}
