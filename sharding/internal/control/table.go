// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// Where the shards live: claim enters what a host reports; giveHome gives a home, confirmed notes
// that it hosts the shard, stop takes it away, vacate and removeNode leave the shard without one.
// giveUp is for homes that do not stop in time. next makes the changes the next version of the
// map. Then come the questions about the shards.

// table is the part of a coordinator that knows where each shard lives, and how far its home
// has come: the map. Invariants, between steps:
//
//	T1  a shard has at most one home, and giveHome is for a shard that has none: the old home
//	    has confirmed that it stopped, or is fenced;
//	T2  every epoch that is given is above all of earlier versions: it has the term of this
//	    coordinator, and the version of the map by which it will be told;
//	T3  the positions of a shard, and its snapshots, are passed on to one home at most, and the
//	    snapshots never without the positions;
//	T4  a shard with a home that is not in changed is as the regions were told, and whatever
//	    is in toHost is in changed;
//	T5  phases counts the shards in each phase, so that no pass over all shards looks for what
//	    is not there: while all serve, a step costs the same however many they are.
type table struct {
	env
	version   uint64 // The version of the map.
	shards    shardMap[shard]
	phases    [phases]int
	changes   changes
	used      uint32                             // How many of the first shards are in use: the others get no home. 0: all are.
	populated bool                               // Some shard has had a home: the first allocation is over.
	wanted    map[protocol.ShardID]gossip.NodeID // The region that asked last for the home of a shard without one.
	changed   map[protocol.ShardID]bool          // Shards whose entries have changed since the last version.
	toHost    map[protocol.ShardID]bool          // Shards whose new homes are told to host with the next version.
	snapshots heldSnapshots                      // The snapshots of shards whose positions are travelling.
	byEpoch   shardsByEpoch                      // The shards by the epochs of their homes.
}

// shard is one entry of the map with what goes on around it.
type shard struct {
	home        gossip.NodeID // The node that hosts the shard or is told to; zero in PhaseOpen.
	epoch, base protocol.Epoch
	phase       Phase
	// positions are those of the streams of base, from the home that has stopped;
	// travelling says that they are known. Otherwise the streams must begin anew.
	positions  []protocol.Position
	travelling bool
	told       uint64          // The version of the map that told the regions that the shard is retired.
	deadline   machine.Instant // When the stop is taken back, or the entities are given up.
	notBefore  machine.Instant // When a move may be tried again.
	since      time.Time       // When the shard came into its phase.
	decision   string          // By which decision the shard has its home, and why.
	came       arrival         // The last move of the shard that evened out the load.
}

// arrival is the last move of a shard that evened out the load.
type arrival struct {
	from   gossip.NodeID
	at     machine.Instant
	before machine.Instant // When the move before the last one ended; zero: there was none.
}

// enter brings a shard into a phase.
func (t *table) enter(s *shard, p Phase) {
	if s.phase != p || s.since.IsZero() {
		t.phases[s.phase]--
		t.phases[p]++
		s.phase, s.since = p, t.control().now.Wall
	}
}

// put replaces the entry of a shard.
func (t *table) put(s *shard, by shard) {
	t.phases[s.phase]--
	t.phases[by.phase]++
	*s = by
}

// recount counts the phases anew, after a layout has come or gone.
func (t *table) recount() {
	t.phases = [phases]int{}
	for _, s := range t.shards.all() {
		t.phases[s.phase]++
	}
}

// in returns how many shards are in some phases.
func (t *table) in(which ...Phase) (n int) {
	for _, p := range which {
		n += t.phases[p]
	}
	return n
}

// populate notes that an earlier coordinator gave homes.
func (t *table) populate() { t.populated = true }

func (t *table) isPopulated() bool { return t.populated }

// setUsed says how many of the first shards are in setUsed. None of the others has a home.
func (t *table) setUsed(count uint32) {
	t.used = count
	for id, s := range t.shards.all() {
		if t.isUsed(id) {
			continue
		}
		if s.home.IsZero() && s.travelling {
			t.put(s, shard{epoch: s.epoch, base: s.base, since: s.since})
			t.snapshots.drop(id)
		}
		delete(t.wanted, id)
	}
}

// isUsed reports whether a shard is in use.
func (t *table) isUsed(id protocol.ShardID) bool { return t.used == 0 || id.Index() < t.used }

// want notes that a region asks for the home of a shard, if the shard has none.
func (t *table) want(id protocol.ShardID, region gossip.NodeID) {
	if t.has(id) && t.isHomeless(id) {
		t.wanted[id] = region
	}
}

// claim notes that a region hosts a shard, and reports whether the region is the home. Of two
// regions the one with the higher epoch stays; the other learns from the map that it was passed
// over, and stops. A home that this coordinator gave itself is not changed by a report with a
// lower epoch: such a report, of a member that came after the opening, may have been long on its
// way.
func (t *table) claim(from gossip.NodeID, h Hosted) bool {
	s := t.shards.at(h.Shard)
	t.populated = true
	if (s.epoch.Term == t.term || s.phase == PhaseRetired) && !s.epoch.Less(h.Epoch) {
		return false
	}
	if !s.home.IsZero() && s.home != from {
		t.kind.violation(h.Shard, fmt.Sprintf("two hosts: %s under epoch %s and %s under epoch %s", s.home, s.epoch, from, h.Epoch))
		if h.Epoch.Less(s.epoch) {
			return false
		}
	}
	t.snapshots.drop(h.Shard)
	t.put(s, shard{
		home: from, epoch: h.Epoch, base: h.Base, phase: PhaseServing,
		since: t.control().now.Wall, decision: "reported by its host to a new coordinator",
	})
	t.changed[h.Shard] = true
	return true
}

// giveHome gives a home to a shard that has none.
func (t *table) giveHome(id protocol.ShardID, node gossip.NodeID, decision string) {
	s := t.shards.at(id)
	epoch := protocol.Epoch{Born: t.born, Term: t.term, N: t.version + 1}
	if !s.travelling {
		s.base, s.positions = epoch, nil
		t.snapshots.drop(id)
	}
	s.home, s.epoch, s.decision = node, epoch, decision
	t.enter(s, PhaseStarting)
	t.changed[id], t.toHost[id] = true, true
	delete(t.wanted, id)
	t.populated = true
}

// homeEntry returns the entry of a shard if a node is its home under an epoch; else nil, since
// what that node says of the shard is out of date.
func (t *table) homeEntry(from gossip.NodeID, id protocol.ShardID, epoch protocol.Epoch) *shard {
	if s := t.shards.at(id); s != nil && s.home == from && s.epoch == epoch {
		return s
	}
	return nil
}

// confirmed notes that a home hosts its shard, and reports whether that was waited for in the
// given phase: in PhaseStarting of a new home, in PhaseResuming of one whose stop was taken back.
// A shard whose stop was taken back is not moved again for a while.
func (t *table) confirmed(from gossip.NodeID, se ShardEpoch, awaited Phase) bool {
	s := t.homeEntry(from, se.Shard, se.Epoch)
	if s == nil || s.phase != awaited {
		return false
	}
	t.enter(s, PhaseServing)
	s.positions, s.travelling = nil, false
	t.snapshots.drop(se.Shard)
	if awaited == PhaseResuming {
		s.notBefore = t.now().Add(t.kind.timings.Handoff)
	}
	return true
}

// stop has the home of a shard told to stop it.
func (t *table) stop(id protocol.ShardID) {
	s := t.shards.at(id)
	t.enter(s, PhaseStopping)
	s.deadline = t.now().Add(t.kind.timings.Handoff)
}

// hasten brings the deadlines of all stops forward to a time.
func (t *table) hasten(by machine.Instant) {
	if t.in(PhaseStopping, PhaseReleasing) == 0 {
		return
	}
	for _, s := range t.shards.all() {
		if s.phase == PhaseStopping || s.phase == PhaseReleasing {
			s.deadline = min(s.deadline, by)
		}
	}
}

// giveUp brings the shards that did not stop in time into the phase that comes next, and
// returns how many each node has.
func (t *table) giveUp(next Phase) map[gossip.NodeID]int {
	late := map[gossip.NodeID]int{}
	if t.in(PhaseStopping) == 0 {
		return late
	}
	for _, s := range t.shards.all() {
		if s.phase == PhaseStopping && t.now() >= s.deadline {
			t.enter(s, next)
			late[s.home]++
		}
	}
	return late
}

// vacate takes a stopped shard back from its home, and reports whether that was the home. The
// word is taken whenever it comes, also after the stop was taken back: the home hosts the shard
// no more.
func (t *table) vacate(from gossip.NodeID, ss StoppedShard) bool {
	s := t.homeEntry(from, ss.Shard, ss.Epoch)
	if s == nil {
		return false
	}
	t.put(s, shard{
		epoch: s.epoch, base: s.base, since: t.control().now.Wall,
		positions: ss.Positions, travelling: ss.Base == s.base, came: s.came,
	})
	t.snapshots.drop(ss.Shard)
	if s.travelling {
		t.snapshots.put(ss.Shard, ss.Snapshots, t.kind.snapshotsUntil())
	}
	return true
}

// removeNode takes all shards from a fenced node, and returns them.
func (t *table) removeNode(node gossip.NodeID) []protocol.ShardID {
	var ids []protocol.ShardID
	for id, s := range t.shards.all() {
		if s.home == node {
			t.put(s, shard{epoch: s.epoch, base: s.base, since: t.control().now.Wall})
			t.snapshots.drop(id)
			ids = append(ids, id)
		}
	}
	return ids
}

// arrived notes that a move which evened out the load has brought a shard to its home.
func (t *table) arrived(id protocol.ShardID, from gossip.NodeID) {
	s := t.shards.at(id)
	s.came = arrival{from: from, at: t.now(), before: s.came.at}
}

// next makes what changed since the last version the next version of the map. It returns
// the difference, and the commands to the new homes; false: nothing has changed.
func (t *table) next() (Map, commands, bool) {
	if len(t.changed) == 0 && !t.changes.untold {
		return Map{}, commands{}, false
	}
	m := Map{Kind: t.kind.name, Term: t.term, From: t.version, To: t.version + 1}
	t.version++
	t.tell(&m)
	o := newCommands()
	for _, id := range slices.Sorted(maps.Keys(t.changed)) {
		s := t.shards.at(id)
		if s.phase == PhaseRetired && s.told == 0 {
			s.told = t.version
		}
		if t.add(&m, id, s); t.toHost[id] {
			o.add(id, s, t.snapshots.of(id))
		}
	}
	clear(t.changed)
	clear(t.toHost)
	return m, o, true
}

// whole returns the present version of the map.
func (t *table) whole() Map {
	m := Map{Kind: t.kind.name, Term: t.term, To: t.version}
	t.tell(&m)
	for id, s := range t.shards.all() {
		t.add(&m, id, s)
	}
	return m
}

func (s *shard) entry(id protocol.ShardID) Home {
	return Home{Shard: id, Node: s.home, Epoch: s.epoch, Base: s.base}
}

// addCommand adds the command that belongs to the phase of a shard, and orders those of all shards
// in some phases.
func (t *table) addCommand(id protocol.ShardID, o commands) {
	o.add(id, t.shards.at(id), t.snapshots.of(id))
}

func (t *table) orders(which []Phase) commands {
	o := newCommands()
	if t.in(which...) == 0 {
		return o
	}
	for id, s := range t.shards.all() {
		if slices.Contains(which, s.phase) {
			o.add(id, s, t.snapshots.of(id))
		}
	}
	return o
}

// mapVersion returns the version of the map that the regions were told last.
func (t *table) mapVersion() uint64 { return t.version }

func (t *table) has(id protocol.ShardID) bool { return t.shards.at(id) != nil }

// at returns a copy of an entry: who looks at it changes nothing.
func (t *table) at(id protocol.ShardID) shard { return *t.shards.at(id) }

// home returns the home of a shard, zero for none.
func (t *table) home(id protocol.ShardID) gossip.NodeID { return t.shards.at(id).home }

// serves reports whether a node is the home of a shard, and nothing is under way between them.
func (t *table) serves(node gossip.NodeID, id protocol.ShardID) bool {
	s := t.shards.at(id)
	return s.phase == PhaseServing && s.home == node
}

// movable reports whether a move of a shard may begin: nothing is under way, and no move was
// called off a short time ago.
func (t *table) movable(id protocol.ShardID) bool {
	s := t.shards.at(id)
	return s.phase == PhaseServing && t.now() >= s.notBefore
}

// movableFrom returns the shards of homes, which have a reason to hand them back, whose moves may
// begin.
func (t *table) movableFrom(homes map[gossip.NodeID]string) []protocol.ShardID {
	var ids []protocol.ShardID
	if len(homes) == 0 {
		return nil
	}
	for id, s := range t.shards.all() {
		if homes[s.home] != "" && t.movable(id) && !t.isFormer(id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// undoes reports whether a move of a shard to a node would undo a recent one.
func (t *table) undoes(id protocol.ShardID, to gossip.NodeID) bool {
	came := t.shards.at(id).came
	return came.from == to && t.now() < came.at.Add(t.kind.timings.RebalanceIdle)
}

// isRestless reports whether a shard has been moved twice lately, and since the last region came, so that it is to stay
// where it is.
func (t *table) isRestless(id protocol.ShardID, since machine.Instant) bool {
	came := t.shards.at(id).came
	return came.before > since && t.now() < came.before.Add(t.kind.timings.RebalanceIdle)
}

// isHomeless reports whether a shard has no home and is to have one, homeless returns all such shards,
// with the regions that asked for them, and hasHomeless reports whether there are any.
func (t *table) isHomeless(id protocol.ShardID) bool {
	return t.shards.at(id).phase == PhaseOpen && !t.isFormer(id) && t.isUsed(id)
}

func (t *table) homeless() (pending []allocation.Pending) {
	if t.in(PhaseOpen) == 0 {
		return nil
	}
	for id := range t.shards.all() {
		if t.isHomeless(id) {
			pending = append(pending, allocation.Pending{Shard: allocation.Shard(id), Requester: regionID(t.wanted[id])})
		}
	}
	return pending
}

func (t *table) hasHomeless() bool {
	if t.in(PhaseOpen) == 0 {
		return false
	}
	for id := range t.shards.all() {
		if t.isHomeless(id) {
			return true
		}
	}
	return false
}

// atRest reports whether no shard is on its way: every shard is with a home, which reports it
// to another coordinator, or open and without positions, or retired as all regions know.
func (t *table) atRest() bool {
	for _, s := range t.shards.all() {
		if s.travelling || s.phase != PhaseOpen && s.phase != PhaseServing && s.phase != PhaseRetired {
			return false
		}
	}
	return true
}

// byRegion returns the shards of which owner says that they are a region's own, in the order in
// which they came; shards whose move was called off a short time ago are last.
func (t *table) byRegion(owner func(protocol.ShardID) gossip.NodeID) map[gossip.NodeID][]allocation.Shard {
	all, resting := map[gossip.NodeID][]allocation.Shard{}, map[gossip.NodeID][]allocation.Shard{}
	now := t.now()
	for _, d := range t.byEpoch.of(&t.shards) {
		if node := owner(d.id); now < t.shards.at(d.id).notBefore && !node.IsZero() {
			resting[node] = append(resting[node], allocation.Shard(d.id))
		} else if !node.IsZero() {
			all[node] = append(all[node], allocation.Shard(d.id))
		}
	}
	for node, list := range resting { //quorate:unordered each entry by itself
		all[node] = append(all[node], list...)
	}
	return all
}

// counts returns how many shards are in each phase, of those in use or with a home.
func (t *table) counts() (counts [phases]int) {
	for id, s := range t.shards.all() {
		if s.phase == PhaseOpen && !t.isUsed(id) {
			continue
		}
		counts[s.phase]++
	}
	return counts
}

// String describes the table in a part of a line.
func (t *table) String() string {
	n := t.counts()
	text := fmt.Sprintf("open %d starting %d serving %d stopping %d resuming %d releasing %d", n[0], n[1], n[2], n[3], n[4], n[5])
	if t.changes.began {
		text += fmt.Sprintf(" retired %d layouts %v", n[PhaseRetired], t.shards.layouts())
	}
	return text
}
