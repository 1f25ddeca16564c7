// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package census

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/asking"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/explain"
	"github.com/quorate/quorate/sharding/internal/leases"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/runtime"
	"github.com/quorate/quorate/sharding/internal/survey"
)

// What this node knows of a kind, and telling its entities: answer picks what a question asks for.

// Kind looks at the shards and the entities of a kind on this node. No field is nil.
type Kind struct {
	Name   string
	Region *runtime.Region
	Proxy  bool // This node never hosts the kind.
	Leases *leases.Leases
	Decode func(id string, payload []byte) (any, error) // Decodes a message of the kind.
	Wall   func(machine.Instant) time.Time              // The wall-clock time of an instant of the past.
}

// answer answers a question from what this node knows.
func (k *Kind) answer(ctx context.Context, q survey.Question) survey.Answer {
	a := survey.Answer{Proxy: k.Proxy}
	switch q.Type {
	case survey.TypeShards:
		a.Shards = k.hosted()
	case survey.TypeEntities:
		a.Entities, a.More = k.page(q)
	case survey.TypeEntity:
		if protocol.EntityFault(q.After.ID) == "" {
			a.Lines, _ = k.Describe(k.Region.SlotOf(q.After.ID), q.After.ID)
		}
	case survey.TypeTell:
		a.Told = k.tellLiving(ctx, q)
	default:
		a.Fault, a.Detail = survey.FaultOther, fmt.Sprintf("does not know questions of sort %d", q.Type)
	}
	return a
}

// HomeOf returns where a shard lives, as this node knows; nobody for a shard of a layout that is gone.
func (k *Kind) HomeOf(shard protocol.ShardID) (gossip.NodeID, protocol.Epoch) {
	sl := k.Region.Slot(shard)
	if sl == nil {
		return gossip.NodeID{}, protocol.Epoch{}
	}
	i := sl.Info()
	return i.Home, i.Epoch
}

// hosted returns the shards that this node hosts.
func (k *Kind) hosted() (all []survey.Shard) {
	k.Region.EachSlot(func(sl *runtime.Slot) {
		i := sl.Info()
		waits, epoch := k.Leases.Waits(k.Name, sl.Shard())
		switch {
		case k.Proxy || !i.Hosting && waits == "":
			return
		case !i.Hosting:
			i.Epoch = epoch
		}
		all = append(all, survey.Shard{
			Shard: sl.Shard(), Epoch: i.Epoch, Stopping: i.Stopping, Entities: uint32(i.Entities), Stuck: uint32(i.StuckCount), Waits: waits,
		})
	})
	return all
}

// Slots returns the slots of the layouts in force that are not retired, by layout and number.
func (k *Kind) Slots() (all []*runtime.Slot) {
	in := k.Region.Layouts()
	k.Region.EachSlot(func(sl *runtime.Slot) {
		if !k.Region.Retired(sl) && slices.ContainsFunc(in, func(l protocol.Layout) bool { return l.Has(sl.Shard()) }) {
			all = append(all, sl)
		}
	})
	return all
}

// page returns the entities of this node behind a place.
func (k *Kind) page(q survey.Question) ([]survey.Entity, bool) {
	p := survey.NewPage(q.After, int(q.Most))
	for _, sl := range k.Slots() {
		shard := sl.Shard()
		if shard < q.After.Shard {
			continue
		}
		if p.Done(uint32(shard)) {
			break
		}
		sl.Do(func(c *cell.Cell) {
			if !c.Serves() && !c.Info().Hosting {
				return
			}
			for e := range c.Entities() {
				at := survey.Cursor{Shard: shard, ID: e.ID()}
				if !p.Wants(at) {
					continue
				}
				i := e.Info()
				p.Offer(survey.Entity{At: at, State: i.State, Since: k.Wall(i.Since), Waiting: uint32(i.Waiting), Stuck: i.Stuck})
			}
		})
	}
	return p.Entities()
}

// Bounds of telling.
const (
	// tellChunk is how many entities are told before the rate is looked at.
	tellChunk = 64
	// tellRate is how many entities a node tells in a second, if nothing else is said.
	tellRate = 20_000
)

// tellLiving tells the entities of some shards that live a message, each its own copy, at a bounded rate and
// until ctx ends.
func (k *Kind) tellLiving(ctx context.Context, q survey.Question) (all []survey.Told) {
	t := telling{kind: k, payload: q.Payload, pause: time.Duration(float64(tellChunk) / float64(cmp.Or(q.Rate, tellRate)) * float64(time.Second))}
	for _, p := range q.Shards {
		all = append(all, t.shard(ctx, p))
	}
	return all
}

// telling tells the entities of one shard after the other.
type telling struct {
	kind    *Kind
	payload []byte
	pause   time.Duration // After each chunk.
	told    int
}

func (t *telling) shard(ctx context.Context, p survey.Place) survey.Told {
	told := survey.Told{Shard: p.Shard}
	sl := t.kind.Region.Slot(p.Shard)
	if sl == nil { // Its layout has gone meanwhile.
		told.Away = true
		return told
	}
	var ids []string
	hosted := false
	sl.Do(func(c *cell.Cell) {
		if _, reach := c.Reachable("", p.Epoch); reach != cell.ReachAway {
			ids, hosted = c.Living(ids), true
		}
	})
	if told.Away = !hosted || ctx.Err() != nil; told.Away {
		return told
	}
	for _, id := range ids {
		if ctx.Err() != nil {
			told.Cut = true
			break
		}
		value, err := t.kind.Decode(id, t.payload)
		if err != nil {
			told.Full++
			continue
		}
		switch sl.TellLiving(id, p.Epoch, value) {
		case cell.Reached:
			told.Reached++
		case cell.ReachFull:
			told.Full++
		case cell.ReachAway:
			told.Away = told.Reached == 0
			told.Cut = !told.Away
			return told
		default: // It has become passive.
		}
		if t.told++; t.told%tellChunk == 0 {
			_ = asking.Pause(ctx, t.pause)
		}
	}
	return told
}

// Describe says what this node knows of an entity, a sentence each, and how it is named among others.
func (k *Kind) Describe(sl *runtime.Slot, entity string) (lines []string, named string) {
	if waits, _ := k.Leases.Waits(k.Name, sl.Shard()); waits != "" {
		lines = append(lines, "its shard "+waits)
	}
	record, ok := sl.Entity(entity)
	if ok {
		named = explain.Entity(entity, record, k.Wall)
		lines = append(lines, explain.TheEntity(record, k.Wall))
	}
	sl.Do(func(c *cell.Cell) {
		if lost, ok := c.Handoff().Lost(entity); ok {
			lines = append(lines, fmt.Sprintf("the memory that the entity had before its shard moved was lost at %s: %s",
				k.Wall(lost.At).UTC().Format(time.RFC3339), explain.Loss(lost.Loss)))
		}
	})
	if e, evicted := k.Region.Evicted(entity); evicted {
		l := k.Region.Limits()
		lines = append(lines, fmt.Sprintf("the entity was stopped at %s to make room, by %s: the limit of its kind on this node is %d, see sharding.passivation",
			k.Wall(e.At).UTC().Format(time.RFC3339), l.Policy, l.Limit))
	}
	return lines, named
}
