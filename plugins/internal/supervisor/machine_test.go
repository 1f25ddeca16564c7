// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package supervisor_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/plugins/internal/supervisor"
)

// The machine step by step: the first launch, crashes, back-off and breaker; then health
// checks and calls without an answer; then views, swaps and drains; last the stop, and
// inputs about generations that do not exist.

var errBoom = errors.New("boom")

func config() supervisor.Config {
	return supervisor.Config{
		HealthInterval: time.Second, HealthTimeout: 2 * time.Second, UnhealthyAfter: 3, HungAfter: 3,
		BackoffMin: 100 * time.Millisecond, BackoffMax: 30 * time.Second,
		BreakerFailures: 5, BreakerWindow: time.Minute, BreakerOpen: 30 * time.Second,
		ProvedAfter: 10 * time.Second, DrainTimeout: 5 * time.Second,
	}
}

// bench drives a machine by hand.
type bench struct {
	t      *testing.T
	m      *supervisor.Machine
	now    machine.Now
	at     machine.Instant // When the timer fires; Never if it is not set.
	timer  machine.Timer
	checks map[supervisor.Generation]machine.CallID // The latest of each generation.
	told   []any                                    // The events that the latest step published.
}

func newBench(t *testing.T) *bench {
	t.Helper()
	return &bench{
		t: t, m: supervisor.New(1, config()), at: machine.Never, checks: map[supervisor.Generation]machine.CallID{},
		now: machine.Now{Mono: machine.Instant(time.Hour), Wall: time.Unix(1_000_000, 0)},
	}
}

// step gives the machine one input and returns the effects: of a call the request, of a
// publication the event. Timers, views, and events that repeat the input are left out.
func (b *bench) step(in machine.Input) []any {
	var out machine.Outbox
	b.m.Step(b.now, in, &out)
	b.told = nil
	var effects []any
	for _, e := range out.Effects() {
		switch e := e.(type) {
		case machine.Arm:
			b.at, b.timer = e.At, e.Timer
		case machine.Disarm:
			b.at = machine.Never
		case machine.Call:
			check := e.Request.(supervisor.CheckHealth)
			b.checks[check.Gen] = e.ID
			effects = append(effects, check)
		case machine.Publish:
			b.told = append(b.told, e.Event)
			if _, ok := e.Event.(supervisor.View); !ok && reflect.TypeOf(e.Event) != reflect.TypeOf(in) {
				effects = append(effects, e.Event)
			}
		default:
			effects = append(effects, e)
		}
	}
	return effects
}

// checked answers the latest health check of a generation.
func (b *bench) checked(gen supervisor.Generation, err error) []any {
	return b.step(machine.Called{ID: b.checks[gen], Err: err})
}

// wake lets the time pass until the timer fires, and returns how long that was.
func (b *bench) wake() (time.Duration, []any) {
	b.t.Helper()
	require.NotEqual(b.t, machine.Never, b.at, "nothing to wait for")
	require.GreaterOrEqual(b.t, b.at, b.now.Mono)
	d := b.at.Sub(b.now.Mono)
	b.pass(d)
	b.at = machine.Never
	return d, b.step(machine.Fired{Timer: b.timer})
}

func (b *bench) pass(d time.Duration) {
	b.now = machine.Now{Mono: b.now.Mono.Add(d), Wall: b.now.Wall.Add(d)}
}

// running returns a bench whose first generation is active.
func running(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	require.Equal(t, []any{supervisor.Launch{Gen: 1, Spec: 1}}, b.step(machine.Started{}))
	require.Equal(t, supervisor.Starting, b.m.View().State)
	require.Equal(t, []any{supervisor.Activate{Gen: 1}}, b.step(supervisor.Launched{Gen: 1}))
	require.Equal(t, supervisor.Running, b.m.View().State)
	return b
}

func TestFirstLaunchThatFailsEndsTheSupervision(t *testing.T) {
	b := newBench(t)
	b.step(machine.Started{})
	require.Equal(t, []any{supervisor.Ended{}}, b.step(supervisor.LaunchFailed{Gen: 1, Err: errBoom}))
	require.ErrorIs(t, b.m.View().LastErr, errBoom)
	require.Equal(t, supervisor.Stopped, b.m.View().State)
	require.Empty(t, b.step(machine.Started{}))
	require.Equal(t, machine.Never, b.at)
}

func TestCrashIsRestartedAfterTheBackoff(t *testing.T) {
	b := running(t)
	b.pass(time.Second)
	require.Equal(t, []any{supervisor.Activate{}}, b.step(supervisor.Exited{Gen: 1, Err: errBoom}))
	v := b.m.View()
	require.Equal(t, supervisor.Waiting, v.State)
	require.Equal(t, v.AwaySince.Add(100*time.Millisecond), v.NextTry)
	d, effects := b.wake()
	require.Equal(t, 100*time.Millisecond, d)
	require.Equal(t, []any{supervisor.Launch{Gen: 2, Spec: 1}}, effects)
	b.pass(50 * time.Millisecond)
	require.Equal(t, []any{supervisor.Activate{Gen: 2, Away: 150 * time.Millisecond}}, b.step(supervisor.Launched{Gen: 2}))
	v = b.m.View()
	require.Equal(t, uint64(1), v.Restarts)
	require.Equal(t, 150*time.Millisecond, v.AwayLast)
	require.False(t, v.Away)
}

// Each failure doubles the time to the next launch, until the breaker opens; then
// there is one trial at a time.
func TestLoopOfCrashesOpensTheBreaker(t *testing.T) {
	b := running(t)
	b.step(supervisor.Exited{Gen: 1, Err: errBoom})
	gen := supervisor.Generation(1)
	for _, want := range []int{100, 200, 400, 800} {
		d, _ := b.wake()
		gen++
		require.Equal(t, time.Duration(want)*time.Millisecond, d)
		b.step(supervisor.Launched{Gen: gen})
		b.step(supervisor.Exited{Gen: gen, Err: errBoom})
	}
	require.Equal(t, 5, b.m.View().Loop)
	for failed := range 3 {
		require.Equal(t, supervisor.Broken, b.m.View().State)
		d, effects := b.wake()
		gen++
		require.Equal(t, 30*time.Second, d)
		require.Len(t, effects, 1)
		opened := b.step(supervisor.LaunchFailed{Gen: gen, Err: errBoom})
		require.IsType(t, supervisor.Opened{}, opened[0])
		require.Equal(t, 6+failed, opened[0].(supervisor.Opened).Failures, "all since it last worked count")
		require.Equal(t, 6+failed, b.m.View().Loop)
	}
	b.wake()
	gen++
	b.step(supervisor.Launched{Gen: gen})
	require.Equal(t, 8, b.m.View().Loop, "it has not worked yet")
	b.wake() // To the first health check.
	b.checked(gen, nil)
	require.Equal(t, 8, b.m.View().Loop, "a second is no proof")
	b.wake()
	b.pass(2 * time.Minute)
	b.checked(gen, nil)
	require.Zero(t, b.m.View().Loop, "it works")
	b.step(supervisor.Exited{Gen: gen, Err: errBoom})
	require.Equal(t, supervisor.Waiting, b.m.View().State, "a trial that lasted closes the breaker")
	require.Equal(t, 1, b.m.View().Loop)
	d, _ := b.wake()
	require.Equal(t, 100*time.Millisecond, d)
}

func TestProcessThatFailsItsHealthChecksIsKilledAndRestarted(t *testing.T) {
	b := running(t)
	for range 2 {
		d, effects := b.wake()
		require.LessOrEqual(t, d, time.Second)
		require.Equal(t, []any{supervisor.CheckHealth{Gen: 1}}, effects)
		b.pass(time.Second)
		require.Empty(t, b.checked(1, errBoom))
	}
	_, effects := b.wake()
	require.Equal(t, []any{supervisor.CheckHealth{Gen: 1}}, effects)
	effects = b.checked(1, errBoom)
	require.Equal(t, supervisor.Activate{}, effects[0])
	require.IsType(t, supervisor.Unhealthy{}, effects[1])
	require.Equal(t, supervisor.Kill{Gen: 1}, effects[2])
	require.Equal(t, supervisor.Stopping, b.m.View().State)
	require.Equal(t, machine.Never, b.at, "the restart waits for the end")
	b.step(supervisor.Exited{Gen: 1})
	require.Equal(t, supervisor.Waiting, b.m.View().State)
	require.ErrorIs(t, b.m.View().LastErr, supervisor.ErrUnhealthy)
	require.ErrorIs(t, b.m.View().LastErr, errBoom)
}

func TestHealthyAnswerForgetsFailedChecks(t *testing.T) {
	b := running(t)
	for _, err := range []error{errBoom, errBoom, nil, errBoom, errBoom, nil} {
		b.wake()
		b.checked(1, err)
	}
	require.Equal(t, supervisor.Running, b.m.View().State)
}

// After a call without an answer a health check comes at once, not at the next interval.
func TestCallWithoutAnAnswerIsFollowedByAHealthCheck(t *testing.T) {
	b := running(t)
	require.Equal(t, []any{supervisor.CheckHealth{Gen: 1}}, b.step(supervisor.CallEnded{Gen: 1, Unanswered: true}))
	require.Empty(t, b.step(supervisor.CallEnded{Gen: 1, Unanswered: true}), "one check at a time")
	require.Empty(t, b.step(supervisor.CallEnded{Gen: 1}))
	require.Empty(t, b.step(supervisor.CallEnded{Gen: 1, Unanswered: true}))
	require.Empty(t, b.step(supervisor.CallEnded{Gen: 1, Unanswered: true}))
	effects := b.step(supervisor.CallEnded{Gen: 1, Unanswered: true})
	require.Contains(t, effects, supervisor.Kill{Gen: 1}, "three in a row: the strategy hangs")
}

// A process that may be debugged is never killed for what it does not answer: that is said once, and once more when it
// answers health checks and calls again. The next configuration may have it killed.
func TestAProcessThatMayBeDebuggedIsNotKilled(t *testing.T) {
	b := newBench(t)
	debugged := config()
	debugged.Debug = true
	b.m = supervisor.New(1, debugged)
	b.step(machine.Started{})
	b.step(supervisor.Launched{Gen: 1})
	var told []any
	for range 20 {
		b.wake()
		told = append(told, b.checked(1, errBoom)...)
	}
	require.Len(t, told, 1)
	held := told[0].(supervisor.Held)
	require.Equal(t, supervisor.Generation(1), held.Gen)
	require.ErrorIs(t, held.Err, supervisor.ErrUnhealthy)
	require.Equal(t, supervisor.Running, b.m.View().State)
	for range 20 {
		require.NotContains(t, b.step(supervisor.CallEnded{Gen: 1, Unanswered: true}), supervisor.Kill{Gen: 1})
	}
	b.wake()
	require.Empty(t, b.checked(1, nil), "calls are not answered yet")
	require.Equal(t, []any{supervisor.Held{Gen: 1}}, b.step(supervisor.CallEnded{Gen: 1}))
	require.Empty(t, b.step(supervisor.CallEnded{Gen: 1}))
	require.Zero(t, b.m.View().Failures)

	b.step(supervisor.Swap{Spec: 2, Config: config()})
	b.step(supervisor.Launched{Gen: 2})
	b.step(supervisor.Exited{Gen: 1})
	for range 3 {
		b.wake()
		told = b.checked(2, errBoom)
	}
	require.Contains(t, told, supervisor.Kill{Gen: 2})
}

// A health check without an answer has failed at its limit, even if the driver forgot it;
// a later answer is ignored.
func TestHealthCheckWithoutAnAnswerHasFailedAtItsLimit(t *testing.T) {
	b := running(t)
	_, effects := b.wake()
	require.Equal(t, []any{supervisor.CheckHealth{Gen: 1}}, effects)
	late := b.checks[1]
	for range 2 {
		d, effects := b.wake()
		require.Equal(t, 2*time.Second, d)
		require.Equal(t, []any{supervisor.CheckHealth{Gen: 1}}, effects, "the next is due already")
	}
	require.Empty(t, b.step(machine.Called{ID: late}))
	_, effects = b.wake()
	require.Contains(t, effects, supervisor.Kill{Gen: 1})
	require.ErrorContains(t, b.m.View().LastErr, "no answer within 2s")
}

// The view of a changed state is published before the events of the step that changed it,
// and not at all when nothing has changed.
func TestViewIsPublishedFirstAndWhenItHasChanged(t *testing.T) {
	b := running(t)
	b.step(supervisor.Exited{Gen: 1, Err: errBoom})
	require.Equal(t, []any{b.m.View(), supervisor.Exited{Gen: 1, Err: errBoom}}, b.told)
	b.step(supervisor.Exited{Gen: 1, Err: errBoom})
	require.Empty(t, b.told, "it is gone already")
	b.wake()
	b.step(supervisor.LaunchFailed{Gen: 2, Err: uncomparable{errBoom}})
	b.wake()
	b.step(supervisor.LaunchFailed{Gen: 3, Err: uncomparable{errBoom}})
	require.Equal(t, []any{b.m.View(), supervisor.LaunchFailed{Gen: 3, Err: uncomparable{errBoom}}}, b.told)
}

// uncomparable is an error of a type that cannot be compared: == on two of them panics.
type uncomparable []error

func (uncomparable) Error() string { return "many" }

func TestSwapSwitchesWhenTheNewOneIsReady(t *testing.T) {
	b := running(t)
	require.Equal(t, []any{supervisor.Launch{Gen: 2, Spec: 2}}, b.step(supervisor.Swap{Spec: 2, Config: config()}))
	require.Equal(t, supervisor.Generation(1), b.m.View().Active)
	require.Equal(t, []any{supervisor.Swapped{Err: supervisor.ErrBusy}}, b.step(supervisor.Swap{Spec: 3, Config: config()}))
	require.Equal(t, []any{supervisor.Activate{Gen: 2}, supervisor.Drain{Gen: 1}}, b.step(supervisor.Launched{Gen: 2}))
	require.Equal(t, []any{supervisor.Kill{Gen: 1, Graceful: true}}, b.step(supervisor.Drained{Gen: 1}))
	require.Equal(t, []any{supervisor.Swapped{}}, b.step(supervisor.Exited{Gen: 1}))
	require.Zero(t, b.m.View().Gaps)
	b.step(supervisor.Exited{Gen: 2, Err: errBoom})
	_, effects := b.wake()
	require.Equal(t, []any{supervisor.Launch{Gen: 3, Spec: 2}}, effects, "the new spec is the one to restart")
}

func TestSwapThatFailsLeavesTheOldOneAtWork(t *testing.T) {
	b := running(t)
	b.step(supervisor.Swap{Spec: 2, Config: config()})
	require.Equal(t, []any{supervisor.Swapped{Err: errBoom}}, b.step(supervisor.LaunchFailed{Gen: 2, Err: errBoom}))
	v := b.m.View()
	require.Equal(t, supervisor.Generation(1), v.Active)
	require.Equal(t, supervisor.Spec(1), v.Spec)
	require.NoError(t, v.LastErr, "a swap that fails is no fault of what runs")
}

func TestDrainIsBounded(t *testing.T) {
	b := running(t)
	b.step(supervisor.Swap{Spec: 2, Config: config()})
	began := b.now.Mono
	b.step(supervisor.Launched{Gen: 2})
	for {
		d, effects := b.wake()
		for _, e := range effects {
			if check, ok := e.(supervisor.CheckHealth); ok {
				b.checked(check.Gen, nil)
			}
			if e == (supervisor.Kill{Gen: 1, Graceful: true}) {
				require.Equal(t, 5*time.Second, b.now.Mono.Sub(began))
				return
			}
		}
		require.Positive(t, d)
		require.LessOrEqual(t, b.now.Mono.Sub(began), 5*time.Second)
	}
}

func TestOldOneThatDiesDuringTheSwapIsRestarted(t *testing.T) {
	b := running(t)
	b.step(supervisor.Swap{Spec: 2, Config: config()})
	b.step(supervisor.Exited{Gen: 1, Err: errBoom})
	_, effects := b.wake()
	require.Equal(t, []any{supervisor.Launch{Gen: 3, Spec: 1}}, effects)
	require.Equal(t, []any{supervisor.Activate{Gen: 2, Away: 100 * time.Millisecond}, supervisor.Kill{Gen: 3}, supervisor.Swapped{}}, b.step(supervisor.Launched{Gen: 2}))
	require.Empty(t, b.step(supervisor.Launched{Gen: 3}), "too late")
	require.Empty(t, b.step(supervisor.Exited{Gen: 3}))
	require.Equal(t, supervisor.Generation(2), b.m.View().Active)
}

func TestStopEndsEverythingOnce(t *testing.T) {
	b := running(t)
	b.step(supervisor.Swap{Spec: 2, Config: config()})
	require.Equal(t, []any{
		supervisor.Activate{},
		supervisor.Kill{Gen: 1, Graceful: true},
		supervisor.Kill{Gen: 2, Graceful: true},
		supervisor.Swapped{Err: supervisor.ErrStopped},
	}, b.step(supervisor.Stop{}))
	require.Empty(t, b.step(supervisor.Stop{}))
	require.Empty(t, b.step(supervisor.LaunchFailed{Gen: 2, Err: errBoom}))
	require.Equal(t, []any{supervisor.Ended{}}, b.step(supervisor.Exited{Gen: 1}))
	require.Equal(t, []any{supervisor.Swapped{Err: supervisor.ErrStopped}}, b.step(supervisor.Swap{Spec: 3, Config: config()}))
	require.Zero(t, b.m.View().Gaps)
}

func TestInputsOfStrangersAreIgnored(t *testing.T) {
	b := running(t)
	for _, in := range []machine.Input{
		supervisor.Launched{Gen: 7},
		supervisor.LaunchFailed{Gen: 7},
		supervisor.Exited{Gen: 7},
		supervisor.Drained{Gen: 1},
		machine.Called{ID: 7, Err: errBoom},
		machine.Called{Err: errBoom},
		supervisor.CallEnded{Gen: 7, Unanswered: true},
		supervisor.Launched{Gen: 1},
	} {
		require.Empty(t, b.step(in), "%T", in)
	}
	require.Equal(t, supervisor.Running, b.m.View().State)
}

func TestStatesHaveNames(t *testing.T) {
	for s := supervisor.Stopped; s <= supervisor.Broken; s++ {
		require.NotEqual(t, "invalid", s.String())
	}
	require.Equal(t, "invalid", supervisor.State(99).String())
}
