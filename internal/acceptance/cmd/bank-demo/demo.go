// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// A run starts node processes and a load, carries out the plan step by step ([demo.play],
// [demo.carryOut]), and ends with the audit. Each action has a method that waits until
// the cluster has recovered.

// options are the command line as values.
type options struct {
	seed     uint64
	accounts int
	rate     int
	program  string
	dir      string
	phases   []action
	plugins  bool
}

// firstNodes is how many nodes the cluster starts with.
const firstNodes = 5

// demo is one run.
type demo struct {
	opts      options
	printer   *printer
	processes *nodeProcesses
	load      *load
	journal   string

	recoveries []time.Duration          // Each from a death to the last account's answer.
	windows    []window                 // The phases so far; the last one is not over.
	away       map[string]pluginOutcome // The plugins that were killed or stopped.
	machine    *machine
}

// run runs the whole demo and reports whether nothing was lost.
func run(ctx context.Context, opts options) (bool, error) {
	dir, cleanup, err := workDir(opts.dir)
	if err != nil {
		return false, err
	}
	d := &demo{opts: opts, printer: newPrinter(os.Stdout), journal: filepath.Join(dir, "journal"), away: map[string]pluginOutcome{}}
	if d.processes, err = newNodeProcesses(opts.program, dir, d.journal, opts.plugins, d.printer); err != nil {
		return false, err
	}
	defer d.processes.close()
	d.machine = watchMachine()
	d.load = newLoad(opts.seed, opts.accounts, opts.rate, d.processes)
	defer d.load.close()
	v, err := d.play(ctx)
	if err != nil {
		v, err = d.giveUp(v, err)
	}
	d.closeWindow()
	err = errors.Join(err, d.writeGaps(filepath.Join(dir, "gaps.log")))
	if ok := d.report(v); ok && err == nil {
		return true, cleanup()
	}
	fmt.Fprintln(os.Stderr, "bank-demo: logs and journals are in", dir)
	return false, err
}

// giveUp ends a run that cannot finish. The answers so far are audited all the same: they
// must not be lost.
func (d *demo) giveUp(v verdict, why error) (verdict, error) {
	if d.load.abandon() {
		books, err := audit(d.journal, d.load)
		why = errors.Join(why, err)
		v = books
	}
	v.OK, v.Error = false, why.Error()
	return v, why
}

// workDir returns the directory of the run, and the function that removes a temporary
// one.
func workDir(dir string) (string, func() error, error) {
	if dir != "" {
		return dir, func() error { return nil }, os.MkdirAll(dir, 0o755)
	}
	dir, err := os.MkdirTemp("", "quorate-bank-")
	return dir, func() error { return os.RemoveAll(dir) }, err
}

// play runs the plan under load and audits the journals.
func (d *demo) play(ctx context.Context) (verdict, error) {
	d.printer.event("seed %d: %d nodes, %d accounts, %d transfers a second", d.opts.seed, firstNodes, d.opts.accounts, d.opts.rate)
	started := make([]*process, firstNodes)
	for i := range started {
		p, err := d.processes.start(ctx)
		if err != nil {
			return verdict{}, err
		}
		started[i] = p
	}
	if err := d.processes.admit(ctx, started...); err != nil {
		return verdict{}, err
	}
	took, err := d.load.sweep(ctx)
	if err != nil {
		return verdict{}, err
	}
	d.printer.event("all %d accounts answer, %v after the first question", d.opts.accounts, took.Round(time.Millisecond))
	d.load.start(ctx, d.printer)
	d.enter(steady)
	for _, step := range plan(d.opts.seed, d.opts.phases) {
		if err := sleep(ctx, step.after); err != nil {
			return verdict{}, err
		}
		d.enter(string(step.what))
		if err := d.carryOut(ctx, step.what); err != nil {
			return verdict{}, fmt.Errorf("%s: %w", step.what, err)
		}
	}
	if err := sleep(ctx, 2*time.Second); err != nil {
		return verdict{}, err
	}
	if err := d.load.finish(ctx); err != nil {
		return verdict{}, err
	}
	return audit(d.journal, d.load)
}

// enter begins a phase. It lasts until the next one, so that the effects of its action
// are counted as its own.
func (d *demo) enter(name string) {
	d.closeWindow()
	from := d.load.since()
	if n := len(d.windows); n > 0 {
		from = d.windows[n-1].to
	}
	d.windows = append(d.windows, window{name: name, from: from, to: noAnswer})
}

// closeWindow ends the present phase.
func (d *demo) closeWindow() {
	if n := len(d.windows); n > 0 && d.windows[n-1].to == noAnswer {
		d.windows[n-1].to = d.load.since()
	}
}

// carryOut does one step of the plan and waits until the cluster has recovered.
func (d *demo) carryOut(ctx context.Context, what action) error {
	switch what {
	case killPlain, killOldest:
		return d.kill(ctx, what == killOldest)
	case startTwo:
		return d.join(ctx)
	case freezeOne:
		return d.freeze(ctx)
	case restartAll:
		return d.restart(ctx)
	case drainOne:
		return d.drain(ctx)
	case reshardAll:
		return d.reshard(ctx)
	case reshardOne:
		return d.reshardAndKill(ctx)
	case harm:
		return d.harm(ctx)
	default:
		return d.leave(ctx)
	}
}

// join starts two nodes.
func (d *demo) join(ctx context.Context) error {
	first, err := d.processes.start(ctx)
	if err != nil {
		return err
	}
	second, err := d.processes.start(ctx)
	if err != nil {
		return err
	}
	return d.processes.admit(ctx, first, second)
}

// kill ends a node without warning and measures how long it takes until every
// account has answered again.
func (d *demo) kill(ctx context.Context, oldest bool) error {
	victim, err := d.processes.pick(ctx, oldest, d.load.rnd)
	if err != nil {
		return err
	}
	name := "a node"
	if oldest {
		name = "the oldest node, the coordinator"
	}
	return d.killThis(ctx, victim, name)
}

// killThis ends a node without warning, and measures as [demo.kill] does.
func (d *demo) killThis(ctx context.Context, victim *process, what string) error {
	d.printer.event("kill -9 %s (%s)", victim.name, what)
	at := time.Now()
	if err := d.processes.kill(victim); err != nil {
		return err
	}
	swept := make(chan error, 1)
	// Owned by kill, which waits for its one result below.
	go func() {
		_, err := d.load.sweep(ctx)
		d.recoveries = append(d.recoveries, time.Since(at))
		swept <- err
	}()
	removed := d.processes.waitRemoved(ctx, victim)
	if err := <-swept; err != nil {
		return err
	}
	d.printer.event("every account answers again, %v after the kill", d.recoveries[len(d.recoveries)-1].Round(10*time.Millisecond))
	return removed
}

// leave lets a node go in order.
func (d *demo) leave(ctx context.Context) error {
	leaver, err := d.processes.pick(ctx, false, d.load.rnd)
	if err != nil {
		return err
	}
	d.printer.event("%s leaves", leaver.name)
	if err := d.processes.terminate(ctx, leaver); err != nil {
		return err
	}
	return d.processes.waitRemoved(ctx, leaver)
}

// restart restarts every node, one after the other, in an order that the seed
// decides.
func (d *demo) restart(ctx context.Context) error {
	nodes := d.processes.nodes()
	d.load.rnd.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	for _, old := range nodes {
		d.printer.event("%s restarts", old.name)
		if err := d.processes.terminate(ctx, old); err != nil {
			return err
		}
		fresh, err := d.processes.restart(ctx, old)
		if err != nil {
			return err
		}
		if err := d.processes.admit(ctx, fresh); err != nil {
			return err
		}
	}
	return nil
}

// sleep waits for d or the end of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
