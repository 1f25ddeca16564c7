// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package epoch_test

import (
	"bytes"
	"cmp"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/singleton"
	"github.com/quorate/quorate/sharding/epoch"
)

// number draws small numbers and those around powers of 16, where lengths change.
var number = rapid.OneOf(
	rapid.Uint64Range(0, 20),
	rapid.Custom(func(t *rapid.T) uint64 {
		return uint64(1)<<(4*rapid.IntRange(0, 15).Draw(t, "digits")) + rapid.Uint64Range(0, 2).Draw(t, "more") - 1
	}),
	rapid.Uint64(),
)

var epochs = rapid.Custom(func(t *rapid.T) epoch.Epoch {
	return epoch.Epoch{
		Born: int64(number.Draw(t, "born") & math.MaxInt64),
		Term: singleton.Term{
			UpNumber: gossip.UpNumber(number.Draw(t, "up")), UID: gossip.UID(number.Draw(t, "uid")), Start: number.Draw(t, "start"),
		},
		N: number.Draw(t, "n"),
	}
})

// Epochs compare like their texts and like their bytes, and both are parsed into the same
// epoch again.
func TestFormsKeepTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := epochs.Draw(t, "a"), epochs.Draw(t, "b")
		x, err := a.MarshalBinary()
		require.NoError(t, err)
		y, err := b.MarshalBinary()
		require.NoError(t, err)
		require.Equal(t, a.Compare(b), strings.Compare(a.String(), b.String()))
		require.Equal(t, a.Compare(b), bytes.Compare(x, y))
		require.Equal(t, a.Compare(b), -b.Compare(a))
		require.Equal(t, a.Less(b), a.Compare(b) < 0)
		require.Equal(t, a == b, a.Compare(b) == 0)

		text, err := epoch.Parse(a.String())
		require.NoError(t, err)
		require.Equal(t, a, text)
		var bin epoch.Epoch
		require.NoError(t, bin.UnmarshalBinary(x))
		require.Equal(t, a, bin)
	})
}

func TestEpochsCompareFieldByField(t *testing.T) {
	e := func(born int64, up gossip.UpNumber, uid gossip.UID, start, n uint64) epoch.Epoch {
		return epoch.Epoch{Born: born, Term: singleton.Term{UpNumber: up, UID: uid, Start: start}, N: n}
	}
	ordered := []epoch.Epoch{
		{}, e(1, 1, 5, 1, 9), e(1, 1, 5, 2, 1), e(1, 1, 6, 1, 1), e(1, 2, 5, 1, 1), e(2, 1, 5, 1, 1),
	}
	for i, a := range ordered {
		for j, b := range ordered {
			require.Equal(t, cmp.Compare(i, j), a.Compare(b))
		}
	}
	require.True(t, ordered[0].IsZero())
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{
		"", "a1", "a1-a1-a1-a1", "a1-a1-a1-a1-a1-a1", "b1-a1-a1-a1-a1", "a-a1-a1-a1-a1", "b01-a1-a1-a1-a1", "aA-a1-a1-a1-a1",
		"a1-a1-a1-a1-a1 ", "pffffffffffffffff-a1-a1-a1-a1", "q10000000000000000-a1-a1-a1-a1",
	} {
		_, err := epoch.Parse(text)
		require.Error(t, err, text)
	}
	var e epoch.Epoch
	require.Error(t, e.UnmarshalText([]byte("no")))
	require.Error(t, e.UnmarshalBinary(make([]byte, epoch.Size-1)))
	require.Error(t, e.UnmarshalBinary(bytes.Repeat([]byte{0xff}, epoch.Size)))
}

func FuzzParse(f *testing.F) {
	f.Add("a1-a1-a1-a1-a1")
	f.Add("k19b76daa803-a3-p1b0f2e3d4c5b6a79-a1-b1f")
	f.Add("b01-a1-a1-a1-a1")
	f.Fuzz(func(t *testing.T, text string) {
		if e, err := epoch.Parse(text); err == nil {
			require.Equal(t, text, e.String(), "one text for one epoch")
		}
	})
}
