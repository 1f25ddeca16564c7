// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
)

// Launcher starts processes. It owns a directory for copies and sockets.
type Launcher struct {
	dir   *directory
	log   *slog.Logger
	await func(*os.Process) bool // Is awaitEnd, except in tests.

	copies   binaries
	launches atomic.Uint64

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
	return &Launcher{dir: dir, log: log, await: awaitEnd}, nil
}

// Close removes the directory. All processes must have ended, and no launch may be
// under way. It may be called again.
func (l *Launcher) Close() error {
	var err error
	l.once.Do(func() { err = l.dir.remove() })
	return err
}
