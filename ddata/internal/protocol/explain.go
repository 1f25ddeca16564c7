// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// Questions of people: how the groups stand ([Survey]), and why a key is as it is ([ExplainKey]). The first is answered
// from what is known here ([group.status]). For the second the homes of the key are asked, as by a read, and the answer
// is made when all have answered or the limit has passed ([explainer]). No question changes anything.

// Survey is the query for the state of all groups. [SurveyResult] answers it.
type Survey struct{ Op OpID }

// SurveyResult is the effect that answers [Survey].
type SurveyResult struct {
	Op     OpID
	Groups []GroupStatus
}

// ExplainKey is the query for where a key lives and why it is as it is. [Explanation] answers
// it.
type ExplainKey struct {
	Op    OpID
	Group uint8
	Key   string
	Limit time.Duration // How long the homes may take to answer.
}

// GroupStatus is what a node knows of a group.
type GroupStatus struct {
	Gen    uint64 // 0 while no register is known.
	Phase  Phase
	Sealed bool
	// Quorum says that a winning part of the replicas of every key is reachable.
	Quorum   bool
	Since    time.Duration // How long the generation has been known here.
	Swept    uint64        // The generation of the last sweep.
	Leader   gossip.NodeID // Zero for none.
	Refused  string        // Why this replica cannot take part.
	Disputed string        // Which nodes claim to be the same replica, "" for none.
	Apart    string        // Why this node's replica does not count for now, "" if it does.
	Unsure   time.Duration // How long this node's replica may have lacked what it had acknowledged; 0: it does not.
	Self     ReplicaID     // 0 if this node holds no data of the group.
	Caught   bool          // This node's replica lacks nothing.
	Sources  []ReplicaID   // The replicas from which this node's replica takes in what it lacks.
	Replicas []ReplicaStatus
	Held     []HeldStatus
	Store    StoreStatus
	Waiting  int // Operations of this node that wait.
}

// ReplicaStatus is what a node knows of a replica in the sets of a group.
type ReplicaStatus struct {
	ID                 ReplicaID
	Node               gossip.NodeID // Zero if it is not known.
	Zone               string
	Current, Next, Old bool
	Present            bool          // Its node is a member, and reachable.
	Apart              bool          // It does not count for now.
	Unsure             bool          // Apart because it may have lost what it has acknowledged.
	Caught             bool          // It is known to lack nothing.
	Gen                uint64        // The generation that it is known to know.
	Heard              time.Duration // How long ago it was heard last, 0 for this node.
}

// HeldStatus is the state of buckets that are held back, see [Held].
type HeldStatus struct {
	Buckets int // How many.
	Homes   []ReplicaID
	Gone    []ReplicaID // The present and former homes that are replicas of no member.
	Moves   bool        // The change that is under way gives the buckets homes among the members.
}

// StoreStatus is the state of a group's store.
type StoreStatus struct {
	Used    bool  // The group is durable, and this node holds it.
	Failed  error // Why the last batch was not written, nil if it was.
	Writing bool
	Held    int // Messages and answers that wait for the store.
}

// Explanation is the effect that answers [ExplainKey].
type Explanation struct {
	Op        OpID
	Status    GroupStatus
	Here      bool         // This node's replica is a home of the key.
	Entry     *table.Entry // What this node or, if it is no home, some home holds; nil for nothing.
	Homes     []Home       // The homes of the key in all sets, sorted.
	Held      *HeldStatus  // The record of the key's bucket, nil unless that is held back.
	Tombstone TombstoneState
	// Unconfirmed are, for [AwaitsReplicas], those that have not answered the sweep.
	Unconfirmed []ReplicaID
	Ops         []Waiting // Operations on the key that wait, in the order in which they began.
}

// Home is a replica that is to hold a key.
type Home struct {
	ID       ReplicaID
	Answered bool
	Entry    *table.Entry // What it has answered, nil for nothing.
	Lacks    []Lag        // The updates that other homes hold and this one does not.
	Undead   bool         // Other homes hold a tombstone, and this one does not.
	// Since is for how long at least something has been lacking, 0 if nothing is.
	Since time.Duration
	// Unread is for how long a batch with the key has waited for the answer of the replica, 0 if none waits or if the
	// replica lacks nothing.
	Unread time.Duration
}

// Lag says how many updates of an origin a replica lacks.
type Lag = table.Version

// TombstoneState says what the tombstone of a key waits for until it is swept.
type TombstoneState uint8

// The states of tombstones.
const (
	// NoTombstone: the key has none.
	NoTombstone TombstoneState = iota
	// AwaitsGeneration: the tombstone is of the present generation.
	AwaitsGeneration
	// AwaitsChange: the set of replicas is changing.
	AwaitsChange
	// AwaitsLeader: the next sweep may drop it; the leader knows who has not confirmed.
	AwaitsLeader
	// AwaitsReplicas: this node leads, and not all replicas have confirmed.
	AwaitsReplicas
	// AwaitsSweep: the next sweep drops it.
	AwaitsSweep
)

// Waiting is an operation that waits.
type Waiting struct {
	Kind    string // "read", "write" or "delete".
	Level   Level
	Since   time.Duration
	Missing []ReplicaID
}

// explainer is the part of a group that answers questions about keys.
type explainer struct {
	*known

	out     *sender
	lags    *lags
	queries map[OpID]*keyQuery // Those that wait for answers of homes.
}

// keyQuery is one question about a key.
type keyQuery struct {
	op      OpID
	key     string
	until   machine.Instant
	own     *table.Entry               // What this replica held when the question began, nil for nothing,
	hash    uint64                     // and the hash of that.
	asked   map[ReplicaID]bool         // The homes that were asked.
	answers map[ReplicaID]*table.Entry // What homes have answered; nil: nothing.
}

// maxKeyQueries bounds the questions under way.
const maxKeyQueries = 64

// begin asks the homes of a key what they hold. It returns the question if that can be answered at once, else nil.
func (s *explainer) begin(in ExplainKey) *keyQuery {
	x := &keyQuery{op: in.Op, key: in.Key, until: s.m.now.Mono.Add(in.Limit), asked: map[ReplicaID]bool{}, answers: map[ReplicaID]*table.Entry{}}
	if s.home(s.self, in.Key) {
		if e, ok := s.table.Get(in.Key); ok {
			x.own, x.hash = &e, table.HashOfEntry(e)
		}
		x.answers[s.self] = x.own
	}
	if len(s.queries) >= maxKeyQueries {
		return x // With what is known here.
	}
	s.queries[x.op] = x
	s.ask(x)
	return s.ifComplete(x)
}

// ask asks the homes that were not asked yet, as far as their nodes are known.
func (s *explainer) ask(x *keyQuery) {
	for _, id := range s.views.homes(x.key) {
		if p := s.peers[id]; p != nil && id != s.self && !x.asked[id] {
			x.asked[id] = true
			s.out.send(p, Ask{Op: x.op, Key: x.key, Hash: x.hash})
		}
	}
}

// awaited reports whether a home may still answer: it is there, or may run on one of the
// nodes of which no replica is known yet.
func (s *explainer) awaited(id ReplicaID) bool {
	if s.peers[id] != nil || id == s.self {
		return s.present(id)
	}
	return s.unnamed()
}

// answer takes an answer of a home. With asked, it was one to a question about a key; over is that question if it can
// be answered now, else nil.
func (s *explainer) answer(p *peer, b Answer) (over *keyQuery, asked bool) {
	x := s.queries[b.Op]
	if x == nil {
		return nil, false
	}
	switch {
	case b.Away:
	case b.Same && b.Hash == x.hash:
		x.answers[p.id] = x.own
	case !b.Same:
		x.answers[p.id] = b.Entry
	}
	return s.ifComplete(x), true
}

// ifComplete returns a question if all homes that can be reached have answered it, else nil.
func (s *explainer) ifComplete(x *keyQuery) *keyQuery {
	for _, id := range s.views.homes(x.key) {
		if _, ok := x.answers[id]; !ok && s.awaited(id) {
			return nil
		}
	}
	return x
}

// late asks the homes whose nodes have become known, and reports whether the limit of a question has passed.
func (s *explainer) late(x *keyQuery) bool {
	s.ask(x)
	return s.m.now.Mono >= x.until
}

// sorted returns the questions in the order in which they began.
func (s *explainer) sorted() []*keyQuery {
	return slices.SortedFunc(maps.Values(s.queries), func(a, b *keyQuery) int { return cmp.Compare(a.op, b.op) })
}

// explain answers a question with what is known; nil: none.
func (g *group) explain(x *keyQuery) {
	if x == nil {
		return
	}
	s := &g.explainer
	delete(s.queries, x.op)
	out := Explanation{Op: x.op, Status: g.status(), Here: g.home(g.self, x.key), Entry: x.own, Tombstone: s.tombstoneState(x.known()), Ops: g.ops.waitingOn(x.key)}
	all := x.versions()
	for _, id := range s.views.homes(x.key) {
		h := Home{ID: id}
		if h.Entry, h.Answered = x.answers[id]; h.Answered {
			s.judge(x, &h, all)
		}
		if !h.Answered || h.Since > 0 {
			h.Unread = max(g.propagation.waitedFor(id, x.key), g.lags.waitedFor(id, x.key))
		}
		out.Homes = append(out.Homes, h)
	}
	if g.reg != nil {
		if h := g.reg.heldBuckets()[table.BucketOf(x.key)]; h != nil {
			status := s.heldStatus(h)
			out.Held = &status
		}
	}
	if out.Tombstone == AwaitsReplicas {
		out.Unconfirmed = g.sweep.unconfirmed()
	}
	g.m.out.Add(out)
}

// known returns what this node or, if it is no home, some home holds.
func (x *keyQuery) known() *table.Entry {
	if x.own != nil {
		return x.own
	}
	for _, id := range x.ids() {
		if e := x.answers[id]; e != nil {
			return e
		}
	}
	return nil
}

// versions joins the updates that any home holds.
func (x *keyQuery) versions() (all table.Versions) {
	for _, id := range x.ids() {
		if e := x.answers[id]; e != nil {
			all = all.Join(e.Versions)
		}
	}
	return all
}

// ids returns the replicas that have answered, sorted.
func (x *keyQuery) ids() []ReplicaID {
	return slices.Sorted(maps.Keys(x.answers))
}

// judge fills in what a home lacks of all versions, and since when.
func (s *explainer) judge(x *keyQuery, h *Home, all table.Versions) {
	lacking := x.lacks(all, h.Entry)
	if len(lacking) == 0 {
		s.lags.has(h.ID, x.key)
		return
	}
	h.Since = s.lags.since(h.ID, x.key, x.own, lacking)
	for _, of := range lacking {
		if h.Undead = of.origin == tombOrigin; !h.Undead {
			h.Lacks = append(h.Lacks, Lag{Origin: of.origin, Count: of.to - of.have})
		}
	}
}

// survey answers with the state of all groups.
func (m *Machine) survey(in Survey) {
	answer := SurveyResult{Op: in.Op}
	for _, g := range m.groups {
		answer.Groups = append(answer.Groups, g.status())
	}
	m.out.Add(answer)
}

// homes returns the homes of a key in all sets, sorted; none while no register is known.
func (v *views) homes(key string) (ids []ReplicaID) {
	if v == nil {
		return nil
	}
	of := v.bucket(table.BucketOf(key))
	for _, r := range NewSet(slices.Concat(of.current, of.next, of.old)...) {
		ids = append(ids, r.ID)
	}
	return ids
}

// status returns what this node knows of the group.
func (g *group) status() GroupStatus {
	of := GroupStatus{Self: g.self, Refused: g.proposer.refused, Disputed: g.storeCheck.disputed(), Apart: g.storeCheck.why(), Waiting: len(g.ops.open), Gen: g.gen(), Phase: g.phase()}
	of.Store = StoreStatus{Used: g.disk.used, Failed: g.disk.failed, Writing: g.disk.writing != 0, Held: len(g.disk.held)}
	if g.storeCheck.unclean {
		of.Unsure = g.m.now.Mono.Sub(g.m.began)
	}
	if g.m.state != nil {
		of.Leader = g.leader()
	}
	if g.reg == nil {
		return of
	}
	there := func(id ReplicaID) bool { return g.present(id) && !g.isApart(id) }
	of.Quorum = g.views.each(func(v *view) bool { return v.current.Wins(there) })
	of.Sealed, of.Swept, of.Since, of.Caught = g.sealed, g.reg.Swept, g.m.now.Mono.Sub(g.proposer.began), g.holds() && g.caught && !g.apart()
	for _, r := range NewSet(slices.Concat(g.reg.Current, g.reg.Next, g.reg.Old)...) {
		of.Replicas = append(of.Replicas, g.explainer.replicaStatus(r))
	}
	for i := range g.reg.Held {
		of.Held = append(of.Held, g.explainer.heldStatus(&g.reg.Held[i]))
	}
	for _, x := range g.passes.open { //quorate:unordered sorted below
		if x.catchingUp {
			of.Sources = append(of.Sources, x.peer.id)
		}
	}
	slices.Sort(of.Sources)
	return of
}

// heldStatus returns what is known of buckets that are held back.
func (s *explainer) heldStatus(h *Held) HeldStatus {
	of := HeldStatus{Buckets: len(h.Buckets), Moves: h.Moves, Gone: s.missing(&view{current: h.Homes, old: h.Old})}
	for _, r := range h.Homes {
		of.Homes = append(of.Homes, r.ID)
	}
	return of
}

// replicaStatus returns what is known of one replica of the register.
func (s *explainer) replicaStatus(r Replica) ReplicaStatus {
	of := ReplicaStatus{
		ID: r.ID, Zone: r.Zone, Current: s.reg.Current.Has(r.ID), Next: s.reg.Next.Has(r.ID), Old: s.reg.Old.Has(r.ID),
		Present: s.reachable(r.ID), Apart: s.isApart(r.ID), Caught: s.hasCaught(r.ID),
	}
	if r.ID == s.self {
		of.Node, of.Gen, of.Unsure = s.m.cfg.Self, s.gen(), s.storeCheck.unclean
	} else if p := s.peers[r.ID]; p != nil {
		of.Node, of.Gen, of.Heard, of.Unsure = p.node, p.gen, s.m.now.Mono.Sub(p.heard), p.unsure != 0
	}
	return of
}

// tombstoneState returns what keeps a tombstone from being swept.
func (s *explainer) tombstoneState(e *table.Entry) TombstoneState {
	switch {
	case e == nil || e.State == table.Live:
		return NoTombstone
	case s.reg.Phase == PhaseJoint || !s.sealed:
		return AwaitsChange
	case e.Stamp >= s.gen():
		return AwaitsGeneration
	case !s.leads():
		return AwaitsLeader
	case len(s.out.sweep.unconfirmed()) > 0:
		return AwaitsReplicas
	default:
		return AwaitsSweep
	}
}

// unconfirmed returns the replicas that have not answered the sweep under way, if this node
// leads one.
func (s *sweep) unconfirmed() (ids []ReplicaID) {
	if s.answers == nil {
		return nil
	}
	for _, r := range s.reg.Current {
		if _, ok := s.answers[r.ID]; !ok {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

// waitedFor returns how long the oldest batch with a key has waited for a replica, 0 for none.
func (s *propagation) waitedFor(id ReplicaID, key string) time.Duration {
	for _, f := range s.flights {
		if _, carries := f.keys[key]; carries && f.to[id] {
			return s.m.now.Mono.Sub(f.sent)
		}
	}
	return 0
}

// waitingOn returns the operations on a key that wait.
func (s *ops) waitingOn(key string) (all []Waiting) {
	for _, o := range s.sorted() {
		if o.key != key {
			continue
		}
		w := Waiting{Kind: o.kind(), Level: o.level, Since: s.known.m.now.Mono.Sub(o.began)}
		for _, id := range s.known.views.homes(key) {
			if !o.stored[id] && !(o.stage == asking && o.has(id)) {
				w.Missing = append(w.Missing, id)
			}
		}
		all = append(all, w)
	}
	return all
}

// kind names an operation.
func (o *op) kind() string {
	switch {
	case o.read:
		return "read"
	case o.entry.State == table.Deleted:
		return "delete"
	default:
		return "write"
	}
}
