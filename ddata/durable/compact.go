// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package durable

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/quorate/quorate/ddata/store"
)

// A log that is full is replaced by a new one ([Store.room], [Store.rotate]); its table
// is frozen, and the goroutine of the [worker] writes the table into a run
// ([Store.flush]), and merges runs so that each is at least twice as large as all newer
// ones together ([Store.merge]): there are few of them, and a record is written again
// only a logarithmic number of times. Applying goes on meanwhile, until the next log
// has become several times as large as a full one.

// worker is the goroutine in the background.
type worker struct {
	wake   chan struct{} // One that is waiting is enough.
	cancel context.CancelFunc
	done   chan struct{}

	mu    sync.Mutex    // Guards what follows.
	ended chan struct{} // Closed when a flush has ended, and then replaced.
	err   error         // The error of the last flush.
}

// start begins the goroutine, which stop ends and waits for. Without it, as in tests that
// decide when something is done, nothing happens in the background.
func (w *worker) start(s *Store) {
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel, w.done = cancel, make(chan struct{})
	// Started by Open; ended and waited for by Close.
	go func() {
		defer close(w.done)
		for {
			select {
			case <-w.wake:
				s.tidy(ctx)
			case <-ctx.Done():
				return
			}
		}
	}()
}

func (w *worker) stop() {
	if w.cancel != nil {
		w.cancel()
		<-w.done
	}
}

// nudge wakes the goroutine, which looks whether there is something to do.
func (w *worker) nudge() {
	select {
	case w.wake <- struct{}{}:
	default: // It looks anyway.
	}
}

// flushed tells those who wait that a flush has ended.
func (w *worker) flushed(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
	close(w.ended)
	w.ended = make(chan struct{})
}

// outcome returns a channel that is closed when the next flush ends, and the error of the last one.
func (w *worker) outcome() (next <-chan struct{}, last error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ended, w.err
}

// room returns when the log may grow: it is not full; or it was replaced by a new one; or the log before it is not
// written into a run yet, and this one has not become too large meanwhile.
func (s *Store) room(ctx context.Context) error {
	for {
		s.mu.Lock()
		failed, frozen := s.failed, s.frozen != nil
		s.mu.Unlock()
		size := s.log.synced.end
		switch {
		case failed != nil:
			return failed
		case size < s.config.LogBytes:
			return nil
		case !frozen:
			err := s.rotate()
			if errors.Is(err, store.ErrFull) && size < overLogs*s.config.LogBytes {
				return nil // There may be room in the log that is there.
			}
			return err
		}
		next, last := s.worker.outcome()
		if last != nil && size >= s.retry {
			s.worker.nudge()
			s.retry = size + s.config.LogBytes/overLogs // Not at each Apply: a flush that fails has written much.
		}
		if size < overLogs*s.config.LogBytes {
			return nil
		}
		if last != nil {
			s.worker.nudge()
			return last
		}
		select {
		case <-next:
		case <-ctx.Done():
			return ctx.Err()
		case <-s.closing:
			return closed(s.config.Dir)
		}
	}
}

// rotate begins a new log, and has the goroutine write the old one into a run.
func (s *Store) rotate() error {
	if err := s.newLog(); err != nil {
		return err
	}
	s.mu.Lock()
	s.frozen, s.active = s.active, table{}
	s.mu.Unlock()
	s.worker.nudge()
	return nil
}

// tidy writes the frozen table into a run, and merges runs. Apply returns an error of that only if it cannot go on
// without; damage it returns at once.
func (s *Store) tidy(ctx context.Context) {
	s.mu.Lock()
	frozen, failed := s.frozen != nil, s.failed
	s.mu.Unlock()
	if failed != nil {
		return
	}
	if frozen {
		err := s.damaged(s.flush(ctx))
		s.worker.flushed(err)
		if err != nil {
			return
		}
	}
	for ctx.Err() == nil {
		more, err := s.merge(ctx)
		if s.damaged(err) != nil || !more {
			return
		}
	}
}

// damaged makes all further writes fail if an error is about damage: a store that has lost something must not go on as
// if it had not.
func (s *Store) damaged(err error) error {
	if errors.Is(err, store.ErrCorrupt) {
		s.fail(err)
	}
	return err
}

// flush writes the frozen table into a run, and removes the logs that it was read from.
func (s *Store) flush(ctx context.Context) error {
	s.mu.Lock()
	frozen, oldest := s.frozen, len(s.runs) == 0
	logs := slices.Clone(s.manifest.logs[:len(s.manifest.logs)-1])
	s.mu.Unlock()
	head := fileHead{from: logs[0].number, to: logs[len(logs)-1].number}
	made, err := s.makeRun(ctx, head, []source{frozen}, oldest)
	if err != nil {
		return err
	}
	err = s.install(made, nil, func(m *manifest) { m.logs = slices.Clone(m.logs[len(logs):]) }, func() { s.frozen = nil })
	if err != nil {
		return err
	}
	for _, l := range logs {
		_ = s.files.Remove(l.name()) // The next start removes what stays.
	}
	return nil
}

// merge merges the newest runs, if the oldest of them is less than twice as large as the
// others together.
func (s *Store) merge(ctx context.Context) (more bool, err error) {
	s.mu.Lock()
	count, sum := 0, int64(0)
	for i, r := range slices.Backward(s.runs) {
		if sum > 0 && r.named.size < 2*sum {
			count = len(s.runs) - i
		}
		sum += r.named.size
	}
	merged, oldest := slices.Clone(s.runs[len(s.runs)-count:]), count == len(s.runs)
	s.mu.Unlock()
	if count == 0 {
		return false, nil
	}
	var sources []source
	for _, r := range slices.Backward(merged) {
		sources = append(sources, r)
	}
	head := fileHead{from: merged[0].head.from, to: merged[count-1].head.to}
	made, err := s.makeRun(ctx, head, sources, oldest)
	if err != nil {
		return false, err
	}
	if err := s.install(made, merged, func(*manifest) {}, func() {}); err != nil {
		return false, err
	}
	for _, r := range merged {
		r.release()
		_ = s.files.Remove(r.named.name()) // The next start removes what stays.
	}
	return true, nil
}

// makeRun writes and opens a run that the manifest does not name yet.
func (s *Store) makeRun(ctx context.Context, head fileHead, sources []source, oldest bool) (*run, error) {
	head.number, head.tag, head.cluster = s.number(), draw(), s.config.Cluster
	name := runFile{number: head.number}.name()
	named, err := writeRun(ctx, s.files, runSpec{name: name, head: head, sources: sources, groups: allNames(sources), oldest: oldest})
	if err != nil {
		if fault := new(store.Error); !errors.As(err, &fault) && ctx.Err() == nil {
			err = ioFault(s.files.Path(name), err)
		}
		return nil, err
	}
	return openRun(s.files, named, nil)
}

// install puts a run in the place of others, the newest, in the manifest and in memory.
func (s *Store) install(made *run, instead []*run, edit func(*manifest), after func()) error {
	err := s.change(func(m *manifest) {
		m.runs = append(m.runs[:len(m.runs)-len(instead)], made.named)
		edit(m)
	})
	if err != nil {
		made.release()
		if !errors.Is(err, errUnknown) {
			_ = s.files.Remove(made.named.name()) // The next start removes it otherwise.
		}
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs = append(slices.Clone(s.runs[:len(s.runs)-len(instead)]), made)
	after()
	return nil
}
