// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"maps"
	"slices"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// region is the part of [Control] that hosts the shards of a kind and holds a
// copy of its map. Invariants, between steps:
//
//	R1  a shard is in hosted as serving or stopping only if its cell was told to
//	    host it, and has not answered [ShardHalted];
//	R2  no command of a term below the promise is obeyed;
//	R3  the epochs of homes only rise.
type region struct {
	kind *kind
	cfg  KindConfig

	homes   []Home // By shard; without a node where the home is not known.
	term    Term   // Of the map copy.
	version uint64

	hosted map[ShardID]*hosted
	began  map[ShardID]Epoch // The epoch under which hosting began here last.
	wanted map[ShardID]Epoch // Shards whose cell waits for a home above an epoch.
	flush  bool              // lookupTimer is armed.
	closed bool              // The node leaves, and everything is handed over.
	said   Registration      // What was said of the region last.
	taken  bool              // A coordinator has accepted the region once.
	// refused is what the coordinator said about the settings last.
	refused SettingsRefused
}

// hosted is a shard that this region hosts, or has stopped for a coordinator.
type hosted struct {
	epoch, base Epoch
	state       HostState
	positions   []Position // Of a shard that has stopped.
	halted      Term       // The promise under which it stopped.
}

func newRegion(k *kind, cfg KindConfig) *region {
	return &region{
		kind: k, cfg: cfg,
		homes:  make([]Home, cfg.Settings.Shards),
		hosted: make(map[ShardID]*hosted),
		began:  make(map[ShardID]Epoch),
		wanted: make(map[ShardID]Epoch),
	}
}

// registration describes the region as it is now, under a number of its own.
func (r *region) registration() Registration {
	now := Registration{
		Settings: r.cfg.Settings, Proxy: r.cfg.Proxy || r.closed,
		Suspended: r.kind.control.suspended || r.kind.control.leaving, Capacity: r.cfg.Capacity,
		Number: r.said.Number,
	}
	if now != r.said {
		now.Number++
		r.said = now
	}
	return r.said
}

// report answers a query. Positions of shards that had stopped before are
// forgotten: the coordinator that asked for them may have passed them on already,
// so they must never be passed on again. Those of shards that stopped for the
// present coordinator stay, however often it asks: it may still miss them.
func (r *region) report(to gossip.NodeID, term Term) {
	m := Report{Kind: r.cfg.Name, Term: term, Registration: r.registration()}
	for _, s := range slices.Sorted(maps.Keys(r.hosted)) {
		h := r.hosted[s]
		if h.state == Halted {
			if h.halted.Compare(term) < 0 {
				delete(r.hosted, s)
			}
			continue
		}
		m.Hosted = append(m.Hosted, Hosted{Shard: s, Epoch: h.epoch, Base: h.base, State: h.state})
	}
	r.kind.send(to, m)
}

// register makes the region known to the coordinator, or to whom this node takes
// for it.
func (r *region) register() {
	to := r.kind.coordinatorNode()
	if !to.IsZero() && (!r.closed || len(r.wanted) > 0) {
		r.registerAt(to)
	}
}

func (r *region) registerAt(to gossip.NodeID) {
	r.kind.send(to, Register{
		Kind: r.cfg.Name, Registration: r.registration(), Term: r.term, Version: r.version,
		Wanted: slices.Sorted(maps.Keys(r.wanted)),
	})
}

// toShard tells the cell of a shard something.
func (r *region) toShard(s ShardID, in ShardInput) {
	r.kind.control.out.Add(ToShard{Kind: r.cfg.Name, Shard: s, Input: in})
}

// onHost obeys the order to host, unless an epoch above is known or the node is
// leaving.
func (r *region) onHost(from gossip.NodeID, m Host) {
	if r.cfg.Proxy {
		return
	}
	var done []ShardEpoch
	var back []StoppedShard
	for _, hs := range m.Shards {
		switch {
		case int(hs.Shard) >= len(r.homes):
		case r.kind.control.leaving && r.neverHosted(hs):
			back = append(back, StoppedShard(hs))
		case r.host(hs):
			done = append(done, ShardEpoch{Shard: hs.Shard, Epoch: hs.Epoch})
		case r.halted(hs):
			back = append(back, r.hosted[hs.Shard].stopped(hs.Shard))
		}
	}
	if len(done) > 0 {
		r.kind.send(from, Hosting{Kind: r.cfg.Name, Term: m.Term, Shards: done})
	}
	if len(back) > 0 {
		// A coordinator that does not know yet that this node is leaving would give
		// the shards back to it.
		r.registerAt(from)
		r.kind.send(from, ShardsStopped{Kind: r.cfg.Name, Term: m.Term, Shards: back})
	}
}

// neverHosted reports whether the shard has not been hosted here under the epoch,
// so that it can be handed back as it came: its positions are still those of the
// home before.
func (r *region) neverHosted(hs HostShard) bool {
	if h := r.hosted[hs.Shard]; h != nil && (h.epoch == hs.Epoch || h.state != Halted) {
		return false
	}
	return r.began[hs.Shard].Less(hs.Epoch) && !hs.Epoch.Less(r.homes[hs.Shard].Epoch)
}

// halted reports whether the shard was hosted under the epoch and has stopped.
func (r *region) halted(hs HostShard) bool {
	h := r.hosted[hs.Shard]
	return r.kind.control.leaving && h != nil && h.epoch == hs.Epoch && h.state == Halted
}

// host reports whether the shard is hosted under the epoch.
func (r *region) host(hs HostShard) bool {
	self := r.kind.control.cfg.Self
	if h := r.hosted[hs.Shard]; h != nil {
		if h.epoch == hs.Epoch {
			return h.state != Halted
		}
		if hs.Epoch.Less(h.epoch) {
			return false
		}
		if h.state != Halted {
			r.kind.violation(hs.Shard, "told to host what this node hosts under epoch "+h.epoch.String())
			h.epoch, r.began[hs.Shard] = hs.Epoch, hs.Epoch
			r.toShard(hs.Shard, hs.cell())
			return true
		}
	}
	known := r.homes[hs.Shard]
	if hs.Epoch.Less(known.Epoch) || hs.Epoch == known.Epoch && known.Node != self {
		return false
	}
	if r.began[hs.Shard] == hs.Epoch {
		return false // It stopped under this epoch: the order is an old one.
	}
	r.hosted[hs.Shard], r.began[hs.Shard] = &hosted{epoch: hs.Epoch, base: hs.Base, state: Serving}, hs.Epoch
	r.homes[hs.Shard] = Home{Shard: hs.Shard, Node: self, Epoch: hs.Epoch, Base: hs.Base}
	delete(r.wanted, hs.Shard)
	if r.kind.control.suspended {
		r.toShard(hs.Shard, Suspend{})
	}
	r.toShard(hs.Shard, hs.cell())
	return true
}

func (h HostShard) cell() StartHosting {
	return StartHosting{Epoch: h.Epoch, Base: h.Base, Positions: h.Positions}
}

func (r *region) onStop(from gossip.NodeID, m Stop) {
	var done []StoppedShard
	for _, se := range m.Shards {
		h := r.hosted[se.Shard]
		switch {
		case h == nil || h.epoch != se.Epoch:
		case h.state == Halted:
			done = append(done, h.stopped(se.Shard))
		case h.state == Serving:
			h.state = Stopping
			r.toShard(se.Shard, StopHosting{Epoch: se.Epoch, Leaving: r.kind.control.leaving})
		}
	}
	if len(done) > 0 {
		r.kind.send(from, ShardsStopped{Kind: r.cfg.Name, Term: m.Term, Shards: done})
	}
}

func (h *hosted) stopped(s ShardID) StoppedShard {
	return StoppedShard{Shard: s, Epoch: h.epoch, Base: h.base, Positions: h.positions}
}

func (r *region) onResume(from gossip.NodeID, m Resume) {
	var resumed []ShardEpoch
	var done []StoppedShard
	for _, se := range m.Shards {
		h := r.hosted[se.Shard]
		switch {
		case h == nil || h.epoch != se.Epoch:
			continue
		case h.state == Halted:
			done = append(done, h.stopped(se.Shard))
			continue
		case h.state == Stopping:
			h.state = Serving
			r.toShard(se.Shard, ResumeHosting{Epoch: se.Epoch})
		}
		resumed = append(resumed, se)
	}
	if len(resumed) > 0 {
		r.kind.send(from, Resumed{Kind: r.cfg.Name, Term: m.Term, Shards: resumed})
	}
	if len(done) > 0 {
		r.kind.send(from, ShardsStopped{Kind: r.cfg.Name, Term: m.Term, Shards: done})
	}
}

// onRelease gives up what does not stop. A shard whose stop was lost is stopped
// first.
func (r *region) onRelease(from gossip.NodeID, m Release) {
	var done []StoppedShard
	for _, se := range m.Shards {
		h := r.hosted[se.Shard]
		switch {
		case h == nil || h.epoch != se.Epoch:
		case h.state == Halted:
			done = append(done, h.stopped(se.Shard))
		case h.state == Serving:
			h.state = Stopping
			r.toShard(se.Shard, StopHosting{Epoch: se.Epoch, Leaving: r.kind.control.leaving})
			r.toShard(se.Shard, ReleaseHosting{Epoch: se.Epoch})
		default:
			r.toShard(se.Shard, ReleaseHosting{Epoch: se.Epoch})
		}
	}
	if len(done) > 0 {
		r.kind.send(from, ShardsStopped{Kind: r.cfg.Name, Term: m.Term, Shards: done})
	}
}

// onHalted hears from a cell that its shard has stopped.
func (r *region) onHalted(s ShardID, e ShardHalted) {
	h := r.hosted[s]
	if h == nil || h.epoch != e.Epoch {
		return
	}
	h.state, h.positions, h.base, h.halted = Halted, e.Positions, e.Base, r.kind.promise
	m := ShardsStopped{Kind: r.cfg.Name, Term: r.kind.promise, Shards: []StoppedShard{h.stopped(s)}}
	to, asker := r.kind.coordinatorNode(), r.kind.asker
	if !to.IsZero() {
		r.kind.send(to, m)
	}
	if asker != to && r.kind.control.state.Member(asker) != nil {
		r.kind.send(asker, m) // It leaves, and stops coordinating when its moves have ended.
	}
	r.checkClosed()
}

// onLookup hears from a cell that it needs a home above an epoch. Lookups are
// gathered for a moment, since a node that starts needs many.
func (r *region) onLookup(now machine.Now, s ShardID, e Lookup) {
	if int(s) >= len(r.homes) {
		return
	}
	if h := r.homes[s]; !h.Node.IsZero() && e.Above.Less(h.Epoch) {
		r.route(h)
		return
	}
	r.wanted[s] = e.Above
	if !r.flush {
		r.flush = true
		r.kind.control.out.Arm(lookupTimer{r.cfg.Name}, now.Mono.Add(lookupGather))
	}
}

func (r *region) route(h Home) {
	r.toShard(h.Shard, SetRoute{Home: h.Node, Epoch: h.Epoch, Base: h.Base})
}

// onMap takes over a map or its changes.
func (r *region) onMap(from gossip.NodeID, m Map) {
	r.accepted()
	if m.From != 0 && (m.Term != r.term || m.From > r.version) {
		r.kind.send(from, NeedMap{Kind: r.cfg.Name, Term: m.Term})
		return
	}
	if m.Term == r.term && m.To <= r.version {
		return
	}
	r.term, r.version = m.Term, m.To
	for _, h := range m.Homes {
		if int(h.Shard) < len(r.homes) {
			r.learn(h)
		}
	}
}

// accepted notes that a coordinator has accepted the region, or does not refuse it any
// more: only those that it has accepted get its map.
func (r *region) accepted() {
	again := r.refused != (SettingsRefused{})
	if r.taken && !again {
		return
	}
	r.taken, r.refused = true, SettingsRefused{}
	r.kind.control.out.Publish(KindAccepted{Kind: r.cfg.Name, Again: again})
}

// learn takes over one entry of the map. A region that hosts the shard under a
// lower epoch has been passed over; its cell stops by itself.
func (r *region) learn(h Home) {
	if !r.homes[h.Shard].Epoch.Less(h.Epoch) {
		return
	}
	r.homes[h.Shard] = h
	if above, ok := r.wanted[h.Shard]; ok && above.Less(h.Epoch) {
		delete(r.wanted, h.Shard)
	}
	if old := r.hosted[h.Shard]; old != nil && old.epoch.Less(h.Epoch) && h.Node != r.kind.control.cfg.Self {
		if old.state != Halted {
			r.kind.violation(h.Shard, "hosted here under epoch "+old.epoch.String()+
				", while the map says "+h.Node.String()+" under epoch "+h.Epoch.String())
		}
		delete(r.hosted, h.Shard)
	}
	r.route(h)
}

// hosting returns how many shards are hosted.
func (r *region) hosting() int {
	n := 0
	for _, h := range r.hosted { //quorate:unordered a count
		if h.state != Halted {
			n++
		}
	}
	return n
}

// leave hands everything over when the node is leaving. The coordinator moves
// the shards; when nobody is left to take them, they are stopped at once.
func (r *region) leave() {
	if r.closed {
		return
	}
	if !r.kind.successor() {
		for _, s := range slices.Sorted(maps.Keys(r.hosted)) {
			if h := r.hosted[s]; h.state == Serving {
				h.state = Stopping
				r.toShard(s, StopHosting{Epoch: h.epoch, Leaving: true})
			}
		}
	}
	r.checkClosed()
}

// checkClosed closes the region of a node that leaves once nothing is hosted and
// the map says that others have taken over what was: before that, the positions of
// a shard may still be lost on their way to the coordinator, which asks for them
// again, and must find somebody who answers.
func (r *region) checkClosed() {
	if r.kind.control.leaving && r.hosting() == 0 && (len(r.hosted) == 0 || !r.kind.successor()) {
		r.closed = true
	}
}
