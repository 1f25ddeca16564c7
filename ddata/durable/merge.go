// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package durable

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/quorate/quorate/ddata/durable/internal/disk"
)

// What is in the store is spread over sources, the tables and the runs. Reading a group
// opens its section in each source, the newest first ([openGroup]), and merges them by
// key ([mergeStream.next]): the newest source that has a key decides. A section that was
// wiped hides all older ones. [writeRun] writes the merged groups into a new run.

// source is a table or a run.
type source interface {
	names() []string
	// open begins to read a group; ok is false if the source does not have it.
	open(group string, lost *losses) (s section, ok bool, err error)
}

// section is one group in one source.
type section struct {
	wiped bool
	meta  []byte // Nil if it is that of an older source.
	stream
}

// stream is a sequence of keys in their order, each once. An item is valid until the
// next call.
type stream interface {
	next() (i item, ok bool, err error)
}

// group is one group, merged from all sources.
type group struct {
	wiped bool // Sources older than those that were merged are hidden.
	meta  []byte
	mergeStream
}

// openGroup begins to read a group from sources, the newest first.
func openGroup(sources []source, name string, lost *losses) (g group, found bool, err error) {
	for _, from := range sources {
		s, ok, err := from.open(name, lost)
		if err := lost.accept(err); err != nil {
			return g, false, err
		}
		if !ok || err != nil {
			continue
		}
		found = true
		if g.meta == nil {
			g.meta = s.meta
		}
		if !g.wiped {
			g.wiped = s.wiped
			g.parts = append(g.parts, mergeInput{stream: s.stream})
		}
	}
	g.lost = lost
	return g, found, nil
}

// mergeStream merges sorted streams; of equal keys the record of the first stream counts.
type mergeStream struct {
	parts []mergeInput
	lost  *losses
}

// mergeInput is one of the streams, with its first record that was not merged yet.
type mergeInput struct {
	stream stream
	head   item
	ready  bool // There is a head.
	done   bool
}

func (m *mergeStream) next() (item, bool, error) {
	least := -1
	for i := range m.parts {
		p := &m.parts[i]
		if err := m.fill(p); err != nil {
			return item{}, false, err
		}
		if p.ready && (least < 0 || p.head.key < m.parts[least].head.key) {
			least = i
		}
	}
	if least < 0 {
		return item{}, false, nil
	}
	head := m.parts[least].head
	for i := range m.parts {
		if p := &m.parts[i]; p.ready && p.head.key == head.key {
			p.ready = false
		}
	}
	return head, true, nil
}

// fill reads the head of a part.
func (m *mergeStream) fill(p *mergeInput) error {
	if p.ready || p.done {
		return nil
	}
	var err error
	p.head, p.ready, err = p.stream.next()
	p.done = !p.ready
	return m.lost.accept(err)
}

// allNames returns the groups of all sources in the order of their names.
func allNames(sources []source) []string {
	var names []string
	for _, s := range sources {
		names = append(names, s.names()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// draw returns a random number other than zero.
func draw() uint64 {
	for {
		var b [8]byte
		_, _ = rand.Read(b[:]) // It never fails.
		if n := binary.LittleEndian.Uint64(b[:]); n != 0 {
			return n
		}
	}
}

// runSpec says what writeRun writes, and where.
type runSpec struct {
	name    string
	head    fileHead
	sources []source // the newest first
	groups  []string
	// oldest says that there are no older sources, so that nothing has to be hidden of
	// them: dropped keys are left out.
	oldest bool
	lost   *losses
	// progress is told of each key; nil if nobody wants to know.
	progress func()
}

// writeRun merges groups into a run, which is on disk when it returns.
func writeRun(ctx context.Context, files disk.Files, w runSpec) (runFile, error) {
	out, err := createRun(files, w.name, w.head)
	if err != nil {
		return runFile{}, err
	}
	for _, name := range w.groups {
		if err := w.group(ctx, out, name); err != nil {
			return runFile{}, errors.Join(err, out.discard())
		}
	}
	return out.finish()
}

func (w *runSpec) group(ctx context.Context, out *runWriter, name string) error {
	g, found, err := openGroup(w.sources, name, w.lost)
	if err != nil || !found {
		return err
	}
	out.group(name, g.wiped && !w.oldest, g.meta)
	for {
		i, ok, err := g.next()
		if err != nil {
			return err
		}
		if !ok {
			return out.groupDone()
		}
		if i.dropped && w.oldest {
			continue
		}
		if err := out.change(i); err != nil {
			return err
		}
		if w.progress != nil {
			w.progress()
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}
