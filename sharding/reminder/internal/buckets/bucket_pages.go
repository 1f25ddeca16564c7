// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package buckets

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/state/eventlog"
)

// Pages: how one is opened and closed; then the questions, of which [Set] and [Cancel] become changes; then what
// follows when changes are saved.

// reopen has a page claimed and read.
func (b *Bucket) reopen(p *page, out *Outbox) {
	p.state = opening
	out.Open = append(out.Open, p.number)
}

// opened takes the record of a page.
func (b *Bucket) opened(now machine.Now, in OpenResult, out *Outbox) {
	p := b.pages[in.Page]
	if p.state != opening {
		return
	}
	b.fenced = in.Fenced
	err := in.Err
	var all map[Key]Reminder
	if err == nil {
		all, err = content(in.Record)
	}
	if err != nil {
		b.closePage(now, p, err, out)
		return
	}
	p.state, p.failed, p.why = open, 0, nil
	p.tail = eventlog.TailOf(in.Record)
	for _, k := range slices.SortedFunc(maps.Keys(all), Key.Compare) {
		b.insert(p, all[k], len(AppendReminder(nil, all[k])))
	}
	waiting := p.waiting
	p.waiting = nil
	for _, a := range waiting {
		b.ask(now, a, out)
	}
}

// insert adds a reminder to memory, where it takes the place of one with its key.
func (b *Bucket) insert(p *page, r Reminder, size int) {
	b.seq++
	e := &entry{Reminder: r, page: p, size: size, seq: b.seq}
	b.drop(p.entries[r.Key])
	p.entries[r.Key] = e
	p.bytes += size
	b.held++
	b.waiting.put(e)
}

// drop removes a reminder from memory; nil: none. A delivery of it that is under way is ignored when it ends.
func (b *Bucket) drop(e *entry) {
	if e == nil {
		return
	}
	e.dequeue()
	e.replaced = true
	e.page.bytes -= e.size
	b.held--
	delete(e.page.entries, e.Key)
}

// closePage closes a page after a failure, until a pause is over.
func (b *Bucket) closePage(now machine.Now, p *page, why error, out *Outbox) {
	b.forget(p, why, out)
	p.reopenAt = now.Mono.Add(backoff(b.cfg.ReopenMin, b.cfg.ReopenMax, p.failed))
	p.failed++
}

// forget drops everything in memory of a page, and refuses what waits for it.
func (b *Bucket) forget(p *page, why error, out *Outbox) {
	p.state, p.why = closed, why
	for _, c := range p.inFlight {
		if c.asked > 0 {
			out.refuse(c.asked, Unknown, why)
		}
	}
	for _, c := range p.queued {
		if c.asked > 0 {
			out.refuse(c.asked, Unavailable, why)
		}
	}
	out.refuseAll(p, why)
	b.settling -= countSettling(p.inFlight) + countSettling(p.queued)
	p.inFlight, p.queued, p.coming, p.asked = nil, nil, 0, 0
	p.saving, p.snapshot = false, false
	for _, e := range p.sorted(nil) {
		b.drop(e)
	}
}

// countSettling returns how many of the changes come from acknowledged deliveries.
func countSettling(changes []change) (n int) {
	for _, c := range changes {
		if c.of != nil {
			n++
		}
	}
	return n
}

var (
	errWaiting  = errors.New("too many wait for the store")
	errPageFull = fmt.Errorf("the page of the entity would have more than %d bytes", MaxPageBytes)
	errEntity   = fmt.Errorf("an entity has at most %d reminders", MaxPerEntity)
)

// ask answers a question, begins a change, or has the question wait for its page.
func (b *Bucket) ask(now machine.Now, a Ask, out *Outbox) {
	p := b.pages[a.Page]
	switch {
	case b.closing:
		out.refuse(a.ID, Unavailable, errClosing)
	case p.state == closed:
		out.refuse(a.ID, Unavailable, p.why)
	case len(p.waiting) >= MaxWaiting || p.asked >= MaxWaiting:
		out.refuse(a.ID, Unavailable, errWaiting)
	case p.state == opening:
		p.waiting = append(p.waiting, a)
	case a.Op == Set:
		b.set(now, p, a, out)
	case a.Op == Cancel:
		b.cancel(p, a)
	default:
		out.Answers = append(out.Answers, Answer{ID: a.ID, Code: OK, List: b.list(p, a.Reminder.Key)})
	}
}

// set begins to set a reminder. The one that it replaces is not delivered any more.
func (b *Bucket) set(now machine.Now, p *page, a Ask, out *Outbox) {
	r := a.Reminder
	r.Set = now.Wall.UnixMilli()
	size := len(AppendReminder(nil, r))
	if p.bytes+p.coming+size > MaxPageBytes {
		out.refuse(a.ID, Full, errPageFull)
		return
	}
	if _, there := p.entries[r.Key]; !there && b.count(p, r.Key) >= MaxPerEntity {
		out.refuse(a.ID, Full, errEntity)
		return
	}
	p.coming += size
	p.asked++
	b.replace(p.entries[r.Key])
	p.queued = append(p.queued, change{op: opPut, key: r.Key, put: r, size: size, asked: a.ID, found: true})
}

// count returns how many reminders the entity of a key has, those included that are being saved.
func (b *Bucket) count(p *page, k Key) (n int) {
	for held := range p.entries { //quorate:unordered They are counted.
		if held.Entity() == k.Entity() {
			n++
		}
	}
	for _, changes := range [][]change{p.inFlight, p.queued} {
		for _, c := range changes {
			if c.op == opPut && c.key.Entity() == k.Entity() {
				n++
			}
		}
	}
	return n
}

// replace notes that a change is to be saved which replaces or ends a reminder; nil: none.
func (b *Bucket) replace(e *entry) {
	if e != nil {
		e.dequeue()
		e.replaced = true
	}
}

// cancel begins to cancel a reminder. If there is none, the change is saved all the same: this owner may have been
// replaced without knowing it, by one that has the reminder, and learns of that from the store.
func (b *Bucket) cancel(p *page, a Ask) {
	key := a.Reminder.Key
	e, found := p.entries[key]
	for c := range p.unsaved(key) {
		found = c.op == opPut
	}
	b.replace(e)
	p.asked++
	p.queued = append(p.queued, change{op: opRemove, key: key, asked: a.ID, found: found})
}

// list returns the reminders of an entity.
func (b *Bucket) list(p *page, of Key) []Status {
	var all []Status
	for _, e := range p.sorted(func(k Key) bool { return k.Entity() == of.Entity() }) {
		all = append(all, Status{Reminder: e.Reminder, Attempts: e.attempts, Failure: e.failure, Busy: e.busy})
	}
	return all
}

// saved takes the result of a save.
func (b *Bucket) saved(now machine.Now, in SaveResult, out *Outbox) {
	p := b.pages[in.Page]
	if !p.saving {
		return
	}
	b.fenced = in.Fenced
	if in.Err != nil {
		b.closePage(now, p, in.Err, out)
		return
	}
	p.saving = false
	if p.snapshot {
		p.snapshot, p.tail = false, eventlog.Tail{}
		return
	}
	changes := p.inFlight
	p.inFlight = nil
	for _, c := range changes {
		b.applySaved(p, c)
		if c.asked > 0 {
			p.asked--
			out.Answers = append(out.Answers, Answer{ID: c.asked, Code: OK, Found: c.found})
		}
	}
}

// applySaved makes a change in memory that the store has now.
func (b *Bucket) applySaved(p *page, c change) {
	e := p.entries[c.key]
	if c.of != nil {
		b.settling--
	}
	switch c.op {
	case opPut:
		p.coming -= c.size
		b.insert(p, c.put, c.size)
	case opRemove:
		b.drop(e)
	case opAdvance:
		e.Due, e.busy, e.attempts, e.failure = c.due, false, 0, ""
		if !e.replaced {
			b.waiting.put(e)
		}
	}
	b.keepReplaced(p, c.key)
}

// keepReplaced notes again that a reminder is to be replaced or ended, if a change that does so is still to be saved:
// the change that was just made may have inserted it.
func (b *Bucket) keepReplaced(p *page, key Key) {
	for range p.unsaved(key) {
		b.replace(p.entries[key])
	}
}
