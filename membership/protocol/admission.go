// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/quorate/quorate/gossip"
)

// pendingJoinsMax bounds the joins that wait for a dial-back. What comes beyond
// is refused as busy and comes back.
const pendingJoinsMax = 256

// hopefulsMax bounds the nodes that are told when this node becomes a member.
// Those beyond ask again by themselves.
const hopefulsMax = 1024

// admission is what a member knows about nodes that ask to join through it. A
// join is recorded only after the address that it names was dialled and the
// joiner itself answered there: otherwise a node that nobody can reach, or one
// that names somebody else's address, would become a member.
type admission struct {
	pending map[gossip.Address]pendingJoin // By the address that is being dialled.

	// hopefuls asked this node for a cluster when it had none. They hear of it as
	// soon as it has one: when all nodes of a cluster start together, all but the
	// first would else wait for the time of their next question.
	hopefuls []hopeful

	backOffs backOffs
}

type hopeful struct {
	node    gossip.NodeID
	attempt uint64
}

// hope notes that a node waits for this one to become a member.
func (a *admission) hope(node gossip.NodeID, attempt uint64) {
	i := slices.IndexFunc(a.hopefuls, func(h hopeful) bool { return h.node == node })
	switch {
	case i >= 0:
		a.hopefuls[i].attempt = attempt
	case len(a.hopefuls) < hopefulsMax:
		a.hopefuls = append(a.hopefuls, hopeful{node, attempt})
	}
}

type pendingJoin struct {
	from    gossip.NodeID
	request JoinRequest
}

func (a *admission) init() {
	a.pending, a.backOffs = map[gossip.Address]pendingJoin{}, backOffs{}
}

func (m *Machine) receiveInitJoin(from gossip.NodeID, msg InitJoin) {
	switch status := m.ownStatus(); {
	case m.phase != phaseMember:
		m.admission.hope(from, msg.Attempt)
		if m.phase == phaseJoining && m.asks(from.Address) {
			// A question tells as much as an answer.
			m.join.form.note(from, msg.Claim, m.now.Mono, m.answersLast())
			m.considerFounding()
		}
		m.out.Send(from, InitJoinNack{Attempt: msg.Attempt, Reason: "not a member of a cluster", Claim: m.claim(msg.Claim.Record)})
	case !admits(status):
		m.out.Send(from, InitJoinNack{Attempt: msg.Attempt, Member: true, Reason: "this member is " + status.String(), Claim: m.claim(msg.Claim.Record)})
	default:
		m.out.Send(from, InitJoinAck{Attempt: msg.Attempt, Cluster: m.state.Cluster(), Claim: m.claim(msg.Claim.Record)})
	}
}

// answerHopefuls tells those who asked before this node was a member.
func (m *Machine) answerHopefuls() {
	hopefuls := m.admission.hopefuls
	m.admission.hopefuls = nil
	for _, h := range hopefuls {
		m.receiveInitJoin(h.node, InitJoin{Attempt: h.attempt})
	}
	if !m.mayLetIn() {
		m.admission.hopefuls = hopefuls // Those who did not vote hear again when they may join.
	}
}

// inviteHopefuls tells those who wait when they may join.
func (m *Machine) inviteHopefuls() {
	if len(m.admission.hopefuls) > 0 && m.mayLetIn() {
		m.answerHopefuls()
	}
}

// admits tells whether a member of this status takes joins.
func admits(s gossip.Status) bool {
	return s == gossip.Joining || s == gossip.WeaklyUp || s == gossip.Up
}

// ownStatus is this node's status, or none.
func (m *Machine) ownStatus() gossip.Status {
	if me := m.state.Member(m.self); me != nil {
		return me.Status
	}
	return gossip.StatusNone
}

func (m *Machine) receiveJoinRequest(from gossip.NodeID, msg JoinRequest) {
	if refusal := m.judgeJoin(from, msg); refusal != nil {
		m.refuseJoin(from, *refusal)
		if m.phase == phaseMember && !m.mayLetIn() {
			m.admission.hope(from, msg.Attempt)
		}
		return
	}
	if m.state.Member(from) != nil {
		// The welcome was lost, or the joiner asks a second member.
		m.welcome(from, msg)
		return
	}
	pending, dialling := m.admission.pending[from.Address]
	switch {
	case dialling && pending.from == from && slices.Equal(pending.request.Member.Roles, msg.Member.Roles):
		m.admission.pending[from.Address] = pendingJoin{from, msg}
	case dialling || len(m.admission.pending) >= pendingJoinsMax:
		m.refuseJoin(from, JoinRefused{Attempt: msg.Attempt, Refusal: RefusedBusy, Retry: true, Reason: "too many nodes are joining"})
	default:
		m.admission.pending[from.Address] = pendingJoin{from, msg}
		m.out.Add(Probe{Address: from.Address, Roles: msg.Member.Roles, Limit: m.cfg.ProbeTimeout})
		m.out.Arm(probeTimer{from.Address}, m.now.Mono.Add(m.cfg.ProbeTimeout))
	}
}

// judgeJoin returns the refusal of a request, or nil if it may be granted once
// the joiner was dialled back.
func (m *Machine) judgeJoin(from gossip.NodeID, msg JoinRequest) *JoinRefused {
	refuse := func(r Refusal, retry bool, format string, values ...any) *JoinRefused {
		return &JoinRefused{Attempt: msg.Attempt, Refusal: r, Retry: retry, Reason: fmt.Sprintf(format, values...)}
	}
	status := m.ownStatus()
	_, removed := m.state.Removed(from)
	known := m.state.Member(from)
	switch {
	case m.phase != phaseMember:
		return refuse(RefusedNotReady, true, "the node asked is not a member of a cluster")
	case !admits(status):
		return refuse(RefusedNotReady, true, "the member asked is %v", status)
	case msg.Member.Node != from || from.UID == 0 || msg.Member.Status != gossip.Joining:
		return refuse(RefusedMalformed, false, "the request describes %v with status %v", msg.Member.Node, msg.Member.Status)
	case !m.goesOn() && !m.isNeeded(from):
		return refuse(RefusedNotReady, true, "the member asked cannot prove a majority of its cluster at present")
	case known == nil && m.goesOn() && !m.mayLetIn():
		return refuse(RefusedNotReady, true, "the member asked may be on a side that goes: it is not decided yet who survives")
	case from.Address == m.self.Address:
		return refuse(RefusedMalformed, false, "%v is the address of the member asked", from.Address)
	case !msg.Cluster.IsZero() && msg.Cluster != m.state.Cluster():
		return refuse(RefusedCluster, true, "this is another cluster than %v", msg.Cluster)
	case raiseEpochs(m.state, msg.Record) > gossip.LatestBirth:
		return refuse(RefusedMalformed, false, "epochs that began at %d leave no room for those of this cluster", msg.Record.EpochBorn)
	case removed || known != nil && known.Status == gossip.Down:
		return refuse(RefusedIncarnation, false, "incarnation %v was downed or removed: restart the node", from)
	}
	if refusal := m.keptOut(from, msg); refusal != nil {
		return refusal
	}
	must, _ := compareSettings(m.compared(), msg.Settings)
	must = append(must, m.lacksStrategy(msg.Member, msg.Settings)...)
	if len(must) > 0 {
		refusal := refuse(RefusedSettings, false, "%s", describeDifference(must[0], len(must)))
		refusal.Differences = must
		return refusal
	}
	return nil
}

// isNeeded tells whether the cluster was founded by the vote of a node, and waits for it.
// A vote in one of two sets of voters is needed as well as one in both.
func (m *Machine) isNeeded(n gossip.NodeID) bool {
	return m.founding() && slices.ContainsFunc(m.footing.base, func(voters []gossip.NodeID) bool { return slices.Contains(voters, n) })
}

func describeDifference(d Difference, of int) string {
	text := fmt.Sprintf("setting %s is %q in the cluster and %q here: make it equal", d.Key, d.Member, d.Joiner)
	if of > 1 {
		text += fmt.Sprintf(" (and %d more settings)", of-1)
	}
	return cutText(text)
}

func cutText(s string) string {
	if len(s) > MaxTextBytes {
		return s[:MaxTextBytes]
	}
	return s
}

func (m *Machine) refuseJoin(to gossip.NodeID, refusal JoinRefused) {
	m.out.Send(to, refusal)
	m.refuseSettings(to, "JoinRequest", refusal.Refusal, refusal.Reason, refusal.Differences)
}

// probed is told who answered at the address of a joiner.
func (m *Machine) probed(in Probed) {
	pending, ok := m.admission.pending[in.Address]
	if !ok {
		return // The timer came first.
	}
	m.endProbe(in.Address)
	switch {
	case in.Err != nil:
		m.refuseJoin(pending.from, JoinRefused{
			Attempt: pending.request.Attempt, Refusal: RefusedDialBack, Retry: true,
			Reason: cutText(fmt.Sprintf("%v cannot be dialled back: %v", in.Address, in.Err)),
		})
	case in.Node != pending.from:
		m.refuseJoin(pending.from, JoinRefused{
			Attempt: pending.request.Attempt, Refusal: RefusedDialBack,
			Reason: fmt.Sprintf("%v answers at the address of %v", in.Node, pending.from),
		})
	default:
		m.admit(pending.from, pending.request)
	}
}

func (m *Machine) probeTimeout(a gossip.Address) {
	if pending, ok := m.admission.pending[a]; ok {
		m.endProbe(a)
		m.refuseJoin(pending.from, JoinRefused{
			Attempt: pending.request.Attempt, Refusal: RefusedDialBack, Retry: true,
			Reason: fmt.Sprintf("%v could not be dialled back within %v", a, m.cfg.ProbeTimeout),
		})
	}
}

func (m *Machine) endProbe(a gossip.Address) {
	delete(m.admission.pending, a)
	m.out.Disarm(probeTimer{a})
}

// admit records a joiner that was dialled back. Everything is judged again,
// because the state may have changed meanwhile.
func (m *Machine) admit(from gossip.NodeID, msg JoinRequest) {
	if refusal := m.judgeJoin(from, msg); refusal != nil {
		m.refuseJoin(from, *refusal)
		return
	}
	if m.state.Member(from) == nil {
		if old := m.predecessor(from); old != nil {
			m.replace(*old, from, msg)
			return
		}
		m.edit(func(e *gossip.Edit) {
			if e.Join(joiner(msg.Member)) {
				e.RaiseEpochs(raiseEpochs(m.state, msg.Record))
			}
		})
		if m.state.Member(from) == nil {
			m.refuseJoin(from, JoinRefused{Attempt: msg.Attempt, Refusal: RefusedMalformed, Reason: "no more members fit in, or the request describes none that can be one"})
			return
		}
		m.out.Decide("join", from.String(), "admitted", "it answered at its address and its settings agree")
	}
	m.welcome(from, msg)
}

// joiner is the member that is recorded for a request: nothing that only the
// cluster decides is taken from it.
func joiner(described gossip.Member) gossip.Member {
	described.Status, described.UpNumber = gossip.Joining, 0
	return described
}

// predecessor returns another incarnation at the same address that is still a
// member.
func (m *Machine) predecessor(n gossip.NodeID) *gossip.Member {
	for _, member := range m.state.Members() {
		if member.Node.Address == n.Address && member.Node != n {
			return member
		}
	}
	return nil
}

// replace downs the old incarnation at an address at which a new one answered.
// The new one is admitted when the old one is removed, so that a node is never
// a member twice; it is told to ask again.
func (m *Machine) replace(old gossip.Member, by gossip.NodeID, msg JoinRequest) {
	m.refuseJoin(by, JoinRefused{
		Attempt: msg.Attempt, Refusal: RefusedPredecessor, Retry: true,
		Reason: fmt.Sprintf("%v is still a member, %v", old.Node, old.Status),
	})
	if old.Status >= gossip.Exiting {
		return // On its way out already.
	}
	const reason = "restart: a new incarnation answered at its address"
	m.out.Decide("downing", old.Node.String(), "down", reason)
	m.edit(func(e *gossip.Edit) {
		e.Mark(old.Node, gossip.Terminated)
		e.Down(old.Node, reason)
	})
}

// welcome gives a member that was admitted the state.
func (m *Machine) welcome(to gossip.NodeID, msg JoinRequest) {
	_, should := compareSettings(m.compared(), msg.Settings)
	if len(should) > MaxSettings {
		should = should[:MaxSettings]
	}
	if len(should) > 0 {
		m.out.Publish(SettingsDiffer{Peer: to, Differences: should})
	}
	m.out.Send(to, Welcome{Attempt: msg.Attempt, State: m.state, Warnings: should})
}

// settingsDigest is the digest that a member carries: FNV-1a over the settings.
func settingsDigest(settings []Setting) uint64 {
	h := fnv.New64a()
	for _, s := range settings {
		if s.Class == MustEqual {
			// Writing to a hash never fails.
			_, _ = fmt.Fprintf(h, "%q=%q;", s.Key, s.Value)
		}
	}
	return h.Sum64()
}
