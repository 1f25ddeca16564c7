// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
)

// Where something is done to several members and fails at one, the error says what was done before.
func TestAnErrorSaysWhatWasDoneBefore(t *testing.T) {
	members := []*gossip.Member{{Node: gossip.NodeID{Address: gossip.Address{Host: "a", Port: 1}}}, {Node: gossip.NodeID{Address: gossip.Address{Host: "b", Port: 1}}}}
	fails := func(host string) error {
		return each(members, func(m *gossip.Member) error {
			if m.Node.Address.Host == host {
				return refuse(404, "no such member")
			}
			return nil
		})
	}
	require.NoError(t, fails("c"))
	require.Equal(t, refuse(404, "no such member"), fails("a"))
	failed, ok := errors.AsType[*Error](fails("b"))
	require.True(t, ok)
	require.Equal(t, 404, failed.Status)
	require.Contains(t, failed.Text, "this was done to a:1, but not to b:1")
}
