// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFreeAddressesDiffer(t *testing.T) {
	addresses, err := FreeAddresses(t.Context(), 3)
	require.NoError(t, err)
	require.Len(t, addresses, 3)
	require.NotEqual(t, addresses[0], addresses[1])
	require.NotEqual(t, addresses[1], addresses[2])
	_, err = FreeAddresses(t.Context(), lastPort)
	require.ErrorContains(t, err, "are needed")
}

func TestAnAddressInUseIsNotFree(t *testing.T) {
	l, err := Listen(t.Context())
	require.NoError(t, err)
	require.False(t, IsFree(t.Context(), l.Addr().String()))
	c, err := Dial(t.Context(), l.Addr().String())
	require.NoError(t, err)
	require.NoError(t, c.Close())
	require.NoError(t, l.Close())
}
