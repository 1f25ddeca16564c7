// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/membership/singleton"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// One step of Control: dispatch takes the input to its handler; messages of this node to
// itself follow in the same step; then each coordinator publishes the changes of its map. The
// handlers are in the order of dispatch: timers, kinds, membership, standing, the end.
// perkind.go takes the messages of other nodes to regions and coordinators.

// lookupGather is how long lookups are gathered before they are sent.
const lookupGather = 5 * time.Millisecond

// allocationGather is how long shards without a home are gathered before homes are
// found for all of them at once: a node that leaves hands its shards back one at a
// time, as their entities stop.
const allocationGather = 5 * time.Millisecond

// AllocationCall is the port of the [machine.Call]s of coordinators. The key is the
// kind of entity, so that kinds do not wait for each other's answers. An
// [allocation.AllocateRequest] has an [allocation.AllocateResult] as its result, an
// [allocation.RebalanceRequest] an [allocation.RebalanceResult].
const AllocationCall = "allocation"

// The timers of Control.
type (
	tickTimer      struct{}
	standingTimer  struct{}
	lookupTimer    struct{ Kind string }
	settleTimer    struct{ Kind string }
	gatherTimer    struct{ Kind string }
	callTimer      struct{ Kind string }
	rebalanceTimer struct{ Kind string }
)

// Config configures [Control].
type Config struct {
	// Self is this node.
	Self gossip.NodeID
	// Allocation configures the built-in strategy, which decides unless a kind
	// names another, and while another cannot answer. The zero value means the
	// default. It must be valid.
	Allocation allocation.Config
	// Tick is the interval at which requests are repeated and deadlines are
	// checked. Default 500 ms.
	Tick time.Duration
	// MaxShards bounds the shards of all kinds together that members can have the node keep as
	// a coordinator. 0 means [protocol.DefaultMaxShards].
	MaxShards int
}

// Control is the control part of sharding on a node: the regions of all its kinds,
// and their coordinators while this node is the oldest. It consumes what
// membership publishes. Create it with [New].
type Control struct {
	cfg   Config
	least *allocation.LeastShard
	kinds []*perKind // Sorted by name.

	// The time and the outbox of the present step.
	now machine.Now
	out *machine.Outbox
	// local holds the messages of this node to itself that the step has still to take.
	local []Message

	state     *gossip.State
	serving   map[gossip.NodeID]bool // Nodes that run the service and are not fenced: true while they are members, false once removed.
	fences    component.Fences       // The members that were fenced; the singleton cores of all kinds ask them as well.
	until     machine.Instant        // When the node's standing ends.
	suspended bool                   // The node has no standing.
	leaving   bool                   // The node leaves the cluster.
	shutdown  gossip.Status          // How far a shutdown of the whole cluster is, see [gossip.State.Shutdown].
	together  bool                   // The members have begun to leave together, see [gossip.State.EndsTogether].
	drain     drain                  // Whether the node is drained.
	released  bool                   // Membership was told that this node hosts nothing any more.
	ended     bool                   // The node must stop: inputs are ignored.
	calls     machine.CallID         // The id of the last call.
	told      []Coordinator          // The coordinators that were published last.
	placed    int                    // How many shards the present step has given homes, or asked a strategy about.
	starts    uint64                 // How often a coordinator of a kind that was forgotten has started here, at most.

	unsolicited uint64     // Answers of strategies for which no coordinator waited any more.
	questions   []question // Questions to coordinators on other nodes without an answer.
}

var _ machine.Machine = (*Control)(nil)

// New returns a Control without kinds. It panics when the node has no id
// or the configuration is not valid.
func New(cfg Config) *Control {
	machine.Assert(!cfg.Self.IsZero(), "a node that runs sharding has an id")
	if cfg.Allocation == (allocation.Config{}) {
		cfg.Allocation = allocation.Default()
	}
	least, err := cfg.Allocation.NewLeastShard()
	machine.Assert(err == nil, "the configuration of the allocation is valid", "error", err)
	cfg.MaxShards = cmp.Or(cfg.MaxShards, protocol.DefaultMaxShards)
	if cfg.Tick <= 0 {
		cfg.Tick = 500 * time.Millisecond
	}
	return &Control{
		cfg: cfg, least: least, suspended: true,
		serving: make(map[gossip.NodeID]bool),
	}
}

// perKind is what a node knows of one kind. On a node that does not run the kind host is
// nil; where the settings of the kind are not known core is nil; where the coordinator does
// not run coord is nil.
type perKind struct {
	control  *Control
	name     string
	settings Settings
	timings  Timings
	cfg      KindConfig

	// promise is the highest term of a coordinator that asked. No command of a lower term
	// is obeyed.
	promise protocol.Term
	asker   gossip.NodeID // The node of the coordinator that asked with promise.

	host  *host
	core  *singleton.Core
	coord *coordinator

	unusedSince machine.Instant // Since when nobody needs what the node keeps of the kind; 0: somebody does.
}

// Step feeds one input.
func (c *Control) Step(now machine.Now, in machine.Input, out *machine.Outbox) {
	if c.ended {
		return
	}
	c.now, c.out, c.placed = now, out, 0
	if !c.suspended && now.Mono > c.until {
		c.standing(c.until) // A node that was frozen may get other inputs before the timer.
	}
	c.dispatch(in)
	for {
		for len(c.local) > 0 && !c.ended {
			m := c.local[0]
			c.local = c.local[1:]
			c.receive(c.cfg.Self, m)
		}
		for _, k := range c.kinds {
			if k.coord != nil {
				k.coord.flush()
				k.retireCoordinator()
			}
		}
		if len(c.local) == 0 {
			break
		}
	}
	c.local = c.local[:0]
	c.release()
	c.drain.look(c)
	c.tellCoordinators()
	c.out = nil
}

func (c *Control) dispatch(in machine.Input) {
	switch in := in.(type) {
	case machine.Started:
		c.out.Publish(component.Services{Service: protocol.Service})
		c.out.Publish(component.Busy{Component: ComponentName})
		c.out.Arm(tickTimer{}, c.now.Mono.Add(c.cfg.Tick))
	case machine.Received:
		if m, ok := in.Message.(Message); ok {
			c.receive(in.From, m)
		}
	case machine.Fired:
		c.fired(in.Timer)
	case machine.Called:
		c.called(in)
	case AddKind:
		c.addKind(in.Kind)
	case Reload:
		c.reload(in)
	case Drain:
		c.drain.order(c, in)
	case FromShard:
		c.fromShard(in)
	case LeaseHeld:
		if k := c.kind(in.Kind); k != nil && k.host != nil {
			k.host.gates.held(in)
		}
	case LeaseLost:
		if k := c.kind(in.Kind); k != nil && k.host != nil {
			k.host.gates.lost(in)
		}
	case ImportQuestion:
		if k := c.kind(in.Kind); k != nil && k.host != nil {
			k.host.ask(in.Take)
		}
	case ImportAnswer:
		if k := c.kind(in.Kind); k != nil {
			k.sendBulk(in.To, ImportReply{Kind: in.Kind, Given: in.Given})
		}
	case ImportFinished:
		if k := c.kind(in.Kind); k != nil && k.host != nil {
			k.host.importFinished(in.Layout)
		}
	case LoadMeasurement:
		if k := c.kind(in.Kind); k != nil && k.host != nil {
			k.host.load.record(c.now.Mono, in, k.host.hosting())
		}
	case Explain:
		c.inquire(question{Explain: in}, ExplainShard(in))
	case Move:
		c.inquire(question{Explain: Explain{in.Kind, in.Shard, in.ID}, sort: sortMove}, MoveShard(in))
	case SetScale:
		c.inquire(question{Explain: Explain{Kind: in.Kind, ID: in.ID}, sort: sortScale}, in)
	case Reshard:
		c.inquire(question{Explain: Explain{Kind: in.Kind, ID: in.ID}, sort: sortReshard}, ReshardKind(in))
	case CountShards:
		c.countShards(in)
	case component.Changed:
		c.changed(in)
	case component.Standing:
		c.standing(in.Until)
	case component.Fenced:
		c.fence(in.Node)
	case component.Stopping:
		c.end()
	}
}

func (c *Control) fired(t machine.Timer) {
	switch t := t.(type) {
	case tickTimer:
		c.tick()
	case standingTimer:
		c.standing(c.until)
	case lookupTimer:
		if k := c.kind(t.Kind); k != nil && k.host != nil {
			k.host.flush = false
			k.host.register()
		}
	case settleTimer:
		if k := c.kind(t.Kind); k != nil && k.coord != nil {
			k.coord.evaluate()
		}
	case gatherTimer:
		if k := c.kind(t.Kind); k != nil && k.coord != nil {
			k.coord.gathered()
		}
	case rebalanceTimer:
		if k := c.kind(t.Kind); k != nil && k.coord != nil {
			k.coord.rebalanceFired()
		}
	case callTimer:
		if k := c.kind(t.Kind); k != nil && k.coord != nil {
			k.coord.callTimeout()
		}
	}
}

func (c *Control) tick() {
	c.out.Arm(tickTimer{}, c.now.Mono.Add(c.cfg.Tick))
	c.expire()
	c.forget()
	for _, k := range c.kinds {
		k.singleton(func(a *singleton.Actions) { k.core.Tick(c.now.Mono, a) })
		if k.coord != nil {
			k.coord.tick()
		}
		if k.host != nil {
			k.host.measure()
			k.host.register()
			k.host.repeat()
			k.host.gates.clear()
			if c.leaving {
				k.host.leave()
			}
		}
	}
}

// kind returns the kind with a name, nil if there is none.
func (c *Control) kind(name string) *perKind {
	i, ok := c.find(name)
	if !ok {
		return nil
	}
	return c.kinds[i]
}

func (c *Control) find(name string) (int, bool) {
	return slices.BinarySearchFunc(c.kinds, name, func(k *perKind, n string) int { return strings.Compare(k.name, n) })
}

// ensure returns the kind with a name, which it creates if the node does not keep it.
func (c *Control) ensure(name string) *perKind {
	i, ok := c.find(name)
	if ok {
		return c.kinds[i]
	}
	k := &perKind{control: c, name: name}
	c.kinds = slices.Insert(c.kinds, i, k)
	return k
}

// learnSettings makes the settings of a kind known, so that the kind can have a coordinator
// here, also where this node does not run the kind.
func (k *perKind) learnSettings(s Settings, t Timings) {
	if k.core != nil || s.validate() != nil {
		return
	}
	k.settings, k.timings = s, t.withDefaults()
	k.core = singleton.New(singleton.Config{
		Role: s.Role, Service: protocol.Service, Retry: k.timings.Retry, Limit: k.timings.HandOver,
		Starts: k.control.starts,
	}, &k.control.fences)
	k.core.SetFloor(k.promise.Age())
	if st := k.control.state; st != nil {
		k.singleton(func(a *singleton.Actions) { k.core.Update(k.control.now.Mono, k.control.cfg.Self, st, a) })
	}
}

func (c *Control) addKind(cfg KindConfig) {
	if cfg.Validate() != nil {
		return
	}
	k := c.ensure(cfg.Name)
	if k.host != nil {
		return
	}
	k.cfg = cfg
	k.learnSettings(cfg.Settings, cfg.Timings)
	k.host = newHost(k, cfg)
	k.host.register()
}

// fromShard takes an event of a cell.
func (c *Control) fromShard(in FromShard) {
	k := c.kind(in.Kind)
	if k == nil || k.host == nil {
		return
	}
	switch e := in.Event.(type) {
	case protocol.Lookup:
		k.host.onLookup(c.now, in.Shard, e)
	case protocol.ShardStopped:
		k.host.onHalted(in.Shard, e)
	}
}

// stays reports whether shards stay where they are, since the whole cluster is being shut down. One without
// a home still gets one.
func (c *Control) stays() bool { return c.shutdown != gossip.StatusNone }

// changed takes over a new membership state.
func (c *Control) changed(e component.Changed) {
	c.state = e.State
	c.fences.Forget(e.State)
	for node, member := range c.serving { //quorate:unordered each entry by itself
		if member && e.State.Member(node) == nil {
			c.serving[node] = false
		}
	}
	for _, m := range e.State.Members() {
		if m.HasService(uint16(protocol.Service)) && !c.fences.Has(m.Node) {
			c.serving[m.Node] = true
		}
	}
	me, left := e.State.Member(c.cfg.Self), c.leaving
	c.leaving = me != nil && me.Status >= gossip.Leaving
	c.shutdown, c.together = e.State.Shutdown(), e.State.EndsTogether()
	for _, k := range c.kinds {
		k.renew(e.State.EpochBorn())
		k.singleton(func(a *singleton.Actions) { k.core.Update(c.now.Mono, c.cfg.Self, e.State, a) })
		if k.coord != nil {
			k.coord.evaluate()
		}
		if k.host != nil && c.leaving {
			if !left {
				k.host.register() // The coordinator may not know yet that this node leaves.
			}
			k.host.leave()
		}
	}
}

// fence notes that a removed member can host no shard any more.
func (c *Control) fence(node gossip.NodeID) {
	c.fences.Add(node)
	delete(c.serving, node)
	for _, k := range c.kinds {
		k.singleton(func(a *singleton.Actions) { k.core.Fenced(c.now.Mono, node, a) })
		if k.coord != nil {
			k.coord.fence(node)
		}
	}
}

// standing suspends the cells when the node must not host, and ends the suspension when it
// may again. The runtime checks the standing before each message as well; the suspension
// is for messages and replies that wait.
func (c *Control) standing(until machine.Instant) {
	c.until = until
	suspended := c.now.Mono > until
	if !suspended && until != machine.Never {
		c.out.Arm(standingTimer{}, until.Add(1))
	} else {
		c.out.Disarm(standingTimer{})
	}
	if suspended == c.suspended {
		return
	}
	c.suspended = suspended
	if suspended {
		c.out.Add(ToShards{Input: protocol.SuspendHosting{}})
	} else {
		c.out.Add(ToShards{Input: protocol.UnsuspendHosting{}})
	}
	for _, k := range c.kinds {
		if k.host != nil {
			k.host.register()
		}
		if k.coord != nil {
			k.coord.evaluate()
		}
	}
}

// release tells membership when a leaving node hosts nothing any more.
func (c *Control) release() {
	if !c.leaving || c.released || c.ended {
		return
	}
	for _, k := range c.kinds {
		if k.coord != nil {
			return
		}
		if k.host != nil {
			k.host.checkClosed()
			if !k.host.closed {
				return
			}
		}
	}
	c.released = true
	c.out.Publish(component.Drained{Component: ComponentName})
}

// end stops the coordinators and all cells at once.
func (c *Control) end() {
	c.ended = true
	for _, k := range c.kinds {
		if k.coord != nil {
			k.stopCoordinator()
		}
	}
	c.out.Add(ToShards{Input: protocol.AbandonHosting{}})
	c.out.Disarm(tickTimer{})
	c.out.Disarm(standingTimer{})
}

// IsDrained reports whether the node was told to host nothing.
func (c *Control) IsDrained() bool { return c.drain.on }

// Inspection is what a node knows of a kind, for explanations and tests.
type Inspection struct {
	// Promise is the highest term that this node has promised to obey.
	Promise protocol.Term
	// Coordinating says that the coordinator runs here; Term is its term, Version
	// the version of its map, and Opened says that it allocates.
	Coordinating bool
	Term         protocol.Term
	Version      uint64
	Opened       bool
	// Open, Serving and Moving count the shards in the coordinator's map: those without
	// a home, those at rest, and all others.
	Open, Serving, Moving int
	// Scale is the latest that the region was told of how many shards are in use, and Rescaling says that the
	// coordinator changes that number.
	Scale     Scale
	Rescaling bool
	// Retired counts shards of the former layout that are no more, and Layouts are those in force, as the
	// coordinator knows.
	Retired int
	Layouts []protocol.Layout
	// Knows are the layouts in force as the region knows, Gone the former shards of which it knows
	// that they are retired.
	Knows []protocol.Layout
	Gone  int
	// Past are numbers of shards that the kind has had, as the region knows.
	Past []uint32
	// HeldSnapshots is the number of shards whose snapshots the node holds, between
	// the old home and the new.
	HeldSnapshots int
	// MapTerm and MapVersion are the term and the version of the region's copy of the map,
	// Homes its entries of shards in use with a home, sorted by shard; Hosting is how many shards the region
	// hosts.
	MapTerm    protocol.Term
	MapVersion uint64
	Homes      []Home
	Hosting    int
}

// Inspect returns what this node knows of a kind; the zero value for an unknown kind.
func (c *Control) Inspect(name string) Inspection {
	i, k := c.InspectCoordinator(name), c.kind(name)
	if k == nil {
		return i
	}
	i.Promise = k.promise
	if h := k.host; h != nil {
		i.HeldSnapshots += h.snapshots.len()
		i.Scale = h.scale
		i.MapTerm, i.MapVersion, i.Hosting = h.term, h.version, h.hosting()
		i.Knows, i.Gone = h.homes.layouts(), len(h.layouts.retired)
		i.Past = h.layouts.past
		i.Homes = slices.Grow(i.Homes, h.homes.len())
		for _, home := range h.homes.all() {
			if !home.Node.IsZero() && (h.scale.Count == 0 || home.Shard.Index() < h.scale.Count) {
				i.Homes = append(i.Homes, *home)
			}
		}
	}
	return i
}

// InspectCoordinator returns what the coordinator of a kind knows of it, without what the region does; the zero
// value where the coordinator does not run.
func (c *Control) InspectCoordinator(name string) (i Inspection) {
	if k := c.kind(name); k != nil && k.coord != nil {
		k.coord.inspect(&i)
	}
	return i
}

// Moves returns the last 256 moves whose end the coordinator of a kind has seen, the
// oldest first; nil where the coordinator does not run.
func (c *Control) Moves(name string) []Moved {
	if k := c.kind(name); k != nil && k.coord != nil {
		return k.coord.past()
	}
	return nil
}

// String describes the node's part of sharding, always in the same order.
func (c *Control) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "suspended %t leaving %t drained %t\n", c.suspended, c.leaving, c.drain.on)
	for _, k := range c.kinds {
		fmt.Fprintf(&b, "kind %s promise %s\n", k.name, k.promise)
		if k.core != nil {
			fmt.Fprintf(&b, "  singleton %s\n", k.core)
		}
		if k.coord != nil {
			fmt.Fprintf(&b, "  coordinator %s\n", k.coord)
		}
		if h := k.host; h != nil {
			fmt.Fprintf(&b, "  region map %s/%d hosting %d wanted %d closed %t\n", h.term, h.version, h.hosting(), len(h.wanted), h.closed)
		}
	}
	return b.String()
}
