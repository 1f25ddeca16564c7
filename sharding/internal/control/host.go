// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"maps"
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// A region of a node: it registers at the coordinator and reports what it hosts; onHost,
// onStop, onResume and onRelease obey its commands, and onHalted answers when a cell has
// stopped; onLookup and onMap keep the cells' routes; leave and checkClosed hand everything
// over when the node leaves.

// host is the region of a kind on this node: the part of [Control] that hosts shards
// of the kind and holds a copy of its map. Invariants, between steps:
//
//	R1  a shard is in hosted as serving or stopping only if its cell was told to
//	    host it, and has not answered [protocol.ShardStopped];
//	R2  no command of a term below the promise is obeyed;
//	R3  the epochs of homes only rise.
type host struct {
	kind *perKind
	cfg  KindConfig

	homes   shardMap[Home] // The copy of the map, by shard; the node is zero where the home is not known.
	term    protocol.Term  // The term of the copy.
	version uint64         // The version of the copy.

	hosted    map[protocol.ShardID]*hosted
	snapshots heldSnapshots                       // The snapshots of shards that have stopped here.
	began     map[protocol.ShardID]protocol.Epoch // The epoch under which hosting began here last.
	wanted    map[protocol.ShardID]protocol.Epoch // Shards whose cell waits for a home above an epoch.
	layouts   layoutHistory
	imports   importState
	flush     bool         // The lookupTimer is armed.
	closed    bool         // The node leaves, and all its shards are handed over.
	said      Registration // The registration that was sent last.
	load      loadMeter
	gates     gates
	scale     Scale           // The latest that a coordinator has said of how many shards are in use.
	since     machine.Instant // When the region came.
	taken     bool            // A coordinator has accepted the region once.
	// refused is the present refusal of the region by a coordinator; zero when the region
	// is not refused.
	refused SettingsRefused
}

// hosted is a shard that this region hosts, or has stopped for a coordinator.
type hosted struct {
	epoch, base protocol.Epoch
	state       HostState
	positions   []protocol.Position // The positions of the streams, once the shard has stopped.
	halted      protocol.Term       // The promise of the node when the shard stopped.
	again       machine.Instant     // When the coordinator is told once more that the shard has stopped,
	pause       time.Duration       // and this long after it was told last.
}

func newHost(k *perKind, cfg KindConfig) *host {
	h := &host{
		kind: k, cfg: cfg,
		hosted: make(map[protocol.ShardID]*hosted),
		began:  make(map[protocol.ShardID]protocol.Epoch),
		wanted: make(map[protocol.ShardID]protocol.Epoch),
		since:  k.control.now.Mono,
		scale:  Scale{Count: cfg.Scale},
	}
	h.gates.host = h
	h.homes.add(protocol.Layout{Shards: cfg.Settings.Shards})
	return h
}

// registration describes the region as it is now, under a number of its own.
func (h *host) registration() Registration {
	now := Registration{
		Settings: h.cfg.Settings, Proxy: h.cfg.Proxy || h.closed,
		Suspended: h.kind.control.suspended || h.kind.control.leaving, Drained: h.kind.control.drain.on,
		Follows:  !h.cfg.Fixed && !h.cfg.OnOldest,
		Capacity: h.cfg.Capacity, Scale: h.scale, Takeover: h.told(),
		Number: h.said.Number,
	}
	if now != h.said {
		now.Number++
		h.said = now
	}
	now = h.said
	// A millisecond at least: nothing stands for a region that does not say.
	now.Load, now.LoadShards = h.load.registered()
	now.Age = min(max(h.kind.control.now.Mono.Sub(h.since).Truncate(time.Millisecond), time.Millisecond), MaxAge)
	return now
}

// report answers a query. Positions of shards that had stopped before are
// forgotten: the coordinator that asked for them may have passed them on already,
// so they must never be passed on again. Those of shards that stopped for the
// present coordinator stay, however often it asks: it may still miss them.
func (h *host) report(to gossip.NodeID, term protocol.Term) {
	m := Report{Kind: h.cfg.Name, Term: term, Registration: h.registration()}
	h.layouts.report(&m)
	for _, s := range slices.Sorted(maps.Keys(h.hosted)) {
		entry := h.hosted[s]
		if entry.state == Halted {
			if entry.halted.Compare(term) < 0 {
				delete(h.hosted, s)
				h.snapshots.drop(s)
			}
			continue
		}
		m.Hosted = append(m.Hosted, Hosted{Shard: s, Epoch: entry.epoch, Base: entry.base, State: entry.state})
	}
	h.kind.send(to, m)
}

// register makes the region known to the node that this node takes for the coordinator's.
func (h *host) register() {
	to := h.kind.coordinatorNode()
	if !to.IsZero() && (!h.closed || len(h.wanted) > 0) {
		h.registerAt(to)
	}
}

func (h *host) registerAt(to gossip.NodeID) {
	h.kind.send(to, Register{
		Kind: h.cfg.Name, Registration: h.registration(), Term: h.term, Version: h.version,
		Wanted: slices.Sorted(maps.Keys(h.wanted)),
	})
}

// measure has the load measured when it is time.
func (h *host) measure() {
	if !h.cfg.Proxy && h.load.measures(h.kind.control.now.Mono) {
		h.kind.control.out.Add(MeasureLoad{Kind: h.cfg.Name})
	}
}

// toShard has the runtime apply an input to the cell of a shard.
func (h *host) toShard(s protocol.ShardID, in protocol.CellInput) {
	h.kind.control.out.Add(ToShard{Kind: h.cfg.Name, Shard: s, Input: in})
}

// onHost obeys the order to host shards, unless a higher epoch of a shard is known or the
// node is leaving.
func (h *host) onHost(from gossip.NodeID, m Host) {
	if h.cfg.Proxy {
		return
	}
	h.learnScale(m.Scale)
	var done []ShardEpoch
	var back []StoppedShard
	for _, hs := range m.Shards {
		switch {
		case h.homes.at(hs.Shard) == nil:
		case h.kind.control.leaving && h.canReturnUntouched(hs):
			back = append(back, StoppedShard(hs))
		case h.hosts(hs):
			done = append(done, ShardEpoch{Shard: hs.Shard, Epoch: hs.Epoch})
		case h.halted(hs):
			back = append(back, h.stopped(hs.Shard))
		}
	}
	if len(done) > 0 {
		h.kind.send(from, Hosting{Kind: h.cfg.Name, Term: m.Term, Shards: done})
	}
	if len(back) > 0 {
		// A coordinator that does not know yet that this node is leaving would give
		// the shards back to it.
		h.registerAt(from)
		h.kind.sendStopped(from, m.Term, back)
	}
}

// canReturnUntouched reports whether the shard of an order can be handed back as it came, with the
// positions of its former home: nothing of it runs here, it was not hosted under the epoch of the
// order, and the order is not older than the home that is known.
func (h *host) canReturnUntouched(hs HostShard) bool {
	if entry := h.hosted[hs.Shard]; entry != nil && (entry.epoch == hs.Epoch || entry.state != Halted) {
		return false
	}
	return h.began[hs.Shard].Less(hs.Epoch) && !hs.Epoch.Less(h.homes.at(hs.Shard).Epoch)
}

// halted reports whether this node leaves, hosted the shard under the epoch of the order
// and has stopped it.
func (h *host) halted(hs HostShard) bool {
	entry := h.hosted[hs.Shard]
	return h.kind.control.leaving && entry != nil && entry.epoch == hs.Epoch && entry.state == Halted
}

// hosts begins to host the shard, unless the order is out of date, and reports whether the
// shard is hosted under the epoch of the order.
func (h *host) hosts(hs HostShard) bool {
	self := h.kind.control.cfg.Self
	if entry := h.hosted[hs.Shard]; entry != nil {
		if entry.epoch == hs.Epoch {
			return entry.state != Halted
		}
		if hs.Epoch.Less(entry.epoch) {
			return false
		}
		if entry.state != Halted {
			h.kind.violation(hs.Shard, "told to host what this node hosts under epoch "+entry.epoch.String())
			entry.epoch, h.began[hs.Shard] = hs.Epoch, hs.Epoch
			h.gates.begin(hs.Shard, hs.cell())
			return true
		}
	}
	known := *h.homes.at(hs.Shard)
	if hs.Epoch.Less(known.Epoch) || hs.Epoch == known.Epoch && known.Node != self {
		return false
	}
	if h.began[hs.Shard] == hs.Epoch {
		return false // The shard has stopped under this epoch: the order is an old one.
	}
	h.snapshots.drop(hs.Shard)
	h.hosted[hs.Shard], h.began[hs.Shard] = &hosted{epoch: hs.Epoch, base: hs.Base, state: Serving}, hs.Epoch
	*h.homes.at(hs.Shard) = Home{Shard: hs.Shard, Node: self, Epoch: hs.Epoch, Base: hs.Base}
	delete(h.wanted, hs.Shard)
	if h.kind.control.suspended {
		h.toShard(hs.Shard, protocol.SuspendHosting{})
	}
	h.gates.begin(hs.Shard, hs.cell())
	return true
}

func (h HostShard) cell() protocol.StartHosting {
	return protocol.StartHosting{Epoch: h.Epoch, Base: h.Base, Positions: h.Positions, Snapshots: h.Snapshots}
}

func (h *host) onStop(from gossip.NodeID, m Stop) { h.stop(from, m.Term, m.Shards, false) }

// onRelease gives up the entities that do not stop. A shard for which the [Stop] was lost
// is stopped first.
func (h *host) onRelease(from gossip.NodeID, m Release) { h.stop(from, m.Term, m.Shards, true) }

// stop stops shards, or says that they have stopped; with release, what does not stop is
// given up.
func (h *host) stop(from gossip.NodeID, term protocol.Term, shards []ShardEpoch, release bool) {
	var done []StoppedShard
	for _, se := range shards {
		entry := h.hosted[se.Shard]
		switch {
		case entry == nil || entry.epoch != se.Epoch:
			continue
		case entry.state == Halted:
			done = append(done, h.stopped(se.Shard))
			continue
		case h.gates.waits(se.Shard):
			h.gates.withdraw(se.Shard)
			done = append(done, h.stopped(se.Shard))
			continue
		case entry.state == Serving:
			entry.state = Stopping
			h.toShard(se.Shard, protocol.StopHosting{Epoch: se.Epoch, Leaving: h.kind.control.leaving})
		}
		if release {
			h.toShard(se.Shard, protocol.ReleaseHosting{Epoch: se.Epoch})
		}
	}
	h.kind.sendStopped(from, term, done)
}

// stopped says of a shard that has stopped what its next home has to know.
func (h *host) stopped(s protocol.ShardID) StoppedShard {
	entry := h.hosted[s]
	h.snapshots.expires(s, h.kind.control.now.Mono)
	return StoppedShard{Shard: s, Epoch: entry.epoch, Base: entry.base, Positions: entry.positions, Snapshots: h.snapshots.of(s)}
}

func (h *host) onResume(from gossip.NodeID, m Resume) {
	var resumed []ShardEpoch
	var done []StoppedShard
	for _, se := range m.Shards {
		entry := h.hosted[se.Shard]
		switch {
		case entry == nil || entry.epoch != se.Epoch:
			continue
		case entry.state == Halted:
			done = append(done, h.stopped(se.Shard))
			continue
		case entry.state == Stopping:
			entry.state = Serving
			h.toShard(se.Shard, protocol.ResumeHosting{Epoch: se.Epoch})
		}
		resumed = append(resumed, se)
	}
	if len(resumed) > 0 {
		h.kind.send(from, Resumed{Kind: h.cfg.Name, Term: m.Term, Shards: resumed})
	}
	h.kind.sendStopped(from, m.Term, done)
}

// onHalted hears from a cell that its shard has stopped.
func (h *host) onHalted(s protocol.ShardID, e protocol.ShardStopped) {
	entry := h.hosted[s]
	if entry == nil || entry.epoch != e.Epoch {
		return
	}
	h.halts(entry, e.Base, e.Positions)
	h.gates.halted(s)
	h.snapshots.put(s, e.Snapshots, h.kind.snapshotsUntil())
	done := []StoppedShard{h.stopped(s)}
	to, asker := h.kind.coordinatorNode(), h.kind.asker
	if !to.IsZero() {
		h.kind.sendStopped(to, h.kind.promise, done)
	}
	if asker != to && h.kind.control.state.Member(asker) != nil {
		h.kind.sendStopped(asker, h.kind.promise, done) // The asker leaves, and coordinates until its moves have ended.
	}
	h.checkClosed()
}

// repeat says again of shards that have stopped, and have no other home as this node knows. A coordinator that has
// asked for that asks again, but a shard may have stopped though it did not: its lease was lost, or the order to stop
// came after it had been taken back.
func (h *host) repeat() {
	now, to := h.kind.control.now.Mono, h.kind.coordinatorNode()
	if to.IsZero() {
		return
	}
	var halted []protocol.ShardID
	for s, entry := range h.hosted { //quorate:unordered sorted below
		if entry.state == Halted && h.homes.at(s).Epoch == entry.epoch && now >= entry.again {
			halted = append(halted, s)
		}
	}
	slices.Sort(halted)
	var again []StoppedShard
	for _, s := range halted {
		entry := h.hosted[s]
		entry.pause = min(2*entry.pause, maxRepeat)
		entry.again = now.Add(entry.pause)
		again = append(again, h.stopped(s))
	}
	h.kind.sendStopped(to, h.kind.promise, again)
}

// maxRepeat is the longest pause between two messages that say that a shard has stopped.
const maxRepeat = 16 * time.Second

// halts notes that a shard has stopped, and where its streams are.
func (h *host) halts(entry *hosted, base protocol.Epoch, positions []protocol.Position) {
	entry.state, entry.base, entry.positions, entry.halted = Halted, base, positions, h.kind.promise
	entry.pause = h.kind.timings.Retry
	entry.again = h.kind.control.now.Mono.Add(entry.pause)
}

// onLookup hears from a cell that it needs a home above an epoch. Lookups are
// gathered for a moment, since a node that starts needs many.
func (h *host) onLookup(now machine.Now, s protocol.ShardID, e protocol.Lookup) {
	known := h.homes.at(s)
	if known == nil {
		return
	}
	if home := *known; !home.Node.IsZero() && e.Above.Less(home.Epoch) {
		h.route(home)
		return
	}
	h.wanted[s] = e.Above
	if !h.flush {
		h.flush = true
		h.kind.control.out.Arm(lookupTimer{h.cfg.Name}, now.Mono.Add(lookupGather))
	}
}

func (h *host) route(home Home) {
	h.toShard(home.Shard, protocol.SetRoute{Home: home.Node, Epoch: home.Epoch, Base: home.Base})
}

// onMap takes over a whole map, or the changes of a version.
func (h *host) onMap(from gossip.NodeID, m Map) {
	h.accepted()
	if m.From != 0 && (m.Term != h.term || m.From > h.version) {
		h.kind.send(from, NeedMap{Kind: h.cfg.Name, Term: m.Term})
		return
	}
	if m.Term == h.term && m.To <= h.version {
		return
	}
	h.term, h.version = m.Term, m.To
	news := h.relayout(m)
	for _, home := range m.Homes {
		if h.homes.at(home.Shard) != nil {
			h.learn(home)
		}
	}
	if h.learnRetired(m) || news {
		h.registerAt(from) // The coordinator goes on when all regions know.
	}
}

// accepted notes that a coordinator has accepted the region, or does not refuse it any
// more: a coordinator sends its map only to regions that it has accepted.
func (h *host) accepted() {
	again := h.refused != (SettingsRefused{})
	if h.taken && !again {
		return
	}
	h.taken, h.refused = true, SettingsRefused{}
	h.kind.control.out.Publish(KindAccepted{Kind: h.cfg.Name, Again: again})
}

// learn takes over one entry of the map. A region that hosts the shard under a
// lower epoch has been passed over; its cell stops by itself.
func (h *host) learn(home Home) {
	if !h.homes.at(home.Shard).Epoch.Less(home.Epoch) {
		return
	}
	*h.homes.at(home.Shard) = home
	if above, ok := h.wanted[home.Shard]; ok && above.Less(home.Epoch) {
		delete(h.wanted, home.Shard)
	}
	if old := h.hosted[home.Shard]; old != nil && old.epoch.Less(home.Epoch) && home.Node != h.kind.control.cfg.Self {
		if old.state != Halted {
			h.kind.violation(home.Shard, "hosted here under epoch "+old.epoch.String()+
				", while the map says "+home.Node.String()+" under epoch "+home.Epoch.String())
		}
		delete(h.hosted, home.Shard)
		h.gates.release(home.Shard)
		h.snapshots.drop(home.Shard)
	}
	h.route(home)
}

// hosting returns how many shards this node hosts.
func (h *host) hosting() int {
	n := 0
	for _, entry := range h.hosted { //quorate:unordered a count
		if entry.state != Halted {
			n++
		}
	}
	return n
}

// leave hands everything over when the node is leaving. The coordinator moves
// the shards; when nobody is left to take them, they are stopped at once.
func (h *host) leave() {
	if h.closed {
		return
	}
	if !h.kind.successor() {
		for _, s := range slices.Sorted(maps.Keys(h.hosted)) {
			entry := h.hosted[s]
			switch {
			case h.gates.waits(s):
				h.gates.withdraw(s)
			case entry.state == Serving:
				entry.state = Stopping
				h.toShard(s, protocol.StopHosting{Epoch: entry.epoch, Leaving: true})
			}
		}
	}
	h.checkClosed()
}

// checkClosed closes the region of a node that leaves once it hosts no shard and the map
// says that other nodes host the shards that it had. Before that, the positions of a shard
// may still be lost on their way to the coordinator, which asks for them again, and needs
// this node to answer.
func (h *host) checkClosed() {
	if h.kind.control.leaving && (len(h.hosted) == 0 || !h.kind.successor() && h.hosting() == 0) {
		h.closed = true
	}
}
