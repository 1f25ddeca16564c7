// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/host"
	"github.com/quorate/quorate/tools/internal/trial"
)

// Plugin is the command for strategies in other processes.
type Plugin struct {
	Check CheckPlugin `cmd:"" help:"Start a plugin as a node would, and ask it once."`
	Pin   Pin         `cmd:"" help:"Write the checksums of plugins into a configuration file."`
	Test  TestPlugin  `cmd:"" help:"Try a plugin out, also in simulated clusters."`
	Kit   KitPlugin   `cmd:"" hidden:""`
	New   NewPlugin   `cmd:"" help:"Write the project of a new plugin, in Go or Python."`

	Install Install `cmd:"" help:"Copy a plugin beside a configuration file, and add it to the file."`

	List    ListPlugins   `cmd:"" help:"Ask a node for its plugins, and how they are."`
	Swap    SwapPlugin    `cmd:"" help:"Let a node take over one plugin as its files have it."`
	Restart RestartPlugin `cmd:"" help:"Let a node replace the process of one plugin."`
}

// CheckPlugin is the command that tries a plugin out.
type CheckPlugin struct{ PluginFlags }

// Help is the text after the one-line help.
func (*CheckPlugin) Help() string {
	return `Starts the executable in a clean environment, with the handshake, the limits and
the checks of a node, hands it its settings, and has it decide a small example.
Prints what it says about itself, what it decided, and how long that took. The
exit status is 1 when anything is wrong: then what it has printed is shown.

` + pluginFlagsHelp + `

Examples:
  quorate plugin check plugins/zoneaware
  quorate plugin check plugins/witness --settings witness.yaml
  quorate plugin check bin/labels --start-timeout 30s --env LANG=C
  quorate plugin check cluster.yaml witness
  quorate --json plugin check plugins/zoneaware`
}

// checkResult is the result of trying a plugin out, and the JSON form of the output.
type checkResult struct {
	Path     string  `json:"path"`
	SHA256   string  `json:"sha256"`
	Name     string  `json:"name"`
	Version  string  `json:"version"`
	Policy   string  `json:"policy"`
	Contract int     `json:"contract"`
	Class    string  `json:"class"`
	Start    float64 `json:"start_seconds"`
	Decision string  `json:"decision"`
	Took     float64 `json:"decision_seconds"`
	Settings string  `json:"settings"`
}

// checkTimeout bounds the check beside its starts.
const checkTimeout = 30 * time.Second

// Run tries the plugin.
func (c *CheckPlugin) Run(s *Session) error {
	cfg, err := c.config()
	if err != nil {
		return err
	}
	if cfg.Debug {
		fmt.Fprintln(s.Stderr, "warning: the plugin may be debugged: it is waited for without a limit of time for its start")
	}
	printed := new(host.Output)
	t, err := try(cfg, printed)
	if err != nil {
		printOutput(s.Stderr, printed)
		return err
	}
	if s.JSON {
		return s.PrintJSON(t)
	}
	field(s.Stdout, "name", t.Name)
	field(s.Stdout, "version", t.Version)
	field(s.Stdout, "policy", t.Policy)
	field(s.Stdout, "contract", fmt.Sprint(t.Contract))
	field(s.Stdout, "class", t.Class)
	field(s.Stdout, "sha256", t.SHA256)
	field(s.Stdout, "start", fmt.Sprintf("%.0f ms", 1e3*t.Start))
	field(s.Stdout, "settings", t.Settings)
	field(s.Stdout, "decision", fmt.Sprintf("%s (%.2f ms)", t.Decision, 1e3*t.Took))
	fmt.Fprintln(s.Stdout, s.Paint(32, "ok"))
	return nil
}

// try starts a plugin, whose policy need not be known, and has it decide.
func try(cfg plugins.Config, printed *host.Output) (checkResult, error) {
	// One start is enough for a policy that is known, and for another one as many as there are policies.
	limit := checkTimeout + time.Duration(len(host.Policies()))*cfg.WithDefaults().StartTimeout
	if cfg.Debug {
		limit = math.MaxInt64
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	began := time.Now()
	p, err := trial.Open(ctx, cfg, printed)
	if err != nil {
		return checkResult{}, err
	}
	t := checkResult{Path: cfg.Path, Start: time.Since(began).Seconds()}
	t.Settings = saysOfSettings(p.Declaration())
	began = time.Now()
	t.Decision, err = p.Try(ctx)
	t.Took = time.Since(began).Seconds()
	m := p.Manifest()
	t.SHA256, t.Name, t.Version, t.Policy, t.Contract, t.Class = p.Status().SHA256, m.Name, m.Version, string(m.Policy), m.Contract, m.Class.String()
	if err := errors.Join(err, p.Close(ctx)); err != nil {
		return t, fmt.Errorf("it starts, and does not decide: %w", err)
	}
	return t, nil
}

// saysOfSettings returns in words what a plugin says of its settings.
func saysOfSettings(d host.Declaration) string {
	switch {
	case d.Fault != nil:
		return "not described, which is a fault of the plugin: " + d.Fault.Error()
	case d.Schema == nil:
		return "not described"
	}
	return "described"
}
