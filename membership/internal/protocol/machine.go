// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
)

// A machine is put together first, from the core to the parts ([Machine.assemble]). Its
// step comes next: an input goes to the part that it is for, messages and timers each by
// a table ([Machine.receive], [Machine.firedOnce]). What a step did to the state is
// passed to the parts in settle.go; what concerns several parts at once is in conduct.go.

// Dependencies are the collaborators of a machine that only code can give.
type Dependencies struct {
	// Rand is the only source of randomness. It belongs to the machine.
	Rand *rand.Rand

	// Detector makes the failure detectors. See [fd.NewFactory].
	Detector fd.Factory

	// Judge is the name of a failure detector that is asked by calls to the port
	// [CallFailureDetector]. While it answers it decides in place of the detectors, which
	// learn beside it. Empty: the detectors decide.
	Judge string

	// Downing decides which nodes must go after a partition.
	Downing Downing

	// Settings are compared when a node joins, besides those of [Config]: the
	// name and the parameters of the downing strategy and whatever else the
	// program wants to be equal.
	Settings []Setting

	// Record is what the node remembers from before. With the zero Record it remembers
	// nothing, and a data id is drawn.
	Record Record

	// Bootstrap is how contact points are found, nil where the command to join lists them.
	Bootstrap *Bootstrap

	// Remember says that calls to the port [CallRemember] keep the node's [Record] on
	// disk. Otherwise the record ends with the process.
	Remember bool
}

// Downing is the downing strategy that a node begins with, see [LoadDowning], and when
// that strategy is asked.
type Downing struct {
	// Config names the strategy and says when it is asked. The times must be the
	// same on all nodes.
	Config downing.Config

	// Version and Parameters identify a strategy that is not built in, besides its name.
	Version, Parameters string

	// Decide decides at once, see [Strategy].
	Decide func(downing.View) (downing.Decision, error)

	// Misfit says what is wrong with the parameters for a cluster, see [Strategy].
	Misfit func(members []*gossip.Member) string

	// Keeps is how long a strategy keeps others out, see [Strategy].
	Keeps time.Duration

	// Class says what the strategy promises.
	Class downing.Class

	// Load is the number of this strategy, see [Strategy].
	Load uint64

	// Limit is how long an answer to a call is waited for. Zero means [CallLimitDefault].
	Limit time.Duration
}

// strategy is the strategy with which the node begins.
func (d Downing) strategy() Strategy {
	return Strategy{Decide: d.Decide, Misfit: d.Misfit, Keeps: d.Keeps, Load: d.Load, DowningStrategy: gossip.DowningStrategy{
		Name: d.Config.Strategy, Version: d.Version, Parameters: d.Parameters,
		Pure: d.Class.Pure, MajorityOnly: d.Class.MajorityOnly,
	}}
}

// CallDowning is the port of the calls for downing decisions.
const CallDowning = "downing"

// VerdictUnanswered is the verdict of a decision about downing when a strategy had no answer that counts.
const VerdictUnanswered = "unanswered"

// DowningRequest is the request of a call to the port [CallDowning].
type DowningRequest struct {
	// Strategy names the strategy that is to decide, one that the node has loaded.
	Strategy gossip.StrategyID
	// Load is the number with which the strategy was loaded, see [Strategy].
	Load uint64
	View downing.View
}

// CallLimitDefault is the limit of a call where [Downing.Limit] is zero.
const CallLimitDefault = 5 * time.Second

// Machine is the membership machine of one node. See the package documentation.
//
// The machine decides nothing by itself: each concern is a part with its own data, which
// can touch the core and the parts that it names, and nothing else. The machine gives
// each input to the part that it is for, and tells all parts, in one order, how the state
// has changed.
type Machine struct {
	*core

	surveyBuilder *surveyBuilder
	strategies    *strategies
	memory        *memory

	// How news spreads, and whose news is taken.
	gossipPeers *gossipPeers
	gossiper    *gossiper
	answers     *answers
	replies     *replies
	monitoring  *heartbeats
	relay       *standingRelay

	// Which nodes host, which must go, and what removed nodes may still do.
	resolver *resolver
	footing  *footing
	fences   *fences

	// How a node comes in, and how it goes.
	inquiry         *inquiry
	contactSearch   *contactSearch
	formation       *formation
	otherClusters   *otherClusters
	join            *joining
	admission       *admission
	gate            *gate
	leader          *leader
	leave           *leaving
	clusterShutdown *clusterShutdown
	explainer       *endExplainer

	// published is the last event about the state.
	published component.Changed
}

var _ machine.Machine = (*Machine)(nil)

// New returns the machine of a node. Self describes the node: its identity, zone,
// roles, version and services; status and up-number are ignored. The machine
// does nothing until it is fed a [Join].
func New(cfg Config, self gossip.Member, deps Dependencies) (*Machine, error) {
	if err := validate(cfg, self, deps); err != nil {
		return nil, err
	}
	if deps.Downing.Limit == 0 {
		deps.Downing.Limit = CallLimitDefault
	}
	registry, err := fd.NewRegistry(cfg.FailureDetector, deps.Detector, gossip.NodeID.Compare)
	if err != nil {
		return nil, err
	}
	if deps.Record.Data == 0 {
		deps.Record.Data = gossip.DataID(deps.Rand.Uint64() | 1)
	}
	c := newCore(cfg, self, deps)
	m := &Machine{core: c, strategies: newStrategies(c, deps.Downing.strategy())}
	c.me.Loaded = gossip.Loaded{Version: 1, Strategies: m.strategies.said()}
	m.assemble(registry, deps.Judge)
	return m, nil
}

// assemble makes the parts, from those that need only the core to those that need most
// others. A lower part that must call a higher one is given a function or a small
// interface for that.
func (m *Machine) assemble(registry *fd.Registry[gossip.NodeID], judge string) {
	c := m.core
	m.explainer = &endExplainer{}
	m.memory = newMemory(c, m.recordKept)
	m.answers = newAnswers(c)
	m.replies = newReplies(c)
	m.monitoring = newHeartbeats(c, m.answers, registry, judge)
	m.gossipPeers = &gossipPeers{core: c, monitors: m.monitoring.monitors}
	m.gossiper = newGossiper(c, m.gossipPeers, m.monitoring, m.strategies, m.explainer)
	m.resolver = &resolver{core: c, strategies: m.strategies}
	m.relay = newStandingRelay(c, m.answers, m.replies, m.strategies)
	m.footing = &footing{core: c, answers: m.answers, strategies: m.strategies, relay: m.relay}
	m.resolver.heardAll = m.footing.heardAll
	m.inquiry = &inquiry{core: c, memory: m.memory, strategies: m.strategies, footing: m.footing}
	m.otherClusters = &otherClusters{core: c, inquiry: m.inquiry, memory: m.memory}
	m.contactSearch = newContactSearch(c, m.inquiry)
	m.formation = &formation{core: c, inquiry: m.inquiry, contactSearch: m.contactSearch, memory: m.memory, strategies: m.strategies, footing: m.footing}
	m.join = &joining{
		core: c, inquiry: m.inquiry, contactSearch: m.contactSearch, formation: m.formation, memory: m.memory, otherClusters: m.otherClusters, becomeMember: m.becomeMember,
	}
	m.formation.join = m.join
	m.admission = newAdmission(c, m.inquiry, m.contactSearch, m.footing, m.strategies, m.monitoring)
	m.gate = newGate(c, m.monitoring)
	m.leader = newLeader(c, m.gate, m.answers, m.strategies, m.footing)
	m.leave = &leaving{core: c, leader: m.leader, gossiper: m.gossiper, footing: m.footing, explainer: m.explainer}
	m.clusterShutdown = &clusterShutdown{core: c}
	m.leader.exit, m.leader.survey = m.leave, m.survey
	m.fences = newFences(c, m.strategies, m.leave)
	m.surveyBuilder = &surveyBuilder{core: c, strategies: m.strategies, confirmed: m.leader.isConfirmed}
}

func validate(cfg Config, self gossip.Member, deps Dependencies) error {
	faults := []error{cfg.Validate()}
	if self.Node.IsZero() || self.Node.UID == 0 {
		faults = append(faults, fmt.Errorf("protocol: node %v has no identity", self.Node))
	}
	if deps.Record.Data != 0 {
		faults = append(faults, deps.Record.Validate())
	}
	if deps.Rand == nil || deps.Detector == nil {
		faults = append(faults, errors.New("protocol: Rand and Detector are needed"))
	}
	if err := errors.Join(deps.Downing.Config.Validate(), deps.Downing.Config.ValidateFence(cfg.Fence), deps.Downing.strategy().Validate()); err != nil {
		faults = append(faults, fmt.Errorf("protocol: downing: %w", err))
	}
	return errors.Join(faults...)
}

// Step feeds one input to the machine.
func (m *Machine) Step(now machine.Now, in machine.Input, out *machine.Outbox) {
	if m.phase == phaseStopped {
		return
	}
	m.now, m.out = now, out
	m.noticeFreeze()
	m.dispatch(in)
	m.settle()
	m.last, m.out = now, nil
}

func (m *Machine) dispatch(in machine.Input) {
	switch in := in.(type) {
	case machine.Started:
		// Nothing is done before the command to join.
	case machine.Attached:
		m.publishAgain()
	case machine.Received:
		m.receive(in.From, in.Message)
	case machine.Fired:
		m.fired(in.Timer)
	case machine.Called:
		m.callReturned(in)
	case Probed:
		m.probed(in)
	case Join:
		m.join.start(in.Seeds)
	case Discover:
		m.discover()
	case Form:
		m.formation.commandForm(in)
	case Leave:
		m.leave.commandLeave(in)
	case Prepare:
		m.clusterShutdown.command()
	case Down:
		m.resolver.commandDown(in)
	case LoadDowning:
		m.loadDowning(in)
	case component.Services:
		m.addService(in.Service)
	case component.Busy:
		m.leave.hold(in.Component)
	case component.Drained:
		m.leave.drained(in.Component)
	case PeerRefused:
		m.peerRefused(in)
	case WronglyDialled:
		m.inquiry.askBack(in.By.Address, Claim{})
	case Examine:
		m.examine(in)
	}
}

func (m *Machine) callReturned(in machine.Called) {
	switch {
	case in.ID != 0 && in.ID == m.memory.call:
		m.memory.recordWritten(in.Err)
	case m.monitoring.judge.returned(in, m.monitoring.targets):
	case m.contactSearch.returned(in):
		m.join.askAnew()
	default:
		m.resolver.downingCalled(in)
	}
}

func (m *Machine) receive(from gossip.NodeID, message any) {
	switch msg := message.(type) {
	case Heartbeat:
		m.receiveHeartbeat(from, msg)
	case HeartbeatReply:
		m.receiveHeartbeatReply(from, msg)
	case AskStanding:
		m.relay.receiveAsk(from, msg)
	case GiveStanding:
		m.receiveGiven(from, msg)
	case LendStanding:
		m.receiveLent(from, msg)
	case GossipStatus:
		m.gossiper.receiveStatus(from, msg)
	case GossipDelta:
		m.gossiper.receiveDelta(from, msg)
	case GossipState:
		m.gossiper.receiveState(from, msg)
	case InitJoin:
		m.admission.receiveInitJoin(from, msg)
	case InitJoinAck:
		m.join.receiveInitJoinAck(from, msg)
	case InitJoinNack:
		m.join.receiveInitJoinNack(from, msg)
	case AskVote:
		m.formation.receiveAskVote(from, msg)
	case Vote:
		m.formation.receiveVote(from, msg)
	case JoinRequest:
		m.admission.receiveJoinRequest(from, msg)
	case JoinRefused:
		m.join.receiveJoinRefused(from, msg)
	case Welcome:
		m.join.receiveWelcome(from, msg)
	case ExitingConfirmed:
		m.leave.receiveExitingConfirmed(from)
	case Reached:
		if m.gate.receive(from, msg) {
			m.leader.retry()
		}
	case NotMember:
		m.leave.receiveNotMember(from, msg)
	case AskDowning:
		m.resolver.receiveAskDowning(from, msg)
	case DowningAnswer:
		m.resolver.receiveDowningAnswer(from, msg)
	default:
		m.refuse(from, fmt.Sprintf("%T", message), RefusedUnknown, "message of no known type")
	}
}

// timer names the timers that exist once.
type timer uint8

const (
	timerJoin      timer = iota + 1 // The next question of a joining node.
	timerFormation                  // Votes may be asked for, or did not win.
	timerRejoin                     // A join request was not answered.
	timerGiveUp                     // A node that could not join stops.
	timerRound                      // The next repair round.
	timerPush                       // News leaves.
	timerHeartbeat                  // The next round of heartbeats.
	timerSilence                    // The next target may be due to be marked unreachable.
	timerStable                     // The view may have been stable for long enough.
	timerCall                       // A downing provider did not answer.
	timerWeaklyUp                   // Joining members may become weakly up.
	timerRemember                   // The disk did not answer.
	timerFounding                   // A founded cluster may have no majority.
	timerAskVoters                  // The voters of a cluster that may go on in place of this node's are asked.
	timerMeet                       // Nodes that should be members are asked which cluster they are in.
	timerYield                      // A node whose cluster has yielded ends.
	timerJoinBatch                  // Joining members were held back for long enough.
	timerLeave                      // Components had their time to hand over.
	timerConfirm                    // The confirmation of a leaving node is repeated.
	timerExit                       // A leaving node was not removed in time.
	timerPrune                      // Tombstones may have become old.
	timerAsk                        // A member that was asked to decide did not answer.
	timerVote                       // This node may vote.
	timerLookup                     // Contact points are looked up again.
	timerLooked                     // A lookup was not answered.
	timerDecider                    // Who decides whom to join did not answer.
	timerJudge                      // The failure detector outside of the machine did not answer.
	timerStandby                    // No relay has asked this node for too long.
)

// probeTimer is the timer of one dial-back.
type probeTimer struct{ Address gossip.Address }

// fenceTimer is the timer of one removed node.
type fenceTimer struct{ Node gossip.NodeID }

func (m *Machine) fired(t machine.Timer) {
	switch t := t.(type) {
	case probeTimer:
		m.admission.probeTimeout(t.Address)
	case fenceTimer:
		m.fences.fencePassed(t.Node)
	case blockTimer:
		m.fences.quarantine(t.Node)
	case timer:
		m.firedOnce(t)
	}
}

func (m *Machine) firedOnce(t timer) {
	switch t {
	case timerJoin:
		m.join.askSeeds()
	case timerFormation:
		m.formation.formationTimeout()
	case timerRejoin:
		m.join.retryJoin()
	case timerGiveUp:
		m.join.giveUpJoin()
	case timerRound:
		m.gossiper.round()
	case timerPush:
		m.gossiper.push()
	case timerHeartbeat:
		m.heartbeatRound()
	case timerSilence:
		m.monitoring.judgeSilence()
	case timerStable:
		m.resolver.viewStable()
	case timerCall:
		m.resolver.downingTimeout()
	case timerWeaklyUp:
		m.leader.missConvergence()
	case timerRemember:
		m.memory.recordWritten(fmt.Errorf("no answer within %v", rememberTimeout))
	case timerFounding:
		m.formation.watchFounding()
	case timerMeet:
		m.otherClusters.seekClusters()
	case timerAskVoters:
		m.otherClusters.askVoters()
	case timerYield:
		m.otherClusters.endYielded()
	case timerJoinBatch:
		m.leader.act()
	case timerLeave:
		m.leave.leaveTimeout()
	case timerConfirm:
		m.leave.confirmExit()
	case timerExit:
		m.leave.exitTimeout()
	case timerPrune:
		m.leader.prune()
	case timerAsk:
		m.resolver.askTimeout()
	case timerVote:
		m.formation.answerEarly()
	case timerLookup:
		m.contactSearch.lookUp()
	case timerLooked:
		m.contactSearch.lookupFailed(fmt.Sprintf("no answer within %v", m.contactSearch.limit))
	case timerDecider:
		m.contactSearch.deciderFailed(fmt.Errorf("no answer within %v", deciderTimeout))
	case timerJudge:
		m.monitoring.judge.late()
	case timerStandby:
		m.relay.checkRelays()
	}
}

// Refusals returns how often the machine refused something for this reason.
func (m *Machine) Refusals(r Refusal) uint64 {
	if int(r) < len(m.counts.Refused) {
		return m.counts.Refused[r]
	}
	return 0
}

// Snapshot returns the last published [component.Changed].
func (m *Machine) Snapshot() component.Changed { return m.published }

// Strategies returns the downing strategies that this node can decide by, in the
// order in which it was given them.
func (m *Machine) Strategies() []gossip.DowningStrategy {
	var all []gossip.DowningStrategy
	for _, l := range m.strategies.loaded {
		all = append(all, l.DowningStrategy)
	}
	return all
}

// Self returns the node of this machine.
func (m *Machine) Self() gossip.NodeID { return m.self }

// State returns the membership state.
func (m *Machine) State() *gossip.State { return m.state }
