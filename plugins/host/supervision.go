// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/internal/supervisor"
)

// The driver's goroutine carries out what the supervisor decides ([supervision.carry])
// and publishes what it says ([supervision.heard]). Each launched process has a worker
// that stays with it until its end ([Plugin.attend]).

// errKilled is the cause with which an unwanted launch is cancelled.
var errKilled = errors.New("the launch was given up")

// generation is one launch of a process.
type generation struct {
	number supervisor.Generation
	spec   *spec
	began  time.Time

	cancel context.CancelCauseFunc // Ends the launch.
	kill   chan struct{}           // Closed when the process must end.
	once   sync.Once
	grace  time.Duration // Time for the process to stop; written before kill is closed.

	// process is written before Launched is told, and not after.
	process  running
	manifest plugins.Manifest
	took     time.Duration

	calls calls       // Guarded by the routes.
	doubt atomic.Bool // The supervisor has heard of an unanswered call, and of no answer since.
}

// order orders the end of a generation.
func (g *generation) order(grace time.Duration) {
	g.once.Do(func() {
		g.grace = grace
		close(g.kill)
		g.cancel(errKilled)
	})
}

// inboxSize has room for inputs that come while the driver acts: the outcomes of the few
// processes that there can be, and some calls. When the inbox is full, senders wait; the
// driver never does.
const inboxSize = 16

// supervision carries out what the supervisor of one plugin decides, on the goroutine of
// the driver. It never waits for a process: workers do.
type supervision struct {
	plugin *Plugin
	view   supervisor.View // The last view.
	spec   supervisor.Spec // Spec of the last active process.
}

// drive starts the driver of the plugin.
func (p *Plugin) drive(cfg plugins.Config) {
	s := &supervision{plugin: p}
	m := supervisor.New(p.lastSpec, timesOf(cfg))
	s.show(m.View())
	p.driver = machine.NewDriver(machine.Ports{
		Clock:   machine.NewSystemClock(),
		Publish: func(_ *machine.Component, event any) { s.heard(event) },
		Call:    p.answer,
		Other:   func(_ *machine.Component, e machine.Effect) { s.carry(e) },
	}, inboxSize)
	var err error
	p.handle, err = p.driver.Attach(machine.Component{Name: "supervisor", Machine: m})
	machine.Assert(err == nil, "a driver without components takes one", "error", err)
	p.driver.Start()
}

// tell gives an input to the supervisor, unless that has ended and needs none.
func (p *Plugin) tell(in machine.Input) {
	_ = p.handle.PostWait(context.Background(), in)
}

// show publishes a view to callers and to the status.
func (s *supervision) show(v supervisor.View) {
	s.view = v
	s.plugin.view.Store(&v)
}

// heard turns what the supervisor publishes into events and log lines.
func (s *supervision) heard(event any) {
	p := s.plugin
	switch e := event.(type) {
	case supervisor.View:
		s.show(e)
	case supervisor.Exited:
		g := p.forget(e.Gen)
		p.routes.cut(g)
		s.exited(g, e.Err)
	case supervisor.LaunchFailed:
		p.forget(e.Gen)
		if !errors.Is(e.Err, errKilled) {
			p.observe(plugins.Event{Type: plugins.Refused, Err: e.Err, FailedInARow: s.view.Loop})
			p.log.Error("the plugin cannot be started", s.loop("error", e.Err)...)
		}
	case supervisor.Unhealthy:
		pid := p.generation(e.Gen).process.PID()
		p.observe(plugins.Event{Type: plugins.Unhealthy, PID: pid, Err: e.Err})
		p.log.Error("the plugin does not answer, and is killed", "pid", pid, "error", e.Err)
	case supervisor.Held:
		s.held(p.generation(e.Gen).process.PID(), e.Err)
	case supervisor.Opened:
		p.observe(plugins.Event{Type: plugins.Broken, Err: e.Err, FailedInARow: e.Failures})
		p.log.Error("the plugin fails again and again, and is left alone for a while",
			"failures", e.Failures, "next_try", e.Until, "error", e.Err)
	case supervisor.Swapped:
		s.swapped(e.Err)
	case supervisor.Ended:
		go p.end() // Ends when nothing of the plugin is left; ended says so.
	}
}

// exited tells of the end of a process. One that nobody has ordered is a warning: the plugin has crashed.
func (s *supervision) exited(g *generation, reason error) {
	p := s.plugin
	e := plugins.Event{Type: plugins.Exited, PID: g.process.PID(), Manifest: g.manifest, Err: reason, FailedInARow: s.view.Loop}
	p.observe(e)
	select {
	case <-g.kill:
		p.log.Info("the process of the plugin has ended", "pid", e.PID, "reason", reason)
	default:
		p.log.Warn("the process of the plugin has ended", s.loop("pid", e.PID, "reason", reason)...)
	}
}

// held tells of a process that a debugger may hold: that it does not answer, or answers again.
func (s *supervision) held(pid int, err error) {
	if err == nil {
		s.plugin.log.Info("the plugin answers again", "pid", pid)
		return
	}
	s.plugin.log.Warn("the plugin does not answer, and is not killed since it may be debugged", "pid", pid, "error", err)
}

// loop adds to the attributes of a line how many failures there were in a row and when the next process is launched, if
// one is to be. The view is that of the step in which the supervisor heard of the failure: it is published first.
func (s *supervision) loop(attributes ...any) []any {
	if s.view.NextTry.IsZero() {
		return attributes
	}
	return append(attributes, "failures", s.view.Loop, "next_try", s.view.NextTry)
}

// end waits until nothing is left of the plugin.
func (p *Plugin) end() {
	defer close(p.ended)
	if err := p.driver.Close(); err != nil {
		p.log.Error("the driver of the plugin is left", "error", err)
	}
	p.workers.Wait()
	if err := p.starter.launcher.Close(); err != nil {
		p.log.Error("files of the plugin are left", "error", err)
	}
	p.observe(plugins.Event{Type: plugins.Closed})
}

// carry carries out one effect.
func (s *supervision) carry(e machine.Effect) {
	p := s.plugin
	switch e := e.(type) {
	case supervisor.Launch:
		s.launch(e)
	case supervisor.Kill:
		g := p.generation(e.Gen)
		p.routes.cut(g)
		grace := time.Duration(0)
		if e.Graceful {
			grace = killGrace
		}
		g.order(grace)
	case supervisor.Activate:
		s.activate(p.generation(e.Gen), e.Away)
	case supervisor.Drain:
		p.routes.retire(p.generation(e.Gen))
	}
}

// answer carries out a health check for the supervisor.
func (p *Plugin) answer(ctx context.Context, _ string, c machine.Call) (any, error) {
	check, ok := c.Request.(supervisor.CheckHealth)
	if !ok {
		return nil, fmt.Errorf("nobody answers calls to port %q", c.Port)
	}
	g := p.generation(check.Gen)
	if g == nil {
		return nil, errKilled
	}
	return check, g.process.Health(ctx)
}

// generation returns a generation that has not ended, otherwise nil.
func (p *Plugin) generation(number supervisor.Generation) *generation {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.live[number]
}

// forget removes a generation and returns it.
func (p *Plugin) forget(number supervisor.Generation) *generation {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.live[number]
	delete(p.live, number)
	return g
}

// launch starts the worker of a new generation.
func (s *supervision) launch(e supervisor.Launch) {
	p := s.plugin
	ctx, cancel := context.WithCancelCause(context.Background())
	g := &generation{number: e.Gen, began: time.Now(), cancel: cancel, kill: make(chan struct{}), calls: newCalls()}
	p.mu.Lock()
	g.spec = p.specs[e.Spec]
	p.live[e.Gen] = g
	p.mu.Unlock()
	p.workers.Go(func() { // Ends with its process, or with a failed launch.
		defer cancel(nil)
		p.attend(ctx, g)
	})
}

// attend launches a process and stays with it until it has ended.
func (p *Plugin) attend(ctx context.Context, g *generation) {
	proc, manifest, err := p.prepare(ctx, g.spec)
	if err != nil {
		p.tell(supervisor.LaunchFailed{Gen: g.number, Err: err})
		return
	}
	g.process, g.manifest, g.took = proc, manifest, time.Since(g.began)
	p.tell(supervisor.Launched{Gen: g.number})
	idle := g.calls.idle
	for {
		select {
		case <-idle:
			idle = nil
			p.tell(supervisor.Drained{Gen: g.number})
		case <-g.kill:
			if err := proc.Kill(g.grace); err != nil {
				p.log.ErrorContext(ctx, "a process is left", "pid", proc.PID(), "error", err)
			}
			p.tell(supervisor.Exited{Gen: g.number, Err: proc.Err()})
			return
		case <-proc.Exited():
			p.tell(supervisor.Exited{Gen: g.number, Err: proc.Err()})
			return
		}
	}
}

// activate sends calls to g, or nowhere if g is nil.
func (s *supervision) activate(g *generation, away time.Duration) {
	p := s.plugin
	p.routes.lead(g)
	p.mu.Lock()
	p.serving = g
	if g != nil {
		p.manifest, p.sum = g.manifest, g.spec.binary.Load().Sum()
	}
	p.mu.Unlock()
	if g == nil {
		return
	}
	e := plugins.Event{Type: plugins.Restarted, PID: g.process.PID(), Manifest: g.manifest, Took: g.took, Away: away}
	switch {
	case s.spec == 0:
		e.Type = plugins.Started
		close(p.opened)
	case s.spec != s.view.Spec:
		e.Type = plugins.Swapped
	}
	s.spec = s.view.Spec
	p.observe(e)
	p.log.Info("the plugin is ready", "event", string(e.Type), "pid", e.PID, "manifest", g.manifest.String(), "took", g.took)
}

// swapped reports the outcome of a swap, and drops the configuration that is not used.
func (s *supervision) swapped(err error) {
	p := s.plugin
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		p.swaps++
	}
	for number, unused := range p.specs {
		if number != s.view.Spec {
			unused.remove()
			delete(p.specs, number)
		}
	}
	p.pending <- err // The channel has room for the one outcome.
	<-p.swap
}
