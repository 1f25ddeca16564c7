// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package hocon

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The scanner cuts a text into tokens. What stands between two values of one line is a part of a text that they form,
// so each token knows the space before it.

type kind uint8

const (
	end          kind = iota // Of the text.
	newline                  // One or several, with comments.
	mark                     // One of { } [ ] , : = or "+=".
	quoted                   // A text in quotes.
	unquoted                 // A text without.
	substitution             // ${path} or ${?path}, of which the text is the path.
)

type token struct {
	kind     kind
	text     string
	space    string // Before it, in its line.
	line     int
	optional bool     // ${?path}
	base     []string // Of a substitution in a file that is included: where the fields of that file are.
}

// forbidden are the characters that no text without quotes has.
const forbidden = "$\"{}[]:=,+#`^?!@*&\\"

type scanner struct {
	file string
	rest string
	line int
}

// fault returns a fault of the line that is being read.
func (s *scanner) fault(format string, args ...any) *Error {
	return &Error{File: s.file, Line: s.line, Reason: fmt.Sprintf(format, args...)}
}

// next returns the next token.
func (s *scanner) next() (token, *Error) {
	space := s.take(func(r rune) bool { return r != '\n' && (unicode.IsSpace(r) || r == '\ufeff') })
	if strings.HasPrefix(s.rest, "#") || strings.HasPrefix(s.rest, "//") {
		s.take(func(r rune) bool { return r != '\n' })
	}
	t := token{space: space, line: s.line}
	switch {
	case s.rest == "":
		return t, nil
	case s.rest[0] == '\n':
		t.kind, s.rest = newline, s.rest[1:]
		s.line++
		return t, nil
	case strings.HasPrefix(s.rest, "+="):
		t.kind, t.text, s.rest = mark, "+=", s.rest[2:]
		return t, nil
	case strings.ContainsRune("{}[],:=", rune(s.rest[0])):
		t.kind, t.text, s.rest = mark, s.rest[:1], s.rest[1:]
		return t, nil
	case strings.HasPrefix(s.rest, `"""`):
		return s.block(t)
	case s.rest[0] == '"':
		return s.quoted(t)
	case strings.HasPrefix(s.rest, "${"):
		return s.substitution(t)
	}
	t.kind = unquoted
	line, _, _ := strings.Cut(s.rest, "\n")
	line, _, _ = strings.Cut(line, "//")
	n := strings.IndexFunc(line, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(forbidden, r) })
	if n < 0 {
		n = len(line)
	}
	if t.text, s.rest = s.rest[:n], s.rest[n:]; n == 0 {
		r, _ := utf8.DecodeRuneInString(s.rest)
		return t, s.fault("%q needs quotes around it", r)
	}
	return t, nil
}

// take takes characters off the rest.
func (s *scanner) take(of func(rune) bool) string {
	n := strings.IndexFunc(s.rest, func(r rune) bool { return !of(r) })
	if n < 0 {
		n = len(s.rest)
	}
	taken := s.rest[:n]
	s.rest = s.rest[n:]
	return taken
}

// block scans a text in three quotes.
func (s *scanner) block(t token) (token, *Error) {
	n := strings.Index(s.rest[3:], `"""`)
	if n < 0 {
		return t, s.fault(`a text begins with """ and does not end`)
	}
	n += 3
	for strings.HasPrefix(s.rest[n+3:], `"`) { // More quotes at the end are a part of the text.
		n++
	}
	t.kind, t.text = quoted, s.rest[3:n]
	s.line += strings.Count(t.text, "\n")
	s.rest = s.rest[n+3:]
	return t, nil
}

// quoted scans a text in quotes, whose escapes are those of JSON.
func (s *scanner) quoted(t token) (token, *Error) {
	for n := 1; n < len(s.rest) && s.rest[n] != '\n'; n++ {
		switch s.rest[n] {
		case '\\':
			n++
		case '"':
			t.kind = quoted
			if err := json.Unmarshal([]byte(s.rest[:n+1]), &t.text); err != nil {
				return t, s.fault("a text in quotes: %v", err)
			}
			s.rest = s.rest[n+1:]
			return t, nil
		}
	}
	return t, s.fault("a text in quotes does not end in its line")
}

func (s *scanner) substitution(t token) (token, *Error) {
	n := strings.IndexAny(s.rest, "}\n")
	if n < 0 || s.rest[n] != '}' {
		return t, s.fault("${ without } in its line")
	}
	t.kind = substitution
	t.text, t.optional = strings.CutPrefix(s.rest[2:n], "?")
	s.rest = s.rest[n+1:]
	return t, nil
}
