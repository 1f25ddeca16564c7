// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/window"
)

// A cell under every input in any order: first the model and its state, then how the model
// carries out and checks the actions of the cell, then what may happen to a cell, act by act,
// and last the end of a run, after which nothing may be left.

// cellModel drives a cell with inputs in any order, and checks that
//
//   - every message has one outcome, and begins at most once;
//   - the messages of a sender begin in their order;
//   - an instance has one call under way at a time, and an entity has one instance, apart
//     from instances that were left behind;
//   - no message begins without standing, nor at an instance whose hosting has ended;
//   - no answer of an entity that was left behind leaves;
//   - what was handed out to an entity is the same until the entity gives it back;
//   - a message that is taken back has not begun, and never begins;
//   - an entity that is stuck is counted until it returns;
//   - senders that wait for room are called in their order, all of them in the end, and
//     find the room that was kept for them;
//   - with a limiter each instance that lives has one handle, and nobody else has one, nor anybody who is
//     permanent; no handle is used that nobody has; and who is stopped to make room had nothing to do;
//   - while the shard is served an entity that is permanent has a record, and runs or is about
//     to: without an instance and a message it waits for standing, or the cell is to be called
//     when its rest ends.
type cellModel struct {
	t    *rapid.T
	cell *cell.Cell
	now  machine.Instant
	out  cell.Actions
	due  machine.Instant // When the cell is to be called; 0: it is not.

	permanent []string
	limiter   *handles // Nil: nothing bounds the instances.

	n         uint64 // The N of the last epoch that was given out.
	base      protocol.Epoch
	epoch     protocol.Epoch // The epoch of the hosting.
	hosting   bool
	suspended bool
	ended     bool
	positions []protocol.Position

	sent    uint64 // The number of the last message in the stream of nodeB.
	made    uint64 // The correlation of the last message.
	all     []*cell.Message
	packed  map[uint64]*cell.Message // The messages of which the cell has had the bytes, by correlation.
	settled map[*cell.Message]string
	begun   map[*cell.Message]bool
	heard   map[string]int // The number of the last message that began, by entity and sender.
	at      map[*cell.Entity]cell.Op
	runs    map[*cell.Entity]run
	alive   []*cell.Entity
	stuck   map[*cell.Entity]bool

	waiting []*waiter // The messages that wait for room, in the order in which they came.
	changes int       // Grows before and after each input of apply.
}

// run is what an entity has beside its present message.
type run struct {
	ahead     cell.AheadQueue
	processed []*cell.Message // Those of ahead that the entity processes before it returns.
	rest      []*cell.Message
}

// waiter is a message that waits for room.
type waiter struct {
	m       *cell.Message
	what    cell.Admission
	called  bool
	changes int // The field changes of the model when the message was called.
}

func newCellModel(t *rapid.T) *cellModel {
	permanent := rapid.SampledFrom([][]string{nil, {"x"}, {"y", "z"}}).Draw(t, "permanent")
	m := &cellModel{
		t: t, now: 1, permanent: permanent,
		cell: cell.New(cell.Config{
			Permanent: permanent,
			Kind:      "k", Self: nodeA, Mailbox: 4, WindowBytes: 1000, TransitBytes: 1000,
			BackoffMin: 10 * time.Millisecond, BackoffMax: 50 * time.Millisecond,
			PassivateAfter: 100 * time.Millisecond, StuckAfter: 200 * time.Millisecond,
			OnFailure: rapid.SampledFrom([]cell.OnFailure{cell.Restart, cell.StopOnFailure}).Draw(t, "on failure"),
		}),
		packed: map[uint64]*cell.Message{}, settled: map[*cell.Message]string{}, begun: map[*cell.Message]bool{}, heard: map[string]int{},
		at: map[*cell.Entity]cell.Op{}, runs: map[*cell.Entity]run{}, stuck: map[*cell.Entity]bool{},
	}
	if rapid.Bool().Draw(t, "limited") {
		m.bound(newHandles())
	}
	return m
}

// bound has a limiter bound the instances, nil for none.
func (m *cellModel) bound(by *handles) {
	if m.limiter = by; by == nil {
		m.cell.Maintenance().Limit(nil)
		return
	}
	m.cell.Maintenance().Limit(by)
}

func (m *cellModel) entity() string {
	return rapid.SampledFrom([]string{"x", "y", "z"}).Draw(m.t, "entity")
}

func (m *cellModel) message(origin gossip.NodeID) *cell.Message {
	m.made++
	msg := &cell.Message{Origin: origin, Entity: m.entity(), Payload: []byte("m"), Correlation: m.made, Value: len(m.all) + 1}
	if rapid.IntRange(0, 9).Draw(m.t, "expires") == 0 {
		msg.Deadline = m.now + machine.Instant(20*time.Millisecond)
	}
	return msg
}

// next returns an epoch above all others.
func (m *cellModel) next() protocol.Epoch {
	m.n++
	return epoch(m.n)
}

func (m *cellModel) apply(in protocol.CellInput) {
	m.changes++
	m.cell.Apply(m.now, in, &m.out)
	m.carry()
	m.changes++ // A sender that the input calls may find that its message goes elsewhere now.
}

// carry carries out the actions of the cell, and checks each.
func (m *cellModel) carry() {
	for _, a := range m.out.List() {
		switch a.Op {
		case cell.OpStart, cell.OpRun, cell.OpStop:
			m.work(a)
		case cell.OpFree, cell.OpFail, cell.OpDrop:
			m.settle(a.Message, fmt.Sprint(a.Op))
		case cell.OpAcked:
			for v := (window.View{}); a.Items.Next(&v); {
				m.settle(m.packed[v.Correlation()], "delivered")
			}
		case cell.OpOfferAgain:
			m.call(a.Message)
		case cell.OpStuck:
			require.False(m.t, m.stuck[a.Entity])
			m.stuck[a.Entity] = true
		case cell.OpReturned:
			require.True(m.t, m.stuck[a.Entity])
			delete(m.stuck, a.Entity)
		case cell.OpEvent:
			if halted, ok := a.Event.(protocol.ShardStopped); ok {
				m.hosting, m.positions = false, halted.Positions
				for _, e := range m.alive {
					require.True(m.t, e.Ended(), "what has not stopped was left behind")
				}
			}
		case cell.OpWake:
			m.due = a.At
		default:
		}
	}
	m.out.Reset()
	m.keptUp()
	m.limited()
	require.Equal(m.t, len(m.stuck), m.cell.Info().StuckCount)
}

// keptUp checks what holds of the entities that are permanent.
func (m *cellModel) keptUp() {
	if i := m.cell.Info(); !i.Hosting || i.Stopping || m.ended {
		return
	}
	for _, id := range m.permanent {
		e, there := m.cell.Entity(id)
		require.True(m.t, there, "%s has a record", id)
		switch {
		case m.suspended:
		case e.State == "failed":
			soon := m.now.Add(50 * time.Millisecond) // Its last reply may wait for the clock to show standing.
			require.True(m.t, m.due > 0 && m.due <= max(e.Since, soon), "the cell is called when the rest ends")
		case e.State == "waiting":
			require.NotZero(m.t, m.due, "nothing but its last reply is waited for")
		}
	}
}

// limited checks what holds of handles.
func (m *cellModel) limited() {
	if m.limiter == nil {
		return
	}
	require.Zero(m.t, m.limiter.wrong, "nobody uses or leaves the handle of nobody")
	var live, limited []string
	for e := range m.cell.Entities() {
		if e.Live() && !slices.Contains(m.permanent, e.ID()) {
			live = append(live, e.ID())
		}
	}
	for _, e := range m.limiter.taken {
		require.False(m.t, e.Info().Released, "who was left behind has no handle")
		limited = append(limited, e.ID())
	}
	require.ElementsMatch(m.t, live, limited)
}

// evict has the cell stop one of those that have a handle.
func (m *cellModel) evict(t *rapid.T) {
	if m.limiter == nil || len(m.limiter.taken) == 0 {
		t.Skip("nobody has a handle") // This draw does not apply; the test goes on.
	}
	at := rapid.SampledFrom(slices.Sorted(maps.Keys(m.limiter.taken))).Draw(t, "handle")
	e := m.limiter.taken[at]
	free := m.at[e] == 0 && e.Waiting() == 0 && !e.Withholds() && !m.suspended
	told := len(m.limiter.uses)
	switch m.cell.Maintenance().Evict(m.now, m.limiter, e, at, &m.out) {
	case cell.Evicted:
		require.True(m.t, free, "it had nothing to do")
		require.Equal(m.t, cell.CauseLimit, e.Cause())
	case cell.Used:
		require.Contains(m.t, m.limiter.uses[told:], e.ID())
	case cell.Busy:
		require.False(m.t, free)
	default:
		require.Fail(m.t, "it has that handle")
	}
	m.carry()
}

// settle notes the outcome of a message, of a value alone by the message that the cell made.
func (m *cellModel) settle(msg *cell.Message, outcome string) {
	if joined, ok := msg.Value.(*cell.Message); ok {
		msg = joined
	}
	msg = m.known(msg)
	require.Empty(m.t, m.settled[msg], "one outcome")
	m.settled[msg] = outcome
}

// handled notes that an entity has processed a message, which the cell frees unless it was a
// value alone.
func (m *cellModel) handled(msg *cell.Message) {
	if msg.Codec == joinedCodec {
		m.settle(msg, "handled")
	}
}

// joinedCodec marks the messages of which the cell gets the value alone, which is the message
// of the model.
const joinedCodec = 1

// messageOf returns the message of the model that a mailbox holds.
func (m *cellModel) messageOf(mail cell.Mail) *cell.Message {
	if mail.Message() != nil {
		return m.known(mail.Message())
	}
	return mail.Value.(*cell.Message)
}

// known returns the message of the model for one that the cell may have made from its bytes.
func (m *cellModel) known(msg *cell.Message) *cell.Message {
	if packed := m.packed[msg.Correlation]; packed != nil && msg.Origin == nodeA {
		require.Equal(m.t, []any{packed.Entity, packed.Payload, packed.Deadline}, []any{msg.Entity, msg.Payload, msg.Deadline})
		return packed
	}
	return msg
}

func (m *cellModel) work(a cell.Action) {
	e := a.Entity
	busy, alive := m.at[e]
	switch a.Op {
	case cell.OpStart:
		require.False(m.t, alive)
		for _, o := range m.alive {
			require.True(m.t, o.ID() != e.ID() || o.Ended(), "one instance of an entity")
		}
		m.alive = append(m.alive, e)
	case cell.OpRun:
		require.True(m.t, alive)
		require.Zero(m.t, busy, "one thing at a time")
		m.begin(e)
	default:
		require.True(m.t, alive)
		require.Zero(m.t, busy)
	}
	m.at[e] = a.Op
}

func (m *cellModel) begin(e *cell.Entity) {
	require.False(m.t, e.Ended())
	require.False(m.t, m.suspended)
	m.beginMessage(e, m.messageOf(e.Mail()))
	var r run
	r.ahead = m.cell.Instances().Ahead(e, rapid.IntRange(0, 3).Draw(m.t, "ahead"))
	n := rapid.IntRange(0, r.ahead.Len()).Draw(m.t, "processed")
	ahead := r.ahead
	for mail, more := ahead.Next(); more; mail, more = ahead.Next() {
		if msg := m.messageOf(mail); len(r.processed) < n {
			m.beginMessage(e, msg)
			r.processed = append(r.processed, msg)
		} else {
			r.rest = append(r.rest, msg)
		}
	}
	m.runs[e] = r
}

// beginMessage notes that an entity begins a message.
func (m *cellModel) beginMessage(e *cell.Entity, msg *cell.Message) {
	require.False(m.t, m.begun[msg])
	require.Empty(m.t, m.settled[msg])
	m.begun[msg] = true
	number, _ := msg.Value.(int)
	if !msg.Own {
		sender := e.ID() + msg.Origin.String()
		require.Greater(m.t, number, m.heard[sender], "in the order of the sender")
		m.heard[sender] = number
	}
}

// finish ends the start, the message or the stop that an entity is at.
func (m *cellModel) finish(e *cell.Entity) {
	op := m.at[e]
	m.at[e] = 0
	silent := e.Ended()
	switch op {
	case cell.OpStart:
		ok := rapid.IntRange(0, 3).Draw(m.t, "start") > 0
		if !ok {
			m.dead(e)
		}
		m.cell.Instances().Started(m.now, e, ok, &m.out)
	case cell.OpStop:
		m.dead(e)
		m.cell.Instances().Stopped(m.now, e, &m.out)
	default:
		m.end(e)
	}
	for _, a := range m.out.List() {
		require.False(m.t, silent && a.Op == cell.OpReply && a.Reply.Code == protocol.CodeOK && e.Info().Released, "it answers nobody")
	}
	m.carry()
}

// end ends the message that an entity is at, in one of several ways.
func (m *cellModel) end(e *cell.Entity) {
	r := m.runs[e]
	for _, msg := range append(slices.Clone(r.processed), r.rest...) {
		mail, _ := r.ahead.Next()
		require.Same(m.t, msg, m.messageOf(mail), "what was handed out stays as it is")
	}
	how := rapid.IntRange(0, 6).Draw(m.t, "end")
	present, given := m.messageOf(e.Mail()), e.Info().Released
	if how > 0 || len(r.processed) > 0 {
		over := m.cell.Instances().Ran(e, len(r.processed), &m.out)
		for ; over != nil; over = over.Next() {
			m.settle(over, "handled")
		}
		for _, msg := range r.processed {
			if !given {
				m.handled(present)
				present = msg
			}
		}
	}
	require.Same(m.t, present, m.messageOf(e.Mail()))
	if how > 0 || given {
		defer m.handled(present)
	}
	switch how {
	case 0:
		m.begun[present] = false
		number, _ := present.Value.(int)
		m.heard[e.ID()+present.Origin.String()] = number - 1
		m.cell.Instances().Postpone(m.now, e, &m.out)
	case 1:
		m.cell.Instances().Done(m.now, e, cell.Result{Failed: true, Reason: "broken", Reply: new(protocol.Reply)}, &m.out)
	case 2:
		m.cell.Instances().Done(m.now, e, cell.Result{Reply: new(protocol.Reply), Withhold: true}, &m.out)
	case 3:
		m.cell.Instances().Passivate(m.now, e, &m.out)
		m.cell.Instances().Done(m.now, e, ok, &m.out)
	default:
		m.cell.Instances().Done(m.now, e, cell.Result{Reply: new(protocol.Reply)}, &m.out)
	}
}

func (m *cellModel) dead(e *cell.Entity) {
	delete(m.at, e)
	m.alive = slices.DeleteFunc(m.alive, func(o *cell.Entity) bool { return o == e })
}

// busy returns the entities with a start, a message or a stop under way.
func (m *cellModel) busy() []*cell.Entity {
	var busy []*cell.Entity
	for _, e := range m.alive {
		if m.at[e] != 0 {
			busy = append(busy, e)
		}
	}
	return busy
}

// acts returns what may happen to a cell, by name. An act that does not apply now calls Skip
// of its rapid.T; another act is drawn in its place, and the test goes on.
func (m *cellModel) acts() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"accept":       func(*rapid.T) { m.accept() },
		"deliver":      func(*rapid.T) { m.deliver() },
		"join":         m.join,
		"join another": m.join,
		"retract":      m.retract,
		"finish": func(t *rapid.T) {
			busy := m.busy()
			if len(busy) == 0 {
				t.Skip("nothing is under way") // This draw does not apply; the test goes on.
			}
			m.finish(rapid.SampledFrom(busy).Draw(t, "which"))
		},
		"remind": func(t *rapid.T) {
			if len(m.alive) == 0 {
				t.Skip("nobody is there") // This draw does not apply; the test goes on.
			}
			e := rapid.SampledFrom(m.alive).Draw(t, "which")
			live := e.Live() && !m.ended
			msg := &cell.Message{Entity: e.ID()}
			m.cell.Instances().Remind(m.now, e, msg, &m.out)
			if live {
				m.all = append(m.all, msg)
			}
			m.carry()
		},
		"wait": func(t *rapid.T) {
			m.now = m.now.Add(time.Duration(rapid.IntRange(1, 120).Draw(t, "ms")) * time.Millisecond)
			m.due = 0
			m.cell.Tick(m.now, &m.out)
			m.carry()
		},
		"sweep": func(*rapid.T) {
			m.cell.Maintenance().Sweep(m.now, 2, &m.out)
			for _, a := range m.out.List() {
				require.False(m.t, a.Op == cell.OpStop && slices.Contains(m.permanent, a.Entity.ID()), "it is not stopped for being idle")
			}
			m.carry()
		},
		"standing": func(*rapid.T) {
			if m.suspended = !m.suspended; m.suspended {
				m.apply(protocol.SuspendHosting{})
				return
			}
			m.apply(protocol.UnsuspendHosting{})
		},
		"come": func(t *rapid.T) {
			w := m.waiter(t)
			m.offer(w.m, w)
		},
		"withdraw": func(t *rapid.T) {
			m.cell.Withdraw(m.waiter(t).m, &m.out)
			m.carry()
		},
		"evict": m.evict,
		"bound": func(t *rapid.T) {
			m.bound(rapid.SampledFrom([]*handles{nil, newHandles(), newHandles()}).Draw(t, "by"))
			m.carry()
		},
		"flow":    m.flow,
		"host":    func(*rapid.T) { m.host() },
		"stop":    func(*rapid.T) { m.apply(protocol.StopHosting{Epoch: m.epoch}) },
		"resume":  func(*rapid.T) { m.apply(protocol.ResumeHosting{Epoch: m.epoch}) },
		"release": func(*rapid.T) { m.apply(protocol.ReleaseHosting{Epoch: m.epoch}) },
		"lose": func(*rapid.T) {
			if rapid.IntRange(0, 4).Draw(m.t, "lose") == 0 { // This must be rare, or the shard would hardly ever be here.
				m.rebase()
				m.hosting = false
				m.apply(protocol.SetRoute{Home: nodeC, Epoch: m.base, Base: m.base})
			}
		},
	}
}

func (m *cellModel) accept() { m.offer(m.message(nodeA), nil) }

// offer gives the cell a message of its own node. was is the waiter of the message, nil if
// the message did not wait before.
func (m *cellModel) offer(msg *cell.Message, was *waiter) {
	switch a := m.cell.Accept(m.now, msg, &m.out); a {
	case cell.Accepted, cell.Packed:
		m.all = append(m.all, msg)
		if msg.Value = len(m.all); a == cell.Packed {
			m.packed[msg.Correlation] = msg
		}
	case cell.MailboxFull, cell.WindowFull:
		kept := was != nil && was.called && was.changes == m.changes
		require.False(m.t, kept, "room is kept for who was called")
		m.waiting = append(m.waiting, &waiter{m: msg, what: a})
	default:
	}
	m.carry()
}

// join puts a value into a mailbox that is open, of a tell or of an ask.
func (m *cellModel) join(t *rapid.T) {
	id := m.entity()
	e := m.cell.Open(id)
	if e == nil {
		t.Skip("the mailbox is not open") // This draw does not apply; the test goes on.
	}
	msg := &cell.Message{Origin: nodeA, Entity: id, Value: len(m.all) + 1, Codec: joinedCodec}
	m.all = append(m.all, msg)
	if rapid.Bool().Draw(t, "asks") {
		m.made++
		msg.Correlation = m.made
		if rapid.IntRange(0, 9).Draw(t, "expires") == 0 {
			msg.Deadline = m.now + machine.Instant(20*time.Millisecond)
		}
	}
	if m.cell.Join(e, msg, msg.Correlation, msg.Deadline) {
		m.cell.Rouse(m.now, e, &m.out)
	}
	m.carry()
}

// retract takes a message back, if it has not begun.
func (m *cellModel) retract(t *rapid.T) {
	var there []*cell.Message
	for _, msg := range m.all {
		if msg.Origin == nodeA && !msg.Own && (msg.Codec != joinedCodec || msg.Correlation != 0) && m.settled[msg] == "" {
			there = append(there, msg)
		}
	}
	if len(there) == 0 {
		t.Skip("there is no message") // This draw does not apply; the test goes on.
	}
	msg := rapid.SampledFrom(there).Draw(t, "which")
	if _, back := m.cell.Retract(m.now, msg.Entity, msg.Correlation, &m.out); back {
		require.False(m.t, m.begun[msg], "it has not begun")
		m.settle(msg, "taken back")
	}
	m.carry()
}

// call notes that the cell has called the sender of a message.
func (m *cellModel) call(msg *cell.Message) {
	at := slices.IndexFunc(m.waiting, func(w *waiter) bool { return w.m == msg })
	require.GreaterOrEqual(m.t, at, 0, "it waits")
	called := m.waiting[at]
	require.False(m.t, called.called, "it is called once")
	called.called, called.changes = true, m.changes
	for _, w := range m.waiting[:at] {
		require.True(m.t, w.called || w.what != called.what || w.m.Entity != msg.Entity, "in their order")
	}
}

// waiter removes one of the messages that wait for room, and returns it.
func (m *cellModel) waiter(t *rapid.T) *waiter {
	if len(m.waiting) == 0 {
		t.Skip("nobody waits") // This draw does not apply; the test goes on.
	}
	at := rapid.IntRange(0, len(m.waiting)-1).Draw(t, "which")
	w := m.waiting[at]
	m.waiting = slices.Delete(m.waiting, at, at+1)
	return w
}

// flow lets another node hold, open or ask about the flow to an entity.
func (m *cellModel) flow(t *rapid.T) {
	f := protocol.Flow{
		Entity: m.entity(), Epoch: epoch(m.n), State: rapid.SampledFrom([]protocol.FlowState{
			protocol.FlowHold, protocol.FlowOpen, protocol.FlowAsk,
		}).Draw(t, "state"),
	}
	m.cell.Flowed(m.now, nodeB, f, &m.out)
	m.carry()
}

// deliver lets the next message of a stream come, and sometimes the same message again.
func (m *cellModel) deliver() {
	msg := m.message(nodeB)
	m.sent++
	msg.Seq, msg.Base, msg.Route = m.sent, m.base, m.base
	m.all = append(m.all, msg)
	if !m.enter(msg) {
		m.cell.Deliver(m.now, msg, &m.out)
	}
	m.cell.Acks(&m.out)
	m.carry()
	if rapid.IntRange(0, 5).Draw(m.t, "twice") == 0 {
		double := *msg
		m.all = append(m.all, &double)
		if !m.enter(&double) {
			m.cell.Deliver(m.now, &double, &m.out)
		}
		m.carry()
	}
}

// enter has the message of another node go into a mailbox as a value, alone or, if somebody
// waits for the reply, beside the message. False: it is not decoded, or has to be delivered.
func (m *cellModel) enter(msg *cell.Message) bool {
	a := cell.Arrival{Origin: msg.Origin, Base: msg.Base, Seq: msg.Seq, Entity: msg.Entity, Bytes: 1}
	switch rapid.IntRange(0, 2).Draw(m.t, "decoded") {
	case 0:
		return false
	case 1:
		a.Mail = cell.MailOf(msg.Value, msg)
		return m.cell.Enter(m.now, &a, &m.out)
	}
	a.Mail = cell.Mail{Value: msg}
	if !m.cell.Enter(m.now, &a, &m.out) {
		return false
	}
	msg.Codec, msg.Correlation, msg.Deadline = joinedCodec, 0, 0
	return true
}

// rebase begins the streams anew, with a higher base.
func (m *cellModel) rebase() {
	m.base, m.sent, m.positions = m.next(), 0, nil
}

// host lets the shard come to this node, unless it is here.
func (m *cellModel) host() {
	if m.hosting {
		return
	}
	if m.base.IsZero() {
		m.rebase()
	}
	m.hosting, m.epoch = true, m.next()
	m.apply(protocol.StartHosting{Epoch: m.epoch, Base: m.base, Positions: m.positions})
}

// conclude ends the node and everything that is under way, and checks that nothing is left.
func (m *cellModel) conclude() {
	m.ended = true
	m.apply(protocol.AbandonHosting{})
	for _, w := range m.waiting {
		require.True(m.t, w.called, "everybody is called in the end")
		require.Equal(m.t, cell.Ended, m.cell.Accept(m.now, w.m, &m.out))
	}
	for busy := m.busy(); len(busy) > 0; busy = m.busy() {
		m.finish(busy[0])
	}
	require.Empty(m.t, m.alive, "every instance is stopped")
	require.Zero(m.t, m.cell.Info().StuckCount)
	for _, msg := range m.all {
		require.NotEmpty(m.t, m.settled[msg], "every message has an outcome: %+v", msg)
	}
}

// The laws of cellModel hold.
// covers F49, I20 in the cell.
func TestLawsOfACell(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newCellModel(t)
		m.host()
		t.Repeat(m.acts())
		m.conclude()
	})
}
