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

// The rules of the limit of entities, checked against the entities that cells have, and not by what the limiter knows:
//
//   - no entity that has something to do is stopped to make room, and no permanent one;
//   - a node has more entities than the limit, while some could be stopped, at most for the interval at which busy
//     ones are looked at again, and the time of a pass;
//   - the number that is compared with the limit is the number of entities.

// limitState is what the checks of the limit of a node remember.
type limitState struct {
	limit     int             // 0: there is none.
	permanent int             // How many of the first entities do not count.
	overSince machine.Instant // Since when each look has found an excess, and the node has not stood still; 0: the last one has not.
	looked    machine.Instant // The last look.
	// evicting has the entities that were told to stop to make room: a stop that waits for standing is told again, and
	// what comes meanwhile waits for the next instance.
	evicting map[*cell.Entity]bool
}

const (
	weighEvery = 20 * time.Millisecond
	// maxSpare is the time between two looks at those who were busy (docs/sharding.md, "the node exceeds it, and
	// checks again every 10 ms"), and a moment for the look.
	maxSpare = 15 * time.Millisecond
)

// limit bounds the instances of the node.
func (c *Cells) limit(cfg passivation.Config, permanent int) {
	c.weight = limitState{limit: cfg.Limit, permanent: permanent, evicting: map[*cell.Entity]bool{}}
	c.region.Limit(cfg)
}

// checkEviction checks the first rule, for an entity that is told to stop.
func (c *Cells) checkEviction(e *cell.Entity) {
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

// checkLimit checks the second and third rule at an interval. A node that stood still had no time to comply.
func (c *Cells) checkLimit() {
	if c.weight.limit == 0 {
		return
	}
	w := &c.weight
	live, free, idle := c.living()
	if counted := c.region.Limits().Live; counted != live {
		c.ledger.violate("%s has %d entities, and counts %d for the limit", c.self, live, counted)
	}
	if live > w.limit {
		c.ledger.counts.Over++
	}
	switch {
	case live <= w.limit:
		w.overSince = 0
	case w.overSince == 0 || c.now.Sub(w.looked) > 2*weighEvery:
		w.overSince = c.now
	}
	if over := c.now.Sub(max(w.overSince, idle)); w.overSince > 0 && free > 0 && over > maxSpare {
		c.ledger.violate("%s has %d entities, of which %d have nothing to do, one for %v; the limit is %d", c.self, live, free, over, w.limit)
	}
	w.looked = c.now
	c.after(weighEvery, c.checkLimit)
}

// living counts the instances that were not told to stop, and those of them that could be; idle is since when one of
// these could.
func (c *Cells) living() (live, free int, idle machine.Instant) {
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
				since, rests := e.Idle()
				if !rests || suspended || e.Withholds() {
					continue
				}
				if free++; free == 1 || since < idle {
					idle = since
				}
			}
		})
	})
	return live, free, idle
}
