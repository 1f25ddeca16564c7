// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/binary"
	"time"

	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/runtime"
)

// The workers of a simulated node. The queue of the runtime gives them jobs, which begin starts at the end of the step;
// run makes the calls of a job, as the goroutine of a worker does, and stops where the entity takes time; returned goes
// on from there.

// processors is how many processors a simulated node has.
const processors = 2

// workers are the workers of a node.
type workers struct {
	queue   runtime.Queue[*runtime.Job, struct{}]
	starts  []start               // Jobs that workers begin at the end of the step.
	looking bool                  // The next look is due.
	looks   int                   // How many looks there were.
	calls   map[*worker]int       // The workers that are in a call of an entity, and how many looks there were when it began.
	long    map[*cell.Entity]bool // The entities whose last message took long.
}

type (
	worker = runtime.Worker[struct{}]
	start  = runtime.Assignment[*runtime.Job, struct{}]
)

// put gives a task to a worker.
func (c *Cells) put(t runtime.Task) {
	j := runtime.NewJob(t)
	j.Clocked(&c.watch.reader)
	c.assign(&j)
}

// assign gives a job to a worker.
func (c *Cells) assign(j *runtime.Job) {
	if s, starts := c.workers.queue.Put(j, j.Class()); starts {
		c.workers.starts = append(c.workers.starts, s)
		return
	}
	c.lookLater()
}

// lookLater has the queue look at its workers.
func (c *Cells) lookLater() {
	if c.workers.looking || c.workers.queue.Idle() {
		return
	}
	c.workers.looking = true
	c.after(runtime.QueueLook, func() {
		c.workers.looking = false
		c.lookAtWorkers()
		c.lookLater()
	})
}

// lookAtWorkers has the queue look at its workers, and checks that it adds places only beside calls that
// had begun before the last look: workers that wait for a processor need no others beside them.
func (c *Cells) lookAtWorkers() {
	workers := &c.workers
	workers.looks++
	before := [...]int{workers.queue.Limit(runtime.ClassQuick), workers.queue.Limit(runtime.ClassSlow)}
	starts := workers.queue.Look()
	for class, limit := range before {
		of := runtime.Class(class)
		if workers.queue.Limit(of) > limit && !workers.kept(of) {
			c.ledger.violate("%v adds workers, although no entity keeps one", c.self)
		}
	}
	c.ledger.counts.Replaced += len(starts)
	workers.starts = append(workers.starts, starts...)
}

// kept reports whether an entity keeps a worker of a class: a call of it has lasted for two
// looks, the present one included.
func (c *workers) kept(of runtime.Class) bool {
	for w, looks := range c.calls {
		if w.Class() == of && looks+2 <= c.looks {
			return true
		}
	}
	return false
}

// trim has the queue let workers go.
func (c *Cells) trim() {
	c.after(runtime.QueueTrim, func() {
		c.workers.queue.Trim(processors)
		c.trim()
	})
}

// begin lets workers begin the jobs that they were given in this step.
func (c *Cells) begin() {
	for len(c.workers.starts) > 0 {
		s := c.workers.starts[0]
		c.workers.starts = c.workers.starts[1:]
		if wait := c.drawStarvation(); wait > 0 {
			c.after(wait, func() { c.run(s.Worker, s.Job) })
			continue
		}
		c.run(s.Worker, s.Job)
	}
}

// drawStarvation draws for how long a worker that could go on waits for a processor.
func (c *Cells) drawStarvation() time.Duration {
	if c.behaviour.Starved == 0 {
		return 0
	}
	return c.drawn(c.behaviour.Starved)
}

// run has a worker do one job after the other, until an entity takes time.
func (c *Cells) run(w *worker, j *runtime.Job) {
	for {
		switch call := j.Begin(); call {
		case runtime.CallNone:
			next, turn := c.workers.queue.Next(w)
			if turn != runtime.TurnWork {
				return
			}
			j = next
		case runtime.CallYield:
			if j.Class() == w.Class() {
				j = c.workers.queue.Exchange(w, j)
				continue
			}
			c.assign(j)
			next, turn := c.workers.queue.Next(w)
			if turn != runtime.TurnWork {
				return
			}
			j = next
		default:
			took := c.call(w, j, call)
			if took > 0 {
				c.after(took, func() {
					c.returned(w, j, call)
					if wait := c.drawStarvation(); wait > 0 {
						c.after(wait, func() { c.run(w, j) })
						return
					}
					c.run(w, j)
				})
				return
			}
			c.returned(w, j, call)
		}
	}
}

// call begins a call of an entity, and draws how long it takes.
func (c *Cells) call(w *worker, j *runtime.Job, call runtime.Call) time.Duration {
	e := j.Entity()
	w.Enter()
	c.workers.calls[w] = c.workers.looks
	switch call {
	case runtime.CallStart:
		c.ledger.revised(c.self, e, uint32(c.region.Shards()))
		c.ledger.started(c.self, e)
		c.memory.start(e)
		return c.drawn(c.behaviour.Start)
	case runtime.CallStop:
		c.ledger.stopping(c.self, e, j.Why())
		if c.rand.Float64() < c.behaviour.SlowStop {
			return c.drawn(c.behaviour.SlowStopFor)
		}
		return c.drawn(c.behaviour.Stop)
	case runtime.CallSnapshot:
		return c.memory.takes()
	default:
		c.places(w, j)
		took := c.handle(j)
		c.workers.long[e] = took >= 2*runtime.SlowAfter
		return took
	}
}

// places checks that an entity whose last message took long has no place of the quick class,
// unless its run goes on. Counters that go wrong may have said that the message was short.
func (c *Cells) places(w *worker, j *runtime.Job) {
	if !c.workers.long[j.Entity()] || j.Before() > 0 || c.behaviour.CounterFaults {
		return
	}
	c.ledger.counts.Slow++
	if w.Class() != runtime.ClassSlow {
		c.ledger.violate("%q of %v, which is slow, begins a message at a place of the quick class", j.Entity().ID(), c.self)
	}
}

// drawn draws a time from a tenth of a bound up to the bound.
func (c *Cells) drawn(most time.Duration) time.Duration {
	return most/10 + time.Duration(c.rand.Int64N(int64(most-most/10)+1))
}

// handle begins a message of an entity. Now and then it takes next to no time, so that
// several are begun in one run.
func (c *Cells) handle(j *runtime.Job) time.Duration {
	e, m := j.Entity(), j.Mail()
	id, _ := idOfMail(m)
	if j.Before() > 0 {
		c.ledger.counts.Followed++
	}
	c.ledger.leased(c.self, e, uint32(c.region.Shards()))
	c.ledger.begin(c.self, j.Slot().Shard(), e, id, m.Origin(c.self))
	c.memory.begin(e)
	c.ledger.archive.begins(c.self, e)
	switch {
	case c.ledger.hot[e.ID()]:
		return c.drawn(c.behaviour.HotRun)
	case c.rand.IntN(4) == 0:
		return time.Duration(c.rand.Int64N(int64(200 * time.Microsecond)))
	default:
		return c.drawn(c.behaviour.Run)
	}
}

// returned ends a call of an entity.
func (c *Cells) returned(w *worker, j *runtime.Job, call runtime.Call) {
	e := j.Entity()
	w.Return()
	delete(c.workers.calls, w)
	switch call {
	case runtime.CallStart:
		c.memory.restore(j)
		ok := c.rand.Float64() >= c.behaviour.FailStart
		if !ok {
			c.gone(e)
		}
		j.Started(ok, "")
	case runtime.CallStop:
		c.gone(e)
		j.Stopped(c.behaviour.Snapshots.gives(c.self))
	case runtime.CallSnapshot:
		c.memory.give(j)
	default:
		r := cell.Result{Failed: c.rand.Float64() < c.behaviour.FailRun}
		if m := j.Mail(); m.Correlation() != 0 {
			id, _ := idOfMail(m)
			r.Reply = &protocol.Reply{Payload: binary.BigEndian.AppendUint64(nil, id)}
		}
		if c.rand.Float64() < c.behaviour.Passivate {
			c.ledger.archive.asks(e.ID())
			j.Slot().Step(func(in *cell.Cell, out *cell.Actions) { in.Instances().Passivate(c.now, e, out) })
		}
		j.Handled(r)
	}
}

// gone notes that an instance has ended.
func (c *Cells) gone(e *cell.Entity) {
	delete(c.workers.long, e)
	if !c.behind[e] {
		c.ledger.stopped(c.self, e.ID())
	}
	delete(c.behind, e)
}

// leave notes that an entity is left behind: it must begin no message, and none of its answers must have an effect
// (docs/sharding.md, "With `on-stuck: abandon` such an entity may still run beside its successor.").
func (c *Cells) leave(e *cell.Entity) {
	if e.Ended() && !c.behind[e] {
		c.behind[e] = true
		c.ledger.stopped(c.self, e.ID())
		c.ledger.counts.LeftBehind++
		c.ledger.behind[e.ID()] = c.ledger.world.Now()
	}
}
