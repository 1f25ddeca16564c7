// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package supervisor_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/plugins/internal/supervisor"
	"github.com/quorate/quorate/simulation"
)

// A node of this world has two components: the supervisor of a plugin, and one that
// asks the plugin for a decision twice a second. Around it are the processes of the
// plugin, which fail to start, end, hang, and answer their health checks though their
// strategy hangs, as the seed says; the calls of both components go wrong as the world
// has it, and nodes crash, freeze and come back.
//
//	asker ── Call "decide" ──> active process ── answer ──> asker ── Publish decided
//	                              ▲    │ unanswered                        │
//	                    Activate  │    ▼ CallEnded                         ▼
//	                            supervisor ── Publish View, Exited ──> asker, judge

const (
	supervisors machine.Service = 1
	askers      machine.Service = 2

	callDecide    = "decide"
	askEvery      = 500 * time.Millisecond
	decideTimeout = 300 * time.Millisecond
)

// answer is what a process decides: its own generation, by which the judge knows it.
type answer struct{ Gen supervisor.Generation }

// decided is the event that the asker publishes for each answer that counts.
type decided struct{ Gen supervisor.Generation }

// asker asks the plugin, and counts an answer while its process has not ended.
type asker struct {
	call  machine.CallID
	asked bool
	gone  map[supervisor.Generation]bool
	blind bool // A planted fault: the asker does not look whether the process has ended.
}

type askTimer struct{}

func (a *asker) Step(now machine.Now, in machine.Input, out *machine.Outbox) {
	switch in := in.(type) {
	case machine.Started:
		out.Arm(askTimer{}, now.Mono.Add(askEvery))
	case machine.Fired:
		a.call++
		a.asked = true
		out.Add(machine.Call{ID: a.call, Port: callDecide, Limit: decideTimeout})
		out.Arm(askTimer{}, now.Mono.Add(askEvery))
	case machine.Called:
		if !a.asked || in.ID != a.call {
			return
		}
		a.asked = false
		if got, ok := in.Result.(answer); ok && (a.blind || !a.gone[got.Gen]) {
			out.Publish(decided(got))
		}
	case supervisor.Exited:
		a.gone[in.Gen] = true
	case supervisor.Unhealthy:
		a.gone[in.Gen] = true
	}
}

// child is a process of the plugin.
type child struct {
	gen       supervisor.Generation
	spec      supervisor.Spec
	ready     bool
	condemned bool // The supervisor has ordered the end of the process.
	ended     bool
	known     bool // The supervisor has heard that the process has ended. A frozen node hears late.
	sick      bool // Its health checks fail.
	hangs     bool // Its strategy answers nothing.
	troubled  int  // For how many seconds it has been active and hung while its node ran.
}

// family has the processes of the plugin of one incarnation of a node.
type family struct {
	judge    *judge
	node     *simulation.Node
	children []*child // All children so far.
	active   supervisor.Generation
	idle     int // Seconds without an active process in which nothing happened.
	decided  int
	swapping bool
	specs    supervisor.Spec
}

func (f *family) find(gen supervisor.Generation) *child {
	for _, c := range f.children {
		if c.gen == gen {
			return c
		}
	}
	return nil
}

func (f *family) tell(in machine.Input) { f.node.Input(supervisors, in) }

// judge runs the processes, keeps books of them, and checks:
//
//	S1 calls go to a process that is ready, not condemned, and not known to have ended
//	S2 of one spec there is one process at a time
//	S3 an answer that counts is of a process that is not known to have ended
//	S4 a process that hangs is replaced in time
//	S5 without an active process something happens in time
type judge struct {
	world    *simulation.World
	rand     *rand.Rand
	calm     bool // Processes do not fail any more.
	families []*family
	launches int
	failures map[string]int
}

func (j *judge) fail(f *family, format string, args ...any) {
	j.world.Fail(fmt.Errorf("%v: %s", f.node.ID(), fmt.Sprintf(format, args...)))
}

func (j *judge) of(n *simulation.Node) *family {
	for _, f := range j.families {
		if f.node == n {
			return f
		}
	}
	f := &family{judge: j, node: n, specs: 1}
	j.families = append(j.families, f)
	return f
}

// some draws a duration.
func (j *judge) some(least, most time.Duration) time.Duration {
	return least + time.Duration(j.rand.Int64N(int64(most-least)))
}

// carry carries out the effects of a supervisor.
func (j *judge) carry(n *simulation.Node, _ *machine.Component, e machine.Effect) bool {
	f := j.of(n)
	f.idle = 0
	switch e := e.(type) {
	case supervisor.Launch:
		j.launch(f, e)
	case supervisor.Kill:
		c := f.find(e.Gen)
		c.condemned = true
		if c.ready { // Otherwise the launch of the child ends.
			j.world.After(j.some(time.Millisecond, 300*time.Millisecond), func() { j.end(f, c, errors.New("killed")) })
		}
	case supervisor.Activate:
		f.active = e.Gen
		if c := f.find(e.Gen); e.Gen != 0 && (!c.ready || c.condemned || c.known) {
			j.fail(f, "S1: calls go to generation %d: %+v", e.Gen, c)
		}
	case supervisor.Drain:
		j.world.After(j.some(0, time.Second), func() { f.tell(supervisor.Drained(e)) })
	default:
		return false
	}
	return true
}

func (j *judge) launch(f *family, e supervisor.Launch) {
	j.launches++
	for _, c := range f.children {
		if c.spec == e.Spec && !c.ended {
			j.fail(f, "S2: generations %d and %d of spec %d", c.gen, e.Gen, e.Spec)
		}
	}
	c := &child{gen: e.Gen, spec: e.Spec}
	f.children = append(f.children, c)
	fails := !j.calm && j.rand.Float64() < 0.2 && e.Gen > 1
	j.world.After(j.some(5*time.Millisecond, 400*time.Millisecond), func() {
		if fails || c.condemned {
			j.failures["launch"]++
			c.ended = true
			f.tell(supervisor.LaunchFailed{Gen: c.gen, Err: errBoom})
			return
		}
		c.ready = true
		f.tell(supervisor.Launched{Gen: c.gen})
		j.world.After(j.some(time.Second, 40*time.Second), func() { j.strike(f, c) })
	})
}

// strike ends a process, makes it or its strategy hang, or spares it.
func (j *judge) strike(f *family, c *child) {
	if j.calm || c.ended || c.condemned {
		return
	}
	switch j.rand.IntN(4) {
	case 0:
		j.failures["crash"]++
		j.end(f, c, errBoom)
	case 1:
		j.failures["hang"]++
		c.sick, c.hangs = true, true
	case 2:
		j.failures["strategy hangs"]++
		c.hangs = true
	}
}

// end ends a process that has not ended, and tells its supervisor.
func (j *judge) end(f *family, c *child, err error) {
	if !c.ended {
		c.ended = true
		f.tell(supervisor.Exited{Gen: c.gen, Err: err})
	}
}

// health answers a health check for its process.
func (j *judge) health(n *simulation.Node, request any) (any, error) {
	c := j.of(n).find(request.(supervisor.CheckHealth).Gen)
	if c == nil || c.ended || c.sick {
		return nil, errBoom
	}
	return request, nil
}

// decide answers for the process that calls go to.
func (j *judge) decide(n *simulation.Node, _ any) (any, error) {
	f := j.of(n)
	c := f.find(f.active)
	if c == nil || c.ended || c.hangs {
		return nil, errBoom
	}
	return answer{c.gen}, nil
}

// observe sees the events that nodes publish, and how their calls end.
func (j *judge) observe(o simulation.Observation) {
	f := j.of(o.Node)
	switch e := o.Event.(type) {
	case simulation.Answered:
		if e.Port == callDecide && f.active != 0 {
			f.tell(supervisor.CallEnded{Gen: f.active, Unanswered: e.Called.Err != nil})
		}
	case supervisor.Swapped:
		f.swapping = false
	case supervisor.Exited:
		f.find(e.Gen).known = true
	case decided:
		f.decided++
		if f.find(e.Gen).known {
			j.fail(f, "S3: an answer of generation %d counts, which has ended", e.Gen)
		}
	}
}

// Stepped does nothing: faults show in effects, or with time.
func (j *judge) Stepped(*simulation.World, *simulation.Node) error { return nil }

const (
	// maxTroubled is three health checks, one after the other, each at its limit, and
	// a second for being looked at once a second.
	maxTroubled = 3*2 + 1
	// maxIDle is the longest back-off, and a second for being looked at once a second.
	maxIDle = 30 + 1
)

// Second checks S4 and S5 on all nodes that run.
func (j *judge) Second(w *simulation.World) error {
	for _, f := range j.families {
		if !f.node.Alive() || f.node.Frozen() {
			continue
		}
		f.idle++
		if c := f.find(f.active); c != nil {
			f.idle = 0
			if c.hangs && !c.condemned {
				c.troubled++
			}
			if c.troubled > maxTroubled {
				return fmt.Errorf("%v: S4: generation %d has hung for %d s", f.node.ID(), c.gen, c.troubled)
			}
		}
		if f.idle > maxIDle {
			return fmt.Errorf("%v: S5: nothing has happened for %d s without a process", f.node.ID(), f.idle)
		}
		if !f.swapping && !j.calm && f.active != 0 && j.rand.IntN(30) == 0 {
			f.swapping = true
			f.specs++
			w.Input(f.node.ID().Address, supervisors, supervisor.Swap{Spec: f.specs, Config: times()})
		}
	}
	return nil
}

// times returns the configuration of the supervisors of the world.
func times() supervisor.Config {
	c := config()
	c.HealthTimeout = 900 * time.Millisecond
	return c
}

func place(i int) gossip.Address { return gossip.Address{Host: "10.0.0.1", Port: uint16(7000 + i)} }

// build makes the components of a node, of which plant may make others.
func build(plant func(s machine.Machine, a *asker) machine.Machine) simulation.Build {
	return func(simulation.Env) []machine.Component {
		a := &asker{gone: map[supervisor.Generation]bool{}}
		var s machine.Machine = supervisor.New(1, times())
		if plant != nil {
			s = plant(s, a)
		}
		return []machine.Component{
			{Name: "supervisor", Service: supervisors, Machine: s},
			{Name: "asker", Service: askers, Machine: a},
		}
	}
}

// live runs three nodes through two minutes of faults, and one in which all is well.
func live(seed uint64, plant func(machine.Machine, *asker) machine.Machine) (*judge, error) {
	w := simulation.New(simulation.Options{Seed: seed, RatePPM: 10_000, WallSkew: time.Minute})
	j := &judge{world: w, rand: w.Source(100), failures: map[string]int{}}
	w.Check(j)
	w.Carry(j.carry)
	w.Observe(j.observe)
	w.Strategies().Answer(supervisor.CallHealth, j.health)
	w.Strategies().Answer(callDecide, j.decide)
	w.Strategies().Set(simulation.Calls{Fail: 0.02, Hang: 0.02, Late: 0.02, LateMax: 2 * time.Second, Max: 200 * time.Millisecond, Stuck: 0.01, StuckMax: 2 * time.Second})
	for i := range 3 {
		w.Start(place(i), build(plant))
	}
	w.Chaos(simulation.Chaos{For: 2 * time.Minute, Every: 5 * time.Second, Faults: simulation.Faults()})
	w.At(2*time.Minute, func() {
		j.calm = true
		w.Strategies().Set(simulation.Calls{})
	})
	if err := w.Run(3 * time.Minute); err != nil {
		return j, err
	}
	return j, j.recovered(10 * time.Second)
}

// recovered lets more time pass, in which each node must have all its answers but one.
func (j *judge) recovered(d time.Duration) error {
	for _, f := range j.families {
		f.decided = 0
	}
	if err := j.world.Run(d); err != nil {
		return err
	}
	for _, n := range j.world.Nodes() {
		if f := j.of(n); f.decided < int(d/askEvery)-1 {
			return fmt.Errorf("%v: %d answers in %v though nothing fails any more", n.ID(), f.decided, d)
		}
	}
	return nil
}

const worlds = 20

// While processes crash, hang and do not start, in nodes that crash and freeze, the
// invariants of judge hold: a process that fails is replaced, and one at a time decides.
// covers I34, F40, F56.
func TestPluginsOfSimulatedNodesAreReplaced(t *testing.T) {
	failures, launches := map[string]int{}, 0
	for seed := range uint64(worlds) {
		j, err := live(seed, nil)
		require.NoError(t, err, "seed %d", seed)
		launches += j.launches
		for what, n := range j.failures {
			failures[what] += n
		}
	}
	for _, what := range []string{"launch", "crash", "hang", "strategy hangs"} {
		require.Greater(t, failures[what], worlds, "%s: %v in %d launches", what, failures, launches)
	}
}

func TestASeedIsOneRun(t *testing.T) {
	first, err := live(7, nil)
	require.NoError(t, err)
	second, err := live(7, nil)
	require.NoError(t, err)
	require.Equal(t, first.world.Trace().Hash(), second.world.Trace().Hash())
}

// planted is a supervisor with a fault: it changes what goes in and what comes out.
type planted struct {
	machine.Machine
	step func(now machine.Now, in machine.Input, out *machine.Outbox)
}

func (p planted) Step(now machine.Now, in machine.Input, out *machine.Outbox) { p.step(now, in, out) }

// without makes of a supervisor one that never has some of its effects.
func without(s machine.Machine, left func(machine.Effect) bool) machine.Machine {
	return planted{s, func(now machine.Now, in machine.Input, out *machine.Outbox) {
		var all machine.Outbox
		s.Step(now, in, &all)
		for _, e := range all.Effects() {
			if !left(e) {
				out.Add(e)
			}
		}
	}}
}

// Each planted fault is found: a judge that finds none would prove nothing.
func TestPlantedFaultsOfSupervisorsAreFound(t *testing.T) {
	for fault, c := range map[string]struct {
		plant func(machine.Machine, *asker) machine.Machine
		found string
	}{
		"kills nobody, and believes that they are gone": {func(s machine.Machine, _ *asker) machine.Machine {
			return planted{s, func(now machine.Now, in machine.Input, out *machine.Outbox) {
				s.Step(now, in, out)
				for _, e := range out.Effects() {
					if kill, ok := e.(supervisor.Kill); ok {
						s.Step(now, supervisor.Exited{Gen: kill.Gen}, out)
					}
				}
			}}
		}, "S2: "},
		"asks nobody for health, and hears of no call": {func(s machine.Machine, _ *asker) machine.Machine {
			deaf := without(s, func(e machine.Effect) bool { _, ok := e.(machine.Call); return ok })
			return planted{s, func(now machine.Now, in machine.Input, out *machine.Outbox) {
				if _, ok := in.(supervisor.CallEnded); !ok {
					deaf.Step(now, in, out)
				}
			}}
		}, ""},
		"has no timer": {func(s machine.Machine, _ *asker) machine.Machine {
			return without(s, func(e machine.Effect) bool { _, ok := e.(machine.Arm); return ok })
		}, "S5: "},
		"sends calls to whoever is launching": {func(s machine.Machine, _ *asker) machine.Machine {
			return planted{s, func(now machine.Now, in machine.Input, out *machine.Outbox) {
				s.Step(now, in, out)
				for _, e := range out.Effects() {
					if launch, ok := e.(supervisor.Launch); ok {
						out.Add(supervisor.Activate{Gen: launch.Gen})
					}
				}
			}}
		}, "S1: "},
		"counts the answers of the dead": {func(s machine.Machine, a *asker) machine.Machine {
			a.blind = true
			return s
		}, "S3: "},
	} {
		t.Run(fault, func(t *testing.T) {
			var err error
			for seed := range uint64(worlds) {
				if _, err = live(seed, c.plant); err != nil {
					break
				}
			}
			require.ErrorContains(t, err, c.found)
		})
	}
}
