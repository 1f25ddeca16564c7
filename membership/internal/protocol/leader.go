// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
)

// The entry is [leader.act]: under convergence it plans what is due for each member
// ([leader.plan]) and which members vote after that ([leader.votersAfter]), and carries
// the plan out in one edit ([leader.carryOut], [leader.apply]). What is done without
// convergence, and the pruning of tombstones, come last.

// pruneInterval is the time between two looks for old tombstones.
const pruneInterval = 10 * time.Minute

// leader does what is the leader's to do: under convergence it changes the status of members,
// the voters and the downing strategy. Each node has this part; it acts only while the node is
// the leader.
type leader struct {
	*core

	gate       *gate
	answers    *answers
	strategies *strategies
	footing    *footing

	exit ownLeave

	// survey surveys a state that has changed since the last survey.
	survey func()

	// confirmed are the leaving members that have said themselves that they host nothing
	// any more.
	confirmed map[gossip.NodeID]bool

	// joinBatch are the joining members that are held back at present.
	batch joinBatch

	// weaklyUpArmed says that the timer runs after which joining members become weakly
	// up, weaklyUpDue that it has fired.
	weaklyUpArmed bool
	weaklyUpDue   bool

	// suspended says that something is due but waits for an answer to a heartbeat.
	suspended bool

	// saidNoVoter says that this node has reported that no member votes.
	saidNoVoter bool
}

// joinBatch is a group of joining members that are held back, so that they become up in one
// edit with others.
type joinBatch struct {
	began, until   machine.Instant // Zero: no member is held back.
	ready, waiting int             // Members that could become up, and members that are waited for.
}

const (
	// joinBatchProgress is how long a batch waits for another of its members to show that it
	// lives. A member that died while it joined delays the others by this time.
	joinBatchProgress = 500 * time.Millisecond

	// joinBatchLongest bounds the wait for a batch that never stops growing.
	joinBatchLongest = 5 * time.Second
)

// ownLeave is what the leader needs to know of this node's own leave.
type ownLeave interface {
	// hasConfirmed tells whether this node has confirmed that it hosts nothing any more.
	hasConfirmed() bool
}

func newLeader(c *core, g *gate, a *answers, s *strategies, f *footing) *leader {
	return &leader{core: c, gate: g, answers: a, strategies: s, footing: f, confirmed: map[gossip.NodeID]bool{}}
}

// act takes the actions of the leader, if this node is the leader: all that are
// due in one edit, so that the voters and the members change together.
//
//	joining, weakly-up -> up        enough members
//	joining -> weakly-up            no convergence for long (without convergence)
//	leaving -> exiting              it hosts nothing any more
//	exiting, down -> removed        all voters have seen it
//	preparing -> ready              all members prepare for a shutdown of the whole cluster
//	downing strategy -> another     all members have loaded it
func (l *leader) act() {
	if l.surveyed.of != l.state {
		l.survey() // Convergence of an older state does not allow an edit.
	}
	if l.phase != phaseMember {
		return
	}
	l.shrink()
	if l.surveyed.of != l.state || l.surveyed.leader != l.self {
		return // If the state has changed, act is called again for the new one.
	}
	if !l.surveyed.converged {
		l.actWithoutConvergence()
		return
	}
	l.weaklyUpDue = false
	plan := l.plan()
	l.suspended = plan.waiting > 0
	l.holdBack(&plan)
	if plan.empty() {
		l.endAlone()
		return
	}
	l.carryOut(plan)
}

// noteConfirmed notes the word of a leaving member that it hosts nothing any more.
func (l *leader) noteConfirmed(n gossip.NodeID) { l.confirmed[n] = true }

// resurvey surveys the state once more, since convergence now waits for other members,
// and acts.
func (l *leader) resurvey() {
	l.survey()
	l.act()
}

// retry acts again if something was due that waited for an answer to a heartbeat.
func (l *leader) retry() {
	if l.suspended {
		l.act()
	}
}

// carryOut carries a plan out, unless this node may not lead. A leader that was cut off or
// stood still may hold a state that all members had seen once, while the others have gone
// on without it. Its own clock tells it so, as for hosting. A change of voters must be
// over before the next edit.
func (l *leader) carryOut(p leaderPlan) {
	if !l.footing.connected() || !l.footing.noDecisionPending() || l.unsettled() || !l.isWitnessed() {
		l.suspended = true
		return
	}
	l.edit(func(e *gossip.Edit) { l.apply(p, e) })
	for _, gone := range p.remove {
		l.out.Send(gone.Node, NotMember{Node: gone.Node, Status: gossip.Removed, Downed: gone.Downed})
	}
}

// isWitnessed tells whether, while members are down, more than half of the voters have seen
// the state: a winning set in every set of the base. Convergence proves that of all who take part, but
// waits for no leaving member that has confirmed, and two sides may both have decided with
// that member's vote. It can see the decision of one of them only: with the other in its state as
// well, that state says of each side that it is down.
func (l *leader) isWitnessed() bool {
	anyDown := slices.ContainsFunc(l.state.Members(), func(m *gossip.Member) bool { return m.Status == gossip.Down })
	return !anyDown || !l.strategies.majorityOnly() || !hasVoters(l.surveyed.base) || l.surveyed.base.Wins(func(n gossip.NodeID) bool {
		return l.state.Seen(n) && l.lives(n)
	})
}

// holdBack takes joining members out of a plan while others that join with them have not
// shown that they live, as long as more and more do. All members must see each edit of
// the leader before its next one: a hundred nodes that start together would otherwise
// become up in many small steps, of a second each.
func (l *leader) holdBack(p *leaderPlan) {
	b := &l.batch
	if p.waiting == 0 || len(p.up) == 0 {
		*b = joinBatch{}
		return
	}
	if b.began == 0 {
		b.began = l.now.Mono
	}
	if len(p.up) != b.ready || p.waiting != b.waiting {
		b.ready, b.waiting = len(p.up), p.waiting
		b.until = min(l.now.Mono.Add(joinBatchProgress), b.began.Add(joinBatchLongest))
	}
	if l.now.Mono >= b.until {
		*b = joinBatch{}
		return
	}
	l.out.Arm(timerJoinBatch, b.until)
	p.up = nil
	p.voters = l.votersAfter(*p)
}

// leaderPlan is what a leader changes in one edit.
type leaderPlan struct {
	up, exit, remove []*gossip.Member
	ready            []*gossip.Member
	voters           []gossip.NodeID // Nil if the voters stay as they are.
	downing          bool            // The downing strategy becomes another one.
	strategy         gossip.DowningStrategy
	waiting          int // Joining members that some voter has not reached yet.
}

func (p leaderPlan) empty() bool {
	return len(p.up)+len(p.exit)+len(p.remove)+len(p.ready) == 0 && p.voters == nil && !p.downing
}

func (l *leader) plan() leaderPlan {
	var p leaderPlan
	enough := l.enoughMembers() && l.state.Shutdown() == gossip.StatusNone
	p.ready = l.ready()
	p.strategy, p.downing = l.strategies.next()
	for _, member := range l.state.Members() {
		switch member.Status {
		case gossip.Joining, gossip.WeaklyUp:
			why := l.gate.held(member.Node)
			l.gate.stays(member.Node, why)
			switch {
			case !enough || why != "":
			case !l.present(member.Node) || !l.gate.passes(member.Node):
				p.waiting++
			case l.strategies.canDecide(member, &p):
				p.up = append(p.up, member)
			}
		case gossip.Leaving:
			if l.confirmed[member.Node] {
				p.exit = append(p.exit, member)
			}
		case gossip.Exiting, gossip.Down:
			if member.Node != l.self {
				p.remove = append(p.remove, member)
			}
		default: // Nothing is due for a member that is up, or see ready.
		}
	}
	l.awaitVoter(&p)
	p.exit = l.exitTogether(p.exit)
	p.exit = l.keepAVoter(p)
	p.voters = l.votersAfter(p)
	return p
}

// ready returns the members that become ready for a shutdown of the whole cluster: all, as soon as
// all prepare, so that none of them is still coming, leaving, or about to be removed.
func (l *leader) ready() []*gossip.Member {
	members := l.state.Members()
	if l.state.Shutdown() != gossip.Preparing || slices.ContainsFunc(members, func(m *gossip.Member) bool { return m.Status != gossip.Preparing }) {
		return nil
	}
	return members
}

// present tells whether a joining member has shown that its welcome arrived. A joiner
// that died before must not become a voter: a cluster of two voters of which one never ran
// could not go on.
func (l *leader) present(n gossip.NodeID) bool {
	_, answered := l.answers.known[n]
	return answered || n == l.self || l.state.Seen(n)
}

// exitTogether returns the leaving members that exit in this edit. When all members leave,
// they exit in one edit, after the last of them has confirmed, since each needs the
// others' votes until then. The last member ends by itself, see [leader.endAlone]. Members that are ready for
// a shutdown of the whole cluster all leave before there is convergence about the first of them that does.
func (l *leader) exitTogether(exit []*gossip.Member) []*gossip.Member {
	if !l.allLeave() {
		return exit
	}
	for _, member := range l.state.Members() {
		if member.Status <= gossip.Leaving && !slices.Contains(exit, member) {
			return nil
		}
	}
	if len(l.state.Members()) == 1 {
		return nil
	}
	return exit
}

// keepAVoter holds members back whose exit would leave no voter though some member stays:
// a newcomer becomes a voter first. Otherwise the members that held the last votes and
// left could found the cluster again, beside newcomers that they never heard to be
// voters.
func (l *leader) keepAVoter(p leaderPlan) []*gossip.Member {
	if !slices.ContainsFunc(p.exit, l.isVoter) || l.allLeave() || len(l.votersOf(p)) > 0 {
		return p.exit
	}
	return nil
}

// allLeave reports whether no member stays. A member's confirmation may come before the
// news that it leaves.
func (l *leader) allLeave() bool {
	return !slices.ContainsFunc(l.state.Members(), func(member *gossip.Member) bool {
		return member.Status < gossip.Leaving && !l.confirmed[member.Node]
	})
}

// votersAfter returns the voters once p is carried out, or nil if they stay as they are.
// Some node always votes: until the first member is up, the voters upon which the cluster
// was founded; when all members leave, those that voted last, so that any majority of
// them can start the cluster again.
func (l *leader) votersAfter(p leaderPlan) []gossip.NodeID {
	if l.allLeave() || l.founding() && len(p.up) == 0 {
		return nil
	}
	voters := l.votersOf(p)
	if len(voters) == 0 || slices.Equal(voters, l.state.Config().Voters) {
		return nil // Without voters no side could prove a majority any more, and none would need one.
	}
	return voters
}

// votersOf returns the members that vote once p is carried out.
func (l *leader) votersOf(p leaderPlan) []gossip.NodeID {
	voters := make([]gossip.NodeID, 0, len(l.state.Members()))
	for _, member := range l.state.Members() {
		stays := slices.Contains(p.up, member) || votes(member) && !slices.Contains(p.exit, member)
		if stays && l.cfg.Voters.admit(member) {
			voters = append(voters, member.Node)
		}
	}
	return voters
}

// enoughMembers tells whether there are enough members for the first ones to become up.
func (l *leader) enoughMembers() bool {
	members := l.state.Members()
	if len(members) < l.cfg.MinNrOfMembers {
		return false
	}
	for _, role := range l.cfg.rolesWithMinimum() {
		count := 0
		for _, member := range members {
			if member.HasRole(role) {
				count++
			}
		}
		if count < l.cfg.MinNrOfMembersOfRole[role] {
			return false
		}
	}
	return true
}

func (l *leader) apply(p leaderPlan, e *gossip.Edit) {
	for _, member := range p.remove { // Removals come first: they outbid up-numbers that the removed members may have given.
		e.Remove(member.Node, l.now.Wall)
		delete(l.confirmed, member.Node)
		l.out.Decide("leader", member.Node.String(), "removed", fmt.Sprintf("all other voters have seen it %v", member.Status))
	}
	for _, member := range p.exit {
		e.SetStatus(member.Node, gossip.Exiting, member.UpNumber)
		l.out.Decide("leader", member.Node.String(), "exiting", "all voters have seen it leaving and it hosts nothing any more")
	}
	for _, member := range p.up { // In the order of addresses, as members are sorted.
		number := e.LastUpNumber() + 1
		e.SetStatus(member.Node, gossip.Up, number)
		l.out.Decide("leader", member.Node.String(), "up", fmt.Sprintf("all voters have seen it joining; up-number %d", number))
	}
	for _, member := range p.ready {
		e.SetStatus(member.Node, gossip.Ready, member.UpNumber)
	}
	if len(p.ready) > 0 {
		l.out.Decide("leader", "cluster", "ready", "all members prepare for a shutdown of the whole cluster: when one of them leaves, all do")
	}
	if p.voters != nil {
		e.SetConfig(p.voters)
	}
	if p.downing {
		e.SetDowning(p.strategy)
		l.out.Decide("downing", "strategy", "changed", "all members have loaded "+describeStrategy(p.strategy))
	}
}

// forget drops what is known of a node that is no member any more.
func (l *leader) forget(n gossip.NodeID) { delete(l.confirmed, n) }

// endAlone ends this node when it is the last member and has confirmed that it hosts
// nothing: no other member is left to remove it.
func (l *leader) endAlone() {
	if l.exit.hasConfirmed() && len(l.state.Members()) == 1 {
		l.stop(component.StopLeft, "it was the last member and left")
	}
}

// actWithoutConvergence makes joining members weakly up, once convergence was
// missing for long enough.
func (l *leader) actWithoutConvergence() {
	if !l.weaklyUpDue || !l.enoughMembers() || l.state.Shutdown() != gossip.StatusNone {
		return
	}
	var joining []*gossip.Member
	for _, member := range l.state.Members() {
		if member.Status == gossip.Joining && l.state.Reachable(member.Node) {
			joining = append(joining, member)
		}
	}
	if len(joining) == 0 {
		return
	}
	l.edit(func(e *gossip.Edit) {
		for _, member := range joining {
			e.SetStatus(member.Node, gossip.WeaklyUp, 0)
			l.out.Decide("leader", member.Node.String(), "weakly-up", fmt.Sprintf("no convergence for %v", l.cfg.AllowWeaklyUpMembers))
		}
	})
}

// watchConvergence arms the timer for weakly-up members while there is no
// convergence.
func (l *leader) watchConvergence() {
	switch {
	case l.cfg.AllowWeaklyUpMembers == 0 || l.weaklyUpArmed == !l.surveyed.converged:
		return
	case l.surveyed.converged:
		l.out.Disarm(timerWeaklyUp)
		l.weaklyUpDue = false
	default:
		l.out.Arm(timerWeaklyUp, l.now.Mono.Add(l.cfg.AllowWeaklyUpMembers))
	}
	l.weaklyUpArmed = !l.surveyed.converged
}

// missConvergence is called when convergence was missing for long enough that joining
// members become weakly up.
func (l *leader) missConvergence() {
	l.weaklyUpDue = true
	l.act()
}

// prune raises the limit before which tombstones are forgotten.
func (l *leader) prune() {
	if l.phase != phaseMember {
		return
	}
	l.out.Arm(timerPrune, l.now.Mono.Add(pruneInterval))
	before := l.now.Wall.Add(-l.cfg.PruneTombstonesAfter)
	old := func(t gossip.Tombstone) bool { return t.Time().Before(before) }
	if l.surveyed.leader != l.self || !l.surveyed.converged || !slices.ContainsFunc(l.state.Tombstones(), old) {
		return
	}
	l.out.Decide("leader", "tombstones", "pruned", fmt.Sprintf("older than %v", l.cfg.PruneTombstonesAfter))
	l.edit(func(e *gossip.Edit) { e.SetPrunedBefore(before) })
}

func (l *leader) isConfirmed(n gossip.NodeID) bool { return l.confirmed[n] }
