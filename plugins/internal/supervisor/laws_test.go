// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package supervisor_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/plugins/internal/supervisor"
)

// The machine under inputs in random order: books checks each effect of the machine against
// what a driver knows, the actions draw one input each, and finish requires that a plugin
// runs once nothing fails any more.

// books plays the driver of a supervisor and the processes of its plugin, and keeps what the
// machine should know.
type books struct {
	t   *rapid.T
	m   *supervisor.Machine
	cfg supervisor.Config
	now machine.Now

	at    machine.Instant // When the timer fires; Never if it is not set.
	timer machine.Timer

	launching map[supervisor.Generation]supervisor.Spec
	alive     map[supervisor.Generation]supervisor.Spec // The processes that were launched and have not exited.
	condemned map[supervisor.Generation]bool            // The processes whose end the machine has ordered.
	checking  []health
	active    supervisor.Generation
	swaps     int // How many swaps were ordered and not answered.
	spec      supervisor.Spec
	ordered   map[supervisor.Spec]bool // The specs that a swap ordered and that were not launched yet.
	stopped   bool
	ended     bool
	streak    int                                       // How many failures came since a process lasted.
	failedAt  machine.Instant                           // When the last failure was.
	born      map[supervisor.Generation]machine.Instant // When each generation became active.
	launches  []machine.Instant                         // When processes were launched again, swaps aside.
}

// health is a health check that was not answered yet.
type health struct {
	gen  supervisor.Generation
	id   machine.CallID
	made machine.Instant
}

func newBooks(t *rapid.T) *books {
	cfg := config()
	cfg.Debug = rapid.Bool().Draw(t, "debug")
	w := &books{
		t: t, m: supervisor.New(1, cfg), cfg: cfg, spec: 1, at: machine.Never,
		launching: map[supervisor.Generation]supervisor.Spec{}, alive: map[supervisor.Generation]supervisor.Spec{},
		condemned: map[supervisor.Generation]bool{}, ordered: map[supervisor.Spec]bool{1: true}, born: map[supervisor.Generation]machine.Instant{},
	}
	w.step(machine.Started{})
	w.launches = nil
	w.outcome(1, true)
	return w
}

func (w *books) step(in machine.Input) {
	var out machine.Outbox
	w.m.Step(w.now, in, &out)
	for _, e := range out.Effects() {
		w.apply(e)
	}
	w.check()
}

func (w *books) apply(e machine.Effect) {
	switch e := e.(type) {
	case machine.Arm:
		w.at, w.timer = e.At, e.Timer
		return
	case machine.Disarm:
		w.at = machine.Never
		return
	case machine.Publish:
		w.heard(e.Event)
		return
	}
	if w.ended {
		w.t.Fatalf("%#v after the end", e)
	}
	switch e := e.(type) {
	case supervisor.Launch:
		w.launch(e)
	case supervisor.Kill:
		if w.condemned[e.Gen] || !w.exists(e.Gen) {
			w.t.Fatalf("kill of %d, which is gone or condemned", e.Gen)
		}
		w.condemned[e.Gen] = true
	case machine.Call:
		w.asked(health{e.Request.(supervisor.CheckHealth).Gen, e.ID, w.now.Mono})
	case supervisor.Activate:
		if _, alive := w.alive[e.Gen]; e.Gen != 0 && (!alive || w.condemned[e.Gen]) {
			w.t.Fatalf("I1: %d becomes active, but is not alive or condemned", e.Gen)
		}
		w.active = e.Gen
		w.born[e.Gen] = w.now.Mono
	case supervisor.Drain:
		if e.Gen == w.active {
			w.t.Fatalf("the active one drains")
		}
	}
}

// asked takes a health check that the machine orders: a generation has one at a time, apart
// from earlier ones that were not answered within their limit.
func (w *books) asked(check health) {
	for _, earlier := range w.checking {
		if earlier.gen == check.gen && check.made < earlier.made.Add(w.cfg.HealthTimeout) {
			w.t.Fatalf("two checks of %d at a time", check.gen)
		}
	}
	w.checking = append(w.checking, check)
}

// heard takes an event that the machine publishes.
func (w *books) heard(event any) {
	if _, killed := event.(supervisor.Unhealthy); killed && w.cfg.Debug {
		w.t.Fatalf("I9: %+v though it may be debugged", event)
	}
	switch event.(type) {
	case supervisor.Swapped:
		w.swaps--
	case supervisor.Ended:
		if w.ended || len(w.launching)+len(w.alive) > 0 {
			w.t.Fatalf("I5: ended twice or with processes left")
		}
		w.ended = true
	case supervisor.Unhealthy, supervisor.Held, supervisor.Opened:
		if w.ended {
			w.t.Fatalf("%#v after the end", event)
		}
	}
}

func (w *books) launch(e supervisor.Launch) {
	if w.stopped {
		w.t.Fatalf("launch after stop")
	}
	for _, running := range []map[supervisor.Generation]supervisor.Spec{w.launching, w.alive} {
		for gen, spec := range running {
			if spec == e.Spec {
				w.t.Fatalf("I2: %d and %d of spec %d", gen, e.Gen, spec)
			}
		}
	}
	w.launching[e.Gen] = e.Spec
	if w.ordered[e.Spec] {
		delete(w.ordered, e.Spec)
		return
	}
	w.backedOff()
	w.launches = append(w.launches, w.now.Mono)
}

// backedOff checks I3: a launch after failures comes no earlier than back-off and breaker
// allow.
func (w *books) backedOff() {
	least := w.cfg.BackoffMin
	for i := 1; i < w.streak && least < w.cfg.BackoffMax; i++ {
		least *= 2
	}
	waited := w.now.Mono.Sub(w.failedAt)
	if waited < min(least, w.cfg.BackoffMax) {
		w.t.Fatalf("I3: launched %v after failure %d in a row", waited, w.streak)
	}
	if n := w.cfg.BreakerFailures; len(w.launches) >= n {
		// n launches in the window follow n failures in it: the breaker opened.
		if span := w.now.Mono.Sub(w.launches[len(w.launches)-n]); span < w.cfg.BreakerOpen {
			w.t.Fatalf("I3: %d restarts within %v", n+1, span)
		}
	}
}

func (w *books) exists(gen supervisor.Generation) bool {
	_, launching := w.launching[gen]
	_, alive := w.alive[gen]
	return launching || alive
}

// counted checks I8 after a failure: the view counts at least those after which the back-off has grown.
func (w *books) counted() {
	if v := w.m.View(); v.Loop < w.streak && !w.stopped {
		w.t.Fatalf("I8: %d failures in a row, of which the view has %d", w.streak, v.Loop)
	}
}

// pass lets time pass until an instant.
func (w *books) pass(until machine.Instant) {
	d := max(until.Sub(w.now.Mono), 0)
	w.now = machine.Now{Mono: w.now.Mono.Add(d), Wall: w.now.Wall.Add(d)}
}

// fires lets the timer fire at its time, and reports whether it was set.
func (w *books) fires(at machine.Instant) bool {
	if at == machine.Never {
		return false
	}
	w.pass(at)
	w.at = machine.Never
	w.step(machine.Fired{Timer: w.timer})
	return true
}

// check compares the view of the machine with the books, after each action.
func (w *books) check() {
	v := w.m.View()
	if v.Active != w.active {
		w.t.Fatalf("the view says %d is active, the effects say %d", v.Active, w.active)
	}
	if len(w.launching)+len(w.alive) > 4 {
		w.t.Fatalf("%d processes", len(w.launching)+len(w.alive))
	}
	if w.swaps < 0 {
		w.t.Fatalf("I6: a swap was answered twice")
	}
	pending := len(w.launching) + len(w.condemned) + len(w.checking)
	if w.at == machine.Never && pending == 0 && !w.ended {
		w.t.Fatalf("I4: nothing will ever happen: %+v", v)
	}
}

// outcome ends a launch, in success or failure.
func (w *books) outcome(gen supervisor.Generation, ok bool) {
	spec := w.launching[gen]
	delete(w.launching, gen)
	if ok {
		before := w.m.View().Spec
		w.alive[gen] = spec
		w.step(supervisor.Launched{Gen: gen})
		if w.m.View().Spec != before { // After a swap earlier failures say nothing about the new spec.
			w.streak, w.launches = 0, nil
		}
		return
	}
	if !w.condemned[gen] && spec == w.m.View().Spec {
		w.streak++
		w.failedAt = w.now.Mono
	}
	delete(w.condemned, gen)
	w.step(supervisor.LaunchFailed{Gen: gen, Err: errBoom})
	w.counted()
}

func (w *books) exit(gen supervisor.Generation) {
	if gen == w.active || w.m.View().State == supervisor.Stopping && w.condemned[gen] && w.alive[gen] == w.m.View().Spec {
		if w.now.Mono.Sub(w.born[gen]) >= w.cfg.ProvedAfter {
			w.streak = 0
		}
		w.streak++
		w.failedAt = w.now.Mono
	}
	delete(w.alive, gen)
	delete(w.condemned, gen)
	w.checking = slices.DeleteFunc(w.checking, func(h health) bool { return h.gen == gen })
	w.step(supervisor.Exited{Gen: gen, Err: errBoom})
	w.counted()
}

// one draws a generation of a set.
func one[V any](t *rapid.T, set map[supervisor.Generation]V) supervisor.Generation {
	if len(set) == 0 {
		t.Skip("nobody") // This draw does not apply; the test goes on.
	}
	gens := make([]supervisor.Generation, 0, len(set))
	for gen := range set {
		gens = append(gens, gen)
	}
	slices.Sort(gens)
	return rapid.SampledFrom(gens).Draw(t, "generation")
}

func (w *books) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"": func(*rapid.T) { w.check() },
		"launched": func(t *rapid.T) {
			w.outcome(one(t, w.launching), true)
		},
		"launch fails": func(t *rapid.T) { w.outcome(one(t, w.launching), false) },
		"exit":         func(t *rapid.T) { w.exit(one(t, w.alive)) },
		"health": func(t *rapid.T) {
			if len(w.checking) == 0 {
				t.Skip("no check") // This draw does not apply; the test goes on.
			}
			check := w.checking[0]
			w.checking = w.checking[1:]
			var err error
			if rapid.Bool().Draw(t, "sick") {
				err = errBoom
			}
			w.step(machine.Called{ID: check.id, Err: err})
		},
		"call": func(t *rapid.T) {
			w.step(supervisor.CallEnded{Gen: one(t, w.alive), Unanswered: rapid.Bool().Draw(t, "late")})
		},
		"drained": func(t *rapid.T) { w.step(supervisor.Drained{Gen: one(t, w.alive)}) },
		"swap": func(*rapid.T) {
			w.spec++
			w.swaps++
			w.ordered[w.spec] = true
			w.step(supervisor.Swap{Spec: w.spec, Config: w.cfg})
		},
		"time": func(t *rapid.T) {
			until := w.now.Mono.Add(time.Duration(rapid.Int64Range(0, int64(20*time.Second)).Draw(t, "time")))
			if rapid.Bool().Draw(t, "frozen") {
				w.pass(until) // What was due in between comes late.
			}
			for fired := true; fired && w.at <= until; {
				fired = w.fires(w.at)
			}
			w.pass(until)
		},
		"wake": func(t *rapid.T) {
			if !w.fires(w.at) {
				t.Skip("nothing due") // This draw does not apply; the test goes on.
			}
		},
	}
}

// The machine keeps its invariants under all inputs in any order. covers I34.
func TestSupervisionKeepsItsInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newBooks(t)
		t.Repeat(w.actions())
		w.finish()
	})
}

// finish lets every launch and health check succeed until the plugin runs, as it must. Then
// finish stops the machine, which must end all processes.
func (w *books) finish() {
	for range 1000 {
		w.settle()
		if w.m.View().State == supervisor.Running && w.swaps == 0 {
			break
		}
		if !w.fires(w.at) {
			w.t.Fatalf("I4: stuck: %+v", w.m.View())
		}
	}
	if w.m.View().State != supervisor.Running || w.swaps != 0 {
		w.t.Fatalf("I6: never ran again, or %d swaps without an answer: %+v", w.swaps, w.m.View())
	}
	w.stopped = true
	w.step(supervisor.Stop{})
	w.settle()
	if !w.ended || w.swaps != 0 {
		w.t.Fatalf("I5, I6: ended %v, %d swaps without an answer", w.ended, w.swaps)
	}
}

// settle gives the machine the outcome of each launch, end and health check that is due.
func (w *books) settle() {
	for len(w.launching)+len(w.condemned)+len(w.checking) > 0 {
		for _, gen := range sorted(w.launching) {
			w.outcome(gen, !w.condemned[gen])
		}
		for _, gen := range sorted(w.condemned) {
			w.exit(gen)
		}
		for _, check := range w.checking {
			w.checking = w.checking[1:]
			w.step(machine.Called{ID: check.id})
		}
	}
}

func sorted[V any](set map[supervisor.Generation]V) []supervisor.Generation {
	gens := make([]supervisor.Generation, 0, len(set))
	for gen := range set {
		gens = append(gens, gen)
	}
	slices.Sort(gens)
	return gens
}
