// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// settleAfter is how long the files must be left alone before they are read:
	// whoever changes several of them, or writes one in pieces, is given time.
	settleAfter = 250 * time.Millisecond
	// settleMost is for how long that can put off the reading.
	settleMost = 10 * settleAfter
	// pollInterval is how often the files are looked at although nobody reported a
	// change: file systems over a network report none, and a queue of reports can
	// overflow.
	pollInterval = 10 * time.Second
	// linksMost bounds how many symbolic links after another are followed.
	linksMost = 16
)

// A Watcher follows the files of a configuration. Create it with [File.Watch].
type Watcher struct {
	notify  func(*File, error)
	file    *File  // The last that was read without fault.
	last    string // What was reported last: the digest of a File, or the text of an error.
	events  *fsnotify.Watcher
	watched []string // The directories that report changes.
	poll    time.Duration
	cancel  context.CancelFunc
	done    sync.WaitGroup
}

// Watch reports each change of the files that f was read from, and of those that
// they include, from what f holds on. A change is another content: files that
// were written anew with the same content are none.
//
// Notify is called with what [File.Reload] would return: the new File, or an
// error, such as that of a half-written file; the next good content is then
// reported again, also if it is that of before. Calls are made one after another
// by a goroutine of the Watcher, at the earliest a quarter of a second after the
// last write, so that a storm of writes is one call; while writing does not end,
// every two and a half seconds. Files replaced by renaming and through symbolic
// links (as Kubernetes does with mounted directories) are followed. Where the
// file system reports no changes, the files are looked at every ten seconds.
//
// The files are read again and again until two readings agree with nothing
// written in between, so that a change in the midst of a reading does not give
// halves of two. A file that is written in place with pauses can still be read
// half; replace it by renaming instead.
//
// The Watcher must be closed. A File that [Parse] returned has no files, and
// cannot be watched.
func (f *File) Watch(notify func(*File, error)) (*Watcher, error) {
	if len(f.named) == 0 {
		return nil, Errors{{Reason: "only files can be watched", Err: ErrRead}}
	}
	events, err := fsnotify.NewWatcher()
	if err != nil {
		events = nil // The system has no more of them. The files are looked at from time to time.
	}
	return watch(f, notify, events, pollInterval), nil
}

// watch starts a watcher. Events may be nil.
func watch(f *File, notify func(*File, error), events *fsnotify.Watcher, poll time.Duration) *Watcher {
	w := &Watcher{notify: notify, file: f, last: digest(f, nil), events: events, poll: poll}
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	w.follow(f.files) // Before the first look, so that no change falls in between.
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
		defer w.events.Close() //nolint:errcheck // Nothing is lost that anybody waits for.
		changed, failed = w.events.Events, w.events.Errors
	}
	poll := time.NewTicker(w.poll)
	defer poll.Stop()
	w.look(ctx, changed) // What happened between the reading and the watching.
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-failed: //nolint:errcheck // Reports were lost, perhaps; which ones is no matter.
		case <-poll.C:
		}
		w.look(ctx, changed)
	}
}

// settle waits until nothing is reported for a while.
func settle(ctx context.Context, changed <-chan fsnotify.Event) {
	most := time.NewTimer(settleMost)
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

// look reads the files, and reports them if they differ from what was reported
// last, and if they are the same after a while, in which nobody may be writing.
func (w *Watcher) look(ctx context.Context, changed <-chan fsnotify.Event) {
	before := w.last
	for ctx.Err() == nil {
		file, err := w.file.loader.load(w.file.named)
		found := digest(file, err)
		w.follow(file.files)
		switch {
		case found == w.last:
			return
		case found != before:
			before = found
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

// digest tells what was read apart from everything else.
func digest(file *File, err error) string {
	if err != nil {
		return "error: " + err.Error()
	}
	return string(file.sum[:])
}

// follow watches the directories of files. Directories are watched and not
// files: a file that is replaced by renaming is another one, and its watch would
// go with the old one.
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
		// Adding one again renews it: a directory that was replaced by another of
		// the same name has lost its watch. What cannot be watched is looked at from
		// time to time.
		if w.events.Add(dir) == nil {
			w.watched = append(w.watched, dir)
		}
	}
}

// directories returns the directory of a file and, if it is a symbolic link, those
// of what it leads to.
func directories(file string) []string {
	dirs := []string{filepath.Dir(file)}
	for range linksMost {
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
