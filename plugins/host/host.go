// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/internal/supervisor"
)

// A plugin is opened ([Open]), swapped ([Plugin.Swap]) and closed ([Plugin.Close]); each
// command goes to the supervisor and waits for the outcome that supervision.go carries
// out.

// Plugin is a strategy in another process. See the package comment.
type Plugin struct {
	name    string
	options options
	log     *slog.Logger
	starter starter

	driver  *machine.Driver
	handle  *machine.Handle // Handle of the supervisor.
	ended   chan struct{}   // Closed when nothing of the plugin is left.
	opened  chan struct{}   // Closed when the first process is active.
	swap    chan struct{}   // Holds an element while a swap is under way.
	workers sync.WaitGroup

	routes          routes
	view            atomic.Pointer[supervisor.View]
	calls, failures atomic.Uint64
	resent          atomic.Uint64 // Requests that were sent again as a whole.
	lastCall        atomic.Pointer[plugins.Call]

	asked   sync.Once
	answers any // The plugin as a strategy of its policy, made when it is first asked for.

	mu       sync.Mutex // Guards what follows.
	policy   plugins.Policy
	manifest plugins.Manifest // Manifest of the last active process.
	sum      string
	serving  *generation                           // The active generation.
	live     map[supervisor.Generation]*generation // Generations that have not ended.
	specs    map[supervisor.Spec]*spec
	lastSpec supervisor.Spec
	pending  chan error // Receives the outcome of the swap under way.
	swaps    uint64
}

// Open starts the plugin with a name in the cluster's file. The path must be absolute.
// Open returns when the plugin is ready for calls, or with what is wrong: the faults of
// the configuration, each with its key, or an error of type [*plugins.Error]. It takes
// start-timeout at most, unless the plugin may be debugged. The context is for Open alone.
func Open(ctx context.Context, name string, cfg plugins.Config, opts ...Option) (*Plugin, error) {
	cfg = cfg.WithDefaults()
	if err := validate(name, cfg); err != nil {
		return nil, err
	}
	o := optionsOf(opts)
	log := o.log.With("plugin", name)
	p := &Plugin{
		name: name, options: o, log: log, starter: starter{name: name, log: log, output: o.output}, policy: cfg.Policy,
		ended: make(chan struct{}), opened: make(chan struct{}), swap: make(chan struct{}, 1),
		live: make(map[supervisor.Generation]*generation), specs: map[supervisor.Spec]*spec{1: {cfg: cfg}}, lastSpec: 1,
	}
	if err := p.starter.open(o); err != nil {
		return nil, err
	}
	p.starter.warn(cfg)
	p.drive(cfg)
	select {
	case <-p.opened:
		return p, nil
	case <-p.ended:
		return nil, p.view.Load().LastErr
	case <-ctx.Done():
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		return nil, errors.Join(context.Cause(ctx), p.Close(closing))
	}
}

// Host runs plugins for a node that knows no more of them than package plugins says: what
// cluster.WithPlugins takes.
type Host struct{ options []Option }

// New returns a host. The options are for each plugin that it opens; where they name no
// logger, it is that of the node.
func New(opts ...Option) *Host { return &Host{options: opts} }

// Open is the function [Open] with the options of the host. The observer is told every
// event beside that of the options.
func (h *Host) Open(ctx context.Context, name string, cfg plugins.Config, log *slog.Logger, observe func(plugins.Event)) (*Plugin, error) {
	also := optionsOf(h.options).observe
	opts := append([]Option{WithLogger(log)}, h.options...)
	return Open(ctx, name, cfg, append(opts, WithObserver(func(e plugins.Event) {
		observe(e)
		also(e)
	}))...)
}

// closeTimeout is how long the cleanup after a failed Open may take.
const closeTimeout = 5 * time.Second

func validate(name string, cfg plugins.Config) error {
	err := cfg.Validate()
	if err == nil && !filepath.IsAbs(cfg.Path) {
		err = fmt.Errorf("path: %q is not absolute", cfg.Path)
	}
	if err != nil {
		return fmt.Errorf("plugin %q: %w", name, err)
	}
	return nil
}

// observe completes an event and passes it to the observer.
func (p *Plugin) observe(e plugins.Event) {
	e.At, e.Plugin = time.Now(), p.name
	p.options.observe(e)
}

// Name is the name of the plugin in the cluster's file.
func (p *Plugin) Name() string { return p.name }

// Manifest is what the last active process declares. Its policy and class never change.
func (p *Plugin) Manifest() plugins.Manifest {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.manifest
}

// Swap changes to another configuration: it starts a process with it, and when that is
// ready, calls go there and the old process is stopped after its last call. Swap returns
// when the old process has ended, or with what is wrong; then the old configuration is
// still in use, except that a swap whose context ends goes on. Policy and class must stay
// the same. Swaps wait for each other.
func (p *Plugin) Swap(ctx context.Context, cfg plugins.Config) error {
	cfg = cfg.WithDefaults()
	if err := validate(p.name, cfg); err != nil {
		return err
	}
	if cfg.Policy != p.policy {
		return &plugins.Error{
			Plugin: p.name, Path: cfg.Path, Err: plugins.ErrPolicy, Cause: fmt.Errorf("it is %s, and cannot become %s", p.policy, cfg.Policy),
			Cure: "give the new plugin another name",
		}
	}
	select {
	case p.swap <- struct{}{}: // The driver takes the element out.
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-p.ended:
		return p.closed()
	}
	answer := make(chan error, 1)
	p.mu.Lock()
	p.lastSpec++
	number := p.lastSpec
	p.specs[number] = &spec{cfg: cfg}
	p.pending = answer
	p.mu.Unlock()
	p.tell(supervisor.Swap{Spec: number, Config: timesOf(cfg)})
	select {
	case err := <-answer:
		if errors.Is(err, supervisor.ErrStopped) {
			return p.closed()
		}
		return err
	case <-ctx.Done():
		return fmt.Errorf("plugin %q: the swap goes on: %w", p.name, context.Cause(ctx))
	case <-p.ended:
		return p.closed()
	}
}

func (p *Plugin) closed() error {
	return &plugins.Error{Plugin: p.name, Err: plugins.ErrClosed}
}

// Close stops the plugin. It returns when nothing is left of it: no process, file or
// goroutine. If the context ends before, the rest goes on by itself, for some seconds at
// most. Close may be called again.
func (p *Plugin) Close(ctx context.Context) error {
	p.tell(supervisor.Stop{})
	select {
	case <-p.ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// timesOf returns the times and numbers for the supervisor.
func timesOf(cfg plugins.Config) supervisor.Config {
	return supervisor.Config{
		HealthInterval: cfg.HealthInterval, HealthTimeout: cfg.HealthTimeout, UnhealthyAfter: unhealthyAfter, HungAfter: hungAfter,
		BackoffMin: cfg.RestartBackoffMin, BackoffMax: cfg.RestartBackoffMax,
		BreakerFailures: breakerFailures, BreakerWindow: breakerWindow, BreakerOpen: cfg.RestartBackoffMax,
		ProvedAfter: provedAfter, DrainTimeout: drainTimeout, Debug: cfg.Debug,
	}
}
