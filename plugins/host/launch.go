// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/internal/client"
	"github.com/quorate/quorate/plugins/internal/process"
)

// A launch copies and checks the executable ([starter.stage]), starts a process ([starter.start]),
// holds the settings to its schema ([Plugin.admit]), configures it and checks what it declares
// ([Plugin.prepare], [Plugin.acceptable]). A failed one ends in an error that says everything
// ([starter.refusal]). At the end is a process that was only started ([Launch]).

// launcher is what a plugin needs of package process.
type launcher interface {
	Stage(ctx context.Context, path string, sum plugins.Checksums) (*process.Binary, error)
	Launch(ctx context.Context, b *process.Binary, c process.Command) (running, error)
	Close() error
}

// running is a process that was launched.
type running interface {
	Conn() grpc.ClientConnInterface
	Contract() int
	PID() int
	Started() time.Time
	Health(ctx context.Context, opts ...grpc.CallOption) error
	Kill(grace time.Duration) error
	Exited() <-chan struct{}
	Err() error
}

// systemLauncher launches processes of the operating system.
type systemLauncher struct{ *process.Launcher }

func newLauncher(dir string, log *slog.Logger) (launcher, error) {
	l, err := process.Open(dir, log)
	return systemLauncher{l}, err
}

// Launch adapts the type of the result.
func (l systemLauncher) Launch(ctx context.Context, b *process.Binary, c process.Command) (running, error) {
	p, err := l.Launcher.Launch(ctx, b, c)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// spec is a configuration, with the copy of its executable if there is one already.
type spec struct {
	cfg       plugins.Config
	binary    atomic.Pointer[process.Binary]
	described atomic.Pointer[Declaration] // What its first process said of itself, with settings that may be sent.
}

// fair is how long a call must have waited before its missing answer counts against the
// process: as long as a health check, unless no call may take so long. A caller in a
// hurry must not get a healthy process killed.
func (s *spec) fair() time.Duration { return min(s.cfg.HealthTimeout, s.cfg.CallTimeout) }

// remove removes the copy.
func (s *spec) remove() {
	if b := s.binary.Load(); b != nil {
		b.Remove()
	}
}

// starter starts processes of one plugin.
type starter struct {
	name     string
	log      *slog.Logger
	output   *Output // Nil if the log has what processes print.
	launcher launcher
	leftOut  atomic.Uint64 // Bytes of output that were not logged.
}

// open makes the launcher.
func (s *starter) open(o options) error {
	var err error
	if s.launcher, err = o.launcher(o.dir, o.log); err != nil {
		return &plugins.Error{Plugin: s.name, Err: plugins.ErrUnavailable, Cause: err, Cure: "look at the directory for copies and sockets"}
	}
	return nil
}

// warn logs what this system does not keep of a configuration.
func (s *starter) warn(cfg plugins.Config) {
	for _, l := range confinementOf(cfg).Lacks() {
		s.log.Warn("a setting of the plugin is not kept by this system", "setting", l.Key, "reason", l.Reason)
	}
}

// start launches a process of the spec: its file was checked, it has shaken hands and answers.
func (s *starter) start(ctx context.Context, of *spec) (running, error) {
	if of.cfg.Unpinned {
		s.log.WarnContext(ctx, "the plugin is not pinned: whoever can write its file decides for the cluster", "path", of.cfg.Path)
	}
	if err := s.stage(ctx, of); err != nil {
		return nil, err
	}
	c := process.Command{
		Name: s.name, Args: of.cfg.Args, Environment: of.cfg.Environment, Versions: []int{plugins.Version1},
		Confinement: confinementOf(of.cfg), LeftOut: func(n int) { s.leftOut.Add(uint64(n)) },
	}
	if s.output != nil {
		c.Printed = s.output.add
	}
	if of.cfg.Debug {
		c.Begun = func(pid int) {
			s.log.WarnContext(ctx, "the plugin may be debugged: it has no limit of time for its start, and is not killed when it does not answer", "pid", pid)
		}
	}
	return s.launcher.Launch(ctx, of.binary.Load(), c)
}

// limited returns the context of one start: a debugger may hold a process for longer than start-timeout.
func (s *spec) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.cfg.Debug {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, s.cfg.StartTimeout)
}

// prepare launches a process of the spec and makes it ready: checked, started,
// configured, and of the right policy. It returns within start-timeout, or with its context if
// the process may be debugged, with an error of type [*plugins.Error] unless the context has ended.
func (p *Plugin) prepare(ctx context.Context, s *spec) (running, plugins.Manifest, error) {
	ctx, cancel := s.limited(ctx)
	defer cancel()
	proc, err := p.starter.start(ctx, s)
	if err != nil {
		return nil, plugins.Manifest{}, p.starter.refusal(ctx, s, err)
	}
	var m plugins.Manifest
	if err = p.admit(ctx, proc, s); err == nil {
		m, err = client.Configure(ctx, proc.Conn(), p.name, p.options.version, s.cfg.Settings)
	}
	if err == nil {
		m.Contract = proc.Contract()
		err = p.acceptable(s, m)
	}
	if err != nil {
		return nil, m, p.starter.refusal(ctx, s, p.discard(proc, err))
	}
	return proc, m, nil
}

// stage copies the executable, unless that was done before.
func (s *starter) stage(ctx context.Context, of *spec) error {
	if b := of.binary.Load(); b != nil && !b.Missing() {
		return nil
	}
	want := append(plugins.Checksums{}, of.cfg.SHA256...) // An empty list matches no file, none means any.
	if of.cfg.Unpinned {
		want = nil
	}
	b, err := s.launcher.Stage(ctx, of.cfg.Path, want)
	if err != nil {
		return err
	}
	of.binary.Store(b)
	return nil
}

// acceptable checks what a process declares. The class was passed on when the plugin was
// opened, and others rely on it.
func (p *Plugin) acceptable(s *spec, m plugins.Manifest) error {
	if m.Policy != s.cfg.Policy {
		return &process.StartError{
			Err: plugins.ErrPolicy, Cause: fmt.Errorf("the plugin is for %s, the configuration says %s", m.Policy, s.cfg.Policy),
			Cure: "correct policy, or name another file",
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.manifest.Policy != "" && m.Class != p.manifest.Class {
		return &process.StartError{
			Err: plugins.ErrClass, Cause: fmt.Errorf("it promises %s now, it promised %s when it was opened", m.Class, p.manifest.Class),
			Cure: "restart the node to use it",
		}
	}
	return nil
}

// discard kills a process that is not acceptable. If it ended by itself, its end is the
// error.
func (p *Plugin) discard(proc running, err error) error {
	if errors.Is(err, plugins.ErrUnavailable) {
		select {
		case <-proc.Exited():
		case <-time.After(endSeen):
		}
	}
	ended := false
	select {
	case <-proc.Exited():
		ended = true
	default:
	}
	if stuck := proc.Kill(0); stuck != nil {
		p.log.Error("a process is left", "pid", proc.PID(), "error", stuck)
	}
	if ended {
		return &process.StartError{Err: plugins.ErrNotPlugin, Cause: proc.Err(), Cure: "look why it ends when it is configured"}
	}
	return err
}

// endSeen is how long after its connection broke a process may take to be seen ended.
const endSeen = 500 * time.Millisecond

// refusal puts everything about a failed launch into one error.
func (s *starter) refusal(ctx context.Context, of *spec, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return context.Cause(ctx)
	}
	e := &plugins.Error{Plugin: s.name, Path: of.cfg.Path}
	start, isStart := errors.AsType[*process.StartError](err)
	settings, isSettings := errors.AsType[plugins.SettingErrors](err)
	call, isCall := errors.AsType[*plugins.CallError](err)
	late := fmt.Sprintf("not ready after %v", of.cfg.StartTimeout)
	switch {
	case isStart && errors.Is(start, plugins.ErrStartTimeout):
		e.Err, e.Cause, e.Cure = start.Err, fmt.Errorf("%s; %w", late, start.Cause), start.Cure
	case isStart:
		e.Err, e.Cause, e.Cure = start.Err, start.Cause, start.Cure
	case isSettings:
		e.Err, e.Cause, e.Cure = plugins.ErrSettings, settings, "correct settings"
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		e.Err, e.Cause, e.Cure = plugins.ErrStartTimeout, errors.New(late), "raise start-timeout if it needs longer to start"
	case isCall:
		e.Err, e.Cause, e.Cure = plugins.ErrNotPlugin, call, "build it with the plugin SDK"
	default:
		e.Err, e.Cause, e.Cure = plugins.ErrUnavailable, err, "look at the directory for copies and sockets"
	}
	return e
}
