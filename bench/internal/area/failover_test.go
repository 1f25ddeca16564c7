// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package area

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// An entity that lives on two nodes at a time is found, and one that did at some time. An
// entity that moved is not.
func TestDoubles(t *testing.T) {
	now, ever, example := doubles([][]stay{
		{{"moved", 10, 20}, {"was", 10, 30}, {"is", 10, 0}, {"stayed", 10, 0}},
		{{"moved", 20, 0}, {"was", 29, 0}, {"is", 40, 0}},
	})
	require.Equal(t, 1, now)
	require.Equal(t, 2, ever)
	require.Contains(t, example, "lived on node 0 from 10 to ")
}
