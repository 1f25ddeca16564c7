// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"crypto/sha256"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/knadh/koanf/v2"
)

// Watching: a Watcher has the directories of all files watched for changes, and the
// providers that can be, and also polls. After a change it waits until writing pauses,
// reads everything, and reads again until two readings agree; only then it reports (look).

const (
	// settleAfter is how long the files must be unchanged before they are read, so
	// that a program that changes several of them, or writes one in pieces, can
	// finish.
	settleAfter = 250 * time.Millisecond
	// maxSettle is the longest time by which reading is delayed in that way.
	maxSettle = 10 * settleAfter
	// pollInterval is how often the files are read although no change was reported:
	// network file systems report none, and a queue of reports can overflow.
	pollInterval = 10 * time.Second
	// maxLinks bounds how many symbolic links are followed from one file.
	maxLinks = 16
)

// A Watcher follows the files of a configuration. Create it with [File.Watch].
type Watcher struct {
	notify  func(*File, error)
	file    *File  // The last File that was read without a fault.
	last    string // The last report: the digest of a File, or the text of an error.
	events  *fsnotify.Watcher
	watched []string // The directories that report changes.
	poll    time.Duration
	reports chan struct{} // A provider has reported a change; holds one.
	cancel  context.CancelFunc
	done    sync.WaitGroup
}

// Watch reports each change of the files that f was read from, of the files that
// they include, and of the providers, compared with the content of f. A change is a
// different content: files that are written anew with the same content are no change.
//
// Notify is called with the results of [File.Reload]: the new File, or an error, such
// as that of a half-written file; the next good content is then reported again, even
// if it is the content before the error. Calls are made one after another by a
// goroutine of the Watcher, at the earliest a quarter of a second after the last
// write, so that a burst of writes is one call; while writing does not end, every two
// and a half seconds. Files replaced by renaming and through symbolic links (as
// Kubernetes does with mounted directories) are followed. Where the file system
// reports no changes, the files are read every ten seconds. So are providers, but for
// those that have a method Watch to report changes, as koanf's provider of files has,
// and Unwatch to end that: these are read at once too.
//
// A provider that does not answer any more is such an error. What was read before stays
// in force, until it answers again.
//
// The files are read again until two readings agree with no write in between, so that
// a change during a reading does not mix two contents. A file that is written in place
// with pauses can still be read half; replace it by renaming instead.
//
// The Watcher must be closed. A File that [Parse] returned has no files, and cannot be
// watched.
func (f *File) Watch(notify func(*File, error)) (*Watcher, error) {
	if f.from == nil {
		return nil, Errors{{Reason: "only files and providers can be watched", Err: ErrRead}}
	}
	events, err := fsnotify.NewWatcher()
	if err != nil {
		events = nil // The system has no more watches. The files are polled instead.
	}
	return watch(f, notify, events, pollInterval), nil
}

// watchable is a provider that reports changes until it is told to end that.
type watchable interface {
	Watch(report func(event any, err error)) error
	Unwatch() error
}

// watch starts a watcher. Without events it only polls.
func watch(f *File, notify func(*File, error), events *fsnotify.Watcher, poll time.Duration) *Watcher {
	w := &Watcher{notify: notify, file: f, last: digest(f, nil), events: events, poll: poll, reports: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	w.follow(f.files) // Before the first look, so that no change in between is missed.
	// Owned by the watcher: Close ends it, and waits.
	w.done.Go(func() { w.run(ctx) })
	return w
}

// Close ends the watching. When it returns, no call of notify is running, and
// none will be made; it must not be called by notify. It may be called again.
func (w *Watcher) Close() error {
	w.cancel()
	w.done.Wait()
	return nil
}

// run waits for changes until ctx ends.
func (w *Watcher) run(ctx context.Context) {
	var changed <-chan fsnotify.Event
	var failed <-chan error
	if w.events != nil {
		defer w.events.Close() //nolint:errcheck // Nothing that is still needed is lost.
		changed, failed = w.events.Events, w.events.Errors
	}
	defer w.watchProviders()()
	poll := time.NewTicker(w.poll)
	defer poll.Stop()
	w.look(ctx, changed) // For changes between the reading of f and the watching.
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-failed: //nolint:errcheck // Reports may be lost; all files are read anyway.
		case <-w.reports:
		case <-poll.C:
		}
		w.look(ctx, changed)
	}
}

// watchProviders has the providers that can report changes do so. The result ends that.
func (w *Watcher) watchProviders() (end func()) {
	var watched []watchable
	for _, l := range w.file.from.readers {
		source := l.Source
		if of, ok := source.(interface{ inner() koanf.Provider }); ok {
			source = of.inner()
		}
		if p, ok := source.(watchable); ok && p.Watch(w.report) == nil {
			watched = append(watched, p)
		} // Another one is polled.
	}
	return func() {
		for _, p := range watched {
			_ = p.Unwatch() // Nothing listens any more.
		}
	}
}

// report has everything read. Providers call it from goroutines of theirs.
func (w *Watcher) report(any, error) {
	select {
	case w.reports <- struct{}{}:
	default:
	}
}

// settle waits until no change is reported for settleAfter, for at most maxSettle.
func settle(ctx context.Context, changed <-chan fsnotify.Event) {
	most := time.NewTimer(maxSettle)
	defer most.Stop()
	quiet := time.NewTimer(settleAfter)
	defer quiet.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-most.C:
			return
		case <-quiet.C:
			return
		case <-changed:
			quiet.Reset(settleAfter)
		}
	}
}

// look reads everything, and reports it if it differs from the last report and the files are
// still the same after settling, when no program is likely to be writing. An answer of a
// provider is a whole: what it says now counts, however often that changes.
func (w *Watcher) look(ctx context.Context, changed <-chan fsnotify.Event) {
	settled := false
	var before [sha256.Size]byte
	for ctx.Err() == nil {
		file, err := w.file.from.load(ctx)
		if ctx.Err() != nil {
			return // What came of it may be the end alone.
		}
		found := digest(file, err)
		w.follow(file.files)
		switch {
		case found == w.last:
			return
		case !settled || file.written != before:
			settled, before = true, file.written
			settle(ctx, changed)
			continue
		case err != nil:
			w.notify(nil, err)
		default:
			w.file = file
			w.notify(file, nil)
		}
		w.last = found
	}
}

// digest returns a text that is equal for equal results of reading.
func digest(file *File, err error) string {
	if err != nil {
		return "error: " + err.Error()
	}
	return string(file.sum[:])
}

// follow watches the directories of files. Directories are watched in place of files:
// a file that replaces another by renaming is a new file, and the watch of the old one
// would end with it.
func (w *Watcher) follow(files []string) {
	if w.events == nil {
		return
	}
	var wanted []string
	for _, file := range files {
		for _, dir := range directories(file) {
			if !slices.Contains(wanted, dir) {
				wanted = append(wanted, dir)
			}
		}
	}
	for _, dir := range w.watched {
		if !slices.Contains(wanted, dir) {
			_ = w.events.Remove(dir) // It may be gone already.
		}
	}
	w.watched = w.watched[:0]
	for _, dir := range wanted {
		// Adding a directory again renews its watch, which is lost when the directory is
		// replaced by another of the same name. A directory that cannot be watched is
		// polled.
		if w.events.Add(dir) == nil {
			w.watched = append(w.watched, dir)
		}
	}
}

// directories returns the directory of a file and, if the file is a symbolic link, the
// directories of its targets.
func directories(file string) []string {
	dirs := []string{filepath.Dir(file)}
	for range maxLinks {
		target, err := os.Readlink(file)
		if err != nil {
			break
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(file), target)
		}
		file = target
		dirs = append(dirs, filepath.Dir(file))
	}
	return dirs
}
