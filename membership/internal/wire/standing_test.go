// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/membership/internal/wire"
)

// A proof never gets younger on the wire, older by less than a millisecond, and one that
// does not exist does not come into being.
func TestAProofGetsNoYoungerOnTheWire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ages := rapid.OneOf(rapid.Just(protocol.NoProof), rapid.Map(rapid.Int64Range(0, int64(time.Minute)), func(d int64) time.Duration { return time.Duration(d) }))
		sent := protocol.LendStanding{Question: 1, Proof: ages.Draw(t, "proof"), All: ages.Draw(t, "all")}
		got, err := wire.Codec{}.Decode(encode(t, sent))
		require.NoError(t, err)
		lent := got.(protocol.LendStanding)
		for _, age := range [][2]time.Duration{{sent.Proof, lent.Proof}, {sent.All, lent.All}} {
			require.Equal(t, age[0] == protocol.NoProof, age[1] == protocol.NoProof)
			require.GreaterOrEqual(t, age[1], age[0])
			require.Less(t, age[1]-age[0], time.Millisecond)
		}
	})
}

func TestAProofOlderThanAnyFenceIsMalformed(t *testing.T) {
	for _, m := range []fields{{"question": 1, "proof": uint64(1 << 62)}, {"question": 1, "all": uint64(math.MaxUint64)}} {
		_, err := wire.Codec{}.Decode(made(t, fields{"lend_standing": m}).bytes(t))
		require.ErrorIs(t, err, wire.ErrMalformed)
	}
}
