// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package figure

import (
	"fmt"
	"io"
	"os"
)

// Progress tells people what is being done. On a terminal it is one line that changes,
// elsewhere a line per run.
type Progress struct {
	out      io.Writer
	terminal bool
	line     string
}

// NewProgress returns a progress on w.
func NewProgress(w io.Writer) *Progress {
	p := &Progress{out: w}
	if file, ok := w.(*os.File); ok && os.Getenv("TERM") != "dumb" {
		info, err := file.Stat()
		p.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return p
}

// Begin says which experiment is being run.
func (p *Progress) Begin(format string, values ...any) {
	p.line = fmt.Sprintf(format, values...)
	if p.terminal {
		fmt.Fprintf(p.out, "\r\x1b[K%s", p.line)
	}
}

// End says the outcome of a run.
func (p *Progress) End(figures []Figure, out Outcome) {
	if p.terminal {
		return
	}
	for _, f := range figures {
		p.line += fmt.Sprintf("  %s=%s%s", f.Value, short(out.Values[f.Value]), f.Unit)
	}
	if !out.Correct() {
		p.line += fmt.Sprintf("  lost=%d out-of-order=%d duplicated=%d", out.Lost, out.OutOfOrder, out.Duplicated)
	}
	fmt.Fprintln(p.out, p.line)
}

// Clear ends the line that changes.
func (p *Progress) Clear() {
	if p.terminal {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}
