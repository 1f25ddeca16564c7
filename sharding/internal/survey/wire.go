// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"errors"
	"math"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/wire"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// Questions and answers as bytes: fields with numbers, as in all messages between nodes. A field that a later version
// adds is passed over.

// ErrForeign is returned by [Codec.Append] for what is neither a [Question] nor an [Answer].
var ErrForeign = errors.New("sharding/survey: neither a question nor an answer")

// Codec is the codec of questions and answers. The zero value is ready for use.
type Codec struct{}

var _ machine.Codec = Codec{}

// The fields of a message.
const (
	fieldType     = 1 // 1 for a question, 2 for an answer.
	fieldID       = 2
	fieldSort     = 3 // Of a question; of an answer: its fault.
	fieldKind     = 4 // Of a question; of an answer: its detail.
	fieldLimit    = 5 // In milliseconds.
	fieldShard    = 6 // Of the cursor.
	fieldEntity   = 7 // Of the cursor.
	fieldMost     = 8 // Of a question; of an answer: how its node is.
	fieldRate     = 9
	fieldPayload  = 10
	fieldPlace    = 11
	fieldEntities = 12
	fieldLine     = 13
	fieldMore     = 14

	typeQuestion = 1
	typeAnswer   = 2
)

// Append appends the encoding of a question or an answer.
func (Codec) Append(dst []byte, message any) ([]byte, error) {
	switch m := message.(type) {
	case Question:
		dst = wire.AppendUint(wire.AppendUint(wire.AppendUint(dst, fieldType, typeQuestion), fieldID, m.ID), fieldSort, uint64(m.Sort))
		dst = wire.AppendUint(wire.AppendString(dst, fieldKind, m.Kind), fieldLimit, uint64(m.Limit/time.Millisecond))
		dst = wire.AppendString(wire.AppendUint(dst, fieldShard, uint64(m.After.Shard)), fieldEntity, m.After.ID)
		dst = wire.AppendUint(wire.AppendUint(dst, fieldMost, uint64(m.Most)), fieldRate, uint64(m.Rate))
		dst = wire.AppendBytes(dst, fieldPayload, m.Payload)
		for _, p := range m.Shards {
			dst = item{shard: p.Shard, epoch: p.Epoch}.append(dst, fieldPlace)
		}
		return dst, nil
	case Answer:
		dst = wire.AppendUint(wire.AppendUint(wire.AppendUint(dst, fieldType, typeAnswer), fieldID, m.ID), fieldSort, uint64(m.Fault))
		dst = wire.AppendString(dst, fieldKind, wire.Clip(m.Detail, LineBytes))
		dst = wire.AppendBool(wire.AppendUint(dst, fieldMost, bits(m.Standing, m.Drained, m.Proxy)), fieldMore, m.More)
		for _, s := range m.Shards {
			dst = item{shard: s.Shard, epoch: s.Epoch, flags: bits(s.Stopping), first: s.Entities, second: s.Stuck, text: s.Waits}.append(dst, fieldPlace)
		}
		for _, t := range m.Told {
			dst = item{shard: t.Shard, flags: bits(t.Away, t.Cut), first: t.Reached, second: t.Full}.append(dst, fieldPlace)
		}
		for _, e := range m.Entities {
			dst = item{shard: e.At.Shard, entity: e.At.ID, flags: bits(e.Stuck), first: e.Waiting, text: e.State, since: e.Since}.append(dst, fieldEntities)
		}
		for _, l := range m.Lines {
			dst = wire.AppendString(dst, fieldLine, wire.Clip(l, LineBytes))
		}
		return dst, nil
	default:
		return dst, ErrForeign
	}
}

// bits makes a number of flags, the first of which is its lowest bit.
func bits(flags ...bool) (n uint64) {
	for i, f := range flags {
		if f {
			n |= 1 << i
		}
	}
	return n
}

// item is a shard or an entity on the wire.
type item struct {
	shard         protocol.ShardID
	epoch         protocol.Epoch
	flags         uint64
	first, second uint32
	text, entity  string
	since         time.Time
}

func (i item) append(dst []byte, n wire.Number) []byte {
	dst, at := wire.Begin(dst, n)
	dst = wire.AppendUint(dst, 1, uint64(i.shard))
	if !i.epoch.IsZero() {
		b, err := i.epoch.MarshalBinary()
		machine.Assert(err == nil, "an epoch has a byte form", "error", err)
		dst = wire.AppendBytes(dst, 2, b)
	}
	dst = wire.AppendUint(wire.AppendUint(wire.AppendUint(dst, 3, i.flags), 4, uint64(i.first)), 5, uint64(i.second))
	dst = wire.AppendString(wire.AppendString(dst, 6, wire.Clip(i.text, LineBytes)), 7, i.entity)
	return wire.End(wire.AppendUint(dst, 8, uint64(max(0, i.since.UnixMilli()))), at)
}

func (i *item) set(f *wire.Field) error {
	switch f.Number {
	case 1:
		return wire.Set(&i.shard, f, math.MaxUint32)
	case 2:
		b, err := f.Data(LineBytes)
		if err != nil {
			return err
		}
		if err := i.epoch.UnmarshalBinary(b); err != nil {
			return wire.Malformed("an epoch: %w", err)
		}
		return nil
	case 3:
		return wire.Set(&i.flags, f, math.MaxUint64)
	case 4:
		return wire.Set(&i.first, f, math.MaxUint32)
	case 5:
		return wire.Set(&i.second, f, math.MaxUint32)
	case 6:
		return wire.SetText(&i.text, f, LineBytes)
	case 7:
		return wire.SetText(&i.entity, f, protocol.MaxEntityBytes)
	case 8:
		ms, err := f.Uint(math.MaxInt64)
		if ms > 0 {
			i.since = time.UnixMilli(int64(ms)).UTC()
		}
		return err
	default:
		return nil
	}
}

// fields holds the fields of a message. Items are counted first, and read when the lists for them are made: all lists
// share the room that the bytes of the message give.
type fields struct {
	in                 []byte
	room               wire.Room
	typ, sort          uint8
	id, most           uint64
	kind, entity       string
	limit, rate, shard uint32
	payload            []byte
	named, bare        int // Places with and without an epoch.
	entities           int
	lines              []string
	more               bool
}

// Decode returns the question or the answer that b holds. It keeps no part of b.
func (Codec) Decode(b []byte) (any, error) {
	c := fields{in: b, room: wire.RoomOf(b)}
	if err := wire.Each(b, c.set); err != nil {
		return nil, err
	}
	switch c.typ {
	case typeQuestion:
		return c.question()
	case typeAnswer:
		return c.answer()
	default:
		return nil, wire.Malformed("a message of type %d", c.typ)
	}
}

func (c *fields) set(f *wire.Field) error {
	switch f.Number {
	case fieldType:
		return wire.Set(&c.typ, f, math.MaxUint8)
	case fieldID:
		return wire.Set(&c.id, f, math.MaxUint64)
	case fieldSort:
		return wire.Set(&c.sort, f, math.MaxUint8)
	case fieldKind:
		return wire.SetText(&c.kind, f, LineBytes)
	case fieldLimit:
		return wire.Set(&c.limit, f, uint64(LimitMax/time.Millisecond))
	case fieldShard:
		return wire.Set(&c.shard, f, math.MaxUint32)
	case fieldEntity:
		return wire.SetText(&c.entity, f, protocol.MaxEntityBytes)
	case fieldMost:
		return wire.Set(&c.most, f, math.MaxUint32)
	case fieldRate:
		return wire.Set(&c.rate, f, math.MaxUint32)
	case fieldPayload:
		p, err := f.Data(PayloadMax)
		c.payload = append([]byte(nil), p...) // Nil for an empty one, which is not written either.
		return err
	case fieldPlace:
		return c.countPlace(f)
	case fieldEntities:
		if c.entities++; c.entities > MostEntities {
			return wire.Malformed("more than %d items", MostEntities)
		}
		return nil
	case fieldLine:
		return c.addLine(f)
	case fieldMore:
		return wire.SetBool(&c.more, f)
	default:
		return nil
	}
}

// countPlace counts a place, of which only the presence of an epoch is looked at.
func (c *fields) countPlace(f *wire.Field) error {
	if c.named+c.bare >= 2*protocol.MaxShards {
		return wire.Malformed("more than %d items", 2*protocol.MaxShards)
	}
	named := false
	err := f.Each(func(f *wire.Field) error {
		named = named || f.Number == 2
		return nil
	})
	if named {
		c.named++
	} else {
		c.bare++
	}
	return err
}

// addLine adds a line, unless it is empty.
func (c *fields) addLine(f *wire.Field) error {
	var line string
	err := wire.SetText(&line, f, LineBytes)
	if err != nil || line == "" {
		return err
	}
	if c.lines = append(c.lines, line); len(c.lines) > LinesMax {
		return wire.Malformed("more than %d lines", LinesMax)
	}
	return nil
}

// each reads the items in the fields of a number.
func (c *fields) each(n wire.Number, visit func(*item) error) error {
	var i item
	return wire.Each(c.in, func(f *wire.Field) error {
		if f.Number != n {
			return nil
		}
		i = item{}
		if err := f.Each(i.set); err != nil {
			return err
		}
		return visit(&i)
	})
}

func (c *fields) question() (any, error) {
	q := Question{
		ID: c.id, Sort: Sort(c.sort), Kind: c.kind, Limit: time.Duration(c.limit) * time.Millisecond,
		After: Cursor{protocol.ShardID(c.shard), c.entity}, Most: uint32(min(c.most, MostEntities)), Rate: c.rate, Payload: c.payload,
	}
	if q.Sort == 0 || q.Sort > sorts || q.Kind == "" || len(q.Kind) > protocol.MaxKindBytes || !gossip.IsName(q.Kind) || q.Limit == 0 {
		return nil, wire.Malformed("a question of sort %d about %q within %v", q.Sort, wire.Clip(q.Kind, 64), q.Limit)
	}
	var err error
	if q.Shards, err = wire.List[Place](&c.room, c.named); err != nil {
		return nil, err
	}
	err = c.each(fieldPlace, func(p *item) error {
		if p.epoch.IsZero() {
			return wire.Malformed("shard %d without an epoch", p.shard)
		}
		q.Shards = append(q.Shards, Place{p.shard, p.epoch})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return q, nil
}

// answer makes an answer of the fields. Items without an epoch are what became of shards that were told. A fault of a
// later version is one that only its detail describes.
func (c *fields) answer() (any, error) {
	a := Answer{
		ID: c.id, Fault: Fault(c.sort), Detail: c.kind, More: c.more, Lines: c.lines,
		Standing: c.most&1 != 0, Drained: c.most&2 != 0, Proxy: c.most&4 != 0,
	}
	if a.Fault >= faults {
		a.Fault = FaultOther
	}
	if err := errors.Join(c.addPlaces(&a), c.addEntities(&a)); err != nil {
		return nil, err
	}
	return a, nil
}

// addPlaces adds what is said of shards.
func (c *fields) addPlaces(a *Answer) (err error) {
	if a.Told, err = wire.List[Told](&c.room, c.bare); err != nil {
		return err
	}
	if a.Shards, err = wire.List[Shard](&c.room, c.named); err != nil {
		return err
	}
	return c.each(fieldPlace, func(p *item) error {
		switch {
		case !p.epoch.IsZero():
			a.Shards = append(a.Shards, Shard{Shard: p.shard, Epoch: p.epoch, Stopping: p.flags&1 != 0, Entities: p.first, Stuck: p.second, Waits: p.text})
		case len(a.Told) == cap(a.Told):
			return wire.Malformed("shard %d has an epoch that is none", p.shard)
		default:
			a.Told = append(a.Told, Told{Shard: p.shard, Away: p.flags&1 != 0, Cut: p.flags&2 != 0, Reached: p.first, Full: p.second})
		}
		return nil
	})
}

// addEntities adds what is said of entities.
func (c *fields) addEntities(a *Answer) (err error) {
	if a.Entities, err = wire.List[Entity](&c.room, c.entities); err != nil {
		return err
	}
	return c.each(fieldEntities, func(e *item) error {
		if e.entity == "" {
			return wire.Malformed("an entity without an id")
		}
		a.Entities = append(a.Entities, Entity{
			At: Cursor{e.shard, e.entity}, State: e.text, Since: e.since, Waiting: e.first, Stuck: e.flags&1 != 0,
		})
		return nil
	})
}
