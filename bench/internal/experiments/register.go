// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"fmt"
	"sync"
	"time"

	"github.com/quorate/quorate/bench/internal/harness"
	"github.com/quorate/quorate/sharding"
)

// entitySpan is the span of time in which an entity lived on a node, by the clock of the machine, which all
// processes share.
type entitySpan struct {
	Entity string `json:"entity"`
	From   int64  `json:"from"` // Nanoseconds since 1970.
	To     int64  `json:"to"`   // Zero: the entity lives there still.
}

// register keeps which entities live and lived on a node. It is safe for concurrent use.
type register struct {
	mu      sync.Mutex
	ended   []entitySpan
	present map[string]int64 // For each present entity, since when.
	found   harness.Tally    // Of messages that came twice or out of order.
}

// newRegister returns an empty register.
func newRegister() *register { return &register{present: make(map[string]int64)} }

// report returns all spans, past and present, and what was found wrong.
func (g *register) report() entityReport {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := append([]entitySpan(nil), g.ended...)
	for id, from := range g.present {
		all = append(all, entitySpan{id, from, 0})
	}
	return entityReport{all, g.found.Totals()}
}

// kind describes reporting entities, in so many shards.
func (g *register) kind(shards int) sharding.Kind[*harness.Message] {
	return sharding.Kind[*harness.Message]{
		Name: kindName, Codec: harness.Codec{}, Shards: shards,
		New: func(*sharding.Context) sharding.Entity[*harness.Message] { return &reportingEntity{register: g} },
	}
}

// reportingEntity is an entity that reports to the register of its node when it starts and stops. Its state is lost
// when it moves, so it takes the first number that it sees for the start of the sequence.
type reportingEntity struct {
	register *register
	last     uint64
}

var (
	_ sharding.Entity[*harness.Message] = (*reportingEntity)(nil)
	_ sharding.Starter                  = (*reportingEntity)(nil)
	_ sharding.Stopper                  = (*reportingEntity)(nil)
)

// Start registers the entity.
func (e *reportingEntity) Start(c *sharding.Context) error {
	e.register.mu.Lock()
	defer e.register.mu.Unlock()
	e.register.present[c.ID()] = time.Now().UnixNano()
	return nil
}

// Stop ends its span.
func (e *reportingEntity) Stop(c *sharding.Context) {
	e.register.mu.Lock()
	defer e.register.mu.Unlock()
	from, id := e.register.present[c.ID()], c.ID()
	delete(e.register.present, id)
	e.register.ended = append(e.register.ended, entitySpan{id, from, time.Now().UnixNano()})
}

// Receive checks that the numbers of its one asker rise, and answers with the node that
// it runs on.
func (e *reportingEntity) Receive(c *sharding.Context, m *harness.Message) error {
	switch {
	case m.Seq == e.last:
		e.register.found.Duplicated.Add(1)
	case m.Seq < e.last:
		e.register.found.OutOfOrder.Add(1)
	}
	e.last = m.Seq
	return c.Reply(&harness.Message{Sender: m.Sender, Seq: m.Seq, Payload: []byte(c.Node().Address.String())})
}

// doubles counts the entities whose spans on two nodes overlap: those that live on two
// nodes now, and those that ever did, with an example. Each element of nodes is the register of one
// node.
func doubles(nodes [][]entitySpan) (now, ever int, example string) {
	type lived struct {
		node int
		stay entitySpan
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

// overlaps reports whether two spans have a moment in common.
func overlaps(a, b entitySpan) bool {
	return (a.To == 0 || b.From < a.To) && (b.To == 0 || a.From < b.To)
}
