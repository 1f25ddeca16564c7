// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// Which change of the register the leader of a group proposes, and when: it wants the replicas of the group to be those
// of the members. Two leaders at once do no harm, since acceptors decide between their proposals.

// proposer is the part of a group that proposes registers, while this node leads.
type proposer struct {
	*known

	out        *sender
	passes     *passes
	majorities *majorities

	refused string // Why this replica cannot take part, for people; "" if it can.

	began machine.Instant // When the present generation was adopted.
	want  Set             // The replicas of the members when they last changed, as far as this node has looked,
	since machine.Instant // and when that was.

	homesMissed machine.Instant // Since when buckets have lost their homes and are not held back, 0 for none.
	acceptsLoss bool            // An operator has accepted the loss of the buckets without homes.
}

// stableAfter is for how long the members must have been the same before a change begins, so
// that nodes which come together are taken in together.
const stableAfter = 500 * time.Millisecond

func (l *proposer) adopted() { l.began = l.m.now.Mono }

// proposal is a register that is to be that of the next generation.
type proposal struct {
	v         Register
	acceptors Set
	unanimous bool // All acceptors have to agree.
}

// tick returns what this node proposes, nil for nothing: it does not lead, a proposal is under way, or no change is
// wanted.
func (l *proposer) tick() *proposal {
	if l.reg == nil {
		switch {
		case l.m.leaving():
			// The others take it for granted that a node which has left in order knows no register: it must not create
			// one.
			l.out.change.attempt = nil
		case l.leads():
			return l.create()
		}
		return nil
	}
	if !l.m.mayHost() || l.m.state.EndsTogether() {
		return nil // When the whole cluster ends, its data stays on the nodes that hold it now, and will be started again.
	}
	if lost, p := l.majorities.goOn(); lost {
		return p
	}
	if l.out.attempting() {
		return nil
	}
	if v, some := l.nextWithLoss(); some {
		return &proposal{v, l.reg.Current, false}
	}
	if !l.leads() {
		return nil
	}
	if v, why := l.next(); why != "" {
		return &proposal{v, l.reg.Current, false}
	}
	return nil
}

// create proposes the first register, once every member that may hold the group has said that it knows none: if a
// register existed, one of them would know it.
func (l *proposer) create() *proposal {
	if missing := l.unheard(); missing != "" {
		l.refused = "the replica of " + missing + ", which was removed, may hold the register: start it again, or accept the loss"
		return nil
	}
	l.refused = ""
	var all, asked Set
	for _, of := range l.m.replicas(l.cfg.Role) {
		r := Replica{l.self, of.Zone}
		if p := l.nodes[of.Node]; of.Node != l.m.cfg.Self {
			if of.Status == gossip.Down || of.Status == gossip.Exiting {
				continue
			}
			if p == nil || p.id == 0 || p.gen != 0 {
				return nil
			}
			r.ID = p.id
		}
		// A member that is not up yet does not count, but is an acceptor: it knows that there is no
		// register, and could create another one if it were not asked.
		if asked = append(asked, r); of.Status.IsUp() {
			all = append(all, r)
		}
	}
	acceptors := NewSet(asked...)
	if l.out.attempting() && l.out.change.attempt.acceptors.Same(acceptors) {
		return nil // With other acceptors a new attempt is begun: the present one could wait for a node that is gone.
	}
	first := Register{Lineage: Lineage{Turn: 1, ID: l.m.cfg.Rand.Uint64() | 1}, Gen: 1, Phase: PhaseStable, Current: NewSet(all...)}
	return &proposal{first, acceptors, true}
}

// unheard returns the address of a removed member whose disk may hold a register of a durable group: it has not said
// that it knows none, and no node has come back at its address. A member that has left in order was in no set; and a
// group in memory leaves nothing on a removed member.
func (l *proposer) unheard() string {
	if !l.cfg.Durable {
		return ""
	}
	for _, t := range l.m.state.Tombstones() {
		if !l.m.left[t.Node] && !l.none[t.Node] && l.m.state.ByAddress(t.Node.Address) == nil {
			return t.Node.Address.String()
		}
	}
	return ""
}

// next returns the register that the leader wants, and why; an empty reason: none.
func (l *proposer) next() (v Register, why string) {
	r := l.reg
	switch {
	case r.Phase == PhaseJoint:
		return l.endJoint()
	case !l.sealed && l.holdsBack():
		return r.again(l.heldNext(false, true)), "buckets have lost their former homes"
	case !l.sealed:
		return Register{}, ""
	}
	if want := l.wanted(); len(want) > 0 && (!want.Same(r.Current) || l.returned()) {
		return l.begin(want, "the members are others, or lost homes are back")
	}
	if r.Phase == PhaseEnded {
		return r.stable(), "the end is sealed"
	}
	if tombs, retired, ok := l.out.sweep.agreed(); ok {
		return r.swept(tombs, retired), "all replicas hold the same tombstones"
	}
	if l.out.sweep.stale {
		return r.stable(), "a sweep needs another generation"
	}
	return Register{}, ""
}

// begin returns the register in which other replicas catch up, once the members have been the same for a while.
func (l *proposer) begin(want Set, why string) (Register, string) {
	if !want.Same(l.want) {
		l.want, l.since = want, l.m.now.Mono
	}
	if len(want) == 0 || l.m.now.Mono.Sub(l.since) < stableAfter {
		return Register{}, ""
	}
	v := l.reg.joint(want)
	v.Held = l.heldNext(true, l.holdsBack())
	return v, why
}

// endJoint ends a joint phase: the new replicas take over when a majority of the new homes of each bucket has caught
// up; otherwise the change begins again with other replicas when one of them is gone, or is taken back when the new
// homes have lost their majority.
func (l *proposer) endJoint() (Register, string) {
	waited := l.m.now.Mono.Sub(l.began)
	switch {
	case l.holdsBack():
		return l.reg.again(l.heldNext(false, true)), "buckets have lost their homes"
	case l.views.ready(l.hasCaught) && (waited >= l.m.cfg.Timing.Gather || !l.catching()):
		return l.reg.ended(), "a majority of the new replicas has caught up"
	case slices.ContainsFunc(l.reg.Next, func(r Replica) bool { return r.ID != l.self && l.peers[r.ID] == nil }) && !l.unnamed():
		return l.begin(l.wanted(), "a new replica is gone")
	case waited >= l.m.cfg.Timing.Patient && !l.views.each(func(v *view) bool { return v.held || v.next.Majority(l.present) }):
		return l.reg.stable(), "the new replicas have lost their majority"
	default:
		return Register{}, ""
	}
}

// stallTimeout is for how long the leader waits for a new replica that makes no progress in catching up.
const stallTimeout = 500 * time.Millisecond

// catching reports whether a replica of Next that can be reached has not caught up, and makes progress.
func (l *proposer) catching() bool {
	return slices.ContainsFunc(l.reg.Next, func(r Replica) bool {
		moved := l.passes.moved
		if p := l.peers[r.ID]; p != nil {
			moved = p.progress.at
		}
		return l.present(r.ID) && !l.hasCaught(r.ID) && l.m.now.Mono.Sub(max(moved, l.began)) < stallTimeout
	})
}

// wanted returns the replicas of the members that are up. A member of which no replica is
// known yet is taken in later.
func (k *known) wanted() Set {
	var want []Replica
	for _, of := range k.m.replicas(k.cfg.Role) {
		if !of.Status.IsUp() {
			continue
		}
		if of.Node == k.m.cfg.Self {
			want = append(want, Replica{k.self, of.Zone})
		} else if p := k.nodes[of.Node]; p != nil && p.id != 0 && k.peers[p.id] == p {
			want = append(want, Replica{p.id, of.Zone})
		}
	}
	return NewSet(want...)
}

// hasCaught reports whether a replica is known to have caught up in this generation.
func (k *known) hasCaught(id ReplicaID) bool {
	if id == k.self {
		return k.caught
	}
	p := k.peers[id]
	return p != nil && counts(p.caught, k.gen())
}

// present reports whether a replica can be reached, as far as this node knows, and its store is not an older one.
func (k *known) present(id ReplicaID) bool { return k.reachable(id) && !k.isOlder(id) }

// reachable reports whether a replica is that of a member which is reachable, as far as this
// node knows.
func (k *known) reachable(id ReplicaID) bool {
	if id == k.self {
		return true
	}
	p := k.peers[id]
	return p != nil && k.m.state != nil && k.m.state.Member(p.node) != nil && k.m.state.Reachable(p.node)
}

// describe says in words which replicas count.
func describe(v *Register) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d replicas count", len(v.Current))
	if v.Phase == PhaseJoint {
		fmt.Fprintf(&b, ", %d are to take over", len(v.Next))
	}
	if v.Phase == PhaseEnded {
		fmt.Fprintf(&b, " in place of %d", len(v.Old))
	}
	if n := v.heldCount(); n > 0 {
		fmt.Fprintf(&b, ", %d buckets that have lost their homes keep those", n)
	}
	if v.Swept == v.Gen {
		fmt.Fprintf(&b, ", tombstones were dropped and %d origins retired", len(v.Retired))
	}
	return b.String()
}

// acceptLoss carries out the command of an operator: buckets that have lost their homes begin anew or, where the
// replicas that are left cannot decide that, a new lineage begins with what this replica holds.
func (g *group) acceptLoss() {
	switch {
	case !g.member():
		return
	case g.m.state == nil:
		g.m.out.Decide(ComponentName, g.cfg.Name, "no loss accepted", "this node is in no cluster yet: accept the loss when it is a member")
		return
	}
	if g.cfg.Copies > 0 && g.proposer.refused == "" && g.reg != nil && g.reg.Current.Wins(g.present) {
		if g.apart() {
			g.m.out.Decide(ComponentName, g.cfg.Name, "no loss accepted", "this replica does not count, and may propose nothing: accept the loss at another node")
			return
		}
		if _, some := g.proposer.withLossAccepted(); !some {
			g.m.out.Decide(ComponentName, g.cfg.Name, "no loss accepted", "no bucket has lost its homes, as far as this node knows")
			return
		}
		g.proposer.acceptsLoss = true
		g.m.out.Decide(ComponentName, g.cfg.Name, "buckets begin anew", "an operator has accepted the loss of what their homes held")
		g.propose(g.proposer.tick())
		return
	}
	g.storeCheck.forget()
	g.rerouted = true
	turn := uint32(1)
	if g.reg != nil {
		turn = g.reg.Lineage.Turn + 1
	}
	zone := ""
	if me := g.m.state.Member(g.m.cfg.Self); me != nil {
		zone = me.Zone
	}
	v := &Register{Lineage: Lineage{Turn: turn, ID: g.m.cfg.Rand.Uint64() | 1}, Gen: 1, Phase: PhaseStable, Current: NewSet(Replica{g.self, zone})}
	g.m.out.Decide(ComponentName, g.cfg.Name, "a new lineage", "an operator has accepted the loss of what this replica does not hold")
	g.adopt(v, true)
}
