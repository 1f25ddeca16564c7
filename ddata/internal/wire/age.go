// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"

	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/machine/wire"
)

// How old stores are: the message about one that is older than it was, and what a durable
// replica remembers of the stores of others.

// The fields of the message about an older store.
const (
	agedOf      = 1
	agedWritten = 2
)

func appendAged(e *encoder, m protocol.Aged) {
	e.fixed(agedOf, uint64(m.Of))
	e.uint(agedWritten, m.Written)
}

func setAged(_ *decoder, m *protocol.Aged, f *wire.Field) error {
	switch f.Number {
	case agedOf:
		return wire.SetFixed(&m.Of, f)
	case agedWritten:
		return wire.Set(&m.Written, f, math.MaxUint64)
	}
	return nil
}

// The fields of what is remembered of a store.
const (
	shownID      = 1
	shownUID     = 2
	shownWritten = 3
	shownBefore  = 4
)

// addShown adds what is remembered of a store: of each once, sorted by id.
func addShown(all *[]protocol.Shown, f *wire.Field) error {
	b, err := inner(f)
	if err != nil {
		return err
	}
	var s, last protocol.Shown
	if err := fields(b, func(f *wire.Field) error {
		switch f.Number {
		case shownID:
			return wire.SetFixed(&s.ID, f)
		case shownUID:
			return wire.SetFixed(&s.UID, f)
		case shownWritten:
			return wire.Set(&s.Written, f, math.MaxUint64)
		case shownBefore:
			return wire.Set(&s.Before, f, math.MaxUint64)
		}
		return nil
	}); err != nil {
		return err
	}
	if n := len(*all); n > 0 {
		last = (*all)[n-1]
	}
	if s.ID <= last.ID {
		return wire.Malformed("stores of replicas out of order")
	}
	*all = append(*all, s)
	return nil
}
