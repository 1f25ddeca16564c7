// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// A judge is a failure detector outside of the machine, such as a plugin. With each round of
// heartbeats it is sent the answers since the round before ([judgeSession.ask]), and says of whom it
// has changed its mind ([judgeSession.take]). The detectors of the registry are told of every answer
// too, and decide from the moment at which the judge fails ([judgeSession.fail]) until it answers
// again. The registry keeps the bounds of silence whoever decides.

// CallFailureDetector is the port of the calls to the judge, see [Dependencies]. The request is an
// [fd.Batch], the answer [fd.Verdicts] or [OutOfStep].
const CallFailureDetector = "failure-detector"

// OutOfStep is the answer of a judge that has not had the batches before, [fd.ErrOutOfStep]. It
// is no error, so that recordings keep it.
type OutOfStep struct{}

// answersKept is how many answers of each target are kept for a judge that begins a new
// session, and so has forgotten what it was told.
const answersKept = 16

// judgeSession asks the judge, if the node has one: which targets have answered when, and whom
// the judge accuses.
//
//	            answer                       no answer, a wrong one
//	unheard ────────────────> in force ──────────────────────────────> unheard
//	(detectors decide)        (the judge decides)                      (a new session begins)
type judgeSession struct {
	*core

	registry *fd.Registry[gossip.NodeID]

	// armSilence is called when the moment may have changed at which a target becomes
	// unavailable.
	armSilence func()

	name    string // Of the judge. Empty: there is none.
	inForce bool   // Whether the judge decides.

	// number is that of the last batch of the session, 0 before the first one; moment is when
	// that batch was sent.
	number uint64
	moment machine.Instant

	// call numbers the call under way, 0 if there is none; batch is its request, and asked has
	// an element for each subject of it.
	call  machine.CallID
	batch fd.Batch
	asked []batchTarget

	heard map[gossip.NodeID]*answersOf // The targets that have answered.
	why   map[gossip.NodeID]string     // Why the judge has accused targets that have not answered since.
}

// batchTarget is a target that the batch under way is about.
type batchTarget struct {
	node  gossip.NodeID
	count uint64 // How many answers of the target had arrived.
}

// answersOf are the answers of one target.
type answersOf struct {
	id    string            // The target, as batches name it.
	last  []machine.Instant // The last ones, the oldest first, up to answersKept.
	count uint64            // How many there were in all.
	told  uint64            // How many there were at the last batch that the judge has answered.
}

// since returns the answers after the first n, as far as they are kept.
func (h *answersOf) since(n uint64) []machine.Instant {
	return h.last[len(h.last)-int(min(h.count-n, uint64(len(h.last)))):]
}

func newJudgeSession(c *core, registry *fd.Registry[gossip.NodeID], judge string) *judgeSession {
	return &judgeSession{core: c, registry: registry, name: judge, heard: map[gossip.NodeID]*answersOf{}, why: map[gossip.NodeID]string{}}
}

// hears notes an answer of which the detectors learn too.
func (j *judgeSession) hears(from gossip.NodeID, at machine.Instant) {
	if j.name == "" || !j.registry.Expected(from) {
		return
	}
	delete(j.why, from)
	h := j.heard[from]
	if h == nil {
		h = &answersOf{id: from.String()}
		j.heard[from] = h
	}
	if len(h.last) == answersKept {
		copy(h.last, h.last[1:])
		h.last = h.last[:answersKept-1]
	}
	h.last = append(h.last, at)
	h.count++
}

// forget drops what is known of a node that gets no heartbeats any more.
func (j *judgeSession) forget(n gossip.NodeID) {
	delete(j.heard, n)
	delete(j.why, n)
}

// limit is how long the judge has for an answer: after that there is time for the detectors to
// decide before the next round.
func (j *judgeSession) limit() time.Duration { return j.cfg.FailureDetector.HeartbeatInterval / 2 }

// ask sends the judge what has happened since the last batch. Targets are those nodes that get
// heartbeats, sorted.
func (j *judgeSession) ask(targets []gossip.NodeID) {
	if j.name == "" || j.call != 0 {
		return
	}
	b, asked := fd.Batch{Number: j.number + 1}, []batchTarget(nil)
	if j.number > 0 {
		b.Elapsed = j.now.Mono.Sub(j.moment)
	}
	for _, node := range targets {
		h := j.heard[node]
		if h == nil {
			continue
		}
		s := fd.Subject{ID: h.id, Available: j.registry.Available(node, j.now.Mono.Time())}
		answers := h.last // A new session: the judge knows nothing.
		if j.number > 0 {
			answers = h.since(h.told)
		}
		for _, at := range answers {
			s.Ages = append(s.Ages, j.now.Mono.Sub(at))
		}
		b.Subjects, asked = append(b.Subjects, s), append(asked, batchTarget{node, h.count})
	}
	if j.number == 0 && len(b.Subjects) == 0 {
		return // There is nobody to judge.
	}
	j.call, j.batch, j.asked, j.moment = j.nextCall(), b, asked, j.now.Mono
	j.out.Add(machine.Call{ID: j.call, Port: CallFailureDetector, Request: b, Limit: j.limit()})
	j.out.Arm(timerJudge, j.now.Mono.Add(j.limit()))
}

// returned takes the answer to a call, and reports whether the call was one to the judge.
// Targets are those nodes that get heartbeats.
func (j *judgeSession) returned(in machine.Called, targets []gossip.NodeID) bool {
	if in.ID == 0 || in.ID != j.call {
		return false
	}
	j.end()
	if _, anew := in.Result.(OutOfStep); anew && in.Err == nil && j.number > 0 {
		j.number = 0 // It has begun anew, and can answer before the next round.
		j.ask(targets)
		return true
	}
	verdicts, known := in.Result.(fd.Verdicts)
	err := in.Err
	if err == nil && !known {
		err = fmt.Errorf("the answer is no verdicts: %T", in.Result)
	}
	if err == nil {
		err = verdicts.Check(j.batch)
	}
	if err != nil {
		if in.Err == nil {
			j.refuseSilently(RefusedAnswer)
		}
		j.fail(err)
	} else {
		j.take(verdicts)
	}
	return true
}

// late is called when the judge has not answered in time.
func (j *judgeSession) late() { j.fail(fmt.Errorf("no answer within %v", j.limit())) }

// end ends the wait for an answer.
func (j *judgeSession) end() {
	j.call = 0
	j.out.Disarm(timerJudge)
}

// take does what the judge says. That a target is available again is never taken from the
// judge: an answer of the target says so.
func (j *judgeSession) take(v fd.Verdicts) {
	j.number = v.Number
	if !j.inForce {
		j.inForce = true
		j.registry.Judged(true, j.now.Mono.Time())
		j.out.DecideOften("reachability", j.name, "judges", fmt.Sprintf("it answers, and decides within %v to %v of silence",
			j.cfg.FailureDetector.Bounds().MinSilence, j.cfg.FailureDetector.Bounds().MaxSilence))
	}
	changes := make(map[string]fd.Verdict, len(v.Changes))
	for _, c := range v.Changes {
		changes[c.ID] = c
	}
	for i, a := range j.asked {
		if h := j.heard[a.node]; h != nil {
			h.told = a.count
		}
		c, changed := changes[j.batch.Subjects[i].ID]
		if changed && !c.Available && j.registry.Accuse(a.node, j.moment.Time(), j.now.Mono.Time()) {
			j.why[a.node] = cutText(c.Reason)
		}
	}
	j.armSilence()
}

// fail goes on without the judge, and with a new session in the next round.
func (j *judgeSession) fail(err error) {
	j.end()
	j.number = 0
	if !j.inForce {
		return
	}
	j.inForce = false
	j.registry.Judged(false, j.now.Mono.Time())
	j.out.DecideOften("reachability", j.name, "away", cutText(fmt.Sprintf("the built-in detector judges until it answers again: %v", err)))
	j.armSilence()
}

// reason returns why the judge has accused a target, empty if it has not.
func (j *judgeSession) reason(n gossip.NodeID) string {
	if why := j.why[n]; why != "" {
		return "; " + j.name + ": " + why
	}
	return ""
}
