// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"errors"
	"time"
)

//quorate:core

// ErrUnhealthy is part of the reason when a process was killed because it did
// not answer.
var ErrUnhealthy = errors.New("unhealthy")

// ErrStopped is the answer to a swap that [Stop] overtook.
var ErrStopped = errors.New("stopped")

// ErrBusy is the answer to a swap that is ordered while another one is under way.
var ErrBusy = errors.New("a swap is under way")

// Config holds the times and numbers that a machine goes by. All must be above
// zero, and BackoffMax at least BackoffMin.
type Config struct {
	// HealthInterval is the time from the start of one health check to the start
	// of the next.
	HealthInterval time.Duration
	// UnhealthyAfter is how many health checks must fail in a row before the
	// process is killed.
	UnhealthyAfter int
	// HungAfter is how many calls in a row must stay unanswered before the
	// process is killed although its health checks pass: a strategy may hang while the server in front of it lives.
	HungAfter int
	// BackoffMin and BackoffMax bound the time before a restart.
	BackoffMin, BackoffMax time.Duration
	// BreakerFailures within BreakerWindow open the circuit breaker for
	// BreakerOpen, after which there is one trial.
	BreakerFailures            int
	BreakerWindow, BreakerOpen time.Duration
	// ProvedAfter is the time after which a process that runs counts as well: the
	// back-off starts anew, and a trial has succeeded.
	ProvedAfter time.Duration
	// DrainLimit bounds how long calls of an old generation may go on.
	DrainLimit time.Duration
}

// phase is the stage of one process.
type phase uint8

const (
	launching phase = iota // Launch was ordered, no outcome yet.
	running                // Launched; active, unless it is the candidate of a swap in the very step.
	draining               // Replaced; calls in flight go on.
	killed                 // Kill was ordered, it has not ended yet.
)

// process is what the machine knows of one generation.
type process struct {
	gen   Generation
	spec  Spec
	phase phase
	since Instant // When it was launched.

	checking   bool    // A health check is under way.
	checked    Instant // When the last health check began.
	due        Instant // When the next one begins.
	failed     int     // Health checks that failed in a row.
	unanswered int     // Calls without an answer, none answered since.

	drainBy Instant // Draining: when its calls are cut off.
}

// Machine supervises one plugin. See the package comment.
type Machine struct {
	cfg   Config
	next  Config // Of the candidate.
	state State

	last      Generation
	processes []*process // Those that have not ended, by generation. At most four.
	active    Generation // Calls go to it; zero for none.
	spec      Spec       // What a restart launches.

	dying   Generation // The unhealthy one whose end begins the back-off.
	opened  bool       // The first launch has succeeded.
	trial   bool       // The present launch or run is the trial of the breaker.
	restart Instant    // When to launch anew; only while Waiting or Broken.
	streak  int        // Failures in a row.
	recent  []Instant  // Failures within the window; at most BreakerFailures.

	candidate Generation // What a swap launches; zero for none.
	old       Generation // What a swap drains; zero for none.

	stopping bool
	ended    bool
	facts    facts
}

// New returns a machine that does nothing before [Start].
func New(cfg Config) *Machine { return &Machine{cfg: cfg, state: Stopped} }

// Step feeds one input to the machine and appends the effects to out, in order.
// Now must not go back.
func (m *Machine) Step(now Instant, in Input, out *Outbox) {
	switch in := in.(type) {
	case Start:
		m.start(now, in.Spec, out)
	case Launched:
		m.launched(now, in.Gen, out)
	case LaunchFailed:
		m.gone(now, in.Gen, in.Err, out)
	case Exited:
		m.gone(now, in.Gen, in.Err, out)
	case HealthChecked:
		m.healthChecked(now, in, out)
	case CallEnded:
		m.callEnded(now, in, out)
	case Drained:
		m.drained(in.Gen, out)
	case Swap:
		m.swap(in, out)
	case Stop:
		m.stop(now, out)
	case Tick:
		m.tick(now, out)
	}
}

// Wake returns the time of the next [Tick], and whether one is needed.
func (m *Machine) Wake() (Instant, bool) {
	var at Instant
	found := false
	earlier := func(t Instant) {
		if !found || t < at {
			at, found = t, true
		}
	}
	if m.state == Waiting || m.state == Broken {
		earlier(m.restart)
	}
	for _, p := range m.processes {
		switch {
		case p.phase == running && !p.checking:
			earlier(p.due)
		case p.phase == draining:
			earlier(p.drainBy)
		}
	}
	return at, found
}

func (m *Machine) start(now Instant, spec Spec, out *Outbox) {
	if m.last > 0 || m.stopping {
		return
	}
	m.spec = spec
	m.enter(now, Starting)
	m.launch(spec, out)
}

// launch orders a new generation.
func (m *Machine) launch(spec Spec, out *Outbox) Generation {
	m.last++
	m.processes = append(m.processes, &process{gen: m.last, spec: spec})
	out.add(Launch{Gen: m.last, Spec: spec})
	return m.last
}

func (m *Machine) launched(now Instant, gen Generation, out *Outbox) {
	p := m.find(gen)
	if p == nil || p.phase != launching {
		return
	}
	p.phase, p.since, p.due = running, now, now+Instant(m.cfg.HealthInterval)
	if gen == m.candidate {
		m.switchTo(now, p, out)
		return
	}
	if m.opened {
		m.facts.restarts++
	}
	m.activate(now, p, out)
}

// activate lets calls go to p.
func (m *Machine) activate(now Instant, p *process, out *Outbox) {
	m.opened = true
	m.active = p.gen
	m.facts.back(now)
	m.enter(now, Running)
	out.add(Activate{Gen: p.gen})
}

// deactivate lets calls go nowhere.
func (m *Machine) deactivate(now Instant, out *Outbox) {
	m.active = 0
	m.facts.away(now)
	out.add(Activate{})
}

// gone takes the end of a process, or of the attempt to launch it.
func (m *Machine) gone(now Instant, gen Generation, err error, out *Outbox) {
	p := m.remove(gen)
	if p == nil {
		return
	}
	switch {
	case m.stopping: // Its end was ordered, whatever it says.
	case gen == m.candidate:
		m.candidate = 0
		out.add(Swapped{Err: err})
	case gen == m.old:
		m.old = 0
		out.add(Swapped{})
	case gen == m.active:
		m.deactivate(now, out)
		m.failure(now, p, err, out)
	case gen == m.dying:
		m.dying = 0
		m.failure(now, p, m.facts.lastErr, out)
	case p.phase == launching:
		m.failure(now, p, err, out)
	}
	m.end(out)
}

// failure decides when to launch anew, or gives up if there never was a launch.
func (m *Machine) failure(now Instant, p *process, err error, out *Outbox) {
	m.facts.failed(now, err)
	if !m.opened {
		m.stopping = true
		m.enter(now, Stopped)
		return
	}
	if p.phase != launching && now-p.since >= Instant(m.cfg.ProvedAfter) {
		m.streak, m.trial = 0, false
	}
	m.streak++
	m.remember(now)
	if m.trial || len(m.recent) >= m.cfg.BreakerFailures {
		m.trial = false
		m.restart = now + Instant(m.cfg.BreakerOpen)
		m.enter(now, Broken)
		out.add(Opened{Failures: len(m.recent), Until: m.restart, Err: err})
		return
	}
	m.restart = now + Instant(m.backoff())
	m.enter(now, Waiting)
}

// backoff returns the time before the next launch after streak failures.
func (m *Machine) backoff() time.Duration {
	d := m.cfg.BackoffMin
	for i := 1; i < m.streak && d < m.cfg.BackoffMax; i++ {
		d *= 2
	}
	return min(d, m.cfg.BackoffMax)
}

// remember notes a failure and forgets those that have left the window.
func (m *Machine) remember(now Instant) {
	keep := m.recent[:0]
	for _, at := range m.recent {
		if now-at < Instant(m.cfg.BreakerWindow) {
			keep = append(keep, at)
		}
	}
	if len(keep) == m.cfg.BreakerFailures {
		keep = append(keep[:0], keep[1:]...)
	}
	m.recent = append(keep, now)
}

// tick does what is due.
func (m *Machine) tick(now Instant, out *Outbox) {
	if (m.state == Waiting || m.state == Broken) && now >= m.restart {
		m.trial = m.trial || m.state == Broken
		m.enter(now, Starting)
		m.launch(m.spec, out)
	}
	for _, p := range m.processes {
		switch {
		case p.phase == running && now >= p.due:
			m.check(now, p, out)
		case p.phase == draining && now >= p.drainBy:
			m.kill(p, true, out)
		}
	}
}

// stop orders the end of everything.
func (m *Machine) stop(now Instant, out *Outbox) {
	if m.stopping {
		return
	}
	m.stopping = true
	if m.active != 0 {
		m.active = 0 // No gap: people wanted it.
		out.add(Activate{})
	}
	m.enter(now, Stopped)
	for _, p := range m.processes {
		if p.phase != killed {
			m.kill(p, true, out)
		}
	}
	if m.candidate != 0 || m.old != 0 {
		m.candidate, m.old = 0, 0
		out.add(Swapped{Err: ErrStopped})
	}
	m.end(out)
}

// end says that nothing is left, once.
func (m *Machine) end(out *Outbox) {
	if m.stopping && !m.ended && len(m.processes) == 0 {
		m.ended = true
		out.add(Ended{})
	}
}

// kill orders the end of p. Graceful lets the process finish by itself first.
func (m *Machine) kill(p *process, graceful bool, out *Outbox) {
	p.phase = killed
	out.add(Kill{Gen: p.gen, Graceful: graceful})
}

// find returns the process of a generation that has not ended, else nil.
func (m *Machine) find(gen Generation) *process {
	for _, p := range m.processes {
		if p.gen == gen {
			return p
		}
	}
	return nil
}

// remove forgets a generation and returns what was known of it.
func (m *Machine) remove(gen Generation) *process {
	for i, p := range m.processes {
		if p.gen == gen {
			m.processes = append(m.processes[:i], m.processes[i+1:]...)
			return p
		}
	}
	return nil
}

// enter changes the state.
func (m *Machine) enter(now Instant, s State) {
	if m.state != s {
		m.state, m.facts.since = s, now
	}
}
