// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package durable

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"

	"github.com/quorate/quorate/ddata/durable/internal/disk"
	"github.com/quorate/quorate/ddata/store"
	"github.com/quorate/quorate/machine/directory"
)

// A store is opened ([Open]): lock, manifest, runs, logs, and then a new log and a
// manifest that names it. [Store.Apply] writes to the log, syncs it, and changes the
// table. A full log is replaced ([Store.rotate]); what it holds is sorted into a run in
// the background, see compact.go. [Store.Load] merges table and runs.

const (
	// chunkBytes is after how many bytes the batches of one Apply are synced, so that no
	// buffer grows with their number.
	chunkBytes = 4 << 20
	// maxBatch is the size of the largest batch.
	maxBatch = maxPayload / 2
	// overLogs is how many times the size of a full log the log may get while the one before
	// cannot be sorted away: more would be memory without bound.
	overLogs = 4
	// asidePrefix begins the names of copies of wiped groups. Nothing loads them.
	asidePrefix = "aside-"
)

// Store keeps records in a directory. Open one with [Open]; it is safe for concurrent use.
type Store struct {
	config  Config
	files   disk.Files
	lock    io.Closer
	closing chan struct{} // Closed by Close, which ends all waiting.
	calls   sync.WaitGroup
	worker  worker

	// writing holds a token while nobody applies: whoever takes it may use log and retry.
	writing chan struct{}
	log     *logWriter
	retry   int64 // The size of log at which a flush that has failed is tried again.

	// changing guards the manifest on disk. It is taken before mu.
	changing sync.Mutex

	mu       sync.Mutex // Guards what follows, and is not held over input or output.
	manifest manifest   // as on disk
	next     uint64     // the number of the next file
	active   table      // what log holds
	frozen   table      // what the logs before it hold; nil if they hold nothing
	runs     []*run     // the oldest first
	asides   []uint64   // the numbers of the files that were put aside
	failed   error      // Why nothing is written any more; nil: the store works.
	closed   bool
}

var _ store.Store = (*Store)(nil)

// OpenIn opens the store in a directory with default settings. It is for the option by which a node gets a store:
// cluster.WithStore(durable.OpenIn).
func OpenIn(ctx context.Context, dir, cluster string) (store.Store, error) {
	config := Default()
	config.Dir, config.Cluster = dir, cluster
	s, err := Open(ctx, config)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Open opens the store in a directory, and makes it if it is not there. The error is a
// [store.Error], or that of the context or of Validate.
func Open(ctx context.Context, config Config) (*Store, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("durable: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	lock, err := take(config.Dir, true)
	if err != nil {
		return nil, err
	}
	s, err := open(config, disk.At(config.Dir), lock)
	if err != nil {
		return nil, err
	}
	s.worker.start(s)
	return s, nil
}

// take locks a directory. With makes, it makes the directory if there is none.
func take(path string, makes bool) (io.Closer, error) {
	dir := disk.At(path)
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.IsDir():
		return nil, &store.Error{File: path, Problem: "it is no directory", Remedy: "name a directory for the data of this node alone"}
	case err != nil && !makes:
		return nil, &store.Error{File: path, Cause: errors.Unwrap(err), Remedy: "name the directory of a store"}
	case makes:
		if err := dir.Make(); err != nil {
			return nil, ioFault(path, err)
		}
	}
	lock, err := dir.Lock()
	if errors.Is(err, directory.ErrInUse) {
		return nil, &store.Error{Kind: store.ErrInUse, File: path, Remedy: "stop the node that has it, or give each node a directory of its own"}
	}
	if err != nil {
		return nil, ioFault(dir.Path("lock"), err)
	}
	return lock, nil
}

// open opens the store in a directory that is locked, without the goroutine in the background. The lock is released
// when the store is closed, or when open returns an error.
func open(config Config, files disk.Files, lock io.Closer) (*Store, error) {
	v, err := readView(files, nil)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	s := &Store{
		config: config, files: files, lock: lock, closing: make(chan struct{}), writing: make(chan struct{}, 1),
		next: v.next, asides: v.asides, active: table{}, frozen: v.logs, runs: v.runs,
		worker: worker{wake: make(chan struct{}, 1), ended: make(chan struct{})},
	}
	if err := s.start(v); err != nil {
		v.close()
		return nil, errors.Join(err, lock.Close())
	}
	s.writing <- struct{}{}
	return s, nil
}

// start counts this start in the manifest, and begins a log.
func (s *Store) start(v *view) error {
	m := manifest{cluster: s.config.Cluster, id: draw()}
	if v.manifest != nil {
		m = *v.manifest
	}
	if m.cluster != s.config.Cluster {
		return &store.Error{
			Kind: store.ErrCluster, File: s.files.Path(manifestName), Remedy: "give each cluster a directory of its own",
			Problem: fmt.Sprintf("it is of cluster %q, this node is of cluster %q", m.cluster, s.config.Cluster),
		}
	}
	if v.manifest == nil {
		// Before there is any other file: files without a manifest are damage.
		if err := m.write(s.files); err != nil {
			return ioFault(s.files.Path(manifestName), err)
		}
	}
	m.starts++
	m.logs = nil
	if err := s.keepLogs(v, &m); err != nil {
		return err
	}
	s.manifest = m
	if err := s.newLog(); err != nil {
		return err
	}
	if len(s.frozen) == 0 {
		s.frozen = nil
	} else {
		s.worker.nudge()
	}
	s.sweep()
	return nil
}

// keepLogs seals the logs that hold something.
func (s *Store) keepLogs(v *view, m *manifest) error {
	for i, end := range v.ends {
		l := v.manifest.logs[i]
		if end == logHead {
			continue
		}
		if l.end == 0 {
			// The process may have died between writing and syncing: what was read is
			// not on the disk yet, and from now on the manifest says that it is.
			if err := s.files.Flush(l.name()); err != nil {
				return ioFault(s.files.Path(l.name()), err)
			}
		}
		l.end = end
		m.logs = append(m.logs, l)
	}
	return nil
}

// sweep removes logs and runs that the manifest does not name. A crash between the
// manifest and their removal has left them.
func (s *Store) sweep() {
	names, err := s.files.List()
	if err != nil {
		return // The files only take space, and the next start tries again.
	}
	named := map[string]bool{}
	for _, r := range s.manifest.runs {
		named[r.name()] = true
	}
	for _, l := range s.manifest.logs {
		named[l.name()] = true
	}
	for _, name := range names {
		if ofStore(name) && !named[name] {
			_ = s.files.Remove(name) // As above.
		}
	}
}

// number returns a number that no file has.
func (s *Store) number() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.next
	s.next++
	return n
}

// change replaces the manifest. After an error that wraps errUnknown the store has failed.
func (s *Store) change(edit func(*manifest)) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	s.mu.Lock()
	m := s.manifest
	m.runs, m.logs, m.next = slices.Clone(m.runs), slices.Clone(m.logs), s.next
	failed := s.failed
	s.mu.Unlock()
	if failed != nil {
		return failed
	}
	edit(&m)
	if err := m.write(s.files); err != nil {
		fault := ioFault(s.files.Path(manifestName), err)
		if errors.Is(err, errUnknown) {
			s.fail(fault)
		}
		return fault
	}
	s.mu.Lock()
	s.manifest = m
	s.mu.Unlock()
	return nil
}

// fail makes all further writes return an error.
func (s *Store) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil {
		s.failed = err
	}
}

// newLog begins a log, which the manifest on disk names when newLog returns nil. The log
// before it is sealed where it ends.
func (s *Store) newLog() error {
	l := logFile{number: s.number(), tag: draw()}
	w, err := createLog(s.files, l, s.config.Cluster)
	if err != nil {
		return ioFault(s.files.Path(l.name()), err)
	}
	err = s.change(func(m *manifest) {
		if s.log != nil {
			m.logs[len(m.logs)-1].end = s.log.synced.end
		}
		m.logs = append(m.logs, l)
	})
	if err != nil {
		err = errors.Join(err, w.file.Close())
		if !errors.Is(err, errUnknown) {
			err = errors.Join(err, s.files.Remove(l.name()))
		}
		return err
	}
	if s.log != nil {
		_ = s.log.file.Close() // All that the manifest says of it is synced.
	}
	s.log, s.retry = w, 0
	return nil
}

// ID returns the id of the store.
func (s *Store) ID() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.manifest.id
}

// Starts returns how often the store was opened.
func (s *Store) Starts() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.manifest.starts
}

// begin counts a call, which has to end with s.calls.Done.
func (s *Store) begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return closed(s.config.Dir)
	}
	s.calls.Add(1)
	return nil
}

// sources returns the frozen table and the runs, the newest first, and a function that releases the runs. The active
// table is not among them: it changes, and is read under s.mu.
func (s *Store) sources() (older []source, release func()) {
	if s.frozen != nil {
		older = append(older, s.frozen)
	}
	var used []*run
	for _, r := range slices.Backward(s.runs) {
		used = append(used, r.use())
		older = append(older, r)
	}
	return older, func() {
		for _, r := range used {
			r.release()
		}
	}
}

// Groups lists the groups.
func (s *Store) Groups() []string {
	s.mu.Lock()
	older, release := s.sources()
	names := allNames(append(older, s.active))
	s.mu.Unlock()
	release()
	return names
}

// snapshot is a copy of one group of the active table.
type snapshot struct {
	tableGroup

	items []item
	there bool
}

func (s *snapshot) names() []string { return nil }

func (s *snapshot) open(string, *losses) (section, bool, error) {
	return section{wiped: s.wiped, meta: s.meta, stream: &tableStream{items: s.items}}, s.there, nil
}

// group returns the sources of a group as it is now, and a function that releases the runs.
func (s *Store) group(name string) (sources []source, release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := new(snapshot)
	if g := s.active[name]; g != nil {
		*now = snapshot{tableGroup: tableGroup{wiped: g.wiped, meta: g.meta}, items: g.items(), there: true}
	}
	older, release := s.sources()
	return append([]source{now}, older...), release
}

// Load reads a group, see [store.Store].
func (s *Store) Load(ctx context.Context, name string, meta func([]byte) error, record func(store.Record) error) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	sources, release := s.group(name)
	defer release()
	g, found, err := openGroup(sources, name, nil)
	if err != nil || !found {
		return err
	}
	if g.meta != nil {
		if err := meta(g.meta); err != nil {
			return err
		}
	}
	for {
		i, ok, err := g.next()
		if err != nil || !ok {
			return err
		}
		if i.dropped {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := record(store.Record{Key: i.key, Value: i.value}); err != nil {
			return err
		}
	}
}

// Apply applies batches, see [store.Store].
func (s *Store) Apply(ctx context.Context, batches []store.Batch) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	for _, b := range batches {
		if n := size(b); n > maxBatch {
			return fmt.Errorf("%s: %w: %d bytes of at most %d, group %q", s.config.Dir, store.ErrTooLarge, n, maxBatch, b.Group)
		}
	}
	select {
	case <-s.writing:
		defer func() { s.writing <- struct{}{} }()
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closing:
		return closed(s.config.Dir)
	}
	for len(batches) > 0 {
		if err := s.room(ctx); err != nil {
			return err
		}
		n, err := s.chunk(ctx, batches)
		if err != nil {
			return err
		}
		batches = batches[n:]
	}
	return nil
}

// chunk applies the first batches, as many as one sync takes, and returns how many.
func (s *Store) chunk(ctx context.Context, batches []store.Batch) (n int, err error) {
	b := begin(nil)
	for _, batch := range batches {
		if batch.Wipe && batch.Aside {
			if n > 0 {
				break // A copy that is put aside contains what was applied before.
			}
			if err := s.aside(ctx, batch.Group); err != nil {
				return 0, err
			}
		}
		if n > 0 && int64(len(b))+size(batch) > chunkBytes {
			break
		}
		b = appendBatch(b, batch)
		n++
	}
	if err := s.log.append(b); err != nil {
		fault := ioFault(s.files.Path(s.logName()), err)
		if errors.Is(err, errBroken) || !errors.Is(fault, store.ErrFull) {
			s.fail(fault)
		}
		return 0, fault
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return n, s.active.apply(b[headBytes:])
}

// logName returns the name of the log that is written.
func (s *Store) logName() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.manifest.logs[len(s.manifest.logs)-1].name()
}

// aside copies a group into a file that nothing loads, if there is anything in it.
func (s *Store) aside(ctx context.Context, name string) error {
	sources, release := s.group(name)
	defer release()
	if g, found, err := openGroup(sources, name, nil); err != nil || !found {
		return err
	} else if _, some, err := g.next(); err != nil || !some {
		return err
	}
	n := s.number()
	file := asideName(n)
	_, err := writeRun(ctx, s.files, runSpec{
		name: file, head: fileHead{number: n, tag: draw(), cluster: s.config.Cluster}, sources: sources, groups: []string{name}, oldest: true,
	})
	switch {
	case err == nil:
		s.mu.Lock()
		s.asides = append(s.asides, n)
		s.mu.Unlock()
	case !errors.Is(err, ctx.Err()):
		err = ioFault(s.files.Path(file), err)
	}
	return err
}

// Asides lists the files with copies that were put aside, also before this start, see [store.Store].
func (s *Store) Asides() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	paths := make([]string, 0, len(s.asides))
	for _, n := range s.asides {
		paths = append(paths, s.files.Path(asideName(n)))
	}
	return paths
}

// asideName is the name of the file with a number.
func asideName(n uint64) string { return fmt.Sprintf("%s%d", asidePrefix, n) }

// NewID draws a new ID, see [store.Store].
func (s *Store) NewID(ctx context.Context) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	return s.change(func(m *manifest) { m.id = draw() })
}

// Close waits for calls that run, ends the work in the background, and gives the
// directory back. It may be called again.
func (s *Store) Close() error {
	s.mu.Lock()
	again := s.closed
	s.closed = true
	s.mu.Unlock()
	if again {
		return nil
	}
	close(s.closing)
	s.calls.Wait()
	s.worker.stop()
	err := s.log.close()
	for _, r := range s.runs {
		r.release()
	}
	if err != nil {
		err = ioFault(s.config.Dir, err)
	}
	return errors.Join(err, s.lock.Close())
}

// Dir returns the directory of the store.
func (s *Store) Dir() string { return s.config.Dir }
