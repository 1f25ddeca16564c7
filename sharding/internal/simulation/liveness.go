// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/membershipsim"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/runtime"
	world "github.com/quorate/quorate/simulation"
)

// maxQuietLoss is the loss of a network up to which a world counts as quiet: of each
// hundred messages one. Beyond it commands take as many attempts as they take.
const maxQuietLoss = 0.01

// liveness checks in each second that in a world in which nothing is wrong, for as long
// as membership and then sharding may take, one coordinator runs and every shard has
// a home that hosts it.
type liveness struct {
	cluster *Cluster
	within  time.Duration
	looked  int
}

// newLiveness works the time out from the settings: what membership takes to settle;
// then a coordinator that waits for the answers of all, gives homes, and moves what
// is not even, which may take as long as a handoff may, thrice: before it is taken
// back, again, and for the last entity that stops late.
func newLiveness(c *Cluster) *liveness {
	settle := membershipsim.BoundsOf(c.opt.Membership, c.opt.Nodes, max(c.opt.RestartAfter, c.opt.ReviveAfter)).Settle
	within := settle + 3*c.opt.Handoff + c.opt.Behaviour.SlowStopFor
	if c.opt.Leases {
		within += leaseTTL + maxLeaseDown
	}
	return &liveness{cluster: c, within: within}
}

// Stepped does nothing: what does not happen, happens in no step.
func (*liveness) Stepped(*world.World, *world.Node) error { return nil }

// Second looks at the world.
func (l *liveness) Second(w *world.World) error {
	quiet, ok := w.Quiet()
	if !ok || quiet <= l.within || l.cluster.opt.World.Network.Loss > maxQuietLoss || len(w.Nodes()) == 0 {
		return nil
	}
	l.looked++
	return l.look(w, quiet)
}

func (l *liveness) look(w *world.World, quiet time.Duration) error {
	hosted, inUse := map[protocol.ShardID]int{}, used(l.cluster, protocol.Layout{Shards: protocol.MaxShards})
	var coordinators []gossip.NodeID
	for _, n := range w.Nodes() {
		if Control(n).InspectCoordinator(KindName).Coordinating {
			coordinators = append(coordinators, n.ID())
		}
		region := l.cluster.Ledger.nodes[n.ID()].region
		region.EachSlot(func(sl *runtime.Slot) {
			if int(sl.Shard().Index()) >= inUse {
				return // Whether it is hosted before a change of the shards in use is known is looked at by the ledger.
			}
			if _, known := hosted[sl.Shard()]; sl.Info().Hosting || !known && !region.Retired(sl) {
				hosted[sl.Shard()] += oneIf(sl.Info().Hosting)
			}
		})
	}
	if len(coordinators) != 1 {
		return fmt.Errorf("I27: nothing has been wrong for %v, and the coordinators are %v", quiet, coordinators)
	}
	for s, homes := range hosted {
		if homes != 1 {
			return fmt.Errorf("I27: nothing has been wrong for %v, and shard %d is hosted by %d nodes", quiet, s, homes)
		}
	}
	return nil
}

// oneIf is 1 for true.
func oneIf(is bool) int {
	if is {
		return 1
	}
	return 0
}

var _ world.Checker = (*liveness)(nil)
