// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package buckets

import (
	"time"

	"github.com/quorate/quorate/machine"
)

// Deliveries: which begin, and what follows when one has ended.

// deliverDue begins the deliveries that are due, as many as may be under way. At most half of these may be repetitions,
// so that entities that never acknowledge do not delay all others.
func (b *Bucket) deliverDue(now machine.Now, out *Outbox) {
	if b.closing {
		return
	}
	wall := now.Wall.UnixMilli()
	for b.repeating < b.cfg.InFlight/2 && b.room() {
		e := b.retries.first()
		if e == nil || e.notBefore > now.Mono {
			break
		}
		e.dequeue()
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
		e.dequeue()
		b.begin(e, wall, out)
	}
}

// room reports whether a delivery may begin. Deliveries that are acknowledged and not saved count too: they would be
// repeated if the node ended.
func (b *Bucket) room() bool { return len(b.flights)+b.settling < b.cfg.InFlight }

// begin begins a delivery.
func (b *Bucket) begin(e *entry, wall int64, out *Outbox) {
	b.deliveries++
	missed, next := e.passed(wall)
	again := e.attempts > 0
	if again {
		b.repeating++
	}
	b.flights[b.deliveries] = flight{of: e, next: next, repeated: again}
	e.busy = true
	out.Deliver = append(out.Deliver, Deliver{
		ID: b.deliveries, Reminder: e.Reminder, Attempt: e.attempts + 1, Missed: missed,
		Late: wall - max(e.Due, e.Set),
	})
}

// delivered takes the result of a delivery: one that was acknowledged is saved, any other one is repeated.
func (b *Bucket) delivered(now machine.Now, in Delivered) {
	f, under := b.flights[in.ID]
	if !under {
		return
	}
	delete(b.flights, in.ID)
	if f.repeated {
		b.repeating--
	}
	switch e, p := f.of, f.of.page; {
	case e.replaced:
	case in.Failure != "":
		e.busy, e.failure = false, in.Failure
		e.notBefore = now.Mono.Add(backoff(b.cfg.RetryMin, b.cfg.RetryMax, e.attempts))
		e.attempts++
		b.retries.put(e)
	case f.next == 0:
		b.settling++
		p.queued = append(p.queued, change{op: opRemove, key: e.Key, of: e})
	default:
		b.settling++
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
