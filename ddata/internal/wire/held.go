// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"

	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/machine/wire"
)

// The parts of a register about buckets that have lost their homes. Each of them names at
// least one bucket of its own, so that there are at most as many as buckets.

// The fields of buckets that are held back.
const (
	heldBuckets = 1
	heldHomes   = 2
	heldOld     = 3
	heldMoves   = 4
)

func (e *encoder) held(h protocol.Held, zones map[string]uint32) {
	e.b = appendUints(e.b, heldBuckets, h.Buckets)
	e.set(heldHomes, h.Homes, zones)
	e.set(heldOld, h.Old, zones)
	e.flag(heldMoves, h.Moves)
}

// addHeld adds buckets that are held back.
func addHeld(dst *[]protocol.Held, f *wire.Field, zones []string) error {
	var h protocol.Held
	err := parts(f, len(*dst), func(f *wire.Field) error {
		switch f.Number {
		case heldBuckets:
			return setBuckets(&h.Buckets, f)
		case heldHomes:
			return setSet(&h.Homes, f, zones)
		case heldOld:
			return setSet(&h.Old, f, zones)
		case heldMoves:
			return wire.SetBool(&h.Moves, f)
		}
		return nil
	})
	if err == nil && len(h.Buckets) > 0 && len(h.Homes) == 0 {
		return wire.Malformed("what is held back has no homes")
	}
	*dst = append(*dst, h)
	return named(h.Buckets, err)
}

// The fields of buckets of which a loss was accepted.
const (
	resetBuckets = 1
	resetGen     = 2
	resetSpared  = 3
)

func (e *encoder) reset(x protocol.Reset, zones map[string]uint32) {
	e.b = appendUints(e.b, resetBuckets, x.Buckets)
	e.uint(resetGen, x.Gen)
	e.set(resetSpared, x.Spared, zones)
}

// addReset adds buckets of which a loss was accepted.
func addReset(dst *[]protocol.Reset, f *wire.Field, zones []string) error {
	var x protocol.Reset
	err := parts(f, len(*dst), func(f *wire.Field) error {
		switch f.Number {
		case resetBuckets:
			return setBuckets(&x.Buckets, f)
		case resetGen:
			return wire.Set(&x.Gen, f, math.MaxUint64)
		case resetSpared:
			return setSet(&x.Spared, f, zones)
		}
		return nil
	})
	if err == nil && len(x.Buckets) > 0 && x.Gen == 0 {
		return wire.Malformed("a loss was accepted in generation 0")
	}
	*dst = append(*dst, x)
	return named(x.Buckets, err)
}

// parts decodes the fields of one more part of a register that already has some.
func parts(f *wire.Field, have int, one func(*wire.Field) error) error {
	if have == table.Buckets {
		return wire.Malformed("more than %d parts about %d buckets", have, table.Buckets)
	}
	b, err := inner(f)
	if err != nil {
		return err
	}
	return fields(b, one)
}

// named refuses a part that names no bucket, if it has no other fault.
func named(buckets []uint16, err error) error {
	if err == nil && len(buckets) == 0 {
		return wire.Malformed("a part of a register names no bucket")
	}
	return err
}

// setBuckets stores the numbers of buckets.
func setBuckets(dst *[]uint16, f *wire.Field) error {
	if err := setUints(dst, f, table.Buckets-1); err != nil {
		return err
	}
	if len(*dst) > table.Buckets {
		return wire.Malformed("%d buckets, of %d", len(*dst), table.Buckets)
	}
	return nil
}
