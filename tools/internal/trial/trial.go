// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/host"
)

// First what is tried ([Plugin]) and what comes of it ([Report]); then the order of the checks
// ([Plugin.Run]), and how each is run and reported. The kit is in kit.go, the worlds in worlds.go.

// Plugin says what is tried, and how much.
type Plugin struct {
	// Config is the plugin with its settings, whose policy need not be given.
	Config plugins.Config
	// Kit returns the arguments by which the calling program runs parts of the kit, see package kittest.
	Kit func(policy plugins.Policy, pattern string) []string
	// Only, when not empty, are beginnings of names of checks: others are not run.
	Only []string
	// Nodes is the size of the cluster of sim/every-fault.
	Nodes int
	// Partitions is how many partitions sim/partitions has.
	Partitions int
	// For is how long the other checks of sim run in all, and Seed the first seed of each.
	For  time.Duration
	Seed uint64
	// Traces are files with recorded answers to heartbeats.
	Traces []string
	// Printed keeps what the plugin prints; nil keeps it for the report alone.
	Printed *host.Output
	// Done is called with each check when it is done.
	Done func(Check)
	// Progress, when not nil, is called now and then with a word about the check under way.
	Progress func(text string)
}

// Check is what came of a check.
type Check struct {
	Name    string   `json:"name"`
	OK      bool     `json:"ok"`
	Seconds float64  `json:"seconds"`
	Text    string   `json:"text,omitempty"`   // What was found, in a sentence.
	Log     []string `json:"log,omitempty"`    // What a failed check has printed.
	Repeat  string   `json:"repeat,omitempty"` // The flags that repeat a failed check alone.
}

// Report is what came of all checks.
type Report struct {
	Path    string  `json:"path"`
	SHA256  string  `json:"sha256"`
	Name    string  `json:"name"`
	Version string  `json:"version"`
	Policy  string  `json:"policy"`
	Class   string  `json:"class"`
	OK      bool    `json:"ok"`
	Checks  []Check `json:"checks"`
}

// ErrNotRun is wrapped by errors that say why there was no trial.
var ErrNotRun = errors.New("there was no trial")

// Open opens a plugin, whose policy need not be given. It keeps what the plugin prints.
func Open(ctx context.Context, c plugins.Config, printed *host.Output) (p *host.Plugin, err error) {
	c.Unpinned = len(c.SHA256) == 0
	policies := host.Policies()
	if c.Policy != "" {
		policies = []plugins.Policy{c.Policy}
	}
	for _, c.Policy = range policies {
		if p, err = host.Open(ctx, filepath.Base(c.Path), c, host.WithOutput(printed)); !errors.Is(err, plugins.ErrPolicy) {
			break
		}
	}
	return p, err
}

// trial is a trial under way.
type trial struct {
	Plugin

	report Report
	plugin *host.Plugin
}

// Run runs the checks. The error says why there was no trial, or that the context has ended.
func (p Plugin) Run(ctx context.Context) (Report, error) {
	if p.Printed == nil {
		p.Printed = new(host.Output)
	}
	p.Config.Debug = false // A plugin that hangs is to be replaced.
	t := &trial{Plugin: p}
	began := time.Now()
	opened, err := Open(ctx, p.Config, p.Printed)
	if err != nil {
		return t.report, fmt.Errorf("%w: %w", ErrNotRun, err)
	}
	t.plugin, t.Config.Policy = opened, opened.Manifest().Policy
	defer t.close()
	m := opened.Manifest()
	t.report = Report{
		Path: p.Config.Path, SHA256: opened.Status().SHA256, Name: m.Name, Version: m.Version,
		Policy: string(m.Policy), Class: m.Class.String(), OK: true,
	}
	started := time.Since(began)
	t.check("start", func() (string, error) {
		said, err := opened.Try(ctx)
		return fmt.Sprintf("started in %d ms: %s", started.Milliseconds(), said), err
	})
	if err := t.kit(ctx); err != nil {
		return t.report, err
	}
	if err := t.worlds(ctx); err != nil {
		return t.report, err
	}
	if len(t.report.Checks) == 0 {
		return t.report, fmt.Errorf("%w: no check of the policy %s begins with %s", ErrNotRun, m.Policy, strings.Join(p.Only, " or "))
	}
	return t.report, context.Cause(ctx)
}

// closeTimeout bounds the end of a plugin.
const closeTimeout = 10 * time.Second

func (t *trial) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := t.plugin.Close(ctx); err != nil && t.Progress != nil {
		t.Progress(err.Error())
	}
}

// wanted reports whether a check is run.
func (t *trial) wanted(name string) bool {
	for _, only := range t.Only {
		if strings.HasPrefix(name, only) {
			return true
		}
	}
	return len(t.Only) == 0
}

// check runs a check if it is wanted.
func (t *trial) check(name string, run func() (string, error)) {
	if !t.wanted(name) {
		return
	}
	began := time.Now()
	_, before := t.Printed.Lines()
	text, err := run()
	c := Check{Name: name, OK: err == nil, Seconds: time.Since(began).Seconds(), Text: text}
	if err != nil {
		c.Text, c.Repeat = oneLine(err), "--only "+name
		lines, all := t.printed()
		c.Log = lines[max(0, len(lines)-(all-before)):] // Those of this check.
		if seeded := (*seedError)(nil); errors.As(err, &seeded) {
			c.Repeat += fmt.Sprintf(" --seed %d %s", seeded.seed, seeded.flags)
		}
	}
	t.add(c)
}

// What a plugin prints comes by another way than its answers, and may come after them: it has come when quietRounds
// rounds have passed without a line.
const (
	quietRound  = 10 * time.Millisecond
	quietRounds = 10
	maxRounds   = 100
)

// printed returns what the plugin has printed until now, and the number of all its lines.
func (t *trial) printed() (lines []string, all int) {
	lines, all = t.Printed.Lines()
	for round, quiet := 0, 0; round < maxRounds && quiet < quietRounds; round++ {
		<-time.After(quietRound)
		before := all
		lines, all = t.Printed.Lines()
		if quiet++; all != before {
			quiet = 0
		}
	}
	return lines, all
}

// add reports a check.
func (t *trial) add(c Check) {
	t.report.Checks = append(t.report.Checks, c)
	t.report.OK = t.report.OK && c.OK
	if t.Done != nil {
		t.Done(c)
	}
}

// progress says a word about the check under way.
func (t *trial) progress(format string, args ...any) {
	if t.Progress != nil {
		t.Progress(fmt.Sprintf(format, args...))
	}
}

// oneLine returns the first line of an error.
func oneLine(err error) string {
	first, _, _ := strings.Cut(err.Error(), "\n")
	return first
}
