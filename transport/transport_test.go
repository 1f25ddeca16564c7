// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package transport_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/transport"
)

func TestTheDefaultConfigurationIsValid(t *testing.T) {
	require.NoError(t, transport.Default().Validate())
	require.Positive(t, transport.Default().MaxMessageBytes())
}

func TestEveryReasonHasItsWords(t *testing.T) {
	seen := make(map[string]bool)
	for r := range transport.Reasons {
		s := transport.Reason(r).String()
		require.NotContains(t, s, "reason 1")
		require.False(t, seen[s], s)
		seen[s] = true
	}
	require.Equal(t, "reason 200", transport.Reason(200).String())
}

func TestARefusalNamesThePeerWhenItIsKnown(t *testing.T) {
	e := &transport.RefusedError{Reason: transport.ReasonBlocked, Detail: "downed"}
	require.Equal(t, "transport: refused: blocked: downed", e.Error())
	e.Peer = gossip.NodeID{Address: gossip.Address{Host: "127.0.0.1", Port: 7946}, UID: 1}
	require.Contains(t, e.Error(), e.Peer.String())
}
