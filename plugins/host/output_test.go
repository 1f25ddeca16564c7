// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Of what a plugin prints, the last lines are kept, none of them longer than its bound, and the others are counted.
func TestTheLastLinesOfTheOutputAreKept(t *testing.T) {
	var o Output
	kept, all := o.Lines()
	require.Empty(t, kept)
	require.Zero(t, all)
	for n := range 3 * outputLines {
		o.add(strconv.Itoa(n))
	}
	o.add(strings.Repeat("ä", outputLineBytes))
	kept, all = o.Lines()
	require.Len(t, kept, outputLines)
	require.Equal(t, 3*outputLines+1, all)
	require.Equal(t, strconv.Itoa(2*outputLines+1), kept[0])
	require.Equal(t, strings.Repeat("ä", outputLineBytes/2)+"...", kept[outputLines-1])
}
