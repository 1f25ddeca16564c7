// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package remembering

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// The node that serves the first shard of the layout with the highest number gives what the sets of former layouts have
// to those who ask for it ([importer]). It finds these sets by the index, opens them under its epoch, which locks out
// whoever served their shards, and keeps their ids until they are taken out.
//
//	index: 100, 200 ──> sets of 100: open, when the shard is retired ──> ids, by the shards of 200 ──> ExportReply
//	       └── taken out when all sets of 100 are empty                  └── taken out when an importer says so

const (
	offerTimeout = 5 * time.Second // After which an id that was given and is still there is given again.
	maxLoaded    = 1 << 16         // From how many ids in memory on no further set is opened.
)

// exporter reads the index and the sets of former layouts, and gives their ids to the importers, if this node serves
// the first shard. On another node index is nil.
type exporter struct {
	machine *Machine

	index   *indexSet
	numbers []*formerNumber
	todo    []Set              // May be opened, the first one first; some are begun.
	sets    map[Set]*formerSet // Those that are begun.
	loaded  int                // The ids that these have.
	loading int                // Those of these that were not read yet.

	queues  map[protocol.ShardID][]offer // The ids to be given, by their present shards; some may be gone.
	offered []offer                      // Those that were given, in that order.
	waiting map[gossip.NodeID]*question  // Questions without an answer, the last one of each node.
}

// formerNumber is a former number of shards, and how far the export of its sets has come.
type formerNumber struct {
	of      uint32
	inForce bool   // The layout is in force: only the sets of retired shards may be opened.
	sets    []step // By number.
	left    int    // Of these, those that are not done.
}

// step is how far the export of a set of a former layout has come.
type step uint8

const (
	stepKept  step = iota // Its shard is not retired yet.
	stepReady             // It may be opened.
	stepBegun             // It is being opened, or open.
	stepDone              // It is empty, and nobody can write it any more.
)

// offer is an id of a former set that is to be given, or was.
type offer struct {
	set *formerSet
	id  string
	at  machine.Instant // When it was given last.
}

// question is a question of an importer, and the sets that are being written for it.
type question struct {
	take    protocol.ExportRequest
	writing map[*formerSet]struct{}
}

// begin begins with the index, under the epoch of the first shard.
func (e *exporter) begin(epoch protocol.Epoch) {
	e.end()
	e.sets, e.queues, e.waiting = map[Set]*formerSet{}, map[protocol.ShardID][]offer{}, map[gossip.NodeID]*question{}
	e.index = &indexSet{exporter: e, set: set{epoch: epoch}}
	e.index.holder = e.index
	e.machine.add(&e.index.set)
}

// end ends what the exporter does. Calls that are under way mean nothing any more.
func (e *exporter) end() {
	if e.index == nil {
		return
	}
	e.machine.remove(&e.index.set)
	for _, f := range e.sets { //quorate:unordered each entry by itself
		e.machine.remove(&f.set)
	}
	*e = exporter{machine: e.machine}
}

// addFormer records a former number of shards; the present one is ignored.
func (e *exporter) addFormer(of uint32) {
	m := e.machine
	if of == m.present().Shards {
		return
	}
	n := &formerNumber{of: of, inForce: m.isInForce(of), sets: make([]step, of), left: int(of)}
	e.numbers = append(e.numbers, n)
	for i := range of {
		if !n.inForce || m.retired[m.layouts[0].Shard(i)] {
			e.permit(n, i)
		}
	}
}

// permit queues a set to be opened: no node can write to it any more.
func (e *exporter) permit(n *formerNumber, i uint32) {
	if n.sets[i] == stepKept {
		n.sets[i] = stepReady
		e.todo = append(e.todo, Set{i, n.of})
	}
}

// retire notes that a shard of the former layout is retired.
func (e *exporter) retire(id protocol.ShardID) {
	if n := e.formerNumber(e.machine.layouts[0].Shards); n != nil && n.inForce {
		e.permit(n, id.Index())
	}
}

// relayout notes that the former layout is in force no more: all of its shards are retired.
func (e *exporter) relayout() {
	for _, n := range e.numbers {
		n.inForce = false
		for i := range n.of {
			e.permit(n, i)
		}
		e.index.drop(n)
	}
}

// formerNumber returns what is known of a former number of shards; nil: it is none.
func (e *exporter) formerNumber(of uint32) *formerNumber {
	if i := slices.IndexFunc(e.numbers, func(n *formerNumber) bool { return n.of == of }); i >= 0 {
		return e.numbers[i]
	}
	return nil
}

// removeFormer drops a number of shards that is not in the index any more.
func (e *exporter) removeFormer(of uint32) {
	e.numbers = slices.DeleteFunc(e.numbers, func(n *formerNumber) bool { return n.of == of && n.left == 0 })
}

// owes reports whether others wait until the index tells of all layouts in force.
func (e *exporter) owes() bool {
	unlisted := func(s *shard) bool { return s.writing() > 0 && !s.writable() }
	return e.index != nil && (len(e.waiting) > 0 && !e.index.lists() || slices.ContainsFunc(e.machine.order, unlisted))
}

// fault says what is wrong with one of the sets that are open, or with the index; empty: nothing is.
func (e *exporter) fault() string {
	if e.index == nil {
		return ""
	}
	if e.index.failures > 0 {
		return "the numbers of shards that it has: " + e.index.why
	}
	for _, name := range sortedBy(e.sets, Set.compare) {
		if f := e.sets[name]; f.failures > 0 {
			return fmt.Sprintf("shard %d of %d: %s", name.Number, name.Of, f.why)
		}
	}
	return ""
}

// left returns how many sets of former numbers of shards are not known to be empty.
func (e *exporter) left() (sets int) {
	for _, n := range e.numbers {
		sets += n.left
	}
	return sets
}

// load opens further sets, as many as may be.
func (e *exporter) load() {
	for len(e.todo) > 0 && e.loading < max(1, e.machine.cfg.Calls/2) && e.loaded < maxLoaded {
		next := e.todo[0]
		e.todo = e.todo[1:]
		e.open(next)
	}
}

// open has a set opened that may be, and is not yet.
func (e *exporter) open(name Set) {
	n := e.formerNumber(name.Of)
	if n == nil || n.sets[name.Number] != stepReady {
		return // It was opened out of turn, since something was to be taken out.
	}
	n.sets[name.Number] = stepBegun
	f := &formerSet{exporter: e, set: set{name: name, epoch: e.index.epoch}, ids: map[string]struct{}{}}
	f.holder = f
	e.sets[name] = f
	e.loading++
	e.machine.add(&f.set)
}

// finish notes that a set is empty.
func (e *exporter) finish(f *formerSet) {
	delete(e.sets, f.name)
	e.machine.remove(&f.set)
	n := e.formerNumber(f.name.Of)
	n.sets[f.name.Number] = stepDone
	n.left--
	e.index.drop(n)
}

// asked takes a question of an importer.
func (e *exporter) asked(now machine.Instant, in protocol.Asked, out *Outbox) {
	if e.index == nil || in.Request.Layout != e.machine.present().Number {
		return
	}
	q := &question{take: in.Request, writing: map[*formerSet]struct{}{}}
	e.waiting[in.From] = q
	for _, id := range in.Request.Gone {
		e.takeOut(id, q)
	}
	e.answer(now, out)
}

// called notes that a call of a set has ended: no question waits for the set any more.
func (e *exporter) called(now machine.Instant, f *formerSet, out *Outbox) {
	for _, q := range e.waiting { //quorate:unordered each entry by itself
		delete(q.writing, f)
	}
	e.answer(now, out)
}

// answer answers the questions for which nothing is being written, once the index tells of all layouts.
func (e *exporter) answer(now machine.Instant, out *Outbox) {
	if !e.index.lists() || len(e.waiting) == 0 {
		return
	}
	e.recover(now)
	for _, node := range sortedBy(e.waiting, gossip.NodeID.Compare) {
		q := e.waiting[node]
		if len(q.writing) > 0 {
			continue
		}
		delete(e.waiting, node)
		answer := protocol.ExportReply{Layout: q.take.Layout, Number: q.take.Number, Over: len(e.numbers) == 0}
		for _, id := range q.take.Gone {
			if e.takeOut(id, q) {
				answer.Gone = append(answer.Gone, id)
			}
		}
		answer.IDs = e.offer(now, q.take.Shards)
		out.Answer = append(out.Answer, Answer{To: node, Given: answer})
	}
}

// takeOut has an id taken out of all former sets, and reports whether none has it any more. It notes with the question
// which sets are written for that.
func (e *exporter) takeOut(id string, q *question) (gone bool) {
	gone = true
	for _, n := range e.numbers {
		name := Set{uint32(protocol.HashOf(id) % uint64(n.of)), n.of} // Below the number of shards.
		switch n.sets[name.Number] {
		case stepDone:
			continue
		case stepReady:
			e.open(name)
		}
		f := e.sets[name]
		if f == nil || !f.takeOut(id) {
			gone = false
		}
		if f != nil && f.asked(id) != opNone {
			q.writing[f] = struct{}{}
		}
	}
	return gone
}

// offer returns ids for the shards, oldest first. Each is offered again after offerTimeout unless it was taken out.
func (e *exporter) offer(now machine.Instant, shards []protocol.ShardID) (ids []string) {
	size := 0
	for _, shard := range shards {
		queue := e.queues[shard]
		for len(queue) > 0 && len(ids) < maxAskIDs && size < maxAskBytes {
			next := queue[0]
			queue = queue[1:]
			if next.set.has(next.id) {
				ids = append(ids, next.id)
				size += len(next.id)
				next.at = now
				e.offered = append(e.offered, next)
			}
		}
		if e.queues[shard] = queue; len(queue) == 0 {
			delete(e.queues, shard)
		}
	}
	return ids
}

// queue makes an id of a former set available to the node that serves its present shard.
func (e *exporter) queue(f *formerSet, id string) {
	shard := e.machine.present().ShardOf(protocol.HashOf(id))
	e.queues[shard] = append(e.queues[shard], offer{set: f, id: id})
}

// recover queues the ids again that were given and not taken out within offerTimeout.
func (e *exporter) recover(now machine.Instant) {
	for len(e.offered) > 0 && now.Sub(e.offered[0].at) >= offerTimeout {
		late := e.offered[0]
		e.offered = e.offered[1:]
		if late.set.has(late.id) {
			e.queue(late.set, late.id)
		}
	}
}
