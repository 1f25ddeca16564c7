// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
	world "github.com/quorate/quorate/simulation"
)

// A world of replicas: [New] makes it; by the methods after it members join, leave, crash and are removed;
// [Cluster.Finish] waits until all replicas have become equal, and says what is missing if they do not.

// Options say what a cluster is like. A field that is zero has its default.
type Options struct {
	World       world.Options
	Nodes       int           // How many nodes start. Default 3.
	Keys        int           // How many keys clients use. Default 4.
	Every       time.Duration // The mean time between operations. Default 30 ms.
	Copies      int           // Replicas of each key; 0: all.
	Durable     bool
	Lag         time.Duration // How late a node may hear of members. Default 3 s.
	Limit       time.Duration // How long an operation may take. Default 6 s.
	Deletes     int           // Of 100 operations, how many are deletes. Default 3.
	Sweep       time.Duration // Default 2 s.
	Expire      time.Duration
	WriteBehind protocol.WriteBehindBounds // Of a durable group: how far it may write behind.
}

func (o Options) withDefaults() Options {
	o.Nodes = cmp.Or(o.Nodes, 3)
	o.Keys = cmp.Or(o.Keys, 4)
	o.Every = cmp.Or(o.Every, 30*time.Millisecond)
	o.Lag = cmp.Or(o.Lag, 3*time.Second)
	o.Limit = cmp.Or(o.Limit, 6*time.Second)
	o.Deletes = cmp.Or(o.Deletes, 3)
	o.Sweep = cmp.Or(o.Sweep, 2*time.Second)
	return o
}

// Cluster is a world in which every node is a replica.
type Cluster struct {
	World   *world.World
	History *History
	Rescued int // How often an operator had to accept a loss.
	Held    int // How many buckets were held back when the others went on, see Homes.
	Late    int // How often disks came back after the loss of what they held was accepted.
	WentOn  int // How often the group went on by itself without a majority,
	Anew    int // and how many buckets have begun anew by themselves.

	Aged       int // How often a disk was put back to an older state,
	Recognised int // and how often that was recognised.
	Restored   int // How often all disks were put back together.
	Copied     int // How often a disk was copied for another node,
	Refused    int // and how often a node noticed that.

	Tails int // How often a node crashed before everything was written that it held,
	Power int // and how often all did at once.

	clients       clients
	opt           Options
	rand          *rand.Rand
	releases      releases
	latest        membersState
	members       map[gossip.NodeID]*gossip.Member
	gone          []gossip.Tombstone
	drained       map[gossip.NodeID]bool // The nodes that have said that they may leave,
	graceful      map[gossip.NodeID]bool // and those of them that have left in order.
	ups           gossip.UpNumber
	nodes         map[gossip.NodeID]*node
	disks         map[gossip.Address]*disk
	registers     map[generationID]*protocol.Register
	diskAges      bool // Disks are put back to older states, see Older.
	copies, whole map[gossip.Address]diskSnapshot
	unsettled     []string // The keys with a delete under way when the disks in whole were copied.
	diskCopies    bool     // Disks are copied, see Copied.
	copied        *copiedNodes
	standings     standings
	wentOn        map[generationID]bool // The generations that [checkedMachine.checkWithoutMajority] has looked at.
	restored      gossip.Address        // Of a disk that was put back, until a node recognises that.
	bareMajority  bool                  // Writes are held by no more than a majority, see WriteBehind.
	failing       time.Duration         // Until when writes may be lost, since too many have crashed together.
}

// node is the machine of a node and what belongs to it.
type node struct {
	machine *protocol.Machine
	table   *table.Table
	replica protocol.ReplicaID
}

// generationID names a generation of a lineage.
type generationID struct {
	lineage protocol.Lineage
	gen     uint64
}

// New returns a cluster whose nodes have just started. The functions in set change the options
// of its world before.
func New(opt Options, set ...func(*world.Options)) *Cluster {
	opt = opt.withDefaults()
	if opt.World.Scenario != "" { // The command that repeats a run contains it.
		opt.World.Scenario += fmt.Sprintf(" -nodes %d", opt.Nodes)
	}
	for _, f := range set {
		f(&opt.World)
	}
	w := world.New(opt.World)
	c := &Cluster{
		World: w, History: newHistory(opt.Expire > 0), opt: opt,
		rand: rand.New(rand.NewPCG(opt.World.Seed, 91)), releases: drawReleases(opt.World.Seed, 2*opt.Nodes),
		members: map[gossip.NodeID]*gossip.Member{}, nodes: map[gossip.NodeID]*node{},
		disks: map[gossip.Address]*disk{}, copies: map[gossip.Address]diskSnapshot{}, registers: map[generationID]*protocol.Register{}, drained: map[gossip.NodeID]bool{}, graceful: map[gossip.NodeID]bool{},
	}
	c.clients = clients{
		World: w, History: c.History, opt: opt, rand: c.rand, nodes: c.nodes, ops: map[protocol.OpID]*operation{},
		set: crdt.TypeOf[crdt.GSet[uint64]](), orset: crdt.TypeOf[crdt.ORSet[uint64]](), counter: crdt.TypeOf[crdt.GCounter](),
	}
	c.copied = &copiedNodes{Cluster: c, hears: map[gossip.NodeID]bool{}}
	c.standings, c.wentOn = newStandings(), map[generationID]bool{}
	w.Carry(c.carry)
	w.EndsOn(func(event any) string {
		if s, ok := event.(component.Stopping); ok {
			return s.Reason.String()
		}
		return ""
	})
	w.Strategies().Answer(protocol.StorePort, c.store)
	w.Observe(c.observe)
	w.Check(checker{c})
	for i := range opt.Nodes {
		c.Join(i)
	}
	c.standings.renew(c)
	w.After(2*time.Second, c.clients.work)
	return c
}

// Address returns the address of the i-th node.
func Address(i int) gossip.Address {
	return gossip.Address{Host: fmt.Sprintf("n%02d", i), Port: 7946}
}

// Join starts the i-th node, which becomes a member soon, unless it runs already.
func (c *Cluster) Join(i int) {
	a := Address(i)
	if c.World.Node(a) != nil {
		return
	}
	c.World.Start(a, c.build)
}

// admits reports whether a node may become a member. After a restart of the whole cluster the first member has to be
// one whose disk has a register: in production the vote on founding the cluster sees to that.
func (c *Cluster) admits(at *world.Node) bool {
	if !c.opt.Durable || c.nodes[at.ID()].machine.Register(0) != nil {
		return true
	}
	for _, n := range c.World.Nodes() {
		if c.members[n.ID()] != nil && c.nodes[n.ID()].machine.Register(0) != nil {
			return true
		}
	}
	for _, d := range c.disks { //quorate:unordered any of them
		if d.now.meta.Register != nil {
			return false
		}
	}
	return true
}

// admitSoon makes a node that has just started a member soon.
func (c *Cluster) admitSoon(at *world.Node) {
	n := at.ID()
	c.World.After(c.soon(500*time.Millisecond), func() {
		if !at.Alive() {
			return
		}
		if !c.admits(at) {
			c.World.After(time.Second, func() { c.admitSoon(at) })
			return
		}
		c.ups++
		c.members[n] = &gossip.Member{
			Node: n, Status: gossip.Up, UpNumber: c.ups, Zone: "z" + n.Address.Host[2:], Services: []uint16{uint16(protocol.Service)},
			Protocol: gossip.ProtocolRange{Min: 1, Max: 1},
		}
		c.announceMembers()
	})
}

// Leave makes a member leave in order: it is removed when its replica is in no set any
// more, or after a while.
func (c *Cluster) Leave(a gossip.Address) {
	at := c.World.Node(a)
	if at == nil || c.members[at.ID()] == nil || c.up() < 2 {
		return
	}
	leaving := *c.members[at.ID()]
	leaving.Status = gossip.Leaving
	c.members[at.ID()] = &leaving
	c.announceMembers()
	c.World.After(time.Second, func() { c.removeLeft(at, 60) })
}

// up returns how many members are up.
func (c *Cluster) up() int {
	n := 0
	for _, m := range c.members { //quorate:unordered a count
		if m.Status == gossip.Up {
			n++
		}
	}
	return n
}

// removeLeft removes a leaving member as soon as it has said that it may go and its replica counts
// nowhere, which is in order, or when it has waited for long and nothing is lost by it.
func (c *Cluster) removeLeft(at *world.Node, patience int) {
	switch {
	case !at.Alive():
	case c.drained[at.ID()] && !c.counts(c.nodes[at.ID()].replica):
		c.graceful[at.ID()] = true
		c.Remove(at.ID())
	case patience <= 0 && !c.copied.active() && c.mayLose(at):
		c.Remove(at.ID())
	default:
		c.World.After(time.Second, func() { c.removeLeft(at, patience-1) })
	}
}

// counts reports whether a replica is in a set of a register that any node knows or may come to know.
func (c *Cluster) counts(id protocol.ReplicaID) bool {
	for _, n := range c.World.Nodes() {
		for _, r := range c.nodes[n.ID()].machine.Pending(0) {
			if r.In(id) {
				return true
			}
		}
	}
	return false
}

// Crash ends the node at an address. Its removal follows, as for every node that ends.
func (c *Cluster) Crash(a gossip.Address) {
	if c.World.Node(a) != nil {
		c.World.Crash(a)
	}
}

// Remove removes a member for good, as soon as its node may host nothing any more. A node that still runs is told
// later.
func (c *Cluster) Remove(n gossip.NodeID) {
	if c.members[n] == nil {
		return
	}
	if !c.standings.doomed[n] && !c.graceful[n] {
		c.standings.doomed[n] = true
		c.World.After(standingOver, func() { c.Remove(n) })
		return
	}
	if len(c.members) == 1 {
		c.World.After(time.Second, func() { c.Remove(n) })
		return
	}
	delete(c.members, n)
	c.gone = append(c.gone, gossip.Tombstone{Node: n, RemovedAt: c.World.Wall().UnixMilli()})
	c.announceMembers()
}

// soon draws a time below a limit.
func (c *Cluster) soon(limit time.Duration) time.Duration { return soon(c.rand, limit) }

func soon(r *rand.Rand, limit time.Duration) time.Duration {
	return time.Duration(r.Int64N(int64(limit)))
}

// announceMembers lets every node hear of the present members, each at a time of its own.
func (c *Cluster) announceMembers() {
	if len(c.members) == 0 {
		return
	}
	raw := gossip.Raw{Cluster: gossip.ClusterID{Born: 1, Nonce: 1}, Tombstones: slices.Clone(c.gone), LastUpNumber: c.ups}
	for _, n := range c.sortedMembers() {
		raw.Members = append(raw.Members, c.members[n])
	}
	state, err := gossip.FromParts(raw)
	if err != nil {
		c.World.Fail(err)
		return
	}
	c.latest = membersState{c.latest.version + 1, state, maps.Clone(c.graceful)}
	for _, at := range c.World.Nodes() {
		c.tell(at, c.latest, c.soon(c.opt.Lag))
	}
}

func (c *Cluster) tell(at *world.Node, t membersState, after time.Duration) {
	c.World.After(after, func() {
		if at.Alive() {
			at.Input(membershipService, t)
		}
	})
}

func (c *Cluster) sortedMembers() []gossip.NodeID {
	all := make([]gossip.NodeID, 0, len(c.members))
	for n := range c.members { //quorate:unordered sorted below
		all = append(all, n)
	}
	slices.SortFunc(all, gossip.NodeID.Compare)
	return all
}

// timing returns the intervals of production, with shorter ones where a run would have to wait for long.
func (c *Cluster) timing() protocol.Timing {
	t := protocol.DefaultTiming()
	t.Sweep, t.Gather, t.Store = c.opt.Sweep, 4*time.Second, 2*time.Second
	return t
}

// build builds the components of a node.
func (c *Cluster) build(env world.Env) []machine.Component {
	n := &node{replica: protocol.ReplicaID(env.Self.UID)}
	n.table = table.New(table.Config{Self: protocol.OriginOf(env.Self.UID), MaxValueBytes: 1 << 20, MaxBytes: 1 << 30})
	group := protocol.Group{Name: "default", Copies: c.opt.Copies, Durable: c.opt.Durable, Table: n.table, ExpireAfter: c.opt.Expire, WriteBehind: c.opt.WriteBehind, GoOn: true}
	if c.opt.Durable {
		d := c.disk(env.Self.Address)
		d.starts++
		n.replica = d.id
		group.Meta, group.Fresh = d.load(n.table), d.starts == 1
	}
	group.Replica = n.replica
	n.machine = protocol.New(protocol.Config{
		Self: env.Self, Groups: []protocol.Group{group}, Timing: c.timing(), Bounds: protocol.DefaultBounds(), Rand: env.Rand, Standing: true,
	})
	c.nodes[env.Self] = n
	if c.latest.state != nil {
		t := c.latest
		c.World.After(time.Millisecond, func() {
			if at := c.World.Node(env.Self.Address); at != nil && at.ID() == env.Self {
				at.Input(membershipService, t)
			}
		})
	}
	return []machine.Component{
		{Name: "membership", Service: membershipService, Machine: &membership{self: env.Self}},
		{Name: protocol.ComponentName, Service: protocol.Service, Machine: &checkedMachine{Machine: n.machine, cluster: c, caught: map[generationID]bool{}}, Codec: c.releases.codec(env.Self.Address, c.clients.set, c.clients.orset, c.clients.counter)},
	}
}

// carry hands the effects of machines to clients.
func (c *Cluster) carry(n *world.Node, _ *machine.Component, e machine.Effect) bool {
	switch e := e.(type) {
	case protocol.Done:
		c.clients.done(n, e)
	case protocol.FetchResult:
		c.clients.fetched(n, e)
	case protocol.Routed:
		c.renewed(n, e.Route.Self)
	case protocol.KeysChanged, protocol.DroppedAll, protocol.Alarm, protocol.ContinuedWithoutMajority:
	default:
		return false
	}
	return true
}

// observe checks that each generation has one value.
func (c *Cluster) observe(o world.Observation) {
	if _, ok := o.Event.(world.Started); ok {
		c.admitSoon(o.Node)
	}
	if e, ok := o.Event.(world.Ended); ok {
		c.clients.endAt(o.Node)
		c.World.After(3*time.Second+c.soon(6*time.Second), func() { c.Remove(o.Node.ID()) })
		if c.opt.Durable {
			writeBehindCluster{c}.ended(o.Node, e.Why == world.Crashed)
		}
	}
	if _, ok := o.Event.(component.Drained); ok {
		c.drained[o.Node.ID()] = true
	}
	if a, ok := o.Event.(world.Answered); ok && a.Port == protocol.StorePort && a.Called.Err == nil && a.Called.Result == nil {
		d := c.disk(o.Node.ID().Address)
		d.answered = true
		if err := c.checkOneValue(d.now.meta.Register); err != nil {
			c.World.Fail(err)
		}
	}
}

// checker looks at the machines from outside.
type checker struct{ c *Cluster }

// Stepped checks that each generation of a lineage has one value (D1). Of durable replicas it looks at what is written,
// since nothing depends on the rest (see [Cluster.observe]).
func (k checker) Stepped(_ *world.World, n *world.Node) error {
	if k.c.opt.Durable {
		return errors.Join(k.checkNeverOlder(n), k.c.copied.checkHeard(n))
	}
	return errors.Join(k.c.standings.decides(k.c, n), k.c.checkOneValue(k.c.nodes[n.ID()].machine.Register(0)))
}

// checkOneValue checks that a register is the only value of its generation.
func (c *Cluster) checkOneValue(r *protocol.Register) error {
	if r == nil {
		return nil
	}
	at := generationID{r.Lineage, r.Gen}
	if known := c.registers[at]; known == nil {
		c.registers[at] = r
	} else if known != r && !known.Equal(r) {
		return fmt.Errorf("D1: generation %d has two values: %+v and %+v", r.Gen, *known, *r)
	}
	return nil
}

// Second notes whether too many replicas have crashed together.
func (k checker) Second(*world.World) error {
	writeBehindCluster{k.c}.forgiveTails()
	return nil
}

// Quiet has clients begin no more operations.
func (c *Cluster) Quiet() { c.clients.idle = true }

// Finish stops the clients, and waits until the replicas that count are those of the members, all have caught up and
// hold the same, and neither tombstones nor updates of removed nodes are left.
func (c *Cluster) Finish(limit time.Duration) error {
	c.Quiet()
	if c.opt.Durable { // A group in memory goes on by itself.
		c.World.After(10*time.Second, c.rescue)
	}
	var why error
	_, err := c.World.RunUntil(limit, func() bool {
		why = c.settled()
		return why == nil
	})
	if why != nil {
		for _, at := range c.World.Nodes() {
			why = fmt.Errorf("%w\n%s", why, c.nodes[at.ID()].machine)
		}
	}
	return errors.Join(err, why, checkEqualValues(c))
}

// checkEqualValues checks that entries of a key with equal versions have equal values, on which the comparison of
// tables by their hashes relies.
func checkEqualValues(c *Cluster) error {
	first := map[string][]byte{}
	for _, at := range c.World.Nodes() {
		n := c.nodes[at.ID()]
		for bucket := range table.Buckets {
			for _, s := range n.table.Summaries(bucket) {
				e, _ := n.table.Get(s.Key)
				if e.State != table.Live {
					continue
				}
				value, err := e.Type.Append(nil, e.Value)
				if err != nil {
					return err
				}
				id := fmt.Sprintf("%s %x", s.Key, s.Hash)
				if known, ok := first[id]; ok && !bytes.Equal(known, value) {
					return fmt.Errorf("D6: %s has a value of %s other than that of another node with the same versions: %v", at.ID(), s.Key, e.Value)
				}
				first[id] = value
			}
		}
	}
	return nil
}

// rescue does what an operator does when no winning part of the replicas is left: it accepts the loss. Reads need not
// return what was acknowledged before.
func (c *Cluster) rescue() {
	live := map[protocol.ReplicaID]bool{}
	var best *world.Node
	for _, n := range c.World.Nodes() {
		if c.nodes[n.ID()].machine.Older(0) {
			continue
		}
		live[c.nodes[n.ID()].replica] = true
		if r := c.nodes[n.ID()].machine.Register(0); r != nil && (best == nil || r.Above(c.nodes[best.ID()].machine.Register(0))) {
			best = n
		}
	}
	c.World.After(10*time.Second, c.rescue) // It may have to be done again: older stores are recognised after a while.
	if c.acceptHeld() || best == nil || c.nodes[best.ID()].machine.Keeps(0, func(id protocol.ReplicaID) bool { return live[id] }) {
		return
	}
	c.Rescued++
	c.History.forgive()
	best.Input(protocol.Service, protocol.AcceptLoss{})
}

// settled returns an error that says what is not yet as [Cluster.Finish] wants it.
func (c *Cluster) settled() error {
	if len(c.clients.ops) > 0 {
		return fmt.Errorf("%d operations wait", len(c.clients.ops))
	}
	var first *node
	for _, at := range c.World.Nodes() {
		n := c.nodes[at.ID()]
		if c.members[at.ID()] == nil {
			return fmt.Errorf("%s runs and is no member", at.ID())
		}
		r := n.machine.Register(0)
		if r == nil || r.Phase != protocol.PhaseStable || len(r.Current) != len(c.members) || !r.Current.Has(n.replica) {
			return fmt.Errorf("%s (replica %d of %d members) has the register %+v", at.ID(), n.replica, len(c.members), r)
		}
		if first == nil {
			first = n
		}
		if !n.machine.Register(0).Equal(first.machine.Register(0)) {
			return fmt.Errorf("%s is at generation %d, another at %d", at.ID(), r.Gen, first.machine.Register(0).Gen)
		}
		if len(r.Held) > 0 {
			return fmt.Errorf("%s still holds back %d buckets", at.ID(), len(r.Held))
		}
		if !n.machine.Caught(0) {
			return fmt.Errorf("%s has not caught up", at.ID())
		}
		if err := c.equal(n, first, at.ID()); err != nil {
			return err
		}
	}
	return nil
}

// equal returns an error that says in what a replica differs from the first one, or what it holds that has to be
// dropped.
func (c *Cluster) equal(n, first *node, id gossip.NodeID) error {
	if c.opt.Expire > 0 && n.table.Len() > 0 {
		return fmt.Errorf("%s still holds %d entries, which nobody has changed for long", id, n.table.Len())
	}
	mine, theirs := n.machine.Route(0), first.machine.Route(0)
	for bucket := range table.Buckets {
		switch {
		case !mine.Here(bucket) && n.table.Hash(bucket) != 0:
			return fmt.Errorf("%s holds bucket %d, of which it is no home", id, bucket)
		case mine.Here(bucket) && theirs.Here(bucket) && n.table.Hash(bucket) != first.table.Hash(bucket):
			return fmt.Errorf("%s holds another content of bucket %d than the first", id, bucket)
		}
	}
	if count, _ := n.table.Tombstones(n.machine.Register(0).Gen); count > 0 {
		return fmt.Errorf("%s still holds %d tombstones", id, count)
	}
	for _, o := range n.table.Origins() {
		alive := slices.ContainsFunc(c.sortedMembers(), func(m gossip.NodeID) bool { return protocol.OriginOf(m.UID) == o })
		if !alive {
			return fmt.Errorf("%s still holds something of the origin %x, which is gone", id, o)
		}
	}
	return nil
}

// mayLose reports whether a node may lose its state without loss of data: every set that counts, or is being decided,
// has a winning part without it, in which no replica has lost some of what it acknowledged.
func (c *Cluster) mayLose(lost *world.Node) bool {
	live := map[protocol.ReplicaID]bool{}
	for _, n := range c.World.Nodes() {
		at := c.nodes[n.ID()]
		if n.ID() != lost.ID() && c.members[n.ID()] != nil && !c.copied.isCopy(n) && !at.machine.Unsure(0) && !isOlder(c, n) {
			live[at.replica] = true
		}
	}
	in := func(id protocol.ReplicaID) bool { return live[id] }
	for _, n := range c.World.Nodes() {
		if !c.nodes[n.ID()].machine.Keeps(0, in) {
			return false
		}
	}
	return true
}
