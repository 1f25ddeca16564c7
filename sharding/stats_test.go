// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/internal/protocol"
)

// Each failure is counted under one name, and what has none under Other.
func TestFailuresHaveNames(t *testing.T) {
	f := failuresOf([protocol.Codes]uint64{
		protocol.CodeNotDelivered: 1, protocol.CodeUnknownOutcome: 2, protocol.CodeEntityFailed: 4, protocol.CodeOverloaded: 8,
		protocol.CodeExpired: 16,
	})
	require.Equal(t, Failures{NotDelivered: 1, UnknownOutcome: 2, EntityFailed: 4, Overloaded: 8, Other: 16}, f)
	require.EqualValues(t, 31, f.Total())
}
