// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/memory"
	"github.com/quorate/quorate/transport/transporttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a network of nodes with made-up ports.
type world struct {
	*memory.Network

	port uint16
}

func newWorld(testing.TB) transporttest.World { return &world{memory.NewNetwork(), 0} }

func (w *world) New(t testing.TB, s transporttest.Spec) transport.Transport {
	if s.Address.IsZero() {
		w.port++
		s.Address = gossip.Address{Host: "127.0.0.1", Port: w.port}
	}
	tr, err := w.Transport(transport.Identity{
		Node:      gossip.NodeID{Address: s.Address, UID: s.UID},
		Cluster:   s.Cluster,
		Protocol:  s.Protocol,
		ClusterID: func() gossip.ClusterID { return s.ID },
		Known:     s.Known,
	}, s.Config, s.Notices)
	require.NoError(t, err)
	return tr
}

func TestATransportThatCannotBeMadeIsNil(t *testing.T) {
	tr, err := memory.NewNetwork().Transport(transport.Identity{}, transport.Default(), nil)
	require.Error(t, err)
	require.Nil(t, tr)
}

func TestConformance(t *testing.T) {
	transporttest.Test(t, transporttest.Plain, newWorld)
}

func TestConformanceInVirtualTime(t *testing.T) {
	bubble := func(t *testing.T, f func(*testing.T)) {
		t.Helper()
		synctest.Test(t, f)
	}
	transporttest.Test(t, bubble, newWorld)
}
