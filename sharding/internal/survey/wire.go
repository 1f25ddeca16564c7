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

// Questions and answers as bytes: first the record that both are written as, with the tables of its fields; then how it
// is made and read. Fields that a later version adds are skipped.

// ErrForeign is returned by [Codec.Append] for a value that is neither a [Question] nor an [Answer].
var ErrForeign = errors.New("sharding/survey: neither a question nor an answer")

// Codec is the codec of questions and answers. The zero value is ready for use.
type Codec struct{}

var _ machine.Codec = Codec{}

// The types of messages.
const (
	typeQuestion = 1
	typeAnswer   = 2
)

// record is a question or an answer on the wire. It is read twice: its items are counted first, and read once the lists
// for them are made. All lists together take memory in proportion to the bytes of the message.
type record struct {
	typ, questionType  uint8 // In an answer, questionType is its fault.
	id                 uint64
	kind               string // In an answer: its detail.
	limit              uint32 // In milliseconds.
	shard              uint32 // Of the cursor, as is entity.
	entity             string
	most               uint32 // In an answer: the flags of its node.
	rate               uint32
	more               bool
	payload            []byte
	places, identities iter.Seq[item] // When it is written.
	lines              []string

	// While it is read: the message, the memory that is left for lists, how many places it has with and without an
	// epoch, and how many entities.
	in                      []byte
	room                    wire.Budget
	withEpoch, withoutEpoch int
	entities                int
	item                    item
}

func (m *record) fields(c *wire.Codec) {
	wire.Uint(c, 1, &m.typ, math.MaxUint8)
	wire.Uint(c, 2, &m.id, math.MaxUint64)
	wire.Uint(c, 3, &m.questionType, math.MaxUint8)
	wire.Text(c, 4, &m.kind, MaxLineBytes)
	wire.Uint(c, 5, &m.limit, uint64(MaxLimit/time.Millisecond))
	wire.Uint(c, 6, &m.shard, math.MaxUint32)
	wire.Text(c, 7, &m.entity, protocol.MaxEntityBytes)
	wire.Uint(c, 8, &m.most, math.MaxUint32)
	wire.Uint(c, 9, &m.rate, math.MaxUint32)
	wire.Bool(c, 14, &m.more)
	wire.Data(c, 10, &m.payload, MaxPayloadBytes)
	if c.Reading() {
		wire.Stream(c, fieldPlace, &m.item, (*item).epochAlone, m.countPlace)
		wire.Row(c, fieldEntity, nil, m.countEntity)
	} else {
		m.write(c, fieldPlace, m.places)
		m.write(c, fieldEntity, m.identities)
	}
	wire.Texts(c, 13, &m.lines, MaxLineBytes, MaxLines)
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

	hasEpoch bool // While it is counted: it has an epoch.
}

func (i *item) fields(c *wire.Codec) {
	wire.Uint(c, 1, &i.shard, math.MaxUint32)
	wire.Row(c, fieldEpoch, i.appendEpoch, i.setEpoch)
	wire.Uint(c, 3, &i.flags, math.MaxUint64)
	wire.Uint(c, 4, &i.first, math.MaxUint32)
	wire.Uint(c, 5, &i.second, math.MaxUint32)
	wire.Clipped(c, 6, &i.text, MaxLineBytes)
	wire.Text(c, 7, &i.entity, protocol.MaxEntityBytes)
	ms := max(0, i.since.UnixMilli())
	if wire.Int(c, 8, &ms, math.MaxInt64) && ms > 0 {
		i.since = time.UnixMilli(ms).UTC()
	}
}

// fieldEpoch is the field of an item with its epoch.
const fieldEpoch = 2

// epochAlone is the table by which places are counted: it only looks whether an item has an epoch.
func (i *item) epochAlone(c *wire.Codec) {
	wire.Row(c, fieldEpoch, nil, func(*wire.Field) error {
		i.hasEpoch = true
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
	b, err := f.Data(MaxLineBytes)
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
		return wire.Append(dst, formOfQuestion(m), (*record).fields)
	case Answer:
		return wire.Append(dst, formOfAnswer(m), (*record).fields)
	default:
		return dst, ErrForeign
	}
}

func formOfQuestion(m Question) *record {
	return &record{
		typ: typeQuestion, id: m.ID, questionType: uint8(m.Type), kind: m.Kind, limit: uint32(m.Limit / time.Millisecond),
		shard: uint32(m.After.Shard), entity: m.After.ID, most: m.Most, rate: m.Rate, payload: m.Payload,
		places: func(yield func(item) bool) {
			for _, p := range m.Shards {
				yield(item{shard: p.Shard, epoch: p.Epoch})
			}
		},
	}
}

func formOfAnswer(m Answer) *record {
	f := &record{
		typ: typeAnswer, id: m.ID, questionType: uint8(m.Fault), kind: wire.Clip(m.Detail, MaxLineBytes),
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
		if l = wire.Clip(l, MaxLineBytes); l != "" {
			f.lines = append(f.lines, l)
		}
	}
	return f
}

// write writes the items of a list as fields with a number.
func (m *record) write(c *wire.Codec, n wire.Number, all iter.Seq[item]) {
	if all == nil {
		return
	}
	for i := range all {
		m.item = i
		wire.Stream(c, n, &m.item, (*item).fields, nil)
	}
}

// bits returns the number whose bits are the flags, the first one the lowest.
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
	c := &record{in: b, room: wire.BudgetOf(b)}
	if err := wire.ReadIn(&c.room, b, c, (*record).fields); err != nil {
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

func (m *record) countPlace(p *item) error {
	if m.withEpoch+m.withoutEpoch >= 2*protocol.MaxShards {
		return wire.Malformed("more than %d items", 2*protocol.MaxShards)
	}
	if p.hasEpoch {
		m.withEpoch++
	} else {
		m.withoutEpoch++
	}
	return nil
}

func (m *record) countEntity(*wire.Field) error {
	if m.entities++; m.entities > MaxPageEntities {
		return wire.Malformed("more than %d items", MaxPageEntities)
	}
	return nil
}

// each reads the items in the fields with a number.
func (m *record) each(n wire.Number, visit func(*item) error) error {
	return wire.ReadIn(&m.room, m.in, m, func(m *record, c *wire.Codec) { wire.Stream(c, n, &m.item, (*item).fields, visit) })
}

func (m *record) question() (any, error) {
	q := Question{
		ID: m.id, Type: QuestionType(m.questionType), Kind: m.kind, Limit: time.Duration(m.limit) * time.Millisecond,
		After: Cursor{protocol.ShardID(m.shard), m.entity}, Most: min(m.most, MaxPageEntities), Rate: m.rate, Payload: m.payload,
	}
	if q.Type == 0 || q.Type > lastType || q.Kind == "" || len(q.Kind) > protocol.MaxKindBytes || !gossip.IsName(q.Kind) || q.Limit == 0 {
		return nil, wire.Malformed("a question of sort %d about %q within %v", q.Type, wire.Clip(q.Kind, 64), q.Limit)
	}
	var err error
	if q.Shards, err = wire.List[Place](&m.room, m.withEpoch); err != nil {
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

// answer makes an answer of the fields. Items without an epoch are [Told]. A fault of a later version becomes
// [FaultOther].
func (m *record) answer() (any, error) {
	a := Answer{
		ID: m.id, Fault: Fault(m.questionType), Detail: m.kind, More: m.more, Lines: m.lines,
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

// addPlaces adds the items about shards.
func (m *record) addPlaces(a *Answer) (err error) {
	if a.Told, err = wire.List[Told](&m.room, m.withoutEpoch); err != nil {
		return err
	}
	if a.Shards, err = wire.List[Shard](&m.room, m.withEpoch); err != nil {
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

// addEntities adds the items about entities.
func (m *record) addEntities(a *Answer) (err error) {
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
