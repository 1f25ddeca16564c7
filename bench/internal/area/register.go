// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package area

import (
	"fmt"
	"sync"
	"time"

	"github.com/quorate/quorate/bench/internal/rig"
	"github.com/quorate/quorate/sharding"
)

// stay is the time for which an entity lived on a node, by the clock of the
// machine, which all processes share.
type stay struct {
	Entity string `json:"entity"`
	From   int64  `json:"from"` // Nanoseconds since 1970.
	To     int64  `json:"to"`   // Zero: the entity lives there still.
}

// register keeps which entities live and lived on a node. It is safe for concurrent use.
type register struct {
	mu      sync.Mutex
	ended   []stay
	present map[string]int64 // For each present entity, since when.
	found   rig.Tally        // Of messages that came twice or out of order.
}

// newRegister returns an empty register.
func newRegister() *register { return &register{present: make(map[string]int64)} }

// residents returns all stays, past and present, and what was found wrong.
func (g *register) residents() residents {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := append([]stay(nil), g.ended...)
	for id, from := range g.present {
		all = append(all, stay{id, from, 0})
	}
	return residents{all, g.found.Totals()}
}

// kind describes residents, in so many shards.
func (g *register) kind(shards int) sharding.Kind[*rig.Message] {
	return sharding.Kind[*rig.Message]{
		Name: kindName, Codec: rig.Codec{}, Shards: shards,
		New: func(*sharding.Context) sharding.Entity[*rig.Message] { return &resident{register: g} },
	}
}

// resident is an entity that reports where it lives. Its state is lost when it moves, so
// it takes the first number that it sees for the start of the sequence.
type resident struct {
	register *register
	last     uint64
}

var (
	_ sharding.Entity[*rig.Message] = (*resident)(nil)
	_ sharding.Starter              = (*resident)(nil)
	_ sharding.Stopper              = (*resident)(nil)
)

// Start registers the entity.
func (e *resident) Start(c *sharding.Context) error {
	e.register.mu.Lock()
	defer e.register.mu.Unlock()
	e.register.present[c.ID()] = time.Now().UnixNano()
	return nil
}

// Stop ends its stay.
func (e *resident) Stop(c *sharding.Context) {
	e.register.mu.Lock()
	defer e.register.mu.Unlock()
	from, id := e.register.present[c.ID()], c.ID()
	delete(e.register.present, id)
	e.register.ended = append(e.register.ended, stay{id, from, time.Now().UnixNano()})
}

// Receive checks that the numbers of its one asker rise, and answers with the node that
// it runs on.
func (e *resident) Receive(c *sharding.Context, m *rig.Message) error {
	switch {
	case m.Seq == e.last:
		e.register.found.Duplicated.Add(1)
	case m.Seq < e.last:
		e.register.found.OutOfOrder.Add(1)
	}
	e.last = m.Seq
	return c.Reply(&rig.Message{Sender: m.Sender, Seq: m.Seq, Payload: []byte(c.Node().Address.String())})
}

// doubles counts the entities whose stays on two nodes overlap: those that live on two
// nodes now, and those that ever did, with an example. Each element of nodes is the register of one
// node.
func doubles(nodes [][]stay) (now, ever int, example string) {
	type lived struct {
		node int
		stay stay
	}
	of := make(map[string][]lived)
	for node, stays := range nodes {
		for _, s := range stays {
			of[s.Entity] = append(of[s.Entity], lived{node, s})
		}
	}
	for _, all := range of {
		twice, overlap := false, false
		for i, a := range all {
			for _, b := range all[i+1:] {
				if a.node == b.node {
					continue
				}
				twice = twice || a.stay.To == 0 && b.stay.To == 0
				if overlaps(a.stay, b.stay) {
					overlap = true
					example = fmt.Sprintf("%s lived on node %d from %d to %d ns, and on node %d from %d to %d",
						a.stay.Entity, a.node, a.stay.From, a.stay.To, b.node, b.stay.From, b.stay.To)
				}
			}
		}
		if twice {
			now++
		}
		if overlap {
			ever++
		}
	}
	return now, ever, example
}

// overlaps reports whether two stays have a moment in common.
func overlaps(a, b stay) bool {
	return (a.To == 0 || b.From < a.To) && (b.To == 0 || a.From < b.To)
}
