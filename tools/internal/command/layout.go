// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
)

// printable replaces characters that would move the cursor of a terminal or change its
// colours: the answers of a node contain names that others have chosen.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// paragraph writes text in lines of at most 80 columns. The first line follows a lead
// that is already printed and is as wide as the indent of the other lines.
func paragraph(w io.Writer, indent int, text string) {
	room := columns - indent
	line := ""
	flush := func() {
		fmt.Fprintln(w, line)
		line = strings.Repeat(" ", indent)
	}
	width := 0 // Width of the line after the indent.
	for word := range strings.FieldsSeq(printable(text)) {
		for runes := []rune(word); len(runes) > 0; {
			piece := runes[:min(len(runes), room)]
			runes = runes[len(piece):]
			if width > 0 && width+1+len(piece) > room {
				flush()
				width = 0
			}
			if width > 0 {
				line += " "
				width++
			}
			line += string(piece)
			width += len(piece)
		}
	}
	flush()
}

// labelWidth is the width of the names in a list of fields.
const labelWidth = 13

// field writes a name and a value that may need several lines, or nothing if the value is
// empty.
func field(w io.Writer, name, value string) {
	if value == "" {
		return
	}
	fmt.Fprintf(w, "%-*s", labelWidth, name)
	paragraph(w, labelWidth, value)
}

// moment returns a time for people, "" for none.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05Z")
}

// plural returns "1 shard" or "2 shards".
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
