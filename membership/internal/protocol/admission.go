// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/wire"
)

// A node that asks for a cluster is answered first ([admission.receiveInitJoin]). Its
// request to join is judged, then its address is dialled
// ([admission.receiveJoinRequest]). When the node has answered there, the request is
// judged again and the node is recorded ([admission.admit]). Each way out is a refusal
// with a reason.

// maxPendingJoins bounds the joins that wait for a dial-back. A further request is
// refused as busy, and its sender asks again.
const maxPendingJoins = 256

// maxWaitingJoiners bounds the nodes that are answered again when this node becomes a member.
// Nodes beyond the bound learn of it by asking again.
const maxWaitingJoiners = 1024

// admission is what a member knows about nodes that ask to join through it. A
// join is recorded only after the address that it names was dialled and the
// joiner itself answered there: otherwise a node that nobody can reach, or one
// that names somebody else's address, would become a member.
type admission struct {
	*core

	inquiry       *inquiry
	contactSearch *contactSearch
	footing       *footing
	strategies    *strategies
	monitoring    *heartbeats

	pending map[gossip.Address]pendingJoin // By the address that is being dialled.

	// waitingJoiners are the nodes that asked this node for a cluster when it had none. They
	// are told as soon as it has one: when all nodes of a cluster start together, all but
	// the first would otherwise wait until their next question is due.
	waitingJoiners []waitingJoiner

	// backoffs are the addresses whose nodes must wait before they may join again.
	backoffs backoffs
}

func newAdmission(c *core, d *inquiry, boot *contactSearch, standing *footing, s *strategies, monitoring *heartbeats) *admission {
	return &admission{
		core: c, inquiry: d, contactSearch: boot, footing: standing, strategies: s, monitoring: monitoring,
		pending: map[gossip.Address]pendingJoin{}, backoffs: backoffs{},
	}
}

// waitingJoiner is a node that asked when this node was not a member, with its last question.
type waitingJoiner struct {
	node    gossip.NodeID
	attempt uint64
	claim   Claim
}

// addWaitingJoiner keeps the question of a node, to answer it again once this node is a member.
func (a *admission) addWaitingJoiner(node gossip.NodeID, attempt uint64, claim Claim) {
	i := slices.IndexFunc(a.waitingJoiners, func(j waitingJoiner) bool { return j.node == node })
	switch {
	case i >= 0:
		a.waitingJoiners[i].attempt, a.waitingJoiners[i].claim = attempt, claim
	case len(a.waitingJoiners) < maxWaitingJoiners:
		a.waitingJoiners = append(a.waitingJoiners, waitingJoiner{node, attempt, claim})
	}
}

// pendingJoin is a request to join whose sender's address is being dialled.
type pendingJoin struct {
	from    gossip.NodeID
	request JoinRequest
}

func (a *admission) receiveInitJoin(from gossip.NodeID, msg InitJoin) {
	claim := a.inquiry.answerTo(from.Address, msg.Claim)
	switch status := a.ownStatus(); {
	case a.phase != phaseMember:
		a.addWaitingJoiner(from, msg.Attempt, msg.Claim)
		a.out.Send(from, InitJoinNack{Attempt: msg.Attempt, Reason: "not a member of a cluster", Claim: claim})
	case !admits(status):
		a.out.Send(from, InitJoinNack{Attempt: msg.Attempt, Member: true, Reason: "this member is " + status.String(), Claim: claim})
	default:
		a.out.Send(from, InitJoinAck{Attempt: msg.Attempt, Cluster: a.state.Cluster(), Claim: claim})
	}
	if !msg.Back {
		a.inquiry.askBack(from.Address, msg.Claim)
		a.contactSearch.lookUpFor(from.Address)
	}
}

// answerWaitingJoiners answers the nodes that asked before this node was a member.
func (a *admission) answerWaitingJoiners() {
	joiners := a.waitingJoiners
	a.waitingJoiners = nil
	for _, j := range joiners {
		a.receiveInitJoin(j.node, InitJoin{Attempt: j.attempt, Claim: j.claim, Back: true})
	}
	if !a.footing.mayLetIn() {
		a.waitingJoiners = joiners // Nodes that did not vote are answered again when they may join.
	}
}

// inviteWaitingJoiners answers the waiting nodes again as soon as they may join.
func (a *admission) inviteWaitingJoiners() {
	if len(a.waitingJoiners) > 0 && a.footing.mayLetIn() {
		a.answerWaitingJoiners()
	}
}

// admits tells whether a member of this status takes join requests.
func admits(s gossip.Status) bool {
	return s == gossip.Joining || s == gossip.WeaklyUp || s == gossip.Up
}

func (a *admission) receiveJoinRequest(from gossip.NodeID, msg JoinRequest) {
	if refusal := a.judgeJoin(from, msg); refusal != nil {
		a.refuseJoin(from, *refusal)
		if a.phase == phaseMember && !a.footing.mayLetIn() {
			a.addWaitingJoiner(from, msg.Attempt, msg.Claim)
		}
		return
	}
	if a.state.Member(from) != nil {
		// The welcome was lost, or the joiner asks a second member.
		a.welcome(from, msg)
		return
	}
	pending, dialling := a.pending[from.Address]
	switch {
	case dialling && pending.from == from && slices.Equal(pending.request.Member.Roles, msg.Member.Roles):
		a.pending[from.Address] = pendingJoin{from, msg}
	case dialling || len(a.pending) >= maxPendingJoins:
		a.refuseJoin(from, JoinRefused{Attempt: msg.Attempt, Refusal: RefusedBusy, Retry: true, Reason: "too many nodes are joining"})
	default:
		a.pending[from.Address] = pendingJoin{from, msg}
		a.out.Add(Probe{Address: from.Address, Roles: msg.Member.Roles, Limit: a.cfg.ProbeTimeout})
		a.out.Arm(probeTimer{from.Address}, a.now.Mono.Add(a.cfg.ProbeTimeout))
	}
}

// judgeJoin returns the refusal of a request, or nil if the request may be granted once
// the joiner was dialled back.
func (a *admission) judgeJoin(from gossip.NodeID, msg JoinRequest) *JoinRefused {
	refuse := func(r Refusal, retry bool, format string, values ...any) *JoinRefused {
		return &JoinRefused{Attempt: msg.Attempt, Refusal: r, Retry: retry, Reason: fmt.Sprintf(format, values...)}
	}
	status := a.ownStatus()
	_, removed := a.state.Removed(from)
	known := a.state.Member(from)
	switch {
	case a.phase != phaseMember:
		return refuse(RefusedNotReady, true, "the node asked is not a member of a cluster")
	case !admits(status):
		return refuse(RefusedNotReady, true, "the member asked is %v", status)
	case msg.Member.Node != from || from.UID == 0 || msg.Member.Status != gossip.Joining:
		return refuse(RefusedMalformed, false, "the request describes %v with status %v", msg.Member.Node, msg.Member.Status)
	case !a.footing.goesOn() && !a.isNeeded(from):
		return refuse(RefusedNotReady, true, "the member asked cannot prove a majority of its cluster at present")
	case known == nil && a.footing.goesOn() && !a.footing.mayLetIn():
		return refuse(RefusedNotReady, true, "the member asked may be on a side that goes: it is not decided yet who survives")
	case from.Address == a.self.Address:
		return refuse(RefusedMalformed, false, "%v is the address of the member asked", from.Address)
	case !msg.Cluster.IsZero() && msg.Cluster != a.state.Cluster():
		return refuse(RefusedCluster, true, "this is another cluster than %v", msg.Cluster)
	case known == nil && !a.isNeeded(from) && !msg.Claim.isRelatedTo(a.inquiry.claim(), a.inquiry.knownAddresses().evidence(from.Address, msg.Claim)):
		return refuse(RefusedUnrelated, true, "%s", unrelated(from.Address, msg.Claim, a.inquiry.claim()))
	case raiseEpochs(a.state, msg.Claim.Record) > gossip.LatestBirth:
		return refuse(RefusedMalformed, false, "epochs that began at %d leave no room for those of this cluster", msg.Claim.Record.EpochBorn)
	case removed || known != nil && known.Status == gossip.Down:
		return refuse(RefusedIncarnation, false, "incarnation %v was downed or removed: restart the node", from)
	}
	if refusal := a.keptOut(from, msg); refusal != nil {
		return refusal
	}
	if old := a.lendsNothing(msg.Member); known == nil && !old.IsZero() {
		return refuse(RefusedSettings, old != from, "%v is of a build without proofs that are lent, and the cluster would have more voters than such builds are safe with: "+
			"run the build of the others there", old)
	}
	must, _ := compareSettings(a.inquiry.compared(), msg.Settings)
	must = append(must, a.strategies.lacksStrategy(msg.Member, msg.Settings)...)
	if len(must) > 0 {
		refusal := refuse(RefusedSettings, false, "%s", describeDifference(must[0], len(must)))
		refusal.Differences = must
		return refusal
	}
	return nil
}

// lendingSince is the version of the protocol between nodes from which on nodes lend proofs
// of a majority, see [standingRelay].
const lendingSince = 2

// lendsNothing returns a node whose build does not lend proofs, where the cluster would have
// so many voters with a joiner that they are lent; zero if there is none. Such a node would
// host by rules that those who lend do not wait for, and give them no word of its own.
func (a *admission) lendsNothing(joiner gossip.Member) gossip.NodeID {
	lends := func(m *gossip.Member) bool { return m.Protocol.Max >= lendingSince }
	switch me := a.state.Member(a.self); {
	case me == nil || !lends(me) || !a.isMany(len(a.potentialVoters())+1):
		return gossip.NodeID{}
	case !lends(&joiner):
		return joiner.Node
	}
	for _, member := range a.state.Members() {
		if member.Status != gossip.Down && !lends(member) {
			return member.Node
		}
	}
	return gossip.NodeID{}
}

// isNeeded tells whether the cluster was founded by the vote of a node and still waits
// for that node. A voter in one of two sets is needed as well as a voter in both.
func (a *admission) isNeeded(n gossip.NodeID) bool {
	return a.founding() && slices.ContainsFunc(a.surveyed.base, func(voters []gossip.NodeID) bool { return slices.Contains(voters, n) })
}

func describeDifference(d Difference, of int) string {
	text := fmt.Sprintf("setting %s is %q in the cluster and %q here: make it equal", d.Key, d.Member, d.Joiner)
	if of > 1 {
		text += fmt.Sprintf(" (and %d more settings)", of-1)
	}
	return cutText(text)
}

// cutText cuts a text to the length that a message can hold.
func cutText(s string) string { return wire.Clip(s, MaxTextBytes) }

func (a *admission) refuseJoin(to gossip.NodeID, refusal JoinRefused) {
	a.out.Send(to, refusal)
	a.refuseSettings(to, "JoinRequest", refusal.Refusal, refusal.Reason, refusal.Differences)
}

// probed takes the result of a dial-back: which node answered at the address of a joiner.
func (a *admission) probed(in Probed) {
	pending, ok := a.pending[in.Address]
	if !ok {
		return // The timer came first.
	}
	a.endProbe(in.Address)
	switch {
	case in.Err != nil:
		a.refuseJoin(pending.from, JoinRefused{
			Attempt: pending.request.Attempt, Refusal: RefusedDialBack, Retry: true,
			Reason: cutText(fmt.Sprintf("%v cannot be dialled back: %v", in.Address, in.Err)),
		})
	case in.Node != pending.from:
		a.refuseJoin(pending.from, JoinRefused{
			Attempt: pending.request.Attempt, Refusal: RefusedDialBack,
			Reason: fmt.Sprintf("%v answers at the address of %v", in.Node, pending.from),
		})
	default:
		a.admit(pending.from, pending.request)
	}
}

func (a *admission) probeTimeout(at gossip.Address) {
	if pending, ok := a.pending[at]; ok {
		a.endProbe(at)
		a.refuseJoin(pending.from, JoinRefused{
			Attempt: pending.request.Attempt, Refusal: RefusedDialBack, Retry: true,
			Reason: fmt.Sprintf("%v could not be dialled back within %v", at, a.cfg.ProbeTimeout),
		})
	}
}

func (a *admission) endProbe(at gossip.Address) {
	delete(a.pending, at)
	a.out.Disarm(probeTimer{at})
}

// admit records a joiner that was dialled back. Everything is judged again,
// because the state may have changed meanwhile.
func (a *admission) admit(from gossip.NodeID, msg JoinRequest) {
	if refusal := a.judgeJoin(from, msg); refusal != nil {
		a.refuseJoin(from, *refusal)
		return
	}
	if a.state.Member(from) == nil {
		if old := a.predecessor(from); old != nil {
			a.replace(*old, from, msg)
			return
		}
		a.edit(func(e *gossip.Edit) {
			if e.Join(joiner(msg.Member)) {
				e.RaiseEpochs(raiseEpochs(a.state, msg.Claim.Record))
			}
		})
		if a.state.Member(from) == nil {
			a.refuseJoin(from, JoinRefused{Attempt: msg.Attempt, Refusal: RefusedMalformed, Reason: "no more members fit in, or the request describes none that can be one"})
			return
		}
		a.out.Decide("join", from.String(), "admitted", "it answered at its address and its settings agree")
	}
	a.welcome(from, msg)
}

// joiner returns the member that is recorded for a request. What only the cluster decides
// is not taken from the request.
func joiner(described gossip.Member) gossip.Member {
	described.Status, described.UpNumber = gossip.Joining, 0
	return described
}

// predecessor returns another incarnation at the same address that is still a member.
func (a *admission) predecessor(n gossip.NodeID) *gossip.Member {
	for _, member := range a.state.Members() {
		if member.Node.Address == n.Address && member.Node != n {
			return member
		}
	}
	return nil
}

// replace downs the old incarnation at an address at which a new one answered. The new
// incarnation is told to ask again, and is admitted when the old one is removed: a node
// is never a member twice.
func (a *admission) replace(old gossip.Member, by gossip.NodeID, msg JoinRequest) {
	a.refuseJoin(by, JoinRefused{
		Attempt: msg.Attempt, Refusal: RefusedPredecessor, Retry: true,
		Reason: fmt.Sprintf("%v is still a member, %v", old.Node, old.Status),
	})
	if old.Status >= gossip.Exiting {
		return // On its way out already.
	}
	const reason = "restart: a new incarnation answered at its address"
	a.out.Decide("downing", old.Node.String(), "down", reason)
	a.edit(func(e *gossip.Edit) {
		e.Mark(old.Node, gossip.Terminated)
		e.Down(old.Node, reason)
	})
}

// welcome sends the state to a member that was admitted.
func (a *admission) welcome(to gossip.NodeID, msg JoinRequest) {
	_, should := compareSettings(a.inquiry.compared(), msg.Settings)
	if len(should) > MaxSettings {
		should = should[:MaxSettings]
	}
	if len(should) > 0 {
		a.out.Publish(SettingsDiffer{Peer: to, Differences: should})
	}
	a.out.Send(to, Welcome{Attempt: msg.Attempt, State: a.state, Warnings: should})
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
