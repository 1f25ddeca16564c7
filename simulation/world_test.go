// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/simulation"
)

// A world of nodes that ping each other (pinger): first that a seed is one run, then cuts,
// freezes, restarts and clocks, violations that are found, calls and effects, and the
// checkers of a world.

const service machine.Service = 7

func address(i int) gossip.Address {
	return gossip.Address{Host: fmt.Sprintf("n%03d", i), Port: 7946}
}

func addresses(from, to int) []gossip.Address {
	var all []gossip.Address
	for i := from; i < to; i++ {
		all = append(all, address(i))
	}
	return all
}

// pinger sends a numbered ping to each peer every second, and records the pings that
// it receives.
type pinger struct {
	peers []gossip.Address
	sent  int
	heard map[string][]int
	fed   []machine.Input
	fired []machine.Instant
}

type ping struct{ N int }

func (p *pinger) Step(now machine.Now, in machine.Input, out *machine.Outbox) {
	switch in := in.(type) {
	case machine.Started:
		out.Arm("tick", now.Mono.Add(time.Second))
	case machine.Fired:
		p.fired = append(p.fired, now.Mono)
		p.sent++
		for _, peer := range p.peers {
			out.Send(gossip.NodeID{Address: peer}, ping{p.sent})
		}
		out.Arm("tick", now.Mono.Add(time.Second))
	case machine.Received:
		from := in.From.Address.Host
		p.heard[from] = append(p.heard[from], in.Message.(ping).N)
		out.Publish(in.Message)
	case machine.Called:
		p.fed = append(p.fed, in)
	case machine.Call, machine.Publish, own:
		out.Add(in)
	case error:
		panic(in)
	}
}

type own struct{ N int }

// decimal is a codec of pings that fails above limit.
type decimal struct{ limit int }

func (decimal) Append(dst []byte, message any) ([]byte, error) {
	return fmt.Append(dst, message.(ping).N), nil
}

func (c decimal) Decode(b []byte) (any, error) {
	var p ping
	if _, err := fmt.Sscan(string(b), &p.N); err != nil {
		return nil, err
	}
	if p.N > c.limit {
		p.N = c.limit
	}
	return p, nil
}

func build(peers []gossip.Address, limit int) simulation.Build {
	return func(simulation.Env) []machine.Component {
		return []machine.Component{{
			Name: "pinger", Service: service, Codec: decimal{limit},
			Machine: &pinger{peers: peers, heard: make(map[string][]int)},
		}}
	}
}

func pingers(opt simulation.Options, n int) *simulation.World {
	w := simulation.New(opt)
	for i := range n {
		w.Start(address(i), build(addresses(0, n), 1<<30))
	}
	return w
}

func machineOf(w *simulation.World, i int) *pinger {
	return w.Node(address(i)).Machine(service).(*pinger)
}

// covers I30.
func TestRunIsAFunctionOfItsSeed(t *testing.T) {
	run := func(seed uint64) (uint64, string) {
		var text strings.Builder
		w := pingers(simulation.Options{
			Seed: seed, RatePPM: 10_000, WallSkew: time.Hour, CodecEvery: 3, Trace: &text,
			Network: simulation.Delivery{Loss: 0.05, Double: 0.05, Late: 0.05, LateMax: 3 * time.Second},
		}, 7)
		w.Chaos(simulation.Chaos{For: 2 * time.Minute, Every: 2 * time.Second, Faults: simulation.Faults()})
		require.NoError(t, w.Run(3*time.Minute))
		require.Len(t, w.Nodes(), 7, "everybody is back after the faults")
		return w.Trace().Hash(), text.String()
	}
	first, text := run(1)
	again, same := run(1)
	other, _ := run(2)
	require.Equal(t, first, again)
	require.Equal(t, text, same, "the text of the trace is the same, too")
	require.NotEqual(t, first, other)
	require.NotContains(t, text, "0xc0", "no pointers in the trace")
}

func TestCutIsOneWayAndHealEndsIt(t *testing.T) {
	w := pingers(simulation.Options{}, 3)
	w.Network().Cut(address(0), address(1))
	require.NoError(t, w.Run(2500*time.Millisecond))
	require.Empty(t, machineOf(w, 1).heard["n000"])
	require.Equal(t, []int{1, 2}, machineOf(w, 0).heard["n001"])
	require.Equal(t, []int{1, 2}, machineOf(w, 2).heard["n000"])
	w.Network().Heal()
	require.NoError(t, w.Run(time.Second))
	require.Equal(t, []int{3}, machineOf(w, 1).heard["n000"])
}

func TestSplitCutsBetweenSidesOnly(t *testing.T) {
	w := pingers(simulation.Options{}, 4)
	w.Network().Split(addresses(0, 2), addresses(2, 3))
	require.NoError(t, w.Run(1500*time.Millisecond))
	require.Len(t, machineOf(w, 0).heard, 3, "itself, its own side, and who is on no side")
	require.NotContains(t, machineOf(w, 0).heard, "n002")
	require.Len(t, machineOf(w, 3).heard, 4)
}

// covers F24, F33.
func TestFrozenNodeFindsEverythingAtItsThaw(t *testing.T) {
	w := pingers(simulation.Options{}, 2)
	require.NoError(t, w.Run(1500*time.Millisecond))
	w.Freeze(address(0), 5*time.Second)
	w.Freeze(address(0), time.Hour) // The node is frozen already: this has no effect.
	require.NoError(t, w.Run(4900*time.Millisecond))
	require.True(t, w.Node(address(0)).Frozen())
	require.Len(t, machineOf(w, 0).heard["n001"], 1)
	require.NoError(t, w.Run(200*time.Millisecond))
	require.False(t, w.Node(address(0)).Frozen())
	require.Len(t, machineOf(w, 0).heard["n001"], 6)
	require.Len(t, machineOf(w, 0).fired, 2, "the timer that came due fires once")
}

func TestRestartedNodeIsAnotherIncarnation(t *testing.T) {
	w := pingers(simulation.Options{}, 2)
	require.NoError(t, w.Run(1500*time.Millisecond))
	old := w.Node(address(1))
	var seen []string
	w.Observe(func(o simulation.Observation) {
		switch e := o.Event.(type) {
		case simulation.Started:
			seen = append(seen, "began")
		case simulation.Ended:
			seen = append(seen, "ended: "+e.Why)
		}
	})
	now := w.Restart(address(1))
	require.NotEqual(t, old.ID(), now.ID())
	require.Equal(t, old.ID().Address, now.ID().Address)
	require.Equal(t, 1, now.Generation())
	require.False(t, old.Alive())
	require.Equal(t, []string{"ended: crashed", "began"}, seen)
	require.NoError(t, w.Run(time.Second))
	require.Equal(t, 1, machineOf(w, 1).sent, "timers of the old incarnation do not fire")
	require.Len(t, old.Machine(service).(*pinger).fired, 1)
	w.Crash(address(1))
	w.Crash(address(1))
	require.Equal(t, []gossip.Address{address(1)}, w.Vacant())
}

// covers F53.
func TestClocksRunAtTheirOwnRate(t *testing.T) {
	w := pingers(simulation.Options{Seed: 3, RatePPM: 10_000, WallSkew: time.Minute}, 20)
	before := make([]machine.Now, 20)
	for i := range before {
		before[i] = w.Node(address(i)).Now()
	}
	require.NoError(t, w.Run(1000*time.Second))
	different := false
	for i := range before {
		passed := w.Node(address(i)).Now().Mono.Sub(before[i].Mono)
		require.InDelta(t, 1000, passed.Seconds(), 10.001)
		different = different || passed != 1000*time.Second
		skew := w.Node(address(i)).Now().Wall.Sub(w.Wall())
		require.LessOrEqual(t, skew.Abs(), time.Minute)
		fired := machineOf(w, i).fired
		for k := 1; k < len(fired); k++ {
			require.GreaterOrEqual(t, fired[k].Sub(fired[k-1]), time.Second, "never early by the node's clock")
		}
	}
	require.True(t, different)
	w.SetWall(address(0), time.Hour)
	require.Equal(t, time.Hour, w.Node(address(0)).Now().Wall.Sub(w.Wall()))
}

func TestCodecThatChangesAMessageIsAViolation(t *testing.T) {
	w := simulation.New(simulation.Options{Seed: 0x2a, Scenario: "codec", CodecEvery: 1})
	w.Start(address(0), build(addresses(1, 2), 2))
	require.NoError(t, w.Run(2500*time.Millisecond))
	err := w.Run(time.Second)
	require.ErrorContains(t, err, "simulation_test.ping is not what was encoded")
	require.ErrorContains(t, err, "replay: quorate simulate -seed 42 -scenario codec")
	require.ErrorContains(t, err, "n000:7946 sent n001:7946 simulation_test.ping {N:2}")
	require.Equal(t, err, w.Run(time.Hour), "nothing happens after a violation")
	require.Equal(t, 3*time.Second, w.Now())
}

// even is the codec of a release that knows even numbers only, and cannot read those above ten.
type even struct{ decimal }

// Sent implements [simulation.Release].
func (even) Sent(message any) (any, error) { return ping{message.(ping).N &^ 1}, nil }

// Received implements [simulation.Release].
func (even) Received(message any) (any, error) {
	if n := message.(ping).N; n <= 10 {
		return ping{n &^ 1}, nil
	}
	return nil, errors.New("above ten")
}

// What a node of another release sends, and gets from others, is as that release has it; what it tells itself is its
// own.
func TestANodeOfAnotherRelease(t *testing.T) {
	w := pingers(simulation.Options{CodecEvery: 1}, 2)
	w.Start(address(2), func(env simulation.Env) []machine.Component {
		all := build(addresses(0, 3), 1<<30)(env)
		all[0].Codec = even{decimal{1 << 30}}
		return all
	})
	w.At(time.Millisecond, func() {
		for i := range 2 {
			machineOf(w, i).peers = addresses(0, 3)
		}
	})
	require.NoError(t, w.Run(4500*time.Millisecond))
	require.Equal(t, []int{1, 2, 3, 4}, machineOf(w, 0).heard["n001"])
	require.Equal(t, []int{0, 2, 2, 4}, machineOf(w, 0).heard["n002"])
	require.Equal(t, []int{0, 2, 2, 4}, machineOf(w, 2).heard["n000"])
	require.Equal(t, []int{1, 2, 3, 4}, machineOf(w, 2).heard["n002"])
	require.ErrorContains(t, w.Run(10*time.Second), "pinger: simulation_test.ping between two releases: above ten")
}

// A world without a name cannot be repeated by a command, and a failure of it names none.
func TestAFailureOfAWorldWithoutAName(t *testing.T) {
	w := simulation.New(simulation.Options{Seed: 1, CodecEvery: 1})
	require.Empty(t, w.Replay())
	w.Start(address(0), build(addresses(1, 2), 2))
	err := w.Run(4 * time.Second)
	require.ErrorContains(t, err, "violation at ")
	require.NotContains(t, err.Error(), "replay: ")
}

func TestPanicOfAMachineIsAViolation(t *testing.T) {
	w := pingers(simulation.Options{}, 1)
	w.Input(address(0), service, errors.New("broken"))
	require.ErrorContains(t, w.Run(time.Second), "panic: broken")
}

// covers I28: nodes that answer each other without end are detected by their number of
// events, within little time of the world.
func TestStormIsAViolation(t *testing.T) {
	w := pingers(simulation.Options{}, 2)
	var again func()
	again = func() { w.After(time.Microsecond, again) }
	again()
	err := w.Run(time.Hour)
	require.ErrorContains(t, err, "a storm: 40001 events in less than a second, of 2 nodes")
	require.Less(t, w.Now(), time.Second)
}

// covers F40.
func TestCallsAreAnsweredAsDrawn(t *testing.T) {
	w := pingers(simulation.Options{}, 1)
	ask := func(id machine.CallID, port string) {
		w.Input(address(0), service, machine.Call{ID: id, Port: port, Request: int(id), Limit: time.Second})
	}
	w.Strategies().Answer("double", func(_ *simulation.Node, request any) (any, error) { return 2 * request.(int), nil })
	w.Strategies().Answer("fail", func(*simulation.Node, any) (any, error) { return nil, errors.New("no") })
	w.Strategies().Garble("double", func(*rand.Rand, any) any { return "garbage" })
	last := func() machine.Called {
		fed := machineOf(w, 0).fed
		return fed[len(fed)-1].(machine.Called)
	}
	ask(1, "double")
	require.NoError(t, w.Run(time.Second))
	require.Equal(t, machine.Called{ID: 1, Result: 2}, last())
	ask(2, "fail")
	require.NoError(t, w.Run(time.Second))
	require.EqualError(t, last().Err, "no")
	ask(3, "unknown")
	require.NoError(t, w.Run(time.Second))
	require.ErrorContains(t, last().Err, "nobody answers")
	w.Strategies().Set(simulation.Calls{Garbage: 1})
	ask(4, "double")
	require.NoError(t, w.Run(time.Second))
	require.Equal(t, "garbage", last().Result)
	w.Strategies().Set(simulation.Calls{Fail: 1})
	ask(5, "double")
	require.NoError(t, w.Run(time.Second))
	require.ErrorIs(t, last().Err, simulation.ErrCallFailed)
	w.Strategies().Set(simulation.Calls{Hang: 1})
	ask(6, "double")
	ask(7, "double")
	require.NoError(t, w.Run(500*time.Millisecond))
	require.ErrorIs(t, last().Err, machine.ErrBusy)
	require.NoError(t, w.Run(time.Second))
	require.ErrorContains(t, last().Err, "deadline")
}

func TestOwnEffectsAndEndingEvents(t *testing.T) {
	w := pingers(simulation.Options{}, 1)
	carried := 0
	w.Carry(func(n *simulation.Node, c *machine.Component, e machine.Effect) bool {
		o, ok := e.(own)
		if ok && o.N > 0 {
			carried++
			n.Enqueue(c.Service, own{o.N - 1})
		}
		return ok
	})
	w.EndsOn(func(event any) string {
		if event == "end" {
			return "asked to"
		}
		return ""
	})
	w.Input(address(0), service, own{3})
	require.NoError(t, w.Run(time.Second))
	require.Equal(t, 3, carried)
	n := w.Node(address(0))
	w.Input(address(0), service, machine.Publish{Event: "end"})
	require.NoError(t, w.Run(time.Second))
	why, ended := n.Ended()
	require.True(t, ended)
	require.Equal(t, "asked to", why)
}

// checker counts the calls of its methods.
type checker struct{ steps, seconds int }

func (c *checker) Stepped(*simulation.World, *simulation.Node) error { c.steps++; return nil }

func (c *checker) Second(w *simulation.World) error {
	c.seconds++
	if w.Now() == 5*time.Second {
		return errors.New("five")
	}
	return nil
}

func TestCheckersLookAfterStepsAndEachSecond(t *testing.T) {
	w := simulation.New(simulation.Options{})
	var c checker
	w.Check(&c)
	for i := range 2 {
		w.Start(address(i), build(addresses(0, 2), 1<<30))
	}
	require.NoError(t, w.Run(4500*time.Millisecond))
	require.Equal(t, checker{steps: 2 + 4*(2+4), seconds: 4}, c)
	require.ErrorContains(t, w.Run(time.Second), "violation at 5s: five")
}

func BenchmarkWorld(b *testing.B) {
	for _, n := range []int{10, 1000} {
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) {
			w := simulation.New(simulation.Options{Seed: 1, RatePPM: 10_000})
			for i := range n {
				var peers []gossip.Address
				for k := 1; k <= 9; k++ {
					peers = append(peers, address((i+k)%n))
				}
				w.Start(address(i), func(simulation.Env) []machine.Component {
					return []machine.Component{{Name: "pinger", Service: service, Machine: quiet{peers}}}
				})
			}
			b.ReportAllocs()
			begin := w.Stats().Events
			for b.Loop() {
				if err := w.Run(time.Second); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(w.Stats().Events-begin)/b.Elapsed().Seconds(), "events/s")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "x-real-time")
		})
	}
}

// quiet pings its peers, answers pings, and records nothing.
type quiet struct{ peers []gossip.Address }

type pong struct{ N int }

func (q quiet) Step(now machine.Now, in machine.Input, out *machine.Outbox) {
	switch in := in.(type) {
	case machine.Received:
		if p, ok := in.Message.(ping); ok {
			out.Send(in.From, pong(p))
		}
	default:
		for _, peer := range q.peers {
			out.Send(gossip.NodeID{Address: peer}, ping{1})
		}
		out.Arm("tick", now.Mono.Add(time.Second))
	}
}
