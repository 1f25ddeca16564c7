// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package crdt

import (
	"encoding/binary"
	"fmt"
	"math"
)

// What all encodings consist of: a version, then unsigned numbers of variable length in their shortest form, and texts
// with their length. A reader keeps the first error, so that decoders need not look for one after each number; and the
// length of a list is bounded by the bytes that are left, before anything is allocated for it.

// version is the first byte of every encoding.
const version = 1

// maxCount bounds what is counted: amounts, and the events of an origin. Decoders refuse
// more, so that sums of what remains cannot overflow in any life of a cluster.
const maxCount = 1 << 60

// reader reads one encoding.
type reader struct {
	b   []byte
	err error
}

// newReader returns a reader of what comes after the version byte.
func newReader(b []byte) *reader {
	r := &reader{b: b}
	if v := r.byte(); r.err == nil && v != version {
		r.fail("version %d", v)
	}
	return r
}

// fail keeps the first error and makes all further reads return zero.
func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
	}
	r.b = nil
}

// end returns the first error; bytes that are left are an error too.
func (r *reader) end() error {
	if len(r.b) > 0 {
		r.fail("%d bytes behind the value", len(r.b))
	}
	return r.err
}

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.fail("too short")
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

// uint reads a number, which is refused if it is above most.
func (r *reader) uint(most uint64) uint64 {
	x, n := binary.Uvarint(r.b)
	switch {
	case n <= 0:
		r.fail("too short, or a number too long")
		return 0
	case n > 1 && r.b[n-1] == 0:
		r.fail("a number in a longer form than needed")
		return 0
	case x > most:
		r.fail("a number of %d, over %d", x, most)
		return 0
	}
	r.b = r.b[n:]
	return x
}

// count reads the length of a list of which each item takes at least least bytes.
func (r *reader) count(least int) int {
	n := r.uint(maxCount)
	if n > uint64(len(r.b)/least) {
		r.fail("a list of %d items in %d bytes", n, len(r.b))
		return 0
	}
	return int(n)
}

// bytes reads a text with its length. The result is part of the input.
func (r *reader) bytes() []byte {
	n := r.count(1)
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

// appendBytes appends a text with its length.
func appendBytes[T ~string | ~[]byte](dst []byte, s T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// int reads a number that may be negative.
func (r *reader) int() int64 {
	x := r.uint(math.MaxUint64)
	return int64(x>>1) ^ -int64(x&1)
}

// fixed reads eight bytes.
func (r *reader) fixed() uint64 {
	if len(r.b) < 8 {
		r.fail("too short")
		return 0
	}
	x := binary.BigEndian.Uint64(r.b)
	r.b = r.b[8:]
	return x
}
