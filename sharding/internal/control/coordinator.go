// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"maps"
	"slices"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// The life of a coordinator: start asks all members; reports and registrations come in, and
// claim enters the shards that have a host; evaluate opens allocation once all nodes have
// answered, then allocates and moves; each step ends with flush, which makes the changes the
// next version of the map and sends it out. The decisions are in coordinator_*.go, the parts in
// regions.go, table.go, moves.go and rounds.go.

// coordinator is the part of [Control] that decides where the shards of a kind
// live, on the oldest node. It is the front of its parts, each of which has its own state
// and says what holds of it: the coordinator takes what comes, asks the parts what it means,
// and has them do what follows, in an order that is the coordinator's to keep. A part
// knows nothing of the others. Invariants over several parts, between steps:
//
//	C1  no shard gets a home, and no move begins, before allocation is open; moves that an
//	    earlier coordinator had begun are entered as they are reported;
//	C2  a shard that is stopping, resuming or releasing in the table is on its way in
//	    moves, and one that is serving is not;
//	C3  at most one call is in flight, and its answer is used only if the regions that may be
//	    given shards and the version of the map are those that the strategy was asked about.
type coordinator struct {
	env
	regions  regions
	table    table
	moves    moves
	rounds   rounds
	scaling  scaling
	strategy strategyClient
	gather   gather

	passedOver map[gossip.NodeID]Report // The reports of regions that were refused.

	ending bool            // The node leaves: no move begins any more, and those under way end.
	endBy  machine.Instant // When the coordinator stops at the latest.
}

// env is what the parts of a coordinator have in common, and what does not change as long as
// the coordinator runs.
type env struct {
	kind *perKind
	term protocol.Term
	born int64 // The birth of the cluster with which the epochs begin.
}

func (s env) control() *Control { return s.kind.control }

func (s env) now() machine.Instant { return s.kind.control.now.Mono }

// gather says how far the gathering of shards without a home has come.
type gather uint8

const (
	gatherIdle    gather = iota
	gatherWaiting        // The timer is armed.
	gatherPassed         // The timer fired in this step.
)

// guessed returns the layout that the kind has unless a region knows better.
func guessed(s Settings) (l shardMap[shard]) {
	l.add(protocol.Layout{Shards: s.Shards})
	return l
}

func newCoordinator(k *perKind, term protocol.Term) *coordinator {
	s := env{kind: k, term: term, born: k.control.state.EpochBorn()}
	c := &coordinator{
		env: s,
		regions: regions{
			env:           s,
			peers:         make(map[gossip.NodeID]bool),
			followers:     make(map[gossip.NodeID]bool),
			registrations: make(map[gossip.NodeID]Registration),
			held:          make(map[gossip.NodeID]uint64),
			slowStart:     slowStart{env: s, came: make(map[gossip.NodeID]machine.Instant)},
			loads:         loads{env: s, carried: make(map[protocol.ShardID]movedLoad)},
		},
		table: table{
			env:     s,
			version: 1,
			shards:  guessed(k.settings),
			wanted:  make(map[protocol.ShardID]gossip.NodeID),
			changed: make(map[protocol.ShardID]bool),
			toHost:  make(map[protocol.ShardID]bool),
		},
		moves: moves{
			env:     s,
			plans:   make(map[protocol.ShardID]plan),
			planned: make(map[gossip.NodeID][]protocol.ShardID),
			active:  make(map[protocol.ShardID]*move),
		},
		rounds:   rounds{env: s},
		scaling:  scaling{env: s},
		strategy: strategyClient{env: s},

		passedOver: make(map[gossip.NodeID]Report),
	}
	c.table.recount()
	return c
}

// start asks every node that may be hosting.
func (c *coordinator) start() {
	if h := c.kind.host; h != nil && h.version > 1 {
		c.table.populate() // An earlier coordinator gave homes.
	}
	c.evaluate()
}

func (c *coordinator) stop() {
	c.control().out.Disarm(settleTimer{c.kind.name})
	c.control().out.Disarm(gatherTimer{c.kind.name})
	c.control().out.Disarm(callTimer{c.kind.name})
	c.control().out.Disarm(rebalanceTimer{c.kind.name})
}

// tick repeats what went unanswered and looks at deadlines.
func (c *coordinator) tick() {
	c.regions.query()
	c.overdue()
	c.command(PhaseStarting, PhaseStopping, PhaseResuming, PhaseReleasing)
	scaleChange{c}.tell()
	c.evaluate()
}

// command sends the commands of all shards in the given phases.
func (c *coordinator) command(which ...Phase) {
	if !c.control().suspended {
		c.table.orders(which).send(c.env)
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

// evaluate queries new members, opens allocation when all have answered, and once it
// is open allocates shards, begins moves and watches the load.
func (c *coordinator) evaluate() {
	c.regions.queryNew()
	if c.regions.open() {
		c.table.tellAll()
	}
	if !c.decides() {
		return
	}
	if (scaleChange{c}).advance() {
		return
	}
	c.allocate()
	c.advance()
	c.watch()
}

// decides reports whether the coordinator may allocate and move shards.
func (c *coordinator) decides() bool { return c.regions.isOpen() && !c.control().suspended }

// fence takes all shards from a member that can host no shard any more.
func (c *coordinator) fence(node gossip.NodeID) {
	c.regions.forget(node)
	delete(c.passedOver, node)
	for _, id := range c.table.removeNode(node) {
		c.end(id, OutcomeLost)
		c.moves.drop(id)
	}
	c.evaluate()
}

// onNoRegion takes the answer of a node that hosts nothing.
func (c *coordinator) onNoRegion(from gossip.NodeID, m NoRegion) {
	if c.regions.isPeer(from) && m.Term == c.term {
		c.regions.followers[from] = m.Follows
		c.regions.answered(from)
		c.evaluate()
	}
}

// onReport takes the answer of a node that runs the kind.
func (c *coordinator) onReport(from gossip.NodeID, m Report) {
	if !c.regions.awaits(from) || m.Term != c.term || !(resharding{c}).fits(from, m.Layouts) {
		return
	}
	c.regions.answered(from)
	c.scaling.noteReported(m.Registration.Scale)
	c.table.learn(m.Layouts, m.Past)
	for _, r := range m.Retired {
		c.table.learnRetired(r)
	}
	if c.passedOver[from] = m; len(m.Layouts) > 0 {
		// Regions that were refused by their number of shards may have one that the kind has had.
		for _, node := range sortedNodes(c.passedOver) {
			c.enter(node)
		}
	} else {
		c.enter(from)
	}
	c.sendWhole(from)
	c.evaluate()
}

// enter registers the region of a report, with what it hosts, unless it is refused.
func (c *coordinator) enter(from gossip.NodeID) {
	m := c.passedOver[from]
	if !(resharding{c}).admit(from, m.Registration, len(m.Layouts) > 0) {
		return
	}
	delete(c.passedOver, from)
	for _, h := range m.Hosted {
		if c.table.has(h.Shard) {
			c.claim(from, h)
		}
	}
}

// claim takes over what a region hosts. A stop that an earlier coordinator has ordered becomes
// a move of this one.
func (c *coordinator) claim(from gossip.NodeID, h Hosted) {
	if !c.table.claim(from, h) {
		return
	}
	c.end(h.Shard, OutcomeLost)
	if h.State == Stopping {
		c.beginMove(h.Shard, move{from: from, reason: "an earlier coordinator had it stopped"})
	}
}

// onRegister takes a registration, or its repetition.
func (c *coordinator) onRegister(from gossip.NodeID, m Register) {
	if !c.control().serving[from] || !(resharding{c}).admit(from, m.Registration, m.Version > 0) {
		return
	}
	c.scaling.noteReported(m.Registration.Scale)
	if m.Term == c.term {
		c.regions.holds(from, m.Version)
	}
	if m.Term.Compare(c.term) < 0 && m.Version > 1 {
		c.table.populate() // An earlier coordinator gave homes.
	}
	if m.Term != c.term || m.Version != c.table.mapVersion() {
		c.sendWhole(from)
	}
	for _, id := range m.Wanted {
		c.table.want(id, from)
	}
	c.evaluate()
}

func (c *coordinator) onHosting(from gossip.NodeID, m Hosting) {
	c.confirmed(from, m.Term, m.Shards, PhaseStarting, OutcomeMoved)
	c.advance()
}

func (c *coordinator) onResumed(from gossip.NodeID, m Resumed) {
	c.confirmed(from, m.Term, m.Shards, PhaseResuming, OutcomeCalledOff)
	c.evaluate()
}

// confirmed takes the word of a node that it hosts shards, and ends the moves that waited for it
// in a phase. What was said to an earlier coordinator does not count.
func (c *coordinator) confirmed(from gossip.NodeID, term protocol.Term, shards []ShardEpoch, awaited Phase, end Outcome) {
	if term != c.term {
		return
	}
	for _, se := range shards {
		if c.table.confirmed(from, se, awaited) {
			c.end(se.Shard, end)
		}
	}
}

// onStopped takes stopped shards back from their home. A shard whose next home is decided
// goes there at once.
func (c *coordinator) onStopped(from gossip.NodeID, m ShardsStopped) {
	homeless := false
	open := c.regions.eligible()
	for _, ss := range m.Shards {
		if c.table.vacate(from, ss) && !c.giveTarget(ss.Shard, from, open) {
			c.table.want(ss.Shard, from)
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
	if c.regions.hasRegion(to) {
		c.flush()
		c.kind.send(to, c.table.whole())
	}
}

// flush makes what changed since the last flush the next version of the map, and
// tells the new homes and all regions.
func (c *coordinator) flush() {
	m, o, changed := c.table.next()
	if !changed {
		return
	}
	o.send(c.env)
	for _, node := range c.regions.nodes() {
		c.kind.send(node, m)
	}
	c.control().out.Publish(HomesChanged{Kind: c.kind.name, Term: c.term, Homes: m.Homes})
}

// reloaded looks at the load soon, since the settings have changed. The answer to a question
// that another strategy has in hand still counts: it is about the present view or is dropped,
// like every answer, and moves that a strategy has begun are finished under any other. What the
// other strategy failed to answer is not held against a new one.
func (c *coordinator) reloaded(another bool) {
	if another {
		c.strategy.forgive()
	}
	c.rounds.arm(rebalanceGather)
}

// String describes the coordinator in one line.
func (c *coordinator) String() string {
	return fmt.Sprintf("term %s version %d %s %s %s ending %t",
		c.term, c.table.mapVersion(), &c.regions, &c.table, &c.moves, c.ending)
}
