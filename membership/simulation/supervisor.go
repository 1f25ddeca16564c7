// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/protocol"
)

// Supervisor does for each address what systemd or Kubernetes do, and knows nothing:
// it starts a node again where it stood whenever one has ended, by itself or not,
// inside a partition as well, and gives every node the same list of seed nodes. An
// [Operator] instead sees the whole cluster and repairs it.
type Supervisor struct {
	// Seeds is the list that every node is given.
	Seeds []gossip.Address

	// Min and Max bound how long a start takes, drawn evenly.
	Min, Max time.Duration

	// Slow is the chance that a start takes up to SlowMax instead: an image that has
	// to be fetched, a back-off, somebody who has to be called.
	Slow    float64
	SlowMax time.Duration

	// Lose is the chance that a node comes back without what its disk held, as a
	// container without a volume does.
	Lose float64

	// Older is the chance that it comes back with what its disk held some writes ago.
	Older float64

	// Starts counts the starts.
	Starts int

	world *World
	rand  *rand.Rand
}

// Supervise makes s look after a world.
func (s *Supervisor) Supervise(w *World) {
	s.world, s.rand = w, source(w.Seed(), 6)
	w.Observe(s.observe)
}

func (s *Supervisor) observe(e Observation) {
	n := e.Node
	switch e.Event.(type) {
	case Began:
		s.Starts++
		s.world.After(0, func() { n.Input(protocol.Service, protocol.Join{Seeds: s.Seeds}) })
	case Ended:
		s.world.After(s.delay(), func() { s.start(n.place.address) })
	}
}

func (s *Supervisor) delay() time.Duration {
	if s.Slow > 0 && s.rand.Float64() < s.Slow {
		return between(s.rand, s.Max, max(s.SlowMax, s.Max))
	}
	return between(s.rand, s.Min, max(s.Max, s.Min))
}

// start starts a node at an address where none lives, with what fate has left of its
// disk.
func (s *Supervisor) start(a gossip.Address) {
	if s.world.Node(a) != nil {
		return
	}
	switch luck := s.rand.Float64(); {
	case luck < s.Lose:
		s.world.LoseDisk(a)
	case luck < s.Lose+s.Older:
		s.world.AgeDisk(a, 1+s.rand.IntN(4))
	}
	s.world.Restart(a)
}
