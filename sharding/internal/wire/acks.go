// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"math"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/wire"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// numberAcks is the field of the acknowledgements of a round.
const numberAcks = 20

// AckList collects acknowledgements that go to one node in one envelope. The zero value is
// empty. An AckList is for one goroutine at a time.
type AckList struct {
	numbers []byte
	base    protocol.Epoch // The base of the last acknowledgement.
}

// Add puts an acknowledgement into the list. Its kind and its clock are those of the
// envelope.
func (l *AckList) Add(a protocol.Ack) {
	if a.Base == l.base {
		l.numbers = binary.AppendUvarint(l.numbers, uint64(a.Shard)<<1)
	} else {
		l.base = a.Base
		l.numbers = binary.AppendUvarint(l.numbers, uint64(a.Shard)<<1|1)
		for _, v := range [...]uint64{uint64(a.Base.Born), uint64(a.Base.Term.UpNumber), uint64(a.Base.Term.UID), a.Base.Term.Start, a.Base.N} {
			l.numbers = binary.AppendUvarint(l.numbers, v)
		}
	}
	l.numbers = binary.AppendUvarint(l.numbers, a.Seq)
}

// Bytes returns how many bytes the list has.
func (l *AckList) Bytes() int { return len(l.numbers) }

// Reset empties the list and keeps its memory.
func (l *AckList) Reset() { *l = AckList{numbers: l.numbers[:0]} }

// Append appends the envelope of the list. The clock is that of the sender.
func (l *AckList) Append(dst []byte, kind string, clock machine.Instant) []byte {
	dst = wire.AppendUint(dst, 1, typeAcks)
	dst = wire.AppendString(dst, 2, kind)
	dst = wire.AppendUint(dst, 8, uint64(clock))
	return wire.AppendBytes(dst, numberAcks, l.numbers)
}

// Acks is an envelope with acknowledgements of several shards of one kind. It refers to the
// bytes that it was decoded from.
type Acks struct {
	Kind  string
	Clock machine.Instant

	numbers []byte
}

// Each calls f with each acknowledgement, in order. An error ends the list; the
// acknowledgements before it were good.
func (a *Acks) Each(f func(protocol.Ack)) error {
	r := numbers{b: a.numbers}
	ack := protocol.Ack{Kind: a.Kind, Clock: a.Clock}
	for len(r.b) > 0 {
		head := r.next(math.MaxUint32<<1 | 1)
		ack.Shard = protocol.ShardID(head >> 1)
		if head&1 != 0 {
			ack.Base = protocol.Epoch{Born: int64(r.next(math.MaxInt64))}
			ack.Base.Term.UpNumber = gossip.UpNumber(r.next(math.MaxUint64))
			ack.Base.Term.UID = gossip.UID(r.next(math.MaxUint64))
			ack.Base.Term.Start, ack.Base.N = r.next(math.MaxUint64), r.next(math.MaxUint64)
		}
		ack.Seq = r.next(math.MaxUint64)
		if r.bad {
			return wire.Malformed("an acknowledgement that is cut off or out of range")
		}
		f(ack)
	}
	return nil
}

// numbers reads varints. After bytes that are no varint, or a number out of range, bad is set
// and nothing is left.
type numbers struct {
	b   []byte
	bad bool
}

func (r *numbers) next(most uint64) uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v > most {
		r.b, r.bad = nil, true
		return 0
	}
	r.b = r.b[n:]
	return v
}
