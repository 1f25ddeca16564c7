// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/window"
	"github.com/quorate/quorate/sharding/internal/wire"
)

// arrivals is a host whose entities collect what they handle.
type arrivals struct {
	*hostStub
	t       *testing.T
	slot    *Slot
	tasks   []Task
	decoded []string
	handled []string
}

// decodedText is the value of a message.
type decodedText string

// newArrivals returns a host of a shard that waits for the order to serve it.
func newArrivals(t *testing.T) *arrivals {
	a := &arrivals{hostStub: newHost(), t: t}
	r := a.node.NewRegion("k", 1, cell.Config{}, KindPorts{
		Work: func(task Task) { a.tasks = append(a.tasks, task) }, Ended: func(*Slot) {},
		Decode: func(entity string, payload []byte) any {
			require.True(t, a.slot.mu.TryLock(), "decoded without the lock of the cell")
			a.slot.mu.Unlock()
			a.decoded = append(a.decoded, entity+":"+string(payload))
			return decodedText(payload)
		},
	})
	a.slot = r.Slot(0)
	a.slot.Apply(protocol.SetRoute{Home: node(1), Epoch: base, Base: base})
	return a
}

func (a *arrivals) serve() { a.slot.Apply(protocol.StartHosting{Epoch: base, Base: base}) }

// frame returns an envelope with messages to the entity e, from a number on.
func (a *arrivals) frame(seq uint64, messages ...cell.Message) []byte {
	w := window.New(seq)
	for _, m := range messages {
		w.Push(&window.Item{
			Entity: "e", Correlation: m.Correlation, Deadline: m.Deadline, Trace: m.Trace, Codec: m.Codec, Flags: m.Flags, Payload: m.Payload,
		}, window.NewChunk)
	}
	o := cell.Transmission{Kind: "k", Origin: node(2), Base: base, Route: base, Window: &w}
	var e wire.Encoder
	frame, rest := e.Run(nil, &o, seq, len(messages), a.now)
	require.Equal(a.t, w.Next(), rest)
	return frame
}

// receive takes a frame, whose bytes are of no use to anybody afterwards.
func (a *arrivals) receive(frame []byte) {
	a.node.Received(node(2), frame)
	for i := range frame {
		frame[i] = 0xff
	}
	require.Zero(a.t, a.malformed)
}

// work does all tasks.
func (a *arrivals) work() {
	for len(a.tasks) > 0 {
		j := NewJob(a.tasks[0])
		a.tasks = a.tasks[1:]
		clock := machine.NewFilter(a.Instant, nil).Reader()
		j.Clocked(&clock)
		for call := j.Begin(); call != CallNone; call = j.Begin() {
			switch call {
			case CallStart:
				j.Started(true, "")
			case CallHandle:
				a.handle(&j)
			default:
			}
		}
	}
}

// handle has an entity handle a message, which a worker decodes if that has not been done.
func (a *arrivals) handle(j *Job) {
	m := j.Mail()
	if text, ok := m.Value.(decodedText); ok {
		a.handled = append(a.handled, string(text))
	} else {
		require.Nil(a.t, m.Value)
		a.handled = append(a.handled, "encoded "+string(m.Message().Payload))
	}
	j.Handled(cell.Result{})
}

func text(s string) cell.Message { return cell.Message{Payload: []byte(s)} }

func (a *arrivals) asked(s string) cell.Message {
	return cell.Message{Payload: []byte(s), Correlation: 7, Deadline: a.now + 1000, Trace: []byte("t")}
}

// What goes into mailboxes is decoded once, straight from the frame, asks too, in order.
func TestValuesAreDecodedFromTheFrame(t *testing.T) {
	a := newArrivals(t)
	a.serve()
	a.receive(a.frame(1, text("1"), a.asked("2"), text("3")))
	require.Equal(t, []string{"e:1", "e:2", "e:3"}, a.decoded)
	a.receive(a.frame(4, text("4"), text("5")))
	a.work()
	require.Equal(t, []string{"1", "2", "3", "4", "5"}, a.handled)
	require.Len(t, a.decoded, 5)
	require.EqualValues(t, 5, a.tally().Received)
}

func (a *arrivals) tally() (t cell.Tally) {
	a.slot.Tally(&t)
	return t
}

// What came twice is dropped, and what came before its turn waits with its value and with its
// bytes: neither is delivered, nor decoded, a second time.
func TestWhatCameEarlyIsDecodedOnce(t *testing.T) {
	a := newArrivals(t)
	a.serve()
	a.receive(a.frame(3, text("3"), a.asked("4")))
	a.receive(a.frame(1, text("1"), text("2")))
	a.receive(a.frame(1, text("1"), text("2")))
	a.work()
	require.Equal(t, []string{"1", "2", "3", "4"}, a.handled)
	require.Equal(t, []string{"e:3", "e:4", "e:1", "e:2", "e:1", "e:2"}, a.decoded, "each that came, once")
}

// What comes to a node that is not the home yet waits as bytes, and is decoded by whoever
// handles it.
func TestWhatWaitsForAHomeStaysEncoded(t *testing.T) {
	a := newArrivals(t)
	a.receive(a.frame(1, text("1"), text("2")))
	require.Empty(t, a.decoded)
	a.serve()
	a.receive(a.frame(3, text("3"), text("4")))
	a.work()
	require.Equal(t, []string{"encoded 1", "encoded 2", "3", "4"}, a.handled)
	require.Equal(t, []string{"e:3", "e:4"}, a.decoded)
}

// benchMessage is what the messages of benchmarks are decoded into.
type benchMessage struct {
	number  uint64
	payload []byte
}

// BenchmarkArrivals measures what a host does with messages of 64 bytes from another node, to one
// entity in each of a number of shards, until the entities have handled them.
func BenchmarkArrivals(b *testing.B) {
	const frames = 64
	for _, load := range []struct {
		shards   uint32
		messages int
	}{{4, 64}, {64, 4}, {256, 1}} {
		b.Run(fmt.Sprintf("shards=%d/messages=%d", load.shards, load.messages), func(b *testing.B) {
			sent := framesTo(load.shards, load.messages, frames)
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				h, tasks := benchHost(load.shards)
				clock := machine.NewFilter(h.Instant, nil).Reader()
				b.StartTimer()
				for _, f := range sent {
					h.node.Received(node(1), f)
					for _, task := range *tasks {
						benchWork(task, &clock)
					}
					*tasks = (*tasks)[:0]
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(frames*int(load.shards)*load.messages), "ns/msg")
		})
	}
}

// framesTo returns envelopes, of which each has as many messages to each shard of node 2.
func framesTo(shards uint32, messages, frames int) [][]byte {
	h := newNode()
	r := h.node.NewRegion("many", shards, cell.Config{WindowBytes: 1 << 30}, KindPorts{Work: func(Task) {}, Ended: func(*Slot) {}})
	h.node.Connected(node(2), protocol.VersionNumbers)
	h.node.ApplyAll("many", protocol.SetRoute{Home: node(2), Epoch: base, Base: base})
	l := h.lane(node(2)).(*laneStub)
	r.EachSlot(func(sl *Slot) { benchTell(sl) })
	for range frames {
		l.busy = true
		for range messages {
			r.EachSlot(func(sl *Slot) { benchTell(sl) })
		}
		l.call()
	}
	return l.frames
}

// benchTell sends a message of 64 bytes to the entity of a shard.
func benchTell(sl *Slot) {
	m, _ := sl.Blank("entity", nil, nil)
	m.Payload = append(m.Payload, make([]byte, 64)...)
	_, _, _ = sl.Offer(m, nil)
}

// benchHost returns node 2 as the home of shards, and the list of what is to be done.
func benchHost(shards uint32) (*hostStub, *[]Task) {
	h, tasks := newNode(), new([]Task)
	h.node.Ports.Self = node(2)
	h.node.NewRegion("many", shards, cell.Config{}, KindPorts{
		Work: func(t Task) { *tasks = append(*tasks, t) }, Ended: func(*Slot) {},
		Decode: func(_ string, payload []byte) any {
			return &benchMessage{uint64(payload[0]), bytes.Clone(payload[12:])}
		},
	})
	h.node.ApplyAll("many", protocol.SetRoute{Home: node(2), Epoch: base, Base: base})
	h.node.ApplyAll("many", protocol.StartHosting{Epoch: base, Base: base})
	return h, tasks
}

// benchWork does a task, with entities that do nothing.
func benchWork(task Task, clock *machine.Reader) {
	j := NewJob(task)
	j.Clocked(clock)
	for call := j.Begin(); call != CallNone; call = j.Begin() {
		switch call {
		case CallStart:
			j.Started(true, "")
		case CallHandle:
			j.Handled(cell.Result{})
		default:
		}
	}
}
