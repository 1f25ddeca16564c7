// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/bench/internal/harness"
	"github.com/quorate/quorate/machine/component"
)

// Messages of membership are counted by the number of their first field. All others count as
// other.
func TestKindsAreCountedByField(t *testing.T) {
	var seen kinds
	heartbeat := []byte{7<<3 | 2, 1, 0}
	seen.count(component.ServiceMembership, heartbeat)
	seen.count(component.ServiceMembership, append(heartbeat, 0, 0))
	seen.count(component.ServiceMembership+1, heartbeat)
	seen.count(component.ServiceMembership, nil)
	require.Equal(t, "2 other of 1 B, 2 heartbeat of 4 B", seen.String())
}

// Nodes that live apart have an address each and one port.
func TestNodesApartHaveAddressesOfTheirOwn(t *testing.T) {
	addresses, err := addressesFor(t.Context(), harness.Spec{Nodes: 251, Apart: true})
	require.NoError(t, err)
	require.Equal(t, "127.0.1.1:20000", addresses[0])
	require.Equal(t, "127.0.2.1:20000", addresses[250])
}
