// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/remembering"
	"github.com/quorate/quorate/transport"
)

// Ports are what a node gives to the runtime. All are set before the first kind, but those
// of which the comment says that they may be nil.
type Ports struct {
	Self     gossip.NodeID
	Clock    Clock
	Standing Standing
	Members  Members

	// Lane returns the lane of messages to a node.
	Lane func(to gossip.NodeID) Lane
	// AwaitRoom has [Node.Flush] called once the lane to a node has room again. Further
	// calls for the same node until then do nothing.
	AwaitRoom func(to gossip.NodeID)
	// AcksDue has [Node.Acknowledge] called after a short time. It is not called again
	// before that.
	AcksDue func()
	// AfterFunc calls f after a time, without the lock of a slot.
	AfterFunc func(after time.Duration, f func()) Timer
	// Waiter makes what is called when there is room for a message that found none.
	Waiter func(m *cell.Message) Waiter

	// Crowded reports whether jobs of a class wait for a worker.
	Crowded func(Class) bool

	// Report hands what has happened to a shard to the control machine.
	Report func(kind string, shard protocol.ShardID, event protocol.CellEvent)
	Notes  Notes
	// Watcher sees everything that cells ask for. It may be nil.
	Watcher Watcher
}

// KindPorts are what a kind gives to the runtime. Decode and Store may be nil; no other field may.
type KindPorts struct {
	// Work has a worker do a task: it is for one entity, which has no other.
	Work func(Task)
	// Decode returns the value of a message to an entity, another value that says why it cannot be decoded, or nil if
	// whoever handles the message is to decode it. It is called without the lock of a slot, must not keep the payload,
	// and runs code of the program. With nil whoever handles a message decodes it.
	Decode func(entity string, payload []byte) any
	// Ended says that the hosting of a shard has ended, and with it what its entities wait
	// for.
	Ended func(sl *Slot)
	// Store calls the store of remembered entities, as Remembering says; nil: none are remembered.
	Store       StoreCalls
	Remembering remembering.Config
}

// Clock reads the clock of the node.
type Clock interface{ Instant() machine.Instant }

// Standing tells whether the node has standing at a moment, and whether a reading of the
// clock that may have been spared proves it.
type Standing interface {
	HeldAt(now machine.Instant) bool
	HeldThrough(r machine.Reading) bool
}

// Members knows who is a member of the cluster at present, and who has been.
type Members interface {
	IsMember(node gossip.NodeID) bool
	WasMember(node gossip.NodeID) bool
}

// Lane is what the runtime uses of a [transport.Lane]. It may call the f of Defer without
// the lock of a slot only.
type Lane interface {
	Append(s transport.Service, encode func(dst []byte) []byte) error
	Track(s transport.Service, encode func(dst []byte) []byte) (p transport.Passage, place uint64, err error)
	Defer(f func()) bool
}

// Timer is a timer that Ports.AfterFunc has made; [time.Timer] says what its methods do.
type Timer interface {
	Reset(after time.Duration) bool
	Stop() bool
}

// Waiter is a sender that waits for room. Room is called once, when room is kept for its
// message.
type Waiter interface{ Room() }

// Asker is told, once and with mu of its slot held, how its ask has ended.
type Asker interface {
	// Answer: by a reply.
	Answer(reply *protocol.Reply)
	// End: without a reply, at the deadline if cause is nil, else by [Region.EndAsks]. If
	// back, the message was taken back, and no entity will process it.
	End(back bool, cause error)
}

// Notes hear of what has to be counted or logged.
type Notes struct {
	// Malformed: a frame could not be decoded. Misdirected: a frame is for a kind or a shard
	// that this node does not have. Both are called without a lock.
	Malformed   func(from gossip.NodeID, err error)
	Misdirected func()
	Forged      func(Forgery)
	Dropped     func(why cell.Drop)
	// Lost: a tell of this node failed after it was accepted. The entity may be unknown, and
	// is empty then.
	Lost func(kind, entity string, code protocol.Code, detail string)
	// Unsent: so many replies or acknowledgements could not be sent.
	Unsent func(frames int)
	// Forgotten: the memory of an entity did not come along in a move.
	Forgotten func(kind string, f protocol.MemoryLost)
	// Stuck: an entity does not return. Returned: it has.
	Stuck    func(sl *Slot, e *cell.Entity)
	Returned func()
}

// Forgery is a frame that a member sent in a name that is not its own.
type Forgery struct {
	From  gossip.NodeID
	Fault cell.Fault
	Kind  string
	Shard protocol.ShardID
	// Innocent reports whether the frame was in order, by what is known at the time of the
	// call. It must not be called with the lock of a slot held.
	Innocent func() bool
}

// Watcher sees the messages and the actions of cells, for checks that stand apart from
// them. It must not change any.
type Watcher interface {
	// Comes: a message of another node is handed to its cell next.
	Comes(m *cell.Message)
	// Acts: the i-th of the actions of a step is carried out next.
	Acts(shard protocol.ShardID, actions []cell.Action, i int)
	// Acted: all actions of a step have been carried out.
	Acted(shard protocol.ShardID, c *cell.Cell)
}
