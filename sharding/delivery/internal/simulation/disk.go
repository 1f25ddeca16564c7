// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"

	"github.com/quorate/quorate/sharding/delivery"
	"github.com/quorate/quorate/sharding/delivery/internal/producer"
	"github.com/quorate/quorate/sharding/delivery/internal/queuefile"
	"github.com/quorate/quorate/simulation/files"
)

// The disk of a producer, with the file of its queue: what goes wrong with it (strike), and what must be there when the
// producer begins again (reopen, entries).

// box is a disk and the queue on it.
type box struct {
	p    *sender
	dir  *files.Directory
	file *queuefile.Queue
	// maybe has what may be there or not: to append or to remove it has failed (docs/delivery.md, "not delivered by this
	// producer, perhaps by the next"), or a crash may have taken the removal back.
	maybe   map[delivery.EntryID]bool
	removed []delivery.EntryID // Since the machine has last crashed.
	power   bool               // The next end of the process is one of the machine.
	torn    bool               // The machine ends when a sync fails, before what was written is on the disk.
	salts   *rand.Rand
}

// names is a directory as the queue sees it.
type names struct{ *files.Directory }

// Create implements [queuefile.Files].
func (d names) Create(name string) (queuefile.File, error) { return opened(d.Directory.Create(name)) }

// OpenToWrite implements [queuefile.Files].
func (d names) OpenToWrite(name string) (queuefile.File, error) {
	return opened(d.Open(name))
}

func opened(f *files.File, err error) (queuefile.File, error) {
	if err != nil {
		return nil, err
	}
	return f, nil
}

func newBox(p *sender) *box {
	number := uint64(p.name[1])
	return &box{
		p: p, dir: files.New(p.w.Source(5000 + number)), salts: p.w.Source(6000 + number), maybe: map[delivery.EntryID]bool{},
	}
}

// strike lets something go wrong with the disk.
func (b *box) strike() {
	w := b.p.w
	if w.rand.IntN(2) == 0 {
		w.Counts.Power++
		b.power = true
		b.p.crash()
		return
	}
	w.Counts.Failures++
	b.dir.FailAt, b.dir.Err, b.dir.Fails = b.dir.Operations+1+w.rand.IntN(6), syscall.EIO, nil
	switch w.rand.IntN(3) {
	case 0:
		b.dir.Err, b.dir.Fails = syscall.ENOSPC, func(op string) bool { return op == "write" || op == "create" }
	case 1:
		b.torn, b.dir.Fails = true, func(op string) bool { return op == "sync" }
	}
	w.After(w.upTo(10*time.Second), b.repair)
}

// repair has the disk do what it should again.
func (b *box) repair() { b.dir.FailAt, b.torn = 0, false }

// append keeps an entry, and reports whether it has.
func (b *box) append(e delivery.Entry) bool {
	err := b.file.Append(context.Background(), e)
	if err != nil {
		b.maybe[e.EntryID] = true
		b.failed(err)
	}
	return err == nil
}

// failed looks at an error of the queue. One that cannot be used any more has its producer begin anew.
func (b *box) failed(err error) {
	switch {
	case b.torn && errors.Is(err, syscall.EIO):
		b.torn, b.power = false, true
		b.p.crash()
	case errors.Is(err, queuefile.ErrClosed):
		b.p.crash()
	case !errors.Is(err, syscall.EIO) && !errors.Is(err, syscall.ENOSPC):
		b.p.w.Fail(fmt.Errorf("D7: %s: an error that the disk has not given: %w", b.p.name, err))
	}
}

// crash ends the process of a producer, which begins again, if it has a disk a moment later.
func (p *sender) crash() {
	switch {
	case p.disk == nil:
		p.begin()
	case p.outbox != nil:
		p.outbox = nil
		p.again(time.Second)
	}
}

// again starts the producer within some time.
func (p *sender) again(within time.Duration) {
	p.life++
	life := p.life
	p.w.After(p.w.upTo(within), func() {
		if p.life == life {
			p.begin()
		}
	})
}

// reopen opens the queue after the process or the machine has ended, or has the producer begin later: a disk that fails
// is an error, and no damage.
func (p *sender) reopen() bool {
	b := p.disk
	if b.power {
		b.power = false
		b.dir.Crash()
		for _, id := range b.removed {
			b.maybe[id] = true
		}
		b.removed = nil
	}
	file, err := queuefile.Open(names{b.dir}, b.salt)
	if err != nil {
		b.failed(err)
		p.again(3 * time.Second)
		return false
	}
	b.file = file
	return true
}

// entries returns what the queue has, and looks whether that is what it must have.
func (p *sender) entries() []delivery.Entry {
	if p.disk == nil {
		return p.queue
	}
	all, err := p.disk.file.Load(context.Background())
	if err != nil {
		p.w.Fail(fmt.Errorf("D7: %s: %w", p.name, err))
	}
	must := p.queue
	for _, e := range all {
		switch {
		case len(must) > 0 && e.EntryID == must[0].EntryID:
			must = must[1:]
		case !p.disk.maybe[e.EntryID]:
			p.w.Fail(fmt.Errorf("D7: %s has %s in its queue, which it has removed or never accepted", p.name, textOf(&e)))
		}
	}
	if len(must) > 0 {
		p.w.Fail(fmt.Errorf("D7: %s has lost %s, which it has accepted", p.name, textOf(&must[0])))
	}
	return all
}

// forget removes what was confirmed, and reports whether the queue has done so.
func (p *sender) forget(confirmed []producer.Message[string]) bool {
	if p.disk == nil || len(confirmed) == 0 {
		return true
	}
	ids := make([]delivery.EntryID, 0, len(confirmed))
	for _, l := range confirmed {
		ids = append(ids, delivery.EntryID{Session: delivery.Session(l.Session), Number: l.Number})
	}
	err := p.disk.file.Remove(context.Background(), ids)
	if err == nil {
		p.disk.removed = append(p.disk.removed, ids...)
		return true
	}
	for _, id := range ids {
		p.disk.maybe[id] = true
	}
	p.queue = slices.DeleteFunc(p.queue, func(e delivery.Entry) bool { return slices.Contains(ids, e.EntryID) })
	p.disk.failed(err)
	return false
}
