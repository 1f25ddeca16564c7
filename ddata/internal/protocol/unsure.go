// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"github.com/quorate/quorate/machine"
)

// A group that writes behind acknowledges data before it is in the store. A replica whose node
// ended without writing the rest has lost some of what it acknowledged, and does not know what:
// it is unsure.
//
//	start ──(Meta.Behind: the node has not ended in order)──> unsure ──> sure
//
// An unsure replica is to the others like one that cannot be reached; and when it ends, like one
// that has lost nothing. So all other rules hold as they are. Two things make it so:
//
//   - It ends being unsure when it has taken in what enough sure replicas hold that every write
//     which counts on it is held by one of those ([restores]), or, if so many have failed
//     together that this cannot be, what everybody holds who is left ([together]).
//   - What it has acknowledged before counts for no write that is not confirmed yet. Each
//     unclean start raises the number [Envelope.Restarts], which every replica takes over, and
//     writes down, before it says anything more; and acknowledgements below the number of
//     whoever counts them do not count ([group.raise]). So whoever takes a write in after it has
//     answered an unsure replica tells the one who counts.
//
// First what is remembered of a start, then how the replica takes in from others and when that is
// enough, then the number.

// recovery is the part of a group that knows whether its replica may have lost what it has
// acknowledged.
type recovery struct {
	group *group
	on    bool
	took  map[ReplicaID]copyTaken       // Whose copy was taken in, in this generation.
	gone  map[ReplicaID]machine.Instant // Since when replicas of the register are those of no member.
}

// copyTaken says how the copy of a replica was taken in.
type copyTaken struct {
	began machine.Instant // When it was asked for.
	sure  bool            // The replica was sure when it answered.
}

// newUnsure returns what the store says of the end of the node before.
func newUnsure(g *group) recovery {
	r := g.cfg.Meta.Register
	u := recovery{group: g, on: g.cfg.Durable && g.cfg.Meta.Behind && r != nil && r.In(g.self)}
	u.reset()
	return u
}

// start begins to write behind: before anything leaves, the store says that more may be
// acknowledged than is in it, and an unclean start has a number of its own.
func (u *recovery) start() {
	g := u.group
	if u.on {
		g.m.counts.Unclean++
		g.restarts++
	}
	if u.on || g.cfg.Behind.Interval > 0 {
		g.disk.metaChanged()
	}
}

// behind reports whether the store is to say that more may be acknowledged than is in it.
func (u *recovery) behind() bool { return u.on || u.group.cfg.Behind.Interval > 0 }

// reset forgets whose copies were taken in: another register counts.
func (u *recovery) reset() {
	u.took = map[ReplicaID]copyTaken{}
	if u.gone == nil {
		u.gone = map[ReplicaID]machine.Instant{}
	}
}

// adopted goes on in another generation. Who is in no set holds nothing, and has lost nothing.
func (u *recovery) adopted() {
	if u.reset(); u.on && !u.group.holds() {
		u.end()
	}
}

// tick takes in from those whose copies are needed.
func (u *recovery) tick() {
	g := u.group
	if !u.on || !g.age.proven || g.reg == nil {
		return
	}
	u.miss()
	if u.look(); !u.on {
		return
	}
	g.passes.giveUp()
	for _, p := range g.sorted() {
		if len(g.passes.open) >= 2*sourcesAtOnce {
			return
		}
		if g.present(p.id) && u.needs(p) && !g.passes.with(p) {
			g.passes.begin(p, false)
		}
	}
}

// needs reports whether the copy of a replica has to be asked for: it was not taken in yet, or
// not since the replica is sure, or before it was known who else is unsure.
func (u *recovery) needs(p *peer) bool {
	t, took := u.took[p.id]
	switch {
	case !u.group.views.with(u.group.self).Has(p.id):
		return false
	case !took:
		return true
	case p.unsure == 0:
		return !t.sure
	default:
		return t.began <= u.latest()
	}
}

// latest returns when it was heard last of another replica that it is unsure.
func (u *recovery) latest() (at machine.Instant) {
	for _, p := range u.group.peers { //quorate:unordered a maximum
		at = max(at, p.unsure)
	}
	return at
}

// ended notes that a comparison with another replica has ended.
func (u *recovery) ended(x *pass) {
	if u.on && x.fenced {
		u.took[x.peer.id] = copyTaken{began: x.began, sure: x.sure}
		u.look()
	}
}

// miss notes which replicas of the register are those of no member.
func (u *recovery) miss() {
	g := u.group
	for _, r := range g.views.with(g.self) {
		switch {
		case g.there(r.ID) || g.unnamed():
			delete(u.gone, r.ID)
		case u.gone[r.ID] == 0:
			u.gone[r.ID] = g.m.now.Mono
		}
	}
}

// look ends being unsure as soon as enough was taken in.
func (u *recovery) look() {
	g := u.group
	if !u.on || !g.age.proven || g.reg == nil {
		return
	}
	sure := func(id ReplicaID) bool { return u.took[id].sure }
	at := u.latest()
	failed := func(id ReplicaID) bool { return id == g.self || u.isGone(id) || u.stays(id, at) }
	has := func(id ReplicaID) bool {
		t, took := u.took[id]
		return id == g.self || took && (t.sure || t.began > at)
	}
	if g.views.each(func(v *view) bool {
		return !v.has(g.self) || v.current.restores(g.self, sure) || v.current.together(failed, has, u.isGone)
	}) {
		u.end()
	}
}

// stays reports whether a replica was still unsure after it was heard of all others that are
// unsure: so there was a moment at which all of them were.
func (u *recovery) stays(id ReplicaID, at machine.Instant) bool {
	t, took := u.took[id]
	p := u.group.peers[id]
	return took && !t.sure && t.began > at && p != nil && p.unsure != 0
}

// isGone reports whether a replica has been that of no member for so long that nobody waits for
// its disk.
func (u *recovery) isGone(id ReplicaID) bool {
	since := u.gone[id]
	return since != 0 && u.group.m.now.Mono.Sub(since) >= u.group.m.cfg.Timing.Gather
}

// end ends being unsure.
func (u *recovery) end() {
	g := u.group
	u.on = false
	g.m.counts.Restored++
	g.disk.metaChanged()
	if g.age.proven && g.m.state != nil && g.reg != nil {
		g.m.out.Decide(ComponentName, g.cfg.Name, "this replica is sure again", "what it may have lost with its former node was taken in from others")
		g.age.joined()
	}
}

// restores reports whether a replica that has taken in what some sure ones hold has everything
// back that counts. A write is held by a majority of the set, this replica perhaps among them;
// so all the others but fewer than a majority hold it, as long as they are sure.
func (s Set) restores(self ReplicaID, taken func(ReplicaID) bool) bool {
	n := s.count(func(id ReplicaID) bool { return id != self && taken(id) })
	return 2*n > len(s)-1
}

// together reports whether a majority of the set has failed together, so that a write may be
// lost, and everybody's copy was taken in who is left, of a winning part at least.
func (s Set) together(failed, has, gone func(ReplicaID) bool) bool {
	return s.Majority(failed) && s.Wins(has) && s.count(func(id ReplicaID) bool { return has(id) || gone(id) }) == len(s)
}

// acknowledges reports whether a message says that its sender holds something, on which the
// receiver builds.
func acknowledges(body any) bool {
	switch body.(type) {
	case PutTaken, DeltasTaken, Answer:
		return true
	default:
		return false
	}
}

// compares reports whether a message is a question of one table to another.
func compares(body any) bool {
	switch body.(type) {
	case Compare, AskBuckets, Pull:
		return true
	default:
		return false
	}
}
