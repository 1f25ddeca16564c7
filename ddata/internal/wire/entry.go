// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/wire"
)

// Entries and changes, which most messages consist of. They are encoded by hand, so that nothing is allocated but keys,
// versions and values.

// The fields of an entry. As in all of protobuf, a field with value zero is left out: the state of a live entry, and
// the first place of a name.
const (
	entryKey      = 1
	entryState    = 2 // One less than the state.
	entryType     = 3
	entryValue    = 4 // There for a live entry, even when it is empty.
	entryVersions = 5
	entryFloor    = 6
	entryStamp    = 7
)

// The fields of a change.
const (
	changeKey    = 1
	changeType   = 2
	changeOrigin = 3
	changeFrom   = 4
	changeCount  = 5 // To without From.
	changeDelta  = 6 // There unless there is no delta.
	changeWhole  = 7
)

// entry appends the names that an entry uses and are not in the message yet, and a field with the entry.
func (e *encoder) entry(n wire.Number, x *table.Entry) {
	if x.State < table.Live || x.State > table.Expired {
		e.fail(foreign("an entry of state %d", x.State))
		return
	}
	typ := 0
	if x.State != table.Deleted {
		typ = e.typ(x.Type)
	}
	e.name(x.Versions)
	e.name(x.Floor)
	b, at := wire.Begin(e.b, n)
	b = wire.AppendString(b, entryKey, x.Key)
	b = wire.AppendUint(b, entryState, uint64(x.State-table.Live))
	b = wire.AppendUint(b, entryType, uint64(typ))
	if x.State == table.Live {
		b = e.value(b, entryValue, x.Type, x.Value)
	}
	b = e.versions(b, entryVersions, x.Versions)
	b = e.versions(b, entryFloor, x.Floor)
	b = wire.AppendUint(b, entryStamp, x.Stamp)
	e.b = wire.End(b, at)
}

// entry reads an entry. The key is given if the bytes need not have one, and "" otherwise.
func (d *decoder) entry(b []byte, key string) (x table.Entry, err error) {
	var typ, state uint64
	var value []byte
	x.Key = key
	for len(b) > 0 {
		t, v, data, rest := next(b)
		switch t {
		case entryKey*tagStep + asBytes:
			x.Key, err = keyOf(data)
		case entryState*tagStep + asUint:
			state = v
		case entryType*tagStep + asUint:
			typ = v
		case entryValue*tagStep + asBytes:
			value = data
		case entryVersions*tagStep + asBytes:
			x.Versions, err = d.versions(data)
		case entryFloor*tagStep + asBytes:
			x.Floor, err = d.versions(data)
		case entryStamp*tagStep + asUint:
			x.Stamp = v
		default:
			err = unknownField(b, entryStamp)
		}
		if err != nil {
			return x, err
		}
		b = rest
	}
	if state > uint64(table.Expired-table.Live) {
		return x, wire.Malformed("an entry of state %d", state)
	}
	x.State = table.Live + table.State(state)
	switch {
	case x.Key == "":
		return x, wire.Malformed("an entry without a key")
	case x.State == table.Live && value == nil:
		return x, wire.Malformed("a live entry without a value")
	case x.State == table.Live:
		x.Type, x.Value, err = d.value(typ, value)
	case x.State == table.Expired:
		x.Type, x.Value, err = d.typed(typ)
	}
	return x, err
}

// keyOf returns the key that is in b.
func keyOf(b []byte) (string, error) {
	if len(b) == 0 || len(b) > table.MaxKey {
		return "", wire.Malformed("a key of %d bytes, at most %d", len(b), table.MaxKey)
	}
	key := string(b)
	if !gossip.IsName(key) {
		return "", wire.Malformed("the key %.100q is not UTF-8, or has characters that do not print", key)
	}
	return key, nil
}

// entries is a row with a list of entries, which comes after the names that they use.
func (x scope) entries(c *wire.Codec, n wire.Number, all *[]table.Entry) {
	wire.Row(c, n, func(b []byte) []byte {
		x.e.b = b
		for i := range *all {
			x.e.entry(n, &(*all)[i])
		}
		return x.e.b
	}, func(f *wire.Field) error {
		b, err := inner(f)
		if err != nil {
			return err
		}
		e, err := x.d.entry(b, "")
		*all = append(withRoom(x.d, *all, f), e)
		return err
	})
}

// entry is a row with an entry that may be absent.
func (x scope) entry(c *wire.Codec, n wire.Number, of **table.Entry) {
	wire.Row(c, n, func(b []byte) []byte {
		if x.e.b = b; *of != nil {
			x.e.entry(n, *of)
		}
		return x.e.b
	}, func(f *wire.Field) error {
		b, err := inner(f)
		if err != nil {
			return err
		}
		e, err := x.d.entry(b, "")
		*of = &e
		return err
	})
}

// change appends the names that a change uses and are not in the message yet, and a field with the change.
func (e *encoder) change(n wire.Number, x *table.Change) {
	if x.To < x.From {
		e.fail(foreign("a change from %d back to %d", x.From, x.To))
		return
	}
	typ, origin := e.typ(x.Type), e.origin(x.Origin)
	b, at := wire.Begin(e.b, n)
	b = wire.AppendString(b, changeKey, x.Key)
	b = wire.AppendUint(b, changeType, uint64(typ))
	b = wire.AppendUint(b, changeOrigin, uint64(origin))
	b = wire.AppendUint(b, changeFrom, x.From)
	b = wire.AppendUint(b, changeCount, x.To-x.From)
	if x.Delta != nil {
		b = e.value(b, changeDelta, x.Type, x.Delta)
	}
	b = wire.AppendBool(b, changeWhole, x.Whole)
	e.b = wire.End(b, at)
}

// change reads a change.
func (d *decoder) change(b []byte) (x table.Change, err error) {
	var typ, origin, count uint64
	var delta []byte
	for len(b) > 0 {
		t, v, data, rest := next(b)
		switch t {
		case changeKey*tagStep + asBytes:
			x.Key, err = keyOf(data)
		case changeType*tagStep + asUint:
			typ = v
		case changeOrigin*tagStep + asUint:
			origin = v
		case changeFrom*tagStep + asUint:
			x.From = v
		case changeCount*tagStep + asUint:
			count = v
		case changeDelta*tagStep + asBytes:
			delta = data
		case changeWhole*tagStep + asUint:
			x.Whole = v != 0
		default:
			err = unknownField(b, changeWhole)
		}
		if err != nil {
			return x, err
		}
		b = rest
	}
	x.To = x.From + count
	switch {
	case x.Key == "":
		return x, wire.Malformed("a change without a key")
	case x.To < x.From:
		return x, wire.Malformed("a change of %d updates after %d", count, x.From)
	}
	if x.Origin, err = d.origin(origin); err != nil {
		return x, err
	}
	if delta == nil {
		x.Type, x.Delta, err = d.typed(typ)
		return x, err
	}
	x.Type, x.Delta, err = d.value(typ, delta)
	return x, err
}

// typed returns the type at a place, for a message without a value. If this node does not know the type, it returns no
// type, and a [table.Unknown] as the value.
func (d *decoder) typed(place uint64) (crdt.Type, any, error) {
	if place >= uint64(len(d.known)) {
		return nil, nil, wire.Malformed("type %d of %d", place, len(d.known))
	}
	if of := &d.known[place]; of.typ == nil {
		return nil, table.Unknown{Name: of.name}, nil
	}
	return d.known[place].typ, nil, nil
}

// value appends a field with a value to b.
func (e *encoder) value(b []byte, n wire.Number, t crdt.Type, v any) []byte {
	if t == nil {
		return b // The name has failed already.
	}
	b, at := wire.Begin(b, n)
	b, err := appendValue(t, b, v)
	if err != nil {
		e.fail(err)
	}
	return wire.End(b, at)
}

// name appends the origins of versions that are not in the message yet.
func (e *encoder) name(v table.Versions) {
	for i := range v {
		e.origin(v[i].Origin)
	}
}

// versions appends a field with versions to b: the place of each origin and its count. The
// origins are named already.
func (e *encoder) versions(b []byte, n wire.Number, v table.Versions) []byte {
	if len(v) == 0 {
		return b
	}
	b, at := wire.Begin(b, n)
	for i := range v {
		b = wire.AppendVarint(b, uint64(e.origin(v[i].Origin)))
		b = wire.AppendVarint(b, v[i].Count)
	}
	return wire.End(b, at)
}

// versions reads versions. Their order, and whether an entry in its state may have them, is checked by the table.
func (d *decoder) versions(b []byte) (table.Versions, error) {
	if len(b) == 0 {
		return nil, nil
	}
	all := make(table.Versions, 0, numbers(b)/2)
	for len(b) > 0 {
		place, n := wire.Varint(b)
		count, m := wire.Varint(b[n:])
		if n == 0 || m == 0 {
			return nil, wire.Malformed("a version that is cut off")
		}
		o, err := d.origin(place)
		if err != nil {
			return nil, err
		}
		all, b = append(all, table.Version{Origin: o, Count: count}), b[n+m:]
	}
	return all, nil
}
