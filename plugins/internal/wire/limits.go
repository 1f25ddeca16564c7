// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/wire"
)

// Limits of one request, besides its size in bytes. They keep allocations in proportion:
// a few bytes of a column become a struct each.
const (
	MaxNodes      = 3 * gossip.MaxMembers // Members, and two sets of voters.
	MaxRegions    = gossip.MaxMembers
	MaxComplaints = 1 << 20
	MaxVoterSets  = 4
)

// WindowBytes is how many bytes of one message either side of a connection may send
// before the other has read them. A fixed size saves every call the packets with which
// gRPC measures the best size, which took a sixth of a call's time.
const WindowBytes = 1 << 20

// ErrMalformed is matched by every error of this package; it is the error of
// machine/wire.
var ErrMalformed = wire.ErrMalformed

// Malformed returns the error for a wrong field.
func Malformed(field, format string, args ...any) error {
	return wire.Malformed("%s: "+format, append([]any{field}, args...)...)
}

// SameLength checks the lengths of the columns of one list.
func SameLength(list string, want int, columns ...int) error {
	for i, n := range columns {
		if n != want {
			return Malformed(list, "column %d has %d elements, the first has %d", i+2, n, want)
		}
	}
	return nil
}

// Within checks that every index is in a table of n elements.
func Within(field string, places []uint32, n int) error {
	for i, p := range places {
		if uint64(p) >= uint64(n) {
			return Malformed(field, "element %d names place %d of a table of %d", i, p, n)
		}
	}
	return nil
}

// Line returns foreign text as one line of at most limit bytes that is safe to log: valid
// UTF-8 without control characters.
func Line(text string, limit int) string {
	if len(text) > limit {
		cut := limit
		for cut > 0 && cut > limit-utf8.UTFMax && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut]
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}

// Text returns a text as a message can carry it, as long as it was: a question mark stands for
// each byte that is not UTF-8.
func Text(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	valid := []byte(text)
	for i := 0; i < len(valid); {
		r, width := utf8.DecodeRune(valid[i:])
		if r == utf8.RuneError && width == 1 {
			valid[i] = '?'
		}
		i += width
	}
	return string(valid)
}
