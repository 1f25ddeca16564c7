// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"errors"
	"sync"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/transport"
)

// backlogBytesMax bounds what waits for the lane to one node.
const backlogBytesMax = 4 << 20

// backlog keeps replies and acknowledgements that a lane was too full for, until
// it has room: nobody would send them again before somebody's patience ends.
// Messages do not come here, they wait in their cells.
type backlog struct {
	mu    sync.Mutex // Guards all below; held for bookkeeping only.
	nodes map[gossip.NodeID]*waiting
}

// waiting is what waits for the lane to one node, encoded. Its order does not
// matter: a reply belongs to one ask, and an older acknowledgement says nothing
// that a newer one does not.
type waiting struct {
	frames [][]byte
	bytes  int
}

// add keeps frames for a node, as many as there is place for. It returns how
// many there was none for.
func (b *backlog) add(to gossip.NodeID, frames ...[]byte) (lost int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.nodes[to]
	if w == nil {
		w = new(waiting)
		if b.nodes == nil {
			b.nodes = make(map[gossip.NodeID]*waiting)
		}
		b.nodes[to] = w
	}
	for _, f := range frames {
		if w.bytes+len(f) > backlogBytesMax {
			lost++
			continue
		}
		w.frames = append(w.frames, f)
		w.bytes += len(f)
	}
	return lost
}

// take takes everything out that waits for a node.
func (b *backlog) take(to gossip.NodeID) [][]byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.nodes[to]
	if w == nil {
		return nil
	}
	delete(b.nodes, to)
	return w.frames
}

// respond sends a reply or an acknowledgement, now or when its lane has room. The
// error is what the lane refused it for; one that there was no place for is
// counted, and has none.
func (s *System) respond(to gossip.NodeID, encode func([]byte) []byte) error {
	err := s.node.Transport().Lane(to, machine.LaneMessage).Append(protocol.MessageService, encode)
	if !errors.Is(err, transport.ErrFull) {
		return err
	}
	s.counters.unsent.Add(uint64(s.backlog.add(to, encode(nil))))
	s.awaitRoom(to)
	return nil
}

// catchUp sends what waits for a node, as far as its lane takes it. What it
// refuses for another reason than that it is full has nobody to go to.
func (s *System) catchUp(to gossip.NodeID) {
	frames := s.backlog.take(to)
	lane := s.node.Transport().Lane(to, machine.LaneMessage)
	for i, f := range frames {
		err := lane.Append(protocol.MessageService, func(dst []byte) []byte { return append(dst, f...) })
		if errors.Is(err, transport.ErrFull) {
			s.counters.unsent.Add(uint64(s.backlog.add(to, frames[i:]...)))
			s.awaitRoom(to)
			return
		}
		if err != nil {
			s.counters.unsent.Add(1)
		}
	}
}
