// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/machine"
)

// joining is what a node without a cluster knows about its search for one.
//
//	     .---- back-off ----.
//	     v                  |
//	InitJoin to all seeds --+-- all say no, and first seed --> form a cluster
//	     |   ^
//	 ack |   | refused for now, or no answer for long
//	     v   |
//	JoinRequest to one -- Welcome --> member
//	     |
//	     '-- refused for good --> stop
type joining struct {
	seeds    []gossip.Address
	attempt  uint64        // Numbers the searches; answers to earlier ones are late.
	asked    int           // Questions asked since the last answer, for the back-off.
	target   gossip.NodeID // The member that was asked to let this node join, if any.
	cluster  gossip.ClusterID
	nacked   []gossip.Address // The seeds that know of no cluster, in this attempt.
	heard    bool             // Somebody knows of a cluster, in this attempt.
	hopeless []gossip.Address // The seeds that refuse this node for good.

	entering *gossip.State  // What this node becomes a member by, once that is remembered.
	call     machine.CallID // Which remembers it.

	joinedAt machine.Instant // When the node became a member.
}

// CallRemember is the kind of the calls that keep a [gossip.ClusterID] on disk,
// before the node becomes a member of that cluster. An answer means nothing.
const CallRemember = "remember"

// rememberLimit is how long a disk may take. Without its answer the node goes on
// as one that has no disk.
const rememberLimit = 5 * time.Second

func (j *joining) others(self gossip.Address) []gossip.Address {
	return slices.DeleteFunc(slices.Clone(j.seeds), func(a gossip.Address) bool { return a == self })
}

// mayForm tells whether this node has the privilege of the first seed node.
func (m *Machine) mayForm() bool { return m.join.seeds[0] == m.self.Address }

func (m *Machine) startJoin(seeds []gossip.Address) {
	switch {
	case m.phase == phaseMember:
		m.refuse(m.self, "Join", RefusedNotReady, "this node is a member of a cluster already")
		return
	case m.join.entering != nil:
		return // It is about to be one.
	case len(seeds) == 0:
		m.refuse(m.self, "Join", RefusedMalformed, "no seed nodes were given")
		return
	}
	m.phase = phaseJoining
	m.join = joining{attempt: m.join.attempt}
	for _, seed := range seeds {
		if !slices.Contains(m.join.seeds, seed) {
			m.join.seeds = append(m.join.seeds, seed)
		}
	}
	if m.cfg.ShutdownAfterUnsuccessfulJoin > 0 {
		m.out.Arm(timerGiveUp, m.now.Mono.Add(m.cfg.ShutdownAfterUnsuccessfulJoin))
	}
	m.search()
}

// search begins a new attempt with all seed nodes.
func (m *Machine) search() {
	j := &m.join
	j.attempt++
	j.target, j.cluster, j.nacked, j.heard = gossip.NodeID{}, gossip.ClusterID{}, nil, false
	m.out.Disarm(timerRejoin)
	if m.mayForm() {
		if len(j.others(m.self.Address)) == 0 {
			m.form("it is the only seed node")
			return
		}
		m.out.Arm(timerFormation, m.now.Mono.Add(m.cfg.SeedNodeTimeout))
	}
	m.askSeeds()
}

// askSeeds asks the open question again, and arms the timer for the next time.
func (m *Machine) askSeeds() {
	if m.phase != phaseJoining {
		return
	}
	j := &m.join
	if !j.target.IsZero() {
		m.out.Send(j.target, JoinRequest{Attempt: j.attempt, Member: m.me, Cluster: j.cluster, Settings: m.compared()})
	} else {
		for _, seed := range j.others(m.self.Address) {
			m.out.Send(gossip.NodeID{Address: seed}, InitJoin{Attempt: j.attempt})
		}
		m.complain()
	}
	m.out.Arm(timerJoin, m.now.Mono.Add(m.backOff(j.asked)))
	j.asked++
}

// complainAfter and complainEvery say how many questions to the seed nodes go
// unanswered before the decisions tell, and how many from one time to the next.
const (
	complainAfter = 2
	complainEvery = 16
)

// complain tells why this node is not a member yet.
func (m *Machine) complain() {
	j := &m.join
	if j.asked%complainEvery != complainAfter {
		return
	}
	reason := fmt.Sprintf("none of the seed nodes %v answers: is one of them running, and reachable from here?", j.others(m.self.Address))
	switch {
	case j.heard:
		reason = "a seed node knows a cluster and lets nobody join at present"
	case len(j.nacked) > 0:
		reason = fmt.Sprintf("the seed nodes %v know of no cluster; only %v may form one, when it has an answer of all or after %v",
			j.nacked, j.seeds[0], m.cfg.SeedNodeTimeout)
	}
	m.out.Decide("join", m.self.String(), "waiting", reason)
}

// backOff is the time to the next question after n of them: doubling, bounded,
// and spread by a fifth so that nodes which started together do not ask together.
func (m *Machine) backOff(n int) time.Duration {
	d := m.cfg.JoinInterval
	for ; n > 0 && d < m.cfg.JoinIntervalMax; n-- {
		d *= 2
	}
	d = min(d, m.cfg.JoinIntervalMax)
	return d + time.Duration(m.deps.Rand.Int64N(int64(d)/5+1))
}

func (m *Machine) receiveInitJoinAck(from gossip.NodeID, msg InitJoinAck) {
	j := &m.join
	if m.phase != phaseJoining || msg.Attempt > j.attempt {
		// The seeds that lost the race answer too; only what was never asked is
		// worth an event.
		if msg.Attempt > j.attempt {
			m.refuse(from, "InitJoinAck", RefusedUnsolicited, "no such question was asked")
		}
		return
	}
	if msg.Attempt < j.attempt || !j.target.IsZero() || j.entering != nil {
		return
	}
	j.target, j.cluster, j.asked, j.heard = from, msg.Cluster, 0, true
	m.out.Disarm(timerFormation)
	m.out.Arm(timerRejoin, m.now.Mono.Add(m.cfg.RetryUnsuccessfulJoinAfter))
	m.askSeeds()
}

func (m *Machine) receiveInitJoinNack(from gossip.NodeID, msg InitJoinNack) {
	j := &m.join
	if m.phase != phaseJoining || msg.Attempt != j.attempt || !slices.Contains(j.seeds, from.Address) {
		if msg.Attempt > j.attempt {
			m.refuse(from, "InitJoinNack", RefusedUnsolicited, "no such question was asked")
		}
		return
	}
	if msg.Member {
		j.heard = true
		return
	}
	if !slices.Contains(j.nacked, from.Address) {
		j.nacked = append(j.nacked, from.Address)
	}
	if m.mayForm() && !j.heard && len(j.nacked) == len(j.others(m.self.Address)) {
		m.form("no other seed node knows of a cluster")
	}
}

// formationTimeout is the first seed node's licence to form a cluster without
// having heard from every seed node.
func (m *Machine) formationTimeout() {
	if m.phase != phaseJoining || !m.join.target.IsZero() {
		return
	}
	if m.join.heard || len(m.join.hopeless) > 0 {
		m.search()
		return
	}
	m.form(fmt.Sprintf("no other seed node knew of a cluster within %v", m.cfg.SeedNodeTimeout))
}

// retryJoin gives up the member that was asked and asks the seed nodes again.
func (m *Machine) retryJoin() {
	if m.phase != phaseJoining {
		return
	}
	m.out.Decide("join", m.join.target.String(), "retry",
		fmt.Sprintf("the member did not let this node join within %v", m.cfg.RetryUnsuccessfulJoinAfter))
	m.search()
}

func (m *Machine) giveUpJoin() {
	if m.phase == phaseJoining {
		m.stop(StopJoinFailed, fmt.Sprintf("no cluster could be joined within %v", m.cfg.ShutdownAfterUnsuccessfulJoin))
	}
}

func (m *Machine) receiveJoinRefused(from gossip.NodeID, msg JoinRefused) {
	if m.phase == phaseJoining && m.join.entering != nil {
		return // Late: another member was asked again, or the same.
	}
	if m.phase != phaseJoining || from != m.join.target || msg.Attempt != m.join.attempt {
		m.refuse(from, "JoinRefused", RefusedUnsolicited, "no such question was asked")
		return
	}
	m.refuseSettings(from, "JoinRequest", msg.Refusal, msg.Reason, msg.Differences)
	switch {
	case !msg.Retry:
		m.stop(StopRefused, msg.Reason)
	case msg.Refusal == RefusedPredecessor || msg.Refusal == RefusedDialBack:
		// The same member is asked again, by the timer that is armed.
	default:
		// Another seed may take this node at once; the back-off goes on.
		m.join.target = gossip.NodeID{}
		m.out.Disarm(timerRejoin)
	}
}

func (m *Machine) receiveWelcome(from gossip.NodeID, msg Welcome) {
	if from != m.join.target || msg.Attempt != m.join.attempt {
		m.refuse(from, "Welcome", RefusedUnsolicited, "this node did not ask the sender to let it join")
		return
	}
	if m.phase != phaseJoining || m.join.entering != nil {
		return // The answer to a repeated question.
	}
	me := msg.State.Member(m.self)
	switch {
	case me == nil || me.Status == gossip.Down:
		m.refuse(from, "Welcome", RefusedMalformed, "this node is not a member in the state that came with it")
		return
	case msg.State.Cluster() != m.join.cluster:
		m.refuse(from, "Welcome", RefusedCluster, fmt.Sprintf("cluster %v was expected", m.join.cluster))
		return
	}
	if len(msg.Warnings) > 0 {
		m.out.Publish(SettingsDiffer{Peer: from, Differences: msg.Warnings})
	}
	m.out.Decide("join", m.self.String(), "joined", "welcomed by "+from.String())
	m.enter(msg.State.See(m.self))
}

// form makes this node the first member of a new cluster.
func (m *Machine) form(why string) {
	if m.join.entering != nil {
		return // It does already.
	}
	cluster := gossip.ClusterID{Born: max(m.now.Wall.UnixMilli(), m.deps.Born), Nonce: m.deps.Rand.Uint64() | 1}
	m.out.Decide("join", m.self.String(), fmt.Sprintf("formed cluster %d-%x", cluster.Born, cluster.Nonce), why)
	m.enter(m.state.Edit(m.self, func(e *gossip.Edit) {
		e.SetCluster(cluster)
		e.Join(m.me)
	}))
}

// enter makes this node a member by a state. The birth of the cluster is on disk
// before: epochs that begin with it may be used at once.
func (m *Machine) enter(state *gossip.State) {
	if !m.deps.Remember {
		m.becomeMember(state)
		return
	}
	m.endSearch()
	j := &m.join
	j.entering, j.call = state, m.nextCall()
	m.out.Add(machine.Call{ID: j.call, Kind: CallRemember, Request: state.Cluster(), Limit: rememberLimit})
	m.out.Arm(timerRemember, m.now.Mono.Add(rememberLimit))
}

// remembered ends the wait for the disk. A disk that is full or cannot be written
// keeps no node out of its cluster.
func (m *Machine) remembered(err error) {
	if m.phase != phaseJoining || m.join.entering == nil {
		return
	}
	if err != nil {
		m.out.Decide("join", m.self.String(), "not remembered",
			fmt.Sprintf("epochs may go backwards when all nodes start anew and their clocks were set back: %v", err))
	}
	m.out.Disarm(timerRemember)
	m.becomeMember(m.join.entering)
	m.join.entering, m.join.call = nil, 0
}

// endSearch stops asking.
func (m *Machine) endSearch() {
	for _, t := range []timer{timerJoin, timerFormation, timerRejoin, timerGiveUp} {
		m.out.Disarm(t)
	}
}

func (m *Machine) becomeMember(state *gossip.State) {
	m.endSearch()
	m.phase, m.state, m.join.joinedAt = phaseMember, state, m.now.Mono
	// Services that were announced after this node had asked are not in the
	// request, and so not in the state that answers it.
	m.edit(func(e *gossip.Edit) {
		for _, s := range m.me.Services {
			e.AddService(s)
		}
	})
	m.answerHopefuls()
	m.out.Arm(timerRound, m.now.Mono.Add(m.cfg.GossipInterval))
	m.out.Arm(timerHeartbeat, m.now.Mono.Add(m.cfg.FailureDetector.HeartbeatInterval))
	m.out.Arm(timerPrune, m.now.Mono.Add(pruneInterval))
}

// peerRefused is told when a peer's transport refuses this node. That this node was
// removed is believed from a current member alone, which has the uid that was
// dialled: a state that this node holds vouches for it, not its own word.
func (m *Machine) peerRefused(in PeerRefused) {
	if in.Peer.Address == m.self.Address {
		m.refuse(in.Peer, "connection", RefusedUnsolicited, "no node refuses itself, somebody speaks in its name: "+in.Reason)
		return
	}
	m.refuse(in.Peer, "connection", RefusedByPeer, in.Reason)
	switch {
	case m.phase == phaseMember && in.Removed:
		m.receiveNotMember(in.Peer, NotMember{Node: m.self, Status: gossip.Removed})
	case m.phase == phaseJoining && (in.Final || in.Removed):
		// Whoever was removed before its welcome arrived is never taken again: only
		// the next incarnation is.
		m.noteHopeless(in)
	}
}

// noteHopeless stops the node when no seed node will ever take it. As long as
// one may, a single wrong address in the list does no harm. A refusal counts for the
// address that was dialled, and for no other.
func (m *Machine) noteHopeless(in PeerRefused) {
	j := &m.join
	others := j.others(m.self.Address)
	if slices.Contains(others, in.Peer.Address) && !slices.Contains(j.hopeless, in.Peer.Address) {
		j.hopeless = append(j.hopeless, in.Peer.Address)
	}
	if len(others) > 0 && len(j.hopeless) == len(others) {
		m.stop(StopRefused, in.Reason)
	}
}

// stop ends the machine.
func (m *Machine) stop(reason StopReason, detail string) {
	if m.phase == phaseStopped {
		return
	}
	m.phase = phaseStopped
	m.publishStanding(0)
	m.out.Decide("stop", m.self.String(), reason.String(), detail)
	m.out.Publish(Stopping{Reason: reason, Detail: detail})
}

// addService records that a service runs on this node.
func (m *Machine) addService(s machine.Service) {
	if slices.Contains(m.me.Services, uint16(s)) {
		return
	}
	// A new slice: members that were handed out share the old one.
	m.me.Services = append(slices.Clone(m.me.Services), uint16(s))
	slices.Sort(m.me.Services)
	if m.phase == phaseMember {
		m.edit(func(e *gossip.Edit) { e.AddService(uint16(s)) })
	}
}
