// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/wire"
)

// Entries, what is refused in them, and how they are written into the distributed data: the
// node and the number of an entry make its place in the map of a name (place), the rest is
// its content there (encode).

// Entry is what is registered under a name. Programs set Name, Address and Metadata, and
// the registry sets the rest.
type Entry struct {
	Name     string
	Address  string            // Where the service is, in words that those who look for it understand.
	Metadata map[string]string // What else is to be known of the service; may be nil.

	Node    gossip.NodeID // The node that has registered the entry.
	ID      uint64        // Tells the entries of one node apart, from 1.
	Version uint64        // How often the entry was set, from 1: updates count too.
}

// The bounds of an entry: the bytes of a name or an address, the items of metadata, the bytes of a value.
const (
	maxName  = 255
	maxItems = 64
	maxValue = 4096
)

// Validate reports every fault of an entry in one error, each a [field.Error].
func (e Entry) Validate() error {
	var faults field.Faults
	short := func(key, text string) {
		faults.Refuse(text == "" || len(text) > maxName || !gossip.IsName(text), key, "%.300q is not a text of 1 to %d bytes of UTF-8, of characters that print", text, maxName)
	}
	short("name", e.Name)
	short("address", e.Address)
	faults.Refuse(len(e.Metadata) > maxItems, "metadata", "%d items are more than %d", len(e.Metadata), maxItems)
	for _, k := range slices.Sorted(maps.Keys(e.Metadata)) {
		short("metadata", k)
		v := e.Metadata[k]
		faults.Refuse(len(v) > maxValue || !utf8.ValidString(v), "metadata", "what is at %.300q is no text of up to %d bytes of UTF-8", k, maxValue)
	}
	return faults.Err()
}

// clone returns the entry with metadata of its own.
func (e Entry) clone() Entry {
	e.Metadata = maps.Clone(e.Metadata)
	return e
}

// entryID identifies an entry among those of its name.
type entryID struct {
	node gossip.NodeID
	id   uint64
}

func (e Entry) entryID() entryID { return entryID{e.Node, e.ID} }

// place returns the key of an entry in the map of its name.
func (i entryID) place() string { return i.node.String() + "/" + strconv.FormatUint(i.id, 10) }

// parsePlace returns what place was made of.
func parsePlace(s string) (entryID, error) {
	cut := strings.LastIndexByte(s, '/')
	if cut < 0 {
		return entryID{}, wire.Malformed("place %.300q", s)
	}
	node, err := gossip.ParseNodeID(s[:cut])
	if err != nil {
		return entryID{}, wire.Malformed("place %.300q: %w", s, err)
	}
	id, err := strconv.ParseUint(s[cut+1:], 10, 64)
	if err != nil {
		return entryID{}, wire.Malformed("place %.300q: %w", s, err)
	}
	return entryID{node, id}, nil
}

// The fields of an entry's content, and of an item of its metadata.
const (
	fieldAddress = 1
	fieldVersion = 2
	fieldItem    = 3

	itemKey   = 1
	itemValue = 2
)

// encode returns the content of an entry, the same for equal entries.
func (e Entry) encode() []byte {
	b := wire.AppendString(nil, fieldAddress, e.Address)
	b = wire.AppendUint(b, fieldVersion, e.Version)
	for _, k := range slices.Sorted(maps.Keys(e.Metadata)) {
		dst, at := wire.Begin(b, fieldItem)
		dst = wire.AppendString(dst, itemKey, k)
		b = wire.End(wire.AppendString(dst, itemValue, e.Metadata[k]), at)
	}
	return b
}

// decode returns the entry at a place. Fields of a later version are passed over.
func decode(name, place string, b []byte) (Entry, error) {
	i, err := parsePlace(place)
	if err != nil {
		return Entry{}, err
	}
	e := Entry{Name: name, Node: i.node, ID: i.id}
	err = wire.Each(b, func(f *wire.Field) error {
		switch f.Number {
		case fieldAddress:
			return wire.SetText(&e.Address, f, maxName)
		case fieldVersion:
			return wire.Set(&e.Version, f, ^uint64(0))
		case fieldItem:
			return e.item(f)
		default:
			return nil
		}
	})
	if err == nil {
		err = e.Validate()
	}
	if err != nil {
		return Entry{}, wire.Malformed("entry %s: %w", place, err)
	}
	return e, nil
}

// item reads an item of metadata.
func (e *Entry) item(f *wire.Field) error {
	var key, value string
	err := f.Each(func(f *wire.Field) error {
		switch f.Number {
		case itemKey:
			return wire.SetText(&key, f, maxName)
		case itemValue:
			return wire.SetText(&value, f, maxValue)
		default:
			return nil
		}
	})
	if err != nil {
		return err
	}
	if e.Metadata == nil {
		e.Metadata = map[string]string{}
	}
	if len(e.Metadata) >= maxItems {
		return fmt.Errorf("more than %d items of metadata", maxItems)
	}
	e.Metadata[key] = value
	return nil
}
