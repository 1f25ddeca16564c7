// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package frugal is a check for tests: a decoder of what others send allocates at most [PerByte] bytes for each byte
// that it was given, so that the bound of a message bounds what it costs.
package frugal

import (
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"
)

// Require makes inputs of what is cheap to send and dear to keep (repeated), from nothing and from messages of the
// protocol (within), and measures what the decoder allocates for each: first for a short input, and if that is not far
// below what it may be, for a long one, in which no slack hides. What grows faster than its input shows in the short
// one too.

const (
	// PerByte is how many bytes a decoder may allocate for each byte of its input.
	PerByte = 8
	// Slack is what it may allocate besides, whatever the input is.
	Slack = 16 << 10
	// inputBytes is the size of the inputs: large enough for Slack not to matter, and below the bounds of the smallest
	// messages.
	inputBytes = 60 << 10
	// shortBytes is the size of those that are tried first.
	shortBytes = 1 << 10
	// numbers is how many field numbers are tried at each level of a message.
	numbers = 12
)

// Require fails the test if decode allocates more than it may for an input: fields that repeat without content, at the
// first and second level of a message, by themselves and behind each of the seeds, which are messages as they are sent;
// and each field of a seed again and again, at each level. The inputs are encoded as protobuf is; other decoders get
// Inputs of their own. Tests that call it are not parallel.
func Require(tb testing.TB, decode func([]byte), seeds ...[]byte) {
	tb.Helper()
	RequireWithin(tb, PerByte, decode, seeds...)
}

// RequireWithin is Require for a decoder of messages that take more than [PerByte] by their nature: perByte bytes for
// each byte, as the page about security says of them.
func RequireWithin(tb testing.TB, perByte int, decode func([]byte), seeds ...[]byte) {
	tb.Helper()
	var worst float64
	for _, in := range repeated(seeds) {
		short := in.of(shortBytes)
		if in.seeded && allocated(decode, short, len(short)*PerByte/2) <= uint64(len(short)*PerByte/2) {
			continue
		}
		worst = max(worst, measure(tb, decode, in.name, in.of(inputBytes), perByte))
	}
	tb.Logf("at most %.1f bytes allocated for a byte", worst)
}

// RequireInputs is Require with the given inputs alone.
func RequireInputs(tb testing.TB, decode func([]byte), inputs map[string][]byte) {
	tb.Helper()
	RequireFactor(tb, PerByte, decode, inputs)
}

// RequireFactor is RequireInputs for a decoder of values that take more than [PerByte] by their nature: perByte bytes
// for each byte. The size of what it decodes has to be bounded by somebody else.
func RequireFactor(tb testing.TB, perByte int, decode func([]byte), inputs map[string][]byte) {
	tb.Helper()
	var worst float64
	for name, in := range inputs {
		worst = max(worst, measure(tb, decode, name, in, perByte))
	}
	tb.Logf("at most %.1f bytes allocated for a byte", worst)
}

// input is what is put together for a decoder: behind a head a body of one field again and again.
type input struct {
	name       string
	head, unit []byte
	wrap       func([]byte) []byte
	seeded     bool // A short one is tried first.
}

// of returns the input with a body of a size.
func (in input) of(size int) []byte {
	body := make([]byte, 0, size)
	for len(body)+len(in.unit) <= size {
		body = append(body, in.unit...)
	}
	return append(append([]byte(nil), in.head...), in.wrap(body)...)
}

// measure returns how many bytes decode allocates for a byte.
func measure(tb testing.TB, decode func([]byte), name string, in []byte, perByte int) float64 {
	tb.Helper()
	most := perByte*len(in) + Slack
	n := allocated(decode, in, most)
	if n > uint64(most) {
		tb.Errorf("%d bytes of %s have %d bytes allocated, at most %d may be", len(in), name, n, most)
	}
	return float64(n) / float64(len(in))
}

// allocated returns how many bytes decode allocates for an input. Others may allocate meanwhile, and the first call may
// prepare what stays: so it is called again if it has allocated more than most.
func allocated(decode func([]byte), in []byte, most int) uint64 {
	least := uint64(math.MaxUint64)
	for try := 0; try < 2 && least > uint64(most); try++ {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		decode(in)
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	return least
}

// units are the cheapest fields of a number: without content, with an empty field in it, and a small number.
func units(number int) [][]byte {
	tag := func(typ uint64) []byte { return binary.AppendUvarint(nil, uint64(number)<<3|typ) }
	return [][]byte{append(tag(2), 0), append(tag(2), 2, 1<<3, 1), append(tag(2), 2, 1<<3|2, 0), append(tag(2), 1, 'x'), append(tag(0), 1)}
}

// repeated are the inputs.
func repeated(seeds [][]byte) (all []input) {
	add := func(name string, head, unit []byte, wrap func([]byte) []byte) {
		all = append(all, input{name, head, unit, wrap, len(head) > 0})
	}
	plain := func(b []byte) []byte { return b }
	heads := append([][]byte{nil}, seeds...)
	for s, head := range heads {
		for n := 1; n <= numbers; n++ {
			for u, unit := range units(n) {
				add(fmt.Sprintf("field %d, form %d, behind seed %d", n, u, s), head, unit, plain)
			}
		}
		for outer := 1; outer <= numbers; outer++ {
			within := func(b []byte) []byte {
				out := binary.AppendUvarint(nil, uint64(outer)<<3|2)
				return append(binary.AppendUvarint(out, uint64(len(b))), b...)
			}
			for n := 1; n <= numbers; n++ {
				add(fmt.Sprintf("field %d.%d behind seed %d", outer, n, s), head, units(n)[0], within)
			}
		}
	}
	for s, seed := range seeds { // The fields of the seed again and again, as they are.
		all = append(all, nested(fmt.Sprintf("seed %d", s), seed, plain, levels)...)
	}
	return all
}

// levels is how deep messages are nested whose fields are repeated.
const levels = 4

// nested are the fields of a message again and again behind what it has, and those of the messages in it.
func nested(name string, message []byte, wrap func([]byte) []byte, deep int) (all []input) {
	if deep == 0 {
		return nil
	}
	at := 0
	for i, unit := range fields(message) {
		field := fmt.Sprintf("field at place %d of %s", i, name)
		all = append(all, input{field, nil, unit, func(b []byte) []byte { return wrap(slices.Concat(message, b)) }, true})
		before, after := message[:at], message[at+len(unit):]
		at += len(unit)
		tag, n := binary.Uvarint(unit)
		if _, m := binary.Uvarint(unit[n:]); tag&7 == 2 && isMessage(unit[n+m:]) {
			all = append(all, nested(field, unit[n+m:], func(b []byte) []byte {
				size := binary.AppendUvarint(slices.Clone(unit[:n]), uint64(len(b)))
				return wrap(slices.Concat(before, size, b, after))
			}, deep-1)...)
		}
	}
	return all
}

// isMessage reports whether bytes are fields, whole.
func isMessage(b []byte) bool {
	size := 0
	for _, field := range fields(b) {
		size += len(field)
	}
	return size == len(b) && size > 0
}

// fields are the fields of a message, whole; none of what is no message.
func fields(b []byte) (all [][]byte) {
	for len(b) > 0 {
		tag, n := binary.Uvarint(b)
		if n <= 0 {
			return all
		}
		size := 0
		switch rest := b[n:]; tag & 7 {
		case 0:
			_, size = binary.Uvarint(rest)
		case 1:
			size = 8
		case 2:
			l, m := binary.Uvarint(rest)
			if m <= 0 || l > uint64(len(rest)-m) {
				return all
			}
			size = m + int(l)
		case 5:
			size = 4
		}
		if size <= 0 || n+size > len(b) {
			return all
		}
		all = append(all, b[:n+size])
		b = b[n+size:]
	}
	return all
}
