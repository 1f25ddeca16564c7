// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/discovery"
)

// FuzzParse parses any content: the contact points that are found are valid, and the same when
// they are written out and parsed again.
func FuzzParse(f *testing.F) {
	f.Add([]byte("# nodes\na:1\n10.0.0.1:2 # x\n[fd00::1]:3\r\n"))
	f.Add([]byte("\xef\xbb\xbfa:1\n\n"))
	f.Add([]byte("a:1\nb"))
	f.Add([]byte("bad\n\x00\n#\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		list, err := parse(content)
		if err != nil {
			require.Empty(t, list)
			return
		}
		require.LessOrEqual(t, len(list), len(content)/4)
		text := "#\n"
		for _, target := range list {
			require.NoError(t, target.Validate())
			text += target.String() + "\n"
		}
		again, err := parse([]byte(text))
		require.NoError(t, err)
		require.Equal(t, list, again)
		// A file that was cut off in a line is not taken for a shorter file.
		if cut := strings.TrimSuffix(text, "\n"); len(list) > 0 {
			_, err := parse([]byte(cut))
			require.Error(t, err)
			require.NotErrorIs(t, err, discovery.ErrBadTarget)
		}
	})
}
