// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"time"

	"github.com/quorate/quorate/gossip"
)

// Effect is one consequence of a step: [Send], [Arm], [Disarm], [Publish],
// [Call], [Decide], or a type of the machine's own package that the driver of
// that package carries out (a [Driver] hands those to Ports.Other).
type Effect any

// Send sends Message to To. A To without a UID means any node that lives at that
// address; it is used before the peer's identity is known. Sending never blocks a
// machine: a message that cannot be sent is counted by the driver, and the protocols
// repeat themselves.
type Send struct {
	To      gossip.NodeID
	Lane    Lane
	Message any
}

// Arm requests [Fired] with Timer at the instant At, or at once when At has passed. It
// replaces an earlier request for an equal Timer.
type Arm struct {
	Timer Timer
	At    Instant
}

// Disarm withdraws the request for Timer, if there is one.
type Disarm struct{ Timer Timer }

// Publish hands Event to every other component of the node, and to the
// program's subscribers where the driver has any. Event is immutable.
type Publish struct{ Event any }

// Call calls a strategy, which may block, may live in another process, and may never
// answer. The answer is the input [Called] with the same ID. Port names the strategy
// ("downing", "allocation"). Key distinguishes calls to one port that do not wait for
// each other, such as those for different kinds of entities; mostly it is empty. A
// machine has at most one call to a port with a key in flight. The driver cancels the
// call after Limit; the machine has a timer of its own.
type Call struct {
	ID      CallID
	Port    string
	Key     string
	Request any
	Limit   time.Duration
}

// Decide records a decision for people. It goes to the node's bounded decision log and
// to its log.
type Decide struct {
	Topic   string // The sort of decision: "downing", "leader", "allocation" and so on.
	Subject string // The object of the decision: a node, a shard.
	Verdict string // The outcome.
	Reason  string // The reason, in one sentence.

	// Often says that the decision follows from the answers of a strategy, and may be taken again and again: the log of
	// the node repeats it once a minute at most for the same reason.
	Often bool
}

// Outbox collects the effects of one step, in order. The zero value is ready
// for use. A driver reuses it from step to step.
type Outbox struct{ effects []Effect }

// Add appends an effect.
func (o *Outbox) Add(e Effect) { o.effects = append(o.effects, e) }

// Send appends a [Send] on the control lane.
func (o *Outbox) Send(to gossip.NodeID, message any) {
	o.Add(Send{To: to, Lane: LaneControl, Message: message})
}

// Arm appends an [Arm].
func (o *Outbox) Arm(t Timer, at Instant) { o.Add(Arm{Timer: t, At: at}) }

// Disarm appends a [Disarm].
func (o *Outbox) Disarm(t Timer) { o.Add(Disarm{Timer: t}) }

// Publish appends a [Publish].
func (o *Outbox) Publish(event any) { o.Add(Publish{Event: event}) }

// Decide appends a [Decide].
func (o *Outbox) Decide(topic, subject, verdict, reason string) {
	o.Add(Decide{Topic: topic, Subject: subject, Verdict: verdict, Reason: reason})
}

// DecideOften appends a [Decide] that may be taken again and again, see [Decide.Often].
func (o *Outbox) DecideOften(topic, subject, verdict, reason string) {
	o.Add(Decide{Topic: topic, Subject: subject, Verdict: verdict, Reason: reason, Often: true})
}

// Effects returns the effects that were appended since the last [Outbox.Reset]. The
// slice is valid until the next one.
func (o *Outbox) Effects() []Effect { return o.effects }

// Reset empties the outbox and keeps its memory.
func (o *Outbox) Reset() {
	clear(o.effects)
	o.effects = o.effects[:0]
}
