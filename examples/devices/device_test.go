// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A reading counts once, and a question not at all.
func TestADeviceTakesAReadingOnce(t *testing.T) {
	var d device
	for _, r := range []reading{{}, {1, 20}, {1, 20}, {2, -5}, {}, {2, -5}, {1, 20}, {9, 1}} {
		d.take(&r)
	}
	require.Equal(t, device{Count: 3, Sequence: 9, Last: 1, Sum: 16}, d)
}
