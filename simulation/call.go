// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// Calls of strategies. A node makes a call; its outcome is drawn (outcome.go) or, in a
// replay, read from the recording; the answer waits as an event in the heap and is fed
// to the component when its time has come. An answer that is fed after the limit of
// its call must cause no effect.

// ErrCallFailed is the answer to a call whose outcome is to fail.
var ErrCallFailed = errors.New("simulation: the strategy failed")

// ErrUnavailable is the answer to a call in which the process of the strategy crashes,
// and to the calls that are made until the process has been started again.
var ErrUnavailable = errors.New("simulation: the strategy is not available")

// Answer answers calls to one port. It runs when the call is made, on behalf of the
// calling node; the answer is fed later. A panic counts as an answer, as in
// production.
type Answer func(n *Node, request any) (any, error)

// CallHandler answers calls to one port on behalf of a part of the world, such as a process beside
// the node that asks others over a network of its own. It calls reply at any later time of the
// world; only the first reply counts. What it does must follow from the seed: such calls are not
// recorded.
type CallHandler func(n *Node, c machine.Call, reply func(result any, err error))

// GarbageAnswer returns a made-up answer that breaks the contract of one port.
type GarbageAnswer func(r *rand.Rand, request any) any

// Asked is observed when a component has made a call. Busy says that the call was
// answered within the same step, since an earlier call had not returned.
type Asked struct {
	Call machine.Call
	Busy bool
}

// Answered is observed when a component is about to be fed the answer to a call.
type Answered struct {
	Port   string
	Key    string
	Called machine.Called

	// Late says that the limit of the call has passed, by the clock of the node, while
	// the node was running: the machine has gone on without the answer.
	Late bool
}

// Strategies answer the calls of the nodes of a world; [World.Strategies] returns
// them. A call to a port is answered by the function given to [Strategies.Answer], in
// time or not, as the seed says.
type Strategies struct {
	world    *World
	source   *rand.Rand // Draws the outcomes of calls.
	usual    Calls
	at       map[gossip.Address]Calls
	answers  map[string]Answer
	handlers map[string]CallHandler
	garblers map[string]GarbageAnswer
	outcomes map[string]int          // How often each outcome was drawn.
	types    map[string]reflect.Type // The types of answers that can be recorded, by name.
	bounds   map[string]Pace         // How often ports may be called, by name, where that is bound.

	calls map[nodePort][]machine.Instant // The last calls of each port, as many as its bound counts.
}

// newStrategies returns strategies without answering functions. Outcomes are drawn from a
// source of their own, so that a replay, which draws none, is otherwise the same run.
func newStrategies(w *World, opt *Options) *Strategies {
	return &Strategies{
		world: w, source: source(opt.Seed, 3), usual: opt.Calls,
		at: make(map[gossip.Address]Calls), answers: make(map[string]Answer), handlers: make(map[string]CallHandler), garblers: make(map[string]GarbageAnswer),
		outcomes: make(map[string]int), types: plainTypes(),
		bounds: make(map[string]Pace), calls: make(map[nodePort][]machine.Instant),
	}
}

// Answer sets the function that answers calls to a port.
func (s *Strategies) Answer(port string, a Answer) { s.answers[port] = a }

// Handle has a handler answer calls to a port: the chances of [Calls] do not apply to them.
func (s *Strategies) Handle(port string, h CallHandler) { s.handlers[port] = h }

// Garble sets the function that makes up the garbage that a port answers.
func (s *Strategies) Garble(port string, g GarbageAnswer) { s.garblers[port] = g }

// Set changes what happens to calls from now on, on every node.
func (s *Strategies) Set(c Calls) {
	s.usual = c
	clear(s.at)
	s.world.Log("calls %+v", c)
}

// SetAt changes what happens to calls of the node at an address, and of later nodes at
// that address, until the next [Strategies.Set].
func (s *Strategies) SetAt(a gossip.Address, c Calls) {
	s.at[a] = c
	s.world.Log("calls at %v %+v", a, c)
}

// Outcomes returns how often each outcome was drawn, by name.
func (s *Strategies) Outcomes() []FaultCount { return counted(s.outcomes) }

// Recorded registers the types of values as types of answers, so that such answers can
// be recorded. Strings, numbers, booleans and nil need no registration.
func (s *Strategies) Recorded(values ...any) {
	for _, v := range values {
		t := reflect.TypeOf(v)
		s.types[t.String()] = t
	}
}

// strategyProcess is what answers one port of one component of a node: the worker of the driver,
// and the process of the strategy that the worker asks.
type strategyProcess struct {
	waiting machine.CallID // The call whose answer has not been fed: it occupies the worker.
	busy    int64          // World time until which the worker is occupied, whatever waiting is.
	away    int64          // World time at which the crashed process is running again.
	crashes int            // Crashes in a row.
}

// name returns the port of a call, with its key if it has one.
func (k callKey) name() string { return callName(k.port, k.key) }

func callName(port, key string) string {
	if key == "" {
		return port
	}
	return port + "/" + key
}

// pendingCall is a call under way.
type pendingCall struct {
	key    callKey
	id     machine.CallID
	made   machine.Instant // By the clock of the node.
	limit  time.Duration
	thaws  int // The node's count of thaws when the call was made.
	digest uint64
}

// call makes a call of a node, and schedules its answer. The call and its outcome are a
// line of the trace and, if there is one, of the recording. In a replay no strategy is
// called.
func (s *Strategies) call(n *Node, from machine.ID, c machine.Call) {
	a := pendingCall{
		key: callKey{of: from, port: c.Port, key: c.Key}, id: c.ID, made: n.Now().Mono, limit: c.Limit,
		thaws: n.thaws, digest: digest(c.Request),
	}
	s.world.stats.Calls++
	s.pace(n, a.key)
	if handler := s.handlers[c.Port]; handler != nil {
		s.handle(n, a, c, handler)
		return
	}
	f, err := s.answerTo(n, a, c)
	if err != nil {
		s.world.Fail(err)
		return
	}
	s.outcomes[f.name]++
	s.world.disks.writing(n, c, f)
	s.world.trace.add(line{
		at: s.world.now, place: n.place.index, peer: -1, verb: verbCalled,
		note: fmt.Sprintf("%s %d of %016x: %s", a.key.name(), c.ID, a.digest, f.name),
	})
	s.world.observe(n, from, Asked{Call: c, Busy: f.name == outcomeBusy})
	if f.name == outcomeBusy {
		n.group.Enqueue(from, f.called(c.ID))
		return
	}
	s.world.push(event{
		at: f.at, typ: eventInput, place: n.place.index, incarnation: n.incarnation,
		ref: s.world.inputs.put(input{to: from, in: f.called(c.ID), answer: &a}),
	})
}

// Pace bounds calls: Most in any time of the length Per, by the clock of the node that calls.
type Pace struct {
	Most int
	Per  time.Duration
}

// maxCalls is how often a port that is not bound may be called in a second: ten times what the busiest second of the
// worlds here needs. More means that the answers of a strategy set the pace of the machine.
const maxCalls = 200

// Bound bounds how often a component of a node may call a port, with each key.
func (s *Strategies) Bound(port string, p Pace) { s.bounds[port] = p }

// pace fails the run when a component calls a port too often.
func (s *Strategies) pace(n *Node, k callKey) {
	bound, known := s.bounds[k.port]
	if !known {
		bound = Pace{Most: maxCalls, Per: time.Second}
	}
	of, now := nodePort{n.ID(), k}, n.Now().Mono
	last := append(s.calls[of], now)
	if more := len(last) - bound.Most; more > 0 {
		if last[more-1].Add(bound.Per) > now {
			s.world.Fail(fmt.Errorf("%s is called more than %d times in %v by %s", k.name(), bound.Most, bound.Per, n.ID()))
		}
		last = last[more:]
	}
	s.calls[of] = last
}

// nodePort names a port of a component of a node.
type nodePort struct {
	node gossip.NodeID
	key  callKey
}

// handle gives a call to the handler of its port.
func (s *Strategies) handle(n *Node, a pendingCall, c machine.Call, handler CallHandler) {
	s.world.trace.add(line{
		at: s.world.now, place: n.place.index, peer: -1, verb: verbCalled,
		note: fmt.Sprintf("%s %d of %016x: handed on", a.key.name(), c.ID, a.digest),
	})
	s.world.observe(n, a.key.of, Asked{Call: c})
	replied := false
	handler(n, c, func(result any, err error) {
		if replied || !n.Alive() {
			return
		}
		replied = true
		s.world.push(event{
			at: s.world.now, typ: eventInput, place: n.place.index, incarnation: n.incarnation,
			ref: s.world.inputs.put(input{to: a.key.of, in: machine.Called{ID: c.ID, Result: result, Err: err}, answer: &a}),
		})
	})
}

// answerTo returns the outcome of a call: from the recording in a replay, otherwise drawn
// from the seed and recorded.
func (s *Strategies) answerTo(n *Node, a pendingCall, c machine.Call) (outcome, error) {
	if s.world.replay != nil {
		return s.world.replay.answer(s.world, n, a)
	}
	f := s.draw(n, a.key, c)
	return f, s.world.record.call(s.world, n, a, f)
}

// answered feeds the answer of a call. While a late answer is fed, [Node.Carry] allows
// no effect that acts on it.
func (s *Strategies) answered(n *Node, in input) {
	a := in.answer
	if p := n.processes[a.key]; p != nil && p.waiting == a.id {
		p.waiting = 0
	}
	called, _ := in.in.(machine.Called)
	if err := s.world.disks.written(n, a.key.port, called.Err); err != called.Err { //nolint:errorlint // Identity is meant, not a match.
		called.Err = err
		in.in = called
	}
	late := n.Now().Mono > a.made.Add(a.limit+lateMargin) && n.thaws == a.thaws
	s.world.trace.add(line{
		at: s.world.now, place: n.place.index, peer: -1, verb: verbAnswered,
		note: fmt.Sprintf("%s %d %s", a.key.name(), a.id, summary(called)),
	})
	s.world.observe(n, in.to, Answered{Port: a.key.port, Key: a.key.key, Called: called, Late: late})
	if late {
		s.world.stats.Late++
		n.lateCall = a
	}
	n.step(in.to, in.in)
	n.lateCall = nil
}

// lateMargin is how long after its limit an answer is certainly late: the timer of the
// machine has fired by then.
const lateMargin = time.Millisecond

// summary describes an answer in the trace.
func summary(c machine.Called) string {
	if c.Err != nil {
		return "error: " + c.Err.Error()
	}
	return fmt.Sprintf("%T %016x", c.Result, digest(c.Result))
}

// rejectLate fails the run when a machine acts on an answer that came too late.
func (s *Strategies) rejectLate(n *Node, from machine.ID, e machine.Effect) {
	if from != n.lateCall.key.of {
		return
	}
	switch e.(type) {
	case machine.Send, machine.Decide, machine.Call:
		s.world.Fail(fmt.Errorf("I34: %v acts on answer %d of %s, which came after its limit: %T",
			n.id, n.lateCall.id, n.lateCall.key.name(), e))
	}
}
