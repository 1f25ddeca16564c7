// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package shutdown

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// Tasks are added to phases ([Sequence.Add]). Run begins each phase in a goroutine that waits for the phases before it
// ([Sequence.phase]), calls its tasks ([Sequence.call]), and notes how each has ended; what has not returned when the
// time of the phase is over is left behind.

// sayEvery is how often the log says what is waited for.
const sayEvery = 5 * time.Second

// grace is how long a phase lasts at most after the contexts of its tasks have ended, out of its time.
const grace = 100 * time.Millisecond

// The errors of a sequence and of tasks.
var (
	// ErrBegun is the error of [Sequence.Add] when the end has begun.
	ErrBegun = errors.New("shutdown: the end has begun")
	// ErrUnknownPhase is wrapped by the error of [Sequence.Add] when there is no such phase.
	ErrUnknownPhase = errors.New("shutdown: there is no such phase")
	// ErrUnfinished is the error of a task that has not returned within the time of its phase.
	ErrUnfinished = errors.New("shutdown: has not returned in time")
	// ErrNotBegun is the error of a task that was not called, since the deadline was over.
	ErrNotBegun = errors.New("shutdown: was not begun, the deadline was over")
	// ErrPanicked is wrapped by the error of a task that has panicked.
	ErrPanicked = errors.New("shutdown: panicked")
)

// Sequence is the end of one program. It is safe for concurrent use.
type Sequence struct {
	deadline time.Duration
	phases   []Phase // In an order in which they could run one after the other.
	log      *slog.Logger

	mu     sync.Mutex // Guards all below.
	tasks  []*task
	begun  bool
	over   chan struct{} // Closed when report is there.
	report Report
}

// task is what a phase has to do.
type task struct {
	phase, name string
	do          func(context.Context) error
	called      time.Time // Zero until the task is called. Guarded by Sequence.mu, as result.
	result      *Result   // Nil until the task has ended.
}

// Result says how a task has ended.
type Result struct {
	Phase, Name string
	Took        time.Duration
	Err         error // Nil if the task has done what it had to.
}

// Report says how the end went.
type Report struct {
	Reason  string        // Why the program ends, as it was given to [Sequence.Run].
	Took    time.Duration // From the begin of Run to the end of the last phase.
	Results []Result      // Of all tasks, by phase, and within a phase as they were added.
}

// Err returns the errors of all tasks, each with its phase and name; nil if all have done what they had to.
func (r Report) Err() error {
	var all []error
	for _, t := range r.Results {
		if t.Err != nil {
			all = append(all, fmt.Errorf("%s of phase %s: %w", t.Name, t.Phase, t.Err))
		}
	}
	return errors.Join(all...)
}

// New makes a sequence of phases that end within a deadline, above 0, after [Sequence.Run] has begun. A nil logger
// means [slog.Default]. The error wraps [ErrPhases].
func New(deadline time.Duration, log *slog.Logger, phases ...Phase) (*Sequence, error) {
	if deadline <= 0 {
		return nil, fmt.Errorf("%w: the deadline is %v", ErrPhases, deadline)
	}
	order, err := check(deadline, phases)
	if err != nil {
		return nil, err
	}
	if log == nil {
		log = slog.Default()
	}
	return &Sequence{deadline: deadline, phases: order, log: log, over: make(chan struct{})}, nil
}

// Add gives a phase a task, until remove is called or the end has begun. The task should return soon after
// its context has ended. The name is for the log and the report. The error wraps [ErrBegun] or [ErrUnknownPhase].
func (s *Sequence) Add(phase, name string, do func(context.Context) error) (remove func(), err error) {
	if !slices.ContainsFunc(s.phases, func(p Phase) bool { return p.Name == phase }) {
		return nil, fmt.Errorf("%w: %q", ErrUnknownPhase, phase)
	}
	t := &task{phase: phase, name: name, do: do}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun {
		return nil, ErrBegun
	}
	s.tasks = append(s.tasks, t)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.begun {
			s.tasks = slices.DeleteFunc(s.tasks, func(other *task) bool { return other == t })
		}
	}, nil
}

// Begun reports whether the end has begun.
func (s *Sequence) Begun() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun
}

// Run runs all phases, and returns when they are over. Who calls it again gets the report of the first call, when that
// is there. The end of ctx ends the contexts of all tasks, and phases that have not begun then are called with a
// context that has ended.
func (s *Sequence) Run(ctx context.Context, reason string) Report {
	s.mu.Lock()
	first := !s.begun
	s.begun = true
	s.mu.Unlock()
	if first {
		s.run(ctx, reason)
	}
	<-s.over
	return s.report
}

// run runs all phases.
func (s *Sequence) run(ctx context.Context, reason string) {
	began := time.Now()
	s.log.InfoContext(ctx, "the end begins", "reason", reason, "deadline", s.deadline)
	over := make(map[string]chan struct{}, len(s.phases))
	for _, p := range s.phases {
		over[p.Name] = make(chan struct{})
	}
	var running sync.WaitGroup
	for _, p := range s.phases {
		running.Go(func() { // Run waits for it: each phase has an end.
			defer close(over[p.Name])
			for _, before := range p.After {
				<-over[before]
			}
			s.phase(ctx, p, began)
		})
	}
	running.Wait()
	s.conclude(reason, time.Since(began))
}

// phase calls the tasks of a phase and waits for them, within its time.
func (s *Sequence) phase(ctx context.Context, p Phase, began time.Time) {
	left := s.deadline - later(s.phases, p.Name) - time.Since(began)
	if p.Most > 0 {
		left = min(left, p.Most)
	}
	tasks := s.of(p.Name)
	if len(tasks) == 0 || left <= 0 {
		return // What was not begun is in the report.
	}
	ctx, cancel := context.WithTimeout(ctx, left-min(grace, left/10))
	defer cancel()
	ended := make(chan struct{}, len(tasks))
	for _, t := range tasks {
		// Ends when the task returns; the report names it if that is later than its phase.
		go func() {
			s.call(ctx, t)
			ended <- struct{}{}
		}()
	}
	limit, say := time.NewTimer(left), time.NewTicker(sayEvery)
	defer limit.Stop()
	defer say.Stop()
	for n := 0; n < len(tasks); {
		select {
		case <-ended:
			n++
		case <-say.C:
			s.log.InfoContext(ctx, "the end waits", "phase", p.Name, "for", s.unfinished(p.Name), "since", time.Since(began).Round(time.Second))
		case <-limit.C:
			s.log.WarnContext(ctx, "the end goes on without what has not finished", "phase", p.Name, "unfinished", s.unfinished(p.Name))
			return
		}
	}
}

// of returns the tasks of a phase. None is added any more.
func (s *Sequence) of(phase string) (tasks []*task) {
	for _, t := range s.tasks {
		if t.phase == phase {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// call calls a task, and notes how it has ended.
func (s *Sequence) call(ctx context.Context, t *task) {
	began := time.Now()
	s.mu.Lock()
	t.called = began
	s.mu.Unlock()
	err := guarded(ctx, t.do)
	took := time.Since(began)
	if err != nil {
		s.log.WarnContext(ctx, "a task of the end has failed", "phase", t.phase, "task", t.name, "error", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t.result = &Result{Phase: t.phase, Name: t.name, Took: took, Err: err}
}

// guarded calls a function; a panic is an error.
func guarded(ctx context.Context, do func(context.Context) error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", ErrPanicked, r)
		}
	}()
	return do(ctx)
}

// unfinished names the tasks of a phase that have not returned.
func (s *Sequence) unfinished(phase string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for _, t := range s.of(phase) {
		if t.result == nil {
			names = append(names, t.name)
		}
	}
	return strings.Join(names, ", ")
}

// conclude makes the report.
func (s *Sequence) conclude(reason string, took time.Duration) {
	s.mu.Lock()
	r := Report{Reason: reason, Took: took}
	for _, p := range s.phases {
		for _, t := range s.of(p.Name) {
			switch {
			case t.result != nil:
				r.Results = append(r.Results, *t.result)
			case !t.called.IsZero():
				r.Results = append(r.Results, Result{Phase: t.phase, Name: t.name, Took: time.Since(t.called), Err: ErrUnfinished})
			default:
				r.Results = append(r.Results, Result{Phase: t.phase, Name: t.name, Err: ErrNotBegun})
			}
		}
	}
	s.report = r
	s.mu.Unlock()
	close(s.over)
	if err := r.Err(); err != nil {
		s.log.Warn("the end is over, and not all was done", "took", took, "error", err)
		return
	}
	s.log.Info("the end is over", "took", took)
}
