// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"cmp"
	"maps"
	"slices"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
)

// footing is what this node's standing rests on. It hosts only while
//
//	now - q <= fence,  q = the latest t such that this node together with those
//	                   whose contact is at least t wins in every set of the base
//
// where a contact is the moment, by this node's own clock, at which it sent the
// last heartbeat that was answered with standing. Clocks of two nodes are never
// compared.
//
// With a strategy that may let a side without a majority survive it hosts, besides,
// only while now - p <= margin, where p is the earliest contact of all voters that
// are not down. See [Machine.margin].
type footing struct {
	contact map[gossip.NodeID]machine.Instant

	// known is when this node sent the last heartbeat that was answered by who knows it
	// as a member, whether that proved something or not.
	known map[gossip.NodeID]machine.Instant

	// expected is when the first heartbeat left to a voter that may not have
	// answered yet.
	expected map[gossip.NodeID]machine.Instant

	// converged is the last generation of the voters that is known to have
	// been seen by all. Until then the voters before count as well: a side that
	// has not heard of the change could win by the old set.
	converged gossip.Generation
	base      gossip.Base

	// reaches says that the reachable voters win, where that counts. See
	// [Machine.reachesMajority].
	reaches bool

	// outvoted says that those who are not down do not win, nor with whoever exits and
	// can still be reached.
	outvoted bool

	withheld withheld

	until   machine.Instant
	moved   bool // Something that until follows from has changed since it was computed.
	dropped bool // This node hosts nothing any more, for good.
}

func (f *footing) init() {
	f.contact, f.known = map[gossip.NodeID]machine.Instant{}, map[gossip.NodeID]machine.Instant{}
	f.expected = map[gossip.NodeID]machine.Instant{}
	f.withheld = withheld{}
}

// withheld is the latest heartbeat of each member that was answered without standing
// because the member is not established here, see [Machine.isEstablished]: of one that was
// just promoted, until this node knows that its promotion has converged. Then the
// heartbeat is answered once more, with standing, so that a newcomer does not wait for
// its next one. It holds members alone, so their number bounds it.
type withheld map[gossip.NodeID]uint64

// forget drops what is known of a node that is not asked any more.
func (f *footing) forget(n gossip.NodeID) {
	delete(f.contact, n)
	delete(f.known, n)
	delete(f.expected, n)
}

// isKnownTo notes that a node that knows this one has answered.
func (f *footing) isKnownTo(node gossip.NodeID, sentAt machine.Instant) {
	f.known[node] = max(f.known[node], sentAt)
}

func (f *footing) answered(by gossip.NodeID, sentAt machine.Instant) {
	if last, ok := f.contact[by]; !ok || sentAt > last {
		f.contact[by] = sentAt
		f.moved = true
	}
}

// updateBase takes over the voters of the state, and what follows from them.
// Most states differ from the one before only in who has seen them.
func (m *Machine) updateBase(before *gossip.State) {
	f := &m.footing
	config := m.state.Config()
	if m.links.seen && m.outlives(config) {
		f.converged = config.Generation()
	}
	base := config.Base(f.converged == config.Generation())
	m.surveyEstablished()
	same := before != nil && sameBase(base, f.base) &&
		m.state.SharesRows(before) && sameMonitored(before.Members(), m.state.Members())
	f.base, f.moved = base, true
	if !same || m.links.seen {
		m.answerLate()
	}
	if !same {
		m.lost = m.state.Unreachable()
		f.reaches = !m.monitorsSome() || m.reachesMajority()
		f.outvoted = hasVoters(base) && !base.Wins(m.mayStillVote)
	}
}

// answer is the answer to a heartbeat of a member, nil for a node that is none. It
// proves something if the member has proved itself here, see [Machine.isEstablished].
func (m *Machine) answer(member *gossip.Member, sequence uint64) HeartbeatReply {
	reply := HeartbeatReply{Sequence: sequence}
	if member == nil || !m.state.ReachableFrom(m.self, member.Node) {
		return reply
	}
	reply.Known, reply.Standing = true, m.isEstablished(member)
	if reply.Standing {
		delete(m.footing.withheld, member.Node)
	} else {
		m.footing.withheld[member.Node] = sequence
	}
	return reply
}

// answerLate answers heartbeats that were answered without standing, of members that are
// established now. What it says is as old as the heartbeat, as with any answer.
func (m *Machine) answerLate() {
	for _, n := range slices.SortedFunc(maps.Keys(m.footing.withheld), gossip.NodeID.Compare) {
		if !m.lives(n) {
			continue
		}
		if reply := m.answer(m.state.Member(n), m.footing.withheld[n]); reply.Standing {
			m.out.Send(n, HeartbeatReply{Sequence: reply.Sequence, Standing: true})
		}
	}
}

// outlives tells whether a winning set of the voters before have the new ones on their
// disks, which is what their having seen the state says. Who exits is not waited for in
// convergence, but may be needed here: started again, with half of the others lost, it
// could else found a cluster upon the voters before, beside those who went on without it.
// Where a minority may survive, all voters are needed for that, and nobody is waited for.
func (m *Machine) outlives(config gossip.Config) bool {
	return len(config.Previous) == 0 || !m.majorityOnly() || gossip.Wins(config.Previous, func(n gossip.NodeID) bool {
		return m.state.Seen(n)
	})
}

// unsettled tells whether the last change of voters is not known to be over. Nothing
// that changes them again may happen before.
func (m *Machine) unsettled() bool { return m.footing.converged != m.state.Config().Generation() }

// sameBase compares two bases, which mostly share their voters.
func sameBase(a, b gossip.Base) bool {
	return slices.EqualFunc(a, b, func(x, y []gossip.NodeID) bool {
		return len(x) == len(y) && (len(x) == 0 || &x[0] == &y[0] || slices.Equal(x, y))
	})
}

// updateStanding computes the moment up to which this node may host, and
// publishes it when it moved. It follows from the state and the contacts alone.
func (m *Machine) updateStanding() {
	if m.footing.moved {
		m.footing.moved = false
		m.publishStanding(m.standingUntil())
	}
}

func (m *Machine) publishStanding(until machine.Instant) {
	if until != m.footing.until {
		m.footing.until = until
		m.out.Publish(component.Standing{Until: until, Dropped: m.footing.dropped})
	}
}

func (m *Machine) standingUntil() machine.Instant {
	me := m.state.Member(m.self)
	if m.footing.dropped || m.phase != phaseMember || me == nil || !votes(me) {
		return 0
	}
	q, ok := lastWin(m.self, m.panel(), m.footing.contact)
	if !ok || !m.footing.reaches {
		return 0
	}
	until := q.Add(m.cfg.Fence)
	if !m.majorityOnly() {
		until = min(until, m.undecidedUntil())
	}
	return until
}

// reachesMajority tells whether the voters that this node's state shows as
// reachable win. In a cluster where a node monitors some of the voters only, it
// learns from its side that the others are lost: by max-silence and the spread of
// news after a cut, which is before the other side's view can have been stable.
func (m *Machine) reachesMajority() bool {
	return m.footing.base.Wins(func(n gossip.NodeID) bool {
		return n == m.self || m.lives(n) && !m.isLost(n)
	})
}

// connected tells whether this node has heard a winning set of the voters within
// the fence, or there are no voters. Those who are down are lost votes here: if
// they were not, one node that outlived all others would be a majority of one,
// although the others may have gone on without it before they ended. Only where
// the strategy may let a minority survive they do not count, and being connected is not
// enough to act, see [Machine.noDecisionPending].
//
// Answers of who knows this node count, whether they give it standing or not: that all
// have seen what it acts on is for convergence to say, and a joiner may be the only one
// left to lead, when the last voter leaves.
func (m *Machine) connected() bool {
	if m.founding() {
		// Nobody is up, and the first heartbeats may be under way. Who has seen the
		// state is in this cluster and in no other.
		return m.footing.base.Wins(func(n gossip.NodeID) bool { return n == m.self || m.state.Seen(n) && !m.isLost(n) })
	}
	panel := m.panel()
	if !m.majorityOnly() {
		panel = m.livingOf(panel)
	}
	if !hasVoters(panel) {
		return true
	}
	q, ok := lastWin(m.self, panel, m.footing.known)
	return ok && m.now.Mono <= q.Add(m.cfg.Fence)
}

// outvoted tells whether those who are not down could not win even if all of
// them were heard. Such a side cannot go on.
func (m *Machine) outvoted() bool {
	return m.majorityOnly() && m.footing.outvoted && !m.founding()
}

// mayStillVote tells whether a voter may see what this node sees. One that exits is
// decided about by nobody; when it is lost nobody waits for it, and it may be needed
// among the voters before a change, see [Machine.outlives].
func (m *Machine) mayStillVote(n gossip.NodeID) bool {
	return m.lives(n) && (m.state.Member(n).Status != gossip.Exiting || !m.isLost(n) || m.state.Seen(n))
}

// lives tells whether a node is a member that is not down.
func (m *Machine) lives(n gossip.NodeID) bool {
	member := m.state.Member(n)
	return member != nil && member.Status != gossip.Down
}

func (m *Machine) livingOf(base gossip.Base) gossip.Base {
	living := make(gossip.Base, 0, len(base))
	for _, voters := range base {
		living = append(living, slices.DeleteFunc(slices.Clone(voters), func(n gossip.NodeID) bool { return !m.lives(n) }))
	}
	return living
}

func hasVoters(base gossip.Base) bool {
	return slices.ContainsFunc(base, func(voters []gossip.NodeID) bool { return len(voters) > 0 })
}

// votesInAll tells whether a node is a voter in every set of a base. Without voters
// nobody is.
func votesInAll(base gossip.Base, n gossip.NodeID) bool {
	return hasVoters(base) && !slices.ContainsFunc(base, func(voters []gossip.NodeID) bool {
		return len(voters) > 0 && !slices.Contains(voters, n)
	})
}

// votes tells whether a member of this status is a voter.
func votes(member *gossip.Member) bool {
	return member.UpNumber != 0 && member.Status >= gossip.Up && member.Status <= gossip.Leaving
}

// panel returns the sets of voters whose answers this node's standing rests on:
// the base while everybody monitors everybody, else this node and the voters
// that it monitors, which is a sample of the base. The sample makes the fence
// an assumption about timing at such sizes instead of a certainty; see also
// [Machine.reachesMajority].
func (m *Machine) panel() gossip.Base {
	if !m.monitorsSome() {
		return m.footing.base
	}
	panel := make([]gossip.NodeID, 0, len(m.beat.targets)+1)
	for _, node := range append([]gossip.NodeID{m.self}, m.beat.targets...) {
		if member := m.state.Member(node); member != nil && m.isVoter(member) {
			panel = append(panel, node)
		}
	}
	slices.SortFunc(panel, gossip.NodeID.Compare)
	return gossip.Base{panel}
}

// monitorsSome tells whether the cluster is so large that a node monitors some
// of the voters instead of all.
func (m *Machine) monitorsSome() bool {
	k := m.cfg.FailureDetector.MonitoredByNrOfMembers
	return len(m.state.Members()) > k+1 && (m.cfg.Voters.Role == "" || len(m.potentialVoters()) > k)
}

// lastWin returns the latest moment such that self together with those whose
// contact is not earlier wins in the base. It is false if there is none, and
// [machine.Never] if self wins alone.
func lastWin(self gossip.NodeID, base gossip.Base, contact map[gossip.NodeID]machine.Instant) (machine.Instant, bool) {
	moments := []machine.Instant{machine.Never}
	for _, voters := range base {
		for _, v := range voters {
			if at, ok := contact[v]; ok && v != self {
				moments = append(moments, at)
			}
		}
	}
	slices.SortFunc(moments, func(a, b machine.Instant) int { return cmp.Compare(b, a) })
	for _, t := range slices.Compact(moments) {
		wins := base.Wins(func(n gossip.NodeID) bool {
			at, ok := contact[n]
			return n == self || ok && at >= t
		})
		if wins {
			return t, true
		}
	}
	return 0, false
}

// dropStanding ends hosting on this node for good.
func (m *Machine) dropStanding() {
	m.footing.dropped = true
	m.publishStanding(0)
}
