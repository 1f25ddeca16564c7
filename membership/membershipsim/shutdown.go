// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membershipsim

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/simulation"
)

// ShutdownFault stops the whole cluster in order, as an operator does. Nodes that have ended are
// started again by whatever starts nodes in the world.
func ShutdownFault(weight int) simulation.Fault {
	return simulation.Fault{Name: "shutdown", Weight: weight, Inject: shutdown}
}

// shutdown has the whole cluster prepare to be stopped. When it is ready one node is told to leave, or
// all of them in any order; one operator in four does not wait for that.
func shutdown(w *simulation.World, r *rand.Rand) {
	nodes := w.Nodes()
	if len(nodes) == 0 {
		return
	}
	by, impatient := nodes[r.IntN(len(nodes))], time.Duration(0)
	if r.IntN(4) == 0 {
		impatient = w.Now() + time.Duration(r.Int64N(int64(5*time.Second)))
	}
	w.Intervene("prepare to be stopped, by %v", by.ID())
	by.Input(protocol.Service, protocol.Prepare{})
	var look func()
	look = func() {
		ready, prepares := shuttingDown(w)
		switch {
		case impatient != 0 && w.Now() >= impatient:
			impatient, ready = 0, w.Nodes()
			leaveAll(w, r, ready)
		case len(ready) > 0 && r.IntN(2) == 0:
			leaveAll(w, r, ready)
		case len(ready) > 0:
			leaveAll(w, r, ready[:1])
		}
		if prepares || w.Steady() < 5*time.Second { // The command may be under way, or the last leave.
			w.After(time.Second, look)
		}
	}
	w.After(time.Second, look)
}

// shuttingDown returns the nodes that are ready for a shutdown and know of nobody who leaves, and whether
// any node knows of a shutdown.
func shuttingDown(w *simulation.World) (ready []*simulation.Node, prepares bool) {
	for _, n := range w.Nodes() {
		s := MachineOf(n).State()
		leaves := func(m *gossip.Member) bool { return m.Status == gossip.Leaving || m.Status == gossip.Exiting }
		if me := s.Member(n.ID()); me != nil && me.Status == gossip.Ready && !slices.ContainsFunc(s.Members(), leaves) {
			ready = append(ready, n)
		}
		prepares = prepares || s.Shutdown() != gossip.StatusNone
	}
	return ready, prepares
}

// leaveAll tells nodes to leave, within two seconds.
func leaveAll(w *simulation.World, r *rand.Rand, nodes []*simulation.Node) {
	for _, n := range nodes {
		w.After(time.Duration(r.Int64N(int64(2*time.Second))), func() {
			w.Intervene("leave %v, with all others", n.ID())
			n.Input(protocol.Service, protocol.Leave{Address: n.ID().Address})
		})
	}
}
