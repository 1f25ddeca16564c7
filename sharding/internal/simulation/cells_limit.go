// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"time"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/passivation"
	"github.com/quorate/quorate/sharding/internal/runtime"
)

// The laws of the limit of entities, checked against what the cells hold, not against what the
// limiter believes:
//
//   - nobody who has something to do is stopped to make room, and nobody who is permanent;
//   - while a node has more than the limit, it has nobody who could go: it has them for the time that
//     busy ones are looked at again, and of a pass, and no longer;
//   - what counts for the limit is what is there.

// weight is what is known of the limit of a node.
type weight struct {
	limit     int             // 0: there is none.
	permanent int             // How many of the first entities do not count.
	overSince machine.Instant // Since when each look has found an excess with somebody who could go; 0: the last one has not.
	looked    machine.Instant // The last look.
	stood     machine.Instant // When a look found last that the node had stood still.
	// evicting has the entities that were told to stop to make room: a stop that waits for standing is told again, and what
	// comes meanwhile waits for the next instance.
	evicting map[*cell.Entity]bool
}

const (
	weighEvery = 20 * time.Millisecond
	overMost   = 100 * time.Millisecond
	// backlogMost is how long a node is busy with what came while it stood still: stops wait for their turns among that.
	backlogMost = time.Second
)

// limit bounds the instances of the node.
func (c *Cells) limit(cfg passivation.Config, permanent int) {
	c.weight = weight{limit: cfg.Limit, permanent: permanent, evicting: map[*cell.Entity]bool{}}
	c.region.Limit(cfg)
}

// spares checks the first law.
func (c *Cells) spares(e *cell.Entity) {
	if e.Cause() != cell.CauseLimit || c.weight.evicting[e] {
		return
	}
	c.weight.evicting[e] = true
	c.ledger.counts.Evicted++
	if e.Waiting() > 0 || e.Mail() != (cell.Mail{}) {
		c.ledger.violate("%s stops %s to make room, which has something to do", c.self, e.ID())
	}
	for i := range c.weight.permanent {
		if e.ID() == entity(i) {
			c.ledger.violate("%s stops %s to make room, which is permanent", c.self, e.ID())
		}
	}
}

// weigh checks the second law, again and again. A node that stood still has not had the time.
func (c *Cells) weigh() {
	if c.weight.limit == 0 {
		return
	}
	w := &c.weight
	live, free := c.living()
	if counted := c.region.Limits().Live; counted != live {
		c.ledger.violate("%s has %d entities, and counts %d for the limit", c.self, live, counted)
	}
	if live > w.limit {
		c.ledger.counts.Over++
	}
	if c.now.Sub(w.looked) > 2*weighEvery {
		w.stood = c.now
	}
	switch {
	case live <= w.limit || free == 0 || c.now.Sub(w.stood) < backlogMost:
		w.overSince = 0
	case w.overSince == 0:
		w.overSince = c.now
	case c.now.Sub(w.overSince) > overMost:
		c.ledger.violate("%s has %d entities since %v, of which %d have nothing to do; the limit is %d", c.self, live, w.overSince, free, w.limit)
	}
	w.looked = c.now
	c.after(weighEvery, c.weigh)
}

// living counts the instances that were not told to stop, and those of them that could be.
func (c *Cells) living() (live, free int) {
	permanent := map[string]bool{}
	for i := range c.weight.permanent {
		permanent[entity(i)] = true
	}
	c.region.EachSlot(func(sl *runtime.Slot) {
		suspended := sl.Info().Suspended
		sl.Do(func(in *cell.Cell) {
			for e := range in.Entities() {
				if !e.Live() || permanent[e.ID()] {
					continue
				}
				live++
				if _, idle := e.Idle(); idle && !suspended && !e.Withholds() {
					free++
				}
			}
		})
	})
	return live, free
}
