// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"
	"time"

	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/machine"
)

// Since when a replica lags, for people who ask about a key. The time at which this replica takes an update in is
// remembered for a while ([lags.received]): a replica that lacks the update has lacked it at least since then. So is
// since when other replicas were found to lack something, or have not answered a batch ([lags.noteGap]), until they
// have it ([lags.has]). An answer takes the earliest of these times ([lags.since]). No decision depends on them, and
// what is forgotten makes an answer name a later time, which is still true.

// lags is the part of a group that remembers since when replicas lag.
type lags struct {
	m           *env
	table       *table.Table
	receipts    []receipt // A ring once it is full.
	nextReceipt int       // Where the next receipt goes in a full ring.
	gaps        map[ReplicaID]map[string]gap
	gapCount    int // How many gaps there are.
}

// receipt says that at a time this replica held the updates of a key by an origin up to a number. The origin
// [tombOrigin] stands for the tombstone of the key.
type receipt struct {
	key string
	mark
	at machine.Instant
}

// gap says since when a replica lacks, or may lack, the updates of a key by an origin up to
// a number.
type gap struct {
	mark
	at         machine.Instant
	unanswered bool // A batch of this node with the key was not answered.
}

const (
	maxReceipts = 4096
	maxGaps     = 4096
	// tombOrigin stands for a tombstone where an origin of updates is named. No node has it.
	tombOrigin = ^crdt.Origin(0)
)

func newLags(m *env, t *table.Table) lags {
	return lags{m: m, table: t, gaps: map[ReplicaID]map[string]gap{}}
}

// received notes that this replica holds the updates of an origin up to a number from now on.
func (l *lags) received(key string, of mark) {
	t := receipt{key, of, l.m.now.Mono}
	if len(l.receipts) < maxReceipts {
		l.receipts = append(l.receipts, t)
		return
	}
	l.receipts[l.nextReceipt] = t
	l.nextReceipt = (l.nextReceipt + 1) % maxReceipts
}

// receivedEntry notes that this replica holds everything of an entry from now on.
func (l *lags) receivedEntry(e table.Entry) {
	if e.State == table.Deleted {
		l.received(e.Key, mark{tombOrigin, 1})
	}
	for _, v := range e.Versions {
		l.received(e.Key, mark{v.Origin, v.Count})
	}
}

// noteGap notes that a replica lacks something, unless an earlier gap of the key, or one of another origin, is known.
func (l *lags) noteGap(id ReplicaID, key string, m gap) {
	if before, ok := l.gaps[id][key]; ok && (before.origin != m.origin || before.at <= m.at) {
		return
	} else if !ok {
		if l.gapCount >= maxGaps {
			return
		}
		l.gapCount++
	}
	if l.gaps[id] == nil {
		l.gaps[id] = map[string]gap{}
	}
	l.gaps[id][key] = m
}

// unanswered notes which replicas have not answered a batch.
func (l *lags) unanswered(f *flight) {
	for _, id := range sortedIDs(f.to) {
		for key, of := range f.keys { //quorate:unordered which of too many are noted changes no decision
			l.noteGap(id, key, gap{of, f.sent, true})
		}
	}
}

// has notes that a replica lacks nothing of a key any more.
func (l *lags) has(id ReplicaID, key string) {
	if _, ok := l.gaps[id][key]; !ok {
		return
	}
	l.gapCount--
	if delete(l.gaps[id], key); len(l.gaps[id]) == 0 {
		delete(l.gaps, id)
	}
}

// answered notes that a replica has taken a batch, but for the keys that it has named.
func (l *lags) answered(id ReplicaID, f *flight) {
	if len(l.gaps[id]) == 0 {
		return
	}
	for key, of := range f.keys { //quorate:unordered each key by itself
		m, ok := l.gaps[id][key]
		if ok && m.origin == of.origin && m.to <= of.to && !f.untaken[id][key] {
			l.has(id, key)
		}
	}
}

// adopted forgets, in a new generation, the replicas that do not count any more and the keys that this replica holds no
// more: if such a key comes back, its updates are numbered anew.
func (l *lags) adopted(r *Register) {
	held := func(key string) bool {
		_, ok := l.table.Get(key)
		return ok
	}
	l.receipts = slices.DeleteFunc(slices.Concat(l.receipts[l.nextReceipt:], l.receipts[:l.nextReceipt]), func(t receipt) bool { return !held(t.key) })
	l.nextReceipt = 0
	for id, of := range l.gaps { //quorate:unordered each replica by itself
		for key := range of { //quorate:unordered each key by itself
			if !held(key) {
				l.has(id, key)
			}
		}
	}
	for id, of := range l.gaps { //quorate:unordered each replica by itself
		if !r.In(id) {
			l.gapCount -= len(of)
			delete(l.gaps, id)
		}
	}
}

// waitedFor returns for how long a batch with a key has waited for a replica, 0 if none has.
func (l *lags) waitedFor(id ReplicaID, key string) time.Duration {
	if m, ok := l.gaps[id][key]; ok && m.unanswered {
		return l.m.now.Mono.Sub(m.at)
	}
	return 0
}

// since returns for how long, at least, a replica has lacked updates of a key, and remembers it. It is more than 0.
func (l *lags) since(id ReplicaID, key string, own *table.Entry, lacking []missingRange) time.Duration {
	first := mark{}
	now := l.m.now.Mono
	from := now
	for i, of := range lacking {
		if at := l.earliest(id, key, own, of); i == 0 || at < from {
			from, first = at, mark{of.origin, of.to}
		}
	}
	before := l.gaps[id][key]
	l.has(id, key)
	l.noteGap(id, key, gap{first, from, before.unanswered && before.origin == first.origin && before.at == from})
	return max(now.Sub(from), 1)
}

// missingRange are updates of an origin that a replica lacks: those after number have, up to the number of the mark.
type missingRange struct {
	mark

	have uint64
}

// earliest returns the earliest time at which another replica is known to have held updates that a replica lacks.
func (l *lags) earliest(id ReplicaID, key string, own *table.Entry, of missingRange) machine.Instant {
	at := l.m.now.Mono
	if countOf(own, of.origin) > of.have {
		at = min(at, l.changed(key))
	}
	if m, ok := l.gaps[id][key]; ok && m.origin == of.origin && m.to > of.have {
		at = min(at, m.at)
	}
	for _, t := range l.receipts {
		if t.at < at && t.key == key && t.origin == of.origin && t.to > of.have {
			at = t.at
		}
	}
	return at
}

// changed returns when the entry of a key changed last, or up to two seconds later.
func (l *lags) changed(key string) machine.Instant {
	m := l.m
	return min(m.now.Mono, m.began.Add(time.Duration(l.table.ChangedAt(key)+2)*time.Second))
}

// countOf returns how many updates of an origin an entry holds; nil is no entry.
func countOf(e *table.Entry, origin crdt.Origin) uint64 {
	switch {
	case e == nil:
		return 0
	case origin != tombOrigin:
		return max(e.Versions.Of(origin), e.Floor.Of(origin))
	case e.State == table.Deleted:
		return 1
	default:
		return 0
	}
}

// lacks returns which of the updates that homes have answered with are not in an entry. A tombstone lacks nothing:
// updates that are older than it have no effect.
func (x *keyQuery) lacks(all table.Versions, e *table.Entry) (of []missingRange) {
	if e != nil && e.State == table.Deleted {
		return nil
	}
	for _, id := range x.ids() {
		if countOf(x.answers[id], tombOrigin) > 0 {
			return []missingRange{{mark{tombOrigin, 1}, 0}}
		}
	}
	for _, v := range all {
		if have := countOf(e, v.Origin); have < v.Count {
			of = append(of, missingRange{mark{v.Origin, v.Count}, have})
		}
	}
	return of
}
