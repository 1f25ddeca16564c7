// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package buckets

import (
	"errors"
	"slices"
	"time"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/state/store"
)

// The inputs and outputs of a bucket, and then the bucket itself. Its pages and changes are in bucket_pages.go, its
// deliveries in bucket_deliveries.go.

// Config says how a bucket works.
type Config struct {
	Pages    int // How many there are.
	InFlight int // Deliveries that are under way at one time, at least 2.

	// RetryMin is the pause after a delivery that was not acknowledged; it doubles up to RetryMax.
	RetryMin, RetryMax time.Duration

	// ReopenMin is the pause after a page could not be opened; it doubles up to ReopenMax.
	ReopenMin, ReopenMax time.Duration
}

// Look is the interval at which the wall clock is read while a reminder waits: a clock that is set forward is noticed
// within that time.
const Look = time.Second

// The inputs, besides [Ask].
type (
	// OpenResult answers an [Outbox.Open]: with the record, or why there is none. Fenced says that a later
	// owner has it.
	OpenResult struct {
		Page   int
		Record store.Record
		Err    error
		Fenced bool
	}
	// SaveResult answers a [SavePage]. After an error the page has to be opened again.
	SaveResult struct {
		Page   int
		Err    error
		Fenced bool
	}
	// Delivered answers a [Deliver]. Failure says why it was not acknowledged; empty if it was.
	Delivered struct {
		ID      uint64
		Failure string
	}
	// Tick says that time has passed. It is the first input.
	Tick struct{}
	// Close says that the bucket moves to another node: no delivery begins any more, and questions are refused.
	Close struct{}
)

// Op is an operation on reminders.
type Op uint8

// The operations.
const (
	Set    Op = iota + 1 // Sets a reminder, in place of one with its key.
	Cancel               // Cancels a reminder.
	List                 // Lists the reminders of an entity.
)

// Ask is a question to the bucket. Its page is that of the entity, see [Place].
type Ask struct {
	ID       uint64 // Names the question; above zero.
	Page     int
	Op       Op
	Reminder Reminder // Of Cancel only the key; of List without a name. Valid.
}

// Code says how a question ended.
type Code uint8

// The codes.
const (
	OK          Code = iota + 1
	Full             // The page, or the entity, has as many reminders as it may have. Nothing was changed.
	Unavailable      // The store does not answer, or the page cannot be read. Nothing was changed.
	Unknown          // The store has not answered in time. The change may be there.
	Invalid          // What was asked for is not valid. Nothing was changed.
	codeCount
)

// Answer answers an [Ask].
type Answer struct {
	ID     uint64
	Code   Code
	Found  bool   // Of Cancel: there was such a reminder.
	Detail string // Why, unless the code is OK.
	List   []Status
}

// Status is a reminder in the answer to [List].
type Status struct {
	Reminder

	Attempts int    // Deliveries of the occurrence that is due which were not acknowledged.
	Failure  string // Why the last of them was not.
	Busy     bool   // A delivery is under way, or is about to be saved.
}

// SavePage has a page of the store changed: by events, or to a snapshot if there are none.
type SavePage struct {
	Page     int
	Events   []store.Value
	Snapshot store.Value
}

// Deliver has a reminder delivered.
type Deliver struct {
	ID       uint64
	Reminder Reminder
	Attempt  int    // From 1.
	Missed   uint64 // Occurrences after the one that is due that have passed too.
	Late     int64  // Milliseconds after it could have been delivered.
}

// Outbox has what the caller is to do. The caller empties it.
type Outbox struct {
	Open    []int // Pages to claim and to read.
	Save    []SavePage
	Deliver []Deliver
	Answers []Answer
}

// Reset empties the outbox.
func (o *Outbox) Reset() {
	clear(o.Save)
	clear(o.Deliver)
	clear(o.Answers)
	*o = Outbox{o.Open[:0], o.Save[:0], o.Deliver[:0], o.Answers[:0]}
}

// Gauges are what a bucket has at present, for metrics.
type Gauges struct {
	Reminders int
	InFlight  int // Deliveries under way.
	Settling  int // Deliveries that are acknowledged and not saved.
	Retrying  int // Reminders whose delivery was not acknowledged, and is to be repeated.
	Closed    int // Pages that are not open.
}

// Bucket holds the reminders of one part of all entities.
type Bucket struct {
	cfg        Config
	pages      []*page
	waiting    queue // Reminders that wait for their time.
	retries    queue // Reminders whose delivery waits to be repeated.
	flights    map[uint64]flight
	repeating  int // How many of the flights are repetitions.
	settling   int // Acknowledged deliveries that are not saved.
	deliveries uint64
	seq        uint64
	held       int // Reminders of open pages.
	closing    bool
	fenced     bool
}

// flight is a delivery under way.
type flight struct {
	of       *entry
	next     int64 // What is saved as its next time when it is acknowledged.
	repeated bool  // It is a repetition.
}

// New returns a bucket whose pages are closed.
func New(cfg Config) *Bucket {
	b := &Bucket{
		cfg:     cfg,
		waiting: queue{time: func(e *entry) int64 { return e.Due }},
		retries: queue{time: func(e *entry) int64 { return int64(e.notBefore) }},
		flights: map[uint64]flight{},
	}
	for i := range cfg.Pages {
		b.pages = append(b.pages, &page{number: i, entries: map[Key]*entry{}})
	}
	return b
}

// Fenced reports whether a later owner has a page. The bucket does nothing any more.
func (b *Bucket) Fenced() bool { return b.fenced }

// Closed returns why a page is closed, or was closed before it is being opened now; nil if it is open.
func (b *Bucket) Closed(page int) error { return b.pages[page].why }

// Quiet reports whether nothing is under way: no delivery, no save, no question.
func (b *Bucket) Quiet() bool {
	return len(b.flights) == 0 && !slices.ContainsFunc(b.pages, func(p *page) bool {
		return p.saving || len(p.queued) > 0 || len(p.waiting) > 0
	})
}

// Gauges returns what the bucket has.
func (b *Bucket) Gauges() Gauges {
	g := Gauges{Reminders: b.held, InFlight: len(b.flights), Settling: b.settling, Retrying: b.retries.Len()}
	for _, p := range b.pages {
		if p.state != open {
			g.Closed++
		}
	}
	return g
}

// errClosing is the reason for what is refused while the bucket closes.
var errClosing = errors.New("the bucket moves to another node")

// errFenced is the reason for what is refused when a later owner has a page.
var errFenced = errors.New("a later owner has the bucket")

// Step handles an input, and appends to out what follows.
func (b *Bucket) Step(now machine.Now, in any, out *Outbox) {
	if b.fenced {
		if a, asked := in.(Ask); asked {
			out.refuse(a.ID, Unavailable, errFenced)
		}
		return
	}
	switch in := in.(type) {
	case OpenResult:
		b.opened(now, in, out)
	case SaveResult:
		b.saved(now, in, out)
	case Delivered:
		b.delivered(now, in)
	case Ask:
		b.ask(now, in, out)
	case Close:
		b.close(out)
	case Tick:
	}
	if b.fenced {
		b.endFenced(out)
		return
	}
	for _, p := range b.pages {
		switch {
		case p.state == open && !p.saving && len(p.queued) > 0:
			out.Save = append(out.Save, p.next())
		case p.state == closed && !b.closing && p.reopenAt <= now.Mono:
			b.reopen(p, out)
		}
	}
	b.deliverDue(now, out)
}

// close refuses what waits.
func (b *Bucket) close(out *Outbox) {
	b.closing = true
	for _, p := range b.pages {
		out.refuseAll(p, errClosing)
	}
}

// endFenced refuses what waits, and drops everything: a later owner has the bucket.
func (b *Bucket) endFenced(out *Outbox) {
	for _, p := range b.pages {
		b.forget(p, errFenced, out)
	}
	clear(b.flights)
	b.repeating = 0
}

// Wake returns when the bucket needs a [Tick].
func (b *Bucket) Wake(now machine.Now) machine.Instant {
	at := machine.Never
	if b.fenced || b.closing {
		return at
	}
	for _, p := range b.pages {
		if p.state == closed {
			at = min(at, p.reopenAt)
		}
	}
	if !b.room() {
		return at // What ends makes room, and is an input.
	}
	if e := b.retries.first(); e != nil && b.repeating < b.cfg.InFlight/2 {
		at = min(at, e.notBefore)
	}
	if e := b.waiting.first(); e != nil {
		// In milliseconds first: a time.Duration has less than 293 years.
		rest := Look
		if e.Due-now.Wall.UnixMilli() < Look.Milliseconds() {
			rest = min(rest, time.UnixMilli(e.Due).Sub(now.Wall))
		}
		at = min(at, now.Mono.Add(max(0, rest)))
	}
	return at
}

func (o *Outbox) refuse(id uint64, code Code, why error) {
	o.Answers = append(o.Answers, Answer{ID: id, Code: code, Detail: why.Error()})
}

// refuseAll refuses what waits for a page to be read.
func (o *Outbox) refuseAll(p *page, why error) {
	for _, a := range p.waiting {
		o.refuse(a.ID, Unavailable, why)
	}
	p.waiting = nil
}
