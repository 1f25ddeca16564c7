// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"time"

	"github.com/quorate/quorate/gossip"
)

// Instant is a point on the monotonic clock of one process, in nanoseconds since an
// origin that the process chooses. Instants of two processes must never be compared.
// The zero Instant is the origin.
type Instant int64

// Never is later than every instant that a clock returns.
const Never = Instant(1<<63 - 1)

// Add returns the instant d after i. It saturates at [Never].
func (i Instant) Add(d time.Duration) Instant {
	sum := i + Instant(d)
	if d > 0 && sum < i {
		return Never
	}
	return sum
}

// Sub returns the time that passed from j to i.
func (i Instant) Sub(j Instant) time.Duration { return time.Duration(i - j) }

// Time maps i onto the time line of package time, for collaborators that only subtract
// times. The result has no meaning as a wall time.
func (i Instant) Time() time.Time { return time.Unix(0, int64(i)).UTC() }

// Now is the time of one step: the monotonic instant, by which everything is measured,
// and the wall time, for people and for tombstones.
type Now struct {
	Mono Instant
	Wall time.Time
}

// Input is what a machine is fed: one of the inputs of this package, an event that
// another component of the node published, or a command of the machine's own package.
// A machine ignores inputs of types that it does not know.
type Input any

// Machine is a protocol that does no I/O.
type Machine interface {
	// Step feeds one input to the machine. What must happen as a consequence
	// is appended to out, in order. Step never blocks and keeps neither out
	// nor a mutable part of in. The driver calls it from one goroutine.
	Step(now Now, in Input, out *Outbox)
}

// Received is the input for a message from another node. Message was decoded by the
// component's codec, and belongs to the machine.
type Received struct {
	From    gossip.NodeID
	Message any
}

// Fired is the input for a timer that was armed and has come due. A timer
// that was disarmed or armed anew in the meantime does not fire.
type Fired struct{ Timer Timer }

// Called is the answer to a [Call]. At most one of Result and Err is not nil. The
// answer may come after the machine has stopped waiting for it; the machine compares
// ID.
type Called struct {
	ID     CallID
	Result any
	Err    error
}

// Started is the first input of every component, fed once before any other.
type Started struct{}

// Timer names a timer of one machine. It must be comparable; two equal values
// are the same timer. Small structs of the machine's own package are usual.
type Timer any

// CallID numbers the calls of one machine. Zero is none.
type CallID uint64

// Service is the number under which a component's messages travel. It is part
// of the wire and never reused. Zero is none.
type Service uint16

// Lane says which connection to a peer a message takes.
type Lane uint8

// The lanes. Bulk traffic never delays control traffic, because each lane is
// a connection of its own.
const (
	LaneControl Lane = iota + 1 // Heartbeats, gossip, joins, coordination.
	LaneMessage                 // Messages of entities.
	LaneBulk                    // Large values.
)

// String returns the name of the lane.
func (l Lane) String() string {
	switch l {
	case LaneControl:
		return "control"
	case LaneMessage:
		return "message"
	case LaneBulk:
		return "bulk"
	default:
		return "none"
	}
}
