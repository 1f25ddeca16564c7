// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build mutants

package membershipsim_test

import (
	"testing"

	"github.com/quorate/quorate/simulation/simulationtest"
)

// mutant is a defect that is put into a copy of the production code. The
// seeds must find it: a checker that nothing turns red proves nothing.
type mutant struct {
	name  string
	edits []edit
}

// edit replaces a text that occurs once in a file, named from the directory of
// the modules.
type edit struct{ file, old, new string }

func mutants() []mutant {
	return []mutant{
		{"member on one side only is dropped when down or exiting", []edit{
			{"gossip/merge.go", "\tj := joined{tombs: s.tombs}\n", "\tif mutant(NAME) {\n\t\ts.members = slices.DeleteFunc(slices.Clone(s.members), func(m *Member) bool {\n" +
				"\t\t\t_, inA := findMember(a.members, m.Node)\n\t\t\t_, inB := findMember(b.members, m.Node)\n" +
				"\t\t\treturn inA != inB && (m.Status == Down || m.Status == Exiting)\n\t\t})\n\t}\n\tj := joined{tombs: s.tombs}\n"},
		}},
		{"removal leaves no tombstone", []edit{
			{"gossip/edit.go", "\ts.tombs = slices.Insert(slices.Clone(s.tombs), at, t)\n", "\tif !mutant(NAME) {\n\t\ts.tombs = slices.Insert(slices.Clone(s.tombs), at, t)\n\t}\n"},
		}},
		{"removal outbids nothing", []edit{
			{"gossip/edit.go", "\t\te.outbid()\n", "\t\tif !mutant(NAME) {\n\t\t\te.outbid()\n\t\t}\n"},
			{"gossip/edit.go", "\te.touch(KeyMember, id)\n\te.outbid()\n\te.outbid() //", "\te.touch(KeyMember, id)\n\tif !mutant(NAME) {\n\t\te.outbid()\n\t\te.outbid()\n\t}\n\t//"},
		}},
		{"smaller up-number wins", []edit{
			{"gossip/member.go", "max(a.UpNumber, b.UpNumber)", "func() UpNumber {\n\t\t\tif mutant(NAME) {\n\t\t\t\treturn min(a.UpNumber-1, b.UpNumber-1) + 1\n\t\t\t}\n\t\t\treturn max(a.UpNumber, b.UpNumber)\n\t\t}()"},
		}},
		{"rows about removed members stay", []edit{
			{"gossip/merge.go", "\t\ts.rows = restrictRows(s.rows, s.members)\n", "\t\tif !mutant(NAME) {\n\t\t\ts.rows = restrictRows(s.rows, s.members)\n\t\t}\n"},
		}},
		{"limits that have passed are forgotten", []edit{
			{"membership/internal/protocol/heartbeat.go", "registry.Due(h.isJudged); ok {\n", "registry.Due(h.isJudged); ok && (!mutant(NAME) || machine.Instant(due.UnixNano()) > h.now.Mono) &&\n" +
				"\t\t(!mutant(\"who passed a limit unnoticed is forgotten\") || due.After(h.now.Mono.Time())) {\n"},
		}},
		{"voters of before a change do not count", []edit{
			{"gossip/voters.go", "\tif converged || len(c.Previous) == 0 {\n", "\tif converged || len(c.Previous) == 0 || mutant(NAME) || mutant(\"the voters before a change do not count\") {\n"},
		}},
		{"standing does not end", []edit{
			{"membership/internal/protocol/standing.go", "until := q.Add(f.cfg.Fence)", "until := q.Add(f.cfg.Fence)\n\tif mutant(NAME) {\n\t\tuntil = q.Add(100 * f.cfg.Fence)\n\t}"},
		}},
		{"fence of a removed node is not waited for", []edit{
			{"membership/internal/protocol/fences.go", "\tif at <= f.now.Mono {\n", "\tif at <= f.now.Mono || mutant(NAME) {\n"},
		}},
		{"late downing decision is carried out", []edit{
			{"membership/internal/protocol/deciding.go", "\tif in.ID != r.call.id || in.ID == 0 {\n", "\tif in.ID != r.call.id && !mutant(NAME) || in.ID == 0 {\n"},
			{"membership/internal/protocol/deciding.go", "r.question != nil && r.troubled && r.view == r.question.of && r.surveyed.leader == r.self", "r.question != nil && (mutant(NAME) || r.troubled && r.view == r.question.of && r.surveyed.leader == r.self)"},
			{"membership/internal/protocol/downing.go", "\tr.dropQuestion()\n\tr.restartStability()\n", "\tif !mutant(NAME) {\n\t\tr.dropQuestion()\n\t}\n\tr.restartStability()\n"},
		}},
		{"downing decision is not checked", []edit{
			{"membership/internal/protocol/deciding.go", "\t\tif err = check(q.view, q.left[0], decision); err != nil {\n", "\t\tif !mutant(NAME) {\n\t\t\terr = check(q.view, q.left[0], decision)\n\t\t}\n\t\tif err != nil {\n"},
		}},
		{"two downing calls in flight", []edit{
			{"membership/internal/protocol/downing.go", "\tif r.surveyed.leader != r.self || r.question != nil {\n", "\tif r.surveyed.leader != r.self || r.question != nil && !mutant(NAME) {\n"},
			{"membership/internal/protocol/downing.go", "\t\treturn // The answer to an earlier", "\t\tif !mutant(NAME) {\n\t\t\treturn\n\t\t}\n\t\tr.call = call{} // The answer to an earlier"},
		}},
		{"a downing strategy is called as often as the view changes", []edit{
			{"membership/internal/protocol/downing.go", "r.calledAt > 0 && r.now.Mono < next {", "r.calledAt > 0 && r.now.Mono < next && !mutant(NAME) {"},
		}},
		{"the call for a question that is moot is forgotten", []edit{
			{"membership/internal/protocol/downing.go", "\t\t\tr.dropQuestion()\n\t\t\tif c := r.call;", "\t\t\tr.dropQuestion()\n\t\t\tif mutant(NAME) {\n\t\t\t\tr.endCall()\n\t\t\t}\n\t\t\tif c := r.call;"},
		}},
		{"downing strategy is replaced on the side on which it fails", []edit{
			{"membership/internal/protocol/deciding.go", "\tif q.left[0].MajorityOnly {\n\t\tif decision, err", "\tif q.left[0].MajorityOnly && !mutant(NAME) || mutant(NAME) && q.view.Self == r.self {\n\t\tif decision, err"},
		}},
		{"nobody else is asked for a downing decision", []edit{
			{"membership/internal/protocol/deciding.go", "\tif len(q.others) == 0 || r.now.Mono >= q.until {\n", "\tif len(q.others) == 0 || r.now.Mono >= q.until || mutant(NAME) {\n"},
		}},
		{"downing strategy changes before all members have it", []edit{
			{"membership/internal/protocol/strategies.go", "\tif len(lacking) == 0 {\n", "\tif len(lacking) == 0 || mutant(NAME) && len(lacking) < len(s.state.Members())/2 {\n"},
		}},
		{"new downing strategy decides alone before all know of it", []edit{
			{"membership/internal/protocol/strategies.go", "if s.register.Gen == 0 || s.switched(r) || ", "if s.register.Gen == 0 || mutant(NAME) || s.switched(r) || "},
		}},
		{"downing strategy is let go before the others know", []edit{
			{"membership/internal/protocol/strategies.go", "\tcase s.surveyed.of != s.state || !s.seenByAll():\n\t\treturn\n", "\tcase !mutant(NAME) && (s.surveyed.of != s.state || !s.seenByAll()):\n\t\treturn\n"},
		}},
		{"majority that may have lost goes on hosting", []edit{
			{"membership/internal/protocol/standing.go", "until = min(until, f.undecidedUntil())", "if !mutant(NAME) {\n\t\t\tuntil = min(until, f.undecidedUntil())\n\t\t}"},
		}},
		{"who passed a limit unnoticed is forgotten", nil}, // By the edit of "limits that have passed are forgotten".
		{"who shows a fingerprint has seen the state", []edit{
			{"membership/internal/protocol/gossiper.go", "\tif theirs != 0 && s.phase == phaseMember && s.lives(from) &&", "\tif mutant(NAME) && theirs != 0 && s.phase == phaseMember && s.lives(from) {\n" +
				"\t\ts.state = s.state.See(from)\n\t}\n\tif theirs != 0 && s.phase == phaseMember && s.lives(from) &&"},
		}},
		{"each zone has a leader", []edit{
			{"gossip/convergence.go", "if m.Status == Down || !fitter", "if mutant(NAME) && m.Zone != s.Member(self).Zone || m.Status == Down || !fitter"},
		}},
	}
}

// ruleMutants are defects that show only where the messages of one type are lost and
// those of another are not.
func ruleMutants() []mutant {
	return []mutant{
		{"accusations of voters that are removed too count as cuts", []edit{
			{"membership/internal/protocol/fences.go", "return f.witnesses[observer] })", "return f.witnesses[observer] || mutant(NAME) && !observer.IsZero() })"},
		}},
		{"answers prove something to who is no voter in the base", []edit{
			{"membership/internal/protocol/members.go", "return votesInAll(c.surveyed.base, member.Node)", "return mutant(NAME) || mutant(\"a joiner may prove\") || votesInAll(c.surveyed.base, member.Node)"},
		}},
		{"answers prove something to newcomers without a vote", []edit{
			{"membership/internal/protocol/members.go", "return c.surveyed.established[member.Node]", "return mutant(NAME) || c.surveyed.established[member.Node]"},
		}},
		{"all members vote", []edit{
			{"membership/internal/protocol/leader.go", "if stays && l.cfg.Voters.admit(member) {", "if stays && (mutant(NAME) || l.cfg.Voters.admit(member)) {"},
		}},
		{"a decision counts without the voter by which it was taken", []edit{
			{"membership/internal/protocol/leader.go", "l.unsettled() || !l.isWitnessed() {", "l.unsettled() || !mutant(NAME) && !l.isWitnessed() {"},
		}},
		{"who has confirmed that it hosts nothing gives standing, and no fence counts that", []edit{
			{"membership/internal/protocol/answers.go", "return true, !r.hosting.dropped && ", "return true, (mutant(NAME) || mutant(\"a relay exits too late\") || !r.hosting.dropped) && "},
			{"membership/internal/protocol/fences.go", "f.bases[node]; wasDown {", "f.bases[node]; wasDown && !mutant(NAME) && !mutant(\"a removed node counts by the voters of after alone\") {"},
		}},
		{"news is taken that no record can hold", []edit{
			{"membership/internal/protocol/record.go", "if err := r.recordOf(s, false).Validate(); err != nil {", "if err := r.recordOf(s, false).Validate(); err != nil && !mutant(NAME) {"},
		}},
		{"another fingerprint is not answered", []edit{
			{"membership/internal/protocol/gossiper.go", "theirs != s.state.Fingerprint() {", "theirs != s.state.Fingerprint() && !mutant(NAME) {"},
		}},
		{"who shows another fingerprint knows all", []edit{
			{"membership/internal/protocol/gossiper.go", "\t\ts.tell(from, s.state.Digest())\n", "\t\tif mutant(NAME) {\n\t\t\ts.known[from] = s.state.Digest()\n\t\t}\n\t\ts.tell(from, s.state.Digest())\n"},
		}},
		{"a fingerprint of the state before is shown", []edit{
			{"membership/internal/protocol/heartbeat.go", "= h.state.Fingerprint()", "= h.state.Fingerprint()\n\t\t\tif mutant(NAME) {\n\t\t\t\tbeat.Fingerprint = h.settled.Fingerprint()\n\t\t\t}"},
		}},
		{"rounds are quiet although a stranger has news", []edit{
			{"membership/internal/protocol/gossiper.go", "return !s.unconverged && !s.asking &&", "return !s.unconverged && (mutant(NAME) || !s.asking) &&"},
		}},
		{"the birth of epochs is not raised", []edit{
			{"membership/internal/protocol/admission.go", "e.RaiseEpochs(raiseEpochs(a.state, msg.Claim.Record))", "if !mutant(NAME) {\n\t\t\t\t\te.RaiseEpochs(raiseEpochs(a.state, msg.Claim.Record))\n\t\t\t\t}"},
		}},
	}
}

// relayMutants break one rule each by which proofs of a majority are lent. All are in one
// copy of the code, each switched on for its runs.
func relayMutants() []mutant {
	const relaying, fencing = "membership/internal/protocol/standingrelay.go", "membership/internal/protocol/fences.go"
	return []mutant{
		{"only who relays in the own view counts", []edit{
			{fencing, "\t\tif !known {\n\t\t\treturn f.now.Mono\n", "\t\tif mutant(NAME) && !slices.Contains(f.relaysOf(f.settled), member) {\n\t\t\tcontinue\n\t\t}\n" +
				"\t\tif !known {\n\t\t\treturn f.now.Mono\n"},
		}},
		{"the age of a proof is missing", []edit{
			{relaying, "\t\treturn asked.Add(-byAnyClock(age))", "\t\tif mutant(NAME) {\n\t\t\treturn asked\n\t\t}\n\t\treturn asked.Add(-byAnyClock(age))"},
		}},
		{"the proofs of removed relays are not waited for", []edit{
			{fencing, "\t\tproof, word, margin = max(f.proofs", "\t\tif mutant(NAME) {\n\t\t\tf.proofs, f.words = proof, word\n\t\t}\n\t\tproof, word, margin = max(f.proofs"},
		}},
		{"a joiner may prove", nil}, // By an edit of ruleMutants, as those without edits below.
		{"a relay exits too late", []edit{
			{relaying, "|| r.hosting.dropped {", "|| r.hosting.dropped && !mutant(NAME) {"},
		}},
		{"who exits does not count", []edit{
			{fencing, "f.state.Member(member.Node) == nil {", "f.state.Member(member.Node) == nil || mutant(NAME) && member.Status >= gossip.Leaving {"},
		}},
		{"the voters before a change do not count", nil}, // By an edit of mutants.
		{"a removed node counts by the voters of after alone", nil},
		{"the rate of clocks does not count", []edit{
			{fencing, "func byAnyClock(d time.Duration) time.Duration { return", "func byAnyClock(d time.Duration) time.Duration {\n\tif mutant(NAME) {\n\t\treturn d\n\t}\n\treturn"},
		}},
		{"who many accuse is given standing", []edit{
			{"membership/internal/protocol/answers.go", "&& !r.isAccusedByMany(member.Node)", "&& (mutant(NAME) || !r.isAccusedByMany(member.Node))"},
		}},
	}
}

// relayFinders are the worlds that a mutant of relays is run against.
func relayFinders() []string { return []string{"TestNoPlotOutlastsTheFence"} }

// lentMutants break rules of lent proofs of which no order of events is known that needs
// them: a proof that is lent again is as old as before, and the sets of voters that are so
// small that no proof is lent are known to all before one is removed.
func lentMutants() []mutant {
	const relaying = "membership/internal/protocol/standingrelay.go"
	return []mutant{
		{"a proof is lent twice", []edit{{relaying, "\t\tby = r.own\n", "\t\tby = r.own\n\t\tif mutant(NAME) {\n\t\t\tby.raise(r.lent.majority, r.lent.all)\n\t\t}\n"}}},
		{"standing is lent among few voters", []edit{{relaying, "standing && r.hasManyVoters()", "standing && (mutant(NAME) || r.hasManyVoters())"}}},
	}
}

// lentFinders are the tests of the parts that a mutant of lent proofs is run against.
func lentFinders() []string {
	return []string{"TestAProofIsNotLentTwice", "TestARelayProvesAMajorityOfTheVotersBefore", "TestAmongFewVotersAndManyMembersNoStandingIsLent"}
}

// standbyMutants break the rules by which relays stand by, and the one that all members agree on
// the ring.
func standbyMutants() []mutant {
	const standby = "membership/internal/protocol/standby.go"
	return []mutant{
		{"relays that stand by do not begin", []edit{{standby, "\t\tif r.hasAsked(relay.Node) {\n", "\t\tif mutant(NAME) || r.hasAsked(relay.Node) {\n"}}},
		{"a relay that is called does not begin", []edit{{standby, "|| r.now.Mono < r.standby.calledUntil {", "|| !mutant(NAME) && r.now.Mono < r.standby.calledUntil {"}}},
		{"the proof of the round before is lent", []edit{
			{"membership/internal/protocol/standingrelay.go", "\tif !couldWin(r.surveyed.base, 1+r.words) {\n", "\tif mutant(NAME) {\n\t\treturn true\n\t}\n\tif !couldWin(r.surveyed.base, 1+r.words) {\n"},
		}},
		{"a ring that a member does not know", []edit{
			{"membership/internal/protocol/shared.go", "member.Protocol.Max < mutualSince {", "member.Protocol.Max < mutualSince && !mutant(NAME) {"},
		}},
	}
}

// standbyFinders are the tests that they are run against.
func standbyFinders() []string {
	return []string{
		"TestRelaysThatStandByTakeOverBeforeStandingIsLost", "TestAMemberWithoutTheFirstRelaysCallsOthers",
		"TestARelayWithoutAMajorityPaysWithTheNextRound", "TestTheRingIsOneThatAllMembersKnow",
	}
}

// sharedMutants break the rules by which two nodes share an exchange of heartbeats. All are in
// one copy of the code, each switched on for its runs.
func sharedMutants() []mutant {
	const shared, conduct = "membership/internal/protocol/shared.go", "membership/internal/protocol/conduct.go"
	return []mutant{
		{"to be asked counts as an answer", []edit{
			{conduct, "\t\town = m.monitoring.question(from)\n", "\t\town = m.monitoring.question(from)\n\t\tif mutant(NAME) {\n\t\t\tm.answers.answered(from, m.now.Mono)\n\t\t}\n"},
		}},
		{"who was not answered does not ask by itself", []edit{
			{shared, "case !ok || answered < asked.before:", "case !ok || answered < asked.before && !mutant(NAME):"},
		}},
		{"who begins no more is waited for", []edit{
			{shared, "return age < interval+interval/sharedSlack", "return age < interval+interval/sharedSlack || mutant(NAME)"},
		}},
		{"who asks often is asked as often", []edit{
			{shared, "if h.isRecent(h.shared[to].last) {", "if h.isRecent(h.shared[to].last) && !mutant(NAME) {"},
		}},
		{"the word given to a question follows the answer that brings it", []edit{
			{conduct, "\tif q := msg.Question; q.Sequence != 0 {\n", "\tif mutant(NAME) {\n\t\tm.hearHeartbeatReply(from, msg)\n\t}\n\tif q := msg.Question; q.Sequence != 0 {\n"},
		}},
	}
}

// sharedFinders are the tests that a mutant of shared exchanges is run against.
func sharedFinders() []string {
	return []string{
		"TestAnArrivalIsNoAnswer", "TestWhoFollowsAsksByItselfWhenNobodyBegins", "TestWhoIsNotAnsweredAsksByItself",
		"TestManyHeartbeatsBringFewQuestions", "TestTheWordGivenToAQuestionIsThatOfBefore",
	}
}

// formingMutants break one rule each by which clusters are founded.
func formingMutants() []mutant {
	const forming, record = "membership/internal/protocol/formation.go", "membership/internal/protocol/record.go"
	return []mutant{
		{"votes leave before they are on the disk", []edit{
			{forming, "if f.kept.Promise < o.birth {\n", "if f.kept.Promise < o.birth && !mutant(NAME) {\n"},
		}},
		{"a cluster is entered before it is on the disk", []edit{
			{"membership/internal/protocol/join.go", "state != nil && j.kept.holds(state) {", "state != nil && (mutant(NAME) || j.kept.holds(state)) {"},
		}},
		{"voters are seen before they are on the disk", []edit{
			{"membership/internal/protocol/core.go", "\treturn s.Unsee(c.self)", "\tif mutant(NAME) {\n\t\treturn s.See(c.self)\n\t}\n\treturn s.Unsee(c.self)"},
		}},
		{"silence is an answer", []edit{
			{"membership/internal/protocol/inquiry.go", "return 2 * q.cfg.JoinIntervalMax }", "\n\tif mutant(NAME) {\n\t\treturn 2000 * q.cfg.JoinIntervalMax\n\t}\n\treturn 2 * q.cfg.JoinIntervalMax\n}"},
		}},
		{"a lost disk speaks", []edit{
			{record, "\t\t} else {\n\t\t\ts.listed[", "\t\t}\n\t\tif v.Data == 0 || mutant(NAME) {\n\t\t\ts.listed["},
		}},
		{"newer voters are not asked for", []edit{
			{forming, "case own.Stamp.Compare(msg.Basis) > 0:", "case own.Stamp.Compare(msg.Basis) > 0 && !mutant(NAME):"},
		}},
		{"a promise is broken", []edit{
			{forming, "case msg.Birth <= own.Promise || msg.Birth > gossip.LatestBirth:", "case msg.Birth <= own.Promise && !mutant(NAME) || msg.Birth > gossip.LatestBirth:"},
		}},
		{"who has just started votes", []edit{
			{forming, "case f.now.Mono < f.oldEnoughAt():", "case f.now.Mono < f.oldEnoughAt() && !mutant(NAME):"},
		}},
		{"a cluster is founded beside one that has members", []edit{
			{forming, "\t\tcase f.inquiry.mayJoin(a):\n", "\t\tcase f.inquiry.mayJoin(a) && (!mutant(NAME) || a.claim.Standing) &&\n" +
				"\t\t\t(!mutant(\"a cluster is formed although a seed node answers\") || a.claim.Record.Data == 0):\n"},
		}},
		{"a cluster is founded upon who has voted alone", []edit{
			{forming, "\tslices.SortFunc(now, func(a, b Voter)", "\tif mutant(NAME) {\n\t\tnow = slices.DeleteFunc(now, func(v Voter) bool {\n" +
				"\t\t\treturn !slices.ContainsFunc(c.ballots, func(b ballot) bool { return b.node == v.Node })\n\t\t})\n\t}\n\tslices.SortFunc(now, func(a, b Voter)"},
		}},
		{"the voters before an unfinished change are not needed", []edit{
			{record, "\tif !r.Settled() {\n\t\tbase = append(", "\tif !r.Settled() && !mutant(NAME) {\n\t\tbase = append("},
		}},
		{"who has voted again enters the first cluster", []edit{
			{"membership/internal/protocol/join.go", "j.formation.hasVotedFor(born) && j.kept.Promise == born", "(j.formation.hasVotedFor(born) && j.kept.Promise == born || mutant(NAME) && (j.formation.hasVotedFor(born) || j.formation.hasVotedFor(j.kept.Promise)))"},
		}},
	}
}

// meetingMutants break one rule each by which clusters of a name have to do with each other,
// and by which one of two yields; one has a decision taken upon a state that has not rested.
func meetingMutants() []mutant {
	const meeting, inquiry, forming = "membership/internal/protocol/otherclusters.go", "membership/internal/protocol/inquiry.go", "membership/internal/protocol/formation.go"
	return []mutant{
		{"a lesser cluster is yielded to", []edit{
			{meeting, "!theirs.rank().before(rank{w.largest(), own}):", "!mutant(NAME) && !theirs.rank().before(rank{w.largest(), own}):"},
		}},
		{"a cluster without standing is yielded to", []edit{
			{meeting, "case !theirs.Standing ||", "case !theirs.Standing && !mutant(NAME) ||"},
		}},
		{"who has no standing has its cluster yield", []edit{
			{meeting, "case !mine.Standing || w.now.Mono < w.judgesFrom:", "case !mine.Standing && !mutant(NAME) || w.now.Mono < w.judgesFrom:"},
		}},
		{"who was just welcomed has its cluster yield", []edit{
			{meeting, "\tif welcomed {\n", "\tif welcomed && !mutant(NAME) {\n"},
		}},
		{"a claim is believed at once", []edit{
			{meeting, "return r.answers > 1 && now.Sub(r.since) >= betterFor", "return (mutant(NAME) || r.answers > 1 && now.Sub(r.since) >= betterFor)"},
		}},
		{"a claim is believed of one voter", []edit{
			{meeting, "2*proven > len(r.voters)", "(mutant(NAME) || 2*proven > len(r.voters))"},
		}},
		{"the largest number of voters is forgotten", []edit{
			{meeting, "\t\tn = max(n, s.voters)\n", "\t\tif !mutant(NAME) {\n\t\t\tn = max(n, s.voters)\n\t\t}\n"},
		}},
		{"all clusters of a name are related", []edit{
			{meeting, "related := w.now.Mono <= r.related", "related := w.now.Mono <= r.related || mutant(NAME)"},
		}},
		{"any cluster of the name is joined", []edit{
			{inquiry, "return a.isMember() && a.related &&", "return a.isMember() && (mutant(NAME) || a.related) &&"},
		}},
		{"a decision does not rest", []edit{
			{"membership/internal/protocol/downing.go", "if missing && !r.rested {", "if missing && !r.rested && !mutant(NAME) {"},
		}},
		{"who lists itself alone founds at once", []edit{
			{forming, "until := f.inquiry.began.Add(aloneWait)", "until := f.inquiry.began.Add(aloneWait)\n\tif mutant(NAME) {\n\t\treturn f.now.Mono\n\t}"},
		}},
	}
}

// meetingFinders are the tests that a mutant of meeting is run against.
func meetingFinders() []string {
	return []string{
		"TestAClusterYieldsToAProvenLargerOne", "TestNobodyYieldsForOtherReasons", "TestHowLongANodeThatListsItselfListens",
		"TestAForeignMemberAtAListedAddressKeepsNobodyFromFounding", "TestAnEditJustBeforeADecisionTakesNobodyForLost",
	}
}

// formMutants break the rules by which a decider may have its node form a cluster.
func formMutants() []mutant {
	const decider = "discovery/bootstrap/decider.go"
	return []mutant{
		{"a decider forms with too few contact points", []edit{
			{decider, "\tcase len(o.Points) < o.Required:\n", "\tcase len(o.Points) < o.Required && !mutant(NAME):\n"},
		}},
		{"a decider forms beside a cluster", []edit{
			{decider, "\tcase len(seeds) > 0:\n", "\tcase len(seeds) > 0 && !mutant(NAME):\n"},
		}},
		{"a decider forms before the margin has passed", []edit{
			{decider, "o.Stable < o.StableMargin:\n\t\treturn fmt", "o.Stable < o.StableMargin && !mutant(NAME):\n\t\treturn fmt"},
		}},
	}
}

// bootstrapMutants break the rules by which nodes that look each other up form a cluster.
func bootstrapMutants() []mutant {
	const search, decider = "discovery/bootstrap/search.go", "discovery/bootstrap/decider.go"
	return []mutant{
		{"the lowest address by text", []edit{
			{decider, "\tx, y := addressOf(a), addressOf(b)\n", "\tx, y := addressOf(a), addressOf(b)\n\tif mutant(NAME) {\n\t\tx, y = netip.Addr{}, netip.Addr{}\n\t}\n"},
		}},
		{"the margin is not reset", []edit{
			{search, "if changed || s.at.IsZero() || s.fault != \"\" {", "if s.at.IsZero() || !mutant(NAME) && (changed || s.fault != \"\") {"},
		}},
		{"what nodes remember is ignored", []edit{
			{"membership/internal/protocol/inquiry.go", "\tif !best.Remembers() {\n", "\tif mutant(NAME) && q.required > 0 || !best.Remembers() {\n"},
		}},
		{"a majority of what one node has found forms a cluster", []edit{
			{"membership/internal/protocol/record.go", "i > 0 && i < 2*required-1", "i > 0 && i < 2*required-1 && (!mutant(NAME) || i < required)"},
		}},
		{"a cluster is formed upon a lookup that failed", []edit{
			{search, "\tcase s.fault != \"\":\n", "\tcase s.fault != \"\" && !mutant(NAME):\n"},
			{search, "s.fault == \"\" && len(s.found) > 0 {", "(s.fault == \"\" || mutant(NAME)) && len(s.found) > 0 {"},
		}},
	}
}

// ruleFinders are the tests of the protocol that a mutant of a rule is run against.
func ruleFinders() []string {
	return []string{
		"TestAccusationOfAVoterThatIsRemovedTooIsNoCut", "TestJoinerWhosePromotionOthersHaveNotHeardOfHasNoStanding",
		"TestOnlyMembersWithTheRoleAreVoters", "TestHostileMemberIsRefused", "TestHostileWelcomeIsRefused",
		"TestOfTwoClustersThatMeetOneGoesOn", "TestOneSideAtMostGoesOnByTheVoteOfAMemberThatHasConfirmed",
		"TestASideGoesOnByTheVoteOfAMemberThatExits",
		"TestAnotherFingerprintIsAnsweredByADigest", "TestAHeartbeatShowsTheStateOfTheMoment",
		"TestOnlyAQuietRoundGoesWithAHeartbeat",
	}
}

// formingFinders are those that a mutant of forming is run against.
func formingFinders() []string {
	return []string{
		"TestNothingLeavesBeforeItIsOnTheDisk", "TestAConfigIsSeenWhenItIsOnTheDisk", "TestAnAnswerDoesNotLast", "TestALostDiskSpeaksForNobody",
		"TestWhenAVoteIsRefused", "TestAYoungProcessTakesNoPartInAVote", "TestNobodyStandsWhileSomebodyIsInACluster",
		"TestAClusterIsFoundedUponAllVoters", "TestAnUnfinishedChangeNeedsTheVotersBefore", "TestAVoterEntersWhatItVotedForLast",
	}
}

// downingMutants have the strategies that may keep a minority leave out members that another
// side may know better.
func downingMutants() []mutant {
	const oldest, quorum = "downing/keepoldest.go", "downing/staticquorum.go"
	return []mutant{
		{"static-quorum: exiting members make no quorum possible elsewhere", []edit{
			{quorum, "m.Status >= gossip.Up {", "m.Status >= gossip.Up && (!mutant(NAME) || m.Status != gossip.Exiting) {"},
		}},
		{"static-quorum: a quorum that two sides could have", []edit{
			{quorum, "func(*kept, int) bool { return false })", "func(*kept, int) bool { return mutant(NAME) })"},
		}},
		{"keep-oldest: who leaves is not the oldest to others", []edit{
			{oldest, "(m.Status == gossip.Leaving || m.Status == gossip.Down)", "(m.Status == gossip.Leaving && !mutant(NAME) || m.Status == gossip.Down && !mutant(\"keep-oldest: who is down does not go on\"))"},
		}},
		{"keep-oldest: who is down does not go on", nil}, // By the edit before.
		{"keep-oldest: who leaves is the oldest to all", []edit{
			{oldest, "m.Status.IsUp() && (oldest", "(m.Status.IsUp() || mutant(NAME) && votes(m)) && (oldest"},
		}},
		{"keep-oldest: who joins keeps the oldest no company", []edit{
			{oldest, "return v.Members[i].HasRole(o.Role) })", "m := v.Members[i]\n\t\treturn m.HasRole(o.Role) && (!mutant(NAME) || m.Status >= gossip.Up) &&\n" +
				"\t\t\t(!mutant(\"keep-oldest: who is down keeps the oldest no company\") || m.Status != gossip.Down) &&\n" +
				"\t\t\t(!mutant(\"keep-oldest: who is exiting keeps the oldest no company\") || m.Status != gossip.Exiting) })"},
		}},
		{"keep-oldest: who is down keeps the oldest no company", nil}, // By the edit before, as the next.
		{"keep-oldest: who is exiting keeps the oldest no company", nil},
		{"keep-oldest: the oldest stays alone beside two", []edit{
			{oldest, "(several || others <= 1)", "(several || others <= 1 || mutant(NAME) && others <= 2)"},
		}},
	}
}

// exitingMutants have members that exit vote otherwise than by what they have seen.
func exitingMutants() []mutant {
	return []mutant{
		{"an exiting member that has not seen the view votes", []edit{
			{"downing/view.go", "counted[i] = votes(m)\n", "counted[i] = votes(m) || mutant(NAME) && m.Status == gossip.Exiting\n"},
		}},
		{"an exiting member that has seen the view does not vote", []edit{
			{"downing/view.go", "v.Members[i].Status == gossip.Exiting {", "v.Members[i].Status == gossip.Exiting && !mutant(NAME) {"},
		}},
	}
}

// exitingFinders are the tests that a mutant of them is run against.
func exitingFinders() []string {
	return []string{"TestAnExitingMemberThatHasNotSeenTheViewDoesNotVote", "TestNeverTwoSurvivorsWhileAMemberJoinsOrExits"}
}

// handsOffMutants break the rules by which it is left to an operator to down members.
func handsOffMutants() []mutant {
	const resolver, deciding, strategies = "membership/internal/protocol/downing.go", "membership/internal/protocol/deciding.go", "membership/internal/protocol/strategies.go"
	return []mutant{
		{"what is only reported is done", []edit{
			{strategies, "return downing.OnlyReports(active.Parameters) || active", "return downing.OnlyReports(active.Parameters) && !mutant(NAME) || active"},
		}},
		{"manual downs a side", []edit{
			{strategies, "|| active.Name == downing.ManualName", "|| active.Name == downing.ManualName && !mutant(NAME)"},
		}},
		{"what would be done is said again and again", []edit{
			{resolver, "r.strategies.handsOff() && r.reported == r.view", "r.strategies.handsOff() && r.reported == r.view && !mutant(NAME)"},
		}},
		{"a strategy that only reported decides before all know that another acts", []edit{
			{deciding, "case downing.OnlyReports(q.left[0].Parameters) && !r.strategies.handsOff():", "case downing.OnlyReports(q.left[0].Parameters) && !r.strategies.handsOff() && !mutant(NAME):"},
		}},
		{"a minority works on where nothing is decided", []edit{
			{"downing/config.go", "class.MajorityOnly = class.MajorityOnly || c.Mode == ModeReport", "class.MajorityOnly = class.MajorityOnly && (!mutant(NAME) || c.Mode != ModeReport) || c.Mode == ModeReport && !mutant(NAME)"},
		}},
	}
}

// commandMutants have a command decide where a minority may be kept, or keep it from who it is
// about.
func commandMutants() []mutant {
	const resolver = "membership/internal/protocol/downing.go"
	return []mutant{
		{"a command downs at once whatever the strategy may keep", []edit{
			{resolver, "case r.strategies.majorityOnly() || member.Node == r.self", "case mutant(NAME) || r.strategies.majorityOnly() || member.Node == r.self"},
		}},
		{"who is commanded to go does not obey", []edit{
			{resolver, "\tif r.state.SharesRows(before) {\n", "\tif r.state.SharesRows(before) || mutant(NAME) && before != nil {\n"},
		}},
		{"a command meets whoever lives at the address of the node that it names", []edit{
			{"membership/internal/protocol/named.go", "if named.UID == 0 && now != nil {", "if (named.UID == 0 || mutant(NAME)) && now != nil {"},
		}},
		{"the strategy is not told of a command", []edit{
			{"downing/view.go", "commanded[c.subject] = commanded[c.subject] || c.terminated", "commanded[c.subject] = commanded[c.subject] || c.terminated && !mutant(NAME)"},
		}},
	}
}

// commandFinders are the tests that a mutant of them is run against.
func commandFinders() []string {
	return []string{
		"TestACommandThatIsNotHeardNeedsTheStrategy", "TestAMemberThatHearsOfACommandEndsByItsOwnWord", "TestACommandThatNamesANodeMeetsNoOther",
	}
}

// handsOffFinders are the tests that a mutant of them is run against.
func handsOffFinders() []string {
	return []string{
		"TestNobodyIsDownedWhereItIsLeftToAnOperator", "TestThoseWhoAreLeftByAnOperatorAreNotDownedByThemselves",
		"TestSplitDuringAChangeBetweenBuiltInStrategiesLeavesOneSide",
	}
}

// downingFinders enumerate what the sides of a split can know.
func downingFinders() []string {
	return []string{
		"TestEverySplitOfASettledCluster", "TestNeverTwoSurvivorsWhileOneSideKnowsMore",
		"TestNeverTwoSurvivorsAfterADecisionThatSomeHaveNotHeard",
	}
}

// boundlessMutants let a judge decide beyond the bounds of silence.
func boundlessMutants() []mutant {
	return []mutant{
		{"a judge is heard before min-silence", []edit{
			{"fd/bounds.go", "max(at.Sub(b.last), b.bounds.MinSilence)", "max(at.Sub(b.last), func() time.Duration {\n\t\tif mutant(NAME) {\n\t\t\treturn 0\n\t\t}\n\t\treturn b.bounds.MinSilence\n\t}())"},
			{"fd/bounds.go", "case silence < b.bounds.MinSilence:", "case silence < b.bounds.MinSilence && (!mutant(NAME) || !b.judged):"},
		}},
		{"a judge can hold a node available after max-silence", []edit{
			{"fd/bounds.go", "b.limit, b.resolved = high, true\n\t\treturn high", "if mutant(NAME) {\n\t\t\tb.limit, b.resolved = 1<<50, true\n\t\t\treturn b.limit\n\t\t}\n\t\tb.limit, b.resolved = high, true\n\t\treturn high"},
			{"fd/bounds.go", "case silence >= b.bounds.MaxSilence:", "case silence >= b.bounds.MaxSilence && (!mutant(NAME) || !b.judged):"},
		}},
	}
}

// judgeMutants break the rules by which a judge decides in place of the detectors.
func judgeMutants() []mutant {
	const judging = "membership/internal/protocol/judgesession.go"
	return []mutant{
		{"the detectors do not take over", []edit{{judging, "j.registry.Judged(false, j.now.Mono.Time())", "if !mutant(NAME) {\n\t\tj.registry.Judged(false, j.now.Mono.Time())\n\t}"}}},
		{"a judge that answers is not heard", []edit{{judging, "j.registry.Judged(true, j.now.Mono.Time())", "if !mutant(NAME) {\n\t\t\tj.registry.Judged(true, j.now.Mono.Time())\n\t\t}"}}},
		{"an accusation that an answer has overtaken counts", []edit{{"fd/bounds.go", "|| b.last.Sub(asOf) > 0 ", "|| !mutant(NAME) && b.last.Sub(asOf) > 0 "}}},
		{"a judge is told of all answers again", []edit{{judging, "answers = h.since(h.told)", "if !mutant(NAME) {\n\t\t\t\tanswers = h.since(h.told)\n\t\t\t}"}}},
		{"a judge that has begun anew is not told what it has missed", []edit{{judging, "\t\tj.ask(targets)\n\t\treturn true", "\t\tif !mutant(NAME) {\n\t\t\tj.ask(targets)\n\t\t}\n\t\treturn true"}}},
		{"verdicts are not checked", []edit{{judging, "err = verdicts.Check(j.batch)", "if !mutant(NAME) {\n\t\t\terr = verdicts.Check(j.batch)\n\t\t}"}}},
		{"a judge is waited for without end", []edit{{judging, "j.out.Arm(timerJudge, j.now.Mono.Add(j.limit()))", "j.out.Disarm(timerJudge)\n\tif !mutant(NAME) {\n\t\tj.out.Arm(timerJudge, j.now.Mono.Add(j.limit()))\n\t}"}}},
	}
}

func judgeFinders() []string {
	return []string{
		"TestTheDetectorsDecideWhileTheJudgeIsAway", "TestAJudgeDecidesWithinTheBounds", "TestAJudgeIsToldOfEachAnswerOnce",
		"TestAJudgeThatHasBegunAnewGoesOnInTheSameRound", "TestAnAccusationThatAnAnswerHasOvertakenIsNothing",
	}
}

// boundMutants take bounds and checks of the transport away.
func boundMutants() []mutant {
	return []mutant{
		{"localhost is believed by who listens", []edit{
			{"transport/grpc/grpc.go", "!loopbackAddr(l.Addr()) {", "!mutant(NAME) && !loopbackAddr(l.Addr()) {"},
		}},
		{"certificates of other clusters pass", []edit{
			{"transport/mutual/identity.go", "\tcase !member:\n", "\tcase !member && (!mutant(NAME) || i.Cluster == \"\"):\n"},
		}},
	}
}

func boundFinders() []string {
	return []string{
		"TestOneHostHasABoundedNumberOfConnections", "TestANameThatLeadsAwayFromLoopbackIsRefused",
		"TestANodeKnowsThatItsCertificateIsNotForIt",
	}
}

// finders are the tests that a mutant is run against, with the seeds that they have with the build
// tag seeds, in this order, until one finds it.
func finders() []string {
	return []string{
		"TestWhatADeadLeaderGaveIsOutbid", "TestMajoritySurvivesWhateverItsStrategyDoes", "TestOneSideSurvivesOnceTheWitnessAnswers",
		"TestSideWithoutAnAnswerWaitsAndGoes", "TestSplitDuringAChangeOfStrategyLeavesOneSide",
		"TestAnotherMemberDecidesInPlaceOfTheLeader", "TestStrategyIsTakenBackWhileTheClusterChangesToIt", "TestChaosBreaksNoInvariant", "TestEverySplitLeavesOneSideHosting", "TestSeedsThatFoundSomething",
		"TestNodeThatDiesWhileAllOthersSleepIsAccused", "TestCutBetweenZonesWhileNodesStartLeavesOneSide",
		"TestStormsBreakNothing",
	}
}

// shutdownMutants are defects in how a whole cluster is stopped, shutdownRules those that delay it alone.
func shutdownMutants() []mutant {
	return []mutant{
		{"a cluster is ready although members are on their way", []edit{
			{"membership/internal/protocol/leader.go", "return m.Status != gossip.Preparing })", "return m.Status != gossip.Preparing && !mutant(NAME) })"},
		}},
	}
}

// releaseMutants are defects by which what a later release says is lost.
func releaseMutants() []mutant {
	return []mutant{
		{"fields of a later release are passed over", []edit{
			{"machine/wire/codec.go", "\tif c.unknown == nil {\n", "\tif c.unknown == nil || mutant(NAME) {\n"},
		}},
		{"a record that changes loses what it says in fields of a later release", []edit{
			{"gossip/member.go", "maxUnknown(a.Unknown, b.Unknown),", "func() Unknown {\n\t\t\tif mutant(NAME) {\n\t\t\t\treturn Unknown{}\n\t\t\t}\n\t\t\treturn maxUnknown(a.Unknown, b.Unknown)\n\t\t}(),"},
		}},
	}
}

func shutdownRules() []mutant {
	return []mutant{
		{"nobody follows who leaves a cluster that is ready", []edit{
			{"membership/internal/protocol/clustershutdown.go", "if m.Node != p.self && (", "if !mutant(NAME) && m.Node != p.self && ("},
		}},
		{"who was coming waits until the cluster has ended", []edit{
			{"membership/internal/protocol/clustershutdown.go", "\tcase me.Status < gossip.Up:\n", "\tcase me.Status < gossip.Up && mutant(NAME):\n\tcase me.Status < gossip.Up:\n"},
		}},
	}
}

// hunt is a list of mutants, and the tests of a package of which one must find each.
type hunt struct {
	mutants []mutant
	pkg     string
	finders []string
}

// hunts are all of them.
func hunts() []hunt {
	const here, protocol, downing = ".", "../internal/protocol", "../../downing"
	return append([]hunt{
		{mutants(), here, finders()},
		// One run of thousands shows it, which is kept.
		{[]mutant{{"a confirmed leader behind a cut is not waited for", []edit{
			{"gossip/convergence.go", "!m.leadsBefore(me) && confirmed(m.Node)", "(!m.leadsBefore(me) || mutant(NAME)) && confirmed(m.Node)"},
		}}}, here, []string{"TestStormsBreakNothing"}},
		// Rules that the tests of the protocol find to be broken, and exchanges of heartbeats that two nodes share.
		{ruleMutants(), protocol, ruleFinders()},
		{formingMutants(), protocol, formingFinders()},
		{meetingMutants(), protocol, meetingFinders()},
		{relayMutants(), protocol, relayFinders()},
		{lentMutants(), protocol, lentFinders()},
		{sharedMutants(), protocol, sharedFinders()},
		// Members of other releases.
		{releaseMutants(), here, []string{"TestMembersOfThreeReleasesAreOneCluster"}},
		// A whole cluster is stopped.
		{shutdownMutants(), here, []string{"TestStormsBreakNothing"}},
		{shutdownRules(), protocol, []string{"TestAllAreStoppedTogether", "TestNobodyComesIntoAClusterThatIsShutDown"}},
		{standbyMutants(), protocol, standbyFinders()},
		{bootstrapMutants(), here, []string{"TestTheLowestAddressFormsAfterTheMargin", "TestBootstrapFormsOneCluster"}},
		// The vote makes nothing of a cluster that is formed beside one that has members.
		{[]mutant{{"a cluster is formed although a seed node answers", []edit{
			{"discovery/bootstrap/search.go", "\tcase member >= 0:\n", "\tcase member >= 0 && !mutant(NAME):\n"},
		}}}, protocol, []string{"TestNobodyFormsBesideAMember"}},
		{formMutants(), "../../discovery/bootstrap", []string{"TestAClusterIsFormedOnlyWhereTheObservationsAllow"}},
		// Strategies that may keep a minority, and what is left to an operator.
		{downingMutants(), downing, downingFinders()},
		{exitingMutants(), downing, exitingFinders()},
		{handsOffMutants(), here, handsOffFinders()},
		{commandMutants(), protocol, commandFinders()},
		{leaseMutants(), "./outcomes", []string{"TestALeaseKeepsOneSide"}},
		{tokenMutants(), "../../downing/lease/internal/protocol", []string{"TestATokenThatShrinksIsNeverHeld", "TestWhatEndsAHolding", "TestAHoldingEndsBeforeTheLeaseCountedFromTheCall"}},
		// Failure detectors outside of the nodes.
		{boundlessMutants(), here, []string{"TestWildJudgesBreakNothing"}},
		{judgeMutants(), protocol, judgeFinders()},
		// What bounds strangers.
		{boundMutants(), "../../transport/grpc", boundFinders()},
	}, singleRules(protocol)...)
}

// singleRules are defects of single rules, each with the one test that must find it.
func singleRules(pkg string) (hunts []hunt) {
	const dir = "membership/internal/protocol/"
	for _, rule := range []struct{ name, finder, file, old, new string }{
		{
			"the moment of a cut outlives its record", "TestNoPlotOutlastsTheFence", "fences.go",
			"f.cuts[j].record == r {", "(f.cuts[j].record == r || mutant(NAME) && compareRecords(f.cuts[j].record, r) == 0) {",
		},
		{
			"who exits has left in order, though it may have been downed unseen", "TestWhoIsDownedWhileItExitsHasNotLeftInOrder", "fences.go",
			"was.Status == gossip.Exiting && f.tookPart() {", "was.Status == gossip.Exiting && (f.tookPart() || mutant(NAME)) {",
		},
		{
			"a weakly-up member gets a vote without a sign of life", "TestAWeaklyUpMemberGetsAVoteOnlyAfterASignOfLife", "leader.go",
			"case !l.present(member.Node) || !l.gate.passes(member.Node):",
			"case (!mutant(NAME) || member.Status == gossip.Joining) && (!l.present(member.Node) || !l.gate.passes(member.Node)):",
		},
		{
			"a view is stable while a node sleeps", "TestAViewIsStableOnlyAfterTimeAwake", "downing.go",
			"\tr.troubledSince = r.troubledSince.Add(r.now.Mono.Sub(r.last.Mono))\n\tr.restartStability()\n",
			"\tif !mutant(\"a view is unstable while a node sleeps\") {\n\t\tr.troubledSince = r.troubledSince.Add(r.now.Mono.Sub(r.last.Mono))\n\t}\n" +
				"\tif !mutant(NAME) {\n\t\tr.restartStability()\n\t}\n",
		},
		{"a view is unstable while a node sleeps", "TestAViewIsStableOnlyAfterTimeAwake", "", "", ""}, // By the edit before.
		{
			"a timer that is due at the end of a sleep says that a view is stable", "TestAViewIsStableOnlyAfterTimeAwake", "downing.go",
			"if r.now.Mono < r.stableAt() {", "if r.now.Mono < r.stableAt() && !mutant(NAME) {",
		},
		{
			"what a downed member says is taken", "TestWhatADownedMemberSaysIsNotTaken", "core.go",
			"member != nil && member.Status == gossip.Down {\n\t\tstatus", "member != nil && member.Status == gossip.Down && !mutant(NAME) {\n\t\tstatus",
		},
		{
			"a late answer takes standing back", "TestALateAnswerTakesNoStandingBack", "answers.go",
			"!ok || sentAt > last {", "!ok || sentAt > last || mutant(NAME) {",
		},
		{
			"a decider sets the pace", "TestADeciderIsAskedOnceInAJoinInterval", "contactsearch.go",
			"b.askedAt != 0 && b.now.Mono <", "!mutant(NAME) && b.askedAt != 0 && b.now.Mono <",
		},
		{
			"a last word builds upon a base", "TestTheLastWordBuildsUponNoBase", "gossiper.go",
			"\t\ts.out.Send(peer, GossipDelta{Delta: s.state.DeltaWithoutBase(s.believed(peer)), Digest: s.state.Digest()})\n",
			"\t\tif mutant(NAME) {\n\t\t\ts.sendNews(peer)\n\t\t\tcontinue\n\t\t}\n\t\ts.out.Send(peer, GossipDelta{Delta: s.state.DeltaWithoutBase(s.believed(peer)), Digest: s.state.Digest()})\n",
		},
		{
			"who hands over last is left alone", "TestAllWaitForWhoHandsOverLast", "leave.go",
			"case l.leader.allLeave() && len(", "case !mutant(NAME) && l.leader.allLeave() && len(",
		},
		{
			"an answer is a sign of life however late it is", "TestALateAnswerIsNoSignOfLife", "heartbeat.go",
			"-(h.slept-r.slept) > h.cfg.Fence", "-(h.slept-r.slept) > h.cfg.Fence && !mutant(NAME)",
		},
		{
			"who has no standing accuses those who answer late", "TestALateAnswerIsNoSignOfLife", "heartbeat.go",
			"return at <= h.hosting.until &&", "return (mutant(NAME) || at <= h.hosting.until) &&",
		},
		{
			"who flaps is taken back at once", "TestAMemberThatFlapsIsRemoved", "flapdetector.go",
			"return of != nil && of.isFlapping() &&", "return of != nil && !mutant(NAME) && of.isFlapping() &&",
		},
		{
			"a node that sleeps holds it against others that they flap", "TestANodeThatSleepsKeepsNoRecords", "flapdetector.go",
			"wake() { clear(f.histories) }", "wake() {\n\tif !mutant(NAME) {\n\t\tclear(f.histories)\n\t}\n}",
		},
	} {
		m := mutant{name: rule.name}
		if rule.file != "" {
			m.edits = []edit{{dir + rule.file, rule.old, rule.new}}
		}
		hunts = append(hunts, hunt{[]mutant{m}, pkg, []string{rule.finder}})
	}
	return hunts
}

// That the code without a mutant is green on the same seeds is what the tests themselves say. All mutants are in one
// copy of the code, each switched on for its runs: to build a copy takes longer than to find most of them.
func TestMutantsAreCaught(t *testing.T) {
	var all []simulationtest.Mutant
	for _, h := range hunts() {
		for _, m := range h.mutants {
			looked := simulationtest.Mutant{Name: m.name, Package: h.pkg, Tests: h.finders}
			for _, e := range m.edits {
				looked.Edits = append(looked.Edits, simulationtest.Edit{File: e.file, Old: e.old, New: e.new})
			}
			all = append(all, looked)
		}
	}
	simulationtest.RequireFound(t, "../..", all)
}
