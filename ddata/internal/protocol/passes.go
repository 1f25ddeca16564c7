// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"maps"
	"slices"

	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/machine"
)

// A pass compares two tables and takes in what differs, both ways: the sums of all
// buckets, of groups of buckets, the hashes of buckets, and then the entries.
//
//	asks          answers
//	Compare  ───> Groups        equal: the pass has ended
//	AskBuckets ─> BucketHashes
//	Pull     ───> Pulled        until nothing is left; what the other lacks goes back (Put)
//
// The answering side keeps nothing. An answer says in which generation it was given: so it
// is the fence of catching up, after which the other acknowledges nothing to a coordinator
// of an earlier generation. A pass ends under writes, since each bucket is gone through
// once and states only grow.

const (
	groupsOfBuckets = 64
	bucketsAGroup   = table.Buckets / groupsOfBuckets
	pullsAtOnce     = 2   // Pulls that are under way in one pass.
	bucketsAPull    = 512 // Buckets of one pull at most.
)

// passes are the comparisons that this replica has begun.
type passes struct {
	group *group
	open  map[PassID]*pass
	next  machine.Instant // When the next comparison with a random replica begins.
	shed  uint64          // Entries of passes that the table refused.
}

// pass is one comparison.
type pass struct {
	id      PassID
	peer    *peer
	gen     uint64
	catchUp bool
	whole   bool // The other had caught up when the comparison began.
	began   machine.Instant
	moved   machine.Instant // When an answer came last.
	fenced  bool            // The other has answered, knowing of all unclean starts of this replica.
	sure    bool            // It was sure when it answered first.
	asked   int             // Groups whose hashes are awaited.
	todo    []int           // Buckets that differ and are not being pulled.
	pulling map[int]bool    // Buckets that are being pulled.
	pulls   int             // Pulls under way.
	refused bool            // An entry could not be taken in: nothing is complete.
}

func newPasses(g *group) passes { return passes{group: g, open: map[PassID]*pass{}} }

// begin begins a comparison with a peer.
func (s *passes) begin(p *peer, catchUp bool) {
	g := s.group
	g.m.pass++
	s.open[g.m.pass] = &pass{id: g.m.pass, peer: p, gen: g.gen(), catchUp: catchUp, whole: counts(p.caught, g.gen()), began: g.m.now.Mono, moved: g.m.now.Mono, pulling: map[int]bool{}}
	g.send(p, Compare{Pass: g.m.pass, Root: s.root(p.id)})
}

// with reports whether a comparison with a peer is under way.
func (s *passes) with(p *peer) bool {
	for _, x := range s.open { //quorate:unordered any of them
		if x.peer == p {
			return true
		}
	}
	return false
}

// catching is how many passes of catching up are under way.
func (s *passes) catching() int {
	n := 0
	for _, x := range s.open { //quorate:unordered a count
		if x.catchUp {
			n++
		}
	}
	return n
}

// renew gives up the passes of catching up, in favour of a replica that has caught up since
// one of them began: what they have brought is not asked for again.
func (s *passes) renew() {
	early := func(x *pass) bool { return x.catchUp && !x.whole }
	for _, x := range s.open { //quorate:unordered any of them
		if early(x) && counts(x.peer.caught, s.group.gen()) {
			maps.DeleteFunc(s.open, func(_ PassID, x *pass) bool { return early(x) })
			return
		}
	}
}

// going reports whether a pass with a replica that has caught up is under way, and goes on.
func (s *passes) going() bool {
	for _, x := range s.open { //quorate:unordered any of them
		if x.catchUp && x.whole && s.group.m.now.Mono.Sub(x.moved) < s.group.m.cfg.Timing.Patient/2 {
			return true
		}
	}
	return false
}

func (s *passes) endAll() { clear(s.open) }

// tick gives passes up that stand still, and begins one with a random replica when it is
// time for that.
func (s *passes) tick() {
	g := s.group
	now := g.m.now.Mono
	s.giveUp()
	if now < s.next || !g.holds() || s.newcomer(g.self, g.caught) {
		return
	}
	interval := g.m.cfg.Timing.Gossip
	s.next = now.Add(interval*3/4 + g.jitter(interval/2))
	peers := slices.DeleteFunc(g.sorted(), func(p *peer) bool {
		return !g.reg.In(p.id) || !g.present(p.id) || s.with(p) || s.newcomer(p.id, counts(p.caught, g.gen()))
	})
	if len(peers) > 0 && len(s.open) < 2*sourcesAtOnce {
		s.begin(peers[g.m.cfg.Rand.IntN(len(peers))], false)
	}
}

// giveUp gives passes up that stand still.
func (s *passes) giveUp() {
	g := s.group
	for id, x := range s.open { //quorate:unordered each pass by itself
		if g.m.now.Mono.Sub(x.moved) > g.m.cfg.Timing.Patient || g.nodes[x.peer.node] != x.peer {
			delete(s.open, id)
		}
	}
}

// newcomer reports whether a replica joins and has yet to catch up: what the others hold it
// takes in by that alone, and comparisons beside it would bring everything a second time.
func (s *passes) newcomer(id ReplicaID, caught bool) bool {
	return !s.group.reg.Current.Has(id) && !caught
}

// shared reports whether this replica and another are both homes of a bucket.
func (s *passes) shared(bucket int, with ReplicaID) bool {
	v := s.group.views.bucket(bucket)
	return v.has(s.group.self) && v.has(with)
}

// root sums the hashes of the buckets that this replica and another both hold.
func (s *passes) root(with ReplicaID) uint64 {
	g := s.group
	if g.cfg.Copies == 0 {
		return g.table.Root()
	}
	return s.sum(0, table.Buckets, with)
}

func (s *passes) sum(from, to int, with ReplicaID) uint64 {
	var sum uint64
	v := s.group.views
	shared := make([]bool, len(v.all)) // By view: there are far fewer than buckets.
	for i := range v.all {
		shared[i] = v.all[i].has(s.group.self) && v.all[i].has(with)
	}
	for bucket := from; bucket < to; bucket++ {
		if shared[v.of[bucket]] {
			sum += s.group.table.Hash(bucket)
		}
	}
	return sum
}

// hashes returns the hashes of the buckets of some groups, zero for what is not shared.
func (s *passes) hashes(groups []uint8, with ReplicaID) []uint64 {
	all := make([]uint64, 0, len(groups)*bucketsAGroup)
	for _, of := range groups {
		for i := range bucketsAGroup {
			bucket := int(of)*bucketsAGroup + i
			var hash uint64
			if s.shared(bucket, with) {
				hash = s.group.table.Hash(bucket)
			}
			all = append(all, hash)
		}
	}
	return all
}

// received handles the messages of passes. Both sides hold data in the same generation, or
// the message is of no use: the register goes to the one that is behind.
func (s *passes) received(p *peer, e Envelope) {
	g := s.group
	if !g.holds() || !counts(e.Gen, g.gen()) {
		return
	}
	switch b := e.Body.(type) {
	case Compare:
		s.compare(p, b)
	case AskBuckets:
		g.send(p, BucketHashes{Pass: b.Pass, Groups: b.Groups, Hashes: s.hashes(b.Groups, p.id)})
	case Pull:
		s.pull(p, b)
	case Groups:
		if x := s.at(b.Pass, p); x != nil {
			x.fenced, x.sure = e.Restarts >= g.integrity.restarts, !e.Unsure
			s.groups(x, b)
		}
	case BucketHashes:
		if x := s.at(b.Pass, p); x != nil {
			s.buckets(x, b)
		}
	case Pulled:
		if x := s.at(b.Pass, p); x != nil {
			s.pulled(x, b)
		}
	default:
		g.m.counts.Malformed++
	}
}

// at returns the pass that an answer of a peer is about, nil if it has ended.
func (s *passes) at(id PassID, p *peer) *pass {
	x := s.open[id]
	if x == nil || x.peer != p || x.gen != s.group.gen() {
		return nil
	}
	x.moved = s.group.m.now.Mono
	s.group.behind.taken, s.group.behind.moved = s.group.behind.taken+1, x.moved
	return x
}

// compare answers a Compare.
func (s *passes) compare(p *peer, b Compare) {
	g := s.group
	if b.Root == s.root(p.id) {
		g.send(p, Groups{Pass: b.Pass, Same: true})
		return
	}
	sums := make([]uint64, groupsOfBuckets)
	for i := range sums {
		sums[i] = s.sum(i*bucketsAGroup, (i+1)*bucketsAGroup, p.id)
	}
	g.send(p, Groups{Pass: b.Pass, Sums: sums})
}

// groups asks for the buckets of those groups that differ.
func (s *passes) groups(x *pass, b Groups) {
	var differ []uint8
	for i, sum := range b.Sums {
		if i < groupsOfBuckets && sum != s.sum(i*bucketsAGroup, (i+1)*bucketsAGroup, x.peer.id) {
			differ = append(differ, uint8(i))
		}
	}
	if x.asked = len(differ); x.asked > 0 {
		s.group.send(x.peer, AskBuckets{Pass: x.id, Groups: differ})
	}
	s.goOn(x)
}

// buckets notes which buckets differ.
func (s *passes) buckets(x *pass, b BucketHashes) {
	if len(b.Hashes) != len(b.Groups)*bucketsAGroup || x.asked == 0 {
		s.group.m.counts.Malformed++
		return
	}
	x.asked = 0
	own := s.hashes(b.Groups, x.peer.id)
	for i, hash := range b.Hashes {
		if hash != own[i] {
			x.todo = append(x.todo, int(b.Groups[i/bucketsAGroup])*bucketsAGroup+i%bucketsAGroup)
		}
	}
	s.goOn(x)
}

// goOn pulls the next buckets, and ends the pass when nothing is left.
func (s *passes) goOn(x *pass) {
	for x.pulls < pullsAtOnce && len(x.todo) > 0 {
		s.group.send(x.peer, Pull{Pass: x.id, Buckets: s.nextBuckets(x)})
		x.pulls++
	}
	if x.pulls > 0 || x.asked > 0 {
		return
	}
	delete(s.open, x.id)
	s.group.m.counts.Passes++
	if x.refused {
		return
	}
	if x.catchUp {
		s.group.behind.took(x)
	}
	s.group.integrity.ended(x)
	s.group.restored()
	s.group.majorities.ended(x)
}

// nextBuckets takes the buckets of the next pull, with what this replica holds of them.
func (s *passes) nextBuckets(x *pass) []BucketSummary {
	var all []BucketSummary
	for size := 0; len(x.todo) > 0 && len(all) < bucketsAPull && size < s.group.m.cfg.Bounds.MessageBytes/4; {
		bucket := x.todo[0]
		x.todo = x.todo[1:]
		x.pulling[bucket] = true
		of := BucketSummary{Bucket: uint16(bucket)}
		for _, k := range s.group.table.Summaries(bucket) {
			of.Keys = append(of.Keys, KeyHash{Key: k.KeyHash, Entry: k.Hash})
		}
		slices.SortFunc(of.Keys, func(a, b KeyHash) int { return compare64(a.Key, b.Key) })
		all = append(all, of)
		size += 4 + 16*len(of.Keys)
	}
	return all
}

func compare64(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	default:
		return 0
	}
}

// pull answers a Pull: with the entries that the other does not have like this, bucket by
// bucket, until the message is full.
func (s *passes) pull(p *peer, b Pull) {
	g := s.group
	answer, size := Pulled{Pass: b.Pass, Stamp: g.gen()}, 0
	named := map[uint16]bool{}
	for _, of := range b.Buckets {
		if named[of.Bucket] {
			continue
		}
		named[of.Bucket] = true
		if int(of.Bucket) >= table.Buckets || !s.shared(int(of.Bucket), p.id) {
			answer.Done = append(answer.Done, of.Bucket)
			continue
		}
		if size >= g.m.cfg.Bounds.MessageBytes {
			break
		}
		entries, wants, all := s.differing(of, g.m.cfg.Bounds.MessageBytes-size)
		for _, e := range entries {
			size += table.SizeOf(e)
		}
		answer.Entries = append(answer.Entries, entries...)
		if all {
			answer.Done, answer.Wants = append(answer.Done, of.Bucket), append(answer.Wants, wants...)
		}
	}
	g.send(p, answer)
}

// differing returns the entries of a bucket that another replica lacks or holds otherwise,
// at least one if there is any, and those that this one lacks. It returns all unless there
// are more than fit.
func (s *passes) differing(of BucketSummary, room int) (entries []table.Entry, wants []Want, all bool) {
	theirs := make(map[uint64]uint64, len(of.Keys))
	for _, k := range of.Keys {
		theirs[k.Key] = k.Entry
	}
	for _, k := range s.group.table.Summaries(int(of.Bucket)) {
		hash, ok := theirs[k.KeyHash]
		delete(theirs, k.KeyHash)
		if ok && hash == k.Hash {
			continue
		}
		if room <= 0 {
			return entries, nil, false
		}
		if e, ok := s.group.table.Get(k.Key); ok {
			entries = append(entries, e)
			room -= table.SizeOf(e)
		}
	}
	for _, k := range of.Keys {
		if _, left := theirs[k.Key]; left {
			wants = append(wants, Want{Bucket: of.Bucket, Key: k.Key})
		}
	}
	return entries, wants, true
}

// pulled takes in what came, and gives back what the other lacks.
func (s *passes) pulled(x *pass, b Pulled) {
	g := s.group
	x.pulls--
	var back []table.Entry
	for _, e := range b.Entries {
		if !g.home(g.self, e.Key) {
			g.m.counts.Foreign++
			continue
		}
		outcome, err := g.table.Join(e)
		if err != nil || outcome == table.Refused {
			x.refused = true
			s.shed++
			g.m.counts.Refused++
			continue
		}
		g.m.counts.Pulled++
		if outcome == table.Applied {
			g.lags.tookEntry(e)
		}
		if own, ok := g.table.Get(e.Key); ok && table.HashOfEntry(own) != table.HashOfEntry(e) {
			back = append(back, own)
		}
	}
	back = append(back, s.wanted(x, b.Wants)...)
	for _, bucket := range b.Done {
		delete(x.pulling, int(bucket))
	}
	g.give(x.peer, back)
	if len(b.Done) == 0 && len(b.Entries) == 0 {
		delete(s.open, x.id) // The other can go no further: a later pass begins anew.
		return
	}
	if x.pulls == 0 { // What was asked for and is not done is asked for again.
		left := make([]int, 0, len(x.pulling))
		for bucket := range x.pulling { //quorate:unordered sorted below
			left = append(left, bucket)
		}
		slices.Sort(left)
		clear(x.pulling)
		x.todo = append(left, x.todo...)
	}
	s.goOn(x)
}

// wanted returns the entries that wants name, in buckets that are being pulled. Each bucket is listed once, in
// whatever order the wants come.
func (s *passes) wanted(x *pass, wants []Want) (entries []table.Entry) {
	asked := map[uint64]bool{} // A hash of a key says its bucket too.
	var buckets []int
	for _, w := range wants {
		asked[w.Key] = true
		buckets = append(buckets, int(w.Bucket))
	}
	slices.Sort(buckets)
	for _, bucket := range slices.Compact(buckets) {
		if !x.pulling[bucket] {
			continue
		}
		for _, k := range s.group.table.Summaries(bucket) {
			if e, ok := s.group.table.Get(k.Key); ok && asked[k.KeyHash] {
				entries = append(entries, e)
			}
		}
	}
	return entries
}
