// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membershipsim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/simulation"
)

// A second of a world is checked by [Liveness.Second]: silent members are marked
// unreachable, a quiet world settles and hosts, and the best side survives a cut. The
// helpers of each check follow it.

// Liveness checks in each second that what must happen happens in time:
//
//	accused   a member that a node cannot hear any more is marked unreachable by it,
//	          or removed, within [Bounds.Accuse] of that node's running time. A node
//	          that has not been up spares the member while it hears others, or while
//	          others have marked the member, or the member has marked the node
//	patient   a member is marked no earlier than min-silence after its last answer
//	flapping  who is marked three times within a minute stays marked for as long as a
//	          decision takes ([Bounds.Decide])
//	settled   a world without faults for longer than [Bounds.Settle] has a cluster in
//	          which every live node is a member that is up, and about which all agree:
//	          a joiner is up or has ended, no member stays in a passing state, there
//	          is one leader, and so one oldest member; except for moments of at most
//	          [Bounds.Waver]
//	standing  each member may host, except for moments in which an answer was lost (docs/downing.md,
//	          "Because of lost answers a member may be unable to host for at most 6 s")
//	survives  of a settled cluster that is cut once, the side with a majority whose
//	          links all work hosts again within [Bounds.Accuse] and [Bounds.Remove]: all
//	          of it if nobody else reaches it, else some (docs/downing.md, "If a link within a side is broken, every
//	          strategy downs one of its two ends")
//	endless   while nothing changes from outside, no node is started and ends by
//	          itself again and again, unless the stability margin is too short for
//	          news and its answer ([Bounds.Answered]) (docs/configuration.md, "if it is shorter than twice the time in
//	          which news reaches all nodes, one that joins over a broken link is downed instead of waiting")
//
// It needs no operator, and waits for none. [Liveness.Watch] adds it to a world.
type Liveness struct {
	// Bounds are the times that are allowed.
	Bounds Bounds

	// Config holds the settings of the nodes.
	Config protocol.Config

	// MajorityOnly says that the downing strategy keeps every side with a majority,
	// and no other.
	MajorityOnly bool

	// MayWait reports whether a cluster may have to wait for an operator to found it, since too many of its nodes have
	// lost their records: then it need not settle (docs/operations.md, "more than half of the voters are lost with
	// their disks, or have lost their data directories"). Nil means never.
	MayWait func() bool

	// Silences, Marks, Flaps, Settled and Splits count how often each of these was really checked.
	Silences, Marks, Flaps, Settled, Splits int

	world    *simulation.World
	standing map[gossip.NodeID]machine.Instant
	hosted   map[gossip.NodeID]time.Duration // World time at which a node could last host, while that is checked.
	died     map[gossip.NodeID]time.Duration
	since    map[pair]time.Duration       // Since when the first node holds the second as a member that it cannot hear.
	marked   map[nodePair][]time.Duration // World times of the marks that nodes made of others.
	ends     map[gossip.Address]int
	steady   time.Duration // World time of the change after which ends are counted.

	settledAt time.Duration // World time at which the cluster was settled last.
	settled   *gossip.State
	expected  *expectation // The side that must survive.
}

// pair is a node and a member of its state.
type pair struct{ of, member gossip.NodeID }

// expectation says that a node of some side hosts by a given time, if nothing changes.
type expectation struct {
	side    []gossip.NodeID
	alone   bool // No other node is linked to the side.
	changed time.Duration
	by      time.Duration
}

// maxEnds is how often a node may end by itself while nothing changes from outside: once
// because it was on the losing side, once because its restart met the rest of that side,
// and once more for each node of a pair.
const maxEnds = 4

// newcomerPatience is how long a newcomer that hears no voter any more takes the voters'
// records about it for a sign of their life.
const newcomerPatience = 16 * time.Second

// Watch adds the check to a world.
func (l *Liveness) Watch(w *simulation.World) {
	l.world = w
	l.standing = make(map[gossip.NodeID]machine.Instant)
	l.hosted = make(map[gossip.NodeID]time.Duration)
	l.died, l.since = make(map[gossip.NodeID]time.Duration), make(map[pair]time.Duration)
	l.ends, l.marked = make(map[gossip.Address]int), make(map[nodePair][]time.Duration)
	w.Check(l)
	w.Observe(func(o simulation.Observation) {
		switch e := o.Event.(type) {
		case simulation.Ended:
			l.ended(o.Node, e)
		case component.Standing:
			l.standing[o.Node.ID()] = e.Until
		case machine.Decide:
			w.Fail(l.patient(o.Node, e))
			w.Fail(l.checkFlapping(o.Node, e))
		}
	})
}

// patient checks that a node has marked another one no earlier than allowed.
func (l *Liveness) patient(n *simulation.Node, d machine.Decide) error {
	if d.Topic != "reachability" || d.Verdict != "unreachable" {
		return nil
	}
	least := l.Config.FailureDetector.Bounds().MinSilence
	for _, s := range MachineOf(n).Monitored() {
		if s.Node.String() == d.Subject {
			l.Marks++
			if s.Silence < least {
				return fmt.Errorf("liveness: %v marks %v after %v, it must not before %v: %s", n.ID(), s.Node, s.Silence, least, d.Reason)
			}
			return nil
		}
	}
	return fmt.Errorf("liveness: %v marks %s, which it does not monitor", n.ID(), d.Subject)
}

// Stepped does nothing: a step cannot show that something did not happen.
func (*Liveness) Stepped(*simulation.World, *simulation.Node) error { return nil }

// Second checks everything that is due.
func (l *Liveness) Second(w *simulation.World) error {
	for _, n := range w.Nodes() {
		if err := l.accuses(n); err != nil {
			return err
		}
	}
	if err := l.settles(); err != nil {
		return err
	}
	return l.survives()
}

func (l *Liveness) ended(n *simulation.Node, e simulation.Ended) {
	w := l.world
	delete(l.standing, n.ID())
	delete(l.hosted, n.ID())
	l.died[n.ID()] = w.Now()
	l.forget(n)
	if e.Why == simulation.Crashed || strings.Contains(e.Why, component.StopJoinFailed.String()) || l.diskFailed(n, e) {
		return // From outside; by a setting (docs/operations.md, "no cluster was found in time, or it has no majority").
	}
	if l.steady != changedAt(w) {
		l.steady = changedAt(w)
		clear(l.ends)
	}
	if l.ends[n.ID().Address]++; l.Bounds.Answered && l.ends[n.ID().Address] > maxEnds {
		w.Fail(fmt.Errorf("endless: nodes at %v have ended by themselves %d times since anything changed from outside, %v ago, the last one because it %s",
			n.ID().Address, l.ends[n.ID().Address], w.Steady(), e.Why))
	}
}

// changedAt returns the world time at which something last changed from outside.
func changedAt(w *simulation.World) time.Duration { return w.Now() - w.Steady() }

// diskFailed reports whether a node has ended because of a disk that may fail. Such ends come as often as the disk
// fails (docs/operations.md, "If the record can be neither written nor removed, or the disk does not answer within").
func (l *Liveness) diskFailed(n *simulation.Node, e simulation.Ended) bool {
	d := l.world.Disks().At(n.ID().Address)
	return e.Why == "stopped: "+component.StopDisk.String() && (d.Fail > 0 || d.Hang > 0)
}

// silent reports since when a node cannot have heard a member's answer to a heartbeat. It
// is asked each second: a link that was repaired and broken again in between counts as
// repaired at the last repair of any link.
func (l *Liveness) silent(n *simulation.Node, member gossip.NodeID) (time.Duration, bool) {
	w := l.world
	if at, dead := l.died[member]; dead {
		return at, true
	}
	other := w.Node(member.Address)
	switch {
	case other == nil || other.ID() != member:
		return 0, true // The member has ended before the node could be asked.
	case w.Network().Connected(n.ID().Address, member.Address) && w.Network().Connected(member.Address, n.ID().Address):
		return 0, false
	}
	return w.Network().Healed(), true
}

// forget forgets since when a node cannot hear members.
func (l *Liveness) forget(n *simulation.Node) {
	maps.DeleteFunc(l.since, func(p pair, _ time.Duration) bool { return p.of == n.ID() })
}

// accuses checks that a node marks the members unreachable that it cannot hear.
func (l *Liveness) accuses(n *simulation.Node) error {
	w, m := l.world, MachineOf(n)
	s := m.State()
	if n.Frozen() {
		return nil
	}
	if self := s.Member(n.ID()); self == nil || self.Status >= gossip.Exiting ||
		len(s.Members()) > l.Config.FailureDetector.MonitoredByNrOfMembers+1 {
		l.forget(n) // It does not monitor all members, and may not have monitored them until now.
		return nil
	}
	within := l.Bounds.Accuse
	newcomer, spares := s.Member(n.ID()).Status <= gossip.WeaklyUp, false
	if newcomer {
		within += newcomerPatience
		spares = slices.ContainsFunc(s.Members(), func(m *gossip.Member) bool {
			_, silent := l.silent(n, m.Node)
			return m.Node != n.ID() && !silent
		})
	}
	for _, member := range s.Members() {
		key := pair{n.ID(), member.Node}
		from, silent := l.silent(n, member.Node)
		said := accuses(s, n.ID(), member.Node) || newcomer && saidByOthers(s, n.ID(), member.Node)
		if member.Node == n.ID() || !silent || spares || member.Status == gossip.Down || said {
			delete(l.since, key)
			continue
		}
		if _, known := l.since[key]; !known {
			l.since[key] = w.Now()
			continue
		}
		from = max(from, l.since[key], n.Thawed()) + w.Network().Slowest()
		if passed := w.Now() - from; passed > within {
			return fmt.Errorf("accused: %v has heard nothing of %v, which is %v, for %v that it ran, and does not accuse it: %s",
				n.ID(), member.Node, member.Status, passed+w.Network().Slowest(), s.Describe())
		}
		l.Silences++
	}
	return nil
}

// accuses reports whether a node has an unreachable record of its own about another.
func accuses(s *gossip.State, self, subject gossip.NodeID) bool {
	return slices.ContainsFunc(s.RowsOf(self), func(r gossip.Row) bool { return r.Subject == subject })
}

// saidByOthers reports whether another member has marked subject unreachable, or subject
// has marked self. That is enough if self is a newcomer, which leaves members that it
// never heard to others.
func saidByOthers(s *gossip.State, self, subject gossip.NodeID) bool {
	return accuses(s, subject, self) || !s.Reachable(subject)
}

// settles checks that a quiet world has a settled cluster.
func (l *Liveness) settles() error {
	w := l.world
	quiet, ok := w.Quiet()
	if !ok {
		return nil
	}
	missing := Settled(w)
	if missing == nil {
		l.settledAt = w.Now()
		if nodes := w.Nodes(); len(nodes) > 0 {
			l.settled = MachineOf(nodes[0]).State()
		}
	}
	if l.MayWait != nil && l.MayWait() || quiet <= l.Bounds.Settle+w.Network().Slowest() || len(w.Nodes()) == 0 {
		return nil
	}
	l.Settled++
	moment := w.Now()-l.settledAt <= l.Bounds.Waver+w.Network().Slowest()
	switch {
	case missing != nil && !moment:
		return fmt.Errorf("settled: nothing has been wrong for %v: %w", quiet, missing)
	case missing == nil:
		return l.allHost(quiet)
	}
	return nil
}

// allHost checks that each member that is up in a quiet world can host.
func (l *Liveness) allHost(quiet time.Duration) error {
	w := l.world
	lapse := rateSlack(l.Config.Fence + 3*l.Config.FailureDetector.HeartbeatInterval)
	for _, n := range w.Nodes() {
		if l.hosts(n) {
			l.hosted[n.ID()] = w.Now()
		} else if without := w.Now() - l.hosted[n.ID()]; without > lapse {
			return fmt.Errorf("standing: nothing has been wrong for %v, and %v, which is up, has not been able to host for %v", quiet, n.ID(), min(without, quiet))
		}
	}
	return nil
}

func (l *Liveness) hosts(n *simulation.Node) bool {
	until, ok := l.standing[n.ID()]
	return ok && !n.Frozen() && n.Now().Mono <= until
}

// survives expects the best side of a settled cluster to go on after a cut, and checks
// that it does.
func (l *Liveness) survives() error {
	w := l.world
	if e := l.expected; e != nil {
		switch {
		case e.changed != changedAt(w):
			l.expected = nil
		case w.Now() >= e.by:
			l.expected = nil
			l.Splits++
			return l.goesOn(e)
		}
		return nil
	}
	// A second ago the cluster was settled, and since then something has changed.
	recently := l.settledAt != 0 && w.Now()-l.settledAt < 2*time.Second && changedAt(w) > l.settledAt
	if !recently || !l.MajorityOnly || w.Network().Impaired() {
		return nil
	}
	if l.settled == nil {
		return nil
	}
	if side, alone := l.winners(); side != nil {
		by := w.Now() + l.Bounds.Accuse + l.Bounds.Remove + w.Network().Slowest()
		l.expected = &expectation{side: side, alone: alone, changed: changedAt(w), by: by}
	}
	return nil
}

// winners returns the nodes connected to a majority whose links to each other all work, and whether these are that
// majority alone; nil without such a majority, or when an edit of the members is under way, since then no side need
// survive (docs/operations.md, "For parts of a second while a node joins or leaves, no side survives some splits").
func (l *Liveness) winners() (side []gossip.NodeID, alone bool) {
	var running []*simulation.Node
	for _, n := range l.world.Nodes() {
		if !sameMembers(MachineOf(n).State(), l.settled) {
			return nil, false
		}
		if !n.Frozen() {
			running = append(running, n)
		}
	}
	for _, n := range running {
		whole := []gossip.NodeID{n.ID()}
		for _, other := range running {
			if other != n && l.linked(other.ID(), whole) {
				whole = append(whole, other.ID())
			}
		}
		if MachineOf(n).Snapshot().Base.Wins(func(id gossip.NodeID) bool { return slices.Contains(whole, id) }) {
			side = l.reached(running, slices.Clone(whole))
			return side, len(side) == len(whole)
		}
	}
	return nil, false
}

// linked reports whether the links between a node and others work.
func (l *Liveness) linked(id gossip.NodeID, others []gossip.NodeID) bool {
	return !slices.ContainsFunc(others, func(o gossip.NodeID) bool {
		return !l.world.Network().Connected(id.Address, o.Address) || !l.world.Network().Connected(o.Address, id.Address)
	})
}

// reached returns the running nodes that are linked to a node of the side, directly or
// over other nodes.
func (l *Liveness) reached(running []*simulation.Node, side []gossip.NodeID) []gossip.NodeID {
	for before := 0; before < len(side); {
		before = len(side)
		for _, n := range running {
			if !slices.Contains(side, n.ID()) && slices.ContainsFunc(side, func(o gossip.NodeID) bool { return l.linked(n.ID(), []gossip.NodeID{o}) }) {
				side = append(side, n.ID())
			}
		}
	}
	return side
}

// sameMembers reports whether two states have the same members with the same status.
func sameMembers(a, b *gossip.State) bool {
	return a.Cluster() == b.Cluster() && slices.EqualFunc(a.Members(), b.Members(), func(m, o *gossip.Member) bool {
		return m.Node == o.Node && m.Status == o.Status
	})
}

// goesOn checks that somebody of the side hosts; all of it, if nobody else reaches it, so that no link within it is
// broken.
func (l *Liveness) goesOn(e *expectation) error {
	hosts := func(id gossip.NodeID) bool {
		n := l.world.Node(id.Address)
		return n != nil && n.ID() == id && l.hosts(n)
	}
	if !e.alone && slices.ContainsFunc(e.side, hosts) {
		return nil
	}
	if i := slices.IndexFunc(e.side, func(id gossip.NodeID) bool { return !hosts(id) }); i >= 0 {
		return fmt.Errorf("survives: of %v, a majority that was settled and whose links all work, %v does not host", e.side, e.side[i])
	}
	return nil
}

var _ simulation.Checker = (*Liveness)(nil)
