// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"runtime/debug"
	"strings"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// Options say what a world is like. The zero value is a world with a quick
// network, equal clocks and no faults of its own.
type Options struct {
	// Seed determines the run.
	Seed uint64

	// Scenario is named in the command that replays a failure.
	Scenario string

	// Network says how messages travel.
	Network Network

	// Calls say what happens to strategy calls.
	Calls Calls

	// Disks say what happens to the disks of nodes.
	Disks Disks

	// RatePPM bounds by how many millionths the rate of a node's clock
	// differs from that of the world: 10,000 is 1 %. Zero: all are equal.
	RatePPM int

	// WallSkew bounds by how much a node's wall clock is ahead or behind.
	WallSkew time.Duration

	// CodecEvery sends every n-th message through the codec of its
	// component. Zero: none.
	CodecEvery int

	// Lines is how many lines of the trace are kept, 400 when zero.
	Lines int

	// Trace receives every line of the trace, when it is not nil.
	Trace io.Writer

	// Record receives what strategies are asked and what they answer, when it is
	// not nil. The recording is complete after [World.Conclude].
	Record io.Writer

	// Replay has every call answered as in a recording: nobody is asked, nothing is
	// drawn. The run is the recorded one, to the byte, or ends with a
	// [*DivergenceError]. Seed and script must be those of the recording.
	Replay *Recording
}

// Checker looks for broken invariants from the outside.
type Checker interface {
	// Stepped is called after each step of a node, with what the step set
	// off on that node carried out.
	Stepped(w *World, n *Node) error

	// Second is called once in every second of virtual time.
	Second(w *World) error
}

// Observation is something that a node published or decided, or that
// happened to the node: [Began] and [Ended].
type Observation struct {
	At        time.Duration // World time.
	Node      *Node
	Component string // Empty for Began and Ended.
	Event     any    // Decisions are of type machine.Decide.
}

// Began is observed when a node has been started.
type Began struct{}

// Ended is observed when a node has crashed or ended by itself. Why is [Crashed], or
// what a function given to [World.EndsOn] said.
type Ended struct{ Why string }

// Failure is the first violation of a run.
type Failure struct { //nolint:errname // A run that failed, not an operation of this package.
	Seed     uint64
	Scenario string
	At       time.Duration
	Err      error
	Lines    []string // The end of the trace.
}

// failureLines is how many lines of the trace a failure prints.
const failureLines = 60

// Error returns the violation, the end of the trace and the command that
// replays the run.
func (f *Failure) Error() string {
	var b strings.Builder
	for _, l := range f.Lines {
		b.WriteString(l)
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "violation at %v: %v\n", f.At, f.Err)
	b.WriteString("replay: " + f.Replay())
	return b.String()
}

// Replay returns the command that repeats the run.
func (f *Failure) Replay() string { return replay(f.Seed, f.Scenario) }

func replay(seed uint64, scenario string) string {
	if scenario != "" {
		scenario = " -scenario " + scenario
	}
	return fmt.Sprintf("quorate simulate -seed %d%s", seed, scenario)
}

// Unwrap returns the violation.
func (f *Failure) Unwrap() error { return f.Err }

// Stats count what happened in a world.
type Stats struct {
	Events  uint64 // Events of the heap.
	Sent    uint64 // Messages sent.
	Lost    uint64 // Messages lost, to chance and to cut links.
	Refused uint64 // Messages for an incarnation that is gone.
	Codec   uint64 // Messages that went through their codec.
	Steps   uint64 // Inputs fed.
	Calls   uint64 // Calls of strategies.
	Late    uint64 // Answers of theirs that were fed after the limit.
	Asked   uint64 // Calls that reached a strategy: in a replay, none.
}

// World is a cluster in virtual time. See the package comment.
type World struct {
	opt   Options
	now   int64
	heap  eventHeap
	seq   uint64
	trace *Trace
	stats Stats

	network *rand.Rand // What the network draws.
	faults  *rand.Rand // What chaos draws.
	births  *rand.Rand // What new nodes draw.

	places  []*place
	named   map[gossip.Address]*place
	links   links
	weather weather
	disks   disks
	packets pool[packet]
	inputs  pool[input]
	funcs   pool[func()]
	scratch []byte

	strategies strategies
	types      map[string]reflect.Type // Of answers, by name.
	record     *recorder
	replay     *Recording

	refusals  []func(peer *Node, by gossip.NodeID)
	observers []func(Observation)
	endings   []func(event any) string
	carriers  []func(*Node, *machine.Component, machine.Effect) bool
	checkers  []Checker

	injected map[string]int // Faults of Chaos, by name.

	second   int64 // The second in which inSecond events have happened.
	inSecond int

	failure error
}

// wallOrigin is the wall time of the start of every world.
const wallOrigin = 1_767_225_600 // 2026-01-01T00:00:00Z

// New returns a world without nodes, at time zero.
func New(opt Options) *World {
	w := &World{
		opt:     opt,
		network: source(opt.Seed, 1), faults: source(opt.Seed, 2),
		births: source(opt.Seed, 4),
		named:  make(map[gossip.Address]*place),
		// What is drawn for calls is drawn from a source of its own, so that a
		// replay, which draws nothing for them, is the same run.
		strategies: newStrategies(source(opt.Seed, 3)),
		types:      plainTypes(),
		replay:     opt.Replay,
		disks:      newDisks(source(opt.Seed, 5), opt.Disks),
		weather:    weather{normal: opt.Network, latest: int64(max(opt.Network.LateMax, opt.Network.Max))},
	}
	w.record = newRecorder(opt.Record, w.types)
	w.trace = newTrace(w, opt.Lines, opt.Trace)
	w.push(event{at: int64(time.Second), kind: kindSecond})
	return w
}

// source returns the stream-th source of randomness of a seed.
func source(seed, stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, stream*0x9e3779b97f4a7c15)) //nolint:gosec // Simulation, not secrets.
}

// Source returns a source of randomness of the seed, the same one for a number in each
// run. What draws from it disturbs nothing else. The numbers up to 5 are the world's.
func (w *World) Source(number uint64) *rand.Rand { return source(w.opt.Seed, number) }

// Replay returns the command that repeats the run.
func (w *World) Replay() string { return replay(w.opt.Seed, w.opt.Scenario) }

// Seed returns the seed.
func (w *World) Seed() uint64 { return w.opt.Seed }

// Now returns the time since the start of the world.
func (w *World) Now() time.Duration { return time.Duration(w.now) }

// Wall returns the true wall time.
func (w *World) Wall() time.Time { return time.Unix(wallOrigin, w.now).UTC() }

// Trace returns the record of the run.
func (w *World) Trace() *Trace { return w.trace }

// Stats returns the counters.
func (w *World) Stats() Stats { return w.stats }

// Rand returns the source of randomness that fault schedules draw from.
func (w *World) Rand() *rand.Rand { return w.faults }

// Observe adds an observer. Observers are called in the order in which they
// were added, within the step that published; they must not step the world.
func (w *World) Observe(f func(Observation)) { w.observers = append(w.observers, f) }

// Check adds a checker.
func (w *World) Check(c Checker) { w.checkers = append(w.checkers, c) }

// Carry adds a function that carries out effects of packages' own types, and
// reports whether it knew the effect.
func (w *World) Carry(f func(n *Node, c *machine.Component, e machine.Effect) bool) {
	w.carriers = append(w.carriers, f)
}

// EndsOn adds a function that says why a node ends when one of its components
// publishes an event, empty when it does not. The node ends after the step.
func (w *World) EndsOn(f func(event any) string) { w.endings = append(w.endings, f) }

// Fail records a violation. The first one counts; the run ends with it.
func (w *World) Fail(err error) {
	if w.failure == nil && err != nil {
		w.failure = &Failure{
			Seed: w.opt.Seed, Scenario: w.opt.Scenario, At: w.Now(), Err: err,
			Lines: w.trace.Last(failureLines),
		}
	}
}

// Failure returns the first violation, a [*Failure], nil without one.
func (w *World) Failure() error { return w.failure }

// Log adds a line to the trace.
func (w *World) Log(format string, values ...any) {
	w.trace.add(line{at: w.now, place: -1, peer: -1, verb: verbWorld, note: fmt.Sprintf(format, values...)})
}

func (w *World) observe(n *Node, from machine.ID, e any) {
	if len(w.observers) == 0 {
		return
	}
	o := Observation{At: w.Now(), Node: n, Event: e}
	if from >= 0 {
		o.Component = n.group.Components()[from].Name
	}
	for _, f := range w.observers {
		f(o)
	}
}

// place returns the place of an address, and makes one.
func (w *World) place(a gossip.Address) *place {
	p := w.named[a]
	if p == nil {
		p = &place{index: int32(len(w.places)), address: a}
		w.places = append(w.places, p)
		w.named[a] = p
	}
	return p
}

// Start starts a node at an address where none lives, with a new uid.
func (w *World) Start(a gossip.Address, build Build) *Node {
	p := w.place(a)
	machine.Assert(p.node == nil, "an address has one node at a time", "address", a)
	p.build = build
	p.incarnation++
	n := &Node{
		world: w, place: p, incarnation: p.incarnation,
		id:    gossip.NodeID{Address: a, UID: gossip.UID(w.births.Uint64() | 1)},
		named: make(map[timerKey]int32), served: make(map[callKey]*served),
	}
	n.clock = clock{started: w.now, origin: machine.Instant(w.births.Int64N(int64(time.Hour)))}
	if w.opt.RatePPM > 0 {
		n.clock.ppm = w.births.Int64N(2*int64(w.opt.RatePPM)+1) - int64(w.opt.RatePPM)
	}
	if w.opt.WallSkew > 0 {
		n.clock.wall = time.Duration(w.births.Int64N(2*int64(w.opt.WallSkew)+1)) - w.opt.WallSkew
	}
	n.group = machine.NewGroup(n)
	p.node = n
	env := Env{
		World: w, Self: n.id, Generation: int(p.incarnation) - 1, Clock: systemClock{n},
		Rand: source(w.births.Uint64(), uint64(p.incarnation)), Disk: w.read(p),
	}
	if p.incarnation == 1 {
		w.changes(false)
	}
	for _, c := range build(env) {
		n.group.Attach(n.Now(), c)
	}
	w.trace.add(line{at: w.now, place: p.index, peer: -1, verb: verbWorld, note: "began"})
	w.observe(n, -1, Began{})
	n.group.Start(n.Now())
	n.stepped()
	return n
}

// Node returns the node that lives at an address, nil without one.
func (w *World) Node(a gossip.Address) *Node {
	if p := w.named[a]; p != nil {
		return p.node
	}
	return nil
}

// Nodes returns the nodes that live, in the order in which their addresses
// were first used.
func (w *World) Nodes() []*Node {
	var nodes []*Node
	for _, p := range w.places {
		if p.node != nil {
			nodes = append(nodes, p.node)
		}
	}
	return nodes
}

// Vacant returns the addresses at which a node lived and none lives now.
func (w *World) Vacant() []gossip.Address {
	var vacant []gossip.Address
	for _, p := range w.places {
		if p.node == nil && p.build != nil {
			vacant = append(vacant, p.address)
		}
	}
	return vacant
}

// Crashed is why a node has ended that did not end by itself, see [Ended].
const Crashed = "crashed"

// Crash ends the node at an address without a word. Without a node there it
// does nothing.
func (w *World) Crash(a gossip.Address) {
	if n := w.Node(a); n != nil {
		w.end(n, Crashed)
	}
}

// Restart ends the node at an address, if one lives there, and starts another
// with the build function of the last one.
func (w *World) Restart(a gossip.Address) *Node {
	p := w.named[a]
	machine.Assert(p != nil && p.build != nil, "a node lived at the address", "address", a)
	w.Crash(a)
	return w.Start(a, p.build)
}

func (w *World) end(n *Node, why string) {
	if n.ended {
		return
	}
	n.ended, n.why, n.frozen = true, why, false
	n.place.node = nil
	w.interrupted(n)
	if why == Crashed {
		w.changes(false)
	}
	for _, e := range n.waiting {
		w.discard(e)
	}
	n.waiting = nil
	w.trace.add(line{at: w.now, place: n.place.index, peer: -1, verb: verbWorld, note: "ended: " + why})
	w.observe(n, -1, Ended{Why: why})
}

// input is an input from the script, or the answer of a call.
type input struct {
	to     machine.ID
	in     machine.Input
	answer *asking // The call that it answers, nil for all others.
}

// Input feeds an input to a component of the node at an address, as soon as
// the node runs. Without a node or component there it does nothing.
func (w *World) Input(a gossip.Address, s machine.Service, in machine.Input) {
	n := w.Node(a)
	if n == nil {
		return
	}
	if id, ok := n.component(s); ok {
		w.push(event{
			at: w.now, kind: kindInput, place: n.place.index, incarnation: n.incarnation,
			ref: w.inputs.put(input{to: id, in: in}),
		})
	}
}

// At calls f at a time of the world, or at once when that has passed.
func (w *World) At(at time.Duration, f func()) {
	w.push(event{at: max(int64(at), w.now), kind: kindFunc, ref: w.funcs.put(f)})
}

// After calls f when d has passed.
func (w *World) After(d time.Duration, f func()) { w.At(w.Now()+d, f) }

func (w *World) push(e event) uint64 {
	w.seq++
	e.seq = w.seq
	w.heap.push(e)
	return e.seq
}

// Run lets d pass. It returns the first violation of the run, a [*Failure],
// and then does nothing more. A panic of a machine is a violation.
func (w *World) Run(d time.Duration) (err error) {
	defer func() {
		if v := recover(); v != nil {
			w.Fail(fmt.Errorf("panic: %v\n%s", v, stack()))
			err = w.failure
		}
	}()
	end := w.now + int64(d)
	for w.failure == nil && len(w.heap) > 0 && w.heap[0].at <= end {
		e := w.heap.pop()
		w.now = e.at
		w.stats.Events++
		w.count()
		w.handle(e)
	}
	if w.failure != nil {
		return w.failure
	}
	w.now = end
	return nil
}

// stormPerNode is how many events a node may have in a second of the world, on
// average over all nodes: hundreds of times what the busiest second of a healthy
// cluster has. Beyond it nodes answer each other without end.
const stormPerNode = 20_000

// count finds storms.
func (w *World) count() {
	if second := w.now / int64(time.Second); second != w.second {
		w.second, w.inSecond = second, 0
	}
	if w.inSecond++; w.inSecond > stormPerNode*max(len(w.places), 1) {
		w.Fail(fmt.Errorf("a storm: %d events in less than a second, of %d nodes", w.inSecond, len(w.places)))
	}
}

// RunUntil lets time pass until done holds, which it asks ten times a second,
// and for no more than limit. It returns the time that passed.
func (w *World) RunUntil(limit time.Duration, done func() bool) (time.Duration, error) {
	begin := w.Now()
	for !done() {
		if w.Now()-begin >= limit {
			return w.Now() - begin, fmt.Errorf("simulation: not done after %v", limit)
		}
		if err := w.Run(100 * time.Millisecond); err != nil {
			return w.Now() - begin, err
		}
	}
	return w.Now() - begin, nil
}

// stack returns the stack of a panic without what is above the panic.
func stack() string {
	s := string(debug.Stack())
	if _, below, ok := strings.Cut(s, "panic("); ok {
		return below
	}
	return s
}

func (w *World) handle(e event) {
	switch e.kind {
	case kindFunc:
		w.funcs.take(e.ref)()
	case kindSecond:
		w.push(event{at: e.at + int64(time.Second), kind: kindSecond})
		if err := w.checkpoint(); err != nil {
			w.Fail(err)
			return
		}
		for _, c := range w.checkers {
			if err := c.Second(w); err != nil {
				w.Fail(err)
			}
		}
	case kindPacket:
		w.arrive(e)
	default:
		n := w.places[e.place].node
		if n == nil || n.incarnation != e.incarnation {
			w.discard(e)
			return
		}
		if n.frozen && e.kind != kindThaw {
			n.waiting = append(n.waiting, e)
			return
		}
		w.happen(n, e)
	}
}

// happen lets an event happen to a node that runs.
func (w *World) happen(n *Node, e event) {
	w.stats.Steps++
	switch e.kind {
	case kindTimer:
		n.surfaced(e)
	case kindPacket:
		w.deliver(n, w.packets.take(e.ref))
	case kindInput:
		in := w.inputs.take(e.ref)
		if in.answer != nil {
			w.answered(n, in)
			return
		}
		w.trace.add(line{at: w.now, place: n.place.index, peer: -1, verb: verbFed, note: in.in})
		n.step(in.to, in.in)
	case kindThaw:
		w.thaw(n)
	case kindFunc, kindSecond:
	}
}

// discard forgets an event whose node is gone.
func (w *World) discard(e event) {
	switch e.kind {
	case kindPacket:
		w.packets.take(e.ref)
	case kindInput:
		w.inputs.take(e.ref)
	case kindTimer, kindThaw, kindFunc, kindSecond:
	}
}

// pool holds values that events of the heap stand for.
type pool[T any] struct {
	values []T
	free   []int32
}

func (p *pool[T]) put(v T) int32 {
	if last := len(p.free) - 1; last >= 0 {
		i := p.free[last]
		p.free = p.free[:last]
		p.values[i] = v
		return i
	}
	p.values = append(p.values, v)
	return int32(len(p.values) - 1)
}

func (p *pool[T]) take(i int32) T {
	var none T
	v := p.values[i]
	p.values[i] = none
	p.free = append(p.free, i)
	return v
}
