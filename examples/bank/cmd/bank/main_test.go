// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/membership"
)

// A supervisor can tell from the status what to do: a restart does not help after every
// end.
func TestTheExitStatusSaysHowItEnded(t *testing.T) {
	for _, test := range []struct {
		err    error
		status int
	}{
		{errors.New("the port is in use"), 1},
		{config.Errors{}, 2},
		{membership.ErrDown, 3},
		{membership.ErrYielded, 4},
		{membership.ErrDisk, 5},
		{membership.ErrRefused, 1},
		{membership.ErrJoinFailed, 1},
	} {
		require.Equal(t, test.status, explain(fmt.Errorf("bank: %w", test.err)), test.err)
	}
}
