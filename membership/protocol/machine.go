// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
)

// Deps are the collaborators of a machine, which only code can give.
type Deps struct {
	// Rand is the only source of randomness. It belongs to the machine.
	Rand *rand.Rand

	// Detector makes the failure detectors. See [fd.NewFactory].
	Detector fd.Factory

	// Downing decides who must go after a partition.
	Downing Downing

	// Settings are compared when a node joins, besides those of [Config]: the
	// name and the parameters of the downing strategy and whatever else the
	// program wants to be equal.
	Settings []Setting

	// Record is what the node remembers. The zero Record is nothing: a data id is
	// drawn.
	Record Record

	// Remember says that calls of kind [CallRemember] keep the node's [Record].
	// Else it ends with the process.
	Remember bool
}

// Downing is the downing strategy with which a node begins, see [LoadDowning], and
// when it is asked.
type Downing struct {
	// Config names the strategy and says when it is asked. The times must be the
	// same on all nodes.
	Config downing.Config

	// Version and Parameters identify the strategy further, where it is not
	// built in.
	Version, Parameters string

	// Decide is that of [Strategy].
	Decide func(downing.View) (downing.Decision, error)

	// Class says what the strategy promises.
	Class downing.Class

	// Load is that of [Strategy].
	Load uint64

	// Limit is the longest time for which an answer to a call is waited for.
	// Zero: [CallLimitDefault].
	Limit time.Duration
}

// strategy is the strategy with which the node begins.
func (d Downing) strategy() Strategy {
	return Strategy{Decide: d.Decide, Load: d.Load, DowningStrategy: gossip.DowningStrategy{
		Name: d.Config.Strategy, Version: d.Version, Parameters: d.Parameters,
		Pure: d.Class.Pure, MajorityOnly: d.Class.MajorityOnly,
	}}
}

// CallDowning is the kind of the calls for downing decisions.
const CallDowning = "downing"

// DowningRequest is the request of a call of kind [CallDowning].
type DowningRequest struct {
	// Strategy names the strategy that is to decide, among those that the node has
	// loaded.
	Strategy gossip.StrategyID
	// Load is the number with which it was loaded, see [Strategy].
	Load uint64
	View downing.View
}

// CallLimitDefault is [Downing.Limit] where that is zero.
const CallLimitDefault = 5 * time.Second

// Machine is the membership machine of one node. See the package documentation.
type Machine struct {
	cfg      Config
	deps     Deps
	self     gossip.NodeID
	me       gossip.Member
	settings []Setting

	// Of the current step only.
	now machine.Now
	out *machine.Outbox

	phase   phase
	state   *gossip.State
	settled *gossip.State // The state that the last settling looked at.

	surveyed *gossip.State   // The state that leader, convergence and base follow from.
	lost     []gossip.NodeID // Its unreachable members, sorted.
	last     machine.Now     // The time of the last step.
	refused  [RefusalLast + 1]uint64
	counts   Counts

	memory     memory
	join       joining
	meeting    meeting
	admission  admission
	spread     spreading
	contacts   contacts
	beat       heartbeats
	footing    footing
	lead       leading
	links      linkage
	gate       gate
	electorate electorate
	side       siding

	strategies strategies
	exit       leaving
	ending     ending
	fences     fencing
	published  component.Changed
	calls      machine.CallID // The number of the last call.
}

type phase uint8

const (
	phaseIdle    phase = iota // Not asked to join yet.
	phaseJoining              // Looking for a cluster.
	phaseMember               // In a cluster, from joining to exiting.
	phaseStopped              // Said Stopping; nothing happens any more.
)

var _ machine.Machine = (*Machine)(nil)

// New returns the machine of a node. Self describes the node: its identity, zone,
// roles, version and services; status and up-number are ignored. The machine
// does nothing until it is fed a [Join].
func New(cfg Config, self gossip.Member, deps Deps) (*Machine, error) {
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
	m := &Machine{cfg: cfg, deps: deps, self: self.Node, me: self}
	m.settings = sortedSettings(slices.Concat(cfg.settings(), downingSettings(deps.Downing), deps.Settings))
	m.strategies.init(deps.Downing.strategy())
	if deps.Record.Data == 0 {
		deps.Record.Data = gossip.DataID(deps.Rand.Uint64() | 1)
	}
	m.memory = memory{durable: deps.Remember, kept: deps.Record, wanted: deps.Record}
	m.me.Status, m.me.UpNumber, m.me.Data = gossip.Joining, 0, deps.Record.Data
	m.me.Loaded = gossip.Loaded{Version: 1, Strategies: m.strategies.said()}
	m.me.Settings = settingsDigest(m.settings)
	m.state = gossip.New(gossip.ClusterID{})
	m.settled = m.state
	m.admission.init()
	m.spread.init()
	m.beat.init(registry)
	m.footing.init()
	m.lead.init()
	m.gate.init()
	m.exit.init()
	m.fences.init()
	return m, nil
}

func validate(cfg Config, self gossip.Member, deps Deps) error {
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
		m.startJoin(in.Seeds)
	case Form:
		m.commandForm(in)
	case Leave:
		m.commandLeave(in.Address)
	case Down:
		m.commandDown(in.Address)
	case LoadDowning:
		m.loadDowning(in)
	case component.Services:
		m.addService(in.Service)
	case component.Busy:
		m.hold(in.Component)
	case component.Drained:
		m.stopped(in.Component)
	case PeerRefused:
		m.peerRefused(in)
	case Examine:
		m.examine(in)
	}
}

// nextCall numbers a call.
func (m *Machine) nextCall() machine.CallID {
	m.calls++
	return m.calls
}

func (m *Machine) callReturned(in machine.Called) {
	if in.ID != 0 && in.ID == m.memory.call {
		m.recordWritten(in.Err)
		return
	}
	m.downingCalled(in)
}

func (m *Machine) receive(from gossip.NodeID, message any) {
	switch msg := message.(type) {
	case Heartbeat:
		m.receiveHeartbeat(from, msg)
	case HeartbeatReply:
		m.receiveHeartbeatReply(from, msg)
	case GossipStatus:
		m.receiveStatus(from, msg)
	case GossipDelta:
		m.receiveDelta(from, msg)
	case GossipState:
		m.receiveState(from, msg)
	case InitJoin:
		m.receiveInitJoin(from, msg)
	case InitJoinAck:
		m.receiveInitJoinAck(from, msg)
	case InitJoinNack:
		m.receiveInitJoinNack(from, msg)
	case AskVote:
		m.receiveAskVote(from, msg)
	case Vote:
		m.receiveVote(from, msg)
	case JoinRequest:
		m.receiveJoinRequest(from, msg)
	case JoinRefused:
		m.receiveJoinRefused(from, msg)
	case Welcome:
		m.receiveWelcome(from, msg)
	case ExitingConfirmed:
		m.receiveExitingConfirmed(from)
	case Reached:
		m.receiveReached(from, msg)
	case NotMember:
		m.receiveNotMember(from, msg)
	case AskDowning:
		m.receiveAskDowning(from, msg)
	case DowningAnswer:
		m.receiveDowningAnswer(from, msg)
	default:
		m.refuse(from, fmt.Sprintf("%T", message), RefusedUnknown, "message of no known kind")
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
	timerSilence                    // The next verdict may turn.
	timerStable                     // The view may have been stable for long enough.
	timerCall                       // A downing provider did not answer.
	timerWeaklyUp                   // Joining members may become weakly up.
	timerRemember                   // The disk did not answer.
	timerFounding                   // A founded cluster may have no majority.
	timerMeet                       // Others are asked which cluster they are in.
	timerYield                      // A node whose cluster has yielded ends.
	timerWave                       // Joining members were held back for long enough.
	timerLeave                      // Components had their time to hand over.
	timerConfirm                    // The confirmation of a leaving node is repeated.
	timerExit                       // A leaving node was not removed in time.
	timerPrune                      // Tombstones may have become old.
	timerAsk                        // A member that was asked to decide did not answer.
	timerVote                       // This node may vote.
)

// probeTimer is the timer of one dial-back.
type probeTimer struct{ Address gossip.Address }

// fenceTimer is the timer of one removed node.
type fenceTimer struct{ Node gossip.NodeID }

func (m *Machine) fired(t machine.Timer) {
	switch t := t.(type) {
	case probeTimer:
		m.probeTimeout(t.Address)
	case fenceTimer:
		m.fencePassed(t.Node)
	case blockTimer:
		m.quarantine(t.Node)
	case timer:
		m.firedOnce(t)
	}
}

func (m *Machine) firedOnce(t timer) {
	switch t {
	case timerJoin:
		m.askSeeds()
	case timerFormation:
		m.formationTimeout()
	case timerRejoin:
		m.retryJoin()
	case timerGiveUp:
		m.giveUpJoin()
	case timerRound:
		m.round()
	case timerPush:
		m.push()
	case timerHeartbeat:
		m.heartbeatRound()
	case timerSilence:
		m.judgeSilence()
	case timerStable:
		m.viewStable()
	case timerCall:
		m.downingTimeout()
	case timerWeaklyUp:
		m.lead.weaklyUpDue = true
		m.act()
	case timerRemember:
		m.recordWritten(fmt.Errorf("no answer within %v", rememberLimit))
	case timerFounding:
		m.watchFounding()
	case timerMeet:
		m.seekClusters()
	case timerYield:
		m.endYielded()
	case timerWave:
		m.act()
	case timerLeave:
		m.leaveTimeout()
	case timerConfirm:
		m.confirmExit()
	case timerExit:
		m.exitTimeout()
	case timerPrune:
		m.prune()
	case timerAsk:
		m.askTimeout()
	case timerVote:
		m.answerEarly()
	}
}

// refuse counts and publishes a refusal.
func (m *Machine) refuse(peer gossip.NodeID, what string, r Refusal, reason string) {
	m.refuseSettings(peer, what, r, reason, nil)
}

func (m *Machine) refuseSettings(peer gossip.NodeID, what string, r Refusal, reason string, differences []Difference) {
	m.refused[min(r, RefusalLast)]++
	m.out.Publish(Refused{Peer: peer, What: what, Refusal: r, Reason: reason, Differences: differences})
}

// Refusals returns how often the machine refused something for this reason.
func (m *Machine) Refusals(r Refusal) uint64 {
	if int(r) < len(m.refused) {
		return m.refused[r]
	}
	return 0
}

// Snapshot returns the last published [component.Changed].
func (m *Machine) Snapshot() component.Changed { return m.published }

// Self returns the node of this machine.
func (m *Machine) Self() gossip.NodeID { return m.self }

// State returns the membership state.
func (m *Machine) State() *gossip.State { return m.state }
