// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membershipsim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/simulation"
)

// Liveness checks in each second that what must happen happens in time:
//
//	accused   a member that a node cannot hear any more is accused by it, or out,
//	          within [Bounds.Accuse] of the time for which that node ran. Who has
//	          not been up yet spares others while it hears some, or while others say
//	          so, or the member says it of it
//	settled   a world in which nothing is wrong for longer than [Bounds.Settle] has a
//	          cluster of which all who live are members that are up, whom all agree
//	          about: a joiner is up or has ended, nobody stays in a passing state,
//	          there is one leader, and so one oldest member; but for moments of at
//	          most [Bounds.Waver]
//	standing  each of them may host, but for moments in which an answer was lost
//	survives  of a settled cluster that is cut once, the side with a majority whose
//	          links all work hosts again within [Bounds.Accuse] and [Bounds.Remove]
//	endless   while nothing changes from outside, nobody is started and ends by
//	          itself again and again
//
// It needs no operator, and waits for none. It is added by [Liveness.Watch].
type Liveness struct {
	// Bounds are the times that are allowed.
	Bounds Bounds

	// Config is that of the nodes.
	Config protocol.Config

	// MajorityOnly says that the downing strategy keeps every side with a majority,
	// and no other.
	MajorityOnly bool

	// MayWait says that a cluster may wait for somebody to found it, since too many of
	// its nodes have lost what they remember: then it need not settle.
	MayWait bool

	// Silences, Settled and Splits count how often each was looked at in earnest.
	Silences, Settled, Splits int

	world    *simulation.World
	standing map[gossip.NodeID]machine.Instant
	hosted   map[gossip.NodeID]time.Duration // World time at which it could last, while looked at.
	died     map[gossip.NodeID]time.Duration
	since    map[pair]time.Duration // World time since which the first holds the second as a member that it cannot hear.
	ends     map[gossip.Address]int
	steady   time.Duration // The change of the world after which ends are counted.

	settledAt time.Duration // World time at which the cluster was settled last.
	settled   *gossip.State
	expected  *expectation // Who must survive.
}

// pair is a node and a member of its state.
type pair struct{ of, member gossip.NodeID }

// expectation says that somebody of a side hosts by a time, if nothing changes.
type expectation struct {
	side    []gossip.NodeID
	changed time.Duration
	by      time.Duration
}

// endsMax is how often a node may end by itself while nothing changes from outside:
// once because it was on the losing side, once because its restart met what was left
// of it, and once more for each of a pair.
const endsMax = 4

// newcomerPatience is for how long who has not been up yet, and hears nobody any more,
// takes it for a sign of life of the others that they said something of it.
const newcomerPatience = 16 * time.Second

// Watch adds the check to a world.
func (l *Liveness) Watch(w *simulation.World) {
	l.world = w
	l.standing = make(map[gossip.NodeID]machine.Instant)
	l.hosted = make(map[gossip.NodeID]time.Duration)
	l.died, l.since = make(map[gossip.NodeID]time.Duration), make(map[pair]time.Duration)
	l.ends = make(map[gossip.Address]int)
	w.Check(l)
	w.Observe(func(o simulation.Observation) {
		switch e := o.Event.(type) {
		case simulation.Ended:
			l.ended(o.Node, e)
		case component.Standing:
			l.standing[o.Node.ID()] = e.Until
		}
	})
}

// Stepped does nothing: what does not happen, happens in no step.
func (*Liveness) Stepped(*simulation.World, *simulation.Node) error { return nil }

// Second looks at everything.
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
	for p := range l.since {
		if p.of == n.ID() {
			delete(l.since, p)
		}
	}
	if e.Why == simulation.Crashed || strings.Contains(e.Why, component.StopJoinFailed.String()) || l.diskFailed(n, e) {
		return // From outside, or by a setting.
	}
	if l.steady != changedAt(w) {
		l.steady = changedAt(w)
		clear(l.ends)
	}
	if l.ends[n.ID().Address]++; l.ends[n.ID().Address] > endsMax {
		w.Fail(fmt.Errorf("endless: nodes at %v have ended by themselves %d times since anything changed from outside, %v ago, the last one because it %s",
			n.ID().Address, l.ends[n.ID().Address], w.Steady(), e.Why))
	}
}

// changedAt returns the time of the world at which something changed from outside last.
func changedAt(w *simulation.World) time.Duration { return w.Now() - w.Steady() }

// diskFailed reports whether a node has ended for a disk that may fail: that is as often
// as its disk does.
func (l *Liveness) diskFailed(n *simulation.Node, e simulation.Ended) bool {
	d := l.world.Disks().At(n.ID().Address)
	return e.Why == "stopped: "+component.StopDisk.String() && (d.Fail > 0 || d.Hang > 0)
}

// silent reports since when a node can have heard nothing of a member, as an answer to
// a heartbeat. It is asked each second: what was repaired and broken again in between
// is taken for repaired at the last repair anywhere.
func (l *Liveness) silent(n *simulation.Node, member gossip.NodeID) (time.Duration, bool) {
	w := l.world
	if at, dead := l.died[member]; dead {
		return at, true
	}
	other := w.Node(member.Address)
	switch {
	case other == nil || other.ID() != member:
		return 0, true // It has ended before anybody looked.
	case w.Network().Connected(n.ID().Address, member.Address) && w.Network().Connected(member.Address, n.ID().Address):
		return 0, false
	}
	return w.Network().Healed(), true
}

// accuses checks that a node accuses whom it cannot hear.
func (l *Liveness) accuses(n *simulation.Node) error {
	w, m := l.world, MachineOf(n)
	s := m.State()
	if self := s.Member(n.ID()); n.Frozen() || self == nil || self.Status >= gossip.Exiting ||
		len(s.Members()) > l.Config.FailureDetector.MonitoredByNrOfMembers+1 {
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

// accuses reports whether a node has a record of its own about another.
func accuses(s *gossip.State, self, subject gossip.NodeID) bool {
	return slices.ContainsFunc(s.RowsOf(self), func(r gossip.Row) bool { return r.Subject == subject })
}

// saidByOthers reports whether a member that one cannot hear is accused by somebody, or
// says itself that it cannot reach the one. That is enough where the one is a newcomer:
// it leaves members whom it has never heard to others.
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
	if l.MayWait || quiet <= l.Bounds.Settle+w.Network().Slowest() || len(w.Nodes()) == 0 {
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

// allHost checks that whoever is up in a quiet world can host.
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

// survives expects the best side of a settled cluster to go on when it is cut, and
// checks that it does.
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
	// A second ago all was well, and since then something has changed.
	recently := l.settledAt != 0 && w.Now()-l.settledAt < 2*time.Second && changedAt(w) > l.settledAt
	if !recently || !l.MajorityOnly || w.Network().Impaired() {
		return nil
	}
	if l.settled == nil {
		return nil
	}
	if side := l.winners(); side != nil {
		by := w.Now() + l.Bounds.Accuse + l.Bounds.Remove + w.Network().Slowest()
		l.expected = &expectation{side: side, changed: changedAt(w), by: by}
	}
	return nil
}

// winners returns those who are connected to a majority whose links all work, nil
// without one or when an edit of the members is under way: then it may be that
// nobody survives.
func (l *Liveness) winners() []gossip.NodeID {
	var running []*simulation.Node
	for _, n := range l.world.Nodes() {
		if !sameMembers(MachineOf(n).State(), l.settled) {
			return nil
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
			return l.reached(running, whole)
		}
	}
	return nil
}

// linked reports whether the links between a node and others work.
func (l *Liveness) linked(id gossip.NodeID, others []gossip.NodeID) bool {
	return !slices.ContainsFunc(others, func(o gossip.NodeID) bool {
		return !l.world.Network().Connected(id.Address, o.Address) || !l.world.Network().Connected(o.Address, id.Address)
	})
}

// reached returns all who are linked to some of those who are.
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

func (l *Liveness) goesOn(e *expectation) error {
	for _, id := range e.side {
		if n := l.world.Node(id.Address); n != nil && n.ID() == id && l.hosts(n) {
			return nil
		}
	}
	return fmt.Errorf("survives: of %v, a majority that was settled and whose links all work, nobody hosts", e.side)
}

var _ simulation.Checker = (*Liveness)(nil)
