// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package reminder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/bound"
	"github.com/quorate/quorate/sharding/reminder/internal/buckets"
	"github.com/quorate/quorate/sharding/state"
	"github.com/quorate/quorate/sharding/state/store"
)

// A bucket as an entity. A loop has the machine, steps it, and has goroutines carry out what it wants:
// one at a time for each page, and one for each delivery. Receive hands a question to the loop and waits
// for the answer. The loop ends with the context of the entity, with an orderly stop, or when a later
// owner has the bucket; the entity hears of that by a message to itself, and begins anew or fails.

// bucket is the entity. Its methods are called by one goroutine at a time.
type bucket struct {
	service *Service
	number  int
	loop    *loop // The one that runs, or the last one.
}

// loop runs one machine.
type loop struct {
	bucket  *bucket
	id      string // Of the entity.
	machine *buckets.Bucket
	epoch   sharding.Epoch
	handles [buckets.Pages]*state.Handle // Each is used by one goroutine at a time: that which has its page's call.

	ctx    context.Context //nolint:containedctx // That of the loop and of all that it starts.
	cancel context.CancelCauseFunc
	stop   chan struct{}            // Closed to end the loop in order.
	asks   chan question            // Unbuffered: Receive waits for the loop.
	told   chan any                 // Inputs of the machine, from the goroutines. Has room for one of each.
	work   sync.WaitGroup           // The goroutines.
	over   chan struct{}            // Closed when all has ended.
	waits  map[uint64]chan<- []byte // Who waits for an answer.
	asked  uint64
}

// question is one that Receive has.
type question struct {
	ask    buckets.Ask
	answer chan<- []byte // Has room for the answer.
}

const (
	stopTimeout = 2 * time.Second // For what is under way when the bucket moves.
	tellTimeout = 5 * time.Second // For the message to itself: the mailbox has room, or the entity is gone.
	reopenFirst = time.Second
	maxReopen   = 30 * time.Second
)

var (
	errStopped = errors.New("the bucket moves to another node, or its node ends")
	errFenced  = errors.New("a later owner has the bucket")
)

// Start begins to read the pages.
func (b *bucket) Start(c *sharding.Context) error {
	b.begin(c)
	return nil
}

func (b *bucket) begin(c *sharding.Context) {
	s := b.service
	l := &loop{
		bucket: b, id: c.ID(), epoch: c.Epoch(), stop: make(chan struct{}), asks: make(chan question), over: make(chan struct{}),
		told: make(chan any, buckets.Pages+s.cfg.InFlight), waits: map[uint64]chan<- []byte{},
		machine: buckets.New(buckets.Config{
			Pages: buckets.Pages, InFlight: s.cfg.InFlight, RetryMin: s.cfg.RetryMin, RetryMax: s.cfg.RetryMax,
			ReopenMin: reopenFirst, ReopenMax: maxReopen,
		}),
	}
	l.ctx, l.cancel = bound.WithCancel(c.Context())
	b.loop = l
	// The goroutine is owned by the bucket, whose Stop waits for it.
	go l.run()
}

// Stop ends the loop: in order if no other owner can have begun.
func (b *bucket) Stop(c *sharding.Context) {
	if c.StopReason().Sole() {
		close(b.loop.stop)
		timer := time.NewTimer(stopTimeout)
		defer timer.Stop()
		select {
		case <-b.loop.over:
		case <-timer.C:
		}
	}
	b.loop.cancel(errStopped)
	<-b.loop.over
}

// Receive answers a question. A message without bytes says that the loop has ended.
func (b *bucket) Receive(c *sharding.Context, message *sharding.Bytes) error {
	if b.loop.ctx.Err() != nil {
		<-b.loop.over
		if errors.Is(context.Cause(b.loop.ctx), errFenced) {
			return errFenced
		}
		b.begin(c) // The node had lost its standing, and has it again.
	}
	if len(*message) == 0 {
		return nil
	}
	ask, err := buckets.DecodeAsk(*message)
	if err == nil {
		err = faultOf(ask)
	}
	if err != nil {
		return reply(c, buckets.AppendAnswer(nil, buckets.Answer{Code: buckets.Invalid, Detail: err.Error()}))
	}
	_, ask.Page = buckets.Place(ask.Reminder.Kind, ask.Reminder.ID)
	answer := make(chan []byte, 1)
	select {
	case b.loop.asks <- question{ask, answer}:
	case <-b.loop.ctx.Done():
		return reply(c, buckets.AppendAnswer(nil, buckets.Answer{Code: buckets.Unavailable, Detail: context.Cause(b.loop.ctx).Error()}))
	}
	select {
	case bytes := <-answer: // The machine answers within the limits of the store.
		return reply(c, bytes)
	case <-b.loop.ctx.Done():
		return reply(c, buckets.AppendAnswer(nil, buckets.Answer{Code: buckets.Unknown, Detail: context.Cause(b.loop.ctx).Error()}))
	}
}

// faultOf looks at a question from elsewhere.
func faultOf(a buckets.Ask) error {
	if fault := a.Check(); fault != "" {
		return errors.New(fault)
	}
	return nil
}

func reply(c *sharding.Context, b []byte) error {
	bytes := sharding.Bytes(b)
	return c.Reply(&bytes)
}

// run steps the machine until something ends it.
func (l *loop) run() {
	s := l.bucket.service
	defer func() {
		l.cancel(context.Canceled)
		l.work.Wait()
		s.gauge(l.bucket, buckets.Gauges{}, true)
		l.tell()
		close(l.over)
	}()
	var out buckets.Outbox
	var in any = buckets.Tick{}
	stop := l.stop
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		now := s.now()
		l.machine.Step(now, in, &out)
		switch in := in.(type) {
		case buckets.OpenResult:
			l.closed(in.Page)
		case buckets.SaveResult:
			l.closed(in.Page)
		}
		l.carry(&out)
		out.Reset()
		s.gauge(l.bucket, l.machine.Gauges(), false)
		switch {
		case l.machine.Fenced():
			l.cancel(errFenced)
			return
		case stop == nil && l.machine.Quiet():
			return
		}
		timer.Reset(l.machine.Wake(now).Sub(now.Mono))
		select {
		case in = <-l.told:
		case q := <-l.asks:
			l.asked++
			q.ask.ID = l.asked
			l.waits[l.asked] = q.answer
			in = q.ask
		case <-timer.C:
			in = buckets.Tick{}
		case <-stop:
			stop, in = nil, buckets.Close{}
		case <-l.ctx.Done():
			return
		}
	}
}

// tell tells the entity that the loop has ended, unless the entity ends.
func (l *loop) tell() {
	select {
	case <-l.stop:
		return
	default:
	}
	if errors.Is(context.Cause(l.ctx), errStopped) {
		return
	}
	<-l.bucket.service.started
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.ctx), tellTimeout)
	defer cancel()
	// One that cannot be told is not here any more.
	_ = l.bucket.service.region.Tell(ctx, l.id, &sharding.Bytes{})
}

// carry does what the machine wants.
func (l *loop) carry(out *buckets.Outbox) {
	for _, p := range out.Open {
		l.work.Go(func() { l.open(p) })
	}
	for _, s := range out.Save {
		l.work.Go(func() { l.save(s) })
	}
	for _, f := range out.Deliver {
		if f.Attempt == 1 {
			l.bucket.service.counts.late(time.Duration(f.Late) * time.Millisecond)
		}
		l.work.Go(func() { l.fire(f) })
	}
	for _, a := range out.Answers {
		l.waits[a.ID] <- buckets.AppendAnswer(nil, a)
		delete(l.waits, a.ID)
	}
}

// open claims and reads a page.
func (l *loop) open(p int) {
	s := l.bucket.service
	key := store.Key{Kind: s.cfg.Name, ID: strconv.Itoa(l.bucket.number) + "/" + strconv.Itoa(p)}
	handle, record, err := s.keeper.Open(l.ctx, key, l.epoch)
	l.handles[p] = handle
	l.told <- buckets.OpenResult{Page: p, Record: record, Err: err, Fenced: errors.Is(err, state.ErrFenced)}
}

// save changes a page.
func (l *loop) save(c buckets.SavePage) {
	h := l.handles[c.Page]
	err := h.SaveEvents(l.ctx, c.Events)
	if len(c.Events) == 0 {
		err = h.SaveSnapshot(l.ctx, c.Snapshot, 1)
	}
	l.told <- buckets.SaveResult{Page: c.Page, Err: err, Fenced: errors.Is(err, state.ErrFenced)}
}

// closed reports that a page is closed; not when the bucket ends. Of many one a second is logged: a store
// that is down closes all.
func (l *loop) closed(page int) {
	s, why := l.bucket.service, l.machine.Closed(page)
	if why == nil || l.ctx.Err() != nil {
		return
	}
	closed, now, logged := s.counts.closed.Add(1), time.Now().UnixNano(), s.counts.logged.Load()
	if now-logged >= int64(time.Second) && s.counts.logged.CompareAndSwap(logged, now) {
		s.log.Warn("a page of reminders is closed, and is read again", "bucket", l.bucket.number, "page", page, "closed", closed, "error", why)
	}
}

// fire delivers a reminder.
func (l *loop) fire(f buckets.Deliver) {
	l.bucket.service.counts.fired.Add(1)
	failure := "it ended its goroutine"
	defer func() { l.fired(f, failure) }()
	failure = l.bucket.service.deliver(l.ctx, f)
}

// fired tells the bucket how a delivery has ended.
func (l *loop) fired(f buckets.Deliver, failure string) {
	s := l.bucket.service
	switch {
	case failure == "":
		s.counts.acknowledged.Add(1)
	case l.ctx.Err() == nil:
		s.counts.unacknowledged.Add(1)
		s.log.Debug("a reminder was not acknowledged", "kind", f.Reminder.Kind, "entity", f.Reminder.ID, "name", f.Reminder.Name, "attempt", f.Attempt, "error", failure)
	}
	l.told <- buckets.Delivered{ID: f.ID, Failure: strings.ToValidUTF8(failure, "?")}
}

// deliver calls the target, and says why the entity has not acknowledged: empty if it has. The text of an error is
// that of the program, and so is what happens when it is asked for.
func (s *Service) deliver(ctx context.Context, f buckets.Deliver) (failure string) {
	deliver := (*s.targets.Load())[f.Reminder.Kind]
	if deliver == nil {
		return short(fmt.Sprintf("this node has no target for kind %q", f.Reminder.Kind))
	}
	defer func() {
		if p := recover(); p != nil {
			failure = short(fmt.Sprintf("panic: %v", p))
		}
	}()
	limited, cancel := bound.WithTimeout(ctx, s.cfg.AckTimeout)
	defer cancel()
	if err := deliver(limited, Fired{Reminder: public(f.Reminder), Missed: f.Missed, Attempt: f.Attempt}); err != nil {
		failure = cmp.Or(short(err.Error()), "an error without a text")
	}
	return failure
}
