// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// IsName reports whether a text is fit for a name that others see: of a kind, a topic, a key, a role, a zone or a
// version. It is UTF-8 and has only characters that print: letters, digits, marks, signs and the space of ASCII. So
// it has no control characters, which begin lines of logs or move the cursors of terminals, and none that turn the
// direction of a text or cannot be seen. The empty text is fit: who needs a name checks that as well.
func IsName(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, isUnprinted)
}

// Escape returns a text that others may have made up in a form that is fit for one line of a log or of a terminal:
// what [IsName] does not permit is written as in a literal of Go, such as \n or \u202e.
func Escape(text string) string {
	if IsName(text) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && n == 1, isUnprinted(r):
			quoted := strconv.Quote(text[:n])
			b.WriteString(quoted[1 : len(quoted)-1])
		default:
			b.WriteString(text[:n])
		}
		text = text[n:]
	}
	return b.String()
}

func isUnprinted(r rune) bool { return !unicode.IsPrint(r) }
