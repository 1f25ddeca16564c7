// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package majority

import (
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/downing/lease"
	"github.com/quorate/quorate/downing/lease/internal/protocol"

	"github.com/quorate/quorate/config/field"
)

// From top to bottom: the vocabulary; Step, which takes an input and then looks what is due;
// a question and its three answers (granted, refused, none in time); the end of a holding. The
// core of the lease below it knows whether the lease is held, and asks the store.

// Kind is the kind of an [Input].
type Kind uint8

// The kinds of inputs. The zero value is Tick.
const (
	// Tick: time has passed.
	Tick Kind = iota
	// Asked: a decision about a view is asked for. The question before has been answered, or
	// has ended.
	Asked
	// Ended: nobody waits for the answer to the question any more.
	Ended
	// Settled: the members that the decision has downed are removed, and all who go on have
	// seen that; or nobody is missing any more.
	Settled
	// Answered: the call to the store has returned.
	Answered
	// Closed: the node ends. A lease by which nothing was decided is released; one by which a
	// side was kept is left to expire, so that the other sides stay refused.
	Closed
)

// Input is what happened.
type Input struct {
	Kind   Kind
	View   downing.View // of an Asked
	Answer lease.Answer // of an Answered
	Err    error        // of an Answered: what the store did is unknown
}

// Call is a call to the store.
type Call struct {
	Give  bool // The lease is given back; else it is taken.
	Claim lease.Claim
}

// Output is what a step asks to be done.
type Output struct {
	// Call, if it is not nil, is to be made. It must be answered by an Answered, however late.
	Call *Call
	// Reply, if it is not nil, is the answer to the question.
	Reply *Reply
}

// Reply is the answer to a question.
type Reply struct {
	Decision downing.Decision
	// Err says why there is no decision.
	Err error
	// Waits says that there is no decision because the lease could not be had yet.
	Waits bool
}

// Machine is the strategy of one node: a question, the answers of the store and the time go in,
// calls and the decision come out. Use [NewMachine]. It is not safe for concurrent use. All
// times are readings of the clock of this process, which never goes back.
type Machine struct {
	settings Settings
	rule     downing.LeaseMajority
	core     *protocol.Core

	question      *question
	decided       bool          // a side was kept by the lease that is held
	expiring      bool          // the decision is carried out; the lease is held until shortly before its end
	expiringSince time.Duration // since when it is so
	idleSince     time.Duration // when the last question ended
}

// question is a question without an answer.
type question struct {
	view  downing.View
	plan  downing.LeasePlan
	from  time.Duration // when the store is to be asked
	asked bool
	since time.Duration // when the store was to be asked: only what it granted later counts
}

// NewMachine returns a machine with settings that are valid. The owner of its claims begins
// with the owner of the settings, and contains the text, which nobody else has.
func NewMachine(s Settings, unique string) *Machine {
	return &Machine{
		settings: s,
		rule:     downing.LeaseMajority{MinorityDelay: s.MinorityDelay, Role: s.Role},
		core: protocol.New(protocol.Config{
			Owner: s.Owner + "/" + unique, TTL: s.ReleaseAfter,
			Renew: s.ReleaseAfter / renewal, Retry: s.RetryInterval, Limit: s.RequestTimeout,
		}),
	}
}

// Token returns the fencing token, and whether the lease is held at a moment.
func (m *Machine) Token(now time.Duration) (uint64, bool) { return m.core.Token(now) }

// Waits reports since when the machine waits for the lease, and why it has not got it.
func (m *Machine) Waits() (since time.Duration, reason string, waits bool) {
	return m.core.Since(), m.core.Reason(), m.question != nil && m.question.asked
}

// Wake returns when the next Tick is due, and false if none is.
func (m *Machine) Wake() (time.Duration, bool) {
	at, due := m.core.Wake()
	earliest := func(t time.Duration) {
		if !due || t < at {
			at, due = t, true
		}
	}
	if q := m.question; q != nil && !q.asked {
		earliest(q.from)
	}
	switch {
	case m.expiring:
		earliest(m.releaseAt())
	case m.unneeded():
		earliest(m.idleSince + m.settings.Patience)
	}
	return at, due
}

// Step takes one input.
func (m *Machine) Step(in Input, now time.Duration) Output {
	var out Output
	switch in.Kind {
	case Asked:
		m.begin(in.View, now, &out)
	case Ended:
		m.question, m.idleSince = nil, now
	case Settled:
		m.settle(now, &out)
	case Answered:
		m.feed(protocol.Input{Kind: protocol.Answered, Result: protocol.Result{
			Granted: in.Answer.Granted, Owner: in.Answer.Owner, Token: in.Answer.Token, TTL: in.Answer.TTL, Fault: in.Err,
		}}, now, &out)
	case Closed:
		if m.question = nil; !m.decided {
			m.feed(protocol.Input{Kind: protocol.Drop}, now, &out)
		}
	case Tick:
	}
	m.feed(protocol.Input{Kind: protocol.Tick}, now, &out)
	m.proceed(now, &out)
	m.releaseUnneeded(now, &out)
	return out
}

// feed steps the core with an input. Of all inputs of one step at most one leads to a call.
func (m *Machine) feed(in protocol.Input, now time.Duration, out *Output) {
	switch ask := m.core.Step(in, now); ask.Question {
	case protocol.Take, protocol.Give:
		out.Call = &Call{
			Give:  ask.Question == protocol.Give,
			Claim: lease.Claim{Name: m.settings.Lease, Owner: ask.Owner, TTL: m.settings.ReleaseAfter},
		}
	case protocol.None:
	}
}

// begin handles a question.
func (m *Machine) begin(view downing.View, now time.Duration, out *Output) {
	m.question = nil
	plan, err := m.rule.Plan(view)
	if err != nil || !plan.Ask {
		out.Reply = &Reply{Decision: plan.Now, Err: err}
		return
	}
	m.question = &question{view: view, plan: plan, from: now + plan.Delay}
	if _, held := m.core.Token(now); held {
		m.question.from = now
	}
}

// proceed asks the store when that is due, and answers the question when the store has answered.
// A lease that is held already is confirmed by the store: from then on it lasts as long as a new one.
func (m *Machine) proceed(now time.Duration, out *Output) {
	q := m.question
	if q == nil || now < q.from {
		return
	}
	token, held := m.core.Token(now)
	switch {
	case !q.asked:
		q.asked, q.since, m.expiring = true, now, false
		m.want(held, now, out)
	case held && m.core.Granted() >= q.since:
		m.decided = true
		m.reply(m.named(q.plan.After(downing.LeaseGranted), fmt.Sprintf("%s, token %d", m.lease(), token)), now, out)
	case m.core.Phase() != protocol.Idle:
	case m.core.Holder() != "":
		m.refuse(m.core.Holder(), now, out)
	default: // It was held, and is lost.
		m.want(false, now, out)
	}
}

// want asks the store at once: for the lease, or to confirm the one held.
func (m *Machine) want(held bool, now time.Duration, out *Output) {
	kind := protocol.Want
	if held {
		kind = protocol.Confirm
	}
	m.feed(protocol.Input{Kind: kind}, now, out)
}

// tooLate is after how many tenths of the life of a lease a side that is refused gives up: what
// it could still be granted would come too late for it, see [downing.HeardWithin].
const tooLate = 7

// refuse answers a question when another has the lease. The holder may have died since, and
// then the lease ends; so the side waits, until no lease that it gets can count any more.
func (m *Machine) refuse(holder string, now time.Duration, out *Output) {
	q, by := m.question, fmt.Sprintf("%s is held by %s", m.lease(), field.Clip(holder))
	if !m.isOnSide(holder, &q.view) && q.view.Unstable >= m.settings.ReleaseAfter*tooLate/10 {
		m.reply(m.named(q.plan.After(downing.LeaseRefused), by), now, out)
		return
	}
	m.question, m.idleSince = nil, now
	out.Reply = &Reply{Err: fmt.Errorf("waiting for it: %s", by), Waits: true}
}

// isOnSide reports whether the holder of the lease is a member of the side, which can answer
// the question itself.
func (m *Machine) isOnSide(holder string, view *downing.View) bool {
	address, _, _ := strings.Cut(holder, "/")
	for _, member := range view.Side().Members() {
		if member.Node.Address.String() == address {
			return true
		}
	}
	return false
}

// reply ends the question with a decision.
func (m *Machine) reply(d downing.Decision, now time.Duration, out *Output) {
	m.question, m.idleSince = nil, now
	out.Reply = &Reply{Decision: d}
}

// named adds to the reason of a decision what is known of the lease.
func (m *Machine) named(d downing.Decision, heard string) downing.Decision {
	d.Reason += "; " + heard
	if len(d.Reason) > downing.MaxReason {
		d.Reason = heard
	}
	return d
}

// lease names the lease and its store.
func (m *Machine) lease() string {
	return fmt.Sprintf("the lease %q at %s", m.settings.Lease, m.settings.Store)
}

// settle ends the need for the lease. One by which nothing was decided is released at once; for
// another the store is asked once more, so that the lease lasts its whole time from now on.
func (m *Machine) settle(now time.Duration, out *Output) {
	switch {
	case m.question != nil:
	case !m.decided:
		m.feed(protocol.Input{Kind: protocol.Drop}, now, out)
	case !m.expiring:
		m.expiring, m.expiringSince = true, now
		m.feed(protocol.Input{Kind: protocol.Confirm}, now, out)
	}
}

// releaseUnneeded releases a lease that no decision needs any more: one that expires, shortly before its end;
// another one when no question has needed it for as long as Settings.Patience.
func (m *Machine) releaseUnneeded(now time.Duration, out *Output) {
	_, held := m.core.Token(now)
	switch {
	case m.expiring && !held:
		m.expiring, m.decided = false, false
	case m.expiring && now >= m.releaseAt():
		m.expiring, m.decided = false, false
		m.feed(protocol.Input{Kind: protocol.Drop}, now, out)
	case m.expiring && m.core.Granted() >= m.expiringSince:
		m.feed(protocol.Input{Kind: protocol.Rest}, now, out)
	case m.unneeded() && now >= m.idleSince+m.settings.Patience:
		m.feed(protocol.Input{Kind: protocol.Drop}, now, out)
	}
}

// unneeded reports whether a lease is held or waited for that no question and no decision
// needs.
func (m *Machine) unneeded() bool {
	phase := m.core.Phase()
	return m.question == nil && !m.decided && (phase == protocol.Waiting || phase == protocol.Held)
}

// releaseAt returns when a lease that expires is released: shortly before its end.
func (m *Machine) releaseAt() time.Duration { return m.core.Until() - m.settings.ReleaseAfter/40 }

// Decided reports whether the lease has to last, since a side was kept by it.
func (m *Machine) Decided() bool { return m.decided }

// GivesBack reports whether the store is being told that the lease is free.
func (m *Machine) GivesBack() bool { return m.core.Phase() == protocol.Releasing }
