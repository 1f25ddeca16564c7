// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
)

// A [Memory] is the disk: it outlives the stores that are opened on it ([Memory.Open]),
// each of which ends with Close or with [Memory.Crash]. What the disk does wrong is set
// with [Memory.SetFaults]; an older content comes back with [Memory.Restore].

// Memory is a disk in memory, for tests. Make one with [NewMemory]; it is safe for
// concurrent use.
type Memory struct {
	mu     sync.Mutex // Guards what follows.
	ids    rand.Source
	image  Image
	faults Faults
	opened *memoryStore // Nil while no store is open.
}

// Image is what a disk in memory holds at one moment. The zero Image is an empty disk.
type Image struct {
	id, starts uint64
	cluster    string
	groups     map[string]*group
	asides     []map[string][]byte
}

type group struct {
	meta    []byte
	records map[string][]byte
}

// Faults are what a disk in memory does wrong. The zero Faults are a disk that works.
type Faults struct {
	// Wait is called before each Load, Apply and NewID with the name of the operation
	// and may block: a slow disk. Its error is returned in place of the operation. Nil
	// does not wait.
	Wait func(ctx context.Context, operation string) error
	// Full lets every batch that writes something fail with [ErrFull].
	Full bool
	// Torn lets the next Apply fail after that many of its batches; then the store refuses
	// all operations, as after the death of a process, until it is opened again. Zero tears
	// nothing; a negative number tears before the first batch.
	Torn int
	// Corrupt is a group whose Load fails with [ErrCorrupt] after half of its records.
	Corrupt string
}

// NewMemory returns an empty disk that draws its IDs from a source.
func NewMemory(ids rand.Source) *Memory { return &Memory{ids: ids} }

// SetFaults replaces what the disk does wrong from now on.
func (m *Memory) SetFaults(f Faults) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults = f
}

// Open opens the store on the disk for a cluster.
func (m *Memory) Open(cluster string) (Store, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.opened != nil:
		return nil, &Error{Kind: ErrInUse, File: "memory", Remedy: "close it first"}
	case m.image.id == 0:
		m.image = Image{id: m.draw(), cluster: cluster, groups: map[string]*group{}}
	case m.image.cluster != cluster:
		return nil, &Error{
			Kind: ErrCluster, File: "memory", Remedy: "give each cluster a disk of its own",
			Problem: fmt.Sprintf("it is of cluster %q, opened for %q", m.image.cluster, cluster),
		}
	}
	m.image.starts++
	m.opened = &memoryStore{disk: m}
	return m.opened, nil
}

// draw returns a new ID.
func (m *Memory) draw() uint64 {
	for {
		if id := m.ids.Uint64(); id != 0 {
			return id
		}
	}
}

// Crash ends the open store, if there is one, as the death of its process would: its
// methods return [ErrClosed], and the disk can be opened again.
func (m *Memory) Crash() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.opened = nil
}

// Image returns a copy of what the disk holds.
func (m *Memory) Image() Image {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.image.clone()
}

// Restore puts a copy of an image onto the disk, as a backup does, and ends the open store.
func (m *Memory) Restore(image Image) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.opened = nil
	m.image = image.clone()
}

// Asides returns how many copies of wiped groups the disk has put aside.
func (m *Memory) Asides() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.image.asides)
}

func (i Image) clone() Image {
	i.asides = slices.Clone(i.asides)
	groups := make(map[string]*group, len(i.groups))
	for name, g := range i.groups {
		groups[name] = &group{meta: g.meta, records: maps.Clone(g.records)}
	}
	i.groups = groups
	return i
}

// apply changes the image by one batch.
func (i *Image) apply(b Batch) {
	g := i.groups[b.Group]
	if g == nil {
		g = &group{records: map[string][]byte{}}
		i.groups[b.Group] = g
	}
	if b.Wipe {
		if b.Aside && len(g.records) > 0 {
			i.asides = append(i.asides, g.records)
		}
		g.records = map[string][]byte{}
	}
	if b.Meta != nil {
		g.meta = append([]byte{}, b.Meta...)
	}
	for _, r := range b.Put {
		g.records[r.Key] = append([]byte{}, r.Value...)
	}
	for _, key := range b.Drop {
		delete(g.records, key)
	}
}

// memoryStore is one opening of a disk in memory.
type memoryStore struct{ disk *Memory }

var _ Store = (*memoryStore)(nil)

// errTorn is the cause of the error of an Apply that was torn.
var errTorn = errors.New("the process has died")

// begin waits as the faults of the disk say, and returns with the disk locked if there
// is no error.
func (s *memoryStore) begin(ctx context.Context, operation string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.disk.mu.Lock()
	wait := s.disk.faults.Wait
	s.disk.mu.Unlock()
	if wait != nil {
		if err := wait(ctx, operation); err != nil {
			return err
		}
	}
	s.disk.mu.Lock()
	if s.disk.opened != s {
		s.disk.mu.Unlock()
		return &Error{Kind: ErrClosed, File: "memory"}
	}
	return nil
}

func (s *memoryStore) ID() uint64 {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	return s.disk.image.id
}

func (s *memoryStore) Starts() uint64 {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	return s.disk.image.starts
}

func (s *memoryStore) Groups() []string {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	return slices.Sorted(maps.Keys(s.disk.image.groups))
}

func (s *memoryStore) Asides() []string {
	names := []string{}
	for i := range s.disk.Asides() {
		names = append(names, fmt.Sprintf("memory: aside %d", i))
	}
	return names
}

func (s *memoryStore) Load(ctx context.Context, name string, meta func([]byte) error, record func(Record) error) error {
	if err := s.begin(ctx, "load"); err != nil {
		return err
	}
	var g group
	if found := s.disk.image.groups[name]; found != nil {
		g = group{meta: found.meta, records: maps.Clone(found.records)}
	}
	corrupt := s.disk.faults.Corrupt != "" && s.disk.faults.Corrupt == name
	s.disk.mu.Unlock()
	if g.meta != nil {
		if err := meta(g.meta); err != nil {
			return err
		}
	}
	keys := slices.Sorted(maps.Keys(g.records))
	for i, key := range keys {
		if err := ctx.Err(); err != nil {
			return err
		}
		if corrupt && i >= len(keys)/2 {
			break
		}
		if err := record(Record{Key: key, Value: g.records[key]}); err != nil {
			return err
		}
	}
	if corrupt {
		return &Error{Kind: ErrCorrupt, File: "memory", Problem: "the group " + name, Remedy: "take another disk"}
	}
	return nil
}

func (s *memoryStore) Apply(ctx context.Context, batches []Batch) error {
	if err := s.begin(ctx, "apply"); err != nil {
		return err
	}
	defer s.disk.mu.Unlock()
	torn := s.disk.faults.Torn
	for i, b := range batches {
		if torn != 0 && i >= torn {
			break
		}
		if s.disk.faults.Full && (b.Meta != nil || len(b.Put) > 0) {
			return &Error{Kind: ErrFull, File: "memory", Remedy: "make room"}
		}
		s.disk.image.apply(b)
	}
	if torn == 0 {
		return nil
	}
	s.disk.faults.Torn, s.disk.opened = 0, nil
	return &Error{Kind: ErrClosed, File: "memory", Cause: errTorn, Remedy: "open it again"}
}

func (s *memoryStore) NewID(ctx context.Context) error {
	if err := s.begin(ctx, "new id"); err != nil {
		return err
	}
	defer s.disk.mu.Unlock()
	s.disk.image.id = s.disk.draw()
	return nil
}

func (s *memoryStore) Close() error {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	if s.disk.opened == s {
		s.disk.opened = nil
	}
	return nil
}
