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

// pruneInterval is the time between two looks for old tombstones.
const pruneInterval = 10 * time.Minute

// leading is what a node knows that may be the leader.
type leading struct {
	leader    gossip.NodeID
	converged bool

	// confirmed are the leaving members that host nothing any more, by their own
	// word.
	confirmed map[gossip.NodeID]bool

	wave wave

	weaklyUpArmed bool
	weaklyUpDue   bool

	// suspended says that there is something to do for which an answer to a
	// heartbeat is missing.
	suspended bool
}

// wave is joining members that are held back, so that they become up in one edit
// with others.
type wave struct {
	began, until   machine.Instant // Zero: nobody is held back.
	ready, waiting int             // Those that could become up, and those that are waited for.
}

const (
	// waveProgress is how long a wave waits for another of its members to show
	// that it lives. One that died while it joined delays the others by this.
	waveProgress = 500 * time.Millisecond

	// waveLongest bounds a wave that never stops growing.
	waveLongest = 5 * time.Second
)

func (l *leading) init() { l.confirmed = map[gossip.NodeID]bool{} }

// act takes the actions of the leader, if this node is the leader: all that are
// due in one edit, so that the voters and the members change together.
//
//	joining, weakly-up -> up        enough members
//	joining -> weakly-up            no convergence for long (without convergence)
//	leaving -> exiting              it hosts nothing any more
//	exiting, down -> removed        all voters have seen it
//	downing strategy -> another     all members have loaded it
func (m *Machine) act() {
	if m.surveyed != m.state {
		m.survey() // Convergence of an older state is no licence.
	}
	if m.phase != phaseMember {
		return
	}
	m.shrink()
	if m.surveyed != m.state || m.lead.leader != m.self {
		return // If the state has changed, this is called again with what follows from it.
	}
	if !m.lead.converged {
		m.actWithoutConvergence()
		return
	}
	m.lead.weaklyUpDue = false
	plan := m.plan()
	m.lead.suspended = plan.waiting > 0
	m.together(&plan)
	if plan.empty() {
		m.endAlone()
		return
	}
	m.perform(plan)
}

// perform carries a plan out, unless this node may not lead. A leader that was cut off
// or stood still may hold a state that all had seen once, while the others have gone on
// without it. As for hosting, its own clock tells it. And a change of voters has to be
// over before the next edit.
func (m *Machine) perform(p leaderPlan) {
	if !m.connected() || !m.noDecisionPending() || m.unsettled() {
		m.lead.suspended = true
		return
	}
	m.edit(func(e *gossip.Edit) { m.carryOut(p, e) })
	for _, gone := range p.remove {
		m.out.Send(gone.Node, NotMember{Node: gone.Node, Status: gossip.Removed, Downed: gone.Downed})
	}
}

// together takes the joining members out of a plan while others that join with
// them have not shown that they live, and as long as more and more do. All members
// have to see each edit of the leader before its next one: a hundred nodes that
// start together would become up in many small steps, of a second each.
func (m *Machine) together(p *leaderPlan) {
	w := &m.lead.wave
	if p.waiting == 0 || len(p.up) == 0 {
		*w = wave{}
		return
	}
	if w.began == 0 {
		w.began = m.now.Mono
	}
	if len(p.up) != w.ready || p.waiting != w.waiting {
		w.ready, w.waiting = len(p.up), p.waiting
		w.until = min(m.now.Mono.Add(waveProgress), w.began.Add(waveLongest))
	}
	if m.now.Mono >= w.until {
		*w = wave{}
		return
	}
	m.out.Arm(timerWave, w.until)
	p.up = nil
	p.voters = m.votersAfter(*p)
}

// leaderPlan is what a leader does in one edit.
type leaderPlan struct {
	up, exit, remove []*gossip.Member
	voters           []gossip.NodeID // Nil if they stay as they are.
	downing          bool            // The downing strategy becomes another one.
	strategy         gossip.DowningStrategy
	waiting          int // Joining members whom some voter has not reached yet.
}

func (p leaderPlan) empty() bool {
	return len(p.up)+len(p.exit)+len(p.remove) == 0 && p.voters == nil && !p.downing
}

func (m *Machine) plan() leaderPlan {
	var p leaderPlan
	enough := m.enoughMembers()
	p.strategy, p.downing = m.nextStrategy()
	for _, member := range m.state.Members() {
		switch member.Status {
		case gossip.Joining, gossip.WeaklyUp:
			why := m.held(member.Node)
			m.stays(member.Node, why)
			switch {
			case !enough || why != "":
			case !m.present(member.Node) || !m.passes(member.Node):
				p.waiting++
			case m.canDecide(member, &p):
				p.up = append(p.up, member)
			}
		case gossip.Leaving:
			if m.lead.confirmed[member.Node] {
				p.exit = append(p.exit, member)
			}
		case gossip.Exiting, gossip.Down:
			if member.Node != m.self {
				p.remove = append(p.remove, member)
			}
		default: // Up and its successors wait for nobody.
		}
	}
	m.awaitVoter(&p)
	p.exit = m.togetherOut(p.exit)
	p.exit = m.keepAVoter(p)
	p.voters = m.votersAfter(p)
	return p
}

// present tells whether a joining member has shown that its welcome arrived. One
// that died before that must not become a voter: two nodes of which one never
// came to life would be a cluster that cannot go on.
func (m *Machine) present(n gossip.NodeID) bool {
	_, answered := m.footing.known[n]
	return answered || n == m.self || m.state.Seen(n)
}

// togetherOut returns those of the leaving members that exit in this edit. When all
// members leave, they exit in one edit, when the last of them has confirmed, since
// each needs the others' votes until then. The last member ends by itself, see
// [Machine.endAlone].
func (m *Machine) togetherOut(exit []*gossip.Member) []*gossip.Member {
	if !m.allLeave() {
		return exit
	}
	for _, member := range m.state.Members() {
		if member.Status <= gossip.Leaving && !slices.Contains(exit, member) {
			return nil
		}
	}
	if len(m.state.Members()) == 1 {
		return nil
	}
	return exit
}

// keepAVoter holds back those who would exit if nobody voted after them, though somebody
// stays: a newcomer becomes a voter first. Who held the last votes and left could else
// found the cluster again, beside those whom it has never heard to be voters.
func (m *Machine) keepAVoter(p leaderPlan) []*gossip.Member {
	if !slices.ContainsFunc(p.exit, m.isVoter) || m.allLeave() || len(m.votersOf(p)) > 0 {
		return p.exit
	}
	return nil
}

// allLeave reports whether no member stays. A confirmation may come before the news
// that its sender leaves.
func (m *Machine) allLeave() bool {
	return !slices.ContainsFunc(m.state.Members(), func(member *gossip.Member) bool {
		return member.Status < gossip.Leaving && !m.lead.confirmed[member.Node]
	})
}

// votersAfter returns the voters once p is carried out, or nil if they stay as they
// are. Somebody always votes: until the first is up, those upon whom the cluster was
// founded, and when all leave, those who voted last, so that any majority of them
// can start the cluster again.
func (m *Machine) votersAfter(p leaderPlan) []gossip.NodeID {
	if m.allLeave() || m.founding() && len(p.up) == 0 {
		return nil
	}
	voters := m.votersOf(p)
	if len(voters) == 0 || slices.Equal(voters, m.state.Config().Voters) {
		return nil // Without voters nobody could prove a majority any more, but no side would need one.
	}
	return voters
}

// votersOf returns who votes once p is carried out.
func (m *Machine) votersOf(p leaderPlan) []gossip.NodeID {
	voters := make([]gossip.NodeID, 0, len(m.state.Members()))
	for _, member := range m.state.Members() {
		stays := slices.Contains(p.up, member) || votes(member) && !slices.Contains(p.exit, member)
		if stays && m.cfg.Voters.admit(member) {
			voters = append(voters, member.Node)
		}
	}
	return voters
}

// enoughMembers tells whether there are members enough for the first to become
// up.
func (m *Machine) enoughMembers() bool {
	members := m.state.Members()
	if len(members) < m.cfg.MinNrOfMembers {
		return false
	}
	for _, role := range m.cfg.rolesWithMinimum() {
		count := 0
		for _, member := range members {
			if member.HasRole(role) {
				count++
			}
		}
		if count < m.cfg.MinNrOfMembersOfRole[role] {
			return false
		}
	}
	return true
}

func (m *Machine) carryOut(p leaderPlan, e *gossip.Edit) {
	for _, member := range p.remove { // Who goes comes first: that outbids what they may have given.
		e.Remove(member.Node, m.now.Wall)
		delete(m.lead.confirmed, member.Node)
		m.out.Decide("leader", member.Node.String(), "removed", fmt.Sprintf("all other voters have seen it %v", member.Status))
	}
	for _, member := range p.exit {
		e.SetStatus(member.Node, gossip.Exiting, member.UpNumber)
		m.out.Decide("leader", member.Node.String(), "exiting", "all voters have seen it leaving and it hosts nothing any more")
	}
	for _, member := range p.up { // In the order of addresses, as members are sorted.
		number := e.LastUpNumber() + 1
		e.SetStatus(member.Node, gossip.Up, number)
		m.out.Decide("leader", member.Node.String(), "up", fmt.Sprintf("all voters have seen it joining; up-number %d", number))
	}
	if p.voters != nil {
		e.SetConfig(p.voters)
	}
	if p.downing {
		e.SetDowning(p.strategy)
		m.out.Decide("downing", "strategy", "changed", "all members have loaded "+describeStrategy(p.strategy))
	}
}

// endAlone ends this node when it is the last member and has confirmed that it
// hosts nothing: nobody is left to see it go.
func (m *Machine) endAlone() {
	if m.exit.confirmed && len(m.state.Members()) == 1 {
		m.stop(component.StopLeft, "it was the last member and left")
	}
}

// actWithoutConvergence makes joining members weakly up, once convergence was
// missing for long enough.
func (m *Machine) actWithoutConvergence() {
	if !m.lead.weaklyUpDue || !m.enoughMembers() {
		return
	}
	var joining []*gossip.Member
	for _, member := range m.state.Members() {
		if member.Status == gossip.Joining && m.state.Reachable(member.Node) {
			joining = append(joining, member)
		}
	}
	if len(joining) == 0 {
		return
	}
	m.edit(func(e *gossip.Edit) {
		for _, member := range joining {
			e.SetStatus(member.Node, gossip.WeaklyUp, 0)
			m.out.Decide("leader", member.Node.String(), "weakly-up", fmt.Sprintf("no convergence for %v", m.cfg.AllowWeaklyUpMembers))
		}
	})
}

// watchConvergence arms the timer for weakly-up members while there is no
// convergence.
func (m *Machine) watchConvergence() {
	l := &m.lead
	switch {
	case m.cfg.AllowWeaklyUpMembers == 0 || l.weaklyUpArmed == !l.converged:
		return
	case l.converged:
		m.out.Disarm(timerWeaklyUp)
		l.weaklyUpDue = false
	default:
		m.out.Arm(timerWeaklyUp, m.now.Mono.Add(m.cfg.AllowWeaklyUpMembers))
	}
	l.weaklyUpArmed = !l.converged
}

// prune raises the register before which tombstones are forgotten.
func (m *Machine) prune() {
	if m.phase != phaseMember {
		return
	}
	m.out.Arm(timerPrune, m.now.Mono.Add(pruneInterval))
	before := m.now.Wall.Add(-m.cfg.PruneTombstonesAfter)
	old := func(t gossip.Tombstone) bool { return t.Time().Before(before) }
	if m.lead.leader != m.self || !m.lead.converged || !slices.ContainsFunc(m.state.Tombstones(), old) {
		return
	}
	m.out.Decide("leader", "tombstones", "pruned", fmt.Sprintf("older than %v", m.cfg.PruneTombstonesAfter))
	m.edit(func(e *gossip.Edit) { e.SetPrunedBefore(before) })
}

// Explain says in one sentence why this node does not see convergence. It is ""
// if it does.
func (m *Machine) Explain() string {
	if m.phase != phaseMember {
		return "not a member of a cluster"
	}
	converged, blockers := m.state.Convergence(m.self, m.isExcused)
	if converged {
		return ""
	}
	return blockers.String()
}

func (m *Machine) isConfirmed(n gossip.NodeID) bool { return m.lead.confirmed[n] }
