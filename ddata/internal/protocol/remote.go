// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// A node that is no home of a key changes it through one that is: it fetches the entry, runs the update function in the
// home's name, and asks the home to commit the delta.
//
//	fetch  ──EntryRequest──>  home   answerEntry
//	       <──EntryReply────
//	(the update function runs)
//	commit ─────Commit─────>  home   commitFor: if the entry is still the one that was fetched,
//	       <───Committed────         the home writes as for a program on its own node
//
// A delete is asked for in one step. A read needs none of this: it asks all homes.
//
// A commit that is not answered in time is sent again, to the same home. That remembers what it has answered, so that
// the change is made once, whichever message was lost.

// FetchEntry is the command to fetch the entry of a key from a home, to change it there.
type FetchEntry struct {
	Op    OpID
	Group uint8
	Key   string
	Limit time.Duration
}

// FetchResult is the effect that answers [FetchEntry].
type FetchResult struct {
	Op      OpID
	Verdict Verdict      // Confirmed, or why there is no entry.
	Entry   *table.Entry // Nil for none.
	At      crdt.Origin  // In whose name the update function has to change the value.
	Missing []ReplicaID  // For HomesLost: the homes that are gone.
	Base    uint64       // Names the entry, for the commit.
}

// CommitDelta is the command to have a change committed. Its entry was fetched under the same number.
type CommitDelta struct {
	Op    OpID
	Group uint8
	Key   string
	Type  crdt.Type
	Delta any
	Whole bool
	Base  uint64
	Level Level
	Limit time.Duration
}

// EntryRequest asks a home for the entry of a key.
type EntryRequest struct {
	Op  OpID
	Key string
}

// EntryReply answers EntryRequest. Away says that the replica is no home of the key.
type EntryReply struct {
	Op    OpID
	Away  bool
	Stamp uint64 // The generation in which the entry was read.
	Entry *table.Entry
	At    crdt.Origin
	Base  uint64
}

// Commit asks a home to make a change out of a delta, as if it were its own. Stamp is that of the [EntryReply]. Again
// says that the home was asked before and has not answered.
type Commit struct {
	Op    OpID
	Stamp uint64
	Key   string
	Type  crdt.Type
	Delta any
	Whole bool
	Base  uint64
	Level Level
	Limit time.Duration
	Again bool
}

// RemoveKey asks a home to delete a key. Stamp is the generation in which the delete began: if a sweep came since, the
// delete may have taken effect at another home already.
type RemoveKey struct {
	Op    OpID
	Stamp uint64
	Key   string
	Level Level
	Limit time.Duration
}

// Committed answers Commit and RemoveKey.
type Committed struct {
	Op       OpID
	Verdict  Verdict
	Answered []gossip.NodeID
	Missing  []ReplicaID
	Refusals []NodeRefusal
	Reason   string // The text of the error at the home, if there was one.
}

// ErrHome is wrapped by the errors that a home has answered with.
var ErrHome = errors.New("the replica that holds the key answered")

// remoteRequest is an operation that this node has a home carry out.
type remoteRequest struct {
	id     OpID
	key    string
	began  machine.Instant
	until  machine.Instant
	asked  machine.Instant
	asks   int           // How often a home was asked.
	home   gossip.NodeID // The home that was asked last.
	body   any           // The message to the home.
	stamp  uint64        // The generation in which the entry was read at the home.
	commit bool          // A home may make a change for it, so that no other home may be asked.
}

// served is an operation that this node carries out for another one.
type served struct {
	id    OpID
	from  gossip.NodeID
	op    OpID            // The number that the other node gave it.
	until machine.Instant // When the other node waits for it no longer.
}

// requestID names an operation that another node asks for, by that node and by the number that it has there.
type requestID struct {
	node gossip.NodeID
	op   OpID
}

// remembered is a commit for another node that was answered.
type remembered struct {
	of    requestID
	until machine.Instant // When the other node waits for it no longer.
}

// remoteUpdates is the part of a group by which this node changes keys that other nodes hold, and lets them change keys
// that this one holds.
type remoteUpdates struct {
	*known

	out        *sender
	majorities *majorities

	requests map[OpID]*remoteRequest
	served   map[OpID]served
	next     OpID

	// commits are the answers to the commits that other nodes have asked for; nil: not answered yet. The answers are
	// also in the order in which they were given; as many are kept as operations may wait.
	commits map[requestID]*Committed
	answers []remembered

	// writes are the homes that have committed the last writes of this node, by key, as many as operations may wait;
	// keys are in the order in which they were written first.
	writes map[string]gossip.NodeID
	keys   []string
}

// servedFrom is where the numbers of served operations begin, above all those that the program gives.
const servedFrom = OpID(1) << 63

func newRemote(k *known, out *sender, m *majorities) remoteUpdates {
	return remoteUpdates{known: k, out: out, majorities: m, requests: map[OpID]*remoteRequest{}, served: map[OpID]served{}, next: servedFrom, commits: map[requestID]*Committed{}, writes: map[string]gossip.NodeID{}}
}

// fetch asks a home for an entry.
func (r *remoteUpdates) fetch(in FetchEntry) {
	r.begin(in.Op, in.Key, in.Limit, EntryRequest{Op: in.Op, Key: in.Key}, false)
}

// commit asks a home to commit a delta: the home from which the entry was fetched.
func (r *remoteUpdates) commit(in CommitDelta) {
	stamp := uint64(0)
	if e := r.requests[in.Op]; e != nil {
		stamp = e.stamp
	}
	body := Commit{Op: in.Op, Stamp: stamp, Key: in.Key, Type: in.Type, Delta: in.Delta, Whole: in.Whole, Base: in.Base, Level: in.Level, Limit: in.Limit}
	r.begin(in.Op, in.Key, in.Limit, body, true)
}

// remove asks a home to delete a key.
func (r *remoteUpdates) remove(in Delete) {
	r.begin(in.Op, in.Key, in.Limit, RemoveKey{Op: in.Op, Stamp: r.gen(), Key: in.Key, Level: in.Level, Limit: in.Limit}, false)
}

// begin begins a request, in place of one with the same number: a commit takes the place of the request that has
// fetched the entry, and goes to the same home.
func (r *remoteUpdates) begin(id OpID, key string, limit time.Duration, body any, commits bool) {
	before := r.requests[id]
	if before == nil && len(r.requests) >= r.m.cfg.Bounds.Operations {
		r.m.out.Add(Done{Op: id, Verdict: Overloaded})
		return
	}
	e := &remoteRequest{id: id, key: key, began: r.m.now.Mono, until: r.m.now.Mono.Add(limit), body: body, commit: commits}
	if before != nil {
		e.home = before.home
	}
	r.requests[id] = e
	r.ask(e)
}

// ask sends a request to a home: to another one than last time, unless that one may have committed.
func (r *remoteUpdates) ask(e *remoteRequest) {
	homes := r.homes(e.key)
	if len(homes) == 0 {
		return
	}
	p := homes[0]
	if at := slices.IndexFunc(homes, func(h *peer) bool { return h.node == e.home }); at >= 0 {
		p = homes[at]
		if !e.commit && e.asked != 0 {
			p = homes[(at+1)%len(homes)]
		}
	} else if e.commit {
		// The home from which the entry was fetched is gone: nobody knows whether it has committed.
		r.finish(e, Done{Op: e.id, Verdict: Unconfirmed})
		return
	}
	body := e.body
	if e.commit && e.asked != 0 {
		c, asked := e.body.(Commit)
		if !asked {
			return // The update function runs.
		}
		c.Again = true
		body = c
	}
	e.home, e.asked = p.node, r.m.now.Mono
	e.asks++
	r.out.send(p, body)
}

// homes returns the replicas that hold a key and can be reached, those of Current first.
func (r *remoteUpdates) homes(key string) []*peer {
	if r.reg == nil {
		return nil
	}
	v := r.views.bucket(table.BucketOf(key))
	all := slices.DeleteFunc(r.sorted(), func(p *peer) bool { return !v.has(p.id) || !r.present(p.id) })
	slices.SortStableFunc(all, func(a, b *peer) int {
		return cmp.Compare(rank(v.current.Has(a.id)), rank(v.current.Has(b.id)))
	})
	return all
}

// lost reports whether the bucket of a key is held back, and none of its homes can be reached.
func (r *remoteUpdates) lost(key string) bool {
	return r.reg != nil && r.known.lost(r.views.bucket(table.BucketOf(key))) && len(r.homes(key)) == 0
}

// rank is a key by which those sort first that are to come first.
func rank(first bool) int {
	if first {
		return 0
	}
	return 1
}

// tick sends requests again that are not answered, and ends those whose limit has passed.
func (r *remoteUpdates) tick() {
	for len(r.answers) > 0 && r.m.now.Mono >= r.answers[0].until {
		r.forget()
	}
	for _, id := range slices.Sorted(maps.Keys(r.requests)) {
		switch e := r.requests[id]; {
		case r.m.now.Mono >= e.until:
			r.finish(e, Done{Op: id, Verdict: Unconfirmed})
		case !e.commit && r.lost(e.key):
			r.finish(e, Done{Op: id, Verdict: HomesLost, Missing: r.missing(r.views.bucket(table.BucketOf(e.key)))})
		case e.asked == 0 || r.m.now.Mono.Sub(e.asked) >= r.m.cfg.Timing.Retry:
			r.ask(e)
		}
	}
}

// finish ends a request.
func (r *remoteUpdates) finish(e *remoteRequest, d Done) {
	delete(r.requests, e.id)
	if _, fetches := e.body.(EntryRequest); fetches {
		r.m.out.Add(FetchResult{Op: e.id, Verdict: d.Verdict, Missing: d.Missing})
		return
	}
	d.Since = r.m.now.Mono.Sub(e.began)
	r.m.out.Add(d)
}

// cancel ends a request that is not wanted any more.
func (r *remoteUpdates) cancel(id OpID) {
	if e := r.requests[id]; e != nil {
		r.finish(e, Done{Op: id, Verdict: Unconfirmed})
	}
}

// answerEntry answers EntryRequest.
func (r *remoteUpdates) answerEntry(p *peer, b EntryRequest) {
	answer := EntryReply{Op: b.Op, Stamp: r.gen()}
	if !r.home(r.self, b.Key) {
		answer.Away = true
	} else {
		answer.At = r.table.OriginOf(b.Key)
		if e, ok := r.table.Get(b.Key); ok {
			answer.Entry, answer.Base = &e, table.HashOfEntry(e)
		}
	}
	r.out.send(p, answer)
}

// fetched reports the entry that a home has answered with. The request stays open, since its commit goes to the same
// home.
func (r *remoteUpdates) fetched(p *peer, b EntryReply) {
	e := r.requests[b.Op]
	if e == nil || e.commit || e.home != p.node {
		return
	}
	if b.Away {
		r.ask(e)
		return
	}
	e.stamp = b.Stamp
	e.commit = true // From here on only a commit, or the end of its time.
	r.m.out.Add(FetchResult{Op: b.Op, Verdict: Confirmed, Entry: b.Entry, At: b.At, Base: b.Base})
}

// commitFor makes the change of a Commit in this replica's table, and returns the command to have it confirmed. With
// made false it has refused the commit, or was asked for it before: then the answer is sent again, if there is one yet.
func (r *remoteUpdates) commitFor(p *peer, b Commit) (w Write, made bool) {
	of := requestID{p.node, b.Op}
	if answer, known := r.commits[of]; known {
		if answer != nil {
			r.out.send(p, *answer)
		}
		return Write{}, false
	}
	r.commits[of] = nil
	if !r.home(r.self, b.Key) || b.Stamp < r.reg.fence() {
		r.refuse(p, b, Committed{Verdict: Lost})
		return Write{}, false
	}
	change, err := r.table.Commit(b.Key, b.Type, b.Base, b.Delta)
	switch {
	case errors.Is(err, table.ErrConflict):
		r.refuse(p, b, Committed{Verdict: Conflict})
	case err != nil:
		r.refuse(p, b, Committed{Verdict: Refused, Reason: reason(err)})
	default:
		return Write{Op: r.serve(p, b.Op, b.Limit), Group: r.index, Change: change, Stamp: r.gen(), Turn: r.reg.Lineage.Turn, Level: b.Level, Limit: b.Limit}, true
	}
	return Write{}, false
}

// refuse answers a commit that is not made. If it was asked for before, this home has forgotten what it answered, and
// may have made the change: the answer is Unconfirmed then.
func (r *remoteUpdates) refuse(p *peer, b Commit, answer Committed) {
	answer.Op = b.Op
	if b.Again {
		answer.Verdict = Unconfirmed
	}
	r.remember(requestID{p.node, b.Op}, answer, r.m.now.Mono.Add(b.Limit))
	r.out.send(p, answer)
}

// remember keeps the answer to a commit, as long as it may be asked for again.
func (r *remoteUpdates) remember(of requestID, answer Committed, until machine.Instant) {
	if _, commit := r.commits[of]; !commit {
		return
	}
	r.commits[of] = &answer
	if r.answers = append(r.answers, remembered{of, until}); len(r.answers) > r.m.cfg.Bounds.Operations {
		r.forget()
	}
}

// forget forgets the oldest answer.
func (r *remoteUpdates) forget() {
	delete(r.commits, r.answers[0].of)
	r.answers = r.answers[1:]
}

// removeFor returns the command by which a RemoveKey is carried out; with here false it has refused it.
func (r *remoteUpdates) removeFor(p *peer, b RemoveKey) (d Delete, here bool) {
	if !r.home(r.self, b.Key) || b.Stamp < r.reg.fence() {
		r.out.send(p, Committed{Op: b.Op, Verdict: Lost})
		return Delete{}, false
	}
	return Delete{Op: r.serve(p, b.Op, b.Limit), Group: r.index, Key: b.Key, Level: b.Level, Limit: b.Limit}, true
}

// serve notes that an operation is carried out for another node, and returns the number that it has here.
func (r *remoteUpdates) serve(p *peer, op OpID, limit time.Duration) OpID {
	r.next++
	r.served[r.next] = served{id: r.next, from: p.node, op: op, until: r.m.now.Mono.Add(limit)}
	return r.next
}

// answerServed reports whether an operation that ends was for another node, and answers it then.
func (r *remoteUpdates) answerServed(d Done) bool {
	s, ok := r.served[d.Op]
	if !ok {
		return false
	}
	delete(r.served, d.Op)
	answer := Committed{Op: s.op, Verdict: d.Verdict, Answered: d.Answered, Missing: d.Missing, Refusals: d.Refusals}
	if d.Err != nil {
		answer.Reason = reason(d.Err)
	}
	r.remember(requestID{s.from, s.op}, answer, s.until)
	if p := r.nodes[s.from]; p != nil {
		r.out.send(p, answer)
	}
	return true
}

// noteHome notes which home has taken a write of this node.
func (r *remoteUpdates) noteHome(key string, home gossip.NodeID) {
	if _, known := r.writes[key]; !known {
		r.keys = append(r.keys, key)
	}
	if r.writes[key] = home; len(r.keys) > r.m.cfg.Bounds.Operations {
		delete(r.writes, r.keys[0])
		r.keys = r.keys[1:]
	}
}

// lastHome returns the home that has taken the last write of a key by this node, 0 for none that is known.
func (r *remoteUpdates) lastHome(key string) ReplicaID {
	if p := r.nodes[r.writes[key]]; p != nil {
		return p.id
	}
	return 0
}

// committed ends the request that a home has answered.
func (r *remoteUpdates) committed(p *peer, b Committed) {
	e := r.requests[b.Op]
	if e == nil || e.home != p.node {
		return
	}
	if b.Verdict == Lost && !e.commit && e.asks > 1 {
		b.Verdict = Unconfirmed // A home that was asked before, and has not answered, may have done it.
	}
	d := Done{Op: b.Op, Verdict: b.Verdict, Answered: b.Answered, Missing: b.Missing, Refusals: b.Refusals}
	if b.Verdict == Confirmed {
		r.noteHome(e.key, p.node)
	}
	if b.Verdict == NoQuorum {
		d.Recovery, _ = r.majorities.recovery()
	}
	if b.Reason != "" {
		d.Err = errors.Join(ErrHome, errors.New(b.Reason))
	}
	r.finish(e, d)
}
