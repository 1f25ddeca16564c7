// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/window"
)

// Messages that are taken back: first a model of a stream over a lane that takes, loses and
// delivers messages in any way, and its law; then single cases at a lane, in a mailbox, and
// in a shard that stops.

// streamModel is the cell of an origin and the cell of a host, with a lane between them that
// may be full, has no connection for a while, or begins anew and loses the messages in it.
// The model checks that every accepted message is processed once and in order, except
// messages that were taken back, which are never processed.
type streamModel struct {
	t      *rapid.T
	now    machine.Instant
	origin *cell.Cell
	host   *cell.Cell
	out    cell.Actions

	full    bool
	place   uint64    // The place of the next message in the lane.
	written uint64    // Messages at places below this one have left the lane.
	ended   *uint64   // That of the lane before, of whose end the cell has not heard; nil if it has.
	lane    []travels // The messages in the lane, from place written on.
	wire    []travels // The messages that have left and have not arrived.
	acks    []protocol.Ack
	needs   []protocol.Nack
	waits   map[uint64]bool // The accepted messages that the origin's cell still has, by correlation.
	next    uint64
	left    map[uint64]bool // The messages of which a copy has left the lane, by correlation.
	handed  map[uint64]bool // The messages that are in the lane or have left it, by correlation.
	retired map[uint64]bool // The messages that were taken back, by correlation.
	heard   []uint64
}

// travels is a copy of a message in the lane or behind it.
type travels struct {
	m     cell.Message
	place uint64
}

func newStreamModel(t *rapid.T) *streamModel {
	m := &streamModel{
		t: t, now: 1, waits: map[uint64]bool{}, retired: map[uint64]bool{}, handed: map[uint64]bool{}, left: map[uint64]bool{},
		origin: cell.New(cell.Config{Kind: "k", Self: nodeA, WindowBytes: 2000}),
		host:   cell.New(cell.Config{Kind: "k", Self: nodeB}),
	}
	m.origin.Apply(m.now, protocol.SetRoute{Home: nodeB, Epoch: epoch(1), Base: epoch(1)}, &m.out)
	m.host.Apply(m.now, protocol.StartHosting{Epoch: epoch(1), Base: epoch(1)}, &m.out)
	m.out.Reset()
	return m
}

// sent carries out the actions of the origin's cell: messages go into the lane one by one, or
// several at once, as those of a batch do.
func (s *streamModel) sent() {
	full := false
	for _, a := range s.out.List() {
		switch a.Op {
		case cell.OpTransmit:
			if full || s.full {
				full = true
				s.origin.Outbound().Unsent(a.Seq)
			} else if rapid.Bool().Draw(s.t, "batch") {
				s.batch(a.Seq)
			} else {
				s.each(a.Seq)
			}
		case cell.OpAcked:
			for v := (window.View{}); a.Items.Next(&v); {
				delete(s.waits, v.Correlation())
			}
		default:
		}
	}
	s.out.Reset()
}

// each has the messages from a number on go into the lane, one by one.
func (s *streamModel) each(first uint64) {
	s.tell()
	o := s.origin.Outbound().Transmission()
	items := o.Window.From(first)
	for v := (window.View{}); items.Next(&v); {
		s.enter(&o, &v)
		s.origin.Outbound().Handed(v.Seq, v.Seq+1, s.place)
		s.place++
	}
}

// batch has the messages from a number on go into the lane at once, or be refused by it. Only then
// the cell hears whether the lane is another.
func (s *streamModel) batch(first uint64) {
	o := s.origin.Outbound().Transmission()
	h := s.origin.Outbound().Handing(first, o.Window.Next())
	if rapid.IntRange(0, 3).Draw(s.t, "refused") == 0 {
		h.TakenBack()
		return
	}
	items := o.Window.From(first)
	for v := (window.View{}); items.Next(&v); {
		s.enter(&o, &v)
	}
	s.tell()
	h.Placed(s.place)
	s.place++
}

// enter puts a copy of a message into the lane.
func (s *streamModel) enter(o *cell.Transmission, v *window.View) {
	m := cell.Message{Entity: v.Entity(), Origin: o.Origin, Base: o.Base, Route: o.Route, Seq: v.Seq, Correlation: v.Correlation()}
	s.lane = append(s.lane, travels{m, s.place})
	s.handed[m.Correlation] = true
}

// tell has the cell hear of the end of the lane before.
func (s *streamModel) tell() {
	if s.ended != nil {
		s.origin.Outbound().Rerouted(*s.ended, true)
		s.ended = nil
	}
}

// hosted carries out the actions of the host's cell: its entity processes messages at once.
func (s *streamModel) hosted() {
	for i := 0; i < len(s.out.List()); i++ {
		a := s.out.List()[i]
		switch a.Op {
		case cell.OpStart:
			s.host.Instances().Started(s.now, a.Entity, true, &s.out)
		case cell.OpRun:
			s.heard = append(s.heard, a.Entity.Mail().Message().Correlation)
			s.host.Instances().Done(s.now, a.Entity, cell.Result{Reply: new(protocol.Reply)}, &s.out)
		case cell.OpAck:
			s.acks = append(s.acks, protocol.Ack{Base: a.Base, Seq: a.Seq})
		case cell.OpNeed:
			s.needs = append(s.needs, protocol.Nack{Base: a.Base, Seq: a.Seq})
		default:
		}
	}
	s.out.Reset()
}

func (s *streamModel) accept() {
	s.next++
	m := &cell.Message{Entity: "x", Payload: []byte("m"), Correlation: s.next}
	if s.origin.Accept(s.now, m, &s.out) == cell.Packed {
		s.waits[s.next] = true
	} else {
		s.origin.Withdraw(m, &s.out)
	}
	s.sent()
}

// retract tries to take a message back, and checks that this works only if no lane has had the
// message or one behind it, and always if the cell has heard of the end of every lane before.
func (s *streamModel) retract(t *rapid.T) {
	var ids []uint64
	for id := uint64(1); id <= s.next; id++ {
		if s.waits[id] {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		t.Skip("nothing is on its way") // This draw does not apply; the test goes on.
	}
	id := rapid.SampledFrom(ids).Draw(t, "which")
	may := true
	for _, behind := range ids {
		may = may && (behind < id || !s.handed[behind])
	}
	_, taken := s.origin.Retract(s.now, "x", id, &s.out)
	if taken || s.ended == nil {
		require.Equal(t, may, taken, "exactly what no lane has, nor anything behind it")
	}
	if taken {
		s.retired[id] = true
		delete(s.waits, id)
	}
	s.sent()
}

// write lets the first messages of the lane leave, any number of them, those of a batch together.
func (s *streamModel) write() {
	n := rapid.IntRange(0, len(s.lane)).Draw(s.t, "leave")
	for n > 0 && n < len(s.lane) && s.lane[n].place == s.lane[n-1].place {
		n++
	}
	for _, c := range s.lane[:n] {
		s.left[c.m.Correlation] = true
	}
	s.wire = append(s.wire, s.lane[:n]...)
	s.lane = s.lane[n:]
	s.written = s.place
	if len(s.lane) > 0 {
		s.written = s.lane[0].place
	}
}

// arrive lets the first n messages that have left the lane arrive at the host.
func (s *streamModel) arrive(n int) {
	for ; n > 0 && len(s.wire) > 0; n-- {
		m := s.wire[0].m
		s.wire = s.wire[1:]
		s.host.Deliver(s.now, &m, &s.out)
		s.host.Acks(&s.out)
		s.hosted()
	}
}

// renew gives the lane up: the messages in it are lost, and some of those that have left it.
func (s *streamModel) renew() {
	for _, c := range s.lane {
		s.handed[c.m.Correlation] = s.left[c.m.Correlation]
	}
	s.wire = s.wire[:rapid.IntRange(0, len(s.wire)).Draw(s.t, "came")]
	if s.ended == nil {
		s.ended = new(s.written)
	} // Else nothing has gone into the lane that ends.
	s.lane, s.place, s.written = nil, 0, 0
	s.origin.Broken(nodeB)
}

func (s *streamModel) flush() {
	s.origin.Flush(s.now, nodeB, &s.out)
	s.sent()
}

func (s *streamModel) answer() {
	for _, a := range s.acks {
		s.origin.Acked(s.now, nodeB, a, &s.out)
		s.sent()
	}
	for _, n := range s.needs {
		s.origin.Needed(s.now, nodeB, n, &s.out)
		s.sent()
	}
	s.acks, s.needs = nil, nil
}

func (s *streamModel) acts() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"accept":  func(*rapid.T) { s.accept() },
		"retract": s.retract,
		"write":   func(*rapid.T) { s.write() },
		"arrive":  func(t *rapid.T) { s.arrive(rapid.IntRange(1, 5).Draw(t, "n")) },
		"renew":   func(*rapid.T) { s.renew() },
		"hear":    func(*rapid.T) { s.tell() },
		"full":    func(*rapid.T) { s.full = !s.full },
		"collect": func(*rapid.T) { s.origin.Collect() },
		"flush":   func(*rapid.T) { s.flush() },
		"answer":  func(*rapid.T) { s.answer() },
		"forget":  func(*rapid.T) { s.acks, s.needs = nil, nil },
		"tick": func(*rapid.T) {
			s.now = s.now.Add(time.Second)
			s.origin.Tick(s.now, &s.out)
			s.sent()
		},
	}
}

// conclude lets every message come to its end, and checks which of them were processed.
func (s *streamModel) conclude() {
	s.full = false
	for range 100 {
		s.now = s.now.Add(20 * time.Second)
		s.flush()
		s.origin.Tick(s.now, &s.out)
		s.sent()
		s.wire, s.lane, s.written = append(s.wire, s.lane...), nil, s.place
		s.arrive(len(s.wire))
		s.answer()
	}
	require.Empty(s.t, s.waits, "everything has an outcome")
	require.IsIncreasing(s.t, append([]uint64{0}, s.heard...), "once, and in order")
	for _, id := range s.heard {
		require.False(s.t, s.retired[id], "what was taken back is not processed")
	}
	require.Zero(s.t, s.origin.Info().Window)
}

// A message that is taken back is never processed, and the messages before and behind it
// are, once and in order, whatever the lane does.
// covers I20.
func TestWhatIsTakenBackLeavesNoGap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newStreamModel(t)
		t.Repeat(s.acts())
		s.conclude()
	})
}

// A message can be taken back, from any place of the window, for as long as no lane has it
// or one behind it.
func TestWhatWasNotHandedOverIsTakenBack(t *testing.T) {
	c := newCell(t, nodeA, cell.Config{})
	c.apply(protocol.SetRoute{Home: nodeB, Epoch: epoch(1), Base: epoch(1)})
	require.Equal(t, "transmit:a:1", c.tell("a"))
	c.Collect()
	for i, entity := range []string{"b", "c", "d"} {
		m := &cell.Message{Entity: entity, Payload: []byte("m"), Correlation: uint64(i + 1)}
		require.True(t, c.Follow(m) || c.Accept(c.now, m, &c.out) == cell.Packed)
	}
	c.did()
	require.True(t, c.takesBack("b", 1))
	require.False(t, c.takesBack("d", 0), "nobody waits for it")
	require.True(t, c.takesBack("d", 3))
	require.False(t, c.takesBack("d", 3), "once")
	c.Flush(c.now, nodeB, &c.out)
	require.Equal(t, "transmit:c:2", c.did())
	require.False(t, c.takesBack("c", 2), "a lane has it")
	require.Empty(t, c.did())
	require.Equal(t, "transmit:e:3", c.tell("e"))
	c.Outbound().Rerouted(1, true)
	require.True(t, c.takesBack("c", 2), "the lane was given up before it had left")
	require.Equal(t, 2, c.Info().Window)
}

// A message was in a lane that ended with it, and goes into the next one in a batch: it has its
// place there although the cell hears of the end of the first lane in between.
func TestWhatAnEarlierLaneHasLostHasItsPlaceInABatch(t *testing.T) {
	c := newCell(t, nodeA, cell.Config{})
	c.apply(protocol.SetRoute{Home: nodeB, Epoch: epoch(1), Base: epoch(1)})
	m := &cell.Message{Entity: "x", Payload: []byte("m"), Correlation: 1}
	require.Equal(t, cell.Packed, c.Accept(c.now, m, &c.out))
	c.did()
	c.Outbound().Handed(1, 2, 0)
	c.Broken(nodeB)
	h := c.Outbound().Handing(1, 2)
	c.Outbound().Rerouted(0, true)
	h.Placed(0)
	require.False(t, c.takesBack("x", 1), "the second lane has it")
}

// takesBack reports whether the cell takes the message of an ask back.
func (c *bench) takesBack(entity string, correlation uint64) bool {
	_, back := c.Retract(c.now, entity, correlation, &c.out)
	return back
}

// A message can be taken back out of a mailbox for as long as its entity has not begun it.
func TestWhatHasNotBegunIsTakenBack(t *testing.T) {
	c := host(t, cell.Config{Mailbox: 2})
	one, two, three := &cell.Message{Entity: "x", Correlation: 1}, &cell.Message{Entity: "x", Correlation: 2}, &cell.Message{Entity: "x"}
	require.Equal(t, cell.Accepted, c.Accept(c.now, one, &c.out))
	require.Equal(t, cell.Accepted, c.Accept(c.now, two, &c.out))
	require.Equal(t, "start:x", c.did())
	require.Equal(t, cell.MailboxFull, c.Accept(c.now, three, &c.out))
	require.True(t, c.takesBack("x", 2))
	require.Equal(t, "room:x", c.did(), "there is room")
	require.Equal(t, cell.Accepted, c.Accept(c.now, three, &c.out))
	require.Equal(t, "run:x", c.started("x", true))
	require.False(t, c.takesBack("x", 1), "it has begun")
	require.Equal(t, "reply free:x:0 run:x", c.done("x", ok))
}

// A shard that is told to stop has stopped when the last message that waits is taken back.
func TestAShardStopsWhenTheLastIsTakenBack(t *testing.T) {
	c := host(t, cell.Config{})
	c.apply(protocol.SuspendHosting{})
	m := &cell.Message{Entity: "x", Correlation: 1}
	require.Equal(t, cell.Accepted, c.Accept(c.now, m, &c.out))
	require.Empty(t, c.did())
	require.Empty(t, c.apply(protocol.StopHosting{Epoch: epoch(1)}))
	require.True(t, c.takesBack("x", 1))
	require.Equal(t, "shardstopped", c.did())
}
