// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"maps"
	"slices"
	"time"

	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
)

// The machine hands each input to the group that it is about; the parts of a group decide. A timer wakes it at each
// tick, see pace.go.

// Machine replicates the groups of one node. It belongs to the goroutine of its driver;
// the tables of its groups may be used by others too.
type Machine struct {
	env

	groups []*group
	ended  bool // The node stops: inputs are refused.
	pace   pace // When the machine is woken.

	idChange idChange
}

// env is what every part of a machine knows of its node and of the present step.
type env struct {
	cfg          Config
	state        *gossip.State // The members, nil until they are known.
	now          machine.Now
	out          *machine.Outbox
	call         machine.CallID
	pass         PassID
	counts       Counts
	began        machine.Instant        // When the machine was started.
	mayHostUntil machine.Instant        // Up to when this node may host.
	left         map[gossip.NodeID]bool // The removed members that left in order, as long as they are remembered.
	fenced       map[gossip.UID]bool    // The removed members that can host nothing any more.
}

// tickTimer wakes the machine at each tick.
type tickTimer struct{}

// spreadTimer is due when the local changes of a group are to be sent.
type spreadTimer struct{ Group uint8 }

// New returns the machine of a node.
func New(cfg Config) *Machine {
	m := &Machine{env: env{cfg: cfg, left: map[gossip.NodeID]bool{}, fenced: map[gossip.UID]bool{}}}
	if !cfg.Standing {
		m.mayHostUntil = machine.Never
	}
	for i, of := range cfg.Groups {
		m.groups = append(m.groups, newGroup(&m.env, uint8(i), of))
	}
	return m
}

// Step handles an input.
func (m *Machine) Step(now machine.Now, in machine.Input, out *machine.Outbox) {
	m.now, m.out = now, out
	if m.ended {
		m.refuse(in)
		return
	}
	m.handle(in)
	busy := m.pace.slow && m.busy()
	for _, g := range m.groups {
		busy = g.settle(m.pace.slow && !busy) || busy
	}
	m.wake(busy)
}

func (m *Machine) handle(in machine.Input) {
	switch in := in.(type) {
	case machine.Started:
		m.began = m.now.Mono
		m.out.Publish(component.Services{Service: Service})
		m.out.Publish(component.Busy{Component: ComponentName})
		for _, g := range m.groups {
			g.start()
		}
		m.arm(tickTimer{}, m.cfg.Timing.Tick)
	case machine.Fired:
		m.fired(in.Timer)
	case machine.Received:
		m.received(in.From, in.Message)
	case machine.Called:
		for _, g := range m.groups {
			g.disk.answered(in)
		}
		m.renewed(in)
	case component.Changed:
		m.changed(in)
	case component.Standing:
		if m.cfg.Standing {
			m.mayHostUntil = in.Until
		}
	case component.Fenced:
		m.fenced[in.Node.UID] = true
		if in.Graceful {
			m.left[in.Node] = true
		}
	case component.Stopping:
		m.end()
	default:
		m.command(in)
	}
}

// mayHost reports whether this node may host, by its clock. A node that may not, such as one on the side that is about
// to be downed, decides no generation and completes no majority; its local operations, and those that wait for a number
// of replicas, go on.
func (m *env) mayHost() bool { return m.now.Mono <= m.mayHostUntil }

// command handles what the program on this node asks for.
func (m *Machine) command(in machine.Input) {
	switch in := in.(type) {
	case Write:
		m.groups[in.Group].ops.write(in)
	case Read:
		m.groups[in.Group].ops.read(in)
	case Delete:
		m.groups[in.Group].ops.remove(in)
	case Cancel:
		for _, g := range m.groups {
			g.ops.cancel(in.Op)
			g.remote.cancel(in.Op)
		}
	case FetchEntry:
		m.groups[in.Group].remote.fetch(in)
	case CommitDelta:
		m.groups[in.Group].remote.commit(in)
	case SendDeltas:
		m.groups[in.Group].propagation.soon()
	case AcceptLoss:
		if !m.idChange.aside {
			m.groups[in.Group].acceptLoss()
		}
	case ExplainKey:
		g := m.groups[in.Group]
		g.explain(g.explainer.begin(in))
	case Survey:
		m.survey(in)
	}
}

// changed takes over what is known of the members.
func (m *Machine) changed(in component.Changed) {
	m.state = in.State
	m.alerted()
	for node := range m.left { //quorate:unordered each by itself
		if _, removed := in.State.Removed(node); !removed {
			delete(m.left, node)
		}
	}
	m.forgetFenced()
	for _, g := range m.groups {
		g.membersChanged()
	}
}

// forgetFenced forgets the removed members that are remembered no longer, but for those whose replicas are in a
// register.
func (m *Machine) forgetFenced() {
	graves := map[gossip.UID]bool{}
	for _, t := range m.state.Tombstones() {
		graves[t.Node.UID] = true
	}
	maps.DeleteFunc(m.fenced, func(uid gossip.UID, _ bool) bool {
		return !graves[uid] && !slices.ContainsFunc(m.groups, func(g *group) bool { return g.reg != nil && g.reg.In(ReplicaID(uid)) })
	})
}

// received hands a message to its group. Messages of nodes that are no members are counted and dropped.
func (m *Machine) received(from gossip.NodeID, message any) {
	e, ok := message.(Envelope)
	switch {
	case m.state == nil || m.state.Member(from) == nil:
		m.counts.Strangers++
	case !ok || int(e.Group) >= len(m.groups) || !e.valid():
		m.counts.Malformed++
	default:
		m.groups[e.Group].received(from, e)
	}
}

func (m *Machine) fired(t machine.Timer) {
	switch t := t.(type) {
	case tickTimer:
		for _, g := range m.groups {
			g.tick()
		}
		m.renew()
		m.leave()
		m.armTick()
	case spreadTimer:
		g := m.groups[t.Group]
		g.ops.carry(g.propagation.due())
	case diskTimer:
		m.groups[t.Group].disk.again()
	}
}

// leaving reports whether this node is leaving.
func (m *env) leaving() bool {
	if m.state == nil {
		return false
	}
	self := m.state.Member(m.cfg.Self)
	return self != nil && self.Status == gossip.Leaving
}

// leave publishes that this node may leave, at each tick, once its replicas hold nothing, or nobody is there who could
// take over.
func (m *Machine) leave() {
	if !m.leaving() {
		return
	}
	for _, g := range m.groups {
		if g.holds() && len(g.wanted()) > 0 {
			return
		}
	}
	m.out.Publish(component.Drained{Component: ComponentName})
}

// end ends every operation: the node stops.
func (m *Machine) end() {
	m.ended = true
	for _, g := range m.groups {
		g.ops.end()
	}
	m.out.Disarm(tickTimer{})
}

// Final returns what is still to be written when the node has ended in order and this machine takes no more steps:
// everything that is not known to be in the store. The batch of a group also says that no more was acknowledged than is
// in the store, unless this replica has not yet recovered what it lost by an earlier crash.
func (m *Machine) Final() (all []WriteBatch) {
	for _, g := range m.groups {
		if g.disk.used && g.cfg.WriteBehind.Interval > 0 {
			all = append(all, g.final())
		}
	}
	return all
}

// Unsure reports whether this node's replica may have lost what it has acknowledged.
func (m *Machine) Unsure(group uint8) bool { return m.groups[group].storeCheck.unclean }

// refuse ends an operation that is begun after the node has ended.
func (m *Machine) refuse(in machine.Input) {
	switch in := in.(type) {
	case Write:
		m.out.Add(Done{Op: in.Op, Verdict: Gone})
	case Read:
		m.out.Add(Done{Op: in.Op, Verdict: Gone})
	case Delete:
		m.out.Add(Done{Op: in.Op, Verdict: Gone})
	}
}

func (m *env) arm(t machine.Timer, after time.Duration) {
	m.out.Arm(t, m.now.Mono.Add(after))
}

// replicas returns the members that may hold a group, sorted by node.
func (m *env) replicas(role string) []*gossip.Member {
	if m.state == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(m.state.Members()), func(of *gossip.Member) bool {
		return !of.HasService(uint16(Service)) || role != "" && !of.HasRole(role)
	})
}

// seconds is the time in seconds since the machine was started.
func (m *env) seconds() uint32 { return uint32(m.now.Mono.Sub(m.began) / time.Second) }

// counted reports whether a node may hold a group of a role, as far as the members are known here.
func (m *env) counted(node gossip.NodeID, role string) bool {
	of := m.state.Member(node)
	return of != nil && of.HasService(uint16(Service)) && (role == "" || of.HasRole(role)) && of.Status != gossip.Down && of.Status != gossip.Exiting
}

// alive reports whether an owner of updates may still change values, as far as this node
// knows.
func (m *env) alive(owner crdt.Origin) bool {
	if owner == OriginOf(m.cfg.Self.UID) || m.state == nil {
		return true
	}
	return slices.ContainsFunc(m.state.Members(), func(of *gossip.Member) bool { return OriginOf(of.Node.UID) == owner })
}

// Counts are what a machine has counted since it was built.
type Counts struct {
	Strangers     uint64 // Messages of nodes that are not members.
	Malformed     uint64 // Messages that make no sense.
	Foreign       uint64 // Entries and changes that came for buckets of which this replica is no home.
	Claims        uint64 // Messages in the name of a replica that belongs to another member.
	Stale         uint64 // Data that was read before a sweep, or in a lineage that has ended, and refused.
	Refused       uint64 // Entries and changes that the table refused.
	Gaps          uint64 // Changes of which an earlier one was missing.
	Unsent        uint64 // Messages that were dropped because too many wait for the store.
	Passes        uint64 // Comparisons of two tables that have ended.
	Pulled        uint64 // Entries that came by comparisons.
	Changes       uint64 // Changes that came as deltas.
	Batches       uint64 // Batches of deltas that were sent.
	Sweeps        uint64
	Repairs       uint64 // Reads that have written back what differed.
	StoreFailures uint64 // Batches that the store did not take.
	Wiped         uint64 // How often this replica has dropped its copy.
	Aged          uint64 // How often the store was found to be older than others remember.
	Unclean       uint64 // Replicas of this node that may have lost, at its start, what they had acknowledged,
	Restored      uint64 // and those of them that have taken it in from others since.
	QuorumsLost   uint64 // How often groups had no majorities any more,
	WentOn        uint64 // and how often they have gone on by themselves without those who were lost.
}

// Counts returns what was counted.
func (m *Machine) Counts() Counts { return m.counts }
