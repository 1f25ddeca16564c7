// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/machine"
)

// The outcome of a call: whether and when it is answered. In order: a worker that is
// occupied, a process that is away, then chances drawn from the seed (drawn), and at
// last the latency, which may exceed the limit. Only an outcome that needs an answer calls
// the answering function (ask).

// Calls are the chances of what can happen to calls of strategies. The chances add up
// to at most one; the rest is the chance that a call is answered by the function given
// to [Strategies.Answer].
type Calls struct {
	// Min and Max bound how long a call takes, drawn evenly between them. Both zero: 1
	// to 20 milliseconds. A call that takes longer than its limit is not answered
	// before it.
	Min, Max time.Duration

	// Hang is the chance that a call returns only when its context ends, unanswered
	// until its limit.
	Hang float64

	// Fail is the chance that a call is answered with an error.
	Fail float64

	// Garbage is the chance that a call is answered by the function given to
	// [Strategies.Garble].
	Garbage float64

	// Crash is the chance that the process of the strategy crashes during the call.
	// The call then fails at once with [ErrUnavailable], and so does each later call
	// until the process has been started again. The restart takes a time drawn evenly
	// up to Restart, which doubles with each crash in a row, up to RestartMax. Zero:
	// one second, and 15 seconds.
	Crash               float64
	Restart, RestartMax time.Duration

	// Late is the chance that an answer comes after its limit, with no answer at the
	// limit. It is late by up to LateMax, drawn evenly. Zero: 10 seconds.
	Late    float64
	LateMax time.Duration

	// Stuck is the chance that a call ignores the end of its context. It is not
	// answered before its limit, and later calls are answered busy for up to StuckMax
	// after the limit. Zero: 20 seconds.
	Stuck    float64
	StuckMax time.Duration
}

// The names of outcomes, in traces and recordings.
const (
	outcomeAnswered = "answered"
	outcomeBusy     = "busy" // An earlier call has not returned.
	outcomeAway     = "away" // The process is being started again.
	outcomeNobody   = "nobody answers"
	outcomeHang     = "hang"
	outcomeFail     = "fail"
	outcomeGarbage  = "garbage"
	outcomeCrash    = "crash"
	outcomeLate     = "late"
	outcomeStuck    = "stuck"
	outcomeSlow     = "slow" // The latency that was drawn exceeds the limit.
)

// Default times of outcomes.
const (
	latencyLeast   = time.Millisecond
	maxLatency     = 20 * time.Millisecond
	restartDefault = time.Second
	maxRestart     = 15 * time.Second
	lateDefault    = 10 * time.Second
	stuckDefault   = 20 * time.Second

	// refusalLatency is how long the answer takes that a process is not running.
	refusalLatency = 500 * time.Microsecond
)

func (c *Calls) latency(r *rand.Rand) time.Duration {
	least, most := c.Min, c.Max
	if most == 0 {
		least, most = latencyLeast, maxLatency
	}
	return least + time.Duration(r.Int64N(max(int64(most-least), 1)))
}

// outcome is what happens to one call: the answer, and when it is fed to the component.
type outcome struct {
	name   string
	at     int64 // World time at which the answer is fed; a busy answer is fed at once.
	result any
	err    error
}

func (f *outcome) called(id machine.CallID) machine.Called {
	return machine.Called{ID: id, Result: f.result, Err: f.err}
}

// draw draws the outcome of a call.
func (s *Strategies) draw(n *Node, key callKey, c machine.Call) outcome {
	p := n.processes[key]
	if p == nil {
		p = &strategyProcess{}
		n.processes[key] = p
	}
	switch {
	case p.waiting != 0 || s.world.now < p.busy:
		return outcome{name: outcomeBusy, at: s.world.now, err: machine.ErrBusy}
	case s.world.now < p.away:
		return outcome{name: outcomeAway, at: s.world.now + int64(refusalLatency), err: ErrUnavailable}
	}
	p.waiting = c.ID
	calls := s.chances(n, c.Port)
	latency := calls.latency(s.source)
	f := s.drawn(n, c, &calls, p, latency)
	switch {
	case f.name == outcomeCrash:
		return f
	case f.name == outcomeLate:
		p.waiting, p.busy = 0, s.world.now+int64(c.Limit)
		return f
	case f.name == outcomeStuck:
		p.busy = s.world.now + int64(c.Limit) + drawTime(s.source, calls.StuckMax, stuckDefault)
	case f.name != outcomeHang:
		if latency < c.Limit {
			f.at = s.world.now + int64(latency)
			return f
		}
		f.name = outcomeSlow
	}
	return outcome{name: f.name, at: s.world.now + int64(c.Limit), err: context.DeadlineExceeded}
}

// chances returns what can happen to a call, of a strategy or of a disk.
func (s *Strategies) chances(n *Node, port string) Calls {
	if s.world.disks.keeps(port) {
		d := s.world.disks.At(n.place.address)
		return Calls{Min: d.Min, Max: d.Max, Hang: d.Hang, Fail: d.Fail}
	}
	if calls, ok := s.at[n.place.address]; ok {
		return calls
	}
	return s.usual
}

// drawn draws the outcome of a call that reaches its strategy. It sets the times of a
// crash and of a late answer; draw sets the others.
func (s *Strategies) drawn(n *Node, c machine.Call, calls *Calls, p *strategyProcess, latency time.Duration) outcome {
	r := s.source
	chance := r.Float64()
	within := func(p float64) bool {
		chance -= p
		return chance < 0
	}
	garble := s.garblers[c.Port]
	switch {
	case s.answers[c.Port] == nil:
		return outcome{name: outcomeNobody, err: fmt.Errorf("simulation: nobody answers calls to port %q", c.Port)}
	case within(calls.Hang):
		return outcome{name: outcomeHang}
	case within(calls.Fail):
		return outcome{name: outcomeFail, err: ErrCallFailed}
	case within(calls.Garbage) && garble != nil:
		return outcome{name: outcomeGarbage, result: garble(r, c.Request)}
	case within(calls.Crash):
		return s.crash(calls, p, min(latency, c.Limit/2))
	case within(calls.Late):
		f := s.ask(n, c)
		f.name, f.at = outcomeLate, s.world.now+int64(c.Limit+latency)+drawTime(r, calls.LateMax, lateDefault)
		return f
	case within(calls.Stuck):
		return outcome{name: outcomeStuck}
	}
	p.crashes = 0
	return s.ask(n, c)
}

// crash ends the process of a strategy in the middle of a call.
func (s *Strategies) crash(calls *Calls, p *strategyProcess, latency time.Duration) outcome {
	first, most := calls.Restart, calls.RestartMax
	if first == 0 {
		first = restartDefault
	}
	if most == 0 {
		most = maxRestart
	}
	for range p.crashes {
		first = min(2*first, most)
	}
	p.crashes++
	at := s.world.now + int64(latency)
	p.away = at + drawTime(s.source, first, restartDefault)
	return outcome{name: outcomeCrash, at: at, err: ErrUnavailable}
}

// ask answers a call by the function of its port. A panic counts as an answer.
func (s *Strategies) ask(n *Node, c machine.Call) (f outcome) {
	f.name = outcomeAnswered
	s.world.stats.Asked++
	defer func() {
		if v := recover(); v != nil {
			f.result, f.err = nil, &machine.PanicError{Port: c.Port, Value: v}
		}
	}()
	f.result, f.err = s.answers[c.Port](n, c.Request)
	if f.err != nil {
		f.result = nil
	}
	return f
}

// drawTime draws a time evenly from one nanosecond to most, or to usual when most is
// zero.
func drawTime(r *rand.Rand, most, usual time.Duration) int64 {
	if most == 0 {
		most = usual
	}
	return 1 + r.Int64N(max(int64(most), 1))
}
