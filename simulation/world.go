// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// The options of a world, what its observers and checkers are told, and the failure
// that ends a run; then the world itself with its sources of randomness and its parts,
// and the functions with which a component hooks into it: Observe, Check, Carry,
// EndsOn.

// Options describe a world. The zero value is a world with a quick network, equal
// clocks and no faults of its own.
type Options struct {
	// Seed determines the run.
	Seed uint64

	// Scenario is the name of the scenario in the command that replays a failure. Empty: the world
	// belongs to a test, and no such command is printed.
	Scenario string

	// Network says how messages travel.
	Network Delivery

	// Calls are the chances of what happens to strategy calls.
	Calls Calls

	// Disks are the chances of what happens to writes to disks.
	Disks Writes

	// RatePPM bounds by how many millionths the rate of a node's clock differs from
	// that of the world: 10,000 is 1 %. Zero: all rates are equal.
	RatePPM int

	// WallSkew bounds by how much a node's wall clock is ahead or behind.
	WallSkew time.Duration

	// CodecEvery sends every n-th message through the codec of its component. Zero: no
	// message.
	CodecEvery int

	// Lines is how many lines of the trace are kept, 400 when zero.
	Lines int

	// Trace receives every line of the trace, when it is not nil.
	Trace io.Writer

	// Record receives the calls of strategies and their answers, when it is not nil.
	// The recording is complete after [World.Conclude].
	Record io.Writer

	// Replay answers every call from a recording: no strategy is called, no outcome
	// drawn. The run is the recorded one, to the byte, or ends with a
	// [*DivergenceError]. Seed and script must be those of the recording.
	Replay *Recording

	// Begin is called with the new world, before it has nodes, when it is not nil. It is for
	// those who are not given the world of a run and want to add observers to it.
	Begin func(w *World)
}

// Checker examines nodes and the world for broken invariants from the outside.
type Checker interface {
	// Stepped is called after each step of a node, when the effects of the step have
	// been carried out.
	Stepped(w *World, n *Node) error

	// Second is called once in every second of virtual time.
	Second(w *World) error
}

// Observation is an event that a node published, a decision of the node, or what
// happened to the node: [Started], [Ended], [Asked] or [Answered].
type Observation struct {
	At        time.Duration // World time.
	Node      *Node
	Component string // Empty for Began and Ended.
	Event     any    // A decision has type machine.Decide.
}

// Started is observed when a node has been started.
type Started struct{}

// Ended is observed when a node has ended. Why is [Crashed], or the reason that a
// function given to [World.EndsOn] returned.
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
// replays the run, if there is one.
func (f *Failure) Error() string {
	var b strings.Builder
	for _, l := range f.Lines {
		b.WriteString(l)
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "violation at %v: %v", f.At, f.Err)
	if again := f.Replay(); again != "" {
		b.WriteString("\nreplay: " + again)
	}
	return b.String()
}

// Replay returns the command that repeats the run; empty if its scenario has no name.
func (f *Failure) Replay() string { return replay(f.Seed, f.Scenario) }

func replay(seed uint64, scenario string) string {
	if scenario == "" {
		return ""
	}
	return fmt.Sprintf("quorate simulate -seed %d -scenario %s", seed, scenario)
}

// Unwrap returns the violation.
func (f *Failure) Unwrap() error { return f.Err }

// Stats count what happened in a world.
type Stats struct {
	Events  uint64 // Events of the heap.
	Sent    uint64 // Messages sent.
	Lost    uint64 // Messages lost, by chance and by cut links.
	Refused uint64 // Messages that no node or component took, or whose sender is blocked.
	Codec   uint64 // Messages that went through their codec.
	Steps   uint64 // Inputs fed.
	Calls   uint64 // Calls of strategies.
	Late    uint64 // Answers that were fed after the limit of their call.
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

	faults *rand.Rand // Source of fault schedules.
	births *rand.Rand // Source of the properties of new nodes.

	places     []*place
	named      map[gossip.Address]*place
	network    *Network
	disks      *Disks
	strategies *Strategies

	inputs pool[input]
	funcs  pool[func()]

	record *recorder
	replay *Recording

	observers []func(Observation)
	listeners []func(text string)
	endings   []func(event any) string
	carriers  []func(*Node, *machine.Component, machine.Effect) bool
	checkers  []Checker

	injected map[string]int // Faults of Chaos, by name.
	changed  int64          // World time of the last change from outside, see [World.Steady].

	second   int64 // The second that inSecond counts.
	inSecond int

	failure error
}

// wallOrigin is the wall time of the start of every world.
const wallOrigin = 1_767_225_600 // 2026-01-01T00:00:00Z

// New returns a world without nodes, at time zero.
func New(opt Options) *World {
	w := &World{
		opt: opt, faults: source(opt.Seed, 2), births: source(opt.Seed, 4),
		named: make(map[gossip.Address]*place), replay: opt.Replay,
	}
	w.network = newNetwork(w, &opt)
	w.disks = newDisks(w, &opt)
	w.strategies = newStrategies(w, &opt)
	w.record = newRecorder(opt.Record, w.strategies.types)
	w.trace = newTrace(w, opt.Lines, opt.Trace)
	w.push(event{at: int64(time.Second), typ: eventSecond})
	if opt.Begin != nil {
		opt.Begin(w)
	}
	return w
}

// source returns the stream-th source of randomness of a seed.
func source(seed, stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, stream*0x9e3779b97f4a7c15))
}

// Source returns a source of randomness made from the seed, the same for a number in
// each run. Drawing from it does not change what the world draws. Numbers up to 5 are
// the world's own.
func (w *World) Source(number uint64) *rand.Rand { return source(w.opt.Seed, number) }

// Replay returns the command that repeats the run; empty if its scenario has no name.
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

// Network returns the network of the world.
func (w *World) Network() *Network { return w.network }

// Disks returns the disks of the nodes.
func (w *World) Disks() *Disks { return w.disks }

// Strategies returns the strategies of the world.
func (w *World) Strategies() *Strategies { return w.strategies }

// Observe adds an observer. Observers are called in the order in which they
// were added, within the step that published; they must not step the world.
func (w *World) Observe(f func(Observation)) { w.observers = append(w.observers, f) }

// Check adds a checker.
func (w *World) Check(c Checker) { w.checkers = append(w.checkers, c) }

// Carry adds a function that carries out effects of a package's own types. The
// function reports whether it knows the effect.
func (w *World) Carry(f func(n *Node, c *machine.Component, e machine.Effect) bool) {
	w.carriers = append(w.carriers, f)
}

// EndsOn adds a function that is given every published event and returns why the node
// ends with it, or "" if it does not. The node ends after the step.
func (w *World) EndsOn(f func(event any) string) { w.endings = append(w.endings, f) }

// Fail records a violation, which ends the run. Later violations are ignored.
func (w *World) Fail(err error) {
	if w.failure == nil && err != nil {
		w.failure = &Failure{
			Seed: w.opt.Seed, Scenario: w.opt.Scenario, At: w.Now(), Err: err,
			Lines: w.trace.Last(failureLines),
		}
	}
}

// Failure returns the first violation, a [*Failure], or nil.
func (w *World) Failure() error { return w.failure }

// Log adds a line to the trace.
func (w *World) Log(format string, values ...any) {
	text := fmt.Sprintf(format, values...)
	w.trace.add(line{at: w.now, place: -1, peer: -1, verb: verbWorld, note: text})
	for _, f := range w.listeners {
		f(text)
	}
}

// Listen adds a function that is called with each line that [World.Log] adds: what the
// script does to the cluster, in words. It must not change the world.
func (w *World) Listen(f func(text string)) { w.listeners = append(w.listeners, f) }

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
