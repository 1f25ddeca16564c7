// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// AppendVarint appends a number in groups of seven bits, without a tag.
func AppendVarint(b []byte, v uint64) []byte {
	if v < 1<<7 {
		return append(b, byte(v))
	}
	return binary.AppendUvarint(b, v)
}

// AppendTag appends the tag of a field. The caller appends the value next.
func AppendTag(b []byte, n Number, t Type) []byte {
	return AppendVarint(b, uint64(n)<<3|uint64(t))
}

// AppendUint appends a field with a number, and nothing for 0. [Field.Uint] reads it.
func AppendUint(b []byte, n Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return AppendVarint(AppendTag(b, n, VarintType), v)
}

// AppendBool appends a field with a truth value, and nothing for false. [SetBool]
// reads it.
func AppendBool(b []byte, n Number, v bool) []byte {
	if !v {
		return b
	}
	return AppendUint(b, n, 1)
}

// AppendFixed64 appends a field with a number in eight bytes, also for 0. It suits
// numbers that are spread evenly, such as uids. [Field.Fixed64] reads it.
func AppendFixed64(b []byte, n Number, v uint64) []byte {
	return binary.LittleEndian.AppendUint64(AppendTag(b, n, Fixed64Type), v)
}

// AppendString appends a field with a text, and nothing for "". [Field.Text] reads it.
// The reader refuses a text that is not UTF-8; see [Clip].
func AppendString(b []byte, n Number, v string) []byte {
	if v == "" {
		return b
	}
	return append(AppendVarint(AppendTag(b, n, BytesType), uint64(len(v))), v...)
}

// AppendBytes appends a field with bytes, and nothing when v is empty. [Field.Data]
// reads it.
func AppendBytes(b []byte, n Number, v []byte) []byte {
	if len(v) == 0 {
		return b
	}
	return append(AppendVarint(AppendTag(b, n, BytesType), uint64(len(v))), v...)
}

// Begin begins a field with a message inside, whose fields the caller appends next,
// until [End]. It leaves one byte for the length.
func Begin(b []byte, n Number) (dst []byte, at int) {
	b = append(AppendTag(b, n, BytesType), 0)
	return b, len(b)
}

// End ends the field that [Begin] began, and writes its length.
func End(b []byte, at int) []byte {
	size := len(b) - at
	if size < 1<<7 {
		b[at-1] = byte(size)
		return b
	}
	var prefix [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(prefix[:], uint64(size))
	b[at-1] = prefix[0]
	return slices.Insert(b, at, prefix[1:n]...)
}

// SizeVarint is the number of bytes that [AppendVarint] appends.
func SizeVarint(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }

// SizeTag is the number of bytes that [AppendTag] appends.
func SizeTag(n Number) int { return SizeVarint(uint64(n) << 3) }

// SizeUint is the number of bytes that [AppendUint] appends.
func SizeUint(n Number, v uint64) int {
	if v == 0 {
		return 0
	}
	return SizeTag(n) + SizeVarint(v)
}

// SizeBool is the number of bytes that [AppendBool] appends.
func SizeBool(n Number, v bool) int {
	if !v {
		return 0
	}
	return SizeTag(n) + 1
}

// SizeBytes is the number of bytes that [AppendBytes] and [AppendString] append for a
// value of the given size.
func SizeBytes(n Number, size int) int {
	if size == 0 {
		return 0
	}
	return SizeTag(n) + SizeVarint(uint64(size)) + size
}
