// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

// Takers over one store, in virtual time from a seed: clocks at rates that differ, processes
// that freeze, requests and answers that are late or lost, a store that is down for a while.
// First the store and the takers, then what happens to them, in the end what is looked at
// after every event: how many takers say that they hold the lease.

import (
	"container/heap"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/downing/lease/internal/protocol"
)

const ttl = 10 * time.Second

func config(owner string) protocol.Config {
	return protocol.Config{Owner: owner, TTL: ttl, Renew: 2 * time.Second, Retry: 500 * time.Millisecond, Limit: 1500 * time.Millisecond}
}

// store ends leases by a clock of its own.
type store struct {
	rate  float64
	owner string
	token uint64
	end   time.Duration // by its own clock
	down  bool
}

func (s *store) take(owner string, now time.Duration) protocol.Result {
	at := scaled(now, s.rate)
	free := s.owner == "" || at >= s.end
	switch {
	case s.down:
		return protocol.Result{Fault: errors.New("down")}
	case !free && s.owner != owner:
		return protocol.Result{Owner: s.owner}
	case free:
		s.token++
	}
	s.owner, s.end = owner, at+ttl
	return protocol.Result{Granted: true, Owner: owner, Token: s.token, TTL: ttl}
}

func (s *store) give(owner string) protocol.Result {
	if s.down {
		return protocol.Result{Fault: errors.New("down")}
	}
	if s.owner == owner {
		s.owner = ""
	}
	return protocol.Result{}
}

func scaled(t time.Duration, rate float64) time.Duration { return time.Duration(float64(t) * rate) }

// taker is one process.
type taker struct {
	core   *protocol.Core
	rate   float64
	frozen time.Duration // until then, in real time
	call   int           // the number of the call that is under way
	tick   int           // the number of the tick that counts
	token  uint64        // the highest token held
}

func (p *taker) read(now time.Duration) time.Duration { return scaled(now, p.rate) }

type event struct {
	at time.Duration
	n  int
	do func()
}

type queue []event

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].at < q[j].at || q[i].at == q[j].at && q[i].n < q[j].n }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(event)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

type world struct {
	rng    *rand.Rand
	now    time.Duration
	n      int
	queue  queue
	store  *store
	takers []*taker

	grants, losses int
	fault          string
}

func newWorld(seed uint64, edit func(*protocol.Config)) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 1))}
	rate := func() float64 { return 0.99 + w.rng.Float64()/50 } // Within 1 % of real time.
	w.store = &store{rate: rate()}
	for i := range 3 {
		c := config(fmt.Sprintf("taker-%d", i))
		if edit != nil {
			edit(&c)
		}
		w.takers = append(w.takers, &taker{core: protocol.New(c), rate: rate()})
	}
	return w
}

func (w *world) after(d time.Duration, do func()) {
	w.n++
	heap.Push(&w.queue, event{at: w.now + d, n: w.n, do: do})
}

func (w *world) upTo(d time.Duration) time.Duration { return time.Duration(w.rng.Int64N(int64(d))) }

// run lets an hour pass and stops at the first fault.
func (w *world) run() {
	for _, p := range w.takers {
		w.wish(p)
		w.freeze(p)
	}
	w.outage()
	for w.now < time.Hour && w.fault == "" {
		e := heap.Pop(&w.queue).(event)
		w.now = e.at
		e.do()
		w.look()
	}
}

// step feeds a taker, or does it when the taker has thawed.
func (w *world) step(p *taker, in protocol.Input) {
	if p.frozen > w.now {
		w.after(p.frozen-w.now, func() { w.step(p, in) })
		return
	}
	had := p.core.Phase() == protocol.Held
	ask := p.core.Step(in, p.read(w.now))
	if token, has := p.core.Token(p.read(w.now)); has {
		if !had {
			w.grants++
			if token < p.token {
				w.fault = fmt.Sprintf("the token shrank from %d to %d", p.token, token)
			}
		}
		p.token = token
	} else if had && in.Kind != protocol.Drop {
		w.losses++
	}
	if ask.Question != protocol.None {
		w.carry(p, ask)
	}
	p.tick++
	mine := p.tick
	if at, due := p.core.Wake(); due {
		w.after(max(time.Duration(float64(at)/p.rate)-w.now, 0)+1, func() {
			if p.tick == mine {
				w.step(p, protocol.Input{})
			}
		})
	}
}

// carry takes a call to the store and its answer back. Either may be late by more than the
// life of a lease, or be lost, in which case the taker hears of the limit alone.
func (w *world) carry(p *taker, ask protocol.Ask) {
	p.call++
	mine := p.call
	answer := func(r protocol.Result) {
		if p.call == mine {
			p.call++
			w.step(p, protocol.Input{Kind: protocol.Answered, Result: r})
		}
	}
	w.after(1500*time.Millisecond+w.upTo(300*time.Millisecond), func() { answer(protocol.Result{Fault: errors.New("no answer")}) })
	delay := func() time.Duration {
		switch w.rng.IntN(10) {
		case 0:
			return w.upTo(15 * time.Second)
		case 1, 2, 3: // Nearly as slow as the limit allows.
			return w.upTo(1500 * time.Millisecond)
		default:
			return w.upTo(100 * time.Millisecond)
		}
	}
	if w.rng.IntN(12) == 0 {
		return
	}
	w.after(delay(), func() {
		var r protocol.Result
		if ask.Question == protocol.Give {
			r = w.store.give(ask.Owner)
		} else {
			r = w.store.take(ask.Owner, w.now)
		}
		if w.rng.IntN(12) != 0 {
			w.after(delay(), func() { answer(r) })
		}
	})
}

func (w *world) wish(p *taker) {
	w.after(w.upTo(8*time.Second), func() {
		kind := protocol.Want
		if w.rng.IntN(4) == 0 {
			kind = protocol.Drop
		}
		w.step(p, protocol.Input{Kind: kind})
		w.wish(p)
	})
}

func (w *world) freeze(p *taker) {
	w.after(w.upTo(time.Minute), func() {
		p.frozen = w.now + w.upTo(2*ttl)
		w.freeze(p)
	})
}

func (w *world) outage() {
	w.after(w.upTo(time.Minute), func() {
		w.store.down = true
		w.after(w.upTo(20*time.Second), func() { w.store.down = false })
		w.outage()
	})
}

// look asks every taker whether it holds the lease, the frozen ones too: they would say so
// with the first step after they thaw, and it would be too late then to find two.
func (w *world) look() {
	var holders []int
	for i, p := range w.takers {
		if _, ok := p.core.Token(p.read(w.now)); ok {
			holders = append(holders, i)
		}
	}
	if len(holders) > 1 {
		w.fault = fmt.Sprintf("at %v the takers %v hold the lease", w.now, holders)
	}
}

func TestAtMostOneTakerHoldsTheLease(t *testing.T) {
	grants, losses := 0, 0
	for seed := range uint64(60) {
		w := newWorld(seed, nil)
		w.run()
		require.Empty(t, w.fault, "seed %d", seed)
		grants, losses = grants+w.grants, losses+w.losses
	}
	require.Greater(t, grants, 60*100, "the lease goes from hand to hand")
	require.Greater(t, losses, 60*10, "and is lost")
}

// A holder that relied on more than its store gives is found: the world has what it takes.
func TestTheWorldFindsAHolderThatTrustsTooLong(t *testing.T) {
	for seed := range uint64(60) {
		w := newWorld(seed, nil)
		w.store.rate *= 1.2
		w.run()
		if w.fault != "" {
			return
		}
	}
	t.Fatal("a store whose clock is fast by a fifth was never the end of the rule")
}
