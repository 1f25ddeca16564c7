// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// The life of a coordinator: start asks all members; reports and registrations come in, and
// claim enters the shards that have a host; evaluate opens the coordinator once all have
// answered, then allocates and moves; each step ends with flush, which makes the changes the
// next version of the map and sends it out. The decisions are in coordinator_*.go.

// coordinator is the part of [Control] that decides where the shards of a kind
// live, on the oldest node. Invariants, between steps:
//
//	C1  nothing is allocated before every member has answered or is fenced;
//	C2  a shard has at most one home, and no new one before the old one has
//	    confirmed that it stopped, or is fenced;
//	C3  every epoch that is given is above all that were given before;
//	C4  the positions of a shard are passed on at most once;
//	C5  a shard takes part in at most one move, and moves holds every move under way.
type coordinator struct {
	kind *perKind
	term protocol.Term
	born int64
	n    uint64 // The version of the map.

	peers   map[gossip.NodeID]bool // The nodes to which the query goes, and whether each has answered.
	opened  bool                   // All peers have answered or are fenced: the coordinator allocates.
	regions map[gossip.NodeID]*member
	shards  []shard

	populated bool                               // Some shard has had a home: the first allocation is over.
	settleAt  machine.Instant                    // When the first allocation waits for further regions no longer.
	wanted    map[protocol.ShardID]gossip.NodeID // The region that asked last for the home of a shard without one.
	changed   map[protocol.ShardID]bool          // Shards whose entries have changed since the last flush.
	toHost    map[protocol.ShardID]bool          // Shards whose new homes are told to host by the next flush.
	gather    gather
	call      call
	fruitless int // Answers of the strategy in a row that gave no shard a home.

	plans     map[protocol.ShardID]plan            // Shards of leaving regions whose stop has not begun.
	planned   map[gossip.NodeID][]protocol.ShardID // The shards of plans by their homes, in the order in which their moves begin.
	moves     map[protocol.ShardID]*move           // The moves under way.
	rebalance rebalance
	history   history

	ending bool            // The node leaves: no move begins any more, and those under way end.
	endBy  machine.Instant // When the coordinator stops at the latest.
}

// gather says how far the gathering of shards without a home has come.
type gather uint8

const (
	gatherIdle    gather = iota
	gatherWaiting        // The timer is armed.
	gatherPassed         // The timer fired in this step.
)

// member is what the coordinator knows of one region.
type member struct {
	reg Registration
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
	deadline   machine.Instant // When the stop is taken back, or the entities are given up.
	notBefore  machine.Instant // When a move may be tried again.
	since      time.Time       // When the shard came into its phase.
	decision   string          // By which decision the shard has its home, and why.
	came       arrival         // The last move of the shard that evened out the load.
}

// arrival is the last move of a shard that evened out the load.
type arrival struct {
	from gossip.NodeID
	at   machine.Instant
}

func newCoordinator(k *perKind, term protocol.Term) *coordinator {
	return &coordinator{
		kind: k, term: term, born: k.control.state.EpochBorn(),
		n:       1,
		peers:   make(map[gossip.NodeID]bool),
		regions: make(map[gossip.NodeID]*member),
		shards:  make([]shard, k.settings.Shards),
		wanted:  make(map[protocol.ShardID]gossip.NodeID),
		changed: make(map[protocol.ShardID]bool),
		toHost:  make(map[protocol.ShardID]bool),
		plans:   make(map[protocol.ShardID]plan),
		planned: make(map[gossip.NodeID][]protocol.ShardID),
		moves:   make(map[protocol.ShardID]*move),
	}
}

func (c *coordinator) control() *Control { return c.kind.control }

func (c *coordinator) now() machine.Instant { return c.kind.control.now.Mono }

// start asks every node that may be hosting, also nodes that are removed and not
// fenced: these cannot answer, and are waited for. Nodes that this node never knew
// as members are fenced by now: the singleton rule waits for that.
func (c *coordinator) start() {
	for node := range c.control().serving { //quorate:unordered each entry by itself
		c.peers[node] = false
	}
	if h := c.kind.host; h != nil {
		c.populated = h.version > 1 // An earlier coordinator gave homes.
	}
	c.query()
	c.evaluate()
}

func (c *coordinator) stop() {
	c.control().out.Disarm(settleTimer{c.kind.name})
	c.control().out.Disarm(gatherTimer{c.kind.name})
	c.control().out.Disarm(callTimer{c.kind.name})
	c.control().out.Disarm(rebalanceTimer{c.kind.name})
}

// query asks the members that have not answered.
func (c *coordinator) query() {
	for _, node := range c.silent() {
		if c.control().state.Member(node) == nil {
			continue // The node was removed and cannot answer: the coordinator waits for its fence.
		}
		c.kind.send(node, Query{Kind: c.kind.name, Term: c.term})
	}
}

// silent returns the peers that have not answered, sorted.
func (c *coordinator) silent() []gossip.NodeID {
	var nodes []gossip.NodeID
	for node, answered := range c.peers { //quorate:unordered sorted below
		if !answered {
			nodes = append(nodes, node)
		}
	}
	slices.SortFunc(nodes, gossip.NodeID.Compare)
	return nodes
}

// tick repeats what went unanswered and looks at deadlines.
func (c *coordinator) tick() {
	c.query()
	c.overdue()
	c.command(PhaseStarting, PhaseStopping, PhaseResuming, PhaseReleasing)
	c.evaluate()
}

// commands holds the commands to homes, by home and sort.
type commands struct {
	hosts                    map[gossip.NodeID][]HostShard
	stops, resumes, releases map[gossip.NodeID][]ShardEpoch
}

func newCommands() commands {
	return commands{
		hosts: map[gossip.NodeID][]HostShard{}, stops: map[gossip.NodeID][]ShardEpoch{},
		resumes: map[gossip.NodeID][]ShardEpoch{}, releases: map[gossip.NodeID][]ShardEpoch{},
	}
}

// add adds the command that belongs to the shard's phase.
func (o commands) add(id protocol.ShardID, s *shard) {
	se := ShardEpoch{Shard: id, Epoch: s.epoch}
	switch s.phase {
	case PhaseStarting:
		o.hosts[s.home] = append(o.hosts[s.home], HostShard{Shard: id, Epoch: s.epoch, Base: s.base, Positions: s.positions})
	case PhaseStopping:
		o.stops[s.home] = append(o.stops[s.home], se)
	case PhaseResuming:
		o.resumes[s.home] = append(o.resumes[s.home], se)
	case PhaseReleasing:
		o.releases[s.home] = append(o.releases[s.home], se)
	}
}

// command sends the commands of all shards in the given phases.
func (c *coordinator) command(which ...Phase) {
	if c.control().suspended {
		return
	}
	o := newCommands()
	for i := range c.shards {
		if s := &c.shards[i]; slices.Contains(which, s.phase) {
			o.add(protocol.ShardID(i), s)
		}
	}
	c.send(o)
}

func (c *coordinator) send(o commands) {
	name := c.kind.name
	for _, to := range sortedNodes(o.hosts) {
		c.kind.send(to, Host{Kind: name, Term: c.term, Shards: o.hosts[to]})
	}
	for _, to := range sortedNodes(o.stops) {
		c.kind.send(to, Stop{Kind: name, Term: c.term, Shards: o.stops[to]})
	}
	for _, to := range sortedNodes(o.resumes) {
		c.kind.send(to, Resume{Kind: name, Term: c.term, Shards: o.resumes[to]})
	}
	for _, to := range sortedNodes(o.releases) {
		c.kind.send(to, Release{Kind: name, Term: c.term, Shards: o.releases[to]})
	}
}

func nodeNames(nodes []gossip.NodeID) []string {
	names := make([]string, 0, len(nodes))
	for _, node := range nodes {
		names = append(names, node.String())
	}
	return names
}

func sortedNodes[V any](m map[gossip.NodeID]V) []gossip.NodeID {
	return slices.SortedFunc(maps.Keys(m), gossip.NodeID.Compare)
}

// evaluate queries new members, opens the coordinator when all have answered, and once it
// is open allocates shards, begins moves and watches the load.
func (c *coordinator) evaluate() {
	st := c.control().state
	for _, node := range sortedNodes(c.control().serving) {
		if _, known := c.peers[node]; !known {
			c.peers[node] = false
			if st.Member(node) != nil {
				c.kind.send(node, Query{Kind: c.kind.name, Term: c.term})
			}
		}
	}
	if !c.opened && len(c.silent()) == 0 {
		c.opened = true
		c.control().out.Decide("coordinator", c.kind.name, "opened", fmt.Sprintf("all %d members have answered or are fenced", len(c.peers)))
	}
	if !c.opened || c.control().suspended {
		return
	}
	c.allocate()
	c.advance()
	c.watch()
}

// fence takes all shards from a member that can host no shard any more.
func (c *coordinator) fence(node gossip.NodeID) {
	delete(c.peers, node)
	delete(c.regions, node)
	for i := range c.shards {
		if s := &c.shards[i]; s.home == node {
			c.end(protocol.ShardID(i), OutcomeLost)
			delete(c.plans, protocol.ShardID(i))
			*s = shard{epoch: s.epoch, base: s.base, since: c.control().now.Wall}
		}
	}
	c.evaluate()
}

func (c *coordinator) isLeaving(node gossip.NodeID) bool {
	m := c.control().state.Member(node)
	return m != nil && (m.Status == gossip.Leaving || m.Status == gossip.Exiting)
}

// eligible returns the regions that may be given shards, sorted.
func (c *coordinator) eligible() []gossip.NodeID {
	var nodes []gossip.NodeID
	for _, node := range sortedNodes(c.regions) {
		m := c.control().state.Member(node)
		if r := c.regions[node]; m != nil && !r.reg.Proxy && !r.reg.Suspended &&
			c.kind.couldTake(m) && c.control().state.Reachable(node) {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// onNoRegion takes the answer of a node that hosts nothing.
func (c *coordinator) onNoRegion(from gossip.NodeID, m NoRegion) {
	if _, asked := c.peers[from]; asked && m.Term == c.term {
		c.peers[from] = true
		c.evaluate()
	}
}

// onReport takes the answer of a node that runs the kind.
func (c *coordinator) onReport(from gossip.NodeID, m Report) {
	if answered, asked := c.peers[from]; !asked || answered || m.Term != c.term {
		return
	}
	c.peers[from] = true
	if c.admit(from, m.Registration) {
		for _, h := range m.Hosted {
			if int(h.Shard) < len(c.shards) {
				c.claim(from, h)
			}
		}
	}
	c.sendWhole(from)
	c.evaluate()
}

// claim notes that a region hosts a shard. Of two regions the one with the higher epoch
// stays; the other learns from the map that it was passed over, and stops. A home that this
// coordinator gave itself is not changed by a report with a lower epoch: such a report, of
// a member that came after the opening, may have been long on its way.
func (c *coordinator) claim(from gossip.NodeID, h Hosted) {
	s := &c.shards[h.Shard]
	c.populated = true
	if s.epoch.Term == c.term && !s.epoch.Less(h.Epoch) {
		return
	}
	if !s.home.IsZero() && s.home != from {
		c.kind.violation(h.Shard, fmt.Sprintf("two hosts: %s under epoch %s and %s under epoch %s", s.home, s.epoch, from, h.Epoch))
		if h.Epoch.Less(s.epoch) {
			return
		}
	}
	c.end(h.Shard, OutcomeLost)
	*s = shard{
		home: from, epoch: h.Epoch, base: h.Base, phase: PhaseServing,
		since: c.control().now.Wall, decision: "reported by its host to a new coordinator",
	}
	if h.State == Stopping {
		c.depart(h.Shard, &move{from: from, reason: "an earlier coordinator had it stopped"})
	}
	c.changed[h.Shard] = true
}

// admit registers a region, or refuses it.
func (c *coordinator) admit(from gossip.NodeID, reg Registration) bool {
	if refusal, differ := c.kind.settings.Difference(c.kind.name, reg.Settings); differ {
		c.kind.send(from, refusal)
		return false
	}
	if r := c.regions[from]; r != nil {
		if reg.Number >= r.reg.Number { // Otherwise a later registration has overtaken this one.
			r.reg = reg
		}
		return true
	}
	c.regions[from] = &member{reg: reg}
	if !reg.Proxy {
		c.settleAt = c.now().Add(c.kind.timings.Settle)
		c.control().out.Arm(settleTimer{c.kind.name}, c.settleAt)
	}
	return true
}

// onRegister takes a registration, or its repetition.
func (c *coordinator) onRegister(from gossip.NodeID, m Register) {
	if !c.control().serving[from] || !c.admit(from, m.Registration) {
		return
	}
	if m.Term.Compare(c.term) < 0 && m.Version > 1 {
		c.populated = true // An earlier coordinator gave homes.
	}
	if m.Term != c.term || m.Version != c.n {
		c.sendWhole(from)
	}
	for _, s := range m.Wanted {
		if int(s) < len(c.shards) && c.shards[s].home.IsZero() {
			c.wanted[s] = from
		}
	}
	c.evaluate()
}

func (c *coordinator) onHosting(from gossip.NodeID, m Hosting) {
	c.each(from, m.Term, m.Shards, func(id protocol.ShardID, s *shard) {
		if s.phase == PhaseStarting {
			c.enter(s, PhaseServing)
			s.positions, s.travelling = nil, false
			c.end(id, OutcomeMoved)
		}
	})
	c.advance()
}

func (c *coordinator) onResumed(from gossip.NodeID, m Resumed) {
	c.each(from, m.Term, m.Shards, func(id protocol.ShardID, s *shard) {
		if s.phase == PhaseResuming {
			c.enter(s, PhaseServing)
			s.notBefore = c.now().Add(c.kind.timings.Handoff)
			c.end(id, OutcomeCalledOff)
		}
	})
	c.evaluate()
}

// each calls f for the shards of which from is the home under the epoch.
func (c *coordinator) each(from gossip.NodeID, term protocol.Term, shards []ShardEpoch, f func(protocol.ShardID, *shard)) {
	if term != c.term {
		return
	}
	for _, se := range shards {
		if int(se.Shard) >= len(c.shards) {
			continue
		}
		if s := &c.shards[se.Shard]; s.home == from && s.epoch == se.Epoch {
			f(se.Shard, s)
		}
	}
}

// onStopped takes stopped shards back from their home. The message is accepted whenever it
// comes, also after the stop was taken back: the home hosts the shards no more. A shard
// whose next home is decided goes there at once.
func (c *coordinator) onStopped(from gossip.NodeID, m ShardsStopped) {
	homeless := false
	var open []gossip.NodeID
	for _, ss := range m.Shards {
		if int(ss.Shard) >= len(c.shards) {
			continue
		}
		s := &c.shards[ss.Shard]
		if s.home != from || s.epoch != ss.Epoch {
			continue
		}
		if open == nil {
			open = c.eligible()
		}
		*s = shard{
			epoch: s.epoch, base: s.base, since: c.control().now.Wall,
			positions: ss.Positions, travelling: ss.Base == s.base,
		}
		if !c.land(ss.Shard, from, open) {
			c.wanted[ss.Shard] = from
			homeless = true
		}
	}
	if homeless {
		c.evaluate()
	} else {
		c.advance()
	}
}

// sendWhole sends the whole map to a region.
func (c *coordinator) sendWhole(to gossip.NodeID) {
	if c.regions[to] == nil {
		return
	}
	c.flush()
	m := Map{Kind: c.kind.name, Term: c.term, To: c.n}
	for i := range c.shards {
		if s := &c.shards[i]; !s.home.IsZero() {
			m.Homes = append(m.Homes, s.entry(protocol.ShardID(i)))
		}
	}
	c.kind.send(to, m)
}

func (s *shard) entry(id protocol.ShardID) Home {
	return Home{Shard: id, Node: s.home, Epoch: s.epoch, Base: s.base}
}

// flush makes what changed since the last flush the next version of the map, and
// tells the new homes and all regions.
func (c *coordinator) flush() {
	if len(c.changed) == 0 {
		return
	}
	m := Map{Kind: c.kind.name, Term: c.term, From: c.n, To: c.n + 1}
	c.n++
	o := newCommands()
	for _, id := range slices.Sorted(maps.Keys(c.changed)) {
		s := &c.shards[id]
		if s.home.IsZero() {
			continue
		}
		m.Homes = append(m.Homes, s.entry(id))
		if c.toHost[id] {
			o.add(id, s)
		}
	}
	clear(c.changed)
	clear(c.toHost)
	c.send(o)
	for _, node := range sortedNodes(c.regions) {
		c.kind.send(node, m)
	}
	c.control().out.Publish(HomesChanged{Kind: c.kind.name, Term: c.term, Homes: m.Homes})
}

// String describes the coordinator in one line.
func (c *coordinator) String() string {
	counts := [phases]int{}
	for i := range c.shards {
		counts[c.shards[i].phase]++
	}
	return fmt.Sprintf("term %s version %d opened %t peers %d silent %d regions %d open %d starting %d serving %d stopping %d resuming %d releasing %d moves %d planned %d ending %t",
		c.term, c.n, c.opened, len(c.peers), len(c.silent()), len(c.regions), counts[0], counts[1], counts[2], counts[3], counts[4], counts[5],
		len(c.moves), len(c.plans), c.ending)
}
