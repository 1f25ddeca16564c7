// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership/membershipsim"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/handoff"
	"github.com/quorate/quorate/sharding/internal/passivation"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/runtime"
	world "github.com/quorate/quorate/simulation"
)

// A world whose nodes run sharding: [New] makes it and starts the nodes, whose clients send from then on; Leave,
// EndCoordinator and the like are for tests; Settled, Even, Drained and Finish return an error that says what is
// missing until the cluster has recovered.

// Options say what a cluster is like. A field that is zero has its default.
type Options struct {
	// World are the options of the world.
	World world.Options
	// Nodes is how many nodes start. Default 5.
	Nodes int
	// Shards and Entities are the numbers of shards and of entities. Default 32 and 100.
	Shards   uint32
	Entities int
	// Every is the mean time between messages of all clients. Default 10 ms.
	Every time.Duration
	// Near is the chance that a message is sent by the home of its entity.
	Near float64
	// Patience is how long an asker waits. Zero: for ever.
	Patience time.Duration
	// Handoff is the handoff timeout. Default 3 s.
	Handoff time.Duration
	// StopLimit is how long the stop of a shard may last, until the shard has stopped or
	// the stop is taken back. Zero: not checked, for worlds in which the node that takes
	// the stop back may die, or its messages may be lost.
	StopLimit time.Duration
	// SlowStart is as in [control.Timings].
	SlowStart time.Duration
	// HomeTimeout is how long a shard may be without a home while a coordinator runs to
	// which all members have answered, and a node can take the shard. Zero: not checked.
	HomeTimeout time.Duration
	// Hostile is the mean time between the lies of a hostile peer, see hostile.go, for
	// which a further node starts that hosts nothing. Zero: there is none.
	Hostile time.Duration
	// Strategy, OnStuck and the bounds of moves are as in [control.KindConfig].
	Strategy                                  string
	OnStuck                                   control.OnStuck
	MaxSimultaneous, MaxSimultaneousPerRegion int
	Behaviour                                 Behaviour
	// Mailbox bounds the messages that wait for an entity, Window the bytes that a node
	// has on their way to a shard. Default 100 and 8 KiB.
	Mailbox, Window int
	// Permanent is how many of the first entities run without a message.
	Permanent int
	// InUse is how many shards are in use at first, if that may change.
	InUse uint32
	// Leases has each shard hosted under a lease.
	Leases bool
	// Limit bounds the instances of each node. With a limit of 0 nothing does.
	Limit passivation.Config
	// Remembered says whether entities are remembered; PassivateAfter is none then.
	Remembered Remembered
	// OnOldest has the kind live on the oldest node.
	OnOldest bool
	// Membership is the configuration of membership; zero means its default.
	Membership membershipsim.Config
	// RestartAfter is when a node that ended by itself starts again; zero: never.
	RestartAfter time.Duration
	// ReviveAfter is when a node that crashed starts again; zero: never.
	ReviveAfter time.Duration
	// Beside is called with the new world, and returns what builds further components of each node. Nil: there are
	// none.
	Beside func(*world.World) func(world.Env) []machine.Component
}

func (o Options) withDefaults() Options {
	if o.Nodes == 0 {
		o.Nodes = 5
	}
	if o.Shards == 0 {
		o.Shards = 32
	}
	if o.Entities == 0 {
		o.Entities = 100
	}
	if o.Every == 0 {
		o.Every = 10 * time.Millisecond
	}
	if o.Handoff == 0 {
		o.Handoff = 3 * time.Second
	}
	if o.Membership.Config.Fence == 0 {
		o.Membership.Config = membershipsim.Default()
	}
	if o.Mailbox == 0 {
		o.Mailbox = 100
	}
	if o.Window == 0 {
		o.Window = 8 << 10
	}
	return o
}

// driftOver is the time over which clocks of different rates may drift apart between the
// reading of another node's clock and the end of a deadline.
const driftOver = time.Minute

// messageLeast is the least number of bytes that a message counts in a window.
const messageLeast = 128

// KindName is the kind that runs in the simulation.
const KindName = "account"

// Cluster is a world in which every node runs sharding.
type Cluster struct {
	World  *world.World
	Ledger *Ledger

	opt      Options
	chosen   map[gossip.Address]string // The strategy in the file of each node for which it was changed.
	liveness *liveness
	client   *rand.Rand
	next     uint64
	files    func(gossip.Address) uint32 // The number of shards in the file of a node that starts; nil: that of the options.
	orders   uint64                      // The number of the last order of an operator.
	idle     bool
	beside   func(world.Env) []machine.Component
	releases releases
}

// New returns a cluster whose nodes have just started, and whose clients send. The functions in
// set change the options of its world before.
func New(opt Options, set ...func(*world.Options)) *Cluster {
	opt = opt.withDefaults()
	if opt.World.Scenario != "" { // It stands in the command that repeats a run.
		opt.World.Scenario += fmt.Sprintf(" -nodes %d", opt.Nodes)
	}
	for _, f := range set {
		f(&opt.World)
	}
	w := world.New(opt.World)
	c := &Cluster{
		World: w, Ledger: newLedger(w), opt: opt,
		chosen: make(map[gossip.Address]string),
		client: rand.New(rand.NewPCG(opt.World.Seed, 77)), releases: drawReleases(opt.World.Seed, addresses(opt.Nodes)),
	}
	c.Ledger.stopLimit = opt.StopLimit
	if opt.Leases {
		c.Ledger.leases = &leaseStore{world: w, rows: make(map[protocol.ShardID]leaseRow)}
	}
	c.Ledger.drift = driftOver * time.Duration(2*opt.World.RatePPM) / 1_000_000
	c.Ledger.mailbox = opt.Mailbox + 2*opt.Nodes*(opt.Window/messageLeast)
	c.Ledger.memories.snapshots = opt.Behaviour.Snapshots
	c.Ledger.archive = newArchive(c.Ledger, opt.World.Seed, opt.Remembered)
	c.Ledger.hot = make(map[string]bool)
	for i := range opt.Behaviour.Hot {
		c.Ledger.hot[entity(i)] = true
	}
	c.Ledger.bounds = bounds{home: opt.HomeTimeout, moves: opt.MaxSimultaneous, perRegion: opt.MaxSimultaneousPerRegion}
	w.Check(c.Ledger)
	c.liveness = newLiveness(c)
	w.Check(c.liveness)
	membershipsim.Serve(w)
	c.releases.members.Watch(w)
	w.Carry(carry)
	w.Observe(c.Ledger.observe)
	operator := &membershipsim.Operator{Seeds: addresses(opt.Nodes), RestartAfter: opt.RestartAfter, ReviveAfter: opt.ReviveAfter}
	operator.Operate(w)
	if c.beside = func(world.Env) []machine.Component { return nil }; opt.Beside != nil {
		c.beside = opt.Beside(w)
	}
	for i := range opt.Nodes {
		c.Start(i)
	}
	if opt.Hostile > 0 {
		c.startLying()
	}
	w.After(time.Second, c.send)
	return c
}

// Address returns the address of the i-th node.
func Address(i int) gossip.Address {
	return gossip.Address{Host: fmt.Sprintf("n%02d", i), Port: 7946}
}

func addresses(n int) []gossip.Address {
	var all []gossip.Address
	for i := range n {
		all = append(all, Address(i))
	}
	return all
}

// withRemembering gives nodes disks: without them a restart forgets who voted, and only
// the list of seed nodes keeps a second cluster from being founded.
func withRemembering(c membershipsim.Config) membershipsim.Config {
	c.Disk = true
	return c
}

// Start starts the i-th node.
func (c *Cluster) Start(i int) { c.World.Start(Address(i), c.build) }

func (c *Cluster) build(env world.Env) []machine.Component {
	shards := c.opt.Shards
	if c.files != nil {
		shards = c.files(env.Self.Address)
	}
	kind := control.KindConfig{
		Name:     KindName,
		Settings: control.Settings{Shards: shards, Hash: protocol.HashName, Codec: "bytes"},
		Fixed:    c.opt.InUse > 0 || c.opt.Leases, Remembers: c.opt.Remembered.On,
		Strategy: c.Chosen(env.Self.Address), OnStuck: c.opt.OnStuck,
		MaxSimultaneous: c.opt.MaxSimultaneous, MaxSimultaneousPerRegion: c.opt.MaxSimultaneousPerRegion,
		Timings: control.Timings{Handoff: c.opt.Handoff, SlowStart: c.opt.SlowStart}, Proxy: c.lies(env.Self.Address), OnOldest: c.opt.OnOldest, Scale: c.opt.InUse, Lease: c.opt.Leases,
	}
	cfg := cell.Config{WindowBytes: c.opt.Window, Mailbox: c.opt.Mailbox}
	for i := range c.opt.Permanent {
		cfg.Permanent = append(cfg.Permanent, entity(i))
	}
	if c.opt.Behaviour.SlowStop == 0 && !c.opt.Remembered.On { // Else messages would wait for the stops of idle entities.
		cfg.PassivateAfter = 50 * time.Millisecond
	}
	if c.opt.Behaviour.Snapshots.On {
		cfg.PassivateAfter = snapshotFor
		cfg.Snapshots, cfg.SnapshotTimeout = handoff.Limits{Entity: maxSnapshot, Shard: maxShard}, c.opt.Handoff/2
	}
	if c.opt.Remembered.On {
		cfg.SnapshotTimeout = c.opt.Handoff / 2
	}
	behaviour := c.opt.Behaviour
	behaviour.sweeps = cfg.PassivateAfter
	cells := newCells(env, kind, behaviour, c.Ledger, cfg, c.opt.Membership.Config.FailureDetector.HeartbeatInterval)
	cells.limit(c.opt.Limit, c.opt.Permanent)
	c.Ledger.nodes[env.Self], c.Ledger.cameAt = cells, c.World.Now()
	most := 0
	if c.opt.Hostile > 0 {
		most = int(c.opt.Shards) + roomForLies
	}
	homes := &starter{kind: kind, Control: control.New(control.Config{Self: env.Self, MaxShards: most}), forgetful: c.opt.Behaviour.Snapshots.forgets(env.Self)}
	return append([]machine.Component{
		membershipsim.Component(withRemembering(c.releases.member(c.opt.Membership, env.Self.Address)))(env),
		{Name: control.ComponentName, Service: protocol.Service, Machine: homes, Codec: c.releases.codec(env.Self.Address)},
		{Name: "cells", Service: protocol.MessageService, Machine: cells, Codec: frames{}},
	}, c.beside(env)...)
}

// Choose changes which strategy the node at an address asks, "" for the built-in one, as a reload
// of its file does: a node that is started there later asks it too.
func (c *Cluster) Choose(a gossip.Address, strategy string) {
	c.chosen[a] = strategy
	c.World.Input(a, protocol.Service, control.Reload{
		Allocation: allocation.Default(), Strategy: strategy,
		MaxSimultaneous: c.opt.MaxSimultaneous, MaxSimultaneousPerRegion: c.opt.MaxSimultaneousPerRegion,
	})
}

// Chosen is the name of the strategy that the node at an address asks.
func (c *Cluster) Chosen(a gossip.Address) string {
	if strategy, changed := c.chosen[a]; changed {
		return strategy
	}
	return c.opt.Strategy
}

// starter adds the kind when the node starts.
type starter struct {
	*control.Control
	kind control.KindConfig
	// forgetful says that the node is of a release that does not know of snapshots.
	forgetful bool
}

// Step feeds one input.
func (s *starter) Step(now machine.Now, in machine.Input, out *machine.Outbox) {
	if received, ok := in.(machine.Received); ok && s.forgetful {
		received.Message = withoutMemory(received.Message)
		in = received
	}
	s.Control.Step(now, in, out)
	if _, ok := in.(machine.Started); ok {
		s.Control.Step(now, control.AddKind{Kind: s.kind}, out)
	}
}

// carry passes what the control machine and the cells of a node say to each other.
func carry(n *world.Node, _ *machine.Component, e machine.Effect) bool {
	switch e := e.(type) {
	case control.ToShard, control.ToShards, control.UseLayouts, control.MeasureLoad, control.ScaleChanged, control.AskLease, control.GiveLease, control.ToRemembering:
		n.Enqueue(protocol.MessageService, e)
	case control.FromShard, control.LoadMeasurement, control.LeaseHeld, control.LeaseLost, control.ImportQuestion, control.ImportAnswer, control.ImportFinished:
		n.Enqueue(protocol.Service, e)
	default:
		return false
	}
	return true
}

// send has a random node accept a random message, again and again.
func (c *Cluster) send() {
	if c.idle {
		return
	}
	if nodes := c.World.Nodes(); len(nodes) > 0 {
		c.next++
		from, entity := nodes[c.client.IntN(len(nodes))], c.target()
		if c.opt.Near > 0 && c.client.Float64() < c.opt.Near {
			from = c.homeOf(entity, from)
		}
		from.Input(protocol.MessageService, Send{
			ID: c.next, Entity: entity,
			Ask: c.client.IntN(2) == 0, Patience: c.opt.Patience,
		})
	}
	c.World.After(time.Duration(c.client.Int64N(int64(2*c.opt.Every)))+1, c.send)
}

// homeOf returns the node that hosts an entity; another one if none does.
func (c *Cluster) homeOf(entity string, other *world.Node) *world.Node {
	for _, n := range c.World.Nodes() {
		if c.Ledger.nodes[n.ID()].region.SlotOf(entity).Info().Hosting {
			return n
		}
	}
	return other
}

// target draws the entity to which a client sends.
func (c *Cluster) target() string {
	if hot := c.opt.Behaviour.Hot; hot > 0 && c.client.IntN(2) == 0 {
		return entity(c.client.IntN(hot))
	}
	to := entity(c.client.IntN(c.opt.Entities))
	for c.opt.InUse > 0 && protocol.ShardOf(to, c.opt.Shards) >= leastInUse {
		to = entity(c.client.IntN(c.opt.Entities))
	}
	return to
}

// entity is the id of the i-th entity.
func entity(i int) string { return fmt.Sprintf("e%d", i) }

// Quiet stops the clients.
func (c *Cluster) Quiet() { c.idle = true }

// form runs the world until the cluster has formed and every shard has a home, before the clients send anything: what
// they offered earlier would wait for as long as the nodes take to agree on a founder.
func (c *Cluster) form() error {
	c.Quiet()
	if err := c.Await(c.liveness.within, c.Settled); err != nil {
		return fmt.Errorf("seed %d at %v: the cluster has not formed: %w", c.World.Seed(), c.World.Now(), err)
	}
	c.idle = false
	c.World.After(time.Second, c.send)
	return nil
}

// Leave lets the i-th node leave.
func (c *Cluster) Leave(i int) { c.LeaveAt(Address(i)) }

// LeaveAt lets the node at an address leave.
func (c *Cluster) LeaveAt(a gossip.Address) {
	membershipsim.Leave(c.World, a)
}

// EndCoordinator lets the node with the coordinator leave, or has it crash and
// come back after three seconds.
func (c *Cluster) EndCoordinator(crash bool) {
	for _, n := range c.World.Nodes() {
		if a := n.ID().Address; Control(n).InspectCoordinator(KindName).Coordinating {
			if !crash {
				c.LeaveAt(a)
				return
			}
			c.World.Crash(a)
			c.World.After(3*time.Second, func() {
				if c.World.Node(a) == nil {
					c.World.Restart(a)
				}
			})
			return
		}
	}
}

// Control returns the control machine of a node.
func Control(n *world.Node) *control.Control { return n.Machine(protocol.Service).(*starter).Control }

// Settled returns an error until every shard stays at a home that all nodes know, under one coordinator.
func (c *Cluster) Settled() error {
	var coordinators []gossip.NodeID
	var homes []control.Home
	shards := 0
	for _, n := range c.World.Nodes() {
		i := Control(n).Inspect(KindName)
		if i.Coordinating {
			coordinators = append(coordinators, n.ID())
			if len(i.Layouts) != 1 {
				return fmt.Errorf("coordinator at %s: a change is under way, of %v, and %d shards are retired", n.ID(), i.Layouts, i.Retired)
			}
			if shards = used(c, i.Layouts[0]); i.Serving != shards {
				return fmt.Errorf("coordinator at %s: %d shards open, %d moving, %d serving", n.ID(), i.Open, i.Moving, i.Serving)
			}
		}
		if homes == nil {
			homes = i.Homes
		}
		if !slices.Equal(homes, i.Homes) || len(i.Knows) != 1 || len(homes) != used(c, i.Knows[0]) {
			return fmt.Errorf("%s holds another map: term %s version %d, %d homes", n.ID(), i.MapTerm, i.MapVersion, len(i.Homes))
		}
	}
	if len(coordinators) != 1 || len(homes) != shards {
		return fmt.Errorf("coordinators: %v, homes: %d of %d", coordinators, len(homes), shards)
	}
	return c.hosted(homes)
}

// Up reports whether the node at an address, after the one that was there, is up in
// its own eyes.
func (c *Cluster) Up(a gossip.Address, old gossip.NodeID) bool {
	n := c.World.Node(a)
	if n == nil || n.ID() == old {
		return false
	}
	m := membershipsim.MachineOf(n).State().Member(n.ID())
	return m != nil && m.Status == gossip.Up
}

// Running reports an entity that should run without a message, and does not.
func (c *Cluster) Running() error {
	homes := Control(c.World.Nodes()[0]).Inspect(KindName).Homes
	for i := range c.opt.Permanent {
		shard := c.present().ShardOf(protocol.HashOf(entity(i))).Index()
		if int(shard) >= len(homes) {
			continue // Not in use.
		}
		home := homes[shard].Node
		e, there := c.Ledger.nodes[home].region.SlotOf(entity(i)).Entity(entity(i))
		if !there || e.State != "idle" && e.State != "busy" {
			return fmt.Errorf("%s does not run at its home %s: %+v", entity(i), home, e)
		}
	}
	return nil
}

// Even reports whether the nodes host as many shards as each other, but for one; or one node all
// of them, if the kind lives on the oldest. Those that are drained host nothing, unless all are.
func (c *Cluster) Even() error {
	spared := slices.ContainsFunc(c.World.Nodes(), func(n *world.Node) bool { return !Control(n).IsDrained() && !c.lies(n.ID().Address) })
	yields := func(n *world.Node) bool { return spared && Control(n).IsDrained() }
	for _, n := range c.World.Nodes() {
		if i := Control(n).Inspect(KindName); i.Hosting > 0 && yields(n) {
			return fmt.Errorf("%s is drained and hosts %d shards", n.ID(), i.Hosting)
		}
	}
	if homes := Control(c.World.Nodes()[0]).Inspect(KindName).Homes; c.opt.OnOldest {
		if slices.ContainsFunc(homes, func(h control.Home) bool { return h.Node != homes[0].Node }) {
			return fmt.Errorf("the kind lives on several nodes: %v", homes)
		}
		return nil
	}
	least, most := protocol.MaxShards, 0
	for _, n := range c.World.Nodes() {
		if c.lies(n.ID().Address) || yields(n) {
			continue
		}
		i := Control(n).Inspect(KindName)
		least, most = min(least, i.Hosting), max(most, i.Hosting)
	}
	if most > least+1 {
		return fmt.Errorf("the load is not even: %d shards here, %d there", most, least)
	}
	return nil
}

// Moving returns how many shards are on their way, by what the coordinators say.
func (c *Cluster) Moving() int {
	moving := 0
	for _, n := range c.World.Nodes() {
		moving += Control(n).InspectCoordinator(KindName).Moving
	}
	return moving
}

// hosted checks that every home hosts its shard, and no other node does.
func (c *Cluster) hosted(homes []control.Home) error {
	for _, h := range homes {
		for _, n := range c.World.Nodes() {
			sl := c.Ledger.nodes[n.ID()].region.Slot(h.Shard)
			if sl == nil {
				return fmt.Errorf("%s has not heard of shard %d", n.ID(), h.Shard)
			}
			info := sl.Info()
			if info.Hosting != (n.ID() == h.Node) || info.Stopping || info.Suspended && info.Hosting {
				return fmt.Errorf("shard %d at home at %s: %s has %+v", h.Shard, h.Node, n.ID(), info)
			}
		}
	}
	return nil
}

// past returns the numbers of shards that the kind has had, as some node knows that is up.
func (c *Cluster) past() (past []uint32) {
	for _, n := range c.World.Nodes() {
		if m, runs := n.Machine(protocol.Service).(*starter); runs { // The one that starts has none yet.
			if all := m.Inspect(KindName).Past; len(all) > len(past) {
				past = all
			}
		}
	}
	return past
}

// present returns the last layout in force, as some node knows.
func (c *Cluster) present() protocol.Layout {
	knows := Control(c.World.Nodes()[0]).Inspect(KindName).Knows
	return knows[len(knows)-1]
}

// Drained reports what is missing until every message of the past has an outcome.
func (c *Cluster) Drained() error {
	if ids := c.Ledger.Pending(); len(ids) > 0 {
		r := c.Ledger.messages[ids[0]]
		return fmt.Errorf("%d messages without an outcome, the first is %d from %s to %s: %+v", len(ids), ids[0], r.path.origin, r.path.entity, *r)
	}
	return nil
}

// heldBack returns an error while a node is held back from sending to an entity.
func (c *Cluster) heldBack() error {
	for _, n := range c.World.Nodes() {
		region := c.Ledger.nodes[n.ID()].region
		var t cell.Tally
		region.EachSlot(func(sl *runtime.Slot) { sl.Tally(&t) })
		if t.Held > 0 {
			return fmt.Errorf("%s is held back from %d entities", n.ID(), t.Held)
		}
	}
	return nil
}

// Acknowledged reports what is missing until no node keeps a message that it has sent, or
// waits to pass on.
func (c *Cluster) Acknowledged() error {
	for _, n := range c.World.Nodes() {
		region := c.Ledger.nodes[n.ID()].region
		var t cell.Tally
		region.EachSlot(func(sl *runtime.Slot) { sl.Tally(&t) })
		if t.Window > 0 || t.Transit > 0 {
			return fmt.Errorf("%s keeps %d messages that nobody has acknowledged, and %d to pass on", n.ID(), t.Window, t.Transit)
		}
	}
	return nil
}

// Await runs the world until no condition is an error, for at most a time. Otherwise the
// error says which condition was not met last.
func (c *Cluster) Await(limit time.Duration, conditions ...func() error) error {
	var why error
	_, err := c.World.RunUntil(limit, func() bool {
		for _, condition := range conditions {
			if why = condition(); why != nil {
				return false
			}
		}
		return true
	})
	if err != nil && why != nil {
		return fmt.Errorf("%w: %w", err, why)
	}
	return err
}

// mailboxes is the time that the messages in mailboxes in the end take to be processed.
const mailboxes = 5 * time.Second

// Finish stops the clients and waits until the cluster is settled, even and drained, what runs
// without a message runs, every
// message is acknowledged, no node is held back, and none has the memory of an entity that lives elsewhere.
func (c *Cluster) Finish(limit time.Duration) error {
	c.Quiet()
	if err := c.Await(limit, agreed(c), c.Settled, c.Running, func() error { return recalled(c) }, c.Drained, c.Acknowledged, c.Even, c.heldBack, c.Unpacked); err != nil {
		return err
	}
	if err := c.World.Run(mailboxes); err != nil {
		return err
	}
	homes := Control(c.World.Nodes()[0]).Inspect(KindName).Homes
	if entity, home, seen := c.Ledger.Store.behind(homes, c.present()); entity != "" {
		return fmt.Errorf("I1: the store has seen epoch %s of %s, and would refuse its home %s under epoch %s for ever", seen, entity, home.Node, home.Epoch)
	}
	if ids := c.Ledger.Vanished(); len(ids) > 0 {
		return fmt.Errorf("I20: %d messages were acknowledged and vanished, the first is %d: %+v", len(ids), ids[0], *c.Ledger.messages[ids[0]])
	}
	return nil
}
