// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/sharding/internal/protocol"
	world "github.com/quorate/quorate/simulation"
	"github.com/quorate/quorate/simulation/simulationtest"
)

// A node is cut off from all others while one of its entities has so many short messages that
// it handles them in runs. The run that is under way when the standing of the node ends is
// broken off there: the ledger finds each message that begins later. A run lasts a millisecond,
// which random faults hit too seldom.
// covers F24, I14.
func TestARunEndsWhenTheStandingEnds(t *testing.T) {
	first, n := simulationtest.Seeds(t, 3)
	for seed := first; seed < first+n; seed++ {
		c := New(Options{
			World: world.Options{Seed: seed, CodecEvery: 3}, Nodes: 3, Shards: 12, Every: 50 * time.Millisecond,
			Mailbox: 1000, Behaviour: Behaviour{Start: time.Millisecond, Run: 100 * time.Microsecond},
		})
		require.NoError(t, c.Await(30*time.Second, c.Settled, c.Even))
		busy := entity(1)
		host := c.homeOf(busy, nil)
		cells := c.Ledger.nodes[host.ID()]
		var others []gossip.Address
		for _, o := range c.World.Nodes() {
			if o != host {
				others = append(others, o.ID().Address)
			}
		}
		c.World.Network().Split([]gossip.Address{host.ID().Address}, others)
		c.Quiet()
		require.NoError(t, c.World.Run(time.Second), "seed %d", seed) // The last word of another node has come.
		left := cells.until.Sub(host.Now().Mono)
		require.Positive(t, left)
		followed := c.Ledger.counts.Followed
		c.World.After(left-5*time.Millisecond, func() {
			for range 500 { // They take some 25 ms.
				c.next++
				host.Input(protocol.MessageService, Send{ID: c.next, Entity: busy})
			}
		})
		require.NoError(t, c.World.Run(left+time.Second), "seed %d", seed)
		require.Greater(t, c.Ledger.counts.Followed, followed+20)
		require.NotEmpty(t, c.Ledger.Pending(), "messages wait for standing")
	}
}
