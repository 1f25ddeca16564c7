// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzRecord decodes any file of a lease: what is accepted is what would be written.
func FuzzRecord(f *testing.F) {
	for _, text := range []string{
		"quorate-lease 1\n7\n\"a/b\"\n", "", "quorate-lease 2\n7\n\"a\"\n", "quorate-lease 1\n0\n\"a\"\n", "quorate-lease 1\n+7\n\"a\"\n",
		"quorate-lease 1\n7\n\"a\"\ngiven back\n", "quorate-lease 1\n7\n\"a\"\ntaken back\n", "quorate-lease 1\n7\na\n", "quorate-lease 1\n7\n\"\"\n", "quorate-lease 1\n18446744073709551616\n\"a\"\n", "quorate-lease 1\n7\n`a`\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := decode(data)
		if err != nil {
			require.Zero(t, r)
			return
		}
		require.Equal(t, string(data), string(encode(r)))
		require.NotZero(t, r.token)
	})
}
