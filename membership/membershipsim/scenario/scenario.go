// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package scenario names runs of the simulation, so that a program can run
// them and a failure can be replayed by name and seed. It has no state.
//
// Every scenario starts a cluster of membership machines with all invariant checkers on,
// disturbs it, and requires that the cluster settles: every live node is Up in one state
// that all nodes know to be held by all.
package scenario

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/membership/membershipsim"
	"github.com/quorate/quorate/simulation"
)

// ErrUnknown is returned by [Run] for a scenario that does not exist.
var ErrUnknown = errors.New("scenario: unknown")

// SettleDefault is how long a cluster may take to settle after the scenario has acted.
const SettleDefault = 2 * time.Minute

// Options choose a run. The zero value is chaos over 7 nodes with seed 0.
type Options struct {
	Scenario string // A name of [All], "chaos" when empty.
	Nodes    int    // How many nodes, 1 to 10,000; 7 when zero.
	Seed     uint64

	// Duration is how long the scenario acts; the scenario's own time when zero.
	Duration time.Duration

	// Settle is how long the cluster may take to settle afterwards. Zero:
	// [SettleDefault], or more where the settings of the cluster ask for more.
	Settle time.Duration

	// Strategies decide in place of those of the scenario.
	Strategies Strategies

	Trace io.Writer // Receives every line of the trace when not nil.

	// Record receives a recording of the run when not nil: its options, the questions to
	// the strategies, and their answers.
	Record io.Writer

	// Replay is a recording. The run is started with the recorded options, whatever the
	// other options say, and its calls get the recorded answers: no strategy is asked. A
	// run that turns out differently is a violation, a [*simulation.DivergenceError].
	Replay io.Reader

	// Begin is called with the world of the run before it has nodes, when not nil, to add
	// observers. It must not change the run.
	Begin func(w *simulation.World)

	// Progress, when not nil, is called in each second of virtual time with the
	// time so far and the time for which the scenario acts. It must not change
	// the run.
	Progress func(now, of time.Duration)
}

// Result is what a run found. Equal options give equal results.
type Result struct {
	Scenario string
	Seed     uint64
	Nodes    int
	Virtual  time.Duration // Time that passed in the simulated world.
	Settled  time.Duration // Time of Virtual that the cluster took to settle at the end.
	Members  int
	Stats    simulation.Stats
	Lines    uint64 // Lines of the trace.
	Hash     uint64 // Hash over the trace.
	Fences   int    // Nodes that were fenced.
	Hosted   int    // Seconds, over all nodes, in which a node could host.

	Checked  int // States that the checkers looked at.
	Faults   []simulation.FaultCount
	Outcomes []simulation.FaultCount // The outcome of each call of a strategy.
	Replay   string                  // The command that repeats the run.
}

// Scenario is a named run.
type Scenario struct {
	Name     string
	About    string
	duration time.Duration
	options  func(*simulation.Options)
	act      func(r *run)
	downing  func(r *run) protocol.Downing
	storms   *stormOptions // Nil for scenarios without storms and calms.
}

// run is a scenario under way.
type run struct {
	world    *simulation.World
	nodes    []gossip.Address
	build    simulation.Build
	duration time.Duration
	downing  protocol.Downing

	config         protocol.Config
	network        simulation.Delivery // The network of the scenario without faults.
	members        map[gossip.Address]membershipsim.Config
	bounds         membershipsim.Bounds
	liveness       *membershipsim.Liveness // Nil where liveness is not checked.
	bootstrapWorld *bootstrapWorld         // Nil where nodes are given seed nodes.
	judged         bool                    // Whether failure detectors outside of the nodes judge.
	releases       membershipsim.Releases
}

// All returns the scenarios in the order in which they are listed to people.
func All() []Scenario {
	return append([]Scenario{
		{"chaos", "random faults of all sorts, then calm", chaosTime, faultyNetwork, chaos, sometimesAsked, nil},
		{"steady", "nothing happens", time.Minute, nil, func(*run) {}, sometimesAsked, nil},
		{"join-storm", "all nodes but the first join in one moment, again and again", 90 * time.Second, faultyNetwork, joinStorm, sometimesAsked, nil},
		{"split", "the cluster is split in two and in three, and healed", 2 * time.Minute, faultyNetwork, split, sometimesAsked, nil},
		{"churn", "nodes leave, crash and come back all the time", 3 * time.Minute, faultyNetwork, churn, sometimesAsked, nil},
		{"strategies", "chaos, and strategies that crash, hang and answer garbage", chaosTime, faultyStrategies, chaos, askedWitness, nil},
		{"leases", "chaos, and a lease store that fails, lags and loses answers", chaosTime, faultyNetwork, chaos, leaseMajority, nil},
		{"minorities", "chaos, and strategies that may keep a minority", chaosTime, faultyNetwork, chaos, minority, nil},
	}, append(stormScenarios(), Scenario{
		"bootstrap", "nodes look each other up, and discovery is wrong for long", bootstrapTime, unreliableLookups, bootstrapping, decided, nil,
	})...)
}

// decided has the downing strategy decide at once.
func decided(*run) protocol.Downing { return membershipsim.KeepMajority() }

// sometimesAsked has the downing strategy asked by a call with every other seed.
func sometimesAsked(r *run) protocol.Downing {
	if r.world.Seed()%2 == 1 {
		return membershipsim.AskedKeepMajority()
	}
	return membershipsim.KeepMajority()
}

// askedWitness has a witness, which may let a side without a majority survive, asked with every
// other seed.
func askedWitness(r *run) protocol.Downing {
	if r.world.Seed()%2 == 1 {
		return membershipsim.AskedKeepMajority()
	}
	witness := &membershipsim.Witness{}
	witness.Serve(r.world)
	return witness.Downing()
}

// leaseMajority has nodes ask a store of leases, to which much happens for as long as the scenario acts.
func leaseMajority(r *run) protocol.Downing {
	leases := &membershipsim.Leases{}
	leases.Serve(r.world)
	leases.Disturb(r.duration)
	return leases.Downing()
}

// minority draws one of the strategies that decide at once and may let a side without a
// majority survive. Two nodes of three have the role that counts for some of them.
func minority(r *run) protocol.Downing {
	r.members = make(map[gossip.Address]membershipsim.Config)
	for i, a := range r.nodes {
		if i%3 < 2 {
			r.members[a] = membershipsim.Config{Roles: []string{membershipsim.Core}}
		}
	}
	strategies := membershipsim.Minorities(len(r.members))
	return membershipsim.Decided(strategies[r.world.Seed()%uint64(len(strategies))])
}

// faultyStrategies sets up a faulty network on which more than half of the calls fail.
func faultyStrategies(o *simulation.Options) {
	faultyNetwork(o)
	o.Calls = simulation.Calls{
		Max: 6 * time.Second, Hang: 0.1, Fail: 0.1, Garbage: 0.15, Crash: 0.1, Late: 0.15, Stuck: 0.05,
	}
}

// faultyNetwork is a network that loses, doubles and delays more than [unreliableNetwork] does, on
// which one call in five fails.
func faultyNetwork(o *simulation.Options) {
	o.RatePPM, o.WallSkew, o.CodecEvery = 10_000, time.Second, 5
	o.Network.Loss, o.Network.Double = 0.005, 0.005
	o.Calls = simulation.Calls{Max: 6 * time.Second, Hang: 0.1, Fail: 0.1}
}

// How long chaos acts. A cluster of 100 nodes takes a second of a processor for a few
// seconds of its life.
const (
	chaosTime      = 2 * time.Minute
	chaosTimeLarge = 60 * time.Second
)

// maxSmall is the number of nodes up to which every fifth message of a faulty
// scenario goes through the codec of production. Of the many more messages of
// a larger cluster every fiftieth does: their states are long.
const maxSmall = 20

// Run runs a scenario. The error is the violation, with the command that
// replays it, or says why there was no run.
func Run(o Options) (Result, error) {
	o, recording, err := o.replayed()
	if err != nil {
		return Result{}, err
	}
	if o.Nodes == 0 {
		o.Nodes = 7
	}
	if o.Scenario == "" {
		o.Scenario = All()[0].Name
	}
	all := All()
	i := slices.IndexFunc(all, func(s Scenario) bool { return s.Name == o.Scenario })
	if i < 0 {
		return Result{}, fmt.Errorf("%w: %q", ErrUnknown, o.Scenario)
	}
	if o.Nodes < 1 || o.Nodes > 10_000 {
		return Result{}, fmt.Errorf("scenario: %d nodes: want 1 to 10000", o.Nodes)
	}
	return all[i].run(o, recording)
}

func (s Scenario) run(o Options, recording *simulation.Recording) (Result, error) {
	name := fmt.Sprintf("%s -nodes %d", s.Name, o.Nodes)
	if o.Duration > 0 {
		name += fmt.Sprintf(" -duration %v", o.Duration)
	}
	if o.Settle > 0 && (s.storms != nil || o.Settle != SettleDefault) {
		name += fmt.Sprintf(" -settle %v", o.Settle)
	}
	opt := simulation.Options{Seed: o.Seed, Trace: o.Trace, Scenario: name, Record: o.Record, Replay: recording, Begin: o.Begin}
	if err := o.begin(); err != nil {
		return Result{}, err
	}
	if s.options != nil {
		s.options(&opt)
	}
	if o.Nodes > maxSmall {
		opt.CodecEvery *= 10
	}
	w := simulation.New(opt)
	membershipsim.Serve(w)
	invariants := &membershipsim.Invariants{}
	invariants.Watch(w)
	calling := &simulation.CallChecker{}
	calling.Watch(w)
	r := &run{world: w, duration: s.duration}
	if o.Nodes > maxSmall && s.duration == chaosTime {
		r.duration = chaosTimeLarge
	}
	if o.Duration > 0 {
		r.duration = o.Duration
	}
	for i := range o.Nodes {
		r.nodes = append(r.nodes, gossip.Address{Host: fmt.Sprintf("n%d", i), Port: 7946})
	}
	if s.Name == "bootstrap" {
		r.setUpBootstrap(&o)
	} else {
		r.addOperator(&s)
	}
	if o.Nodes <= maxSmall {
		r.releases = membershipsim.DrawReleases(o.Seed, r.nodes)
		r.releases.Watch(w)
	}
	r.downing = s.downing(r)
	o.Strategies.serve(r)
	invariants.MinoritySurvives = !r.downing.Class.MajorityOnly
	r.network = opt.Network
	r.prepare(&s, &o)
	r.build = r.builder()
	passed, err := s.finish(o, r)
	if ended := w.Conclude(); ended != nil {
		return Result{}, ended
	}
	if err != nil {
		return Result{}, err
	}
	result := Result{
		Scenario: s.Name, Seed: o.Seed, Nodes: o.Nodes, Virtual: w.Now(), Settled: passed, Members: len(w.Nodes()),
		Stats: w.Stats(), Lines: w.Trace().Count(), Hash: w.Trace().Hash(),
		Fences: invariants.Fences, Hosted: invariants.Hosted, Checked: invariants.Checked,
		Faults: w.Injected(), Outcomes: w.Strategies().Outcomes(), Replay: w.Replay(),
	}
	return result, nil
}

// finish starts the nodes, lets the scenario act, and waits until the cluster settles. It
// returns how long that took.
func (s Scenario) finish(o Options, r *run) (time.Duration, error) {
	w := r.world
	for _, a := range r.nodes {
		w.Start(a, r.build)
	}
	if s.storms != nil {
		r.storms(*s.storms)
	} else {
		s.act(r)
	}
	progress := o.Progress
	if progress == nil {
		progress = func(_, _ time.Duration) {}
	}
	for w.Now() < r.duration {
		if err := w.Run(min(time.Second, r.duration-w.Now())); err != nil {
			return 0, err
		}
		progress(w.Now(), r.duration)
	}
	if s.Storms() && s.storms.forgetful {
		return 0, w.Run(r.bounds.Settle)
	}
	passed, err := w.RunUntil(o.Settle, func() bool {
		progress(w.Now(), r.duration)
		return membershipsim.Settled(w) == nil
	})
	if err != nil {
		if missing := membershipsim.Settled(w); missing != nil {
			w.Fail(fmt.Errorf("not settled after %v: %w", o.Settle, missing))
		}
	}
	return passed, err
}

// Report runs a scenario and writes the result: the end of the trace if an invariant
// broke, and always one line with the verdict. Equal options write equal bytes. Ok is
// false after a violation; err is for runs that did not take place.
func Report(out io.Writer, o Options) (ok bool, err error) {
	r, err := Run(o)
	if failure := (*simulation.Failure)(nil); errors.As(err, &failure) {
		_, err = fmt.Fprintf(out, "%v\nFAIL seed=%d\n", failure, o.Seed)
		return false, err
	}
	if err != nil {
		return false, err
	}
	_, err = fmt.Fprintf(out, "ok   scenario=%s seed=%d nodes=%d virtual=%v settled=%v steps=%d sent=%d lost=%d refused=%d fenced=%d lines=%d trace=%016x\n",
		r.Scenario, r.Seed, r.Nodes, r.Virtual, r.Settled, r.Stats.Steps, r.Stats.Sent, r.Stats.Lost, r.Stats.Refused,
		r.Fences, r.Lines, r.Hash)
	return err == nil, err
}

// every calls f from now on, with pauses drawn around d, as long as the scenario acts.
func (r *run) every(d time.Duration, f func()) {
	var again func()
	again = func() {
		if r.world.Now() < r.duration {
			f()
			r.world.After(d/2+time.Duration(r.world.Rand().Int64N(int64(d))), again)
		}
	}
	r.world.After(d, again)
}

// calm repairs everything after the scenario has acted.
func (r *run) calm() {
	r.world.At(r.duration, func() {
		r.world.Network().SetDelivery(simulation.Delivery{})
		r.world.Strategies().Set(simulation.Calls{})
		r.world.Repair()
	})
}

// leave makes a random member leave in order.
func leave(w *simulation.World, r *rand.Rand) {
	if nodes := w.Nodes(); len(nodes) > 0 {
		of, by := nodes[r.IntN(len(nodes))], nodes[r.IntN(len(nodes))]
		w.Log("leave %v by %v", of.ID(), by.ID())
		by.Input(protocol.Service, protocol.Leave{Address: of.ID().Address})
	}
}

// down makes one member down another, which may be well.
func down(w *simulation.World, r *rand.Rand) {
	if nodes := w.Nodes(); len(nodes) > 0 {
		of, by := nodes[r.IntN(len(nodes))], nodes[r.IntN(len(nodes))]
		w.Log("down %v by %v", of.ID(), by.ID())
		by.Input(protocol.Service, protocol.Down{Address: of.ID().Address})
	}
}

// downUnheard cuts a node off, and has another node down it before it can find out by
// itself: no message can tell it, and the others may not take over before its own clock
// has stopped it.
func downUnheard(w *simulation.World, r *rand.Rand) {
	nodes := w.Nodes()
	if len(nodes) < 2 {
		return
	}
	i := r.IntN(len(nodes))
	of, by := nodes[i], nodes[(i+1+r.IntN(len(nodes)-1))%len(nodes)]
	var others []gossip.Address
	for _, n := range nodes {
		if n != of {
			others = append(others, n.ID().Address)
		}
	}
	w.Network().Split([]gossip.Address{of.ID().Address}, others)
	w.After(time.Duration(r.Int64N(int64(time.Second))), func() {
		w.Log("down %v by %v, unheard", of.ID(), by.ID())
		by.Input(protocol.Service, protocol.Down{Address: of.ID().Address})
	})
}

// splitInChange splits the cluster when members have just begun to leave, so that not all
// members know yet which of them vote.
func splitInChange(w *simulation.World, r *rand.Rand) {
	var sides [2][]gossip.Address
	for _, n := range w.Nodes() {
		side := r.IntN(2)
		sides[side] = append(sides[side], n.ID().Address)
	}
	for range 1 + r.IntN(2) {
		leave(w, r)
	}
	w.After(time.Duration(r.Int64N(int64(400*time.Millisecond))), func() { w.Network().Split(sides[0], sides[1]) })
	w.After(20*time.Second, w.Network().Heal)
}

func chaos(r *run) {
	faults := append(simulation.Faults(),
		simulation.Fault{Name: "leave", Weight: 2, Inject: leave},
		simulation.Fault{Name: "down", Weight: 1, Inject: down},
		simulation.Fault{Name: "down-unheard", Weight: 3, Inject: downUnheard},
		simulation.Fault{Name: "split-in-change", Weight: 4, Inject: splitInChange})
	// The cluster forms undisturbed: the schedule begins when it usually has formed.
	r.world.At(15*time.Second, func() {
		r.world.Chaos(simulation.Chaos{For: r.duration - 15*time.Second, Every: 3 * time.Second, Faults: faults})
	})
	r.calm()
}

func joinStorm(r *run) {
	r.every(30*time.Second, func() {
		for _, a := range r.nodes[1:] {
			r.world.Restart(a)
		}
	})
	r.calm()
}

func split(r *run) {
	r.every(20*time.Second, func() {
		sides := make([][]gossip.Address, 2+r.world.Rand().IntN(2))
		for _, a := range r.nodes {
			side := r.world.Rand().IntN(len(sides))
			sides[side] = append(sides[side], a)
		}
		r.world.Network().Split(sides...)
		r.world.After(time.Duration(r.world.Rand().Int64N(int64(20*time.Second))), r.world.Network().Heal)
	})
	r.calm()
}

func churn(r *run) {
	r.every(4*time.Second, func() {
		a := r.nodes[r.world.Rand().IntN(len(r.nodes))]
		switch r.world.Rand().IntN(3) {
		case 0:
			leave(r.world, r.world.Rand())
		case 1:
			r.world.Crash(a)
			r.world.After(2*time.Second, func() {
				if r.world.Node(a) == nil {
					r.world.Restart(a)
				}
			})
		default:
			r.world.Restart(a)
		}
	})
	r.calm()
}
