// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membershipsim

import (
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/simulation"
)

// Supervisor does for each address what systemd or Kubernetes do, without knowledge of
// the cluster: it starts a node again where it stood whenever a node has ended, by itself
// or not, inside a partition too, and gives every node the same list of seed nodes. An
// [Operator] instead sees the whole cluster and repairs it.
type Supervisor struct {
	// Seeds is the list that every node is given.
	Seeds []gossip.Address

	// Discover says that nodes are given no list, and look contact points up.
	Discover bool

	// Min and Max bound how long a start takes, drawn evenly.
	Min, Max time.Duration

	// Slow is the chance that a start takes up to SlowMax instead: an image must be
	// fetched, a back-off, a person must be called.
	Slow    float64
	SlowMax time.Duration

	// Lose is the chance that a node comes back without what its disk held, as a
	// container without a volume does.
	Lose float64

	// Older is the chance that a node comes back with what its disk held some writes ago.
	Older float64

	// Starts counts the starts.
	Starts int

	world *simulation.World
	rand  *rand.Rand
}

// sourceSupervisor is the number of the random source that a supervisor draws from.
const sourceSupervisor = 6

// Supervise makes s start the nodes of a world.
func (s *Supervisor) Supervise(w *simulation.World) {
	s.world, s.rand = w, w.Source(sourceSupervisor)
	w.Observe(s.observe)
}

func (s *Supervisor) observe(e simulation.Observation) {
	n := e.Node
	switch e.Event.(type) {
	case simulation.Started:
		s.Starts++
		var begin any = protocol.Join{Seeds: s.Seeds}
		if s.Discover {
			begin = protocol.Discover{}
		}
		s.world.After(0, func() { n.Input(protocol.Service, begin) })
	case simulation.Ended:
		s.world.After(s.delay(), func() { s.start(n.ID().Address) })
	}
}

func (s *Supervisor) delay() time.Duration {
	if s.Slow > 0 && s.rand.Float64() < s.Slow {
		return between(s.rand, s.Max, max(s.SlowMax, s.Max))
	}
	return between(s.rand, s.Min, max(s.Max, s.Min))
}

// start starts a node at an address where none lives, with its disk as chance has left
// it.
func (s *Supervisor) start(a gossip.Address) {
	if s.world.Node(a) != nil {
		return
	}
	switch luck := s.rand.Float64(); {
	case luck < s.Lose:
		s.world.Disks().Lose(a)
	case luck < s.Lose+s.Older:
		s.world.Disks().Age(a, 1+s.rand.IntN(4))
	}
	s.world.Restart(a)
}

func between(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64(most-least)+1))
}
