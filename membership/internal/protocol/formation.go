// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"net/netip"
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
// The nodes that vote and the nodes that host in another cluster share a voter. If that
// voter voted first, it enters no cluster of a lower birth; if it was in the other
// cluster first, it has ended, and votes only when every node that hosts by its answers
// has stopped.

// formation founds a cluster by a vote of the nodes that are in none.
type formation struct {
	*core

	inquiry       *inquiry
	contactSearch *contactSearch
	memory        *memory
	strategies    *strategies
	footing       *footing
	join          entrance

	// winning says that the nodes that answer win in the basis, and did so when that was
	// last looked at.
	winning bool

	// tryAt is when this node asks for votes although a node with a lower address could.
	tryAt machine.Instant

	// holdUntil is until when this node, after a vote, neither asks for votes nor gives
	// any, so that one of two candidates that ask at once gets through.
	holdUntil machine.Instant

	// vote is the last birth that this process voted for; owed are the votes that wait
	// until the promise is on the disk; early are the questions for a vote that this node
	// may not give yet.
	vote  int64
	owed  []owedVote
	early []earlyAsk

	// election is under way while this node is a candidate; nil: it is none.
	election *election
}

// entrance is what formation needs of [joining].
type entrance interface {
	// isTaken tells whether a member was asked to let this node join, or has let it in.
	isTaken() bool
	// isEntering tells whether this node is about to be a member.
	isEntering() bool
	// enter makes this node a member by a state.
	enter(*gossip.State)
}

// earlyAsk is a question for a vote that came before this node may vote. It is answered
// when the node may: nodes of a new cluster do not start in the same moment, and a
// candidate that is refused lets others go first for seconds.
type earlyAsk struct {
	from gossip.NodeID
	ask  AskVote
}

// owedVote is a vote that is sent as soon as its promise is on the disk.
type owedVote struct {
	to    gossip.NodeID
	birth int64
}

// election is the attempt of this node, as a candidate, to found a cluster of a birth.
type election struct {
	birth   int64
	basis   Record
	asked   bool
	ballots []ballot // In the order in which the votes came.
	open    int      // Votes that were asked for and not answered.
	until   machine.Instant
	won     bool // The votes win; open ones are waited for until then.
}

// ballot is a node that speaks for voters of the basis, with its record.
type ballot struct {
	node   gossip.NodeID
	record Record
}

// restart begins a new search. The vote of this node stays given.
func (f *formation) restart() {
	f.winning, f.tryAt, f.owed, f.early, f.election = false, 0, nil, nil, nil
}

// endElection ends this node's election, if one is under way, because the node joins a
// cluster instead.
func (f *formation) endElection() { f.election = nil }

// end drops everything about founding a cluster, because this node enters one.
func (f *formation) end() { f.election, f.owed, f.early = nil, nil, nil }

// putOff keeps a question for later, at most one of each node.
func (f *formation) putOff(from gossip.NodeID, ask AskVote) {
	f.early = slices.DeleteFunc(f.early, func(e earlyAsk) bool { return e.from.Address == from.Address })
	f.early = append(f.early, earlyAsk{from, ask})
}

// hasVotedFor tells whether the last birth that this process voted for is this one.
func (f *formation) hasVotedFor(birth int64) bool { return f.vote != 0 && f.vote == birth }

// winsIn reports whether ballots win in every set of a basis. Of listed seed nodes more
// than half are needed. With a strategy that may keep a minority, all remembered voters
// are, since fewer of them may have gone on.
func (f *formation) winsIn(basis Record, ballots []ballot) bool {
	spoken, voters := map[gossip.NodeID]bool{}, newVoterIndex(basis.everybody())
	for _, b := range ballots {
		for _, v := range voters.of(b.node.Address, b.record) {
			spoken[v] = true
		}
	}
	in := func(n gossip.NodeID) bool { return spoken[n] }
	switch {
	case !basis.Remembers():
		return 2*len(spoken) > len(basis.Voters)
	case !f.strategies.majorityOnly():
		return !slices.ContainsFunc(nodesOf(basis.Voters), func(n gossip.NodeID) bool { return !in(n) })
	default:
		return basis.base().Wins(in)
	}
}

// collectBallots returns this node and the related nodes that answer that they are in no cluster,
// as far as they speak for voters of a basis. It returns false if some node answers that it
// is in a related cluster: then there may be a cluster to join, or one that ends.
func (f *formation) collectBallots(basis Record) ([]ballot, bool) {
	all := []ballot{{f.self, f.memory.wanted}}
	for _, a := range f.inquiry.fresh() {
		switch {
		case f.inquiry.mayJoin(a):
			return nil, false
		case !a.isMember() && a.related:
			all = append(all, ballot{a.from, a.claim.Record})
		}
	}
	voters := newVoterIndex(basis.everybody())
	return slices.DeleteFunc(all, func(b ballot) bool { return len(voters.of(b.node.Address, b.record)) == 0 }), true
}

// couldFound reports whether the nodes that answer, all in no cluster, win in the basis:
// they vote, or wait until they may.
func (f *formation) couldFound() bool {
	basis := f.inquiry.basis()
	ballots, complete := f.collectBallots(basis)
	return complete && f.winsIn(basis, ballots)
}

// oldEnoughAt is when this process may vote: by then every node that hosts by answers of the
// process's predecessor has stopped.
func (f *formation) oldEnoughAt() machine.Instant {
	wait := f.cfg.Fence
	if !f.strategies.majorityOnly() {
		wait = f.margin()
		if f.isMany(max(len(f.kept.Voters), len(f.kept.Previous))) {
			wait = f.marginOfMany()
		}
	}
	return f.inquiry.began.Add(byAnyClock(wait))
}

// considerFounding asks for votes if their time has come, or arms the timer for it.
func (f *formation) considerFounding() {
	if f.phase != phaseJoining || f.join.isTaken() || f.election != nil {
		return
	}
	basis := f.inquiry.basis()
	ballots, free := f.collectBallots(basis)
	mine := slices.ContainsFunc(ballots, func(b ballot) bool { return b.node == f.self })
	if !free || !mine || !f.winsIn(basis, ballots) || !f.mayFound(basis) {
		f.winning = false
		return
	}
	at := max(f.now.Mono, f.holdUntil, f.tryAt)
	switch alone := len(basis.Voters) == 1 && basis.Settled(); {
	case !alone:
		at = max(at, f.oldEnoughAt())
	case f.inquiry.isAlone():
		at = max(at, f.listensUntil())
	case len(f.inquiry.whomToAsk()) > 0:
		// No cluster can have gone on without this node, but an operator may have founded one.
		at = max(at, f.inquiry.began.Add(2*f.cfg.JoinInterval))
	}
	if !f.memory.wanted.Yielded.IsZero() {
		at = max(at, f.inquiry.began.Add(yieldedWait))
	}
	if rank := f.rank(ballots); rank > 0 {
		if !f.winning {
			f.tryAt = at.Add(f.electionTimeout(rank))
		}
		at = max(at, f.tryAt)
	}
	f.winning = true
	if at > f.now.Mono {
		f.out.Arm(timerFormation, at)
		return
	}
	f.becomeCandidate(basis)
}

const (
	// aloneWait is how long a node that lists itself alone listens, before it founds, whether
	// members know its address: those ask there every second, or every five.
	aloneWait = 6 * time.Second

	// knownWait is how long such a node goes on listening after it has heard of one.
	knownWait = 11 * time.Second

	// yieldedWait is how long a node whose cluster has yielded asks for the one that goes on.
	yieldedWait = 4 * time.Second
)

// listensUntil is when a node that lists itself alone may found. On a loopback address it is
// no member of any other cluster.
func (f *formation) listensUntil() machine.Instant {
	if ip, err := netip.ParseAddr(f.self.Address.Host); err == nil && ip.IsLoopback() || f.self.Address.Host == "localhost" {
		return f.now.Mono
	}
	until := f.inquiry.began.Add(aloneWait)
	if f.inquiry.known != 0 {
		until = max(until, f.inquiry.known.Add(knownWait))
	}
	return until
}

// mayFound reports whether what discovery has found is enough to found a cluster upon,
// where nobody remembers one. If time alone is missing, it arms the timer.
func (f *formation) mayFound(basis Record) bool {
	switch {
	case basis.Remembers():
		return true
	case f.inquiry.unrelatedContact():
		return false
	}
	ok, at := f.contactSearch.allows()
	if !ok && at > f.now.Mono {
		f.out.Arm(timerFormation, at)
	}
	return ok
}

// rank is the number of nodes in ballots with a lower address than this one.
func (f *formation) rank(ballots []ballot) int {
	if f.contactSearch.isNeeded() {
		return f.contactSearch.rank(len(ballots))
	}
	n := 0
	for _, b := range ballots {
		if b.node.Compare(f.self) < 0 {
			n++
		}
	}
	return n
}

// electionTimeout is the random time for which a node of a rank lets others go first, as
// in Raft. It grows with the rank, so that many candidates do not keep each other from winning
// again and again.
func (f *formation) electionTimeout(rank int) time.Duration {
	longest := int64(4 * f.cfg.JoinInterval)
	return time.Duration(1+min(rank, maxRank))*2*f.cfg.JoinInterval + time.Duration(f.deps.Rand.Int64N(longest))
}

// maxRank bounds for how long a node waits until it tries in place of nodes with lower
// addresses.
const maxRank = 10

// voteHold is how long a vote binds.
func (f *formation) voteHold() time.Duration { return 4 * f.cfg.JoinInterval }

// becomeCandidate begins an election. The promise of the birth is this node's vote for itself.
func (f *formation) becomeCandidate(basis Record) {
	birth := f.inquiry.nextBirth()
	if birth > gossip.LatestBirth {
		return // Waiting tells the reason.
	}
	f.election = &election{birth: birth, basis: basis, until: f.now.Mono.Add(f.voteHold())}
	f.vote = birth
	f.out.Arm(timerFormation, f.election.until)
	f.promise(birth)
	f.askVotes()
}

// promise has the record hold that this node enters and votes for no cluster of a lower birth.
func (f *formation) promise(birth int64) {
	r := f.memory.wanted
	r.Promise = max(r.Promise, birth)
	f.memory.remember(r)
}

// askVotes asks for votes once the promise of this node's election is on disk.
func (f *formation) askVotes() {
	c := f.election
	if c == nil || c.asked || f.kept.Promise < c.birth {
		return
	}
	c.asked = true
	voters := newVoterIndex(c.basis.everybody())
	for _, a := range f.inquiry.fresh() {
		if len(voters.of(a.from.Address, a.claim.Record)) > 0 && !a.isMember() && a.related {
			c.open++
			f.out.Send(a.from, AskVote{Birth: c.birth, Basis: c.basis.Stamp, Settled: c.basis.Settled(), Claim: f.inquiry.claim()})
		}
	}
	f.count(ballot{f.self, f.kept})
}

// count takes a vote, and founds the cluster if the votes win.
func (f *formation) count(b ballot) {
	c := f.election
	c.ballots = append(c.ballots, b)
	if !c.won && f.winsIn(c.basis, c.ballots) {
		// A node whose vote is under way should not have to wait until the others are up.
		c.won, c.until = true, f.now.Mono.Add(f.cfg.PushInterval)
		f.out.Arm(timerFormation, c.until)
	}
	f.foundIfWon()
}

// foundIfWon founds the cluster when the votes win and no further vote is to come. This
// node's own vote is still for itself: a candidate votes for no other, see
// [formation.receiveAskVote].
func (f *formation) foundIfWon() {
	c := f.election
	_, free := f.collectBallots(c.basis)
	switch {
	case !free || !f.mayFound(c.basis):
		// Another cluster was founded meanwhile: it is joined, or it ends. Or the contact points
		// are others by now.
		f.giveUpElection()
	case c.won && (c.open == 0 || f.now.Mono >= c.until):
		f.found(c, "they answered that they are in no cluster, and gave their votes")
	case !c.won && c.open == 0:
		f.giveUpElection() // No node is left that could still vote.
	}
}

// letOthersTry makes a node that has voted wait for its rank again, counted from the end
// of its vote. Otherwise all voters of a candidate that failed would become candidates in the
// moment in which their votes end, and keep each other from winning, again and again.
func (f *formation) letOthersTry() {
	ballots, _ := f.collectBallots(f.inquiry.basis())
	if rank := f.rank(ballots); rank > 0 {
		f.tryAt = f.holdUntil.Add(f.electionTimeout(rank))
	}
}

// giveUpElection ends the election without a cluster, and lets other nodes go first.
func (f *formation) giveUpElection() {
	basis := f.election.basis
	ballots, _ := f.collectBallots(basis)
	f.election, f.winning = nil, true
	f.tryAt = f.now.Mono.Add(f.electionTimeout(f.rank(ballots)))
	f.out.Arm(timerFormation, f.tryAt)
}

// formationTimeout ends an election that was not won in time, or begins one.
func (f *formation) formationTimeout() {
	if f.election != nil && f.election.won {
		f.foundIfWon()
		return
	}
	if f.election != nil && f.now.Mono >= f.election.until {
		f.giveUpElection()
		return
	}
	f.considerFounding()
}

// receiveAskVote gives this node's vote to a cluster that is to be founded, once the
// promise is on disk. The conditions are those of a vote in Raft, and that no node hosts
// any more by what a predecessor of this process has answered.
func (f *formation) receiveAskVote(from gossip.NodeID, msg AskVote) {
	own := f.memory.wanted
	refuse := func(format string, values ...any) {
		f.out.Send(from, Vote{Birth: msg.Birth, Reason: cutText(fmt.Sprintf(format, values...))})
	}
	switch {
	case f.phase != phaseJoining || !f.inquiry.asks(from.Address):
		f.refuse(from, "AskVote", RefusedUnsolicited, "this node looks for no cluster, or not at this address")
	case !areRelated(f.inquiry.claim(), f.self.Address, msg.Claim, from.Address):
		refuse("%s", unrelated(from.Address, msg.Claim, f.inquiry.claim()))
	case f.join.isTaken():
		refuse("it is about to join a cluster")
	case msg.Birth <= own.Promise || msg.Birth > gossip.LatestBirth:
		refuse("it has promised birth %d to another one", own.Promise)
	case own.Stamp.Compare(msg.Basis) > 0:
		refuse("it remembers newer voters, of %v", own.Stamp)
	case own.Stamp == msg.Basis && own.Remembers() && own.Settled() && !msg.Settled:
		refuse("it knows that the last change of voters is over")
	case f.now.Mono < f.oldEnoughAt() && f.oldEnoughAt() < f.now.Mono.Add(f.voteHold()):
		f.putOff(from, msg) // The candidate waits for as long as that.
		f.out.Arm(timerVote, f.oldEnoughAt())
	case f.now.Mono < f.oldEnoughAt():
		refuse("it has just started: who hosts by its last answers must have stopped first")
	case f.now.Mono < f.holdUntil || f.election != nil:
		refuse("it has just voted for another one")
	default:
		f.vote, f.holdUntil = msg.Birth, f.now.Mono.Add(f.voteHold())
		f.letOthersTry()
		f.owed = append(f.owed, owedVote{from, msg.Birth})
		f.promise(msg.Birth)
		f.castVotes()
	}
}

// answerEarly answers the questions that came before this node may vote.
func (f *formation) answerEarly() {
	early := f.early
	f.early = nil
	for _, e := range early {
		if f.phase == phaseJoining {
			f.receiveAskVote(e.from, e.ask)
		}
	}
}

// castVotes sends the votes whose promise is on disk.
func (f *formation) castVotes() {
	f.owed = slices.DeleteFunc(f.owed, func(o owedVote) bool {
		if f.kept.Promise < o.birth {
			return false
		}
		f.out.Send(o.to, Vote{Birth: o.birth, Granted: o.birth == f.vote})
		return true
	})
}

// receiveVote counts a vote.
func (f *formation) receiveVote(from gossip.NodeID, msg Vote) {
	c := f.election
	a, known := f.inquiry.of(from.Address)
	switch {
	case f.phase != phaseJoining || c == nil || msg.Birth != c.birth || !known || a.from != from:
		return // Late: the election is over, or the voter has been started again.
	case slices.ContainsFunc(c.ballots, func(b ballot) bool { return b.node == from }):
	case !msg.Granted:
		c.open--
		f.out.Decide("join", from.String(), "no vote", msg.Reason)
		f.foundIfWon()
	default:
		c.open--
		f.count(ballot{from, a.claim.Record})
	}
}

// found makes this node the first member of a new cluster with the voters of the basis: a
// voter that voted gets its new node id, each other one counts as a lost vote.
func (f *formation) found(c *election, why string) gossip.ClusterID {
	config := c.config()
	config.By = f.self.UID
	cluster := gossip.ClusterID{Born: c.birth, Nonce: f.deps.Rand.Uint64() | 1, Origin: c.basis.Cluster.Lineage()}
	f.out.Decide("join", f.self.String(), fmt.Sprintf("formed cluster %v", cluster),
		fmt.Sprintf("%d of %d voters: %s", len(c.ballots), len(c.basis.Voters), why))
	if !c.basis.Remembers() {
		f.warnOfSilent(c)
	}
	f.join.enter(f.state.Edit(f.self, func(e *gossip.Edit) {
		e.SetCluster(cluster)
		e.Join(f.me)
		e.Found(config)
	}))
	return cluster
}

// warnOfSilent tells which listed nodes were silent when a cluster was founded upon the list:
// one that still runs there, and is cut off, is not seen.
func (f *formation) warnOfSilent(c *election) {
	var silent []gossip.Address
	for _, v := range c.basis.Voters {
		if _, heard := f.inquiry.of(v.Node.Address); !heard && v.Node.Address != f.self.Address && !v.isAbsent() {
			silent = append(silent, v.Node.Address)
		}
	}
	if len(silent) > 0 {
		f.out.Decide("join", f.self.String(), "listed nodes silent", cutText(fmt.Sprintf("%v: if a cluster runs there, there are two now", silent)))
		f.out.Publish(SilentSeeds{Addresses: silent})
	}
}

// config returns the voters with which the cluster begins.
func (c *election) config() gossip.Voters {
	var config gossip.Voters
	config.Voters, config.Data = c.incarnate(c.basis.Voters)
	if !c.basis.Settled() {
		config.Previous, config.PreviousData = c.incarnate(c.basis.Previous)
	}
	return config
}

// incarnate replaces voters by the nodes that voted for them.
func (c *election) incarnate(voters []Voter) ([]gossip.NodeID, []gossip.DataID) {
	now, index := slices.Clone(voters), newVoterIndex(voters)
	for _, b := range c.ballots {
		for _, spoken := range index.of(b.node.Address, b.record) {
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

// commandForm founds a cluster by command of an operator, with this node as its only
// voter. It is refused while a member with standing answers.
func (f *formation) commandForm(in Form) {
	if f.phase != phaseJoining || f.join.isEntering() {
		f.refuseForm(in, f.self, "this node is not waiting for a cluster")
		return
	}
	for _, a := range f.inquiry.fresh() {
		if a.claim.Standing && f.inquiry.mayJoin(a) {
			f.refuseForm(in, a.from, fmt.Sprintf("%v is a member of a cluster that goes on, which this node will join", a.from))
			return
		}
	}
	birth := f.inquiry.nextBirth()
	if birth > gossip.LatestBirth {
		f.refuseForm(in, f.self, noBirthLeft)
		return
	}
	basis := f.inquiry.basis()
	c := &election{
		birth: birth, ballots: []ballot{{f.self, f.memory.wanted}},
		basis: Record{Stamp: basis.Stamp, Cluster: basis.Cluster, Voters: []Voter{{Node: f.self, Data: f.memory.wanted.Data}}},
	}
	cluster := f.found(c, "an operator asked for it; whatever other voters know is given up")
	f.out.Publish(FormAnswered{ID: in.ID, Cluster: cluster})
}

// refuseForm tells an operator why no cluster is founded.
func (f *formation) refuseForm(in Form, because gossip.NodeID, reason string) {
	f.refuse(because, "Form", RefusedNotReady, reason)
	f.out.Publish(FormAnswered{ID: in.ID, Reason: reason})
}

// watchFounding ends this node if no majority of the voters upon which its cluster was founded
// comes within the limit.
func (f *formation) watchFounding() {
	switch {
	case f.phase != phaseMember || !f.founding():
	case f.footing.connected():
		f.out.Arm(timerFounding, f.now.Mono.Add(f.foundingLimit()))
	default:
		f.stop(component.StopJoinFailed, fmt.Sprintf("the cluster was founded, and no majority of its voters %v came within %v: restart the node",
			f.surveyed.base, f.foundingLimit()))
	}
}
