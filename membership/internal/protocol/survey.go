// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"

	"github.com/quorate/quorate/gossip"
)

// A survey is what the parts read. The survey builder makes it in two steps, because what
// follows from the strategies lies between them: leader and convergence
// ([surveyBuilder.surveyConvergence]), then the sets of voters ([surveyBuilder.updateBase]).

// survey is what follows from the state that was surveyed last. Only the [surveyBuilder]
// writes it.
type survey struct {
	// of is the state that was surveyed.
	of *gossip.State

	leader    gossip.NodeID
	converged bool
	links     linkSurvey

	// lost are the unreachable members of the state, sorted.
	lost []gossip.NodeID

	// known is the last generation of the voters that all members are known to have seen.
	// Until a newer one is, the voters before count as well: a side that has not heard of
	// the change could win by the old set.
	known gossip.Generation

	// base are the sets of voters in each of which a side has to win.
	base gossip.Base

	// denied are the members that so many others cannot reach that nobody gives them
	// standing, sorted. See [core.isAccusedByMany].
	denied []gossip.NodeID

	// outvoted says that the voters that are not down cannot win, not even with voters
	// that exit and can still be reached.
	outvoted bool

	// same says that base, members and records have not changed since the survey before.
	same bool

	// established are the members without a vote that were up in a state that all members
	// had seen.
	established map[gossip.NodeID]bool
}

// surveyBuilder makes the [survey] of each new state.
type surveyBuilder struct {
	*core

	strategies *strategies

	// confirmed tells whether a leaving member has said that it hosts nothing any more.
	confirmed func(gossip.NodeID) bool
}

// surveyConvergence finds the leader, and whether the state has converged.
func (s *surveyBuilder) surveyConvergence() {
	s.surveyed.of = s.state
	s.surveyed.leader = s.state.Leader(s.self)
	s.surveyed.converged = s.state.Converged(s.self, s.isExcused)
	s.surveyLinks()
}

// surveyEstablished updates which members without a vote are established by the state
// that was surveyed. Members that go are dropped.
func (s *surveyBuilder) surveyEstablished() {
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

// updateBase takes over the voters of the state, and what follows from them. Most states
// differ from the one before only in the seen set.
func (s *surveyBuilder) updateBase(before *gossip.State) {
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
		f.denied = s.accusedByMany()
		f.outvoted = hasVoters(base) && !base.Wins(s.mayStillVote)
	}
}

// outlives tells whether a winning set of the voters before have the new voters on their
// disks; a voter that has seen the state has. Convergence does not wait for an exiting
// voter, but that voter may be needed here: started again, with half of the others lost,
// it could otherwise found a cluster upon the voters before, beside the members that went
// on without it. Where a minority may survive, founding needs all voters, and none is
// waited for.
func (s *surveyBuilder) outlives(config gossip.Voters) bool {
	return len(config.Previous) == 0 || !s.strategies.majorityOnly() || gossip.Wins(config.Previous, func(n gossip.NodeID) bool {
		return s.state.Seen(n)
	})
}

// accusedByMany returns the members about which at least [core.accusersMin] others have a
// record.
func (s *surveyBuilder) accusedByMany() []gossip.NodeID {
	var subjects, many []gossip.NodeID
	for _, record := range s.state.Records() {
		subjects = append(subjects, record.Subject)
	}
	slices.SortFunc(subjects, gossip.NodeID.Compare)
	least := s.accusersMin()
	for i := least - 1; i < len(subjects); i++ {
		if subject := subjects[i]; subjects[i-least+1] == subject && (len(many) == 0 || many[len(many)-1] != subject) {
			many = append(many, subject)
		}
	}
	return many
}

// mayStillVote tells whether a voter may see what this node sees. No decision is taken
// about an exiting voter; when it is lost no node waits for it, and it may be needed
// among the voters before a change, see [surveyBuilder.outlives].
func (s *surveyBuilder) mayStillVote(n gossip.NodeID) bool {
	return s.lives(n) && (s.state.Member(n).Status != gossip.Exiting || !s.isLost(n) || s.state.Seen(n))
}

// isExcused tells whether convergence does not wait for a member.
func (s *surveyBuilder) isExcused(n gossip.NodeID) bool { return s.confirmed(n) || s.waits(n) }
