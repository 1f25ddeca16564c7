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

// A node that was cut off downs itself, ends, and is started again by its supervisor
// inside the partition. So a cluster is founded by a vote, as a leader is elected in
// Raft (Ongaro and Ousterhout 2014, section 5.2), with the birth of the cluster as
// the term:
//
//	ask seeds and remembered voters ──> answers: records, who is in a cluster
//	      │ somebody has standing ──> join it
//	      v
//	the basis is the newest record of all; those who answer win in it
//	      │ the lowest address of them, others after a while
//	      v
//	promise on disk ──> AskVote to all ──> promise on disk there ──> Vote
//	      │ the votes win in every set of the basis
//	      v
//	record on disk ──> first member of a cluster whose base is that of the basis
//	      │ the voters join it
//	      v
//	contacts win in that base: the leader makes the first members up
//
// Those who vote and those who host share a voter. If it voted first it enters no
// cluster of a lower birth; if it was in the other cluster first it has ended, and
// votes only when everybody who hosts by its answers has stopped.

// answer is the last that was heard of a node about clusters.
type answer struct {
	from  gossip.NodeID
	claim Claim
	at    machine.Instant // When it was heard last.
	since machine.Instant // When the node began to say so.
}

// forming is what a node without a cluster knows about who could found one.
type forming struct {
	answers []answer // One an address, sorted by it.
	began   machine.Instant

	winning bool            // Those who answer win, and were told so before.
	tryAt   machine.Instant // When this node asks for votes although a lower address could.

	// After a vote this node asks for none, and gives none to others, so that one of
	// two who ask at once gets through.
	holdUntil machine.Instant
	vote      int64      // The last birth that this process voted for.
	early     []earlyAsk // Questions for a vote that this node may not give yet.
	owed      []owedVote // Votes that wait for the disk.
	candidate *candidacy // What this node asks votes for, or nil.
	complaint string     // Why this node waits, as it was told last.
}

// earlyAsk is a question for a vote that came before this node may give one. It is
// answered when the node may: nodes of a new cluster are not started in one moment,
// and who is refused lets others go first for seconds.
type earlyAsk struct {
	from gossip.NodeID
	ask  AskVote
}

// putOff keeps a question for later, one of each node.
func (f *forming) putOff(from gossip.NodeID, ask AskVote) {
	f.early = slices.DeleteFunc(f.early, func(e earlyAsk) bool { return e.from.Address == from.Address })
	f.early = append(f.early, earlyAsk{from, ask})
}

type owedVote struct {
	to    gossip.NodeID
	birth int64
}

// candidacy is a birth for which this node asks votes.
type candidacy struct {
	birth   int64
	basis   Record
	asked   bool
	ballots []ballot // In the order in which they came.
	open    int      // Votes that were asked for and not answered.
	until   machine.Instant
	won     bool // The votes win; those that are still open have until then.
}

// ballot is a node that speaks for voters of the basis.
type ballot struct {
	node   gossip.NodeID
	record Record
}

// restarted returns what stays of f when a search begins anew: what it has voted for.
func (f *forming) restarted(began machine.Instant) forming {
	return forming{began: began, vote: f.vote, holdUntil: f.holdUntil}
}

// continues reports whether a says the same as an earlier answer, and nothing else was
// heard between them for as long as answers count.
func (a answer) continues(before answer, limit time.Duration) bool {
	return a.from == before.from && a.claim.Record.Data == before.claim.Record.Data &&
		a.claim.Cluster == before.claim.Cluster && a.claim.Leaving == before.claim.Leaving && a.at.Sub(before.at) <= limit
}

// note takes the answer of a node. Limit is how long an answer counts.
func (f *forming) note(from gossip.NodeID, claim Claim, at machine.Instant, limit time.Duration) {
	i, found := f.find(from.Address)
	a := answer{from: from, claim: claim, at: at, since: at}
	if found {
		if a.continues(f.answers[i], limit) {
			a.since = f.answers[i].since
		}
		f.answers[i] = a
		return
	}
	f.answers = slices.Insert(f.answers, i, a)
}

// fresh returns the answers that are not older than limit.
func (f *forming) fresh(now machine.Instant, limit time.Duration) []answer {
	return slices.DeleteFunc(slices.Clone(f.answers), func(a answer) bool { return now.Sub(a.at) > limit })
}

// find returns where the answer of the node at an address is, or belongs.
func (f *forming) find(address gossip.Address) (int, bool) {
	return slices.BinarySearchFunc(f.answers, address, func(a answer, address gossip.Address) int {
		return a.from.Address.Compare(address)
	})
}

// of returns the answer of the node at an address.
func (f *forming) of(address gossip.Address) (answer, bool) {
	i, found := f.find(address)
	if !found {
		return answer{}, false
	}
	return f.answers[i], true
}

// answersLast is how long an answer counts.
func (m *Machine) answersLast() time.Duration { return 2 * m.cfg.JoinIntervalMax }

// basis is the newest record of this node and of those who answer, or the list of
// seed nodes if nobody remembers a cluster.
func (m *Machine) basis() Record {
	best := m.memory.wanted
	for _, a := range m.join.form.fresh(m.now.Mono, m.answersLast()) {
		if a.claim.Record.supersedes(best) {
			best = a.claim.Record
		}
	}
	if !best.Remembers() {
		best = listed(m.join.seeds)
	}
	return best
}

// winsIn reports whether ballots win in every set of a basis. Of listed seed nodes
// more than half are needed; with a strategy that may keep a minority, all who are
// remembered, since fewer of them may have gone on.
func (m *Machine) winsIn(basis Record, ballots []ballot) bool {
	spoken, voters := map[gossip.NodeID]bool{}, speakersFor(basis.everybody())
	for _, b := range ballots {
		for _, v := range voters.of(b.node.Address, b.record) {
			spoken[v] = true
		}
	}
	in := func(n gossip.NodeID) bool { return spoken[n] }
	switch {
	case !basis.Remembers():
		return 2*len(spoken) > len(basis.Voters)
	case !m.majorityOnly():
		return !slices.ContainsFunc(nodesOf(basis.Voters), func(n gossip.NodeID) bool { return !in(n) })
	default:
		return basis.base().Wins(in)
	}
}

// ballotBox returns this node and those who answer that they are in no cluster, as
// far as they speak for voters of a basis. It is false if somebody is in a cluster:
// then there may be one to join, or one that ends.
func (m *Machine) ballotBox(basis Record) ([]ballot, bool) {
	all := []ballot{{m.self, m.memory.wanted}}
	for _, a := range m.join.form.fresh(m.now.Mono, m.answersLast()) {
		if !a.claim.Cluster.IsZero() {
			return nil, false
		}
		all = append(all, ballot{a.from, a.claim.Record})
	}
	voters := speakersFor(basis.everybody())
	return slices.DeleteFunc(all, func(b ballot) bool { return len(voters.of(b.node.Address, b.record)) == 0 }), true
}

// grownUp is when this process is so old that whoever hosts by answers of its
// predecessor has stopped by then.
func (m *Machine) grownUp() machine.Instant {
	wait := m.cfg.Fence
	if !m.majorityOnly() {
		wait = m.margin()
	}
	return m.join.form.began.Add(byAnyClock(wait))
}

// considerFounding asks for votes if it is time to, or arms the timer for it.
func (m *Machine) considerFounding() {
	f := &m.join.form
	if m.phase != phaseJoining || m.join.entering != nil || !m.join.target.IsZero() || f.candidate != nil {
		return
	}
	basis := m.basis()
	ballots, free := m.ballotBox(basis)
	mine := slices.ContainsFunc(ballots, func(b ballot) bool { return b.node == m.self })
	if !free || !mine || !m.winsIn(basis, ballots) {
		f.winning = false
		return
	}
	at := max(m.now.Mono, f.holdUntil, f.tryAt)
	switch alone := len(basis.Voters) == 1 && basis.Settled(); {
	case !alone:
		at = max(at, m.grownUp())
	case len(m.whomToAsk()) > 0:
		// Nobody can have gone on without this node, but another cluster of the name
		// may have been founded, to which this one's has yielded.
		at = max(at, f.began.Add(2*m.cfg.JoinInterval))
	}
	if rank := m.rank(ballots); rank > 0 {
		if !f.winning {
			f.tryAt = at.Add(m.electionTimeout(rank))
		}
		at = max(at, f.tryAt)
	}
	f.winning = true
	if at > m.now.Mono {
		m.out.Arm(timerFormation, at)
		return
	}
	m.stand(basis)
}

// rank is the number of those with a lower address.
func (m *Machine) rank(ballots []ballot) int {
	n := 0
	for _, b := range ballots {
		if b.node.Compare(m.self) < 0 {
			n++
		}
	}
	return n
}

// electionTimeout is a random time for which a node of a rank lets others go first, as in
// Raft. It grows with the rank, so that many who fail do not fail for ever by each other.
func (m *Machine) electionTimeout(rank int) time.Duration {
	longest := int64(4 * m.cfg.JoinInterval)
	return time.Duration(1+min(rank, rankMax))*2*m.cfg.JoinInterval + time.Duration(m.deps.Rand.Int64N(longest))
}

// rankMax bounds for how long a node waits until it takes over from lower ones.
const rankMax = 10

// voteHold is how long a vote is out.
func (m *Machine) voteHold() time.Duration { return 4 * m.cfg.JoinInterval }

// stand makes this node a candidate: its promise is its own vote.
func (m *Machine) stand(basis Record) {
	f := &m.join.form
	birth := m.nextBirth()
	if birth > gossip.LatestBirth {
		return // The waiting line tells.
	}
	f.candidate = &candidacy{birth: birth, basis: basis, until: m.now.Mono.Add(m.voteHold())}
	f.vote = birth
	m.out.Arm(timerFormation, f.candidate.until)
	m.promise(birth)
	m.askVotes()
}

// noBirthLeft says why nothing is founded after [gossip.LatestBirth].
const noBirthLeft = "a clock is or was off by centuries, here or where somebody answered: no cluster can be born after what is remembered; " +
	"delete the data directories of all nodes while they are stopped, and the epochs in what they write to"

// nextBirth is the birth of a cluster that would be founded now: above all births that
// this node or somebody who answered knows of.
func (m *Machine) nextBirth() int64 {
	birth := max(m.now.Wall.UnixMilli(), m.memory.wanted.floor()+1)
	for _, a := range m.join.form.fresh(m.now.Mono, m.answersLast()) {
		birth = max(birth, a.claim.Record.floor()+1)
	}
	return birth
}

func (m *Machine) promise(birth int64) {
	r := m.memory.wanted
	r.Promise = max(r.Promise, birth)
	m.remember(r)
}

// askVotes asks for the votes of a candidacy whose promise is on disk.
func (m *Machine) askVotes() {
	c := m.join.form.candidate
	if c == nil || c.asked || m.memory.kept.Promise < c.birth {
		return
	}
	c.asked = true
	voters := speakersFor(c.basis.everybody())
	for _, a := range m.join.form.fresh(m.now.Mono, m.answersLast()) {
		if len(voters.of(a.from.Address, a.claim.Record)) > 0 {
			c.open++
			m.out.Send(a.from, AskVote{Birth: c.birth, Basis: c.basis.Stamp, Settled: c.basis.Settled()})
		}
	}
	m.count(ballot{m.self, m.memory.kept})
}

// count takes a vote, and founds the cluster when the votes win.
func (m *Machine) count(b ballot) {
	c := m.join.form.candidate
	c.ballots = append(c.ballots, b)
	if !c.won && m.winsIn(c.basis, c.ballots) {
		// Whose vote is under way should not have to wait for the others to be up.
		c.won, c.until = true, m.now.Mono.Add(m.cfg.PushInterval)
		m.out.Arm(timerFormation, c.until)
	}
	m.foundIfWon()
}

// foundIfWon founds the cluster when the votes win, and no other is to come.
func (m *Machine) foundIfWon() {
	c := m.join.form.candidate
	_, free := m.ballotBox(c.basis)
	switch {
	case !free: // Another one was founded meanwhile: it is joined, or it ends.
		m.giveUpCandidacy()
	case c.won && (c.open == 0 || m.now.Mono >= c.until) && m.memory.wanted.Promise == c.birth:
		m.found(c, "they answered that they are in no cluster, and gave their votes")
	case !c.won && c.open == 0, m.memory.wanted.Promise != c.birth:
		m.giveUpCandidacy() // Nobody is left who could still vote, or this node has voted for another one.
	}
}

// letOthersTry begins the wait of this node's rank anew when it has voted, from the end
// of its vote on. Otherwise all who have voted for one that failed would stand in the
// moment in which their votes end, and fail by each other, again and again.
func (m *Machine) letOthersTry() {
	f := &m.join.form
	ballots, _ := m.ballotBox(m.basis())
	if rank := m.rank(ballots); rank > 0 {
		f.tryAt = f.holdUntil.Add(m.electionTimeout(rank))
	}
}

// giveUpCandidacy lets others go first.
func (m *Machine) giveUpCandidacy() {
	f := &m.join.form
	basis := f.candidate.basis
	ballots, _ := m.ballotBox(basis)
	f.candidate, f.winning = nil, true
	f.tryAt = m.now.Mono.Add(m.electionTimeout(m.rank(ballots)))
	m.out.Arm(timerFormation, f.tryAt)
}

// formationTimeout ends a candidacy that has not won, or begins one.
func (m *Machine) formationTimeout() {
	f := &m.join.form
	if f.candidate != nil && f.candidate.won {
		m.foundIfWon()
		return
	}
	if f.candidate != nil && m.now.Mono >= f.candidate.until {
		m.giveUpCandidacy()
		return
	}
	m.considerFounding()
}

// receiveAskVote gives this node's vote to a cluster that is to be founded, once
// the promise is on disk. The conditions are those of a vote in Raft, and that
// nobody hosts any more by what a predecessor of this process has answered.
func (m *Machine) receiveAskVote(from gossip.NodeID, msg AskVote) {
	f := &m.join.form
	own := m.memory.wanted
	refuse := func(format string, values ...any) {
		m.out.Send(from, Vote{Birth: msg.Birth, Reason: cutText(fmt.Sprintf(format, values...))})
	}
	switch {
	case m.phase != phaseJoining || !m.asks(from.Address):
		m.refuse(from, "AskVote", RefusedUnsolicited, "this node looks for no cluster, or not at this address")
	case m.join.entering != nil || !m.join.target.IsZero():
		refuse("it is about to join a cluster")
	case msg.Birth <= own.Promise || msg.Birth > gossip.LatestBirth:
		refuse("it has promised birth %d to another one", own.Promise)
	case own.Stamp.Compare(msg.Basis) > 0:
		refuse("it remembers newer voters, of %v", own.Stamp)
	case own.Stamp == msg.Basis && own.Remembers() && own.Settled() && !msg.Settled:
		refuse("it knows that the last change of voters is over")
	case m.now.Mono < m.grownUp() && m.grownUp() < m.now.Mono.Add(m.voteHold()):
		f.putOff(from, msg) // Who asks waits for as long as that.
		m.out.Arm(timerVote, m.grownUp())
	case m.now.Mono < m.grownUp():
		refuse("it has just started: who hosts by its last answers must have stopped first")
	case m.now.Mono < f.holdUntil || f.candidate != nil:
		refuse("it has just voted for another one")
	default:
		f.vote, f.holdUntil = msg.Birth, m.now.Mono.Add(m.voteHold())
		m.letOthersTry()
		f.owed = append(f.owed, owedVote{from, msg.Birth})
		m.promise(msg.Birth)
		m.castVotes()
	}
}

// answerEarly answers those who asked before this node may vote.
func (m *Machine) answerEarly() {
	early := m.join.form.early
	m.join.form.early = nil
	for _, e := range early {
		if m.phase == phaseJoining {
			m.receiveAskVote(e.from, e.ask)
		}
	}
}

// castVotes sends the votes whose promise is on disk.
func (m *Machine) castVotes() {
	f := &m.join.form
	f.owed = slices.DeleteFunc(f.owed, func(o owedVote) bool {
		if m.memory.kept.Promise < o.birth {
			return false
		}
		m.out.Send(o.to, Vote{Birth: o.birth, Granted: o.birth == f.vote})
		return true
	})
}

// receiveVote counts a vote.
func (m *Machine) receiveVote(from gossip.NodeID, msg Vote) {
	c := m.join.form.candidate
	a, known := m.join.form.of(from.Address)
	switch {
	case m.phase != phaseJoining || c == nil || msg.Birth != c.birth || !known || a.from != from:
		return // Late: the candidacy is over, or the voter has been started again.
	case slices.ContainsFunc(c.ballots, func(b ballot) bool { return b.node == from }):
	case !msg.Granted:
		c.open--
		m.out.Decide("join", from.String(), "no vote", msg.Reason)
		m.foundIfWon()
	default:
		c.open--
		m.count(ballot{from, a.claim.Record})
	}
}

// found makes this node the first member of a new cluster, whose voters are those of
// the basis: who voted by its new node id, the others as lost votes.
func (m *Machine) found(c *candidacy, why string) gossip.ClusterID {
	config := c.config()
	config.By = m.self.UID
	cluster := gossip.ClusterID{Born: c.birth, Nonce: m.deps.Rand.Uint64() | 1}
	m.out.Decide("join", m.self.String(), fmt.Sprintf("formed cluster %v", cluster),
		fmt.Sprintf("%d of %d voters: %s", len(c.ballots), len(c.basis.Voters), why))
	m.enter(m.state.Edit(m.self, func(e *gossip.Edit) {
		e.SetCluster(cluster)
		e.Join(m.me)
		e.Found(config)
	}))
	return cluster
}

// config returns the voters with which the cluster begins.
func (c *candidacy) config() gossip.Config {
	var config gossip.Config
	config.Voters, config.Data = c.incarnate(c.basis.Voters)
	if !c.basis.Settled() {
		config.Previous, config.PreviousData = c.incarnate(c.basis.Previous)
	}
	return config
}

// incarnate puts those who voted in the place of the voters for which they spoke.
func (c *candidacy) incarnate(voters []Voter) ([]gossip.NodeID, []gossip.DataID) {
	now, speakers := slices.Clone(voters), speakersFor(voters)
	for _, b := range c.ballots {
		for _, spoken := range speakers.of(b.node.Address, b.record) {
			i := slices.IndexFunc(voters, func(v Voter) bool { return v.Node == spoken })
			now[i] = Voter{Node: b.node, Data: b.record.Data}
		}
	}
	slices.SortFunc(now, func(a, b Voter) int { return a.Node.Compare(b.Node) })
	now = slices.CompactFunc(now, func(a, b Voter) bool { return a.Node == b.Node })
	data := make([]gossip.DataID, len(now))
	for i, v := range now {
		data[i] = v.Data
	}
	return nodesOf(now), data
}

// commandForm founds a cluster because an operator says so: with this node as its
// only voter. It is refused while a member with standing answers.
func (m *Machine) commandForm(in Form) {
	if m.phase != phaseJoining || m.join.entering != nil {
		m.refuseForm(in, m.self, "this node is not waiting for a cluster")
		return
	}
	for _, a := range m.join.form.fresh(m.now.Mono, m.answersLast()) {
		if a.claim.Standing {
			m.refuseForm(in, a.from, fmt.Sprintf("%v is a member of a cluster that goes on, which this node will join", a.from))
			return
		}
	}
	birth := m.nextBirth()
	if birth > gossip.LatestBirth {
		m.refuseForm(in, m.self, noBirthLeft)
		return
	}
	c := &candidacy{
		birth: birth, ballots: []ballot{{m.self, m.memory.wanted}},
		basis: Record{Stamp: m.basis().Stamp, Voters: []Voter{{Node: m.self, Data: m.memory.wanted.Data}}},
	}
	cluster := m.found(c, "an operator asked for it; whatever other voters know is given up")
	m.out.Publish(FormAnswered{ID: in.ID, Cluster: cluster})
}

// refuseForm tells an operator why no cluster is founded.
func (m *Machine) refuseForm(in Form, because gossip.NodeID, reason string) {
	m.refuse(because, "Form", RefusedNotReady, reason)
	m.out.Publish(FormAnswered{ID: in.ID, Reason: reason})
}

// foundingLimit is how long a founded cluster may lack a winning set of the voters that
// it was founded upon before its nodes end: a race was lost, or voters died.
func (m *Machine) foundingLimit() time.Duration {
	return m.cfg.FailureDetector.Bounds().MaxSilence + m.stableAfter() + m.cfg.Fence
}

// founding reports whether nobody has become up in the cluster yet.
func (m *Machine) founding() bool { return m.state.LastUpNumber() == 0 }

// watchFounding ends a node whose cluster does not come into being.
func (m *Machine) watchFounding() {
	switch {
	case m.phase != phaseMember || !m.founding():
	case m.connected():
		m.out.Arm(timerFounding, m.now.Mono.Add(m.foundingLimit()))
	default:
		m.stop(component.StopJoinFailed, fmt.Sprintf("the cluster was founded, and no majority of its voters %v came within %v: restart the node",
			m.footing.base, m.foundingLimit()))
	}
}
