// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/plugins/internal/strays"
)

const (
	directoryPrefix = "quorate-"
	// abandonedAfter is the age below which an unlocked directory may be one that its
	// host is just making.
	abandonedAfter = time.Minute
	// maxSocketPath is the longest path that a socket can have on every system,
	// and maxSocketName the longest name that go-plugin gives one.
	maxSocketPath = 103
	maxSocketName = len("plugin") + 10
)

// directory is a private directory of this host, with mode 0700. It is open and locked
// for as long as the host lives, however the host may die. Programs that clean temporary
// directories by age leave locked ones alone too, at least that of systemd.
type directory struct {
	path string
	lock *os.File
}

func newDirectory(base string) (*directory, error) {
	if base == "" {
		base = os.TempDir()
	}
	base, err := filepath.Abs(base)
	if err != nil {
		return nil, err
	}
	sweep(base)
	path, err := os.MkdirTemp(base, directoryPrefix)
	if err != nil {
		return nil, err
	}
	lock, err := os.Open(path)
	if err == nil && !tryLock(lock) {
		err = fmt.Errorf("%s is locked by somebody else", lock.Name())
	}
	d := &directory{path: path, lock: lock}
	if most := len(d.socketDir(1<<16)) + 1 + maxSocketName; err == nil && most > maxSocketPath {
		err = fmt.Errorf("%s is too long for sockets, whose paths can have %d bytes: choose a directory with a shorter name", base, maxSocketPath)
	}
	if err != nil {
		_ = d.remove() // The first error says more.
		return nil, err
	}
	return d, nil
}

// socketDir is the directory for the sockets of one launch.
func (d *directory) socketDir(launch uint64) string {
	return filepath.Join(d.path, "s"+strconv.FormatUint(launch, 10))
}

// binaryDir is the directory for one copy of a binary.
func (d *directory) binaryDir(n uint64) string {
	return filepath.Join(d.path, "b"+strconv.FormatUint(n, 10))
}

// admit lets another user run a copy, and make a socket in a directory for sockets. That user
// can pass through the directory of the host, and see nothing else in it.
func (d *directory) admit(as *identity, b *Binary, socketDir string) error {
	return errors.Join(
		os.Chmod(d.path, 0o711), os.Chmod(filepath.Dir(b.path), 0o711), os.Chmod(b.path, 0o555), as.own(socketDir),
	)
}

func (d *directory) remove() error {
	if d.lock != nil {
		_ = d.lock.Close() // The lock was only open.
	}
	return os.RemoveAll(d.path)
}

// sweep removes the directories of hosts that have died, and ends the processes that
// their plugins left. It leaves alone what it cannot remove or cannot identify.
func sweep(base string) {
	entries, err := os.ReadDir(base)
	if err != nil {
		return
	}
	for _, e := range entries {
		digits, ours := strings.CutPrefix(e.Name(), directoryPrefix)
		if _, err := strconv.ParseUint(digits, 10, 64); !ours || err != nil || !e.IsDir() {
			continue
		}
		path := filepath.Join(base, e.Name())
		if info, err := os.Lstat(path); err == nil && info.IsDir() && ownedByUs(info) && abandoned(path, info) {
			strays.Kill(socketDirVariable, path)
			_ = os.RemoveAll(path)
		}
	}
}

// abandoned reports whether the host of a directory has died.
func abandoned(path string, info os.FileInfo) bool {
	lock, err := os.Open(path)
	if err != nil {
		return false
	}
	defer lock.Close() //nolint:errcheck // The lock was only open.
	return time.Since(info.ModTime()) > abandonedAfter && tryLock(lock)
}
