// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package remembering

import (
	"time"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// When the number of shards of a kind has changed, what the sets of a former number have is taken over: each node that
// serves shards asks the node with the first one, whose machine is the exporter ([exporter]), for the ids that belong
// to its shards, until nothing is left.
//
//	importer                                                             exporter
//	  │ ── ExportRequest: my shards; what I have written, or forget ──> │ ──> takes those out of the former sets
//	  │ <── ExportReply: these are out; these ids are yours ─────────── │
//	  └─> remembers those, and has them begin
//
// One question is under way at a time, and only its answer counts: so an id that was forgotten here before the question
// cannot come with the answer. Until the first answer nothing is written, and when a kind begins nobody may know yet
// who serves the first shard: till then a question is repeated soon, under its number. What is to be forgotten is
// written when the former sets do not have it any more: else the next home would take it over again.

// The times and bounds of questions.
const (
	askSoon    = 5 * time.Millisecond   // After an answer that has brought something.
	askEvery   = 500 * time.Millisecond // After one that has not.
	askTimeout = 2 * time.Second        // How long an answer is waited for.
	askAgain   = 20 * time.Millisecond  // The first pause until it is repeated, each twice the one before.

	maxAskIDs   = 1000     // Ids in a question, and in an answer.
	maxAskBytes = 64 << 10 // Their bytes, but for one that is longer.
)

// importer asks for what the sets of former layouts have for the shards of this node.
type importer struct {
	machine *Machine

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
func (m *Machine) present() protocol.Layout { return m.layouts[len(m.layouts)-1] }

// begin begins with a new layout. A change of the number of shards begins only when the one before is over: whatever
// was held waits for nothing any more.
func (i *importer) begin(now machine.Instant) {
	for _, s := range i.machine.order {
		i.release(now, s)
	}
	i.over, i.asked, i.next = false, 0, now
	i.reports, i.line = nil, nil
}

// lists reports whether the index tells of a layout: its sets may be written.
func (i *importer) lists(layout uint16) bool { return uint32(layout) < i.listed }

// holds reports whether what is to be forgotten of a shard waits until the sets of former layouts do not have it.
func (i *importer) holds(s *shard) bool {
	return !i.over && s.id.Layout() == i.machine.present().Number
}

// asks reports whether there is something to ask for.
func (i *importer) asks() bool { return !i.over && len(i.machine.order) > 0 }

// written notes that an id of a shard is written: no former set needs to have it.
func (i *importer) written(s *shard, id string) {
	if i.holds(s) {
		i.report(s, id)
	}
}

// report tells the exporter, with the next question, that no former set needs to have an id.
func (i *importer) report(s *shard, id string) {
	if i.reports == nil {
		i.reports = map[string]*shard{}
	}
	if _, there := i.reports[id]; !there {
		i.line = append(i.line, id)
	}
	i.reports[id] = s
}

// withdraw drops the report about an id unless it was sent.
func (i *importer) withdraw(id string) { delete(i.reports, id) }

// ask sends the next question when its time has come.
func (i *importer) ask(now machine.Instant, out *Outbox) {
	if !i.asks() || now < i.next {
		return
	}
	m := i.machine
	if i.asked > 0 && now >= i.limit {
		i.failWaiters(now, out)
		i.asked = 0
	}
	if i.asked == 0 {
		m.sessions++
		i.asked, i.limit, i.pause = m.sessions, now.Add(askTimeout), askAgain
	}
	if i.next = i.limit; !i.lists(m.present().Number) {
		i.next = min(i.next, now.Add(i.pause))
		i.pause *= 2
	}
	q := protocol.ExportRequest{Layout: m.present().Number, Number: i.asked}
	for _, s := range m.order {
		if s.id.Layout() == q.Layout && s.known && !s.stops {
			q.Shards = append(q.Shards, s.id)
		}
	}
	q.Gone = i.nextReports()
	out.Ask = append(out.Ask, q)
}

// failWaiters gives up the entities that wait for the store while it cannot be written.
func (i *importer) failWaiters(now machine.Instant, out *Outbox) {
	why := unlisted
	if fault := i.machine.exporter.fault(); fault != "" {
		why = "the store is asked in vain for " + fault
	}
	for _, s := range i.machine.order {
		if !s.writable() {
			s.failed(now, why, out)
		}
	}
}

// unlisted is why nothing is written.
const unlisted = "the node with the first shard did not say that the store tells of the number of shards: the log of that node says why"

// nextReports returns the ids of the oldest reports. A report is kept until the exporter has confirmed it.
func (i *importer) nextReports() (ids []string) {
	rest := i.line[:0]
	for _, id := range i.line {
		if s, there := i.reports[id]; there && i.machine.shards[s.id] == s {
			rest = append(rest, id)
		} else {
			delete(i.reports, id)
		}
	}
	clear(i.line[len(rest):])
	i.line = rest
	size := 0
	for _, id := range i.line {
		if size += len(id); len(ids) >= maxAskIDs || size > maxAskBytes && len(ids) > 0 {
			break
		}
		ids = append(ids, id)
	}
	return ids
}

// imported handles the answer to the question that is under way.
func (i *importer) imported(now machine.Instant, in protocol.ExportReply, out *Outbox) {
	m := i.machine
	if i.asked == 0 || in.Number != i.asked || in.Layout != m.present().Number {
		return
	}
	i.asked, i.next = 0, now.Add(askEvery)
	if len(in.IDs)+len(in.Gone) > 0 {
		i.next = now.Add(askSoon)
	}
	for _, id := range in.Gone {
		s, there := i.reports[id]
		if delete(i.reports, id); there && s.release(id) {
			s.put(request{id: id, op: opForget, since: now})
			m.want(&s.set)
		}
	}
	for _, id := range in.IDs {
		i.take(now, id)
	}
	if i.listed = max(i.listed, uint32(in.Layout)+1); in.Over {
		i.finish(now, out)
	}
	for _, s := range m.order {
		m.want(&s.set)
	}
}

// take takes an id over, if this node serves its shard and has not heard something else of it since it has asked.
func (i *importer) take(now machine.Instant, id string) {
	m := i.machine
	s := m.shards[m.present().ShardOf(protocol.HashOf(id))]
	if s == nil || !s.known || s.stops || m.cfg.Fault(id) != "" {
		return
	}
	_, told := i.reports[id]
	if givenUp := !told && s.release(id); !givenUp && s.asked(id) != opNone {
		return
	}
	m.stats.Taken++
	s.remember(now, id, false)
	s.await([]string{id})
}

// finish ends the import: no former set has anything any more.
func (i *importer) finish(now machine.Instant, out *Outbox) {
	i.over, i.reports, i.line = true, nil, nil
	for _, s := range i.machine.order {
		i.release(now, s)
	}
	out.Over = append(out.Over, i.machine.present().Number)
}

// release queues the held ids for writing.
func (i *importer) release(now machine.Instant, s *shard) {
	for _, id := range sorted(s.held) {
		s.put(request{id: id, op: opForget, since: now})
	}
	s.held = nil
	i.machine.want(&s.set)
}
