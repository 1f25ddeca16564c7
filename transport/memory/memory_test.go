// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
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

// inVirtualTime runs a test in a bubble.
func inVirtualTime(t *testing.T, f func(*testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

func TestConformanceInVirtualTime(t *testing.T) { transporttest.Test(t, inVirtualTime, newWorld) }

func TestConformanceWithLatency(t *testing.T) {
	transporttest.Test(t, inVirtualTime, func(testing.TB) transporttest.World {
		w := &world{memory.NewNetwork(), 0}
		w.SetLatency(func(from, _ gossip.Address) time.Duration { return time.Duration(from.Port%3) * time.Millisecond })
		return w
	})
}

// Messages are under way for as long as they are told to be, and arrive in their order even so.
func TestMessagesTakeTheirTime(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		t.Helper()
		var drawn atomic.Int64
		w.SetLatency(func(from, _ gossip.Address) time.Duration {
			if from.Port == 2 {
				return 0
			}
			return time.Duration(10-drawn.Add(1)%10) * time.Millisecond
		})
		a, b := pair(t, w, transport.Default())
		lane := a.Lane(b.Self(), machine.LaneControl)
		for i := range 10 {
			transporttest.Send(t, lane, i)
		}
		began := time.Now()
		b.UntilReceived(t, 10)
		b.RequireSequence(t, a.Self(), 10)
		require.GreaterOrEqual(t, time.Since(began), 9*time.Millisecond, "nothing is there at once")
		require.Less(t, time.Since(began), time.Second)
	})
}
