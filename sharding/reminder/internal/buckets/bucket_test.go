// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package buckets_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/reminder/internal/buckets"
	"github.com/quorate/quorate/sharding/state/store"
)

// A bucket by hand, with a store that is a record: what clocks that jump do, how pages are written, and
// what is refused. The world of package simulation has the rest.

// rig is a bucket with one page.
type rig struct {
	*testing.T

	bucket *buckets.Bucket
	now    machine.Now
	record store.Record
	out    buckets.Outbox
	asked  uint64
}

func newRig(t *testing.T, record store.Record) *rig {
	t.Helper()
	r := &rig{T: t, record: record, now: machine.Now{Mono: 1, Wall: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}, bucket: buckets.New(buckets.Config{
		Pages: 1, InFlight: 4, RetryMin: time.Second, RetryMax: time.Minute, ReopenMin: time.Second, ReopenMax: time.Minute,
	})}
	r.step(buckets.Tick{})
	require.Equal(t, []int{0}, r.out.Open)
	r.step(buckets.OpenResult{Record: record})
	return r
}

// step feeds an input; out has what follows.
func (r *rig) step(in any) {
	r.out = buckets.Outbox{}
	r.bucket.Step(r.now, in, &r.out)
}

// pass has time pass, by both clocks.
func (r *rig) pass(d time.Duration) {
	r.now.Mono, r.now.Wall = r.now.Mono.Add(d), r.now.Wall.Add(d)
	r.step(buckets.Tick{})
}

// ask asks, and saves what is to be saved.
func (r *rig) ask(a buckets.Ask) buckets.Answer {
	r.asked++
	a.ID = r.asked
	r.step(a)
	if len(r.out.Save) > 0 {
		require.Empty(r, r.out.Answers, "before it is saved")
	}
	for len(r.out.Save) > 0 {
		r.save()
	}
	require.Len(r, r.out.Answers, 1)
	return r.out.Answers[0]
}

// save saves what is to be saved, as a store does.
func (r *rig) save() {
	s := r.out.Save[0]
	if len(s.Events) == 0 {
		r.record.Snapshot, r.record.Events = s.Snapshot, nil
	}
	r.record.Events = append(r.record.Events, s.Events...)
	r.step(buckets.SaveResult{})
}

func (r *rig) reminder(name string, in, every time.Duration) buckets.Reminder {
	return buckets.Reminder{
		Key: buckets.Key{Kind: "k", ID: "e", Name: name}, Due: r.now.Wall.Add(in).UnixMilli(), Every: every.Milliseconds(),
	}
}

func (r *rig) set(name string, in, every time.Duration) {
	require.Equal(r, buckets.OK, r.ask(buckets.Ask{Op: buckets.Set, Reminder: r.reminder(name, in, every)}).Code)
}

func (r *rig) list() []buckets.Status {
	return r.ask(buckets.Ask{Op: buckets.List, Reminder: r.reminder("", 0, 0)}).List
}

// A wall clock that is set forward has everything fire that is due by it; set back, it has what repeats
// wait until it has caught up, and what was delivered is not delivered again.
func TestWallClocksThatJump(t *testing.T) {
	r := newRig(t, store.Record{})
	r.set("once", time.Hour, 0)
	r.set("often", 2*time.Hour, time.Minute)
	require.Equal(t, r.now.Mono.Add(buckets.Look), r.bucket.Wake(r.now), "the clock is looked at")
	r.now.Wall = r.now.Wall.Add(2*time.Hour + 150*time.Second)
	r.pass(buckets.Look)
	require.Len(t, r.out.Deliver, 2)
	require.EqualValues(t, 2, r.out.Deliver[1].Missed)
	for _, f := range r.out.Deliver {
		r.step(buckets.Delivered{ID: f.ID})
		for len(r.out.Save) > 0 {
			r.save()
		}
	}
	r.now.Wall = r.now.Wall.Add(-3 * time.Hour)
	for range 100 {
		r.pass(time.Minute)
		require.Empty(t, r.out.Deliver)
	}
	listed := r.list()
	require.Len(t, listed, 1)
	r.now.Wall = time.UnixMilli(listed[0].Due - 1)
	require.Equal(t, r.now.Mono.Add(time.Millisecond), r.bucket.Wake(r.now))
	r.pass(time.Millisecond)
	require.Len(t, r.out.Deliver, 1)
}

// A repetition waits for the wall clock too, when that was set back before the time of its reminder.
func TestARepetitionIsNotBeforeItsTime(t *testing.T) {
	r := newRig(t, store.Record{})
	r.set("once", time.Second, 0)
	r.pass(time.Second)
	require.Len(t, r.out.Deliver, 1)
	r.step(buckets.Delivered{ID: r.out.Deliver[0].ID, Failure: "no"})
	r.now.Wall = r.now.Wall.Add(-time.Minute)
	r.pass(5 * time.Second)
	require.Empty(t, r.out.Deliver)
	r.pass(55 * time.Second)
	require.Len(t, r.out.Deliver, 1)
	require.Equal(t, 2, r.out.Deliver[0].Attempt)
}

// Changes are events; when these are many, a snapshot takes their place, and one of an empty page leaves
// nothing. What was written is what the next owner reads.
func TestPagesAreWrittenInParts(t *testing.T) {
	r := newRig(t, store.Record{})
	most := 0
	for i := range 3 * buckets.MaxEvents {
		r.set(fmt.Sprintf("r%d", i%9), time.Hour+time.Duration(i)*time.Second, time.Minute)
		most = max(most, len(r.record.Events))
	}
	require.Equal(t, buckets.MaxEvents, most)
	require.NotZero(t, r.record.Snapshot.Form)
	next := newRig(t, r.record)
	require.Equal(t, r.list(), next.list())
	require.Len(t, next.list(), 9)
	for i := range 9 {
		require.True(t, r.ask(buckets.Ask{Op: buckets.Cancel, Reminder: r.reminder(fmt.Sprintf("r%d", i), 0, 0)}).Found)
	}
	for range 2 * buckets.MaxEvents {
		require.False(t, r.ask(buckets.Ask{Op: buckets.Cancel, Reminder: r.reminder("none", 0, 0)}).Found)
	}
	require.Equal(t, store.Value{}, r.record.Snapshot)
	require.Empty(t, newRig(t, r.record).list())
}

// A page has a bound in bytes, an entity one in reminders; what replaces another is no new one.
func TestPagesAndEntitiesAreBounded(t *testing.T) {
	r := newRig(t, store.Record{})
	put := func(id, name string) buckets.Answer {
		rem := r.reminder(name, time.Hour, 0)
		rem.ID, rem.Payload = id, make([]byte, buckets.PayloadBytes)
		return r.ask(buckets.Ask{Op: buckets.Set, Reminder: rem})
	}
	n := 0
	for ; put(fmt.Sprintf("e%d", n), "x").Code == buckets.OK; n++ {
		require.Less(t, n, buckets.MaxPageBytes/buckets.PayloadBytes)
	}
	require.Greater(t, n, buckets.MaxPageBytes/buckets.PayloadBytes*9/10)
	require.Less(t, len(r.record.Snapshot.Bytes), 2*buckets.MaxPageBytes)

	r = newRig(t, store.Record{})
	for i := range buckets.MaxPerEntity {
		r.set(fmt.Sprintf("r%d", i), time.Hour, 0)
	}
	full := r.ask(buckets.Ask{Op: buckets.Set, Reminder: r.reminder("more", time.Hour, 0)})
	require.Equal(t, buckets.Full, full.Code)
	r.set("r7", 2*time.Hour, 0)
}

// A snapshot of a full page is within the bytes that a store must take.
func TestASnapshotIsWithinItsBound(t *testing.T) {
	rem := buckets.Reminder{Key: buckets.Key{Kind: "k", ID: "e", Name: "n"}, Due: buckets.MaxDue}
	require.Less(t, len(buckets.AppendReminder(nil, rem)), 64)
	r := newRig(t, store.Record{})
	for i := range 3000 {
		rem.ID = fmt.Sprintf("e%d", i)
		r.ask(buckets.Ask{Op: buckets.Set, Reminder: rem})
	}
	require.LessOrEqual(t, len(r.record.Snapshot.Bytes), buckets.MaxPageBytes+buckets.MaxPageBytes/2)
}

// Questions that come while a page is read wait for it; the number of those that wait is bounded.
func TestQuestionsWaitForTheirPage(t *testing.T) {
	b := buckets.New(buckets.Config{Pages: 1, InFlight: 2, RetryMin: 1, RetryMax: 1, ReopenMin: time.Second, ReopenMax: time.Minute})
	var out buckets.Outbox
	now := machine.Now{Mono: 1, Wall: time.Unix(0, 0)}
	b.Step(now, buckets.Tick{}, &out)
	list := buckets.Ask{Op: buckets.List, Reminder: buckets.Reminder{Key: buckets.Key{Kind: "k", ID: "e"}}}
	for i := range buckets.MaxWaiting + 5 {
		list.ID = uint64(i + 1)
		b.Step(now, list, &out)
	}
	require.Len(t, out.Answers, 5)
	require.Equal(t, buckets.Unavailable, out.Answers[0].Code)
	b.Step(now, buckets.OpenResult{Err: errors.New("it is down")}, &out)
	require.Len(t, out.Answers, buckets.MaxWaiting+5)
	require.Contains(t, out.Answers[9].Detail, "it is down")
	require.Equal(t, now.Mono.Add(time.Second), b.Wake(now))
	require.True(t, b.Quiet())
}

// What another program has written is refused, whatever it is.
func TestPagesThatCannotBeRead(t *testing.T) {
	for name, c := range map[string]struct {
		value store.Value
		want  error
	}{
		"garbage":       {store.Value{Form: buckets.Form, Bytes: []byte("garbage")}, buckets.ErrUnreadable},
		"a newer form":  {store.Value{Form: buckets.Form + 1}, buckets.ErrNewerForm},
		"no operation":  {store.Value{Form: buckets.Form, Bytes: []byte{9<<3 | 2, 0}}, buckets.ErrUnreadable},
		"an empty name": {store.Value{Form: buckets.Form, Bytes: []byte{1<<3 | 2, 0}}, buckets.ErrUnreadable},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, store.Record{Snapshot: c.value})
			answer := r.ask(buckets.Ask{Op: buckets.List, Reminder: r.reminder("", 0, 0)})
			require.Equal(t, buckets.Unavailable, answer.Code)
			require.Contains(t, answer.Detail, c.want.Error())
			require.Equal(t, 1, r.bucket.Gauges().Closed)
		})
	}
}

// What an entity and a page get their numbers by is part of what stores keep.
func TestPlacesNeverChange(t *testing.T) {
	for id, want := range map[string][2]int{"acct-42": {119, 5}, "ü": {74, 15}} {
		bucket, page := buckets.Place("account", id)
		require.Equal(t, want, [2]int{bucket, page}, id)
	}
}

// Any bytes may come from the store and from other nodes.
func FuzzDecode(f *testing.F) {
	rem := buckets.Reminder{Key: buckets.Key{Kind: "k", ID: "e", Name: "n"}, Due: math.MinInt32, Every: 1000, Set: 7, Payload: []byte("p")}
	f.Add(buckets.AppendAsk(nil, buckets.Ask{Op: buckets.Set, Reminder: rem}))
	f.Add(buckets.AppendAnswer(nil, buckets.Answer{Code: buckets.OK, Found: true, Detail: strings.Repeat("x", 2000), List: []buckets.Status{{Reminder: rem, Attempts: 3, Failure: "no", Busy: true}}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if a, err := buckets.DecodeAsk(b); err == nil && a.Check() == "" {
			again, err := buckets.DecodeAsk(buckets.AppendAsk(nil, a))
			require.NoError(t, err)
			require.Equal(t, buckets.AppendAsk(nil, a), buckets.AppendAsk(nil, again))
		}
		if a, err := buckets.DecodeAnswer(b); err == nil {
			whole := buckets.AppendAnswer(nil, a)
			again, err := buckets.DecodeAnswer(whole)
			if err == nil || len(whole) >= len(b) { // Without the fields that nobody knows it may have less room than its list takes.
				require.NoError(t, err)
				require.Equal(t, whole, buckets.AppendAnswer(nil, again))
			}
		}
		var out buckets.Outbox
		bucket := buckets.New(buckets.Config{Pages: 1, InFlight: 2, RetryMin: 1, RetryMax: 1, ReopenMin: 1, ReopenMax: 1})
		now := machine.Now{Wall: time.Unix(1, 0)}
		bucket.Step(now, buckets.Tick{}, &out)
		bucket.Step(now, buckets.OpenResult{Record: store.Record{Events: []store.Value{{Form: buckets.Form, Bytes: b}}}}, &out)
	})
}
