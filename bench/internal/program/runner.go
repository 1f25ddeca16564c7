// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/harness"
)

// runTimeout is how long a run may take whose spec sets no limit.
const runTimeout = 3 * time.Minute

// runner measures groups.
type runner struct {
	harness.Launcher

	runs     int
	time     time.Duration
	entities int // Replaces a larger number in the plan; zero: as planned.
	profile  string
	progress *figure.Progress
}

// run measures a group: each run takes every experiment once, in turn. An
// experiment that fails is not run again and has no records; the error says
// why. It does not keep the others from being measured.
func (r runner) run(ctx context.Context, g harness.Group) ([]figure.Record, error) {
	runs := make([]figure.Runs, len(g.Experiments))
	failed := make([]error, len(g.Experiments))
	for i, e := range g.Experiments {
		runs[i] = figure.Runs{Figures: e.Figures, Floor: e.Floor, Peer: e.Peer}
	}
	for n := range r.runs {
		for i, e := range g.Experiments {
			if e.Once && n > 0 || failed[i] != nil || ctx.Err() != nil {
				continue
			}
			name := g.Role(e)
			r.progress.Begin("run %d of %d  %s", n+1, r.runs, name)
			out, err := r.once(ctx, e.Spec.As(name))
			if err != nil {
				failed[i], runs[i].Outcomes = fmt.Errorf("%s: %w", name, err), nil
				continue
			}
			r.progress.End(e.Figures, out)
			runs[i].Outcomes = append(runs[i].Outcomes, out)
		}
	}
	return figure.Summarize(g.Name, runs), errors.Join(errors.Join(failed...), context.Cause(ctx))
}

// once runs an experiment in a fresh process.
func (r runner) once(ctx context.Context, s harness.Spec) (out figure.Outcome, err error) {
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
		keeper, err := r.Start(s.As(harness.RoleAwake))
		if err != nil {
			return out, err
		}
		defer keeper.Stop()
		if err := keeper.Answer(ctx, &out); err != nil {
			return out, err
		}
	}
	p, err := r.Start(s)
	if err != nil {
		return out, err
	}
	defer p.Stop()
	err = p.Answer(ctx, &out)
	return out, err
}
