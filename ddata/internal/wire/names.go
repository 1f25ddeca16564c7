// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"

	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/machine/wire"
)

// The names of types, and origins, are written once in a message, as fields of the body that come before the first
// value in which they are used; values refer to them by their places. A place is the index among the fields of names of
// types, or among those of origins, in the order in which they come: writing the fields of a body in the order of their
// numbers keeps the places.

// The fields of names, in each body that has entries or changes.
const (
	nameType   = 1
	nameOrigin = 2
)

// MaxTypeName is the greatest length of the name of a type in bytes.
const MaxTypeName = 1024

// maxLinear is up to how many origins the encoder searches a list, which is faster than a map.
const maxLinear = 16

// encoder appends one message. It keeps the first error.
type encoder struct {
	b       []byte
	err     error
	types   []string
	origins []crdt.Origin
	last    int                 // The place of the origin that was asked for last.
	places  map[crdt.Origin]int // The places of the origins, once there are more than a few.

	// The memory of types and origins as long as they are short, so that nothing is allocated for them.
	typesRoom   [4]string
	originsRoom [maxLinear]crdt.Origin
}

func newEncoder(dst []byte) *encoder {
	e := &encoder{b: dst}
	e.types, e.origins = e.typesRoom[:0], e.originsRoom[:0]
	return e
}

// end returns what was appended to dst.
func (e *encoder) end(dst []byte) ([]byte, error) {
	if e.err != nil {
		return dst, e.err
	}
	return e.b, nil
}

func (e *encoder) fail(err error) {
	if e.err == nil {
		e.err = err
	}
}

// typ returns the place of a type, and appends its name if it is new.
func (e *encoder) typ(t crdt.Type) int {
	if t == nil {
		e.fail(foreign("a value without a type"))
		return 0
	}
	name := t.Name()
	for i, known := range e.types {
		if known == name {
			return i
		}
	}
	if name == "" || len(name) > MaxTypeName {
		e.fail(foreign("a type with a name of %d bytes", len(name)))
	}
	e.types = append(e.types, name)
	e.b = wire.AppendString(e.b, nameType, name)
	return len(e.types) - 1
}

// origin returns the place of an origin, and appends it if it is new.
func (e *encoder) origin(o crdt.Origin) int {
	if e.last < len(e.origins) && e.origins[e.last] == o {
		return e.last
	}
	place, known := e.find(o)
	if !known {
		place = len(e.origins)
		e.origins = append(e.origins, o)
		if e.places != nil {
			e.places[o] = place
		}
		e.b = wire.AppendFixed64(e.b, nameOrigin, uint64(o))
	}
	e.last = place
	return place
}

func (e *encoder) find(o crdt.Origin) (place int, known bool) {
	if len(e.origins) <= maxLinear {
		for i, x := range e.origins {
			if x == o {
				return i, true
			}
		}
		return 0, false
	}
	if e.places == nil {
		e.places = make(map[crdt.Origin]int, 4*maxLinear)
		for i, x := range e.origins {
			e.places[x] = i
		}
	}
	place, known = e.places[o]
	return place, known
}

// decoder reads one message.
type decoder struct {
	types      Types
	in         []byte         // The body that is being read.
	known      []known        // The types that the message has named so far, by their places,
	origins    []crdt.Origin  // and the origins.
	missing    missingEntries // Of a [protocol.PullReply].
	delta      []byte         // Of a [protocol.Commit].
	unreadable int            // Values of known types that could not be read.
}

// known is a type that a message has named.
type known struct {
	name string
	typ  crdt.Type // Nil if this node does not know it.
}

// names are the rows by which names are read. They are written by the rows of values, when those need them.
func (x scope) names(c *wire.Codec) {
	if c.Reading() {
		wire.Row(c, nameType, nil, x.d.nameTyped)
		wire.Row(c, nameOrigin, nil, x.d.nameOrigined)
	}
}

// name are the rows of names of a message that has one type, which may have no value to write it.
func (x scope) name(c *wire.Codec, t crdt.Type) {
	if c.Reading() {
		x.names(c)
		return
	}
	wire.Row(c, nameType, func(b []byte) []byte {
		x.e.b = b
		x.e.typ(t)
		return x.e.b
	}, nil)
}

// name stores a name, if the field is one.
func (d *decoder) name(f *wire.Field) error {
	switch f.Number {
	case nameType:
		return d.nameTyped(f)
	case nameOrigin:
		return d.nameOrigined(f)
	}
	return nil
}

// nameTyped stores a name, of a type that this node may know.
func (d *decoder) nameTyped(f *wire.Field) error {
	name, err := f.Text(MaxTypeName)
	if err != nil {
		return err
	}
	if name == "" {
		return wire.Malformed("a type without a name")
	}
	typ, ok := d.types.Type(name)
	if !ok {
		typ = nil
	}
	if d.known == nil {
		room := wire.BudgetOf(d.in)
		if d.known, err = wire.List[known](&room, count(d.in, nameType)); err != nil {
			return err
		}
	}
	d.known = append(d.known, known{name, typ})
	return nil
}

// nameOrigined stores an origin.
func (d *decoder) nameOrigined(f *wire.Field) error {
	o, err := f.Fixed64()
	d.origins = append(withRoom(d, d.origins, f), crdt.Origin(o))
	return err
}

// origin returns the origin at a place.
func (d *decoder) origin(place uint64) (crdt.Origin, error) {
	if place >= uint64(len(d.origins)) {
		return 0, wire.Malformed("origin %d of %d", place, len(d.origins))
	}
	return d.origins[place], nil
}

// maxUnreadable is how many values of known types may be unreadable in a message that is decoded: each costs an error,
// which may be many times as large as the value.
const maxUnreadable = 64

// value returns the value that b encodes, and its type, which is the one at a place. If this node cannot read it, the
// type is nil and the value a [table.Unknown].
func (d *decoder) value(place uint64, b []byte) (crdt.Type, any, error) {
	if place >= uint64(len(d.known)) {
		return nil, nil, wire.Malformed("type %d of %d", place, len(d.known))
	}
	of := &d.known[place]
	if of.typ == nil {
		return nil, table.Unknown{Name: of.name}, nil
	}
	v, err := decodeValue(of.typ, b)
	if err != nil {
		if d.unreadable++; d.unreadable > maxUnreadable {
			return nil, nil, wire.Malformed("more than %d values that cannot be read, the last one: %w", maxUnreadable, err)
		}
		return nil, table.Unknown{Name: of.name, Err: err}, nil // The message can be read.
	}
	return of.typ, v, nil
}

// decodeValue turns a panic of a type, which a program may have defined, into an error.
func decodeValue(t crdt.Type, b []byte) (v any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the type panicked: %v", p)
		}
	}()
	return t.Decode(b)
}

// appendValue is the same for encoding.
func appendValue(t crdt.Type, dst []byte, v any) (b []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			b, err = dst, fmt.Errorf("type %s panicked over a value: %v", t.Name(), p)
		}
	}()
	return t.Append(dst, v)
}
