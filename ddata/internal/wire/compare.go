// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/machine/wire"
)

// The tables of the messages of a pass, in their order, and of those of a sweep.

func compare(m *protocol.Compare, c *wire.Codec) {
	wire.Uint(c, 1, &m.Pass, math.MaxUint64)
	wire.Fixed(c, 2, &m.Root)
}

func groups(m *protocol.Groups, c *wire.Codec) {
	wire.Uint(c, 1, &m.Pass, math.MaxUint64)
	wire.Bool(c, 2, &m.Same)
	wire.Fixeds(c, 3, &m.Sums, math.MaxInt)
}

func askBuckets(m *protocol.AskBuckets, c *wire.Codec) {
	wire.Uint(c, 1, &m.Pass, math.MaxUint64)
	wire.Data(c, 2, &m.Groups, math.MaxInt)
}

func bucketHashes(m *protocol.BucketHashes, c *wire.Codec) {
	wire.Uint(c, 1, &m.Pass, math.MaxUint64)
	wire.Data(c, 2, &m.Groups, math.MaxInt)
	wire.Fixeds(c, 3, &m.Hashes, math.MaxInt)
}

func pull(m *protocol.Pull, c *wire.Codec) {
	wire.Uint(c, 1, &m.Pass, math.MaxUint64)
	if c.Reading() && c.At(2) && m.Buckets == nil && c.Count(2) > table.Buckets { // Counted at the first alone.
		c.Fail(wire.Malformed("more than %d buckets", table.Buckets))
	}
	wire.Messages(c, 2, &m.Buckets, table.Buckets, bucketSummary)
}

func bucketSummary(m *protocol.BucketSummary, c *wire.Codec) {
	wire.Uint(c, 1, &m.Bucket, table.Buckets-1)
	keyHashes(c, 2, &m.Keys)
}

// keyHashes is a row with two numbers of eight bytes for each key.
func keyHashes(c *wire.Codec, n wire.Number, all *[]protocol.KeyHash) {
	wire.Row(c, n, func(b []byte) []byte {
		if len(*all) == 0 {
			return b
		}
		b = wire.AppendVarint(wire.AppendTag(b, n, wire.BytesType), uint64(16*len(*all)))
		for _, k := range *all {
			b = binary.LittleEndian.AppendUint64(b, k.Key)
			b = binary.LittleEndian.AppendUint64(b, k.Entry)
		}
		return b
	}, func(f *wire.Field) error {
		b, err := inner(f)
		if err != nil {
			return err
		}
		if len(b)%16 != 0 {
			return wire.Malformed("field %d has %d bytes of hashes with 16 for each key", n, len(b))
		}
		*all = nil
		if len(b) > 0 {
			*all = make([]protocol.KeyHash, len(b)/16)
		}
		for i := range *all {
			(*all)[i] = protocol.KeyHash{Key: binary.LittleEndian.Uint64(b[16*i:]), Entry: binary.LittleEndian.Uint64(b[16*i+8:])}
		}
		return nil
	})
}

func (x scope) pullReply(m *protocol.PullReply, c *wire.Codec) {
	x.names(c)
	wire.Uint(c, 3, &m.Pass, math.MaxUint64)
	wire.Uint(c, 4, &m.Stamp, math.MaxUint64)
	wire.Uints(c, 5, &m.Done, table.Buckets-1, math.MaxInt)
	x.entries(c, 6, &m.Entries)
	w := x.missing(m)
	wire.Uints(c, 7, &w.buckets, table.Buckets-1, math.MaxInt)
	wire.Fixeds(c, 8, &w.keys, math.MaxInt)
}

// missingEntries are the columns of [protocol.PullReply.Missing], which are lists of their own on the wire.
type missingEntries struct {
	buckets []uint16
	keys    []uint64
}

// missing returns the columns to write, or those into which they are read.
func (x scope) missing(m *protocol.PullReply) *missingEntries {
	if x.d != nil {
		return &x.d.missing
	}
	w := &missingEntries{make([]uint16, len(m.Missing)), make([]uint64, len(m.Missing))}
	for i, of := range m.Missing {
		w.buckets[i], w.keys[i] = of.Bucket, of.Key
	}
	return w
}

// checkPullReply puts the columns that were read together into the list of missing entries.
func (x scope) checkPullReply(m *protocol.PullReply) error {
	w := &x.d.missing
	if len(w.buckets) != len(w.keys) {
		return wire.Malformed("%d buckets of %d keys that are wanted", len(w.buckets), len(w.keys))
	}
	if len(w.keys) > 0 {
		m.Missing = make([]protocol.MissingEntry, len(w.keys))
	}
	for i := range w.keys {
		m.Missing[i] = protocol.MissingEntry{Bucket: w.buckets[i], Key: w.keys[i]}
	}
	return nil
}

func sweep(m *protocol.Sweep, c *wire.Codec) {
	wire.Uint(c, 1, &m.Gen, math.MaxUint64)
	wire.Uint(c, 2, &m.UpTo, math.MaxUint64)
	wire.Fixeds(c, 3, &m.Retired, math.MaxInt)
}

func sweepReply(m *protocol.SweepReply, c *wire.Codec) {
	wire.Uint(c, 1, &m.Gen, math.MaxUint64)
	wire.Fixed(c, 2, &m.Tombs)
	wire.Fixed(c, 3, &m.Origins)
	wire.Bool(c, 4, &m.Veto)
	bucketSums(c, 5, &m.Buckets)
	wire.Uint(c, 6, &m.Marked, math.MaxUint64)
	wire.Bool(c, 7, &m.Newer)
	wire.Fixeds(c, 8, &m.Gone, math.MaxInt)
}

// bucketSums is a row with three numbers of eight bytes for each bucket: its own number and its two sums. Buckets are
// in ascending order.
func bucketSums(c *wire.Codec, n wire.Number, all *[]table.BucketSum) {
	var numbers []uint64
	if !c.Reading() {
		numbers = make([]uint64, 0, 3*len(*all))
		for _, b := range *all {
			numbers = append(numbers, uint64(b.Bucket), b.Tombs, b.Origins)
		}
	}
	if !wire.Fixeds(c, n, &numbers, math.MaxInt) {
		return
	}
	if len(numbers)%3 != 0 {
		c.Fail(wire.Malformed("%d numbers for sums of buckets", len(numbers)))
		return
	}
	sums := make([]table.BucketSum, 0, len(numbers)/3)
	for of := range slices.Chunk(numbers, 3) {
		if of[0] >= table.Buckets || len(sums) > 0 && uint64(sums[len(sums)-1].Bucket) >= of[0] {
			c.Fail(wire.Malformed("the sum of bucket %d out of order", of[0]))
			return
		}
		sums = append(sums, table.BucketSum{Bucket: uint16(of[0]), Tombs: of[1], Origins: of[2]})
	}
	*all = sums
}
