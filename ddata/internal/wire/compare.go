// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/machine/wire"
)

// The messages of a pass, in their order, and those of a sweep.

// The fields of the first messages of a pass.
const (
	comparePass = 1
	compareRoot = 2

	groupsPass = 1
	groupsSame = 2
	groupsSums = 3

	askPass   = 1
	askGroups = 2

	hashesPass   = 1
	hashesGroups = 2
	hashesHashes = 3
)

func appendCompare(e *encoder, m protocol.Compare) {
	e.uint(comparePass, uint64(m.Pass))
	e.fixed(compareRoot, m.Root)
}

func setCompare(_ *decoder, m *protocol.Compare, f *wire.Field) error {
	switch f.Number {
	case comparePass:
		return wire.Set(&m.Pass, f, math.MaxUint64)
	case compareRoot:
		return wire.SetFixed(&m.Root, f)
	}
	return nil
}

func appendGroups(e *encoder, m protocol.Groups) {
	e.uint(groupsPass, uint64(m.Pass))
	e.flag(groupsSame, m.Same)
	e.b = appendFixeds(e.b, groupsSums, m.Sums)
}

func setGroups(_ *decoder, m *protocol.Groups, f *wire.Field) error {
	switch f.Number {
	case groupsPass:
		return wire.Set(&m.Pass, f, math.MaxUint64)
	case groupsSame:
		return wire.SetBool(&m.Same, f)
	case groupsSums:
		return setFixeds(&m.Sums, f)
	}
	return nil
}

func appendAskBuckets(e *encoder, m protocol.AskBuckets) {
	e.uint(askPass, uint64(m.Pass))
	e.b = wire.AppendBytes(e.b, askGroups, m.Groups)
}

func setAskBuckets(_ *decoder, m *protocol.AskBuckets, f *wire.Field) error {
	switch f.Number {
	case askPass:
		return wire.Set(&m.Pass, f, math.MaxUint64)
	case askGroups:
		return setBytes(&m.Groups, f)
	}
	return nil
}

// setBytes stores a copy of bytes, nil for none.
func setBytes(dst *[]byte, f *wire.Field) error {
	b, err := inner(f)
	*dst = nil
	if len(b) > 0 {
		*dst = bytes.Clone(b)
	}
	return err
}

func appendBucketHashes(e *encoder, m protocol.BucketHashes) {
	e.uint(hashesPass, uint64(m.Pass))
	e.b = wire.AppendBytes(e.b, hashesGroups, m.Groups)
	e.b = appendFixeds(e.b, hashesHashes, m.Hashes)
}

func setBucketHashes(_ *decoder, m *protocol.BucketHashes, f *wire.Field) error {
	switch f.Number {
	case hashesPass:
		return wire.Set(&m.Pass, f, math.MaxUint64)
	case hashesGroups:
		return setBytes(&m.Groups, f)
	case hashesHashes:
		return setFixeds(&m.Hashes, f)
	}
	return nil
}

// The fields of a pull, and of a bucket in it.
const (
	pullPass   = 1
	pullBucket = 2

	bucketNumber = 1
	bucketKeys   = 2 // Two numbers of eight bytes for each key.
)

func appendPull(e *encoder, m protocol.Pull) {
	e.uint(pullPass, uint64(m.Pass))
	for _, of := range m.Buckets {
		e.inside(pullBucket, func() {
			e.uint(bucketNumber, uint64(of.Bucket))
			if len(of.Keys) == 0 {
				return
			}
			e.b = wire.AppendVarint(wire.AppendTag(e.b, bucketKeys, wire.BytesType), uint64(16*len(of.Keys)))
			for _, k := range of.Keys {
				e.b = binary.LittleEndian.AppendUint64(e.b, k.Key)
				e.b = binary.LittleEndian.AppendUint64(e.b, k.Entry)
			}
		})
	}
}

func setPull(d *decoder, m *protocol.Pull, f *wire.Field) error {
	switch f.Number {
	case pullPass:
		return wire.Set(&m.Pass, f, math.MaxUint64)
	case pullBucket:
		if len(m.Buckets) == table.Buckets {
			return wire.Malformed("more than %d buckets", table.Buckets)
		}
		b, err := inner(f)
		if err != nil {
			return err
		}
		of, err := bucketSummary(b)
		m.Buckets = append(grown(d, m.Buckets, f), of)
		return err
	}
	return nil
}

// bucketSummary reads what a replica holds of a bucket.
func bucketSummary(b []byte) (of protocol.BucketSummary, err error) {
	for len(b) > 0 && err == nil {
		var f wire.Field
		if f, b, err = wire.Next(b); err != nil {
			return of, err
		}
		switch f.Number {
		case bucketNumber:
			err = wire.Set(&of.Bucket, &f, table.Buckets-1)
		case bucketKeys:
			of.Keys, err = keyHashes(&f)
		}
	}
	return of, err
}

func keyHashes(f *wire.Field) ([]protocol.KeyHash, error) {
	b, err := inner(f)
	if err != nil || len(b) == 0 {
		return nil, err
	}
	if len(b)%16 != 0 {
		return nil, wire.Malformed("field %d has %d bytes of hashes with 16 for each key", f.Number, len(b))
	}
	keys := make([]protocol.KeyHash, len(b)/16)
	for i := range keys {
		keys[i] = protocol.KeyHash{Key: binary.LittleEndian.Uint64(b[16*i:]), Entry: binary.LittleEndian.Uint64(b[16*i+8:])}
	}
	return keys, nil
}

// The fields of what was pulled.
const (
	pulledPass    = 3
	pulledStamp   = 4
	pulledDone    = 5
	pulledEntry   = 6
	pulledBuckets = 7 // The buckets of Wants.
	pulledKeys    = 8 // The keys of Wants.
)

func appendPulled(e *encoder, m protocol.Pulled) {
	e.uint(pulledPass, uint64(m.Pass))
	e.uint(pulledStamp, m.Stamp)
	e.b = appendUints(e.b, pulledDone, m.Done)
	e.entries(pulledEntry, m.Entries)
	buckets, keys := make([]uint16, len(m.Wants)), make([]uint64, len(m.Wants))
	for i, w := range m.Wants {
		buckets[i], keys[i] = w.Bucket, w.Key
	}
	e.b = appendUints(e.b, pulledBuckets, buckets)
	e.b = appendFixeds(e.b, pulledKeys, keys)
}

func setPulled(d *decoder, m *protocol.Pulled, f *wire.Field) error {
	switch f.Number {
	case pulledPass:
		return wire.Set(&m.Pass, f, math.MaxUint64)
	case pulledStamp:
		return wire.Set(&m.Stamp, f, math.MaxUint64)
	case pulledDone:
		return setUints(&m.Done, f, table.Buckets-1)
	case pulledEntry:
		return d.setEntries(&m.Entries, f)
	case pulledBuckets:
		return setUints(&d.wants.buckets, f, table.Buckets-1)
	case pulledKeys:
		return setFixeds(&d.wants.keys, f)
	}
	return d.name(f)
}

// wants are the columns of the list of entries that a replica lacks.
type wants struct {
	buckets []uint16
	keys    []uint64
}

// checkPulled makes a list of the columns of wants.
func checkPulled(d *decoder, m *protocol.Pulled) error {
	w := &d.wants
	if len(w.buckets) != len(w.keys) {
		return wire.Malformed("%d buckets of %d keys that are wanted", len(w.buckets), len(w.keys))
	}
	if len(w.keys) > 0 {
		m.Wants = make([]protocol.Want, len(w.keys))
	}
	for i := range w.keys {
		m.Wants[i] = protocol.Want{Bucket: w.buckets[i], Key: w.keys[i]}
	}
	return nil
}

// The fields of a sweep and its answer.
const (
	sweepGen     = 1
	sweepUpTo    = 2
	sweepRetired = 3

	sweptGen     = 1
	sweptTombs   = 2
	sweptOrigins = 3
	sweptVeto    = 4
	sweptBuckets = 5 // Three numbers for each: the bucket and its two sums.
	sweptMarked  = 6
	sweptNewer   = 7
	sweptGone    = 8
)

func appendSweep(e *encoder, m protocol.Sweep) {
	e.uint(sweepGen, m.Gen)
	e.uint(sweepUpTo, m.UpTo)
	e.b = appendFixeds(e.b, sweepRetired, m.Retired)
}

func setSweep(_ *decoder, m *protocol.Sweep, f *wire.Field) error {
	switch f.Number {
	case sweepGen:
		return wire.Set(&m.Gen, f, math.MaxUint64)
	case sweepUpTo:
		return wire.Set(&m.UpTo, f, math.MaxUint64)
	case sweepRetired:
		return setFixeds(&m.Retired, f)
	}
	return nil
}

func appendSwept(e *encoder, m protocol.Swept) {
	e.uint(sweptGen, m.Gen)
	e.fixed(sweptTombs, m.Tombs)
	e.fixed(sweptOrigins, m.Origins)
	e.flag(sweptVeto, m.Veto)
	sums := make([]uint64, 0, 3*len(m.Buckets))
	for _, b := range m.Buckets {
		sums = append(sums, uint64(b.Bucket), b.Tombs, b.Origins)
	}
	e.b = appendFixeds(e.b, sweptBuckets, sums)
	e.uint(sweptMarked, m.Marked)
	e.flag(sweptNewer, m.Newer)
	e.b = appendFixeds(e.b, sweptGone, m.Gone)
}

func setSwept(_ *decoder, m *protocol.Swept, f *wire.Field) error {
	switch f.Number {
	case sweptGen:
		return wire.Set(&m.Gen, f, math.MaxUint64)
	case sweptTombs:
		return wire.SetFixed(&m.Tombs, f)
	case sweptOrigins:
		return wire.SetFixed(&m.Origins, f)
	case sweptVeto:
		return wire.SetBool(&m.Veto, f)
	case sweptBuckets:
		return setSums(&m.Buckets, f)
	case sweptMarked:
		return wire.Set(&m.Marked, f, math.MaxUint64)
	case sweptNewer:
		return wire.SetBool(&m.Newer, f)
	case sweptGone:
		return setFixeds(&m.Gone, f)
	}
	return nil
}

// setSums stores the sums of buckets, which must be in order.
func setSums(dst *[]table.BucketSum, f *wire.Field) error {
	var numbers []uint64
	if err := setFixeds(&numbers, f); err != nil {
		return err
	}
	if len(numbers)%3 != 0 {
		return wire.Malformed("%d numbers for sums of buckets", len(numbers))
	}
	sums := make([]table.BucketSum, 0, len(numbers)/3)
	for n := numbers; len(n) > 0; n = n[3:] {
		if n[0] >= table.Buckets || len(sums) > 0 && uint64(sums[len(sums)-1].Bucket) >= n[0] {
			return wire.Malformed("the sum of bucket %d out of order", n[0])
		}
		sums = append(sums, table.BucketSum{Bucket: uint16(n[0]), Tombs: n[1], Origins: n[2]})
	}
	*dst = sums
	return nil
}
