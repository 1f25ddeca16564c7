// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/internal/supervisor"
)

// errKilled is why a launch ends that is not wanted any more.
var errKilled = errors.New("the launch was given up")

// generation is one launch of a process.
type generation struct {
	number supervisor.Generation
	spec   *spec
	began  time.Time

	cancel context.CancelCauseFunc // Ends the launch.
	kill   chan struct{}           // Closed when the process must end.
	once   sync.Once
	grace  time.Duration // For the process; written before kill is closed.

	// What follows is written before Launched is told, and not after.
	process  running
	manifest plugins.Manifest
	took     time.Duration

	calls calls       // Guarded by the routes.
	doubt atomic.Bool // The machine has heard of an unanswered call, and of no answer since.
}

// order orders the end.
func (g *generation) order(grace time.Duration) {
	g.once.Do(func() {
		g.grace = grace
		close(g.kill)
		g.cancel(errKilled)
	})
}

// driver steps the supervisor of one plugin, and carries out what it decides.
// Nothing here waits for a process: workers do.
type driver struct {
	plugin  *Plugin
	machine *supervisor.Machine
	live    map[supervisor.Generation]*generation
	spec    supervisor.Spec // Of the latest process that was active.
	away    bool            // There was no active process before the present input.
	ended   bool
}

func newDriver(p *Plugin, cfg plugins.Config) *driver {
	d := &driver{plugin: p, machine: supervisor.New(supervision(cfg)), live: make(map[supervisor.Generation]*generation)}
	d.publish()
	return d
}

// now is the time on the supervisor's clock.
func (d *driver) now() supervisor.Instant { return supervisor.Instant(time.Since(d.plugin.origin)) }

// run is the driver's goroutine.
func (d *driver) run() {
	p := d.plugin
	defer close(p.ended)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for !d.ended {
		select {
		case in := <-p.inbox:
			d.step(in)
		case <-timer.C:
			d.step(supervisor.Tick{})
		}
		if at, ok := d.machine.Wake(); ok {
			timer.Reset(time.Duration(at - d.now()))
		} else {
			timer.Stop()
		}
	}
	close(p.quit)
	p.workers.Wait()
	if err := p.launcher.Close(); err != nil {
		p.log.Error("files of the plugin are left", "error", err)
	}
	p.observe(Event{Kind: Closed})
}

// step feeds one input to the supervisor. The view comes first, so that a call that
// finds no process finds the reason.
func (d *driver) step(in supervisor.Input) {
	var out supervisor.Outbox
	d.away = d.machine.View().Away
	d.machine.Step(d.now(), in, &out)
	d.publish()
	d.note(in)
	for _, e := range out.Effects {
		d.apply(e)
	}
}

func (d *driver) publish() {
	v := d.machine.View()
	d.plugin.view.Store(&v)
}

// note takes what an input says about a generation, and tells people.
func (d *driver) note(in supervisor.Input) {
	p := d.plugin
	switch in := in.(type) {
	case supervisor.Exited:
		g := d.live[in.Gen]
		delete(d.live, in.Gen)
		p.routes.cut(g)
		p.observe(Event{Kind: Exited, PID: g.process.PID(), Manifest: g.manifest, Err: in.Err})
		p.log.Info("the process of the plugin has ended", "pid", g.process.PID(), "reason", in.Err)
	case supervisor.LaunchFailed:
		delete(d.live, in.Gen)
		if !errors.Is(in.Err, errKilled) {
			p.observe(Event{Kind: Refused, Err: in.Err})
			p.log.Error("the plugin cannot be started", "error", in.Err)
		}
	}
}

// apply carries out one effect.
func (d *driver) apply(e supervisor.Effect) {
	p := d.plugin
	switch e := e.(type) {
	case supervisor.Launch:
		d.launch(e)
	case supervisor.Kill:
		g := d.live[e.Gen]
		p.routes.cut(g)
		grace := time.Duration(0)
		if e.Graceful {
			grace = killGrace
		}
		g.order(grace)
	case supervisor.CheckHealth:
		g := d.live[e.Gen]
		p.workers.Go(func() { p.check(g) }) // Ends with health-timeout.
	case supervisor.Activate:
		d.activate(d.live[e.Gen])
	case supervisor.Drain:
		p.routes.retire(d.live[e.Gen])
	case supervisor.Unhealthy:
		p.observe(Event{Kind: Unhealthy, PID: d.live[e.Gen].process.PID(), Err: e.Err})
		p.log.Error("the plugin does not answer, and is killed", "pid", d.live[e.Gen].process.PID(), "error", e.Err)
	case supervisor.Opened:
		p.observe(Event{Kind: Broken, Err: e.Err})
		p.log.Error("the plugin fails again and again, and is left alone for a while",
			"failures", e.Failures, "next_try", p.time(e.Until), "error", e.Err)
	case supervisor.Swapped:
		d.swapped(e.Err)
	case supervisor.Ended:
		d.ended = true
	}
}

// launch starts the worker of a new generation.
func (d *driver) launch(e supervisor.Launch) {
	p := d.plugin
	p.mu.Lock()
	s := p.specs[e.Spec]
	p.mu.Unlock()
	ctx, cancel := context.WithCancelCause(context.Background())
	g := &generation{number: e.Gen, spec: s, began: time.Now(), cancel: cancel, kill: make(chan struct{}), calls: newCalls()}
	d.live[e.Gen] = g
	p.workers.Go(func() { // Ends with its process, or with a failed launch.
		defer cancel(nil)
		p.tend(ctx, g)
	})
}

// tend launches a process and stays with it until it has ended.
func (p *Plugin) tend(ctx context.Context, g *generation) {
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
				p.log.Error("a process is left", "pid", proc.PID(), "error", err)
			}
			p.tell(supervisor.Exited{Gen: g.number, Err: proc.Err()})
			return
		case <-proc.Exited():
			p.tell(supervisor.Exited{Gen: g.number, Err: proc.Err()})
			return
		}
	}
}

// check asks a process for its health.
func (p *Plugin) check(g *generation) {
	ctx, cancel := context.WithTimeout(context.Background(), g.spec.cfg.HealthTimeout)
	defer cancel()
	p.tell(supervisor.HealthChecked{Gen: g.number, Err: g.process.Health(ctx)})
}

// activate lets calls go to g, or nowhere if it is nil.
func (d *driver) activate(g *generation) {
	p := d.plugin
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
	v := p.view.Load()
	e := Event{Kind: Restarted, PID: g.process.PID(), Manifest: g.manifest, Took: g.took}
	if d.away {
		e.Away = v.AwayLast
	}
	switch {
	case d.spec == 0:
		e.Kind = Started
		close(p.opened)
	case d.spec != v.Spec:
		e.Kind = Swapped
	}
	d.spec = v.Spec
	p.observe(e)
	p.log.Info("the plugin is ready", "event", string(e.Kind), "pid", e.PID, "manifest", g.manifest.String(), "took", g.took)
}

// swapped answers a swap, and forgets the configuration that is not used.
func (d *driver) swapped(err error) {
	p := d.plugin
	v := p.view.Load()
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		p.swaps++
	}
	for number, s := range p.specs {
		if number != v.Spec {
			s.remove()
			delete(p.specs, number)
		}
	}
	p.pending <- err // It has room.
	<-p.swap
}
