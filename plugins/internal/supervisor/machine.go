// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/machine"
)

//quorate:core

// A machine is configured ([Config]), made ([New]) and fed ([Machine.Step]). After each
// step its one timer is set to the next thing that is due ([Machine.wakeAt]). Then come
// the launch and the end of processes, with back-off and circuit breaker
// ([Machine.failure]), and the end of the plugin ([Machine.stop]).

// ErrUnhealthy is part of the error of a process that was killed because it did not
// answer.
var ErrUnhealthy = errors.New("unhealthy")

// ErrStopped is the answer to a swap that [Stop] overtook.
var ErrStopped = errors.New("stopped")

// ErrBusy is the answer to a swap that is ordered while another one is under way.
var ErrBusy = errors.New("a swap is under way")

// Config holds the times and numbers of a machine. All must be above zero, and BackoffMax
// at least BackoffMin.
type Config struct {
	// HealthInterval is the time from the start of one health check to the start
	// of the next.
	HealthInterval time.Duration
	// UnhealthyAfter is how many health checks must fail in a row before the
	// process is killed.
	UnhealthyAfter int
	// HealthTimeout is how long a health check may take.
	HealthTimeout time.Duration
	// HungAfter is how many calls in a row must stay unanswered before the process is
	// killed although its health checks pass: a strategy may hang while the server in
	// front of it lives.
	HungAfter int
	// BackoffMin and BackoffMax bound the time before a restart.
	BackoffMin, BackoffMax time.Duration
	// BreakerFailures failures within BreakerWindow open the circuit breaker for
	// BreakerOpen, after which there is one trial.
	BreakerFailures            int
	BreakerWindow, BreakerOpen time.Duration
	// ProvedAfter is how long a process must run to count as healthy: the back-off starts
	// again from its shortest, and a trial has succeeded.
	ProvedAfter time.Duration
	// DrainTimeout bounds how long calls of an old generation may go on.
	DrainTimeout time.Duration
	// Debug has no process killed for its health checks and calls: a debugger may hold it.
	Debug bool
}

// phase is the stage of one process.
type phase uint8

const (
	launching phase = iota // Launch was ordered, no outcome yet.
	running                // Launched; active, except that the candidate of a swap is not during the step of its launch.
	draining               // Replaced; calls in flight go on.
	killed                 // Kill was ordered, the process has not ended yet.
)

// process is what the machine knows of one generation.
type process struct {
	gen   Generation
	spec  Spec
	slot  int // A number below four, of no other process at the same time.
	phase phase
	since machine.Instant // When the process was launched.

	check      machine.CallID  // The health check under way; zero for none.
	checked    machine.Instant // When the last health check began.
	due        machine.Instant // When the next health check begins.
	failed     int             // Health checks that failed in a row.
	unanswered int             // Unanswered calls since the last answer.
	held       bool            // It does not answer, and is not killed for that.

	drainBy machine.Instant // While draining: when its calls are cut off.
}

// Machine supervises one plugin. See the package comment.
type Machine struct {
	cfg   Config
	next  Config // Config of the candidate.
	state State

	last      Generation
	calls     machine.CallID // The number of the last health check.
	processes []*process     // Processes that have not ended, by generation. At most four.
	active    Generation     // The generation that calls go to; zero for none.
	spec      Spec           // What a restart launches.

	dying          Generation        // The unhealthy generation whose end begins the back-off.
	launchedOnce   bool              // The first launch has succeeded.
	trial          bool              // The present launch or run is the trial of the breaker.
	restart        machine.Now       // When to launch again; only while Waiting or Broken.
	failuresInRow  int               // Failures in a row.
	recentFailures []machine.Instant // Failures within the window; at most BreakerFailures.

	candidate Generation // The generation that a swap launches; zero for none.
	old       Generation // The generation that a swap drains; zero for none.

	stopping bool
	ended    bool
	facts    facts

	published View            // The view that was published last.
	armed     machine.Instant // When the timer fires; [machine.Never] if it is not set.
	out       machine.Outbox  // The effects of the present step, without the view.
}

// New returns a machine that launches the spec when it is started.
func New(spec Spec, cfg Config) *Machine {
	return &Machine{cfg: cfg, spec: spec, state: Stopped, armed: machine.Never}
}

var _ machine.Machine = (*Machine)(nil)

// wakeTimer is the only timer of a machine. After each step it is set to the earliest moment for
// which the machine waits, so that no moment is missed.
type wakeTimer struct{}

// Step feeds one input to the machine and appends the effects to out, in order. The view
// comes first, if it has changed, so that a caller that finds no process finds the
// reason.
func (m *Machine) Step(now machine.Now, in machine.Input, out *machine.Outbox) {
	m.dispatch(now, in, &m.out)
	if v := m.View(); !v.same(m.published) {
		m.published = v
		out.Publish(v)
	}
	for _, e := range m.out.Effects() {
		out.Add(e)
	}
	m.out.Reset()
	m.arm(out)
}

func (m *Machine) dispatch(now machine.Now, in machine.Input, out *machine.Outbox) {
	switch in := in.(type) {
	case machine.Started:
		m.start(now, out)
	case Launched:
		m.launched(now, in.Gen, out)
	case LaunchFailed:
		m.processEnded(now, in.Gen, in.Err, in, out)
	case Exited:
		m.processEnded(now, in.Gen, in.Err, in, out)
	case machine.Called:
		m.called(now, in, out)
	case CallEnded:
		m.callEnded(now, in, out)
	case Drained:
		m.drained(in.Gen, out)
	case Swap:
		m.swap(in, out)
	case Stop:
		m.stop(now, out)
	case machine.Fired:
		m.armed = machine.Never
		m.tick(now, out)
	}
}

// arm sets the timer to the next moment that the machine waits for.
func (m *Machine) arm(out *machine.Outbox) {
	at := m.wakeAt()
	if at == m.armed {
		return
	}
	m.armed = at
	if at == machine.Never {
		out.Disarm(wakeTimer{})
		return
	}
	out.Arm(wakeTimer{}, at)
}

// wakeAt returns when the machine must act next by itself, [machine.Never] if nothing is
// due.
func (m *Machine) wakeAt() machine.Instant {
	at := machine.Never
	if m.waits() {
		at = m.restart.Mono
	}
	for _, p := range m.processes {
		switch {
		case p.phase == running && p.check == 0:
			at = min(at, p.due)
		case p.phase == running:
			at = min(at, p.checked.Add(m.cfg.HealthTimeout))
		case p.phase == draining:
			at = min(at, p.drainBy)
		}
	}
	return at
}

// waits reports whether the next launch has a set time.
func (m *Machine) waits() bool { return m.state == Waiting || m.state == Broken }

func (m *Machine) start(now machine.Now, out *machine.Outbox) {
	if m.last > 0 || m.stopping {
		return
	}
	m.enter(now, Starting)
	m.launch(m.spec, out)
}

// launch orders a new generation.
func (m *Machine) launch(spec Spec, out *machine.Outbox) Generation {
	m.last++
	m.processes = append(m.processes, &process{gen: m.last, spec: spec, slot: m.slot()})
	out.Add(Launch{Gen: m.last, Spec: spec})
	return m.last
}

// slot returns the lowest number that no process has.
func (m *Machine) slot() int {
	slot := 0
	for slices.ContainsFunc(m.processes, func(p *process) bool { return p.slot == slot }) {
		slot++
	}
	return slot
}

func (m *Machine) launched(now machine.Now, gen Generation, out *machine.Outbox) {
	p := m.find(gen)
	if p == nil || p.phase != launching {
		return
	}
	p.phase, p.since, p.due = running, now.Mono, now.Mono.Add(m.cfg.HealthInterval)
	if gen == m.candidate {
		m.switchTo(now, p, out)
		return
	}
	if m.launchedOnce {
		m.facts.restarts++
	}
	m.activate(now, p, out)
}

// activate sends calls to p.
func (m *Machine) activate(now machine.Now, p *process, out *machine.Outbox) {
	m.launchedOnce = true
	m.active = p.gen
	away := m.facts.endGap(now)
	m.enter(now, Running)
	out.Add(Activate{Gen: p.gen, Away: away})
}

// deactivate sends calls nowhere.
func (m *Machine) deactivate(now machine.Now, out *machine.Outbox) {
	m.active = 0
	m.facts.beginGap(now)
	out.Add(Activate{})
}

// processEnded takes the end of a process, or of the attempt to launch it, publishes the event, and
// decides what follows.
func (m *Machine) processEnded(now machine.Now, gen Generation, err error, event any, out *machine.Outbox) {
	p := m.remove(gen)
	if p == nil {
		return
	}
	out.Publish(event)
	switch {
	case m.stopping: // Its end was ordered, whatever the error says.
	case gen == m.candidate:
		m.candidate = 0
		out.Publish(Swapped{Err: err})
	case gen == m.old:
		m.old = 0
		out.Publish(Swapped{})
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

// failure decides when to launch again, or gives up if no launch has ever succeeded.
func (m *Machine) failure(now machine.Now, p *process, err error, out *machine.Outbox) {
	m.facts.noteFailure(now, err)
	if !m.launchedOnce {
		m.stopping = true
		m.enter(now, Stopped)
		return
	}
	if p.phase != launching && now.Mono.Sub(p.since) >= m.cfg.ProvedAfter {
		m.failuresInRow, m.trial = 0, false
	}
	m.worked(now, p)
	m.facts.loop++
	m.failuresInRow++
	m.remember(now.Mono)
	if m.trial || len(m.recentFailures) >= m.cfg.BreakerFailures {
		m.trial = false
		m.restart = after(now, m.cfg.BreakerOpen)
		m.enter(now, Broken)
		out.Publish(Opened{Failures: m.facts.loop, Until: m.restart.Wall, Err: err})
		return
	}
	m.restart = after(now, m.backoff())
	m.enter(now, Waiting)
}

// worked ends the count of failures if p has run for long enough, and nothing has failed within the window.
func (m *Machine) worked(now machine.Now, p *process) {
	quiet := len(m.recentFailures) == 0 || now.Mono.Sub(m.recentFailures[len(m.recentFailures)-1]) >= m.cfg.BreakerWindow
	if quiet && p.phase != launching && now.Mono.Sub(p.since) >= m.cfg.ProvedAfter {
		m.facts.loop = 0
	}
}

// after returns the moment d later than now.
func after(now machine.Now, d time.Duration) machine.Now {
	return machine.Now{Mono: now.Mono.Add(d), Wall: now.Wall.Add(d)}
}

// backoff returns the time before the next launch after failuresInRow failures.
func (m *Machine) backoff() time.Duration {
	d := m.cfg.BackoffMin
	for i := 1; i < m.failuresInRow && d < m.cfg.BackoffMax; i++ {
		d *= 2
	}
	return min(d, m.cfg.BackoffMax)
}

// remember notes a failure and drops those that are older than the window.
func (m *Machine) remember(now machine.Instant) {
	keep := m.recentFailures[:0]
	for _, at := range m.recentFailures {
		if now.Sub(at) < m.cfg.BreakerWindow {
			keep = append(keep, at)
		}
	}
	if len(keep) == m.cfg.BreakerFailures {
		keep = append(keep[:0], keep[1:]...)
	}
	m.recentFailures = append(keep, now)
}

// tick does what is due.
func (m *Machine) tick(now machine.Now, out *machine.Outbox) {
	if m.waits() && now.Mono >= m.restart.Mono {
		m.trial = m.trial || m.state == Broken
		m.enter(now, Starting)
		m.launch(m.spec, out)
	}
	for _, p := range m.processes {
		if p.phase == running && m.overdue(now, p) {
			m.healthChecked(now, p, fmt.Errorf("no answer within %v", m.cfg.HealthTimeout), out)
		}
		switch {
		case p.phase == running && now.Mono >= p.due:
			m.check(now, p, out)
		case p.phase == draining && now.Mono >= p.drainBy:
			m.kill(p, true, out)
		}
	}
}

// stop orders the end of everything.
func (m *Machine) stop(now machine.Now, out *machine.Outbox) {
	if m.stopping {
		return
	}
	m.stopping = true
	if m.active != 0 {
		m.active = 0 // No gap: the end was ordered.
		out.Add(Activate{})
	}
	m.enter(now, Stopped)
	for _, p := range m.processes {
		if p.phase != killed {
			m.kill(p, true, out)
		}
	}
	if m.candidate != 0 || m.old != 0 {
		m.candidate, m.old = 0, 0
		out.Publish(Swapped{Err: ErrStopped})
	}
	m.end(out)
}

// end reports once that nothing is left.
func (m *Machine) end(out *machine.Outbox) {
	if m.stopping && !m.ended && len(m.processes) == 0 {
		m.ended = true
		out.Publish(Ended{})
	}
}

// kill orders the end of p. With graceful the process may finish by itself first.
func (m *Machine) kill(p *process, graceful bool, out *machine.Outbox) {
	p.phase = killed
	out.Add(Kill{Gen: p.gen, Graceful: graceful})
}

// find returns the process of a generation that has not ended, otherwise nil.
func (m *Machine) find(gen Generation) *process {
	for _, p := range m.processes {
		if p.gen == gen {
			return p
		}
	}
	return nil
}

// remove drops a generation and returns what was known of it.
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
func (m *Machine) enter(now machine.Now, s State) {
	if m.state != s {
		m.state, m.facts.since = s, now.Wall
	}
}
