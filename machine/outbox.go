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

// Send asks for Message to be sent to To. A To without a UID means whoever
// lives at that address: it is used before the peer's identity is known.
// Sending never blocks a machine: what cannot be sent is counted by the
// driver, and the protocols repeat themselves.
type Send struct {
	To      gossip.NodeID
	Lane    Lane
	Message any
}

// Arm asks for [Fired] with Timer at At, or at once when At has passed. It
// replaces an earlier request for an equal Timer.
type Arm struct {
	Timer Timer
	At    Instant
}

// Disarm takes back a request for Timer, if there is one.
type Disarm struct{ Timer Timer }

// Publish hands Event to every other component of the node, and to the
// program's subscribers where the driver has any. Event is immutable.
type Publish struct{ Event any }

// Call asks for a strategy that may block, may live in another process, and
// may never answer. The answer is the input [Called] with the same ID. Port
// names who is asked ("downing", "allocation"). Key tells calls to one port apart
// that do not wait for each other, such as those for different kinds of entities;
// mostly it is empty. At most one call to a port with a key is in flight for a
// machine. The driver cancels the call after Limit, the machine has a timer of
// its own.
type Call struct {
	ID      CallID
	Port    string
	Key     string
	Request any
	Limit   time.Duration
}

// Decide records a decision for people: what was decided about what, and why.
// It goes to the node's bounded decision log and to its log.
type Decide struct {
	Topic   string // What the decision is about in general: "downing", "leader", "allocation" and so on.
	Subject string // What was decided about: a node, a shard.
	Verdict string // What was decided.
	Reason  string // Why, in one sentence.
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

// Effects returns what was appended since the last [Outbox.Reset]. The slice
// is valid until then.
func (o *Outbox) Effects() []Effect { return o.effects }

// Reset empties the outbox and keeps its memory.
func (o *Outbox) Reset() {
	clear(o.effects)
	o.effects = o.effects[:0]
}
