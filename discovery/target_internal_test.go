// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A plain name is one that the whole check takes, and takes no memory.
func TestPlainNamesAreValid(t *testing.T) {
	const letters, tries = "az09f-_.:A \x80", 50_000
	r := rand.New(rand.NewPCG(1, 2))
	plain := 0
	for range tries {
		host := make([]byte, r.IntN(9))
		for i := range host {
			host[i] = letters[r.IntN(len(letters))]
		}
		if isPlainName(string(host)) {
			plain++
			require.NoError(t, Target{Host: string(host)}.validate(), "%q", host)
		}
	}
	require.Greater(t, plain, tries/20)
	for _, host := range []string{strings.Repeat("a", maxLabelBytes), strings.Repeat("a", maxLabelBytes+1), strings.Repeat("a.", maxPlainBytes/2) + "a"} {
		require.Equal(t, len(host) == maxLabelBytes, isPlainName(host), host)
	}
	name := Target{Host: "node-1.example.com", Port: 7946}
	require.Zero(t, testing.AllocsPerRun(10, func() { _ = name.Validate() }))
}
