// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// linesPrinted bounds each part of what [Print] writes.
const linesPrinted = 20

// Print writes a snapshot as text without colours, in lines of a width.
func Print(w io.Writer, s Snapshot, width int) error {
	var p history
	p.add(s)
	var b strings.Builder
	write := func(line string) {
		b.WriteString(strings.TrimRight(ansi.Strip(fit(line, width)), " ") + "\n")
	}
	write("asked " + short(s.Members.Self) + " at " + s.At.Local().Format("2006-01-02 15:04:05 -07:00"))
	for _, line := range head(&s, width) {
		write(line)
	}
	for _, sec := range sections(&p, width) {
		if len(sec.lines) == 0 {
			continue
		}
		shown := sec.lines[:min(len(sec.lines), linesPrinted)]
		if hidden := len(sec.lines) - len(shown); hidden > 0 {
			sec.note += fmt.Sprintf(", %d more", hidden)
		}
		write("")
		write(titled(sec))
		for _, line := range shown {
			write(line)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
