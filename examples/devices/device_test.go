// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding"
)

// A reading counts once, and a question not at all.
func TestADeviceTakesAReadingOnce(t *testing.T) {
	var d device
	for _, r := range []reading{{}, {1, 20}, {1, 20}, {2, -5}, {}, {2, -5}, {1, 20}, {9, 1}} {
		d.take(&r)
	}
	require.Equal(t, device{Count: 3, Sequence: 9, Last: 1, Sum: 16}, d)
}

// Whoever balances the load may send a request again only when nothing of it was begun.
func TestOnlyWhatWasNotBegunIsSaidToBeSo(t *testing.T) {
	for err, safe := range map[error]bool{
		sharding.ErrNotDelivered: true, sharding.ErrUnreachable: true, sharding.ErrOverloaded: true, sharding.ErrNoStanding: true, sharding.ErrExpired: true,
		sharding.ErrUnknownOutcome: false, sharding.ErrEntityFailed: false,
	} {
		require.Equal(t, safe, isNotHandled(fmt.Errorf("sharding: %w", err)), err)
	}
}
