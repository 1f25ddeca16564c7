// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"time"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// An entity with something to do is a job of one worker at a time. Begin says which code of
// the program comes next; the worker calls it, however long that takes, and says by Started,
// Handled or Stopped how that went; and so on until Begin says that the job is over. So the
// standing and the deadline are looked at here, right before each message, whoever the worker
// is: a goroutine, or a simulated one.
//
//	Begin ──> CallStart  ──> Started ──┐
//	  ^  ───> CallHandle ──> Handled ──┤
//	  │  ───> CallStop   ──> Stopped ──┤
//	  │  ───> CallSnapshot ──> Gave  ──┤
//	  │  ───> CallYield: later         │
//	  └────────────────────────────────┘

// Task is an entity with something to do, which Op says: [cell.OpStart], [cell.OpRun],
// [cell.OpStop] or [cell.OpSnapshot].
type Task struct {
	Slot   *Slot
	Entity *cell.Entity
	Op     cell.Op

	mail  cell.Mail // The message to begin with, of OpRun: others may change the mailbox meanwhile.
	class Class     // That of the entity at the time.
}

// Class returns the class of the task in the queue.
func (t Task) Class() Class { return t.class }

// Call says which code of the program comes next.
type Call uint8

// The calls.
const (
	CallNone     Call = iota // The job is over.
	CallStart                // Create the entity, restore it from [Job.Snapshot] and start it, then call [Job.Started].
	CallHandle               // Let the entity handle [Job.Mail], then call [Job.Handled].
	CallStop                 // Stop the entity for the reason of [Job.Why], then call [Job.Stopped].
	CallSnapshot             // Let the entity, which has stopped, give its snapshot, then call [Job.Gave].
	CallYield                // Let other jobs go first, then call [Job.Begin] again.
)

// Job does a task, step by step.
type Job struct {
	slot    *Slot
	entity  *cell.Entity
	clock   *machine.Reader
	now     machine.Reading // When the last message ended, if the next message begins at once; else zero.
	began   machine.Instant // When the present run began.
	mail    cell.Mail       // The message that is handled, or that begins next.
	ahead   cell.AheadQueue // The messages that may be handled at once after the present one.
	ends    uint32          // How often the cell's hosting had ended when the messages of ahead were handed out.
	memory  *memory         // What the entity is restored from, of OpStart; nil mostly.
	ran     uint16          // How many messages of ahead were handed to the entity.
	again   bool            // The job has had a run of messages since it last yielded.
	op      cell.Op         // The next step; 0 when the job is over.
	why     cell.StopReason
	class   Class // That of the entity, as its last run has shown.
	follows bool  // The message was found fit to begin already: it follows in a run.
	yields  bool  // Other entities go first before the next message.
}

// memory is a snapshot from which an entity is restored, and whether that has succeeded.
type memory struct {
	data     []byte
	restored bool
}

// maxRun bounds the messages of one run, and runTimeout the time after which a run
// begins no further message: the messages that were handed out have to be taken back
// before anything else can happen to the entity.
const (
	maxRun     = 64
	runTimeout = time.Millisecond
)

// SlowAfter is the length from which on a run makes its entity slow. A run is timed by the
// readings of the clock that are looked at for the standing, so that this costs none.
const SlowAfter = QueueLook

// NewJob returns the job that does a task.
func NewJob(t Task) Job {
	return Job{slot: t.Slot, entity: t.Entity, op: t.Op, mail: t.mail, class: t.class}
}

// Clocked has the job read the clock by a reader, which is that of the worker.
func (j *Job) Clocked(clock *machine.Reader) { j.clock = clock }

// Slot returns the slot of the entity.
func (j *Job) Slot() *Slot { return j.slot }

// Entity returns the record of the entity.
func (j *Job) Entity() *cell.Entity { return j.entity }

// Class returns the class of the job in the queue, after [CallYield].
func (j *Job) Class() Class { return j.class }

// Mail returns the message to handle, after [CallHandle].
func (j *Job) Mail() cell.Mail { return j.mail }

// Snapshot returns what the entity is to be restored from, after [CallStart]; nil: nothing.
func (j *Job) Snapshot() []byte {
	if j.memory == nil {
		return nil
	}
	return j.memory.data
}

// Restored says that the entity was restored from [Job.Snapshot].
func (j *Job) Restored() { j.memory.restored = true }

// Before returns how many messages went before the present one in its run.
func (j *Job) Before() int { return int(j.ran) }

// Why returns the reason of the stop, after [CallStop].
func (j *Job) Why() cell.StopReason { return j.why }

// Begin takes the next step of the job.
func (j *Job) Begin() Call {
	for {
		switch {
		case j.follows:
			j.follows = false
			return CallHandle
		case j.yields:
			j.yields, j.now, j.again = false, machine.Reading{}, false
			return CallYield
		}
		switch j.op {
		case cell.OpStart:
			j.takeSnapshot()
			return CallStart
		case cell.OpSnapshot:
			return CallSnapshot
		case cell.OpRun:
			if j.beginRun() {
				return CallHandle
			}
		case cell.OpStop:
			if j.beginStop() {
				return CallStop
			}
			j.op = 0
		default:
			return CallNone
		}
	}
}

// takeSnapshot takes the snapshot out of the record of the entity, where the instance will be.
func (j *Job) takeSnapshot() {
	j.memory = nil
	if s, ok := j.entity.Value.(*protocol.Snapshot); ok {
		j.memory, j.entity.Value = &memory{data: s.Data}, nil
	}
}

// beginRun reports whether the message of the entity may begin. If not, the cell has been
// told so, and the job has another step.
func (j *Job) beginRun() bool {
	now, m := j.now, j.mail
	j.now = machine.Reading{}
	if now == (machine.Reading{}) {
		now, _ = j.look()
	}
	held, inTime := j.may(m, now)
	if (!held || !inTime) && !now.Full() { // Only a full reading is a reason not to begin.
		now = j.clock.ReadInFull()
		held, inTime = j.may(m, now)
	}
	e := j.entity
	switch {
	case !held:
		j.step(func(c *cell.Cell, out *cell.Actions) { c.Instances().Postpone(now.From, e, out) })
	case !inTime:
		j.step(func(c *cell.Cell, out *cell.Actions) { c.Instances().Lapse(now.From, e, out) })
	default:
		j.began = now.From
		return true
	}
	return false
}

// may reports whether message m may begin, by the standing and the lease, and by its deadline, at a
// moment of which now is a reading.
func (j *Job) may(m cell.Mail, now machine.Reading) (held, inTime bool) {
	return j.slot.region.node.Ports.Standing.HeldThrough(now) && j.slot.lease.holds(), !m.Expired(now.To)
}

func (j *Job) look() (now machine.Reading, held bool) {
	now, held = Look(j.clock, j.slot.region.node.Ports.Standing)
	return now, held && j.slot.lease.holds()
}

// Look reads the clock and tells whether the node has standing. That it has none is said by
// a full reading only.
func Look(clock *machine.Reader, standing Standing) (now machine.Reading, held bool) {
	now = clock.Read()
	if held = standing.HeldThrough(now); !held && !now.Full() {
		now = clock.ReadInFull()
		held = standing.HeldThrough(now)
	}
	return now, held
}

// Handled says how the entity has handled the message. The next message of the run follows,
// or the cell is told of the outcome.
func (j *Job) Handled(r cell.Result) {
	if !r.Failed {
		if j.ahead.Len() > 0 && j.mayFollow() {
			j.mail, _ = j.ahead.Next()
			j.follows = true
			j.ran++ // Counted before the call, from which the entity may not return.
			return
		}
	}
	j.done(r)
}

// mayFollow reports whether the run goes on with another message.
func (j *Job) mayFollow() bool {
	now, held := j.look()
	return held && now.To.Sub(j.began) <= runTimeout && j.slot.hostings.Load() == j.ends
}

// done tells the cell the outcome of a run. The reply is withheld when the clock
// shows no standing any more. One reading of the clock serves the end of this message and
// the beginning of the next, if that begins at once: not after a stop and a start, which may
// take long. While other entities wait for a worker, an entity that has had a run of messages
// lets them go first; one that has become slow, or quick, goes to its other class.
func (j *Job) done(r cell.Result) {
	now, held := j.look()
	r.Withhold = !held
	sl, e := j.slot, j.entity
	sl.mu.Lock()
	defer sl.mu.Unlock()
	took := now.From.Sub(j.began)
	sl.busy += max(took, 0)
	from := j.class
	j.class = classOf(e.Pace(took >= SlowAfter))
	sl.region.node.messages.freeAll(sl.cell.Instances().Ran(e, int(j.ran), &sl.out))
	sl.cell.Instances().Done(now.From, e, r, &sl.out)
	j.follow(sl.carry(e))
	j.ran = 0
	again := j.again
	j.again = true
	switch {
	case j.class != from:
		j.yields = j.op != 0
	case j.op != cell.OpRun:
	case again && sl.region.node.Ports.Crowded(j.class):
		j.yields = true
	default:
		j.now = now
		j.ahead, j.ends = sl.cell.Instances().Ahead(e, maxRun), sl.hostings.Load()
	}
}

// Started says that the entity was started, or why not.
func (j *Job) Started(ok bool, why string) {
	now, e := j.slot.now(), j.entity
	j.step(func(c *cell.Cell, out *cell.Actions) {
		if j.memory != nil {
			c.Handoff().Restored(now, e, j.memory.restored, out)
		}
		if ok {
			c.Instances().Started(now, e, true, out)
		} else {
			c.Instances().StartFailed(now, e, why, out)
		}
	})
}

// beginStop reports whether the entity may be stopped now, and notes the reason.
func (j *Job) beginStop() (begins bool) {
	now, e := j.slot.now(), j.entity
	held := j.slot.region.node.Ports.Standing.HeldAt(now) && j.slot.lease.holds()
	j.step(func(c *cell.Cell, out *cell.Actions) { j.why, begins = c.Instances().BeginStop(now, e, held, out) })
	return begins
}

// Stopped says that the entity has stopped, and whether it can give a snapshot.
func (j *Job) Stopped(snapshots bool) {
	now, e := j.slot.now(), j.entity
	j.step(func(c *cell.Cell, out *cell.Actions) {
		if snapshots {
			c.Handoff().Leaves(now, e, j.why, out)
		} else {
			c.Instances().Stopped(now, e, out)
		}
	})
}

// Gave says that the entity has given its snapshot, nil for none, or why it is lost.
func (j *Job) Gave(data []byte, lost protocol.Loss) {
	now, e := j.slot.now(), j.entity
	j.step(func(c *cell.Cell, out *cell.Actions) {
		c.Handoff().Gave(now, e, protocol.Snapshot{Data: data, Loss: lost}, out)
	})
}

// step tells the cell the outcome of a step by f, and notes the entity's next step.
func (j *Job) step(f func(c *cell.Cell, out *cell.Actions)) {
	sl := j.slot
	sl.mu.Lock()
	defer sl.mu.Unlock()
	f(sl.cell, &sl.out)
	j.follow(sl.carry(j.entity))
}

// follow notes the entity's next step, with mu of the slot held. What was ahead and did not begin
// is back in the mailbox, if it is not over.
func (j *Job) follow(op cell.Op) {
	j.op, j.mail, j.ahead = op, cell.Mail{}, cell.AheadQueue{}
	if op == cell.OpRun {
		j.mail = j.entity.Mail()
	}
}
