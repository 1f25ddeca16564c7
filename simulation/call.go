// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// ErrCallFailed answers a call that was drawn to fail.
var ErrCallFailed = errors.New("simulation: the strategy failed")

// ErrUnavailable answers a call in which the process of the strategy crashes, and
// those that are made until it has been started again.
var ErrUnavailable = errors.New("simulation: the strategy is not available")

// Answer answers calls of one kind. It runs when the call is made, on behalf
// of the node that asked; its answer arrives later. A panic is an answer too, as
// it is in production.
type Answer func(n *Node, request any) (any, error)

// Garble makes up an answer that breaks the contract of one kind of call.
type Garble func(r *rand.Rand, request any) any

// Asked is observed when a component has made a call. Busy says that it was
// answered within the same step, since an earlier one had not returned.
type Asked struct {
	Call machine.Call
	Busy bool
}

// Answered is observed when a component is about to be fed the answer to a call.
type Answered struct {
	Kind   string
	Key    string
	Called machine.Called

	// Late says that the limit of the call has passed, by the clock of the node,
	// while the node ran: the machine has gone on without the answer.
	Late bool
}

// Answer says who answers calls of a kind.
func (w *World) Answer(kind string, a Answer) { w.strategies.answers[kind] = a }

// Garble says how answers of a kind can be wrong.
func (w *World) Garble(kind string, g Garble) { w.strategies.garblers[kind] = g }

// SetCalls changes what happens to calls from now on, on every node.
func (w *World) SetCalls(c Calls) {
	w.opt.Calls = c
	clear(w.strategies.at)
	w.Log("calls %+v", c)
}

// SetCallsAt changes what happens to calls of the node at an address, and of those
// that follow it there, until the next [World.SetCalls].
func (w *World) SetCallsAt(a gossip.Address, c Calls) {
	w.strategies.at[a] = c
	w.Log("calls at %v %+v", a, c)
}

// Fates returns what became of the calls that were made, by name.
func (w *World) Fates() []Injected { return counted(w.strategies.fates) }

// strategies are those whom the nodes of a world can ask.
type strategies struct {
	source   *rand.Rand // What fates are drawn from.
	answers  map[string]Answer
	garblers map[string]Garble
	at       map[gossip.Address]Calls
	fates    map[string]int // How often each was drawn.
}

func newStrategies(source *rand.Rand) strategies {
	return strategies{
		source: source, answers: make(map[string]Answer), garblers: make(map[string]Garble),
		at: make(map[gossip.Address]Calls), fates: make(map[string]int),
	}
}

// served is what stands behind one kind of call of one component of a node: the
// worker of the driver, and the process of the strategy.
type served struct {
	waiting machine.CallID // Its answer has not been fed, and occupies the worker.
	busy    int64          // World time until which the worker is occupied anyway.
	away    int64          // World time until which the process is being started again.
	crashes int            // In a row.
}

// name returns the kind of a call, with its key if it has one.
func (k callKey) name() string { return callName(k.kind, k.key) }

func callName(kind, key string) string {
	if key == "" {
		return kind
	}
	return kind + "/" + key
}

// asking is a call under way.
type asking struct {
	key    callKey
	id     machine.CallID
	made   machine.Instant // By the clock of the node.
	limit  time.Duration
	thaws  int // How often the node had been thawed then.
	digest uint64
}

// call lets a strategy be asked. What was asked and what came of it are lines of
// the trace, and of the recording, if there is one. In a replay nobody is asked.
func (w *World) call(n *Node, from machine.ID, c machine.Call) {
	a := asking{
		key: callKey{of: from, kind: c.Kind, key: c.Key}, id: c.ID, made: n.Now().Mono, limit: c.Limit,
		thaws: n.thaws, digest: digest(c.Request),
	}
	w.stats.Calls++
	f, err := w.answerTo(n, a, c)
	if err != nil {
		w.Fail(err)
		return
	}
	w.strategies.fates[f.name]++
	w.writing(n, c, f)
	w.trace.add(line{
		at: w.now, place: n.place.index, peer: -1, verb: verbCalled,
		note: fmt.Sprintf("%s %d of %016x: %s", a.key.name(), c.ID, a.digest, f.name),
	})
	w.observe(n, from, Asked{Call: c, Busy: f.name == fateBusy})
	if f.name == fateBusy {
		n.group.Enqueue(from, f.called(c.ID))
		return
	}
	w.push(event{
		at: f.at, kind: kindInput, place: n.place.index, incarnation: n.incarnation,
		ref: w.inputs.put(input{to: from, in: f.called(c.ID), answer: &a}),
	})
}

// answerTo returns what becomes of a call: by the recording in a replay, else as
// the seed says, which a recording takes down.
func (w *World) answerTo(n *Node, a asking, c machine.Call) (fate, error) {
	if w.replay != nil {
		return w.replay.answer(w, n, a)
	}
	f := w.draw(n, a.key, c)
	return f, w.record.call(w, n, a, f)
}

// answered feeds the answer of a call. One that comes too late must not set
// anything off: see [Node.Carry].
func (w *World) answered(n *Node, in input) {
	a := in.answer
	if s := n.served[a.key]; s != nil && s.waiting == a.id {
		s.waiting = 0
	}
	called, _ := in.in.(machine.Called)
	if err := w.written(n, a.key.kind, called.Err); err != called.Err { //nolint:errorlint // Whether it is the very one.
		called.Err = err
		in.in = called
	}
	late := n.Now().Mono > a.made.Add(a.limit+lateMargin) && n.thaws == a.thaws
	w.trace.add(line{
		at: w.now, place: n.place.index, peer: -1, verb: verbAnswered,
		note: fmt.Sprintf("%s %d %s", a.key.name(), a.id, summary(called)),
	})
	w.observe(n, in.to, Answered{Kind: a.key.kind, Key: a.key.key, Called: called, Late: late})
	if late {
		w.stats.Late++
		n.muted = a
	}
	n.step(in.to, in.in)
	n.muted = nil
}

// lateMargin is how long after its limit an answer is late for certain: the timer
// of the machine has fired.
const lateMargin = time.Millisecond

// summary describes an answer in the trace.
func summary(c machine.Called) string {
	if c.Err != nil {
		return "error: " + c.Err.Error()
	}
	return fmt.Sprintf("%T %016x", c.Result, digest(c.Result))
}

// muffle finds a machine that does something because of an answer that came too
// late.
func (w *World) muffle(n *Node, from machine.ID, e machine.Effect) {
	if from != n.muted.key.of {
		return
	}
	switch e.(type) {
	case machine.Send, machine.Decide, machine.Call:
		w.Fail(fmt.Errorf("I34: %v acts on answer %d of %s, which came after its limit: %T",
			n.id, n.muted.id, n.muted.key.name(), e))
	}
}
