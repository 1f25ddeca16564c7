// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"

	"github.com/quorate/quorate/gossip"
)

// The survey is what parts read; the surveyor makes it in two steps, since what follows from the
// strategies lies between: leader and convergence ([surveyor.lookAround]), then the sets of
// voters ([surveyor.updateBase]).

// survey is what follows from the state that was looked at last. The [surveyor] writes
// it, and nobody else.
type survey struct {
	// of is the state that was looked at.
	of *gossip.State

	leader    gossip.NodeID
	converged bool
	links     linkage

	// lost are the unreachable members of the state, sorted.
	lost []gossip.NodeID

	// known is the last generation of the voters that is known to have been seen by
	// all. Until then the voters before count as well: a side that has not heard of the
	// change could win by the old set.
	known gossip.Generation

	// base are the sets of voters in each of which a side has to win.
	base gossip.Base

	// reaches says that the reachable voters win, where that counts. See
	// [surveyor.reachesMajority].
	reaches bool

	// outvoted says that the voters that are not down do not win, not even with those
	// that exit and can still be reached.
	outvoted bool

	// same says that base, members and records are those of the survey before.
	same bool

	// established are the members without a vote that were up in a state that all
	// had seen.
	established map[gossip.NodeID]bool
}

// surveyor looks at each new state for what all parts go by.
type surveyor struct {
	*core

	strategies *strategies

	// confirmed tells whether a leaving member hosts nothing any more, by its own
	// word.
	confirmed func(gossip.NodeID) bool
}

// lookAround finds the leader, and whether the state has converged.
func (s *surveyor) lookAround() {
	s.surveyed.of = s.state
	s.surveyed.leader = s.state.Leader(s.self)
	s.surveyed.converged = s.state.Converged(s.self, s.isExcused)
	s.surveyLinks()
}

// surveyEstablished takes over who is up in the state that was surveyed. Who goes
// is forgotten with it.
func (s *surveyor) surveyEstablished() {
	if s.cfg.Voters.Role == "" || !s.surveyed.links.seen {
		return
	}
	established := map[gossip.NodeID]bool{}
	for _, member := range s.state.Members() {
		if !s.cfg.Voters.admit(member) && member.UpNumber != 0 {
			established[member.Node] = true
		}
	}
	s.surveyed.established = established
}

// updateBase takes over the voters of the state, and what follows from them.
// Most states differ from the one before in who has seen them alone.
func (s *surveyor) updateBase(before *gossip.State) {
	f := &s.surveyed
	config := s.state.Config()
	if s.surveyed.links.seen && s.outlives(config) {
		f.known = config.Generation()
	}
	base := config.Base(f.known == config.Generation())
	s.surveyEstablished()
	f.same = before != nil && sameBase(base, f.base) &&
		s.state.SharesRows(before) && sameMonitored(before.Members(), s.state.Members())
	f.base = base
	s.moveStanding()
	if !f.same {
		f.lost = s.state.Unreachable()
		f.reaches = !s.monitorsSome() || s.reachesMajority()
		f.outvoted = hasVoters(base) && !base.Wins(s.mayStillVote)
	}
}

// outlives tells whether a winning set of the voters before have the new ones on their
// disks, which is what their having seen the state says. Who exits is not waited for in
// convergence, but may be needed here: started again, with half of the others lost, it
// could else found a cluster upon the voters before, beside those who went on without it.
// Where a minority may survive, all voters are needed for that, and nobody is waited for.
func (s *surveyor) outlives(config gossip.Voters) bool {
	return len(config.Previous) == 0 || !s.strategies.majorityOnly() || gossip.Wins(config.Previous, func(n gossip.NodeID) bool {
		return s.state.Seen(n)
	})
}

// reachesMajority tells whether the voters that this node's state shows as
// reachable win. In a cluster where a node monitors some of the voters only, it
// learns from its side that the others are lost: by max-silence and the spread of
// news after a cut, which is before the other side's view can have been stable.
func (s *surveyor) reachesMajority() bool {
	return s.surveyed.base.Wins(func(n gossip.NodeID) bool {
		return n == s.self || s.lives(n) && !s.isLost(n)
	})
}

// mayStillVote tells whether a voter may see what this node sees. One that exits is
// decided about by nobody; when it is lost nobody waits for it, and it may be needed
// among the voters before a change, see [surveyor.outlives].
func (s *surveyor) mayStillVote(n gossip.NodeID) bool {
	return s.lives(n) && (s.state.Member(n).Status != gossip.Exiting || !s.isLost(n) || s.state.Seen(n))
}

// sameBase compares two bases, which mostly share their voters.
func sameBase(a, b gossip.Base) bool {
	return slices.EqualFunc(a, b, func(x, y []gossip.NodeID) bool {
		return len(x) == len(y) && (len(x) == 0 || &x[0] == &y[0] || slices.Equal(x, y))
	})
}

// isExcused tells whether convergence does not wait for a member.
func (s *surveyor) isExcused(n gossip.NodeID) bool { return s.confirmed(n) || s.waits(n) }
