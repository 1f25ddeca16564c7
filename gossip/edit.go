// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"slices"
	"time"
)

// Edits of one node, its only way to change a state besides merging. An Edit collects
// changes, each a method that refuses what the rules of the state forbid; finish
// counts them as one step of the node's clock entry. The order of the methods:
// members, reachability, voters, registers. At the end, effects that no clock entry
// accounts for (orphans).

// Edit holds the changes that one node makes in one step. It exists only during the
// call of [State.Edit]. Its methods report whether they changed something: a change
// that the rules of the state forbid is not made.
type Edit struct {
	self   NodeID
	before *State
	after  State
	keys   []Key

	copied struct{ members, rows bool } // Which lists of after are copies that the edit may write.
	hides  bool                         // The edit has effects that its keys do not name.
}

// Edit returns s with the changes that change makes, as one edit of self: the clock
// entry of self grows by one, and only self has seen the result. It returns s itself
// if nothing changed, and if self is not a member after the changes: a node joins in
// an edit of its own only when it forms a cluster.
//
// Other nodes recognise an edit as new by its count. Two processes that edit under one
// NodeID would make different edits with equal counts; that is why each process draws
// a new uid.
func (s *State) Edit(self NodeID, change func(*Edit)) *State {
	e := &Edit{self: self, before: s, after: s.copy()}
	change(e)
	return e.finish()
}

// Restamp returns s with an edit of self for everything in s that no clock entry
// accounts for: effects of edits of a removed node that its tombstone does not cover.
// It returns s itself if there are none. A node calls it after each [State.Merge] and
// [State.Apply], before it sends the result on; otherwise two nodes could have equal
// clocks and different states.
func (s *State) Restamp(self NodeID) *State {
	if s.orphans.isZero() {
		return s
	}
	return s.Edit(self, func(e *Edit) {
		e.keys = append(e.keys, s.orphans.keys...)
		e.hides = s.orphans.all
		e.after.orphans = unaccountedKeys{}
		if len(e.keys) == 0 {
			e.touch(KeyRegisters, NodeID{})
		}
	})
}

// finish turns the changes into a state.
func (e *Edit) finish() *State {
	if len(e.keys) == 0 {
		return e.before
	}
	s := &e.after
	place, ok := findMember(s.members, e.self)
	if !ok {
		return e.before
	}
	dot := Dot{Node: e.self, Count: s.clock.Get(e.self) + 1}
	if dot.Count > maxCount {
		return e.before // No node would accept such a count.
	}
	s.clock = s.clock.with(e.self, dot.Count)
	s.seen = newBitset(len(s.members))
	s.seen.set(place)
	if !e.hides {
		s.history = s.history.add(historySize(len(s.members)), Edited{Dot: dot, Keys: sortedKeys(e.keys)})
	}
	s.rebase()
	return s
}

func (e *Edit) touch(typ KeyType, node NodeID) {
	e.keys = append(e.keys, Key{Type: typ, Node: node})
}

// Member returns a member with the changes of the edit so far, or nil.
func (e *Edit) Member(id NodeID) *Member { return e.after.Member(id) }

// LastUpNumber returns the up-number that the next one is above, after what this
// edit gave and outbid so far.
func (e *Edit) LastUpNumber() UpNumber { return e.after.lastUp.value }

// Join adds a member with status Joining; m.Status and m.UpNumber are ignored. It
// refuses an incarnation that is or was a member, an incarnation at an address where
// another one is not Down yet, a member that is not valid, and more than [MaxMembers]
// members.
func (e *Edit) Join(m Member) bool {
	s := &e.after
	if _, removed := s.Removed(m.Node); removed || m.Node.UID == 0 || s.Member(m.Node) != nil {
		return false
	}
	if len(s.members) >= MaxMembers || max(m.Loaded.Version, m.Unknown.Version) > countFree {
		return false
	}
	if old := s.ByAddress(m.Node.Address); old != nil && old.Status != Down {
		return false
	}
	m.Status, m.UpNumber = Joining, 0
	m.Roles, m.Services = sortedSet(m.Roles), sortedSet(m.Services)
	m.Loaded.Strategies = sortedSet(m.Loaded.Strategies)
	if m.Validate() != nil {
		return false
	}
	e.ownMembers()
	i, _ := findMember(s.members, m.Node)
	s.members = slices.Insert(s.members, i, &m)
	e.touch(KeyMember, m.Node)
	return true
}

// SetStatus moves a member forward; to Down without a cause, see [Edit.Down]. A move
// to Up needs an up-number above every earlier one; for other moves number is ignored.
// Moves backwards, to Removed, or past Up without an up-number are refused: a member
// that never was Up goes on to Leaving, Exiting or Down only. When another member
// becomes Exiting, its registers are outbid as by [Edit.Remove]: once it has confirmed
// that it hosts nothing, no leader before it waits for it to have seen the state.
func (e *Edit) SetStatus(id NodeID, st Status, number UpNumber) bool {
	old := e.after.Member(id)
	if old == nil || st <= old.Status || !st.isLive() {
		return false
	}
	m := *old
	m.Status = st
	switch {
	case st == Up && (number <= e.after.lastUp.value || number > maxCount):
		return false
	case st == Up:
		m.UpNumber, e.after.lastUp.value = number, number
		e.touch(KeyRegisters, NodeID{})
	case st.IsUp() && m.UpNumber == 0:
		return false
	}
	e.replaceMember(&m)
	if st == Exiting && id != e.self {
		e.outbid()
	}
	return true
}

// Down declares a member down, with the reason why. The reason is for people: it is
// made printable, and cut to [MaxCauseBytes].
func (e *Edit) Down(id NodeID, why string) bool {
	old := e.after.Member(id)
	if old == nil || old.Status >= Down {
		return false
	}
	m := *old
	m.Status, m.Downed = Down, Cause{By: e.self, Why: fitCause(why)}
	e.replaceMember(&m)
	return true
}

// AddService records that self runs a service.
func (e *Edit) AddService(service uint16) bool {
	old := e.after.Member(e.self)
	if old == nil || old.HasService(service) || len(old.Services) >= MaxServices {
		return false
	}
	m := *old
	m.Services = unionServices(old.Services, []uint16{service})
	e.replaceMember(&m)
	return true
}

// SetLoaded records which downing strategies self has loaded, at most [MaxLoaded].
func (e *Edit) SetLoaded(strategies []StrategyID) bool {
	old := e.after.Member(e.self)
	strategies = sortedSet(strategies)
	if old == nil || len(strategies) > MaxLoaded || old.Loaded.Version >= maxCount || slices.Equal(old.Loaded.Strategies, strategies) {
		return false
	}
	m := *old
	m.Loaded = Loaded{Version: old.Loaded.Version + 1, Strategies: strategies}
	e.replaceMember(&m)
	return true
}

// Remove replaces a member other than self by a tombstone with the wall time of the
// removal. The incarnation never is a member again.
//
// Numbers that the removed member gave as a leader, unseen by the remaining members,
// are outbid: the last up-number goes to the next multiple but one of 100,000, and the
// voters, the downing strategy and registers that are not known here get the next generation
// but one. Up-numbers that are given in the same edit are given after the removals.
func (e *Edit) Remove(id NodeID, wall time.Time) bool {
	s := &e.after
	i, ok := findMember(s.members, id)
	if !ok || id == e.self || len(s.tombs) >= MaxMembers {
		return false
	}
	// A member that has seen the state before this edit has every edit of the
	// removed node that the tombstone covers. A member that has not must get a full
	// state: the edits of the removed node are in no clock from now on, so a
	// delta could not tell that they are missing.
	e.hides = e.hides || !e.seenByOthers(id)
	e.ownMembers()
	t := &Tombstone{
		Node: id, Last: s.clock.Get(id), RemovedAt: min(max(wall.UnixMilli(), int64(s.pruned.value), 0), latestTime),
		Downed: s.members[i].Downed,
	}
	s.members = slices.Delete(s.members, i, i+1)
	at, _ := findTombstone(s.tombs, id)
	s.tombs = slices.Insert(slices.Clone(s.tombs), at, t)
	s.clock = s.clock.with(id, 0)
	s.rows = restrictRows(s.rows, s.members)
	e.touch(KeyMember, id)
	e.outbid()
	e.outbid() // A lost edit of the removed member may have made self Exiting, see outbid.
	return true
}

// outbid raises the registers above anything that a member which this edit removes or
// lets go can have given as a leader with no remaining member knowing it. Otherwise
// such an edit could come back later and win over an edit that all have seen: the
// order of age of two members would be reversed, or the voters would be others than
// those who won.
//
// A leader can have made one edit at most that the others have not seen. The next
// leader removes or lets go the same members as that edit, and in addition the former
// leader; but if that edit let go the next leader itself, it has outbid once, and the
// next leader, which lets itself go without outbidding, has not. Therefore a removal
// outbids twice. The values before the edit have been seen by all members, otherwise
// none could be removed; so no previous voters or strategy count any more.
func (e *Edit) outbid() {
	s := &e.after
	if next := s.lastUp.value.next(); next <= maxCount {
		s.lastUp.value = next
		e.touch(KeyRegisters, NodeID{})
	}
	if c := s.config.orZero(); c.Gen > 0 && c.Gen < maxCount {
		s.config = s.config.write(&Voters{Gen: c.Gen + 1, By: e.self.UID, Voters: c.Voters, Data: c.Data, Unknown: c.Unknown})
		e.touch(KeyVoters, NodeID{})
	}
	if d := s.downing.orZero(); d.Gen > 0 && d.Gen < maxCount {
		s.downing = s.downing.write(&DowningRegister{Gen: d.Gen + 1, DowningStrategy: d.DowningStrategy, Unknown: d.Unknown})
		e.touch(KeyRegisters, NodeID{})
	}
	if u := s.unknown.value; !u.IsZero() && u.Version < maxCount {
		s.unknown.value.Version++
		e.touch(KeyRegisters, NodeID{})
	}
}

// seenByOthers reports whether every member except id has seen the state before the
// edit.
func (e *Edit) seenByOthers(id NodeID) bool {
	s := e.before
	missing := len(s.members) - s.seen.count()
	return missing == 0 || (missing == 1 && s.Member(id) != nil && !s.Seen(id))
}

// Mark records that self cannot reach a member. Terminated is stronger than
// Unreachable and is never taken back.
func (e *Edit) Mark(subject NodeID, status ReachStatus) bool {
	if !status.isValid() || subject == e.self || e.after.Member(subject) == nil || e.after.Member(e.self) == nil {
		return false
	}
	set := e.ownRows()
	i, found := set.find(subject)
	if found && set.Rows[i].Status >= status || set.Version >= maxCount {
		return false
	}
	set.Version++
	row := Row{Subject: subject, Status: status, Version: set.Version}
	if found {
		set.Rows = slices.Clone(set.Rows)
		set.Rows[i] = row
	} else {
		set.Rows = slices.Insert(slices.Clone(set.Rows), i, row)
	}
	e.putRows(set)
	return true
}

// Clear records that self reaches a member again. A Terminated row stays.
func (e *Edit) Clear(subject NodeID) bool {
	set := e.ownRows()
	i, found := set.find(subject)
	if !found || set.Rows[i].Status == Terminated || set.Version >= maxCount {
		return false
	}
	set.Version++
	set.Rows = slices.Delete(slices.Clone(set.Rows), i, i+1)
	e.putRows(set)
	return true
}

// SetConfig replaces the voters. The present voters become the previous ones.
func (e *Edit) SetConfig(voters []NodeID) bool {
	old := e.after.config.orZero()
	sorted := sortedNodes(voters)
	if slices.Equal(sorted, old.Voters) || old.Gen >= maxCount {
		return false
	}
	e.after.config = e.after.config.write(&Voters{
		Gen: old.Gen + 1, By: e.self.UID, Voters: sorted, Previous: old.Voters, Data: e.dataOf(sorted), PreviousData: old.Data,
	})
	e.touch(KeyVoters, NodeID{})
	return true
}

// dataOf returns the data ids of voters, nil if none is known.
func (e *Edit) dataOf(voters []NodeID) []DataID {
	old := e.after.config.orZero()
	data, known := make([]DataID, len(voters)), false
	for i, v := range voters {
		data[i] = old.DataOf(v)
		if m := e.after.Member(v); m != nil {
			data[i] = m.Data
		}
		known = known || data[i] != 0
	}
	if !known {
		return nil
	}
	return data
}

// Found sets the first voters of a cluster, which have generation 1: those that were
// remembered or listed when the cluster was founded.
func (e *Edit) Found(c Voters) bool {
	if e.after.config.orZero().Gen != 0 || len(c.Voters) == 0 {
		return false
	}
	c.Gen = 1
	e.after.config = e.after.config.write(&c)
	e.touch(KeyVoters, NodeID{})
	return true
}

// RaiseEpochs makes the epochs of the cluster begin with a later birth, in unix
// milliseconds, at most [LatestBirth].
func (e *Edit) RaiseEpochs(born int64) bool {
	if born <= e.after.EpochBorn() || !isBirth(born) || !e.after.epochs.raise(millis(born)) {
		return false
	}
	e.touch(KeyRegisters, NodeID{})
	return true
}

// Yield records that this cluster has yielded to another one of the same name.
func (e *Edit) Yield(to Yield) bool {
	if to.Validate() != nil || !e.after.yielded.raise(to) {
		return false
	}
	e.touch(KeyRegisters, NodeID{})
	return true
}

// SetPrunedBefore forgets tombstones from before a wall time. Only a leader may call
// it, under convergence, and for times so long past that no news of the removed nodes
// is still under way: a node that still has a forgotten node as a member would bring
// it back.
func (e *Edit) SetPrunedBefore(at time.Time) bool {
	if at.UnixMilli() > latestTime || !e.after.pruned.raise(millis(at.UnixMilli())) {
		return false
	}
	e.after.prune()
	e.touch(KeyRegisters, NodeID{})
	return true
}

// SetDowning replaces the downing strategy of the cluster. The present strategy
// becomes the previous one.
func (e *Edit) SetDowning(strategy DowningStrategy) bool {
	old := e.after.downing.orZero()
	if strategy == old.DowningStrategy || old.Gen >= maxCount {
		return false
	}
	e.after.downing = e.after.downing.write(&DowningRegister{Gen: old.Gen + 1, DowningStrategy: strategy, Previous: old.DowningStrategy})
	e.touch(KeyRegisters, NodeID{})
	return true
}

// SetCluster sets the id of the cluster. Only the first member does so, once.
func (e *Edit) SetCluster(id ClusterID) bool {
	if !e.after.cluster.value.IsZero() || id.IsZero() || !isBirth(id.Born) {
		return false
	}
	e.after.cluster.value = id
	e.touch(KeyCluster, NodeID{})
	return true
}

func (e *Edit) ownMembers() {
	if !e.copied.members {
		e.after.members = slices.Clone(e.after.members)
		e.copied.members = true
	}
}

func (e *Edit) replaceMember(m *Member) {
	e.ownMembers()
	i, _ := findMember(e.after.members, m.Node)
	e.after.members[i] = m
	e.touch(KeyMember, m.Node)
}

// ownRows returns a copy of the rows of self.
func (e *Edit) ownRows() ObserverRows {
	if i, ok := e.after.findRows(e.self); ok {
		return *e.after.rows[i]
	}
	return ObserverRows{Observer: e.self}
}

func (e *Edit) putRows(set ObserverRows) {
	if !e.copied.rows {
		e.after.rows = slices.Clone(e.after.rows)
		e.copied.rows = true
	}
	i, found := e.after.findRows(e.self)
	if found {
		e.after.rows[i] = &set
	} else {
		e.after.rows = slices.Insert(e.after.rows, i, &set)
	}
	e.touch(KeyObserver, e.self)
}

// unaccountedKeys are the keys of records that may hold effects of edits of removed nodes which no
// clock entry accounts for.
type unaccountedKeys struct {
	all  bool  // Any record may hold such effects.
	keys []Key // Sorted.
}

func (o unaccountedKeys) isZero() bool { return !o.all && len(o.keys) == 0 }

func (o unaccountedKeys) union(p unaccountedKeys) unaccountedKeys {
	if p.isZero() {
		return o
	}
	return unaccountedKeys{all: o.all || p.all, keys: sortedKeys(slices.Concat(o.keys, p.keys))}
}

// unaccountedOf looks the lost edits up in histories.
func unaccountedOf(lost []span, histories ...history) unaccountedKeys {
	if len(lost) == 0 {
		return unaccountedKeys{}
	}
	for _, h := range histories {
		edits, ok := h.keys(lost)
		if !ok {
			continue
		}
		var keys []Key
		for _, e := range edits {
			keys = append(keys, e.Keys...)
		}
		return unaccountedKeys{keys: sortedKeys(keys)}
	}
	return unaccountedKeys{all: true}
}
