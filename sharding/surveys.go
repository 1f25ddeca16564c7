// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding/internal/asking"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/runtime"
	"github.com/quorate/quorate/sharding/internal/survey"
)

// Questions to all nodes at once: run puts one to the survey machine of this node, and waits; gather looks for
// what a node was asked, on a goroutine of its own for each question, of which the machine permits a few at a time.
// everywhere.go has what programs call.

// surveys are the questions of a system, its own and those of others.
type surveys struct {
	system *System
	handle *machine.Handle
	open   asking.Questions[survey.Finished]
}

// attach puts the survey machine on the node.
func (v *surveys) attach(s *System) (err error) {
	v.system = s
	v.handle, err = s.node.Attach(membership.Attachment{
		Component: machine.Component{
			Name: survey.ComponentName, Service: survey.Service, Codec: survey.Codec{}, Machine: survey.New(s.self),
		},
		Other: func(e machine.Effect) {
			if g, ok := e.(survey.Gather); ok {
				// The goroutine is owned by the system, and ends with the limit of the question.
				s.workers.Go(func() { v.gather(g) })
			}
		},
		Published: func(event any) {
			if f, ok := event.(survey.Finished); ok {
				v.open.Answer(f.ID, f)
			}
		},
	})
	return err
}

// Limits of questions.
const (
	// surveyLimit is how long a question waits when its context has no deadline.
	surveyLimit = 3 * time.Second
	// surveyMargin is how much of a deadline is left to put the answers together.
	surveyMargin = 50 * time.Millisecond
)

// limitOf returns how long nodes may take to answer. The deadline of ctx is kept, so that what did come is told.
func limitOf(ctx context.Context, usual time.Duration) time.Duration {
	at, limited := ctx.Deadline()
	if !limited {
		return usual
	}
	left := time.Until(at)
	return min(max(left-surveyMargin, left/2), survey.LimitMax)
}

// run asks, and waits for the result. The error is that of ctx, or [ErrClosed].
func (v *surveys) run(ctx context.Context, a survey.Ask) (survey.Finished, error) {
	f, ok := v.open.Ask(ctx, v.system.ended, func(id uint64) error {
		a.ID = id
		return v.handle.PostWait(ctx, a)
	})
	if !ok {
		return f, v.system.unanswered(ctx)
	}
	return f, nil
}

// gather looks for what a question asks for, and hands the answer back.
func (v *surveys) gather(g survey.Gather) {
	ctx, cancel := context.WithTimeout(v.system.ctx, g.Question.Limit)
	defer cancel()
	answer := v.answer(ctx, g.Question)
	answer.ID = g.Question.ID
	// Without the answer, since the node ends, whoever asks hears nothing.
	_ = v.handle.PostWait(v.system.ctx, survey.Gathered{To: g.From, Answer: answer})
}

// answer answers a question from what this node knows.
func (v *surveys) answer(ctx context.Context, q survey.Question) survey.Answer {
	s := v.system
	r := s.router(q.Kind)
	if r == nil {
		return survey.Answer{Fault: survey.FaultNoKind}
	}
	a := survey.Answer{Standing: s.standing.Held(), Drained: s.Drained(), Proxy: r.proxy}
	switch q.Sort {
	case survey.SortShards:
		a.Shards = hostedShards(r)
	case survey.SortEntities:
		a.Entities, a.More = pageOf(r, q)
	case survey.SortEntity:
		a.Lines = linesOf(r, q.After.ID)
	case survey.SortTell:
		a.Told = tellLiving(ctx, r, q)
	default:
		a.Fault, a.Detail = survey.FaultOther, fmt.Sprintf("does not know questions of sort %d", q.Sort)
	}
	return a
}

// hostedShards returns the shards that this node hosts.
func hostedShards(r *router) (all []survey.Shard) {
	r.region.EachSlot(func(sl *runtime.Slot) {
		i := sl.Info()
		waits, epoch := r.system.leases.Waits(r.name, sl.Shard())
		switch {
		case r.proxy || !i.Hosting && waits == "":
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

// slotsOf returns the slots of the layouts in force that are not retired, by layout and number.
func slotsOf(r *router) (all []*runtime.Slot) {
	in := r.region.Layouts()
	r.region.EachSlot(func(sl *runtime.Slot) {
		if !r.region.Retired(sl) && slices.ContainsFunc(in, func(l protocol.Layout) bool { return l.Has(sl.Shard()) }) {
			all = append(all, sl)
		}
	})
	return all
}

// pageOf returns the entities of this node behind a place.
func pageOf(r *router, q survey.Question) ([]survey.Entity, bool) {
	p := survey.NewPage(q.After, int(q.Most))
	for _, sl := range slotsOf(r) {
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
				p.Offer(survey.Entity{At: at, State: i.State, Since: r.system.wall(i.Since), Waiting: uint32(i.Waiting), Stuck: i.Stuck})
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
func tellLiving(ctx context.Context, r *router, q survey.Question) (all []survey.Told) {
	t := telling{router: r, payload: q.Payload, pause: time.Duration(float64(tellChunk) / float64(cmp.Or(q.Rate, tellRate)) * float64(time.Second))}
	for _, p := range q.Shards {
		all = append(all, t.shard(ctx, p))
	}
	return all
}

// telling tells the entities of one shard after the other.
type telling struct {
	router  *router
	payload []byte
	pause   time.Duration // After each chunk.
	told    int
}

func (t *telling) shard(ctx context.Context, p survey.Place) survey.Told {
	told := survey.Told{Shard: p.Shard}
	sl := t.router.region.Slot(p.Shard)
	if sl == nil { // Its layout has gone meanwhile.
		told.Away = true
		return told
	}
	var ids []string
	hosted := false
	sl.Do(func(c *cell.Cell) {
		if _, reach := cell.Reachable(c, "", p.Epoch); reach != cell.ReachAway {
			ids, hosted = cell.Living(c, ids), true
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
		value, err := t.router.program.decode(id, t.payload)
		if err != nil {
			told.Full++
			continue
		}
		switch runtime.TellLiving(sl, id, p.Epoch, value) {
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

// linesOf says what this node knows of an entity that lives here.
func linesOf(r *router, entity string) []string {
	if protocol.EntityFault(entity) != "" {
		return nil
	}
	lines, _ := r.describeEntity(r.region.SlotOf(entity), entity)
	return lines
}

// atHome asks the home of an entity what it is at, within the limit of an explanation.
func (v *surveys) atHome(ctx context.Context, r *router, sl *runtime.Slot, home, entity string) []string {
	node, _ := r.homeOf(sl.Shard())
	unknown := "what the entity is at, only its home tells: ask " + home
	if node.String() != home {
		return []string{unknown}
	}
	q := survey.Question{Sort: survey.SortEntity, Kind: r.name, After: survey.Cursor{ID: entity}}
	f, err := v.run(ctx, survey.Ask{Limit: min(limitOf(ctx, explainAtHome), explainAtHome), To: []survey.Part{{Node: node, Question: q}}})
	switch {
	case err != nil:
		return []string{unknown}
	case len(f.Missing) > 0:
		return []string{unknown + ", which " + f.Missing[0].Why}
	case len(f.Said) == 1 && len(f.Said[0].Answer.Lines) > 0:
		return f.Said[0].Answer.Lines
	default:
		return []string{"the entity is not in memory at its home"}
	}
}

// explainAtHome is how long an explanation waits for the home of an entity.
const explainAtHome = time.Second
