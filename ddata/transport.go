// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package ddata

import (
	"bytes"
	"errors"
	"sync"

	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/ddata/internal/wire"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/transport"
)

// Messages between replicas. On the way out, send encodes a message once and cuts it into
// parts if it is large; parts of which a lane takes no more wait in a backlog, for which a
// goroutine waits for room (drain). On the way in, received joins and decodes on the goroutine
// of a connection, and waits for room in the machine's inbox: so a receiver that is behind
// holds up its senders.

// link connects a replicator with those of other nodes.
type link struct {
	r *Replicator

	buffer  []byte   // Belongs to the driver's goroutine.
	parcels uint64   // As well: the number of the last parcel.
	joiners sync.Map // The *joiner of each sender, by its gossip.NodeID.

	mu       sync.Mutex // Guards what follows, and is held while a lane is appended to.
	backlogs map[laneID]*backlog
}

// laneID names a lane to a node.
type laneID struct {
	to    gossip.NodeID
	class transport.LaneClass
}

// backlog is what waits for a lane, in order.
type backlog struct {
	frames [][]byte
	size   int
}

const (
	// maxBuffer is the largest buffer that is kept between two messages.
	maxBuffer = 1 << 20
	// maxFrame is the largest frame: less than the transport takes at its smallest
	// setting, and little beside the window of a lane.
	maxFrame = 48 << 10
	// maxBacklog is how many bytes may wait for a lane. A message that does not fit is
	// dropped, unless it is the only one.
	maxBacklog = 64 << 20
)

// send sends a message of the machine. What cannot be sent is counted: the replicas repeat
// what matters.
func (l *link) send(c *machine.Component, s machine.Send) {
	b, err := c.Codec.Append(l.buffer[:0], s.Message)
	if err != nil {
		// A type of the program cannot encode its value. The machine repeats itself in vain;
		// other keys are not concerned.
		l.r.counters.unsent.Add(1)
		l.r.log.Error("a message to another replica cannot be encoded", "to", s.To.String(), "error", err)
		return
	}
	if l.buffer = b[:0]; cap(b) > maxBuffer {
		l.buffer = nil
	}
	l.parcels++
	if err := l.transmit(laneID{s.To, s.Lane}, l.parcels, b); err != nil {
		l.r.counters.unsent.Add(1)
		l.r.log.Debug("message not sent", "to", s.To.String(), "error", err)
	}
}

// transmit appends the frames of a message to a lane, or to what waits for the lane. A small
// message that finds a full lane is refused, the parts of a large one wait.
func (l *link) transmit(id laneID, parcel uint64, message []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	waiting := l.backlogs[id]
	if waiting != nil && waiting.size+len(message) > maxBacklog {
		return transport.ErrFull
	}
	for frame := range wire.Cut(parcel, message, maxFrame) {
		if waiting == nil {
			err := l.append(id, frame)
			if err == nil {
				continue
			}
			if !errors.Is(err, transport.ErrFull) || len(message) <= maxFrame {
				return err
			}
			waiting = l.wait(id)
		}
		if len(message) <= maxFrame {
			frame = bytes.Clone(frame) // It is the buffer.
		}
		waiting.frames = append(waiting.frames, frame)
		waiting.size += len(frame)
	}
	return nil
}

func (l *link) append(id laneID, frame []byte) error {
	return l.r.node.Transport().Lane(id.to, id.class).Append(protocol.Service, func(dst []byte) []byte { return append(dst, frame...) })
}

// wait begins a backlog for a full lane. The caller holds mu.
func (l *link) wait(id laneID) *backlog {
	waiting := &backlog{}
	if l.backlogs == nil {
		l.backlogs = map[laneID]*backlog{}
	}
	l.backlogs[id] = waiting
	// The goroutine is owned by the replicator: it ends when nothing waits any more, or with
	// the replicator.
	l.r.workers.Go(func() { l.drain(id, waiting) })
	return waiting
}

// drain appends what waits for a lane whenever the lane has room.
func (l *link) drain(id laneID, waiting *backlog) {
	for {
		err := l.r.node.Transport().Lane(id.to, id.class).Room(l.r.ctx)
		if l.drained(id, waiting, err) {
			return
		}
	}
}

// drained appends what fits, and reports whether nothing waits any more. After an error the
// lane takes nothing of what waits.
func (l *link) drained(id laneID, waiting *backlog, err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for err == nil && len(waiting.frames) > 0 {
		if err = l.append(id, waiting.frames[0]); err == nil {
			waiting.size -= len(waiting.frames[0])
			waiting.frames[0] = nil
			waiting.frames = waiting.frames[1:]
		}
	}
	if errors.Is(err, transport.ErrFull) {
		return false
	}
	l.r.counters.unsent.Add(uint64(len(waiting.frames)))
	delete(l.backlogs, id)
	return true
}

// reassembly puts together the large messages of one sender, whose parts may come on several connections.
type reassembly struct {
	mu   sync.Mutex
	join *wire.Joiner
}

// joinerOf returns the joiner of a sender.
func (l *link) joinerOf(from gossip.NodeID) *reassembly {
	if j, ok := l.joiners.Load(from); ok {
		return j.(*reassembly)
	}
	// What was allowed on two replicas may be larger together, and has an envelope.
	j, _ := l.joiners.LoadOrStore(from, &reassembly{join: wire.NewJoiner(2*l.r.cfg.MaxValueBytes+maxBuffer, &l.r.counters.parcels)})
	return j.(*reassembly)
}

// whole returns the message that a frame is, or completes.
func (j *reassembly) whole(frame []byte) []byte {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.join.Add(frame)
}

// noticed forgets what a sender has begun when its connection is over.
func (l *link) noticed(notice transport.Notice) {
	if e, ok := notice.(transport.PeerDown); ok {
		if j, ok := l.joiners.LoadAndDelete(e.Peer); ok {
			j := j.(*reassembly)
			j.mu.Lock()
			defer j.mu.Unlock()
			j.join.Break()
		}
	}
}

// largeBytes is from which size on a message is large when decoded: no more of them are in
// memory than there are connections.
const largeBytes = 16 << 10

// received takes a frame of a member.
func (l *link) received(from gossip.NodeID, frame []byte) {
	message := l.joinerOf(from).whole(frame)
	if message == nil {
		return
	}
	feed := l.r.handle.Receive
	if len(message) >= largeBytes {
		feed = l.r.handle.Deliver
	}
	if err := feed(l.r.ctx, from, message); err != nil && !errors.Is(err, machine.ErrClosed) && l.r.ctx.Err() == nil {
		l.r.counters.malformed.Add(1)
		l.r.log.Warn("message dropped", "from", from.String(), "error", err)
	}
}
