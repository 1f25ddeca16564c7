// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package recall

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// The node that serves the first shard of the layout with the highest number gives what the sets of former layouts have
// to those who ask for it ([taker]). It finds these sets by the index, opens them under its epoch, which locks out
// whoever served their shards, and keeps their ids until they are taken out.
//
//	index: 100, 200 ──> sets of 100: open, when the shard is retired ──> ids, by the shards of 200 ──> Given
//	       └── taken out when all sets of 100 are empty                  └── taken out when a taker says so

const (
	givenAgain = 5 * time.Second // After which an id that was given and is still there is given again.
	loadedMost = 1 << 16         // From how many ids in memory on no further set is opened.
)

// giver has the index and the sets of former layouts, if this node serves the first shard; else index is nil.
type giver struct {
	desk *Desk

	index   *index
	numbers []*number
	todo    []Set           // May be opened, the first one first; some are begun.
	sets    map[Set]*former // Those that are begun.
	loaded  int             // The ids that these have.
	loading int             // Those of these that were not read yet.

	queues  map[protocol.ShardID][]lent // The ids to be given, by their present shards; some may be gone.
	lent    []lent                      // Those that were given, in that order.
	waiting map[gossip.NodeID]*question // Questions without an answer, the last one of each node.
}

// number is a former number of shards, and how far its sets have come.
type number struct {
	of      uint32
	inForce bool   // The layout is in force: only the sets of retired shards may be opened.
	sets    []step // By number.
	left    int    // Of these, those that are not done.
}

// step is how far a set of a former layout has come.
type step uint8

const (
	stepKept  step = iota // Its shard is not retired yet.
	stepReady             // It may be opened.
	stepBegun             // It is being opened, or open.
	stepDone              // It is empty, and nobody can write it any more.
)

// lent is an id that was given.
type lent struct {
	set *former
	id  string
	at  machine.Instant
}

// question is a question of a taker, and the sets that are being written for it.
type question struct {
	take    protocol.Take
	writing map[*former]struct{}
}

// begin begins with the index, under the epoch of the first shard.
func (g *giver) begin(epoch protocol.Epoch) {
	g.end()
	g.sets, g.queues, g.waiting = map[Set]*former{}, map[protocol.ShardID][]lent{}, map[gossip.NodeID]*question{}
	g.index = &index{giver: g, set: set{epoch: epoch}}
	g.index.holder = g.index
	g.desk.add(&g.index.set)
}

// end ends what the giver does. Calls that are under way mean nothing any more.
func (g *giver) end() {
	if g.index == nil {
		return
	}
	g.desk.remove(&g.index.set)
	for _, f := range g.sets { //quorate:unordered each entry by itself
		g.desk.remove(&f.set)
	}
	*g = giver{desk: g.desk}
}

// know takes a number of shards for a former one, if it is not the present one.
func (g *giver) know(of uint32) {
	d := g.desk
	if of == d.present().Shards {
		return
	}
	n := &number{of: of, inForce: d.isInForce(of), sets: make([]step, of), left: int(of)}
	g.numbers = append(g.numbers, n)
	for i := range of {
		if !n.inForce || d.retired[d.layouts[0].Shard(i)] {
			g.permit(n, i)
		}
	}
}

// permit has a set opened.
func (g *giver) permit(n *number, i uint32) {
	if n.sets[i] == stepKept {
		n.sets[i] = stepReady
		g.todo = append(g.todo, Set{i, n.of})
	}
}

// retire notes that a shard of the former layout is retired.
func (g *giver) retire(id protocol.ShardID) {
	if n := g.number(g.desk.layouts[0].Shards); n != nil && n.inForce {
		g.permit(n, id.Index())
	}
}

// relayout notes that the former layout is in force no more: all of its shards are retired.
func (g *giver) relayout() {
	for _, n := range g.numbers {
		n.inForce = false
		for i := range n.of {
			g.permit(n, i)
		}
		g.index.drop(n)
	}
}

// number returns what is known of a former number of shards; nil: it is none.
func (g *giver) number(of uint32) *number {
	if i := slices.IndexFunc(g.numbers, func(n *number) bool { return n.of == of }); i >= 0 {
		return g.numbers[i]
	}
	return nil
}

// forgo forgets a number of shards, which the index does not have any more.
func (g *giver) forgo(of uint32) {
	g.numbers = slices.DeleteFunc(g.numbers, func(n *number) bool { return n.of == of && n.left == 0 })
}

// owes reports whether others wait until the index tells of all layouts in force.
func (g *giver) owes() bool {
	unlisted := func(s *shard) bool { return s.writing() > 0 && !s.writable() }
	return g.index != nil && (len(g.waiting) > 0 && !g.index.lists() || slices.ContainsFunc(g.desk.order, unlisted))
}

// fault says what is wrong with one of the sets that are open, or with the index; empty: nothing is.
func (g *giver) fault() string {
	if g.index == nil {
		return ""
	}
	if g.index.failures > 0 {
		return "the numbers of shards that it has: " + g.index.why
	}
	for _, name := range sortedBy(g.sets, Set.compare) {
		if f := g.sets[name]; f.failures > 0 {
			return fmt.Sprintf("shard %d of %d: %s", name.Number, name.Of, f.why)
		}
	}
	return ""
}

// left returns how many sets of former numbers of shards are not known to be empty.
func (g *giver) left() (sets int) {
	for _, n := range g.numbers {
		sets += n.left
	}
	return sets
}

// load opens further sets, as many as may be.
func (g *giver) load() {
	for len(g.todo) > 0 && g.loading < max(1, g.desk.cfg.Calls/2) && g.loaded < loadedMost {
		next := g.todo[0]
		g.todo = g.todo[1:]
		g.open(next)
	}
}

// open has a set opened that may be, and is not yet.
func (g *giver) open(name Set) {
	n := g.number(name.Of)
	if n == nil || n.sets[name.Number] != stepReady {
		return // It was opened out of turn, since something was to be taken out.
	}
	n.sets[name.Number] = stepBegun
	f := &former{giver: g, set: set{name: name, epoch: g.index.epoch}, ids: map[string]struct{}{}}
	f.holder = f
	g.sets[name] = f
	g.loading++
	g.desk.add(&f.set)
}

// finish notes that a set is empty.
func (g *giver) finish(f *former) {
	delete(g.sets, f.name)
	g.desk.remove(&f.set)
	n := g.number(f.name.Of)
	n.sets[f.name.Number] = stepDone
	n.left--
	g.index.drop(n)
}

// asked takes a question of a taker.
func (g *giver) asked(now machine.Instant, in protocol.Asked, out *Outbox) {
	if g.index == nil || in.Take.Layout != g.desk.present().Number {
		return
	}
	q := &question{take: in.Take, writing: map[*former]struct{}{}}
	g.waiting[in.From] = q
	for _, id := range in.Take.Gone {
		g.takeOut(id, q)
	}
	g.answer(now, out)
}

// called notes that a call of a set has ended: no question waits for the set any more.
func (g *giver) called(now machine.Instant, f *former, out *Outbox) {
	for _, q := range g.waiting { //quorate:unordered each entry by itself
		delete(q.writing, f)
	}
	g.answer(now, out)
}

// answer answers the questions for which nothing is being written, once the index tells of all layouts.
func (g *giver) answer(now machine.Instant, out *Outbox) {
	if !g.index.lists() || len(g.waiting) == 0 {
		return
	}
	g.recover(now)
	for _, node := range sortedBy(g.waiting, gossip.NodeID.Compare) {
		q := g.waiting[node]
		if len(q.writing) > 0 {
			continue
		}
		delete(g.waiting, node)
		give := protocol.Given{Layout: q.take.Layout, Number: q.take.Number, Over: len(g.numbers) == 0}
		for _, id := range q.take.Gone {
			if g.takeOut(id, q) {
				give.Gone = append(give.Gone, id)
			}
		}
		give.IDs = g.lend(now, q.take.Shards)
		out.Give = append(out.Give, Give{To: node, Given: give})
	}
}

// takeOut has an id taken out of all former sets, and reports whether none has it any more. It notes with the question
// which sets are written for that.
func (g *giver) takeOut(id string, q *question) (gone bool) {
	gone = true
	for _, n := range g.numbers {
		name := Set{uint32(protocol.HashOf(id) % uint64(n.of)), n.of} // Below the number of shards.
		switch n.sets[name.Number] {
		case stepDone:
			continue
		case stepReady:
			g.open(name)
		}
		f := g.sets[name]
		if f == nil || !f.takeOut(id) {
			gone = false
		}
		if f != nil && f.asked(id) != opNone {
			q.writing[f] = struct{}{}
		}
	}
	return gone
}

// lend returns ids of shards, which are given for a while.
func (g *giver) lend(now machine.Instant, shards []protocol.ShardID) (ids []string) {
	size := 0
	for _, shard := range shards {
		queue := g.queues[shard]
		for len(queue) > 0 && len(ids) < takeMost && size < takeBytes {
			next := queue[0]
			queue = queue[1:]
			if next.set.has(next.id) {
				ids = append(ids, next.id)
				size += len(next.id)
				next.at = now
				g.lent = append(g.lent, next)
			}
		}
		if g.queues[shard] = queue; len(queue) == 0 {
			delete(g.queues, shard)
		}
	}
	return ids
}

// queue has an id given to whoever serves its shard.
func (g *giver) queue(f *former, id string) {
	shard := g.desk.present().ShardOf(protocol.HashOf(id))
	g.queues[shard] = append(g.queues[shard], lent{set: f, id: id})
}

// recover has ids given again that were not taken out in time.
func (g *giver) recover(now machine.Instant) {
	for len(g.lent) > 0 && now.Sub(g.lent[0].at) >= givenAgain {
		late := g.lent[0]
		g.lent = g.lent[1:]
		if late.set.has(late.id) {
			g.queue(late.set, late.id)
		}
	}
}
