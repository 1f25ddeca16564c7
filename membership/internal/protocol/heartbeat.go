// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// A round goes to all targets ([heartbeats.round]); an answer is noted
// ([heartbeats.hears]) and takes an unreachable record back ([heartbeats.takeBack]). The
// targets change with the members ([heartbeats.retarget]). A target that is silent for
// too long is marked unreachable ([heartbeats.judgeSilence]), unless this node itself
// slept, or is a newcomer that spares the target. A record about a target that flaps is
// kept for a time, see flapdetector.go.

// Where two nodes monitor each other one exchange serves both, see shared.go.

// roundsKept is the least number of rounds of heartbeats whose times of sending are
// remembered. At one round a second an answer to an older one says nothing: the fence has
// passed long before. Where many questions go with answers, and have numbers of their own,
// those of intervalsKept intervals are ([heartbeats.makeRoom]).
const (
	roundsKept    = 64
	intervalsKept = 16
)

// heartbeats is this node's monitoring of others: which nodes get heartbeats, which have
// answered, and which have been silent for too long.
type heartbeats struct {
	*core

	answers *answers
	judge   *judgeSession

	// flaps decides which unreachable records are kept although their subject answers again.
	flaps *flapDetector

	// registry holds the failure detector of each target.
	registry *fd.Registry[gossip.NodeID]

	// targets are the nodes that get heartbeats, sorted.
	targets []gossip.NodeID

	// ring says which node monitors which where there are more members than a node
	// monitors; onRing says that this is so. others are the nodes on the ring besides
	// this one, sorted.
	ring   fd.Ring[gossip.NodeID]
	others []gossip.NodeID
	onRing bool

	// voters is the ring of the voters, where not all members vote: each node monitors
	// some of them as well, and hosts by their answers.
	voters fd.Ring[gossip.NodeID]

	// sequence is the number of the last round, sent holds when the last rounds were
	// sent. A question that goes with an answer has a number like a round.
	sequence uint64
	sent     []sentRound

	// shared holds the last two questions to each target that went with answers.
	shared map[gossip.NodeID]questions

	// shown is the target whose heartbeat of the next round shows the fingerprint of this
	// node's state; zero: none.
	shown gossip.NodeID

	// met are the targets that got a heartbeat out of turn, see [heartbeats.meet].
	met map[gossip.NodeID]bool

	// answered is the latest round that each target has answered.
	answered map[gossip.NodeID]uint64

	// notBefore is the moment before which this node marks no target unreachable, because
	// it was frozen itself: silence that it slept through proves nothing.
	notBefore machine.Instant

	// slept is for how long this node itself did not run, in all.
	slept time.Duration

	// proofAt is when the voters last said something of this node, a newcomer, see
	// [heartbeats.noteProof].
	proofAt machine.Instant

	// silenceAt is when timerSilence fires; zero if that timer is not armed.
	silenceAt machine.Instant
}

type sentRound struct {
	sequence uint64
	at       machine.Instant
	slept    time.Duration // For how long this node had not run before, in all.
	extra    bool          // Sent out of turn: the failure detector learns intervals from the other rounds.
}

func newHeartbeats(c *core, a *answers, r *fd.Registry[gossip.NodeID], judge string) *heartbeats {
	h := &heartbeats{
		core: c, answers: a, judge: newJudgeSession(c, r, judge), flaps: newFlapDetector(c), registry: r,
		sent: make([]sentRound, roundsKept),
		met:  map[gossip.NodeID]bool{}, answered: map[gossip.NodeID]uint64{}, shared: map[gossip.NodeID]questions{},
	}
	h.judge.armSilence = h.armSilence
	return h
}

// begin numbers a round that is sent now, and notes its time.
func (h *heartbeats) begin(at machine.Instant) Heartbeat {
	h.sequence++
	*h.slot(h.sequence) = sentRound{sequence: h.sequence, at: at, slept: h.slept}
	return Heartbeat{Sequence: h.sequence}
}

// slot is where a round is remembered, or a later one.
func (h *heartbeats) slot(sequence uint64) *sentRound { return &h.sent[sequence%uint64(len(h.sent))] }

// makeRoom has the rounds and questions of intervalsKept intervals remembered, while each target
// may get a question in each.
func (h *heartbeats) makeRoom() {
	rounds, before := intervalsKept*(1+len(h.targets)), h.sent
	if rounds <= len(before) {
		return
	}
	h.sent = make([]sentRound, rounds)
	for _, r := range before {
		if r.sequence != 0 {
			*h.slot(r.sequence) = r
		}
	}
}

// sentAt returns when a round was sent, if that is remembered.
func (h *heartbeats) sentAt(sequence uint64) (machine.Instant, bool) {
	r := h.slot(sequence)
	return r.at, sequence != 0 && r.sequence == sequence
}

// hears notes that a target answered a round, and reports whether the answer is a sign of life.
// The failure detector learns only from answers to rounds in turn, and once from each: a round
// may be answered twice, see [withheld].
func (h *heartbeats) hears(from gossip.NodeID, sequence uint64, at machine.Instant) bool {
	if h.isLate(sequence, at) {
		return false
	}
	if sequence <= h.answered[from] {
		return true
	}
	h.answered[from] = sequence
	if !h.slot(sequence).extra {
		h.registry.Heartbeat(from, at.Time())
		h.judge.hears(from, at)
		h.flaps.hears(from, at)
	}
	return true
}

// isLate tells whether the answer to a round took longer than the fence, while others answer this
// node in time. Such an answer proves no standing to either end: a member with such links alone
// hosts nothing, and if its answers counted as signs of life nobody would take over from it. A node
// that has no standing itself cannot tell whose links are slow: it waits, as long as it hears
// anything. The time for which it did not run was not the answer's.
func (h *heartbeats) isLate(sequence uint64, at machine.Instant) bool {
	r := h.slot(sequence)
	return at <= h.hosting.until && at.Sub(r.at)-(h.slept-r.slept) > h.cfg.Fence
}

// hasAnswered tells whether a target has answered a heartbeat since it became one.
func (h *heartbeats) hasAnswered(n gossip.NodeID) bool { return h.answered[n] > 0 }

// forget drops what is known of a node that gets no heartbeats any more.
func (h *heartbeats) forget(n gossip.NodeID) {
	h.registry.Remove(n)
	h.judge.forget(n)
	delete(h.met, n)
	delete(h.answered, n)
	delete(h.shared, n)
}

// round sends a heartbeat to every target that is not asked otherwise.
func (h *heartbeats) round() {
	h.out.Arm(timerHeartbeat, h.now.Mono.Add(h.cfg.FailureDetector.HeartbeatInterval))
	h.expect(h.targets)
	h.sendHeartbeats(slices.DeleteFunc(slices.Clone(h.targets), h.isAsked))
	if !h.isAsked(h.shown) {
		h.shown = gossip.NodeID{}
	}
	h.judge.ask(h.targets)
}

// show has the next heartbeat to a target, or the next question that goes with an answer to
// it, show the fingerprint of this node's state as it is then.
func (h *heartbeats) show(target gossip.NodeID) { h.shown = target }

// expect starts waiting for a first answer from each node that is not yet expected to
// answer.
func (h *heartbeats) expect(nodes []gossip.NodeID) {
	for _, node := range nodes {
		if !h.registry.Expected(node) {
			h.registry.Expect(node, h.now.Mono.Time())
			h.answers.expect(node)
		}
	}
	h.armSilence()
}

func (h *heartbeats) sendHeartbeats(to []gossip.NodeID) {
	if len(to) == 0 {
		return
	}
	beat := h.begin(h.now.Mono)
	for _, node := range to {
		beat.Fingerprint, beat.Shared = 0, h.begins(node)
		if node == h.shown {
			beat.Fingerprint = h.state.Fingerprint()
		}
		h.out.Send(node, beat)
	}
}

// takeBack takes back the unreachable record about a node that has answered again, unless the
// node flaps.
func (h *heartbeats) takeBack(from gossip.NodeID) {
	if h.ownRecord(from) == gossip.Unreachable && h.registry.Available(from, h.now.Mono.Time()) && !h.flaps.holds(from) {
		h.out.Decide("reachability", from.String(), "reachable", "it answered a heartbeat again")
		h.counts.Clears++
		h.edit(func(e *gossip.Edit) { e.Clear(from) })
	}
	h.armSilence()
}

// meet sends one heartbeat out of turn to each target that has not yet answered as a node
// that knows this one, and has by now seen a state in which this node is a member. The
// first heartbeat, sent when this node learned of the target, may have come before that.
// Otherwise the target would count for this node's standing only after the next round,
// and a node that has just joined would have no standing if another left before.
func (h *heartbeats) meet() {
	var strangers []gossip.NodeID
	for _, node := range h.targets {
		if _, met := h.answers.known[node]; !met && !h.met[node] && h.state.Seen(node) && h.registry.Expected(node) {
			h.met[node] = true
			strangers = append(strangers, node)
		}
	}
	if len(strangers) > 0 {
		h.sendHeartbeats(strangers)
		h.slot(h.sequence).extra = true
	}
}

func (h *heartbeats) monitors(node gossip.NodeID) bool {
	_, found := slices.BinarySearchFunc(h.targets, node, gossip.NodeID.Compare)
	return found
}

// retarget chooses the targets again after a change of the members or of their
// reachability.
func (h *heartbeats) retarget() {
	targets := h.chooseTargets()
	if slices.Equal(targets, h.targets) {
		return
	}
	old := h.targets
	h.targets = targets
	h.makeRoom()
	for _, node := range old {
		if !h.monitors(node) {
			h.forget(node)
			h.answers.unexpect(node)
		}
	}
	h.armSilence()
}

// greet sends a heartbeat to the targets that have not got one, so that a new voter
// counts for this node's standing within a round trip. In a ring, a member that does not
// vote yet gets its first heartbeat with the next round: while a cluster forms, the ring
// changes with each member that joins, and each change would cost connections that the
// next change makes useless.
func (h *heartbeats) greet() {
	var added []gossip.NodeID
	ring := h.monitorsSome()
	for _, node := range h.targets {
		if !h.registry.Expected(node) && (!ring || votes(h.state.Member(node))) {
			added = append(added, node)
		}
	}
	if len(added) > 0 {
		h.expect(added)
		h.sendHeartbeats(added)
	}
}

func (h *heartbeats) chooseTargets() []gossip.NodeID {
	var nodes []gossip.NodeID
	for _, member := range h.state.Members() {
		if member.Node != h.self && member.Status != gossip.Down {
			nodes = append(nodes, member.Node)
		}
	}
	k := h.cfg.FailureDetector.MonitoredByNrOfMembers
	h.onRing = len(nodes) > k
	if !h.onRing {
		return nodes // Sorted, as members are.
	}
	if !slices.Equal(nodes, h.others) {
		h.others = nodes
		ring := fd.NewRing[gossip.NodeID]
		if h.allShare() {
			ring = fd.NewMutualRing[gossip.NodeID]
		}
		h.ring = ring(k, append(slices.Clip(nodes), h.self), gossip.NodeID.Hash, gossip.NodeID.Compare)
		if h.cfg.Voters.Role != "" {
			h.voters = fd.NewRing(k, h.potentialVoters(), gossip.NodeID.Hash, gossip.NodeID.Compare)
		}
	}
	targets := h.receivers(h.self, h.isLost)
	for _, row := range h.state.RowsOf(h.self) {
		// A node that this one has marked unreachable stays monitored: no other node can
		// clear the mark.
		_, alive := slices.BinarySearchFunc(nodes, row.Subject, gossip.NodeID.Compare)
		if alive && row.Status == gossip.Unreachable && !slices.Contains(targets, row.Subject) {
			targets = append(targets, row.Subject)
		}
	}
	slices.SortFunc(targets, gossip.NodeID.Compare)
	return targets
}

// receivers returns whom a node on the ring monitors.
func (h *heartbeats) receivers(n gossip.NodeID, lost func(gossip.NodeID) bool) []gossip.NodeID {
	targets := h.ring.Receivers(n, lost)
	if h.voters.Len() > 0 {
		for _, voter := range h.voters.Receivers(n, lost) {
			if !slices.Contains(targets, voter) {
				targets = append(targets, voter)
			}
		}
	}
	return targets
}

// armSilence arms one timer for the moment at which the next target is to be marked
// unreachable. If that moment has passed, the timer fires at once, or when this node may
// mark again. Targets that a newcomer spares are judged again with each round of
// heartbeats.
func (h *heartbeats) armSilence() {
	at := machine.Instant(0)
	if due, ok := h.registry.Due(h.isJudged); ok {
		at = max(machine.Instant(due.UnixNano()), h.notBefore)
	}
	switch at {
	case h.silenceAt:
	case 0:
		h.out.Disarm(timerSilence)
	default:
		h.out.Arm(timerSilence, at)
	}
	h.silenceAt = at
}

// isJudged tells whether nothing is to be done about the silence of a node: it is marked
// unreachable already, or spared. The timer and judgeSilence both ask this, so that
// neither waits for the other in vain.
func (h *heartbeats) isJudged(node gossip.NodeID) bool {
	return !h.state.ReachableFrom(h.self, node) || h.spares(node)
}

// judgeSilence marks the targets unreachable whose silence has become too long.
func (h *heartbeats) judgeSilence() {
	h.silenceAt = 0
	if h.phase != phaseMember {
		return
	}
	if h.now.Mono < h.notBefore {
		h.silenceAt = h.notBefore
		h.out.Arm(timerSilence, h.notBefore)
		return
	}
	var accused []gossip.NodeID
	for _, node := range h.registry.Unavailable(h.now.Mono.Time()) {
		if !h.isJudged(node) {
			accused = append(accused, node)
			h.out.Decide("reachability", node.String(), "unreachable", h.silenceOf(node)+h.flaps.accuse(node))
		}
	}
	if len(accused) > 0 {
		h.counts.Marks += uint64(len(accused))
		h.edit(func(e *gossip.Edit) {
			for _, node := range accused {
				e.Mark(node, gossip.Unreachable)
			}
		})
	}
	h.armSilence()
}

func (h *heartbeats) silenceOf(node gossip.NodeID) string {
	for _, s := range h.registry.Status(h.now.Mono.Time()) {
		if s.Node == node {
			return fmt.Sprintf("no answer to heartbeats for %v, phi %.1f%s", s.Silence.Round(time.Millisecond), s.Phi, h.judge.reason(node))
		}
	}
	return "no answer to heartbeats"
}

// hasSlept tells whether this node itself slept. A machine that runs is stepped at least
// each heartbeat interval, by its own timer. If it was not, it may neither mark others
// unreachable for the time that it slept through, nor take its view for stable, before it
// has listened to them for as long as silence is allowed.
func (h *heartbeats) hasSlept() bool {
	interval := h.cfg.FailureDetector.HeartbeatInterval
	if h.phase != phaseMember || h.now.Mono.Sub(h.last.Mono) <= interval+interval/2 {
		return false
	}
	h.slept += h.now.Mono.Sub(h.last.Mono)
	h.flaps.wake()
	h.out.Decide("reachability", h.self.String(), "paused",
		fmt.Sprintf("this node itself did not run for %v: nobody is accused for as long as silence is allowed", h.now.Mono.Sub(h.last.Mono)))
	h.notBefore = h.now.Mono.Add(h.cfg.FailureDetector.AcceptableHeartbeatPause)
	h.silenceAt = 0
	h.armSilence()
	return true
}

// targetsOf returns the nodes that a member monitors.
func (h *heartbeats) targetsOf(n gossip.NodeID) []gossip.NodeID {
	if h.onRing {
		return h.receivers(n, h.isLost)
	}
	var all []gossip.NodeID
	for _, member := range h.state.Members() {
		if member.Node != n {
			all = append(all, member.Node)
		}
	}
	return all
}

// noteProof notes when the voters last said something of this newcomer. Then they, or
// their news, can reach it in some way.
func (h *heartbeats) noteProof(prev *gossip.State) {
	if !isNewcomer(h.state.Member(h.self)) {
		return
	}
	said := prev.Member(h.self) == nil
	for _, voter := range h.state.Observers(h.self) {
		said = said || !slices.Equal(rowsAbout(prev, voter, h.self), rowsAbout(h.state, voter, h.self))
	}
	if said {
		h.proofAt = h.now.Mono
	}
}

func rowsAbout(s *gossip.State, observer, subject gossip.NodeID) []gossip.Row {
	return slices.DeleteFunc(slices.Clone(s.RowsOf(observer)), func(r gossip.Row) bool { return r.Subject != subject })
}

// spares tells whether this node, a newcomer, does not mark another one unreachable
// although that one is silent. A newcomer would keep the whole cluster from converging if
// it marked voters that it alone has never heard. So a newcomer that hears some voter
// takes the silent voters for well; a newcomer that has never heard any does so as long
// as it keeps hearing that the voters cannot reach it either.
func (h *heartbeats) spares(n gossip.NodeID) bool {
	if h.hasAnswered(n) || !isNewcomer(h.state.Member(h.self)) {
		return false
	}
	heard := false
	for _, other := range h.targets {
		if member := h.state.Member(other); h.hasAnswered(other) && member != nil && votes(member) {
			heard = true
			if h.registry.Available(other, h.now.Mono.Time()) {
				return true
			}
		}
	}
	return !heard && h.now.Mono.Sub(h.proofAt) < proofInterval+proofInterval/2
}

// sameMonitored tells whether two lists of members are equal in all that
// [heartbeats.chooseTargets] looks at, except the records.
func sameMonitored(a, b []*gossip.Member) bool {
	return slices.EqualFunc(a, b, func(x, y *gossip.Member) bool {
		return x == y || x.Node == y.Node && (x.Status == gossip.Down) == (y.Status == gossip.Down)
	})
}
