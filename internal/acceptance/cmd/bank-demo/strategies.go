// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// With -plugins the demo finds the executables of the plugins and starts their witness
// ([newStrategies]), and writes them into the cluster's file. The action [demo.harm]
// kills one plugin and stops another ([demo.hurt]).

// The plugins that decide for the nodes with -plugins.
const (
	allocationPlugin = "zoneaware"
	downingPlugin    = "witness"
)

// strategies are the plugins of all nodes, and the witness process that one of them asks.
type strategies struct {
	paths   map[string]string // Executables by the names of their plugins.
	witness string            // Address of the witness.
	daemon  *exec.Cmd
}

// pluginPrograms are the programs that a demo with plugins needs besides the node.
func pluginPrograms() []string { return []string{allocationPlugin, downingPlugin, "witnessd"} }

// newStrategies finds the executables in a directory and starts the witness.
func newStrategies(binaries, dir, witness string) (*strategies, error) {
	s := &strategies{paths: map[string]string{}, witness: witness}
	for _, name := range pluginPrograms() {
		path, err := filepath.Abs(filepath.Join(binaries, name))
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("a program of the plugins is missing, `make demo-plugin` builds it: %w", err)
		}
		s.paths[name] = path
	}
	log, err := os.Create(filepath.Join(dir, "witnessd.log"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()                                                                           // The process has a descriptor of its own.
	s.daemon = exec.Command(s.paths["witnessd"], "-listen", witness, "-state", filepath.Join(dir, "votes.json")) //nolint:noctx // It ends by close.
	s.daemon.Stderr = log
	dieWithParent(s.daemon)
	return s, s.daemon.Start()
}

// close ends the witness.
func (s *strategies) close() {
	if s != nil {
		_ = s.daemon.Process.Kill() // The process may have ended by itself.
		_ = s.daemon.Wait()         // How it ended does not matter any more.
	}
}

// config is the part of the cluster's file that chooses the plugins, each pinned.
func (s *strategies) config() (string, error) {
	if s == nil {
		return "", nil
	}
	var text strings.Builder
	fmt.Fprintf(&text, "downing: {strategy: %s}\nsharding: {allocation: {strategy: %s}}\nplugins:\n", downingPlugin, allocationPlugin)
	for _, p := range []struct{ name, policy, settings string }{
		{allocationPlugin, "allocation", "{}"},
		{downingPlugin, "downing", fmt.Sprintf("{url: %q, cluster: bank}", "http://"+s.witness)},
	} {
		sum, err := checksum(s.paths[p.name])
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&text, "  %s: {policy: %s, path: %q, sha256: %s, settings: %s}\n", p.name, p.policy, s.paths[p.name], sum, p.settings)
	}
	return text.String(), nil
}

// checksum is the SHA-256 checksum of a file.
func checksum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // It was only read.
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), err
}

// plugin is the status of a plugin of a node.
type plugin struct {
	Name      string `json:"name"`
	State     string `json:"state"`
	PID       int    `json:"pid"`
	Restarts  uint64 `json:"restarts"`
	LastError string `json:"last_error"`
}

// pluginOf asks a node for one of its plugins.
func (f *nodeProcesses) pluginOf(ctx context.Context, p *process, name string) (plugin, error) {
	var all []plugin
	if err := f.get(ctx, p, "/plugins", &all); err != nil {
		return plugin{}, err
	}
	for _, one := range all {
		if one.Name == name {
			return one, nil
		}
	}
	return plugin{}, fmt.Errorf("%s has no plugin %s", p.name, name)
}

// pluginOutcome is what became of a plugin that was killed or stopped.
type pluginOutcome struct {
	Node   string `json:"node"`
	How    string `json:"how"`
	AwayMS int64  `json:"away_ms"` // Time until another process of the plugin could be asked.
}

// replacedWithin bounds the wait for a plugin: a process that hangs is noticed after
// three health checks of a second, and its successor starts in less.
const replacedWithin = 20 * time.Second

// hurt sends a signal to a plugin of a node, and waits until another process has
// taken its place.
func (d *demo) hurt(ctx context.Context, p *process, name, how string, signal syscall.Signal) error {
	before, err := d.processes.pluginOf(ctx, p, name)
	if err != nil {
		return err
	}
	if before.PID == 0 {
		return fmt.Errorf("plugin %s of %s has no process: %s, %s", name, p.name, before.State, before.LastError)
	}
	d.printer.event("%s of plugin %s on %s", how, name, p.name)
	process, err := os.FindProcess(before.PID)
	if err != nil {
		return err
	}
	at := time.Now()
	if err := process.Signal(signal); err != nil {
		return err
	}
	for {
		now, err := d.processes.pluginOf(ctx, p, name)
		if err == nil && now.Restarts > before.Restarts && now.State == "running" {
			d.away[name] = pluginOutcome{Node: p.name, How: how, AwayMS: time.Since(at).Milliseconds()}
			d.printer.event("plugin %s is back after %d ms", name, d.away[name].AwayMS)
			return nil
		}
		if time.Since(at) > replacedWithin {
			return errors.Join(fmt.Errorf("plugin %s of %s was not replaced within %v: %s, %s", name, p.name, replacedWithin, now.State, now.LastError), err)
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

// harm kills the allocation plugin of the coordinator while a node joins, so that
// shards are on the move, and stops the downing plugin of the oldest node.
func (d *demo) harm(ctx context.Context) error {
	oldest, err := d.processes.pick(ctx, true, d.load.rnd)
	if err != nil {
		return err
	}
	fresh, err := d.processes.start(ctx)
	if err != nil {
		return err
	}
	if err := d.hurt(ctx, oldest, allocationPlugin, "kill -9", syscall.SIGKILL); err != nil {
		return err
	}
	if err := d.processes.admit(ctx, fresh); err != nil {
		return err
	}
	return d.hurt(ctx, oldest, downingPlugin, "SIGSTOP", stopSignal)
}
