// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/machine"
)

// coordinator is the part of [Control] that decides where the shards of a kind
// live, on the oldest node. Invariants, between steps:
//
//	C1  nothing is allocated before every member has answered or is fenced;
//	C2  a shard has at most one home, and no new one before the old one has
//	    confirmed that it stopped, or is fenced;
//	C3  every epoch that is given is above all that were given before;
//	C4  the positions of a shard are passed on at most once.
type coordinator struct {
	kind *kind
	term Term
	born int64
	n    uint64 // Version of the map.

	peers   map[gossip.NodeID]bool // Whom the query goes to, and whether they answered.
	opened  bool
	regions map[gossip.NodeID]*member
	shards  []shard

	populated bool            // Shards have had homes: there is no beginning to wait for.
	settleAt  machine.Instant // When shards that nobody asked for are allocated.
	wanted    map[ShardID]gossip.NodeID
	changed   map[ShardID]bool
	toHost    map[ShardID]bool
	gather    gather
	call      call
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
	home        gossip.NodeID // None in PhaseOpen.
	epoch, base Epoch
	phase       Phase
	// positions of the streams of base are set after a home has stopped, and
	// travelling says so; without it the streams must begin anew.
	positions  []Position
	travelling bool
	deadline   machine.Instant // When the stop is taken back.
	notBefore  machine.Instant // When a move may be tried again.
	since      time.Time       // When it came into its phase.
	decision   string          // By which it has its home, and why.
}

func newCoordinator(k *kind, term Term) *coordinator {
	return &coordinator{
		kind: k, term: term, born: k.control.state.Cluster().Born,
		n:       1,
		peers:   make(map[gossip.NodeID]bool),
		regions: make(map[gossip.NodeID]*member),
		shards:  make([]shard, k.settings.Shards),
		wanted:  make(map[ShardID]gossip.NodeID),
		changed: make(map[ShardID]bool),
		toHost:  make(map[ShardID]bool),
	}
}

func (c *coordinator) control() *Control { return c.kind.control }

func (c *coordinator) now() machine.Instant { return c.kind.control.now.Mono }

// start asks everybody that may be hosting, also those that are removed and not
// fenced: these cannot answer, and are waited for. Those whom this node never knew
// as members are fenced by now: the singleton rule waits for that.
func (c *coordinator) start() {
	for node := range c.control().serving { //quorate:unordered each entry by itself
		c.peers[node] = false
	}
	if r := c.kind.region; r != nil {
		c.populated = r.version > 1 // An earlier coordinator gave homes.
	}
	c.query()
	c.evaluate()
}

func (c *coordinator) stop() {
	c.control().out.Disarm(settleTimer{c.kind.name})
	c.control().out.Disarm(gatherTimer{c.kind.name})
	c.control().out.Disarm(callTimer{c.kind.name})
}

// query asks who has not answered.
func (c *coordinator) query() {
	for _, node := range c.silent() {
		if c.control().state.Member(node) == nil {
			continue // It was removed; what is awaited is that it is fenced.
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
	late := map[gossip.NodeID]int{}
	for i := range c.shards {
		s := &c.shards[i]
		if s.phase == PhaseStopping && c.now() >= s.deadline {
			s.phase = PhaseResuming
			late[s.home]++
		}
	}
	for _, node := range sortedNodes(late) {
		c.control().out.Decide("handoff", c.kind.name, "called off",
			fmt.Sprintf("%s did not stop %d shards within the handoff timeout", node, late[node]))
	}
	c.command(PhaseStarting, PhaseStopping, PhaseResuming)
	c.evaluate()
}

// command sends the commands of all shards in the given phases.
func (c *coordinator) command(phases ...Phase) {
	if c.control().suspended {
		return
	}
	hosts := map[gossip.NodeID][]HostShard{}
	stops := map[gossip.NodeID][]ShardEpoch{}
	resumes := map[gossip.NodeID][]ShardEpoch{}
	for i := range c.shards {
		s := &c.shards[i]
		if !slices.Contains(phases, s.phase) {
			continue
		}
		c.sort(ShardID(i), s, hosts, stops, resumes)
	}
	c.sendCommands(hosts, stops, resumes)
}

func (c *coordinator) sort(id ShardID, s *shard, hosts map[gossip.NodeID][]HostShard, stops, resumes map[gossip.NodeID][]ShardEpoch) {
	switch s.phase {
	case PhaseStarting:
		hosts[s.home] = append(hosts[s.home], HostShard{Shard: id, Epoch: s.epoch, Base: s.base, Positions: s.positions})
	case PhaseStopping:
		stops[s.home] = append(stops[s.home], ShardEpoch{Shard: id, Epoch: s.epoch})
	case PhaseResuming:
		resumes[s.home] = append(resumes[s.home], ShardEpoch{Shard: id, Epoch: s.epoch})
	}
}

func (c *coordinator) sendCommands(hosts map[gossip.NodeID][]HostShard, stops, resumes map[gossip.NodeID][]ShardEpoch) {
	name := c.kind.name
	for _, to := range sortedNodes(hosts) {
		c.kind.send(to, Host{Kind: name, Term: c.term, Shards: hosts[to]})
	}
	for _, to := range sortedNodes(stops) {
		c.kind.send(to, Stop{Kind: name, Term: c.term, Shards: stops[to]})
	}
	for _, to := range sortedNodes(resumes) {
		c.kind.send(to, Resume{Kind: name, Term: c.term, Shards: resumes[to]})
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

// evaluate does what has become possible.
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
	c.moveFromLeaving()
	c.allocate()
}

// fence takes all homes from a member that can be hosting nothing any more.
func (c *coordinator) fence(node gossip.NodeID) {
	delete(c.peers, node)
	delete(c.regions, node)
	for i := range c.shards {
		if s := &c.shards[i]; s.home == node {
			*s = shard{epoch: s.epoch, base: s.base}
		}
	}
	c.evaluate()
}

// moveFromLeaving stops the shards of regions that are leaving, when there is one
// that can take them.
func (c *coordinator) moveFromLeaving() {
	if len(c.eligible()) == 0 {
		return
	}
	stops := map[gossip.NodeID][]ShardEpoch{}
	for i := range c.shards {
		s := &c.shards[i]
		if s.phase != PhaseServing || c.now() < s.notBefore || !c.isLeaving(s.home) {
			continue
		}
		s.phase, s.deadline = PhaseStopping, c.now().Add(c.kind.timings.Handoff)
		stops[s.home] = append(stops[s.home], ShardEpoch{Shard: ShardID(i), Epoch: s.epoch})
	}
	for _, node := range sortedNodes(stops) {
		c.control().out.Decide("handoff", c.kind.name, "stop", fmt.Sprintf("%s is leaving and hosts %d shards", node, len(stops[node])))
	}
	c.sendCommands(nil, stops, nil)
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

// onReport takes the answer of a node that hosts something, or could.
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

// claim notes that a region hosts a shard. Of two the higher epoch stays; the
// other learns from the map that it was passed over, and stops. What this
// coordinator gave itself it knows better than a report that may have been long on
// its way, from a member that came after the opening.
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
	*s = shard{home: from, epoch: h.Epoch, base: h.Base, phase: PhaseServing}
	if h.State == Stopping {
		s.phase, s.deadline = PhaseStopping, c.now().Add(c.kind.timings.Handoff)
	}
	c.changed[h.Shard] = true
}

// admit registers a region, or refuses it.
func (c *coordinator) admit(from gossip.NodeID, reg Registration) bool {
	if d := c.kind.settings.Difference(c.kind.name, reg.Settings); d != nil {
		c.kind.send(from, SettingsRefused{
			Kind: c.kind.name, Setting: d.Setting, Coordinator: d.Coordinator, Region: d.Region,
		})
		return false
	}
	if r := c.regions[from]; r != nil {
		r.reg = reg
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
	c.each(from, m.Term, m.Shards, func(s *shard) {
		if s.phase == PhaseStarting {
			s.phase, s.positions, s.travelling = PhaseServing, nil, false
		}
	})
	c.evaluate()
}

func (c *coordinator) onResumed(from gossip.NodeID, m Resumed) {
	c.each(from, m.Term, m.Shards, func(s *shard) {
		if s.phase == PhaseResuming {
			s.phase, s.notBefore = PhaseServing, c.now().Add(c.kind.timings.Handoff)
		}
	})
	c.evaluate()
}

// each calls f for the shards of which from is the home under the epoch.
func (c *coordinator) each(from gossip.NodeID, term Term, shards []ShardEpoch, f func(*shard)) {
	if term != c.term {
		return
	}
	for _, se := range shards {
		if int(se.Shard) >= len(c.shards) {
			continue
		}
		if s := &c.shards[se.Shard]; s.home == from && s.epoch == se.Epoch {
			f(s)
		}
	}
}

// onStopped takes a shard back from its home. It is accepted whenever it comes,
// also after the stop was taken back: the home hosts the shard no more.
func (c *coordinator) onStopped(from gossip.NodeID, m ShardsStopped) {
	for _, ss := range m.Shards {
		if int(ss.Shard) >= len(c.shards) {
			continue
		}
		s := &c.shards[ss.Shard]
		if s.home != from || s.epoch != ss.Epoch {
			continue
		}
		*s = shard{
			epoch: s.epoch, base: s.base,
			positions: ss.Positions, travelling: ss.Base == s.base,
		}
		c.wanted[ss.Shard] = from
	}
	c.evaluate()
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
			m.Homes = append(m.Homes, s.entry(ShardID(i)))
		}
	}
	c.kind.send(to, m)
}

func (s *shard) entry(id ShardID) Home {
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
	hosts := map[gossip.NodeID][]HostShard{}
	for _, id := range slices.Sorted(maps.Keys(c.changed)) {
		s := &c.shards[id]
		if s.home.IsZero() {
			continue
		}
		m.Homes = append(m.Homes, s.entry(id))
		if c.toHost[id] {
			c.sort(id, s, hosts, nil, nil)
		}
	}
	clear(c.changed)
	clear(c.toHost)
	c.sendCommands(hosts, nil, nil)
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
	return fmt.Sprintf("term %s version %d opened %t peers %d silent %d regions %d open %d starting %d serving %d stopping %d resuming %d",
		c.term, c.n, c.opened, len(c.peers), len(c.silent()), len(c.regions), counts[0], counts[1], counts[2], counts[3], counts[4])
}
