// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/simulation"
)

// Calls of strategies in a world of one node: strategies that crash, answers that come
// late, stuck and slow calls, panics, and outcomes that one node alone has. Last a machine
// that uses a late answer is found.

// asker is a world of one node that makes the calls that it is fed.
type asker struct {
	world *simulation.World
	last  machine.CallID
}

func newAsker(c simulation.Calls) *asker {
	w := pingers(simulation.Options{Calls: c}, 1)
	w.Strategies().Answer("double", func(_ *simulation.Node, request any) (any, error) { return 2 * request.(int), nil })
	w.Strategies().Garble("double", func(*rand.Rand, any) any { return "garbage" })
	return &asker{world: w}
}

// ask makes a call with a limit of one second.
func (a *asker) ask() {
	a.last++
	a.world.Input(address(0), service, machine.Call{ID: a.last, Port: "double", Request: int(a.last), Limit: time.Second})
}

// fed returns the inputs that were fed in the last d, and forgets them.
func (a *asker) fed(t *testing.T, d time.Duration) []machine.Input {
	t.Helper()
	require.NoError(t, a.world.Run(d))
	p := machineOf(a.world, 0)
	fed := p.fed
	p.fed = nil
	return fed
}

// covers F56, I34.
func TestCrashedStrategyIsAwayUntilItWasStartedAgain(t *testing.T) {
	a := newAsker(simulation.Calls{Crash: 1, Restart: 10 * time.Second, RestartMax: 15 * time.Second})
	refused := machine.Called{ID: 1, Err: simulation.ErrUnavailable}
	a.ask()
	require.Equal(t, []machine.Input{refused}, a.fed(t, 20*time.Millisecond), "it crashes in the call")
	a.world.Strategies().Set(simulation.Calls{})
	longest := time.Duration(0)
	for range 1000 {
		a.ask()
		fed := a.fed(t, 20*time.Millisecond)
		if refused.ID = a.last; fed[0] != refused {
			break
		}
		longest += 20 * time.Millisecond
	}
	require.NotZero(t, longest, "calls fail at once until then")
	require.LessOrEqual(t, longest, 10*time.Second)
	require.Contains(t, a.world.Strategies().Outcomes(), simulation.FaultCount{Name: "crash", Times: 1})
}

// A machine whose calls follow one another without a pause is a violation: an answer sets no pace.
func TestAStormOfCallsIsAViolation(t *testing.T) {
	a := newAsker(simulation.Calls{})
	var again func()
	again = func() {
		a.ask()
		a.world.After(time.Millisecond, again)
	}
	again()
	require.ErrorContains(t, a.world.Run(time.Minute), "double is called more than 200 times in 1s")
	require.Less(t, a.world.Now(), time.Second)
}

// A port may be bound more closely: the fourth call within a second is a violation where three are allowed.
func TestAPortIsCalledAsOftenAsItIsBound(t *testing.T) {
	for _, every := range []time.Duration{334 * time.Millisecond, 333 * time.Millisecond} {
		a := newAsker(simulation.Calls{})
		a.world.Strategies().Bound("double", simulation.Pace{Most: 3, Per: time.Second})
		var again func()
		again = func() {
			a.ask()
			a.world.After(every, again)
		}
		again()
		err := a.world.Run(time.Minute)
		if 3*every >= time.Second {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, "double is called more than 3 times in 1s")
		}
	}
}

func TestRestartsTakeLongerFromCrashToCrash(t *testing.T) {
	away := func(seed uint64) (sum [3]time.Duration) {
		w := pingers(simulation.Options{
			Seed: seed, Calls: simulation.Calls{Crash: 1, Restart: time.Second, RestartMax: 2 * time.Second, Max: 1},
		}, 1)
		w.Strategies().Answer("double", func(*simulation.Node, any) (any, error) { return 0, nil })
		a := &asker{world: w}
		begin := time.Duration(0)
		for crashes := 0; crashes <= len(sum); {
			a.ask()
			a.fed(t, 10*time.Millisecond)
			if now := w.Strategies().Outcomes(); now[len(now)-1].Name == "crash" && now[len(now)-1].Times > crashes {
				if crashes > 0 {
					sum[crashes-1] = w.Now() - begin
				}
				crashes++
				begin = w.Now()
			}
		}
		return sum
	}
	var sums [3]time.Duration
	for seed := range uint64(40) {
		for i, d := range away(seed) {
			sums[i] += d
		}
	}
	require.InDelta(t, 2, float64(sums[1])/float64(sums[0]), 0.8, "twice as long")
	require.InDelta(t, 1, float64(sums[2])/float64(sums[1]), 0.4, "up to the most")
}

// covers F40, F56.
func TestLateAnswerComesAfterTheLimitWithoutAWordBefore(t *testing.T) {
	a := newAsker(simulation.Calls{Late: 1, LateMax: 3 * time.Second})
	a.ask()
	require.Empty(t, a.fed(t, time.Second))
	a.world.Strategies().Set(simulation.Calls{})
	a.ask() // The driver has given up the first call.
	fed := a.fed(t, 5*time.Second)
	require.ElementsMatch(t, []machine.Input{machine.Called{ID: 1, Result: 2}, machine.Called{ID: 2, Result: 4}}, fed)
	require.EqualValues(t, 1, a.world.Stats().Late)
}

// covers F40, F56.
func TestStuckCallKeepsOthersOut(t *testing.T) {
	a := newAsker(simulation.Calls{Stuck: 1, StuckMax: 5 * time.Second})
	a.ask()
	require.Equal(t, []machine.Input{machine.Called{ID: 1, Err: context.DeadlineExceeded}}, a.fed(t, time.Second))
	a.world.Strategies().Set(simulation.Calls{})
	a.ask()
	require.Equal(t, []machine.Input{machine.Called{ID: 2, Err: machine.ErrBusy}}, a.fed(t, 0))
	a.fed(t, 5*time.Second)
	a.ask()
	require.Equal(t, []machine.Input{machine.Called{ID: 3, Result: 6}}, a.fed(t, time.Second))
}

// covers F56: a call that takes ten seconds.
func TestSlowCallIsNotAnsweredBeforeItsLimit(t *testing.T) {
	a := newAsker(simulation.Calls{Min: 10 * time.Second, Max: 10 * time.Second})
	a.ask()
	require.Equal(t, []machine.Input{machine.Called{ID: 1, Err: context.DeadlineExceeded}}, a.fed(t, time.Second))
	require.Equal(t, []simulation.FaultCount{{Name: "slow", Times: 1}}, a.world.Strategies().Outcomes())
}

func TestPanicOfAStrategyIsAnAnswer(t *testing.T) {
	a := newAsker(simulation.Calls{})
	a.world.Strategies().Answer("double", func(*simulation.Node, any) (any, error) { panic("out of ideas") })
	a.ask()
	var p *machine.PanicError
	require.ErrorAs(t, a.fed(t, time.Second)[0].(machine.Called).Err, &p)
	require.Equal(t, "out of ideas", p.Value)
}

func TestCallsOfOneNodeCanBeOthers(t *testing.T) {
	a := newAsker(simulation.Calls{})
	a.world.Strategies().SetAt(address(0), simulation.Calls{Fail: 1})
	a.ask()
	require.Equal(t, []machine.Input{machine.Called{ID: 1, Err: simulation.ErrCallFailed}}, a.fed(t, time.Second))
	a.world.Strategies().Set(simulation.Calls{})
	a.ask()
	require.Equal(t, []machine.Input{machine.Called{ID: 2, Result: 4}}, a.fed(t, time.Second))
}

// credulous is a machine that uses every answer, however late.
type credulous struct{}

func (credulous) Step(_ machine.Now, in machine.Input, out *machine.Outbox) {
	switch in := in.(type) {
	case machine.Call:
		out.Add(in)
	case machine.Called:
		out.Decide("double", "itself", "used", "")
	}
}

// covers I34.
func TestMachineThatUsesALateAnswerIsAViolation(t *testing.T) {
	w := simulation.New(simulation.Options{Calls: simulation.Calls{Late: 1}})
	w.Strategies().Answer("double", func(*simulation.Node, any) (any, error) { return 0, nil })
	w.Start(address(0), func(simulation.Env) []machine.Component {
		return []machine.Component{{Name: "credulous", Service: service, Machine: credulous{}}}
	})
	w.Input(address(0), service, machine.Call{ID: 1, Port: "double", Limit: time.Second})
	require.ErrorContains(t, w.Run(time.Minute), "acts on answer 1 of double, which came after its limit")
}
