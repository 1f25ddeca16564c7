// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/sharding"
)

// A reload reads the files ([Node.Reload]), refuses changes of settings that need a
// restart ([RestartError]), has every part prepare, and commits all of them or none
// ([reloader.commit]).

// ErrNoFiles is the error of [Node.Reload] on a node that was configured in code.
var ErrNoFiles = errors.New("cluster: the node was configured in code, there is no file to reload")

// RestartError names the settings that have changed and cannot change while the node
// runs. After this error nothing has changed, not even settings that could.
type RestartError struct {
	Keys []string // Sorted, at least one.
}

// Error names the settings and the cure.
func (e *RestartError) Error() string {
	return "cluster: nothing was reloaded, because " + strings.Join(e.Keys, ", ") +
		" cannot change while the node runs: restart the node, or take the change back"
}

// ReloadConfig says how a node takes over changes of its files.
type ReloadConfig struct {
	// Watch has the node watch its files, and take over each change as soon as the files
	// have come to rest. By default they are read only when the program asks for it:
	// saving a file in an editor should not change a running cluster before a person has
	// checked the file.
	Watch bool `koanf:"watch"`
}

// Prepare prepares a part of the program for another configuration: it does everything
// that can fail, such as opening files that the new settings name, and changes nothing
// that works. Its error refuses the whole reload. It is called by one goroutine at a
// time, only when something has changed, and must end when ctx does.
type Prepare func(ctx context.Context, from, to Config) (Prepared, error)

// Prepared is a change that is ready to be taken over or given up: one of the two
// functions is called, once. Either may be nil if there is nothing to do.
type Prepared struct {
	// Commit takes the change over. It cannot fail, and must not block.
	Commit func()
	// Discard gives up what was prepared, because another part could not prepare.
	Discard func()
}

// WithReload has a part of the program take part in reloads. Several such parts prepare
// in the order of the options, after the node's own parts; if all could prepare, all
// commit, in the same order.
func WithReload(p Prepare) Option { return func(o *options) { o.prepares = append(o.prepares, p) } }

// reloader takes over changed files while a node runs. Invariant: all parts of the node
// run with the settings in running.
type reloader struct {
	log     *slog.Logger
	options options
	node    *Node
	ctx     context.Context //nolint:containedctx // Life of the reloader: ends everything that its commands wait for.
	cancel  context.CancelFunc
	closed  sync.Once
	watcher *config.Watcher // Nil if the files are not watched.

	turn    chan struct{} // Holds one element: the goroutine that put it there may use the fields below.
	file    *config.File  // Nil if the node was configured in code.
	running configuration
}

// newReloader returns a reloader that has nothing to watch yet.
func newReloader(b *builder) *reloader {
	r := &reloader{
		log: b.log, options: b.options, node: b.Node,
		turn: make(chan struct{}, 1), file: b.file, running: b.cfg,
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// watch watches the files if that is configured.
func (r *reloader) watch() error {
	if r.file == nil || !r.running.Reload.Watch {
		return nil
	}
	var err error
	if r.watcher, err = r.file.Watch(r.changed); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	return nil
}

// close ends the watching and the command that is under way, and waits for both within the
// context: what a command opens is closed by it, or known to the parts that end next. No command
// begins after it.
func (r *reloader) close(ctx context.Context) (err error) {
	r.closed.Do(func() {
		r.cancel()
		if r.watcher != nil {
			_ = r.watcher.Close() // It never fails.
		}
		select {
		case r.turn <- struct{}{}: // And it is not given back.
		case <-ctx.Done():
			err = fmt.Errorf("cluster: a reload or a command about a plugin has not ended with the node: %w", context.Cause(ctx))
		}
	})
	return err
}

// Reload reads the files of the node again and takes over what has changed: all of it, or
// nothing. The reference marks the settings that may change, which carry the tag
// reload:"yes". The error is a [RestartError] if any other setting has changed, a list of
// faults with file, line and key ([config.Errors]) if the files have faults, and
// otherwise the error of the part that could not prepare. It is nil too if nothing has
// changed.
//
// Reload does not read certificates: their files are watched separately.
func (n *Node) Reload(ctx context.Context) error {
	return n.operate(ctx, func(ctx context.Context) error {
		_, err := n.reloader.reload(ctx)
		return err
	})
}

// operate runs a command of the program or of an operator when no other is under way. The context
// of the command ends with the node, after which no command runs.
func (n *Node) operate(ctx context.Context, command func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	over := func() error { return errors.Join(sharding.ErrClosed, n.Err()) }
	defer context.AfterFunc(n.reloader.ctx, func() { cancel(over()) })()
	select {
	case <-n.Done():
		return over()
	default:
	}
	select {
	case n.reloader.turn <- struct{}{}:
		defer func() { <-n.reloader.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return command(ctx)
}

// reload takes over the files, and returns the keys that have changed. Its caller has the turn.
func (r *reloader) reload(ctx context.Context) (changed []string, err error) {
	if r.file == nil {
		return nil, ErrNoFiles
	}
	file, err := r.file.Reload()
	if err != nil {
		return nil, err
	}
	return r.apply(ctx, file)
}

// changed is called on the watcher's goroutine when the content of the files has changed.
func (r *reloader) changed(file *config.File, err error) {
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-r.ctx.Done():
		return
	}
	if err == nil {
		_, err = r.apply(r.ctx, file)
	}
	if err != nil {
		r.log.Error("the changed configuration is not taken over, the node goes on with the one it has", "error", err)
	}
}

// apply takes over a configuration that was read again, and returns the keys that have changed. Its
// caller has the turn.
func (r *reloader) apply(ctx context.Context, file *config.File) (changed []string, err error) {
	to, err := r.options.finish(file)
	if err != nil {
		return nil, err
	}
	changes, err := r.changes(to)
	if err != nil {
		return nil, err
	}
	var fixed []string
	for _, c := range changes {
		if changed = append(changed, c.Key); !c.Reload {
			fixed = append(fixed, c.Key)
		}
	}
	if len(fixed) > 0 {
		return nil, &RestartError{Keys: fixed}
	}
	if len(changed) > 0 {
		if err := r.commit(ctx, to); err != nil {
			return nil, err
		}
		r.log.InfoContext(ctx, "configuration reloaded", "changed", changed)
	}
	r.running, r.file = to, file
	return changed, nil
}

// changes lists the settings of all sections that differ from the running ones.
func (r *reloader) changes(to configuration) ([]config.Change, error) {
	all, err := config.Changes(r.running.Config, to.Config)
	if err != nil {
		return nil, err
	}
	for i, s := range r.options.sections {
		changes, err := s.changes(r.running.own[i], to.own[i])
		if err != nil {
			return nil, err
		}
		all = append(all, changes...)
	}
	slices.SortFunc(all, func(a, b config.Change) int { return strings.Compare(a.Key, b.Key) })
	return all, nil
}

// commit has all parts take over a configuration, or none.
func (r *reloader) commit(ctx context.Context, to configuration) error {
	var prepared []Prepared
	for _, prepare := range r.prepares() {
		p, err := prepare(ctx, r.node, r.running, to)
		if err != nil {
			discard(prepared)
			return fmt.Errorf("cluster: nothing was reloaded: %w", err)
		}
		prepared = append(prepared, p)
	}
	commit(prepared)
	return nil
}

// prepares returns the functions of the node's parts, then those of the program, and last
// those that cannot be taken back.
func (r *reloader) prepares() []prepare {
	var all, last []prepare
	for _, p := range r.node.parts {
		if p.prepare != nil {
			all = append(all, p.prepare)
		}
		if p.prepareLast != nil {
			last = append(last, p.prepareLast)
		}
	}
	for _, prepare := range r.options.prepares {
		all = append(all, func(ctx context.Context, _ *Node, from, to configuration) (Prepared, error) {
			return prepare(ctx, from.Config, to.Config)
		})
	}
	return append(all, last...)
}

// commit takes over what was prepared, in the order of preparation.
func commit(prepared []Prepared) {
	for _, p := range prepared {
		if p.Commit != nil {
			p.Commit()
		}
	}
}

// discard gives up what was prepared, in the reverse order.
func discard(prepared []Prepared) {
	for _, p := range slices.Backward(prepared) {
		if p.Discard != nil {
			p.Discard()
		}
	}
}
