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

// ErrCallFailed answers a call that was drawn to fail.
var ErrCallFailed = errors.New("simulation: the strategy failed")

// ErrUnavailable answers a call in which the process of the strategy crashes, and
// those that are made until it has been started again.
var ErrUnavailable = errors.New("simulation: the strategy is not available")

// Answer answers calls to one port. It runs when the call is made, on behalf
// of the node that asked; its answer arrives later. A panic is an answer too, as
// it is in production.
type Answer func(n *Node, request any) (any, error)

// Garble makes up an answer that breaks the contract of one port.
type Garble func(r *rand.Rand, request any) any

// Asked is observed when a component has made a call. Busy says that it was
// answered within the same step, since an earlier one had not returned.
type Asked struct {
	Call machine.Call
	Busy bool
}

// Answered is observed when a component is about to be fed the answer to a call.
type Answered struct {
	Port   string
	Key    string
	Called machine.Called

	// Late says that the limit of the call has passed, by the clock of the node,
	// while the node ran: the machine has gone on without the answer.
	Late bool
}

// Strategies are those whom the nodes of a world can ask: what [World.Strategies]
// returns. A node asks by a call to a port, which is answered by a function of the world,
// in time or not, as the seed says.
type Strategies struct {
	world    *World
	source   *rand.Rand // What fates are drawn from.
	usual    Calls
	at       map[gossip.Address]Calls
	answers  map[string]Answer
	garblers map[string]Garble
	fates    map[string]int          // How often each was drawn.
	types    map[string]reflect.Type // Of answers, by name.
}

// newStrategies returns nobody. What is drawn for calls is drawn from a source of its own,
// so that a replay, which draws nothing for them, is the same run.
func newStrategies(w *World, opt *Options) *Strategies {
	return &Strategies{
		world: w, source: source(opt.Seed, 3), usual: opt.Calls,
		at: make(map[gossip.Address]Calls), answers: make(map[string]Answer), garblers: make(map[string]Garble),
		fates: make(map[string]int), types: plainTypes(),
	}
}

// Answer says who answers calls to a port.
func (s *Strategies) Answer(port string, a Answer) { s.answers[port] = a }

// Garble says how answers of a port can be wrong.
func (s *Strategies) Garble(port string, g Garble) { s.garblers[port] = g }

// Set changes what happens to calls from now on, on every node.
func (s *Strategies) Set(c Calls) {
	s.usual = c
	clear(s.at)
	s.world.Log("calls %+v", c)
}

// SetAt changes what happens to calls of the node at an address, and of those
// that follow it there, until the next [Strategies.Set].
func (s *Strategies) SetAt(a gossip.Address, c Calls) {
	s.at[a] = c
	s.world.Log("calls at %v %+v", a, c)
}

// Fates returns what became of the calls that were made, by name.
func (s *Strategies) Fates() []Injected { return counted(s.fates) }

// Recorded says of which types the answers of calls can be, so that they can be
// recorded. Strings, numbers, booleans and nil can be anyway.
func (s *Strategies) Recorded(values ...any) {
	for _, v := range values {
		t := reflect.TypeOf(v)
		s.types[t.String()] = t
	}
}

// served is what stands behind one port of one component of a node: the
// worker of the driver, and the process of the strategy.
type served struct {
	waiting machine.CallID // Its answer has not been fed, and occupies the worker.
	busy    int64          // World time until which the worker is occupied anyway.
	away    int64          // World time until which the process is being started again.
	crashes int            // In a row.
}

// name returns the port of a call, with its key if it has one.
func (k callKey) name() string { return callName(k.port, k.key) }

func callName(port, key string) string {
	if key == "" {
		return port
	}
	return port + "/" + key
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
func (s *Strategies) call(n *Node, from machine.ID, c machine.Call) {
	a := asking{
		key: callKey{of: from, port: c.Port, key: c.Key}, id: c.ID, made: n.Now().Mono, limit: c.Limit,
		thaws: n.thaws, digest: digest(c.Request),
	}
	s.world.stats.Calls++
	f, err := s.answerTo(n, a, c)
	if err != nil {
		s.world.Fail(err)
		return
	}
	s.fates[f.name]++
	s.world.disks.writing(n, c, f)
	s.world.trace.add(line{
		at: s.world.now, place: n.place.index, peer: -1, verb: verbCalled,
		note: fmt.Sprintf("%s %d of %016x: %s", a.key.name(), c.ID, a.digest, f.name),
	})
	s.world.observe(n, from, Asked{Call: c, Busy: f.name == fateBusy})
	if f.name == fateBusy {
		n.group.Enqueue(from, f.called(c.ID))
		return
	}
	s.world.push(event{
		at: f.at, typ: eventInput, place: n.place.index, incarnation: n.incarnation,
		ref: s.world.inputs.put(input{to: from, in: f.called(c.ID), answer: &a}),
	})
}

// answerTo returns what becomes of a call: by the recording in a replay, else as
// the seed says, which a recording takes down.
func (s *Strategies) answerTo(n *Node, a asking, c machine.Call) (fate, error) {
	if s.world.replay != nil {
		return s.world.replay.answer(s.world, n, a)
	}
	f := s.draw(n, a.key, c)
	return f, s.world.record.call(s.world, n, a, f)
}

// answered feeds the answer of a call. One that comes too late must not set
// anything off: see [Node.Carry].
func (s *Strategies) answered(n *Node, in input) {
	a := in.answer
	if p := n.served[a.key]; p != nil && p.waiting == a.id {
		p.waiting = 0
	}
	called, _ := in.in.(machine.Called)
	if err := s.world.disks.written(n, a.key.port, called.Err); err != called.Err { //nolint:errorlint // Whether it is the very one.
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
func (s *Strategies) muffle(n *Node, from machine.ID, e machine.Effect) {
	if from != n.muted.key.of {
		return
	}
	switch e.(type) {
	case machine.Send, machine.Decide, machine.Call:
		s.world.Fail(fmt.Errorf("I34: %v acts on answer %d of %s, which came after its limit: %T",
			n.id, n.muted.id, n.muted.key.name(), e))
	}
}
