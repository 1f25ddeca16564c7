// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// runLimit is how long one run may take that sets no limit itself.
const runLimit = 3 * time.Minute

// runner measures groups.
type runner struct {
	launcher

	runs     int
	time     time.Duration
	entities int // Instead of what the plan says, where it says more; zero: as planned.
	profile  string
	progress *progress
}

// run measures a group: each run takes every experiment once, in turn. An
// experiment that fails is not run again and has no records; the error says
// why. It does not keep the others from being measured.
func (r runner) run(ctx context.Context, g group) ([]record, error) {
	outcomes := make([][]outcome, len(g.experiments))
	failed := make([]error, len(g.experiments))
	for n := range r.runs {
		for i, e := range g.experiments {
			if e.once && n > 0 || failed[i] != nil || ctx.Err() != nil {
				continue
			}
			name := g.name + "/" + e.figures[0].name
			r.progress.begin("run %d of %d  %s", n+1, r.runs, name)
			out, err := r.once(ctx, e.spec)
			if err != nil {
				failed[i], outcomes[i] = fmt.Errorf("%s: %w", name, err), nil
				continue
			}
			r.progress.end(e.figures, out)
			outcomes[i] = append(outcomes[i], out)
		}
	}
	return summarize(g, outcomes), errors.Join(errors.Join(failed...), context.Cause(ctx))
}

// once runs an experiment in a fresh process.
func (r runner) once(ctx context.Context, s spec) (out outcome, err error) {
	s.Time, s.Profile = r.time, r.profile
	if r.entities > 0 {
		s.Entities = min(s.Entities, r.entities)
	}
	if s.Limit == 0 {
		s.Limit = runLimit
	}
	ctx, cancel := context.WithTimeout(ctx, s.Limit)
	defer cancel()
	if s.Awake {
		awake, err := r.start(s.as(roleAwake))
		if err != nil {
			return out, err
		}
		defer awake.stop()
		if err := awake.answer(ctx, &out); err != nil {
			return out, err
		}
	}
	p, err := r.start(s)
	if err != nil {
		return out, err
	}
	defer p.stop()
	err = p.answer(ctx, &out)
	return out, err
}

// progress tells people what happens. On a terminal it is one line that
// changes, elsewhere a line for each run.
type progress struct {
	out      io.Writer
	terminal bool
	line     string
}

// newProgress returns a progress on w.
func newProgress(w io.Writer) *progress {
	p := &progress{out: w}
	if file, ok := w.(*os.File); ok && os.Getenv("TERM") != "dumb" {
		info, err := file.Stat()
		p.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return p
}

// begin says what is being measured.
func (p *progress) begin(format string, values ...any) {
	p.line = fmt.Sprintf(format, values...)
	if p.terminal {
		fmt.Fprintf(p.out, "\r\x1b[K%s", p.line)
	}
}

// end says what came of it.
func (p *progress) end(figures []figure, out outcome) {
	if p.terminal {
		return
	}
	for _, f := range figures {
		p.line += fmt.Sprintf("  %s=%s%s", f.value, short(out.Values[f.value]), f.unit)
	}
	if !out.correct() {
		p.line += fmt.Sprintf("  lost=%d out-of-order=%d duplicated=%d", out.Lost, out.OutOfOrder, out.Duplicated)
	}
	fmt.Fprintln(p.out, p.line)
}

// clear ends the line that changes.
func (p *progress) clear() {
	if p.terminal {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}
