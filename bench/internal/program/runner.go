// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/harness"
)

// runTimeout is how long a run may take whose spec sets no limit.
const runTimeout = 3 * time.Minute

// runner measures groups.
type runner struct {
	this     harness.Launcher
	other    *harness.Launcher // Another build of the program, which takes turns with this one; nil for none.
	runs     int
	time     time.Duration
	entities int // Replaces a larger number in the plan; zero: as planned.
	profile  string
	progress *figure.Progress
}

// build is a build of the program, with what its runs of a group gave.
type build struct {
	harness.Launcher

	of     string // Before the names of experiments, for people.
	runs   []figure.Runs
	failed []error // By experiment: it is not run again.
}

func newBuild(l harness.Launcher, of string, g harness.Group) *build {
	b := &build{Launcher: l, of: of, failed: make([]error, len(g.Experiments))}
	for _, e := range g.Experiments {
		b.runs = append(b.runs, figure.Runs{Figures: e.Figures, Floor: e.Floor, Peer: e.Peer})
	}
	return b
}

// run measures a group: each run takes every experiment once, in turn, and that of the other build, if there is one,
// right before or after it. An experiment that fails is not run again and has no records; the error says
// why. It does not keep the others from being measured. One that fails in the other build is not compared, and a note
// says why.
func (r runner) run(ctx context.Context, g harness.Group) ([]figure.Record, error) {
	this := newBuild(r.this, "", g)
	turns := []*build{this}
	var other *build
	if r.other != nil {
		other = newBuild(*r.other, "other build: ", g)
		turns = append(turns, other)
	}
	for n := range r.runs {
		for i := range g.Experiments {
			for _, b := range turns {
				r.turn(ctx, g, b, n, i)
			}
		}
		slices.Reverse(turns)
	}
	records := figure.Summarize(g.Name, this.runs)
	if other != nil {
		figure.Beside(records, figure.Summarize(g.Name, other.runs))
		for _, err := range other.failed {
			if err != nil && len(records) > 0 {
				records[0].Notes = append(records[0].Notes, err.Error())
			}
		}
	}
	return records, errors.Join(errors.Join(this.failed...), context.Cause(ctx))
}

// turn has a build take run n of an experiment.
func (r runner) turn(ctx context.Context, g harness.Group, b *build, n, i int) {
	e := g.Experiments[i]
	if e.Once && n > 0 || b.failed[i] != nil || ctx.Err() != nil {
		return
	}
	name := g.Role(e)
	r.progress.Begin("run %d of %d  %s%s", n+1, r.runs, b.of, name)
	out, err := r.once(ctx, b.Launcher, e.Spec.As(name))
	if err != nil {
		b.failed[i], b.runs[i].Outcomes = fmt.Errorf("%s%s: %w", b.of, name, err), nil
		return
	}
	r.progress.End(e.Figures, out)
	b.runs[i].Outcomes = append(b.runs[i].Outcomes, out)
}

// once runs an experiment in a fresh process of a build.
func (r runner) once(ctx context.Context, l harness.Launcher, s harness.Spec) (out figure.Outcome, err error) {
	s.Time, s.Profile = r.time, r.profile
	if r.entities > 0 {
		s.Entities = min(s.Entities, r.entities)
	}
	if s.Limit == 0 {
		s.Limit = runTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, s.Limit)
	defer cancel()
	if s.Awake {
		keeper, err := l.Start(s.As(harness.RoleAwake))
		if err != nil {
			return out, err
		}
		defer keeper.Stop()
		if err := keeper.Answer(ctx, &out); err != nil {
			return out, err
		}
	}
	p, err := l.Start(s)
	if err != nil {
		return out, err
	}
	defer p.Stop()
	err = p.Answer(ctx, &out)
	return out, err
}
