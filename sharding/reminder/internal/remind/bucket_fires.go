// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package remind

import (
	"time"

	"github.com/quorate/quorate/machine"
)

// Deliveries: which begin, and what follows when one has ended.

// fire begins the deliveries that are due, as many as may be under way. Half of the places are kept
// from repetitions, so that entities that never acknowledge do not delay all others.
func (b *Bucket) fire(now machine.Now, out *Outbox) {
	if b.closing {
		return
	}
	wall := now.Wall.UnixMilli()
	for b.again < b.cfg.InFlight/2 && b.room() {
		e := b.retries.first()
		if e == nil || e.again > now.Mono {
			break
		}
		e.leave()
		if e.Due > wall { // The wall clock was set back.
			b.waiting.put(e)
			continue
		}
		b.begin(e, wall, out)
	}
	for b.room() {
		e := b.waiting.first()
		if e == nil || e.Due > wall {
			return
		}
		e.leave()
		b.begin(e, wall, out)
	}
}

// room reports whether a delivery may begin. What was acknowledged and is not saved counts: it would be
// repeated if the node ended.
func (b *Bucket) room() bool { return len(b.flights)+b.settled < b.cfg.InFlight }

// begin begins a delivery.
func (b *Bucket) begin(e *entry, wall int64, out *Outbox) {
	b.fires++
	missed, next := e.passed(wall)
	again := e.attempts > 0
	if again {
		b.again++
	}
	b.flights[b.fires] = flight{of: e, next: next, late: again}
	e.busy = true
	out.Fire = append(out.Fire, Fire{
		ID: b.fires, Reminder: e.Reminder, Attempt: e.attempts + 1, Missed: missed,
		Late: wall - max(e.Due, e.Set),
	})
}

// delivered takes the outcome of a delivery. What was acknowledged is saved; what was not is repeated.
func (b *Bucket) delivered(now machine.Now, in Delivered) {
	f, under := b.flights[in.Fire]
	if !under {
		return
	}
	delete(b.flights, in.Fire)
	if f.late {
		b.again--
	}
	switch e, p := f.of, f.of.page; {
	case e.replaced:
	case in.Failure != "":
		e.busy, e.failure = false, in.Failure
		e.again = now.Mono.Add(backoff(b.cfg.RetryMin, b.cfg.RetryMax, e.attempts))
		e.attempts++
		b.retries.put(e)
	case f.next == 0:
		b.settled++
		p.queued = append(p.queued, change{op: opRemove, key: e.Key, of: e})
	default:
		b.settled++
		p.queued = append(p.queued, change{op: opAdvance, key: e.Key, due: f.next, of: e})
	}
}

// backoff returns the pause after so many failures before this one.
func backoff(first, most time.Duration, failures int) time.Duration {
	if pause := first << min(failures, 30); pause > 0 && pause < most && failures < 30 {
		return pause
	}
	return most
}
