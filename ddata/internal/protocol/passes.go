// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"maps"
	"slices"

	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/machine"
)

// A pass compares two tables and exchanges what differs: first the sum of all buckets, then the sums of groups of
// buckets, then the hashes of buckets, and then the entries.
//
//	asks          answers
//	Compare  ───> Groups        equal: the pass has ended
//	AskBuckets ─> BucketHashes
//	Pull     ───> PullReply     until nothing is left; what the other side lacks is sent to it (Put)
//
// The answering side keeps no state. An answer names the generation in which it was given; from then on the answering
// replica acknowledges nothing to a coordinator of an earlier generation, which is what catching up relies on (see
// [counts]). A pass comes to an end even while writes go on, since each bucket is gone through once and values only
// grow.

const (
	groupsOfBuckets = 64
	bucketsAGroup   = table.Buckets / groupsOfBuckets
	pullsAtOnce     = 2   // Pulls that are under way in one pass.
	bucketsAPull    = 512 // Buckets of one pull at most.
)

// passes are the comparisons that this replica has begun.
type passes struct {
	*known

	lags  *lags
	open  map[PassID]*pass
	next  machine.Instant // When the next comparison with a random replica begins.
	taken uint64          // How many answers have come,
	moved machine.Instant // and when the last of them came.
}

// exchange is what follows from a message of a pass, for the group to carry out.
type exchange struct {
	back  []table.Entry // What the other replica lacks.
	out   []peerMessage
	ended *pass // The pass has ended, and everything was taken in; nil for none.
}

// pass is one comparison.
type pass struct {
	id         PassID
	peer       *peer
	gen        uint64
	catchingUp bool
	whole      bool // The other had caught up when the comparison began.
	began      machine.Instant
	moved      machine.Instant // When an answer came last.
	fenced     bool            // The other has answered, and knew of the unclean starts that this replica knows of.
	sure       bool            // It was sure when it gave that answer.
	asked      int             // Groups whose hashes are awaited.
	todo       []int           // Buckets that differ and are not being pulled.
	pulling    map[int]bool    // Buckets that are being pulled.
	pulls      int             // Pulls under way.
	refused    bool            // An entry could not be taken in: nothing is complete.
}

func newPasses(k *known, l *lags) passes { return passes{known: k, lags: l, open: map[PassID]*pass{}} }

// begin begins a comparison with a peer.
func (s *passes) begin(p *peer, catchUp bool) peerMessage {
	s.m.pass++
	s.open[s.m.pass] = &pass{id: s.m.pass, peer: p, gen: s.gen(), catchingUp: catchUp, whole: counts(p.caught, s.gen()), began: s.m.now.Mono, moved: s.m.now.Mono, pulling: map[int]bool{}}
	return peerMessage{p, Compare{Pass: s.m.pass, Root: s.root(p.id)}}
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

// catching returns how many passes of catching up are under way.
func (s *passes) catching() int {
	n := 0
	for _, x := range s.open { //quorate:unordered a count
		if x.catchingUp {
			n++
		}
	}
	return n
}

// renew ends the passes of catching up if one of them is with a replica that has caught up since it began: a new pass
// with that one is enough, and does not ask again for what the old ones have brought.
func (s *passes) renew() {
	early := func(x *pass) bool { return x.catchingUp && !x.whole }
	for _, x := range s.open { //quorate:unordered any of them
		if early(x) && counts(x.peer.caught, s.gen()) {
			maps.DeleteFunc(s.open, func(_ PassID, x *pass) bool { return early(x) })
			return
		}
	}
}

// going reports whether a pass with a replica that had caught up is under way, and makes progress.
func (s *passes) going() bool {
	for _, x := range s.open { //quorate:unordered any of them
		if x.catchingUp && x.whole && s.m.now.Mono.Sub(x.moved) < s.m.cfg.Timing.Patient/2 {
			return true
		}
	}
	return false
}

func (s *passes) endAll() { clear(s.open) }

// tick gives passes up that stand still, and begins one with a random replica when it is
// time for that.
func (s *passes) tick() []peerMessage {
	now := s.m.now.Mono
	s.giveUp()
	if now < s.next || !s.holds() || s.newcomer(s.self, s.caught) {
		return nil
	}
	interval := s.m.cfg.Timing.Gossip
	s.next = now.Add(interval*3/4 + s.m.jitter(interval/2))
	peers := slices.DeleteFunc(s.sorted(), func(p *peer) bool {
		return !s.reg.In(p.id) || !s.present(p.id) || s.with(p) || s.newcomer(p.id, counts(p.caught, s.gen()))
	})
	if len(peers) > 0 && len(s.open) < 2*sourcesAtOnce {
		return []peerMessage{s.begin(peers[s.m.cfg.Rand.IntN(len(peers))], false)}
	}
	return nil
}

// giveUp gives passes up that stand still.
func (s *passes) giveUp() {
	for id, x := range s.open { //quorate:unordered each pass by itself
		if s.m.now.Mono.Sub(x.moved) > s.m.cfg.Timing.Patient || s.nodes[x.peer.node] != x.peer {
			delete(s.open, id)
		}
	}
}

// newcomer reports whether a replica joins and has yet to catch up. Other passes with it would bring everything that it
// takes in a second time.
func (s *passes) newcomer(id ReplicaID, caught bool) bool {
	return !s.reg.Current.Has(id) && !caught
}

// shared reports whether this replica and another are both homes of a bucket.
func (s *passes) shared(bucket int, with ReplicaID) bool {
	v := s.views.bucket(bucket)
	return v.has(s.self) && v.has(with)
}

// root sums the hashes of the buckets that this replica and another both hold.
func (s *passes) root(with ReplicaID) uint64 {
	if s.cfg.Copies == 0 {
		return s.table.Root()
	}
	return s.sum(0, table.Buckets, with)
}

func (s *passes) sum(from, to int, with ReplicaID) uint64 {
	var sum uint64
	v := s.views
	shared := make([]bool, len(v.all)) // By view: there are far fewer than buckets.
	for i := range v.all {
		shared[i] = v.all[i].has(s.self) && v.all[i].has(with)
	}
	for bucket := from; bucket < to; bucket++ {
		if shared[v.of[bucket]] {
			sum += s.table.Hash(bucket)
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
				hash = s.table.Hash(bucket)
			}
			all = append(all, hash)
		}
	}
	return all
}

// received handles the messages of passes. A message of another generation is passed over: the side that knows the
// earlier one is sent the register.
func (s *passes) received(p *peer, e Envelope) (x exchange) {
	if !s.holds() || !counts(e.Gen, s.gen()) {
		return exchange{}
	}
	switch b := e.Body.(type) {
	case Compare:
		x.say(p, s.compare(p, b))
	case AskBuckets:
		x.say(p, BucketHashes{Pass: b.Pass, Groups: b.Groups, Hashes: s.hashes(b.Groups, p.id)})
	case Pull:
		x.say(p, s.pull(p, b))
	case Groups:
		if of := s.at(b.Pass, p); of != nil {
			of.fenced, of.sure = e.Restarts >= s.storeCheck.restarts, !e.Unsure
			s.groups(of, b, &x)
		}
	case BucketHashes:
		if of := s.at(b.Pass, p); of != nil {
			s.buckets(of, b, &x)
		}
	case PullReply:
		if of := s.at(b.Pass, p); of != nil {
			s.pulled(of, b, &x)
		}
	default:
		s.m.counts.Malformed++
	}
	return x
}

// say adds a message to an exchange.
func (x *exchange) say(to *peer, body any) { x.out = append(x.out, peerMessage{to, body}) }

// at returns the pass that an answer of a peer is about, nil if it has ended.
func (s *passes) at(id PassID, p *peer) *pass {
	x := s.open[id]
	if x == nil || x.peer != p || x.gen != s.gen() {
		return nil
	}
	x.moved = s.m.now.Mono
	s.taken, s.moved = s.taken+1, x.moved
	return x
}

// compare answers a Compare.
func (s *passes) compare(p *peer, b Compare) Groups {
	if b.Root == s.root(p.id) {
		return Groups{Pass: b.Pass, Same: true}
	}
	sums := make([]uint64, groupsOfBuckets)
	for i := range sums {
		sums[i] = s.sum(i*bucketsAGroup, (i+1)*bucketsAGroup, p.id)
	}
	return Groups{Pass: b.Pass, Sums: sums}
}

// groups asks for the buckets of those groups that differ.
func (s *passes) groups(x *pass, b Groups, follows *exchange) {
	var differ []uint8
	for i, sum := range b.Sums {
		if i < groupsOfBuckets && sum != s.sum(i*bucketsAGroup, (i+1)*bucketsAGroup, x.peer.id) {
			differ = append(differ, uint8(i))
		}
	}
	if x.asked = len(differ); x.asked > 0 {
		follows.say(x.peer, AskBuckets{Pass: x.id, Groups: differ})
	}
	s.proceed(x, follows)
}

// buckets notes which buckets differ.
func (s *passes) buckets(x *pass, b BucketHashes, follows *exchange) {
	if len(b.Hashes) != len(b.Groups)*bucketsAGroup || x.asked == 0 {
		s.m.counts.Malformed++
		return
	}
	x.asked = 0
	own := s.hashes(b.Groups, x.peer.id)
	for i, hash := range b.Hashes {
		if hash != own[i] {
			x.todo = append(x.todo, int(b.Groups[i/bucketsAGroup])*bucketsAGroup+i%bucketsAGroup)
		}
	}
	s.proceed(x, follows)
}

// proceed pulls the next buckets, and ends the pass when nothing is left.
func (s *passes) proceed(x *pass, follows *exchange) {
	for x.pulls < pullsAtOnce && len(x.todo) > 0 {
		follows.say(x.peer, Pull{Pass: x.id, Buckets: s.nextBuckets(x)})
		x.pulls++
	}
	if x.pulls > 0 || x.asked > 0 {
		return
	}
	delete(s.open, x.id)
	s.m.counts.Passes++
	if !x.refused {
		follows.ended = x
	}
}

// nextBuckets takes the buckets of the next pull, with what this replica holds of them.
func (s *passes) nextBuckets(x *pass) []BucketSummary {
	var all []BucketSummary
	for size := 0; len(x.todo) > 0 && len(all) < bucketsAPull && size < s.m.cfg.Bounds.MessageBytes/4; {
		bucket := x.todo[0]
		x.todo = x.todo[1:]
		x.pulling[bucket] = true
		of := BucketSummary{Bucket: uint16(bucket)}
		for _, k := range s.table.Summaries(bucket) {
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

// pull answers a Pull with the entries in which the tables differ, bucket by bucket, until the message is full.
func (s *passes) pull(p *peer, b Pull) PullReply {
	answer, size := PullReply{Pass: b.Pass, Stamp: s.gen()}, 0
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
		if size >= s.m.cfg.Bounds.MessageBytes {
			break
		}
		entries, wants, all := s.differing(of, s.m.cfg.Bounds.MessageBytes-size)
		for _, e := range entries {
			size += table.SizeOf(e)
		}
		answer.Entries = append(answer.Entries, entries...)
		if all {
			answer.Done, answer.Missing = append(answer.Done, of.Bucket), append(answer.Missing, wants...)
		}
	}
	return answer
}

// differing returns the entries of a bucket that another replica lacks or holds in another state, at least one if there
// is any, and names those that this replica lacks. All is false if not all of them fit into room.
func (s *passes) differing(of BucketSummary, room int) (entries []table.Entry, wants []MissingEntry, all bool) {
	theirs := make(map[uint64]uint64, len(of.Keys))
	for _, k := range of.Keys {
		theirs[k.Key] = k.Entry
	}
	for _, k := range s.table.Summaries(int(of.Bucket)) {
		hash, ok := theirs[k.KeyHash]
		delete(theirs, k.KeyHash)
		if ok && hash == k.Hash {
			continue
		}
		if room <= 0 {
			return entries, nil, false
		}
		if e, ok := s.table.Get(k.Key); ok {
			entries = append(entries, e)
			room -= table.SizeOf(e)
		}
	}
	for _, k := range of.Keys {
		if _, left := theirs[k.Key]; left {
			wants = append(wants, MissingEntry{Bucket: of.Bucket, Key: k.Key})
		}
	}
	return entries, wants, true
}

// pulled takes in the entries of a reply, and returns what the other side lacks.
func (s *passes) pulled(x *pass, b PullReply, follows *exchange) {
	x.pulls--
	var back []table.Entry
	for _, e := range b.Entries {
		if !s.home(s.self, e.Key) {
			s.m.counts.Foreign++
			continue
		}
		outcome, err := s.table.Join(e)
		if err != nil || outcome == table.Refused {
			x.refused = true
			s.m.counts.Refused++
			continue
		}
		s.m.counts.Pulled++
		if outcome == table.Applied {
			s.lags.receivedEntry(e)
		}
		if own, ok := s.table.Get(e.Key); ok && table.HashOfEntry(own) != table.HashOfEntry(e) {
			back = append(back, own)
		}
	}
	back = append(back, s.wanted(x, b.Missing)...)
	for _, bucket := range b.Done {
		delete(x.pulling, int(bucket))
	}
	follows.back = back
	if len(b.Done) == 0 && len(b.Entries) == 0 {
		delete(s.open, x.id) // The other side makes no progress: a later pass begins again.
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
	s.proceed(x, follows)
}

// wanted returns the entries that the other side has named as missing, in buckets that are being pulled. Each bucket is
// gone through once, in whatever order they are named.
func (s *passes) wanted(x *pass, wants []MissingEntry) (entries []table.Entry) {
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
		for _, k := range s.table.Summaries(bucket) {
			if e, ok := s.table.Get(k.Key); ok && asked[k.KeyHash] {
				entries = append(entries, e)
			}
		}
	}
	return entries
}
