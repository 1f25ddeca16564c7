// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package shutdown_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/membership/shutdown"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a sequence whose tasks note when they begin and end.
type world struct {
	*shutdown.Sequence

	t     require.TestingT
	began time.Time

	mu    sync.Mutex
	notes []string
}

func open(t require.TestingT, deadline time.Duration, phases ...shutdown.Phase) *world {
	s, err := shutdown.New(deadline, slog.New(slog.DiscardHandler), phases...)
	require.NoError(t, err)
	return &world{Sequence: s, t: t, began: time.Now()}
}

// takes adds a task that takes a time, whatever its context says if it is deaf.
func (w *world) takes(phase, name string, d time.Duration, deaf bool) {
	_, err := w.Add(phase, name, func(ctx context.Context) error {
		w.note(name + " begins")
		if deaf {
			<-time.After(d)
			return nil
		}
		select {
		case <-time.After(d):
			w.note(name + " ends")
			return nil
		case <-ctx.Done():
			w.note(name + " gives up")
			return ctx.Err()
		}
	})
	require.NoError(w.t, err)
}

func (w *world) note(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes = append(w.notes, fmt.Sprintf("%v %s", time.Since(w.began), text))
}

// told returns the notes and clears them.
func (w *world) told() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.notes)
}

// The phases of a node come one after the other, the tasks of a phase run beside each other, and who has nothing to do
// takes no time.
func TestPhasesOfANodeFollowOneAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, 25*time.Second, shutdown.Phases(25*time.Second)...)
		w.takes(shutdown.Close, "store", time.Second/2, false)
		w.takes(shutdown.Leave, "node", 3*time.Second, false)
		w.takes(shutdown.Serve, "http", 2*time.Second, false)
		w.takes(shutdown.Serve, "grpc", time.Second, false)
		require.False(t, w.Begun())
		r := w.Run(t.Context(), "SIGTERM")
		require.True(t, w.Begun())
		require.NoError(t, r.Err())
		require.Equal(t, "SIGTERM", r.Reason)
		require.Equal(t, 5500*time.Millisecond, r.Took)
		notes := w.told()
		slices.Sort(notes[:2])
		require.Equal(t, []string{
			"0s grpc begins", "0s http begins", "1s grpc ends", "2s http ends", "2s node begins", "5s node ends", "5s store begins", "5.5s store ends",
		}, notes)
		require.Equal(t, []string{"http", "grpc", "node", "store"}, names(r, func(shutdown.Result) bool { return true }))
		require.Equal(t, r, w.Run(t.Context(), "again"))
	})
}

// names returns the names of some results.
func names(r shutdown.Report, which func(shutdown.Result) bool) (all []string) {
	for _, t := range r.Results {
		if which(t) {
			all = append(all, t.Name)
		}
	}
	return all
}

// A server that does not end leaves to the node, and to the store, what they need; and is named.
func TestATaskThatDoesNotReturnIsLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, 25*time.Second, shutdown.Phases(25*time.Second)...)
		w.takes(shutdown.Serve, "deaf", time.Minute, true)
		w.takes(shutdown.Leave, "node", 14*time.Second, false)
		w.takes(shutdown.Close, "store", time.Second, false)
		r := w.Run(t.Context(), "SIGTERM")
		require.ErrorIs(t, r.Err(), shutdown.ErrUnfinished)
		require.Equal(t, []string{"deaf"}, names(r, func(t shutdown.Result) bool { return errors.Is(t.Err, shutdown.ErrUnfinished) }))
		require.Equal(t, []string{
			"0s deaf begins", "9s node begins", "23s node ends", "23s store begins", "24s store ends",
		}, w.told())
		<-time.After(time.Minute) // It returns after all, and nobody minds.
	})
}

// At the deadline everything is over: what is deaf, and what was never begun. Who heeds the context has a moment to say
// so.
func TestTheDeadlineIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, 10*time.Second, shutdown.Phase{Name: "a"}, shutdown.Phase{Name: "b", After: []string{"a"}}, shutdown.Phase{Name: "c", After: []string{"b"}, Most: time.Second})
		w.takes("a", "deaf", 20*time.Second, true)
		w.takes("a", "cut short", 20*time.Second, false)
		w.takes("b", "never", time.Second, false)
		w.takes("c", "nor this", time.Second, false)
		r := w.Run(t.Context(), "down")
		require.Equal(t, 10*time.Second, r.Took)
		require.ErrorIs(t, r.Results[0].Err, shutdown.ErrUnfinished)
		require.ErrorIs(t, r.Results[1].Err, context.DeadlineExceeded)
		require.Equal(t, []string{"never", "nor this"}, names(r, func(t shutdown.Result) bool { return errors.Is(t.Err, shutdown.ErrNotBegun) }))
		require.Contains(t, w.told(), "9.9s cut short gives up")
		require.Len(t, w.told(), 3)
		<-time.After(time.Minute)
	})
}

func TestFailuresAndPanicsHoldNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, time.Minute, shutdown.Phases(time.Minute)...)
		broken := errors.New("broken")
		_, err := w.Add(shutdown.Serve, "fails", func(context.Context) error { return broken })
		require.NoError(t, err)
		_, err = w.Add(shutdown.Serve, "panics", func(context.Context) error { panic("oh") })
		require.NoError(t, err)
		remove, err := w.Add(shutdown.Serve, "removed", func(context.Context) error { return broken })
		require.NoError(t, err)
		remove()
		w.takes(shutdown.Leave, "node", time.Second, false)
		_, err = w.Add("lunch", "eat", nil)
		require.ErrorIs(t, err, shutdown.ErrUnknownPhase)
		r := w.Run(t.Context(), "SIGTERM")
		require.ErrorIs(t, r.Err(), broken)
		require.ErrorIs(t, r.Err(), shutdown.ErrPanicked)
		require.ErrorContains(t, r.Err(), "fails of phase serve: broken")
		require.Equal(t, []string{"fails", "panics", "node"}, names(r, func(shutdown.Result) bool { return true }))
		_, err = w.Add(shutdown.Close, "late", func(context.Context) error { return nil })
		require.ErrorIs(t, err, shutdown.ErrBegun)
		remove() // It does nothing now.
	})
}

// Who gives the end up, such as by a second signal, ends every task, and later phases are called to close what they
// can.
func TestTheEndOfTheContextEndsTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, time.Minute, shutdown.Phases(time.Minute)...)
		w.takes(shutdown.Leave, "node", 30*time.Second, false)
		w.takes(shutdown.Close, "store", time.Second, false)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		r := w.Run(ctx, "SIGTERM")
		require.Equal(t, 2*time.Second, r.Took)
		require.Equal(t, []string{"0s node begins", "2s node gives up", "2s store begins", "2s store gives up"}, w.told())
	})
}

func TestPhasesThatMakeNoSense(t *testing.T) {
	for want, phases := range map[string][]shutdown.Phase{
		"phase 0 has no name":   {{}},
		`"a" is there twice`:    {{Name: "a"}, {Name: "a"}},
		"time below 0":          {{Name: "a", Reserve: -1}},
		"which there is not":    {{Name: "a", After: []string{"b"}}},
		"in a circle":           {{Name: "a", After: []string{"b"}}, {Name: "b", After: []string{"a"}}},
		"2m0s are reserved, an": {{Name: "a", Reserve: time.Minute}, {Name: "b", Reserve: time.Minute}},
	} {
		_, err := shutdown.New(time.Minute, nil, phases...)
		require.ErrorIs(t, err, shutdown.ErrPhases, want)
		require.ErrorContains(t, err, want)
	}
	_, err := shutdown.New(0, nil)
	require.ErrorIs(t, err, shutdown.ErrPhases)
}

// Whatever the phases are and however long tasks take: no phase begins before those that it comes after are over, each
// task is called once at most, phases get what is reserved for them, and the deadline is kept.
func TestLawsOfPhases(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		const deadline = 20 * time.Second
		var phases []shutdown.Phase
		for i := range rapid.IntRange(1, 6).Draw(r, "phases") {
			p := shutdown.Phase{Name: fmt.Sprint("p", i), Reserve: time.Duration(rapid.IntRange(0, 3).Draw(r, "reserve")) * time.Second}
			for j := range i {
				if rapid.Bool().Draw(r, "after") {
					p.After = append(p.After, phases[j].Name)
				}
			}
			phases = append(phases, p)
		}
		type call struct {
			phase      string
			began, end time.Duration
		}
		order, tasks := rapid.Permutation(phases).Draw(r, "order"), make([][]time.Duration, len(phases))
		for i := range phases {
			for range rapid.IntRange(0, 2).Draw(r, "tasks") {
				tasks[i] = append(tasks[i], time.Duration(rapid.IntRange(0, 30).Draw(r, "takes"))*time.Second)
			}
		}
		var calls []call
		var report shutdown.Report
		short := ""
		synctest.Test(t, func(*testing.T) { // What it finds is checked behind it: a law that is broken ends no bubble.
			w := open(r, deadline, order...)
			for at, p := range phases {
				for i, takes := range tasks[at] {
					_, _ = w.Add(p.Name, fmt.Sprint(p.Name, i), func(ctx context.Context) error {
						limit, _ := ctx.Deadline()
						began, got := time.Since(w.began), time.Until(limit)
						select {
						case <-time.After(takes):
						case <-ctx.Done():
						}
						w.mu.Lock()
						defer w.mu.Unlock()
						if got < p.Reserve-100*time.Millisecond {
							short = fmt.Sprintf("%s has %v, %v are reserved", p.Name, got, p.Reserve)
						}
						calls = append(calls, call{p.Name, began, time.Since(w.began)})
						return nil
					})
				}
			}
			report = w.Run(context.Background(), "law")
		})
		require.Empty(r, short)
		require.LessOrEqual(r, report.Took, deadline)
		require.Len(r, calls, len(names(report, func(t shutdown.Result) bool { return !errors.Is(t.Err, shutdown.ErrNotBegun) })))
		for _, p := range phases {
			for _, c := range calls {
				for _, before := range calls {
					if c.phase == p.Name && slices.Contains(p.After, before.phase) {
						require.LessOrEqual(r, before.end, c.began)
					}
				}
			}
		}
	})
}
