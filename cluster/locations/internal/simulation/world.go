// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/cluster/locations/internal/part"
	"github.com/quorate/quorate/ddata/ddatasim"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/shardingsim"
	"github.com/quorate/quorate/simulation"
)

// The world: its nodes, what goes wrong in it, and the end of a run.

const (
	shards      = 16
	writesEvery = 500 * time.Millisecond // The mean time between calls.

	forms    = 15 * time.Second  // A cluster forms within so long.
	suffers  = 60 * time.Second  // Faults strike for so long.
	recovery = 150 * time.Second // After the faults all is well again within so long.
	rest     = 30 * time.Second  // Then nothing moves.
	calms    = 15 * time.Second  // So long after the faults calls are no longer excused.

	// First some nodes are cut off, one after the other, for less than it takes to remove them.
	aparts     = 5
	apartEvery = 8 * time.Second
	apartLeast = 2 * time.Second
	maxApart   = 6 * time.Second
)

// Nodes is the usual number of nodes.
const Nodes = 5

// Counts sum up a run, so that a test can see that it was not an idle one.
type Counts struct {
	Confirmed, Unconfirmed, Left, Cleared int // Calls, and those that had nothing to write.
	Asked, Away, Unread, Moves            int // Questions, and those of a node that does not hold the key.
}

// Add adds what another run has counted.
func (c *Counts) Add(o Counts) {
	c.Confirmed, c.Unconfirmed, c.Left, c.Cleared = c.Confirmed+o.Confirmed, c.Unconfirmed+o.Unconfirmed, c.Left+o.Left, c.Cleared+o.Cleared
	c.Asked, c.Away, c.Unread, c.Moves = c.Asked+o.Asked, c.Away+o.Away, c.Unread+o.Unread, c.Moves+o.Moves
}

// World is a cluster whose shards follow a replicated map.
type World struct {
	*simulation.World

	cluster *shardingsim.External
	data    *ddatasim.Replicas
	history *history
	nodes   int
	rand    *rand.Rand
	calm    bool // Nothing goes wrong any more.
	ahead   map[gossip.Address]time.Duration
	begun   map[gossip.NodeID]bool // Whose strategy has been asked.
	calls   map[gossip.NodeID][]*call
	Counts  Counts
}

// New returns a world whose nodes have just started.
func New(seed uint64, nodes int, set ...func(*simulation.Options)) *World {
	w := &World{nodes: nodes, begun: map[gossip.NodeID]bool{}, calls: map[gossip.NodeID][]*call{}, history: newHistory(seed%2 == 0)}
	w.cluster = shardingsim.NewExternal(shardingsim.ExternalOptions{
		Seed: seed, Scenario: "sharding-locations", Nodes: nodes, Shards: shards, Ask: w.ask,
		Calls: simulation.Calls{Min: time.Millisecond, Max: 30 * time.Millisecond, Fail: 0.02, Late: 0.01},
		Beside: func(of *simulation.World) func(simulation.Env) []machine.Component {
			w.data = ddatasim.NewReplicas(of)
			return func(env simulation.Env) []machine.Component { return []machine.Component{w.data.Component(env)} }
		},
	}, set...)
	w.World = w.cluster.World()
	w.rand = w.Source(63)
	w.Observe(func(o simulation.Observation) { // Nobody writes by way of a node that has ended, whoever has asked it to.
		if _, ended := o.Event.(simulation.Ended); ended {
			for _, c := range w.calls[o.Node.ID()] {
				c.end(false)
			}
			delete(w.calls, o.Node.ID())
		}
	})
	if seed%2 == 1 {
		w.setClocks()
	}
	w.After(forms/2, w.operate)
	for i := range aparts {
		w.At(forms+time.Duration(i)*apartEvery, func() {
			if nodes := w.Nodes(); len(nodes) > 0 {
				w.apart(nodes[w.rand.IntN(len(nodes))], apartLeast+w.upTo(maxApart-apartLeast))
			}
		})
	}
	w.At(forms+aparts*apartEvery, func() {
		w.Chaos(simulation.Chaos{For: suffers, Every: 4 * time.Second, Faults: slices.Concat(w.cluster.Faults(), simulation.LinkFaults())})
	})
	return w
}

// apart cuts a node off for a while when it has written locations that no other node has heard of. Their operator,
// whose call is not confirmed, says by way of another node what was so before.
func (w *World) apart(n *simulation.Node, lasts time.Duration) {
	change, a := w.drawn(), n.ID().Address
	each := func(do func(from, to gossip.Address)) {
		for i := range w.nodes {
			if b := shardingsim.Address(i); b != a {
				do(a, b)
				do(b, a)
			}
		}
	}
	c := w.set(n, change, func(confirmed bool) {
		for _, other := range w.Nodes() {
			if other != n && !confirmed && !other.Frozen() {
				w.set(other, w.before(change), func(bool) {})
				return
			}
		}
	})
	c.written = func() {
		each(w.Network().Cut)
		w.After(lasts, func() { each(w.Network().Mend) })
	}
}

// key is the name of the one key of the world, which has the locations of all its shards.
func key() string { return part.Key(shardingsim.Kind, 0) }

func (w *World) upTo(d time.Duration) time.Duration { return time.Duration(w.rand.Int64N(int64(d))) }

// Finish runs the world to its end.
func (w *World) Finish() error {
	if err := w.Run(forms + aparts*apartEvery + suffers); err != nil {
		return err
	}
	w.calm = true
	w.cluster.Quiet()
	if err := w.Run(calms); err != nil {
		return err
	}
	if err := w.settle(); err != nil {
		return err
	}
	if err := w.last(); err != nil {
		return err
	}
	if err := w.settle(); err != nil {
		return err
	}
	moves, homes := w.Counts.Moves, w.cluster.Homes()
	if err := w.Run(rest); err != nil {
		return err
	}
	if w.Counts.Moves != moves || !maps.Equal(homes, w.cluster.Homes()) {
		return fmt.Errorf("L2: shards move, though nothing has changed: %v, and then %v", homes, w.cluster.Homes())
	}
	return w.equal()
}

// settle waits until all replicas agree, and shards live where these say.
func (w *World) settle() error {
	if err := w.cluster.Await(recovery, w.equal, w.live); err != nil {
		var text strings.Builder
		text.WriteString(w.cluster.Describe())
		for _, n := range w.Nodes() {
			text.WriteString("\n" + w.data.Describe(n))
		}
		return fmt.Errorf("L2: %w%s", err, &text)
	}
	return nil
}

// last has each node set a location, which must be acknowledged.
func (w *World) last() error {
	for _, n := range w.Nodes() {
		w.set(n, w.drawn(), func(confirmed bool) {
			if !confirmed {
				w.Fail(fmt.Errorf("L3: a call by way of %v is not confirmed, though nothing is wrong any more", n.ID()))
			}
		})
	}
	return w.Run(2 * callTimeout)
}

// equal returns in what replicas differ, and ends the run if what they say was not said.
func (w *World) equal() error {
	var first part.Known
	for _, n := range w.Nodes() {
		v, err := w.data.Local(n, key())
		if err != nil {
			return fmt.Errorf("%v: %w", n.ID(), err)
		}
		known := part.Known{}
		if p, ok := v.(part.Part); ok {
			known.Add(p, 0)
		}
		if first == nil {
			first = known
		}
		if !maps.Equal(first, known) {
			return fmt.Errorf("%v says %v, another %v", n.ID(), known, first)
		}
	}
	for shard := range allocation.Shard(shards) {
		if err := w.history.check(shard, first[shard], w.Now()); err != nil {
			return err
		}
	}
	return nil
}

// live returns which shard does not live at its location, although a node runs there.
func (w *World) live() error {
	nodes, homes := w.Nodes(), w.cluster.Homes()
	v, _ := w.data.Local(nodes[0], key())
	known := part.Known{}
	if p, ok := v.(part.Part); ok {
		known.Add(p, 0)
	}
	there := map[string]bool{}
	for _, n := range nodes {
		there[n.ID().Address.String()] = true
	}
	for shard := range allocation.Shard(shards) {
		if at := known[shard]; there[at] && homes[shard] != at {
			return fmt.Errorf("shard %d lives at %s, not at %s", shard, homes[shard], at)
		}
	}
	return nil
}

// Run runs a world with a seed.
func Run(seed uint64, nodes int, set ...func(*simulation.Options)) (*World, error) {
	w := New(seed, nodes, set...)
	return w, w.Finish()
}
