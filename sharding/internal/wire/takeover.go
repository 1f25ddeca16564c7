// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"

	"github.com/quorate/quorate/machine/wire"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// The messages by which the ids of remembered entities are taken over from the sets of former layouts.

// The types of these messages, and the fields that they add.
const (
	typeTakeOver  = 40
	typeGivenOver = 41

	fieldGone     = 40
	fieldEntities = 41
	fieldOver     = 42

	// fieldRegistrationTakeover is of a registration.
	fieldRegistrationTakeover = 11
)

// takenMost bounds the ids of a message in each of its lists.
const takenMost = 1 << 14

// appendTakeover appends the messages of this file, and reports whether m is one.
func appendTakeover(dst []byte, m any) ([]byte, bool) {
	switch m := m.(type) {
	case control.TakeOver:
		dst = appendQuestion(dst, typeTakeOver, m.Kind, m.Take.Layout, m.Take.Number)
		return appendWanted(appendTexts(dst, fieldGone, m.Take.Gone), m.Take.Shards), true
	case control.GivenOver:
		dst = appendQuestion(dst, typeGivenOver, m.Kind, m.Given.Layout, m.Given.Number)
		dst = appendTexts(appendTexts(dst, fieldGone, m.Given.Gone), fieldEntities, m.Given.IDs)
		return wire.AppendBool(dst, fieldOver, m.Given.Over), true
	default:
		return dst, false
	}
}

func appendQuestion(dst []byte, t uint64, kind string, layout uint16, number uint64) []byte {
	dst = wire.AppendUint(head(dst, t, kind, protocol.Term{}), 7, uint64(layout))
	return wire.AppendUint(dst, 14, number)
}

func appendTexts(dst []byte, n wire.Number, all []string) []byte {
	for _, text := range all {
		dst = wire.AppendString(dst, n, text)
	}
	return dst
}

// taking holds the fields of these messages.
type taking struct {
	gone, entities []string
	over           bool
}

func (t *taking) set(c *fields, f *wire.Field) error {
	switch f.Number {
	case fieldGone:
		return c.addID(&t.gone, f)
	case fieldEntities:
		return c.addID(&t.entities, f)
	case fieldOver:
		return wire.SetBool(&t.over, f)
	default:
		return nil
	}
}

// addID reads the id of an entity; the first one makes the list of all.
func (c *fields) addID(to *[]string, f *wire.Field) (err error) {
	if *to == nil {
		if *to, err = wire.List[string](&c.room, min(wire.Count(c.in, f.Number), takenMost+1)); err != nil {
			return err
		}
	}
	var id string
	err = wire.SetText(&id, f, protocol.MaxEntityBytes)
	if err == nil && (id == "" || len(*to) >= takenMost) {
		err = wire.Malformed("an id is empty, or there are more than %d", takenMost)
	}
	*to = append(*to, id)
	return err
}

// takeoverMessage returns the message of this file that the fields make up.
func (c *fields) takeoverMessage() (any, error) {
	if c.from >= protocol.MaxLayouts {
		return nil, wire.Malformed("a layout of the number %d", c.from)
	}
	layout := uint16(c.from) // Below MaxLayouts.
	switch c.typ {
	case typeTakeOver:
		return control.TakeOver{Kind: c.kind, Take: protocol.Take{Layout: layout, Number: c.id, Shards: c.wanted, Gone: c.taking.gone}}, nil
	case typeGivenOver:
		return control.GivenOver{Kind: c.kind, Given: protocol.Given{
			Layout: layout, Number: c.id, Gone: c.taking.gone, IDs: c.taking.entities, Over: c.taking.over,
		}}, nil
	default:
		return nil, wire.Malformed("a control message of type %d", c.typ)
	}
}

// setTakeover reads how far a region has come that takes over.
func setTakeover(dst *uint32, f *wire.Field) error { return wire.Set(dst, f, math.MaxUint16+2) }
