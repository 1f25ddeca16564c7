// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package retry

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestPauses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		least := time.Duration(rapid.Int64Range(int64(time.Millisecond), int64(time.Hour)).Draw(t, "least"))
		most := time.Duration(rapid.Int64Range(int64(least), int64(100*time.Hour)).Draw(t, "most"))
		r, want := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)), least
		for failures := range 100 {
			got := Pause(r, least, most, failures)
			require.LessOrEqual(t, got, want)
			require.GreaterOrEqual(t, got, want/2)
			want = min(2*want, most)
		}
	})
}
