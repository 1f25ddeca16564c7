// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package lanes

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Continuous integration has time for some of the lanes at each run. Which are due is a function of the history
// alone: a run follows each session of work, and sessions are apart by a pause. So the number of such pauses is
// the number of the run, and the units take turns by it.

const (
	// shortestPause is the least time between two commits that begins a new session. People commit more often
	// while they work.
	shortestPause = 40 * time.Minute
	// maxRuns is after how many runs each unit has had its turn.
	maxRuns = 6
)

// A Unit is one part of a lane: what continuous integration begins or leaves out.
type Unit struct {
	Lane Lane
	Part int // 1 to Lane.Parts
	// Waited is for how many runs the unit was not due: 0 if it is due now.
	Waited int
	// Touched says whether the session changed a file that the lane is about.
	Touched bool
}

// Name returns "race/2", or "pages" for a lane of one part.
func (u Unit) Name() string {
	if u.Lane.Parts == 1 {
		return u.Lane.Name
	}
	return fmt.Sprintf("%s/%d", u.Lane.Name, u.Part)
}

// units lists all.
func units() []Unit {
	var all []Unit
	for part := 1; part <= maxRuns; part++ {
		for _, l := range Lanes() {
			if part <= l.Parts {
				all = append(all, Unit{Lane: l, Part: part})
			}
		}
	}
	return all
}

// Turn returns all units in the order in which the run begins them: first what is due, then
// what the session has touched, then the rest, and within each what has waited longest.
func (w *Workspace) Turn(ctx context.Context) ([]Unit, error) {
	commits, err := w.Git(ctx, "log", "--format=%ct %H")
	if err != nil {
		return nil, err
	}
	run, base := session(commits)
	var changed []string
	if base != "" {
		if changed, err = w.Git(ctx, "diff", "--name-only", base, "HEAD"); err != nil {
			return nil, err
		}
	}
	return turn(units(), run, changed), nil
}

// session returns the number of pauses in a history of lines "time commit", and the newest commit before the last
// one: "" if there is none.
func session(commits []string) (run int, base string) {
	slices.Sort(commits) // The times have equally many digits until the year 2286.
	var last int64
	for i, line := range commits {
		at, err := strconv.ParseInt(line[:min(10, len(line))], 10, 64)
		if err != nil {
			continue
		}
		if i > 0 && at-last > int64(shortestPause/time.Second) {
			run++
			base = commits[i-1][min(11, len(commits[i-1])):]
		}
		last = at
	}
	return run, base
}

func turn(all []Unit, run int, changed []string) []Unit {
	runs := shared(all)
	for i := range all {
		u := &all[i]
		u.Waited = ((run-runs[i])%maxRuns + maxRuns) % maxRuns
		u.Touched = slices.ContainsFunc(changed, u.Lane.Touched)
	}
	rank := func(u Unit) int {
		switch {
		case u.Waited == 0:
			return 0
		case u.Touched:
			return 1
		default:
			return 2
		}
	}
	slices.SortStableFunc(all, func(a, b Unit) int {
		if by := rank(a) - rank(b); by != 0 {
			return by
		}
		return b.Waited - a.Waited
	})
	return all
}

// shared shares units among runs, so that each run has about as much time for what is due: those that take long first,
// each to the run that has least so far and no part of the same lane.
func shared(all []Unit) (runs []int) {
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(all[b].Lane.Time, all[a].Lane.Time) })
	runs = make([]int, len(all))
	var sum [maxRuns]time.Duration
	has := map[string]bool{} // A lane and a run.
	for _, i := range order {
		lane, at := all[i].Lane, -1
		for run := range maxRuns {
			if !has[fmt.Sprint(lane.Name, run)] && (at < 0 || sum[run] < sum[at]) {
				at = run
			}
		}
		runs[i], sum[at], has[fmt.Sprint(lane.Name, at)] = at, sum[at]+lane.Time, true
	}
	return runs
}

// Begins says whether a unit is begun when a run has taken so long: what is due, until the
// machine has shown to be busy; anything else, if it is over within the budget.
func (u Unit) Begins(used, budget, latest time.Duration) bool {
	if u.Waited == 0 {
		return used < latest
	}
	return used+u.Lane.Time <= budget
}
