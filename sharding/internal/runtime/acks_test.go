// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/wire"
	"github.com/quorate/quorate/transport"
)

// The ports of a host of two kinds, of which each lane keeps what is appended.

func node(n uint16) gossip.NodeID {
	return gossip.NodeID{Address: gossip.Address{Host: "h", Port: n}, UID: gossip.UID(n)}
}

// laneStub is a lane that keeps the frames.
type laneStub struct {
	frames   [][]byte
	err      error
	room     int               // After how many frames more it is full; 0: it is not.
	busy     bool              // Messages are to be collected.
	deferred []func()          // What Defer was given.
	track    func()            // Called once, by the next Track.
	passage  transport.Passage // Of the next messages; nil stands for the lane.
	place    uint64
	written  uint64
	numbers  wire.Numbers // What the other end knows.
}

func (l *laneStub) Written() (below uint64, over bool) { return l.written, false }

func (l *laneStub) Append(_ transport.Service, encode func(dst []byte) []byte) error {
	if l.err != nil {
		return l.err
	}
	l.frames = append(l.frames, encode(nil))
	if l.room > 0 {
		if l.room--; l.room == 0 {
			l.err = transport.ErrFull
		}
	}
	return nil
}

func (l *laneStub) Track(s transport.Service, encode func(dst []byte) []byte) (transport.Passage, uint64, error) {
	err := l.Append(s, encode)
	if track := l.track; track != nil {
		l.track = nil
		track()
	}
	l.place++
	if l.passage != nil {
		return l.passage, l.place - 1, err
	}
	return l, l.place - 1, err
}

func (l *laneStub) Defer(f func()) bool {
	if l.busy {
		l.deferred = append(l.deferred, f)
	}
	return l.busy
}

// call calls what was deferred, as a lane does before its next batch.
func (l *laneStub) call() {
	l.busy = false
	for len(l.deferred) > 0 {
		f := l.deferred[0]
		l.deferred = l.deferred[1:]
		f()
	}
}

// hostStub has the ports of a node.
type hostStub struct {
	node      *Node
	now       machine.Instant
	lanes     map[gossip.NodeID]*laneStub
	looked    int // How often a lane was looked up.
	malformed int
	waited    int // How often room was waited for.
}

func (h *hostStub) Instant() machine.Instant         { return h.now }
func (h *hostStub) HeldAt(machine.Instant) bool      { return true }
func (h *hostStub) HeldThrough(machine.Reading) bool { return true }
func (h *hostStub) IsMember(gossip.NodeID) bool      { return true }
func (h *hostStub) WasMember(gossip.NodeID) bool     { return true }

func (h *hostStub) lane(to gossip.NodeID) Lane {
	h.looked++
	if h.lanes[to] == nil {
		h.lanes[to] = new(laneStub)
	}
	return h.lanes[to]
}

// taken returns what was appended to the lane to a node since the last call, decoded.
func (h *hostStub) taken(t *testing.T, to gossip.NodeID) (all []any) {
	t.Helper()
	for _, f := range h.lanes[to].frames {
		item, err := wire.DecodeItem(f, h.now)
		require.NoError(t, err)
		switch m := item.(type) {
		case *wire.Acks:
			var list []protocol.Ack
			require.NoError(t, m.Each(func(a protocol.Ack) { list = append(list, a) }))
			item = list
		case *wire.Run:
			item = messagesOf(t, m)
		case *wire.Batch:
			var list []string
			refused, err := m.Parts(&h.lanes[to].numbers, func(r *wire.Run) error {
				list = append(list, messagesOf(t, r)...)
				return nil
			})
			require.NoError(t, err)
			require.Zero(t, refused)
			item = list
		case *cell.Message:
			item = nameOf(m)
		}
		all = append(all, item)
	}
	h.lanes[to].frames = nil
	return all
}

// nameOf returns the shard, the number and the payload of a message.
func nameOf(m *cell.Message) string {
	return fmt.Sprintf("%s/%d:%d=%s", m.Kind, m.Shard, m.Seq, m.Payload)
}

// messagesOf returns the messages of a run.
func messagesOf(t *testing.T, r *wire.Run) (all []string) {
	t.Helper()
	require.NoError(t, r.Messages(0, cell.NewMessage, func(m *cell.Message) { all = append(all, nameOf(m)) }))
	return all
}

var base = protocol.Epoch{Born: 1, N: 1}

// newHost returns a node that hosts the two shards of each of two kinds.
func newHost() *hostStub { return newHostAt(node(1)) }

func newHostAt(self gossip.NodeID) *hostStub {
	h := newNodeAt(self)
	h.node.eachSlot(func(sl *Slot) {
		sl.Apply(protocol.SetRoute{Home: self, Epoch: base, Base: base})
		sl.Apply(protocol.StartHosting{Epoch: base, Base: base})
	})
	return h
}

// newNode returns a node with two kinds of two shards.
func newNode() *hostStub { return newNodeAt(node(1)) }

func newNodeAt(self gossip.NodeID) *hostStub {
	h := &hostStub{lanes: make(map[gossip.NodeID]*laneStub), now: 100}
	h.node = NewNode(Ports{
		Self: self, Clock: h, Standing: h, Members: h, Lane: h.lane,
		AwaitRoom: func(gossip.NodeID) { h.waited++ }, AcksDue: func() {},
		AfterFunc: func(time.Duration, func()) Timer { return time.AfterFunc(time.Hour, func() {}) },
		Crowded:   func(Class) bool { return false },
		Report:    func(string, protocol.ShardID, protocol.CellEvent) {},
		Notes: Notes{
			Malformed: func(gossip.NodeID, error) { h.malformed++ }, Misdirected: func() {}, Unsent: func(int) {},
			Forged: func(Forgery) {}, Dropped: func(cell.Drop) {},
		},
	})
	for _, kind := range []string{"a", "b"} {
		h.node.NewRegion(kind, 2, cell.Config{}, KindPorts{Work: func(Task) {}, Ended: func(*Slot) {}})
	}
	return h
}

// receive takes the first message of each of the four streams of an origin.
func (h *hostStub) receive(from gossip.NodeID) {
	for _, kind := range []string{"a", "b"} {
		for shard := range protocol.ShardID(2) {
			m := &cell.Message{Kind: kind, Shard: shard, Entity: "e", Origin: from, Base: base, Route: base, Seq: 1}
			h.node.Received(from, wire.AppendMessage(nil, m, h.now))
		}
	}
}

// acksFor returns the acknowledgements of a kind that follow receive.
func acksFor(kind string, clock machine.Instant) []protocol.Ack {
	return []protocol.Ack{{Kind: kind, Shard: 0, Base: base, Seq: 1, Clock: clock}, {Kind: kind, Shard: 1, Base: base, Seq: 1, Clock: clock}}
}

// A round has one envelope for each kind and origin, and the clock of the round. A node of an
// earlier version, or one with which no session has begun, gets an envelope for each shard.
func TestARoundOfAcknowledgementsIsOneEnvelope(t *testing.T) {
	h := newHost()
	h.node.Connected(node(2), protocol.VersionFrames)
	h.node.Connected(node(3), protocol.VersionFrames-1)
	for _, from := range []gossip.NodeID{node(2), node(3), node(4)} {
		h.receive(from)
	}
	h.now = 200
	h.node.Acknowledge()
	a, b := acksFor("a", 200), acksFor("b", 200)
	require.Equal(t, []any{a, b}, h.taken(t, node(2)))
	require.Equal(t, []any{a[0], a[1], b[0], b[1]}, h.taken(t, node(3)))
	require.Equal(t, []any{a[0], a[1], b[0], b[1]}, h.taken(t, node(4)))
	h.node.Acknowledge()
	require.Empty(t, h.taken(t, node(2)), "each acknowledgement is sent once")

	h.node.Disconnected(node(2)) // The next session may be with an older process.
	h.receive(node(2))
	h.node.Acknowledge()
	require.Len(t, h.taken(t, node(2)), 4)
}

// A round begins while the frame is read that gives an origin a quarter of a window to wait for, and
// acknowledges all that is due. The port is asked once for the rounds that begin with a delay.
func TestARoundBeginsBeforeAWindowIsFull(t *testing.T) {
	const window = 256 << 10
	h := newHost()
	asked := 0
	h.node.Ports.AcksDue = func() { asked++ }
	h.node.Connected(node(2), protocol.VersionFrames)
	h.node.Connected(node(3), protocol.VersionFrames)
	send := func(seq uint64, size int) {
		m := &cell.Message{Kind: "a", Entity: "e", Origin: node(2), Base: base, Route: base, Seq: seq, Payload: make([]byte, size)}
		h.node.Received(node(2), wire.AppendMessage(nil, m, h.now))
	}
	ack := func(seq uint64) []any {
		return []any{[]protocol.Ack{{Kind: "a", Shard: 0, Base: base, Seq: seq, Clock: h.now}}}
	}
	h.receive(node(3))
	send(1, window/4-1<<10)
	require.Empty(t, h.lanes[node(2)].frames, "what is left of the window is enough until the delay is over")
	send(2, 1<<10)
	require.Equal(t, ack(2), h.taken(t, node(2)))
	require.Equal(t, []any{acksFor("a", 100), acksFor("b", 100)}, h.taken(t, node(3)))
	send(3, 1)
	require.Empty(t, h.lanes[node(2)].frames, "what was acknowledged does not count again")
	require.Equal(t, 1, asked)
	h.node.Acknowledge()
	require.Equal(t, ack(3), h.taken(t, node(2)))
	send(4, 1)
	require.Equal(t, 2, asked, "the port is asked again after its round")
}

// A round of acknowledgements that finds the lane full waits in the backlog like any answer.
func TestARoundWaitsForTheLane(t *testing.T) {
	h := newHost()
	h.node.Connected(node(2), protocol.VersionFrames)
	h.receive(node(2))
	h.lanes[node(2)].err = transport.ErrFull
	h.node.Acknowledge()
	require.Equal(t, 2, h.waited, "for each of two kinds")
	h.lanes[node(2)].err = nil
	h.node.Flush(node(2))
	require.Equal(t, []any{acksFor("a", 100), acksFor("b", 100)}, h.taken(t, node(2)))
}

// A round of more acknowledgements than an envelope may have is several envelopes.
func TestALongRoundHasSeveralEnvelopes(t *testing.T) {
	const shards = 8000
	h := newHost()
	h.node.Connected(node(2), protocol.VersionFrames)
	h.node.NewRegion("many", shards, cell.Config{}, KindPorts{Work: func(Task) {}, Ended: func(*Slot) {}})
	h.node.ApplyAll("many", protocol.SetRoute{Home: node(1), Epoch: base, Base: base})
	h.node.ApplyAll("many", protocol.StartHosting{Epoch: base, Base: base})
	for shard := range protocol.ShardID(shards) {
		m := &cell.Message{Kind: "many", Shard: shard, Entity: "e", Origin: node(2), Base: base, Route: base, Seq: 1}
		h.node.Received(node(2), wire.AppendMessage(nil, m, h.now))
	}
	h.node.Acknowledge()
	for _, f := range h.lanes[node(2)].frames {
		require.Less(t, len(f), maxAckListBytes+1<<10)
	}
	acked := make(map[protocol.ShardID]bool)
	for _, list := range h.taken(t, node(2)) {
		for _, a := range list.([]protocol.Ack) {
			acked[a.Shard] = true
		}
	}
	require.Len(t, acked, shards)
}

// The lane to a node is looked up once, and again when its session has ended or it has refused
// an answer for good.
func TestTheLaneOfAnswersIsLookedUpOnce(t *testing.T) {
	h := newHost()
	ack := func() {
		h.receive(node(2))
		h.node.Acknowledge()
	}
	ack()
	ack()
	require.Equal(t, 1, h.looked)
	h.node.Disconnected(node(2))
	ack()
	require.Equal(t, 2, h.looked)
	h.lanes[node(2)].err = transport.ErrClosed
	ack()
	looked := h.looked
	ack()
	require.Greater(t, h.looked, looked)
}

// What is wrong in a round of acknowledgements ends it, and is counted.
func TestARoundThatIsCutShortIsCounted(t *testing.T) {
	h := newHost()
	h.receive(node(2))
	h.node.Connected(node(2), protocol.VersionFrames)
	h.node.Acknowledge()
	frame := h.lanes[node(2)].frames[0]
	var list wire.AckList
	list.Add(protocol.Ack{Shard: 1, Base: base, Seq: 1})
	whole := list.Append(nil, "a", 1)
	h.node.Received(node(2), whole)
	h.node.Received(node(2), frame)
	require.Zero(t, h.malformed)
	cut := append([]byte(nil), whole...)
	cut[len(cut)-1] |= 0x80 // The last number goes on, and there is nothing.
	h.node.Received(node(2), cut)
	require.Equal(t, 1, h.malformed)
}
