// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/quorate/quorate/plugins"
)

// Launcher starts processes. It owns a directory for copies and sockets.
type Launcher struct {
	dir   *directory
	log   *slog.Logger
	await func(*os.Process) bool // Is awaitEnd, except in tests.

	copies   binaries
	launches atomic.Uint64

	// jobs are run on one thread that lives as long as the launcher: on Linux a child is
	// killed when the thread that started it ends, so that must not be a thread that the
	// runtime may end.
	jobs chan func()
	quit chan struct{} // Closed by Close.
	done chan struct{} // Closed when the thread has ended.
	once sync.Once
}

// Open makes a launcher with a new directory under base, by default the temporary
// directory of the system. It removes the directories of launchers whose hosts have died.
// The logger gets the output of processes.
func Open(base string, log *slog.Logger) (*Launcher, error) {
	dir, err := newDirectory(base)
	if err != nil {
		return nil, err
	}
	l := &Launcher{dir: dir, log: log, await: awaitEnd, jobs: make(chan func()), quit: make(chan struct{}), done: make(chan struct{})}
	go l.thread() // Ended by Close, which waits for it.
	return l, nil
}

func (l *Launcher) thread() {
	defer close(l.done)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for {
		select {
		case job := <-l.jobs:
			job()
		case <-l.quit:
			return
		}
	}
}

// onThread runs f on the launcher's thread, unless the context ends before the thread is
// free.
func (l *Launcher) onThread(ctx context.Context, f func() error) error {
	var err error
	ran := make(chan struct{})
	select {
	case l.jobs <- func() { defer close(ran); err = f() }:
		<-ran // Starting a process blocks no longer than the kernel does.
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-l.quit:
		return plugins.ErrClosed
	}
}

// Close removes the directory. All processes must have ended, and no launch may be
// under way. It may be called again.
func (l *Launcher) Close() error {
	var err error
	l.once.Do(func() {
		close(l.quit)
		<-l.done
		err = l.dir.remove()
	})
	return err
}
