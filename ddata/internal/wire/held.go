// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"

	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/machine/wire"
)

// The tables of the parts of a register about buckets that have lost their homes. Each part names at least one bucket
// that no other one names, so that there are at most as many parts as buckets.

// held is the table of buckets that are held back.
func (z *zones) held(m *protocol.Held, c *wire.Codec) {
	buckets(c, 1, &m.Buckets)
	z.set(c, 2, &m.Homes)
	z.set(c, 3, &m.Old)
	wire.Bool(c, 4, &m.Moves)
}

func checkHeld(m *protocol.Held) error {
	if len(m.Buckets) > 0 && len(m.Homes) == 0 {
		return wire.Malformed("what is held back has no homes")
	}
	return requireBuckets(m.Buckets)
}

// reset is the table of buckets of which a loss was accepted.
func (z *zones) reset(m *protocol.Reset, c *wire.Codec) {
	buckets(c, 1, &m.Buckets)
	wire.Uint(c, 2, &m.Gen, math.MaxUint64)
	z.set(c, 3, &m.Spared)
}

func checkReset(m *protocol.Reset) error {
	if len(m.Buckets) > 0 && m.Gen == 0 {
		return wire.Malformed("a loss was accepted in generation 0")
	}
	return requireBuckets(m.Buckets)
}

// requireBuckets refuses a part of a register that names no bucket.
func requireBuckets(buckets []uint16) error {
	if len(buckets) == 0 {
		return wire.Malformed("a part of a register names no bucket")
	}
	return nil
}

// buckets is a row with the numbers of buckets.
func buckets(c *wire.Codec, n wire.Number, all *[]uint16) {
	if wire.Uints(c, n, all, table.Buckets-1, math.MaxInt) && len(*all) > table.Buckets {
		c.Fail(wire.Malformed("%d buckets, of %d", len(*all), table.Buckets))
	}
}
