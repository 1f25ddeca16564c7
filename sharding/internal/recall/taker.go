// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package recall

import (
	"time"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// When the number of shards of a kind has changed, what the sets of a former number have is taken over: each node that
// serves shards asks the node with the first one, whose desk is the giver ([giver]), for the ids that belong to its
// shards, until nothing is left.
//
//	taker                                                    giver
//	  │ ── Take: my shards; what I have written, or forget ──> │ ──> takes those out of the former sets
//	  │ <── Given: these are out; these ids are yours ───────── │
//	  └─> remembers those, and has them begin
//
// One question is under way at a time, and only its answer counts: so an id that was forgotten here before the question
// cannot come with the answer. Until the first answer nothing is written, and when a kind begins nobody may know yet
// who serves the first shard: till then a question is repeated soon, under its number. What is to be forgotten is
// written when the former sets do not have it any more: else the next home would take it over again.

// The times and bounds of questions.
const (
	takeSoon  = 5 * time.Millisecond   // After an answer that has brought something.
	takeEvery = 500 * time.Millisecond // After one that has not.
	takeLimit = 2 * time.Second        // How long an answer is waited for.
	takeAgain = 20 * time.Millisecond  // The first pause until it is repeated, each twice the one before.

	takeMost  = 1000     // Ids in a question, and in an answer.
	takeBytes = 64 << 10 // Their bytes, but for one that is longer.
)

// taker asks for what the sets of former layouts have for the shards of this node.
type taker struct {
	desk *Desk

	listed  uint32          // The index tells of the layouts below this number.
	over    bool            // No set of a former layout has anything any more.
	asked   uint64          // The number of the question that is under way; 0: none is.
	next    machine.Instant // When to ask, or to ask again.
	limit   machine.Instant // Until when an answer to the question is waited for.
	pause   time.Duration   // Until the next repetition.
	reports map[string]*shard
	line    []string // The ids of reports in the order in which they came; some may be gone.
}

// present returns the layout with the highest number.
func (d *Desk) present() protocol.Layout { return d.layouts[len(d.layouts)-1] }

// begin begins with a new layout. A change of the number of shards begins only when the one before is over: whatever
// was held waits for nothing any more.
func (t *taker) begin(now machine.Instant) {
	for _, s := range t.desk.order {
		t.free(now, s)
	}
	t.over, t.asked, t.next = false, 0, now
	t.reports, t.line = nil, nil
}

// lists reports whether the index tells of a layout: its sets may be written.
func (t *taker) lists(layout uint16) bool { return uint32(layout) < t.listed }

// holds reports whether what is to be forgotten of a shard waits until the sets of former layouts do not have it.
func (t *taker) holds(s *shard) bool { return !t.over && s.id.Layout() == t.desk.present().Number }

// asks reports whether there is something to ask for.
func (t *taker) asks() bool { return !t.over && len(t.desk.order) > 0 }

// written notes that an id of a shard is written: no former set needs to have it.
func (t *taker) written(s *shard, id string) {
	if t.holds(s) {
		t.report(s, id)
	}
}

// report has the giver told that no former set needs to have an id.
func (t *taker) report(s *shard, id string) {
	if t.reports == nil {
		t.reports = map[string]*shard{}
	}
	if _, there := t.reports[id]; !there {
		t.line = append(t.line, id)
	}
	t.reports[id] = s
}

// withdraw has the giver not told of an id, unless it was asked already.
func (t *taker) withdraw(id string) { delete(t.reports, id) }

// ask asks when it is time.
func (t *taker) ask(now machine.Instant, out *Outbox) {
	if !t.asks() || now < t.next {
		return
	}
	d := t.desk
	if t.asked > 0 && now >= t.limit {
		t.unheard(now, out)
		t.asked = 0
	}
	if t.asked == 0 {
		d.sessions++
		t.asked, t.limit, t.pause = d.sessions, now.Add(takeLimit), takeAgain
	}
	if t.next = t.limit; !t.lists(d.present().Number) {
		t.next = min(t.next, now.Add(t.pause))
		t.pause *= 2
	}
	q := protocol.Take{Layout: d.present().Number, Number: t.asked}
	for _, s := range d.order {
		if s.id.Layout() == q.Layout && s.known && !s.stops {
			q.Shards = append(q.Shards, s.id)
		}
	}
	q.Gone = t.told()
	out.Ask = append(out.Ask, q)
}

// unheard has those not wait for ever that wait for the store, which cannot be written.
func (t *taker) unheard(now machine.Instant, out *Outbox) {
	why := unlisted
	if fault := t.desk.giver.fault(); fault != "" {
		why = "the store is asked in vain for " + fault
	}
	for _, s := range t.desk.order {
		if !s.writable() {
			s.failed(now, why, out)
		}
	}
}

// unlisted is why nothing is written.
const unlisted = "the node with the first shard did not say that the store tells of the number of shards: the log of that node says why"

// told returns the oldest reports, which stay until the giver has confirmed them.
func (t *taker) told() (ids []string) {
	rest := t.line[:0]
	for _, id := range t.line {
		if s, there := t.reports[id]; there && t.desk.shards[s.id] == s {
			rest = append(rest, id)
		} else {
			delete(t.reports, id)
		}
	}
	clear(t.line[len(rest):])
	t.line = rest
	size := 0
	for _, id := range t.line {
		if size += len(id); len(ids) >= takeMost || size > takeBytes && len(ids) > 0 {
			break
		}
		ids = append(ids, id)
	}
	return ids
}

// given takes the answer to the question that is under way.
func (t *taker) given(now machine.Instant, in protocol.Given, out *Outbox) {
	d := t.desk
	if t.asked == 0 || in.Number != t.asked || in.Layout != d.present().Number {
		return
	}
	t.asked, t.next = 0, now.Add(takeEvery)
	if len(in.IDs)+len(in.Gone) > 0 {
		t.next = now.Add(takeSoon)
	}
	for _, id := range in.Gone {
		s, there := t.reports[id]
		if delete(t.reports, id); there && s.release(id) {
			s.put(wish{id: id, op: opForget, since: now})
			d.want(&s.set)
		}
	}
	for _, id := range in.IDs {
		t.adopt(now, id)
	}
	if t.listed = max(t.listed, uint32(in.Layout)+1); in.Over {
		t.finish(now, out)
	}
	for _, s := range d.order {
		d.want(&s.set)
	}
}

// adopt takes an id over, if this node serves its shard and has not heard something else of it since it has asked.
func (t *taker) adopt(now machine.Instant, id string) {
	d := t.desk
	s := d.shards[d.present().ShardOf(protocol.HashOf(id))]
	if s == nil || !s.known || s.stops || d.cfg.Fault(id) != "" {
		return
	}
	_, told := t.reports[id]
	if givenUp := !told && s.release(id); !givenUp && s.asked(id) != opNone {
		return
	}
	d.stats.Taken++
	s.remember(now, id, false)
	s.await([]string{id})
}

// finish ends the taking over.
func (t *taker) finish(now machine.Instant, out *Outbox) {
	t.over, t.reports, t.line = true, nil, nil
	for _, s := range t.desk.order {
		t.free(now, s)
	}
	out.Over = append(out.Over, t.desk.present().Number)
}

// free has the ids written that were held.
func (t *taker) free(now machine.Instant, s *shard) {
	for _, id := range sorted(s.held) {
		s.put(wish{id: id, op: opForget, since: now})
	}
	s.held = nil
	t.desk.want(&s.set)
}
