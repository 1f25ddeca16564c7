// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"errors"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/wire"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// Questions and answers as bytes: first their form with the tables of its fields, then how it is made and read. A field
// that a later version adds is passed over.

// ErrForeign is returned by [Codec.Append] for what is neither a [Question] nor an [Answer].
var ErrForeign = errors.New("sharding/survey: neither a question nor an answer")

// Codec is the codec of questions and answers. The zero value is ready for use.
type Codec struct{}

var _ machine.Codec = Codec{}

// The types of messages.
const (
	typeQuestion = 1
	typeAnswer   = 2
)

// form is a question or an answer on the wire. Items are counted in the first walk over a message, and read in a second
// one when the lists for them are made: all lists share the room that the bytes of the message give.
type form struct {
	typ, sort          uint8 // Of an answer: its fault.
	id                 uint64
	kind               string // Of an answer: its detail.
	limit              uint32 // In milliseconds.
	shard              uint32 // Of the cursor, as is entity.
	entity             string
	most               uint32 // Of an answer: how its node is.
	rate               uint32
	more               bool
	payload            []byte
	places, identities iter.Seq[item] // When it is written.
	lines              []string

	// When it is read: the message, its room, how many places it has with and without an epoch, and how many entities.
	in          []byte
	room        wire.Budget
	named, bare int
	entities    int
	item        item
}

func (m *form) fields(c *wire.Codec) {
	wire.Uint(c, 1, &m.typ, math.MaxUint8)
	wire.Uint(c, 2, &m.id, math.MaxUint64)
	wire.Uint(c, 3, &m.sort, math.MaxUint8)
	wire.Text(c, 4, &m.kind, LineBytes)
	wire.Uint(c, 5, &m.limit, uint64(LimitMax/time.Millisecond))
	wire.Uint(c, 6, &m.shard, math.MaxUint32)
	wire.Text(c, 7, &m.entity, protocol.MaxEntityBytes)
	wire.Uint(c, 8, &m.most, math.MaxUint32)
	wire.Uint(c, 9, &m.rate, math.MaxUint32)
	wire.Bool(c, 14, &m.more)
	wire.Data(c, 10, &m.payload, PayloadMax)
	if c.Reading() {
		wire.Stream(c, fieldPlace, &m.item, (*item).epochAlone, m.countPlace)
		wire.Row(c, fieldEntity, nil, m.countEntity)
	} else {
		m.write(c, fieldPlace, m.places)
		m.write(c, fieldEntity, m.identities)
	}
	wire.Texts(c, 13, &m.lines, LineBytes, LinesMax)
}

// The fields of a message with items.
const (
	fieldPlace  = 11
	fieldEntity = 12
)

// item is a shard or an entity on the wire.
type item struct {
	shard         protocol.ShardID
	epoch         protocol.Epoch
	flags         uint64
	first, second uint32
	text, entity  string
	since         time.Time

	named bool // While it is counted: it has an epoch.
}

func (i *item) fields(c *wire.Codec) {
	wire.Uint(c, 1, &i.shard, math.MaxUint32)
	wire.Row(c, fieldEpoch, i.appendEpoch, i.setEpoch)
	wire.Uint(c, 3, &i.flags, math.MaxUint64)
	wire.Uint(c, 4, &i.first, math.MaxUint32)
	wire.Uint(c, 5, &i.second, math.MaxUint32)
	wire.Clipped(c, 6, &i.text, LineBytes)
	wire.Text(c, 7, &i.entity, protocol.MaxEntityBytes)
	ms := max(0, i.since.UnixMilli())
	if wire.Int(c, 8, &ms, math.MaxInt64) && ms > 0 {
		i.since = time.UnixMilli(ms).UTC()
	}
}

// fieldEpoch is the field of an item with its epoch.
const fieldEpoch = 2

// epochAlone is the part of the table by which places are counted.
func (i *item) epochAlone(c *wire.Codec) {
	wire.Row(c, fieldEpoch, nil, func(*wire.Field) error {
		i.named = true
		return nil
	})
}

func (i *item) appendEpoch(dst []byte) []byte {
	if i.epoch.IsZero() {
		return dst
	}
	b, err := i.epoch.MarshalBinary()
	machine.Assert(err == nil, "an epoch has a byte form", "error", err)
	return wire.AppendBytes(dst, fieldEpoch, b)
}

func (i *item) setEpoch(f *wire.Field) error {
	b, err := f.Data(LineBytes)
	if err != nil {
		return err
	}
	if err := i.epoch.UnmarshalBinary(b); err != nil {
		return wire.Malformed("an epoch: %w", err)
	}
	return nil
}

// Append appends the encoding of a question or an answer.
func (Codec) Append(dst []byte, message any) ([]byte, error) {
	switch m := message.(type) {
	case Question:
		return wire.Append(dst, formOfQuestion(m), (*form).fields)
	case Answer:
		return wire.Append(dst, formOfAnswer(m), (*form).fields)
	default:
		return dst, ErrForeign
	}
}

func formOfQuestion(m Question) *form {
	return &form{
		typ: typeQuestion, id: m.ID, sort: uint8(m.Sort), kind: m.Kind, limit: uint32(m.Limit / time.Millisecond),
		shard: uint32(m.After.Shard), entity: m.After.ID, most: m.Most, rate: m.Rate, payload: m.Payload,
		places: func(yield func(item) bool) {
			for _, p := range m.Shards {
				yield(item{shard: p.Shard, epoch: p.Epoch})
			}
		},
	}
}

func formOfAnswer(m Answer) *form {
	f := &form{
		typ: typeAnswer, id: m.ID, sort: uint8(m.Fault), kind: wire.Clip(m.Detail, LineBytes),
		most: uint32(bits(m.Standing, m.Drained, m.Proxy)), more: m.More,
		places: func(yield func(item) bool) {
			for _, s := range m.Shards {
				yield(item{shard: s.Shard, epoch: s.Epoch, flags: bits(s.Stopping), first: s.Entities, second: s.Stuck, text: s.Waits})
			}
			for _, t := range m.Told {
				yield(item{shard: t.Shard, flags: bits(t.Away, t.Cut), first: t.Reached, second: t.Full})
			}
		},
		identities: func(yield func(item) bool) {
			for _, e := range m.Entities {
				yield(item{shard: e.At.Shard, entity: e.At.ID, flags: bits(e.Stuck), first: e.Waiting, text: e.State, since: e.Since})
			}
		},
	}
	for _, l := range m.Lines {
		if l = wire.Clip(l, LineBytes); l != "" {
			f.lines = append(f.lines, l)
		}
	}
	return f
}

// write writes the items of a list.
func (m *form) write(c *wire.Codec, n wire.Number, all iter.Seq[item]) {
	if all == nil {
		return
	}
	for i := range all {
		m.item = i
		wire.Stream(c, n, &m.item, (*item).fields, nil)
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

// Decode returns the question or the answer that b holds. It keeps no part of b.
func (Codec) Decode(b []byte) (any, error) {
	c := &form{in: b, room: wire.BudgetOf(b)}
	if err := wire.ReadIn(&c.room, b, c, (*form).fields); err != nil {
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

func (m *form) countPlace(p *item) error {
	if m.named+m.bare >= 2*protocol.MaxShards {
		return wire.Malformed("more than %d items", 2*protocol.MaxShards)
	}
	if p.named {
		m.named++
	} else {
		m.bare++
	}
	return nil
}

func (m *form) countEntity(*wire.Field) error {
	if m.entities++; m.entities > MostEntities {
		return wire.Malformed("more than %d items", MostEntities)
	}
	return nil
}

// each reads the items in the fields of a number.
func (m *form) each(n wire.Number, visit func(*item) error) error {
	return wire.ReadIn(&m.room, m.in, m, func(m *form, c *wire.Codec) { wire.Stream(c, n, &m.item, (*item).fields, visit) })
}

func (m *form) question() (any, error) {
	q := Question{
		ID: m.id, Sort: Sort(m.sort), Kind: m.kind, Limit: time.Duration(m.limit) * time.Millisecond,
		After: Cursor{protocol.ShardID(m.shard), m.entity}, Most: min(m.most, MostEntities), Rate: m.rate, Payload: m.payload,
	}
	if q.Sort == 0 || q.Sort > sorts || q.Kind == "" || len(q.Kind) > protocol.MaxKindBytes || !gossip.IsName(q.Kind) || q.Limit == 0 {
		return nil, wire.Malformed("a question of sort %d about %q within %v", q.Sort, wire.Clip(q.Kind, 64), q.Limit)
	}
	var err error
	if q.Shards, err = wire.List[Place](&m.room, m.named); err != nil {
		return nil, err
	}
	err = m.each(fieldPlace, func(p *item) error {
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
func (m *form) answer() (any, error) {
	a := Answer{
		ID: m.id, Fault: Fault(m.sort), Detail: m.kind, More: m.more, Lines: m.lines,
		Standing: m.most&1 != 0, Drained: m.most&2 != 0, Proxy: m.most&4 != 0,
	}
	if a.Lines = slices.DeleteFunc(a.Lines, func(l string) bool { return l == "" }); len(a.Lines) == 0 {
		a.Lines = nil
	}
	if a.Fault >= faults {
		a.Fault = FaultOther
	}
	if err := errors.Join(m.addPlaces(&a), m.addEntities(&a)); err != nil {
		return nil, err
	}
	return a, nil
}

// addPlaces adds what is said of shards.
func (m *form) addPlaces(a *Answer) (err error) {
	if a.Told, err = wire.List[Told](&m.room, m.bare); err != nil {
		return err
	}
	if a.Shards, err = wire.List[Shard](&m.room, m.named); err != nil {
		return err
	}
	return m.each(fieldPlace, func(p *item) error {
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
func (m *form) addEntities(a *Answer) (err error) {
	if a.Entities, err = wire.List[Entity](&m.room, m.entities); err != nil {
		return err
	}
	return m.each(fieldEntity, func(e *item) error {
		if e.entity == "" {
			return wire.Malformed("an entity without an id")
		}
		a.Entities = append(a.Entities, Entity{
			At: Cursor{e.shard, e.entity}, State: e.text, Since: e.since, Waiting: e.first, Stuck: e.flags&1 != 0,
		})
		return nil
	})
}
