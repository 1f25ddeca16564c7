// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/internal/protocol"
	world "github.com/quorate/quorate/simulation"
	"github.com/quorate/quorate/simulation/simulationtest"
)

// An entity fails at a message, and its node is frozen for longer than its standing lasts while
// the entity is started anew for the message that waits. That message does not begin by what the
// clock showed before the start: the ledger finds a node that takes itself to have standing.
// covers F24, I14.
func TestAMessageAfterARestartNeedsStanding(t *testing.T) {
	first, n := simulationtest.Seeds(t, 5)
	for seed := first; seed < first+n; seed++ {
		c := New(Options{
			World: world.Options{Seed: seed, CodecEvery: 3}, Nodes: 3, Shards: 12, Every: 50 * time.Millisecond,
			Behaviour: Behaviour{Start: time.Second, FailRun: 1},
		})
		c.Quiet()
		require.NoError(t, c.Await(30*time.Second, c.Settled, c.Even))
		host := c.homeOf(entity(1), nil)
		for range 2 {
			c.next++
			host.Input(protocol.MessageService, Send{ID: c.next, Entity: entity(1)})
		}
		require.NoError(t, c.Await(10*time.Second, func() error {
			if c.Ledger.counts.Processed == 0 {
				return errors.New("no message was handled")
			}
			return nil
		}))
		require.NoError(t, c.World.Run(50*time.Millisecond)) // The entity has stopped, and starts again.
		c.World.Freeze(host.ID().Address, 8*time.Second)
		require.NoError(t, c.World.Run(time.Minute), "seed %d", seed)
	}
}
