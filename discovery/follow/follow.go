// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package follow

// What happens here: Latest finds the follower of its key, or starts one, and waits
// until the follower is current or has failed. The goroutine of a follower runs the source
// again and again, with a pause after each failure. The timer of a follower ends it when no
// question has come for a while.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/quorate/quorate/discovery"
)

var (
	// ErrEnded is wrapped by the error of [Set.Latest] when the source returned nil.
	ErrEnded = errors.New("the source ended without an error")
	// ErrAgain is wrapped by the error of a source that wants to begin anew at once, since
	// the value that it told may be out of date: there is no answer until the next
	// conversation tells one. A conversation that was shorter than [Limits.PauseMin] has
	// failed all the same, or a registry that always refuses would be asked without a pause.
	ErrAgain = errors.New("what was told is out of date")
	// ErrCrowded is wrapped by the error of [Set.Latest] when its key was given up, because
	// too many other keys were asked for meanwhile.
	ErrCrowded = errors.New("too many other keys were asked for at the same time")
)

// Source is one conversation with a registry about a key. It calls tell whenever the
// answer has changed, also when the answer is empty, and returns when it cannot go on,
// with an error that says why, or soon after ctx has ended. It is called by one
// goroutine for each key, for several keys at a time; tell does not block.
//
// Every call of [Set.Latest] for the key returns the value that was told. Neither the source
// nor a caller changes that value, unless its type is safe for concurrent use.
type Source[K comparable, V any] func(ctx context.Context, key K, tell func(V)) error

// Limits bound a [Set]. All of them must be above zero.
type Limits struct {
	// Keys is how many keys are followed at a time. For one more, the key that was asked
	// for longest ago is given up.
	Keys int
	// Idle is how long a key is followed after the last question for it. If the time is too
	// short, each question begins a new conversation.
	Idle time.Duration
	// PauseMin is the pause after the first failure. Each further one doubles it, and
	// up to a fifth is added at random, so that nodes do not come back all at once.
	PauseMin time.Duration
	// PauseMax is the longest pause, without what is added at random.
	PauseMax time.Duration
}

// DefaultLimits returns 8 keys, an idle time of a minute, and pauses from 1 to 15
// seconds.
func DefaultLimits() Limits {
	return Limits{Keys: 8, Idle: time.Minute, PauseMin: time.Second, PauseMax: 15 * time.Second}
}

// Set follows keys: it holds one conversation for each key that is asked for. Use [New]; Close
// it in the end.
type Set[K comparable, V any] struct {
	limits  Limits
	source  Source[K, V]
	running sync.WaitGroup // the goroutines of all followers

	mu        sync.Mutex // guards what follows, and the fields of each follower
	followers map[K]*follower[V]
	closed    bool
}

type phase int

const (
	trying  phase = iota // a conversation has begun and told nothing yet
	current              // value is what the conversation told last
	paused               // the conversation failed with err; the next begins at again
	ended                // given up, for the reason in err
)

// follower is the state of one key. The mutex of the set guards it.
type follower[V any] struct {
	phase   phase
	value   V
	err     error
	again   time.Time
	changed chan struct{} // closed and replaced at each change of the phase
	waiting int           // how many calls of Latest wait for a change
	asked   time.Time     // when the last question came
	idle    *time.Timer   // runs lookIdle
	cancel  context.CancelFunc
}

// New returns a set over a source. It starts nothing. Limits that are not above zero
// are a fault of the program, and it panics.
func New[K comparable, V any](limits Limits, source Source[K, V]) *Set[K, V] {
	if limits.Keys <= 0 || limits.Idle <= 0 || limits.PauseMin <= 0 || limits.PauseMax < limits.PauseMin {
		panic(fmt.Sprintf("follow: limits out of range: %+v", limits))
	}
	return &Set[K, V]{limits: limits, source: source, followers: make(map[K]*follower[V])}
}

// Latest returns the value that was told last for a key. If the key is not followed yet, or
// a new conversation has just begun, Latest waits for the first value, until ctx ends; in
// a pause it returns at once the error with which the last conversation ended.
func (s *Set[K, V]) Latest(ctx context.Context, key K) (V, error) {
	var none V
	if err := ctx.Err(); err != nil {
		return none, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return none, discovery.ErrClosed
	}
	f := s.followers[key]
	if f == nil {
		f = s.start(key)
	}
	f.asked = time.Now()
	for f.phase == trying {
		if err := s.wait(ctx, f); err != nil {
			return none, fmt.Errorf("no answer yet: %w", err)
		}
	}
	switch f.phase {
	case paused:
		left := max(time.Until(f.again), 0).Round(100 * time.Millisecond)
		return none, fmt.Errorf("%w (asked again in %v)", f.err, left)
	case ended:
		return none, f.err
	default:
		return f.value, nil
	}
}

// wait waits without the lock until the phase changes or ctx ends. The caller holds
// the lock, before and after.
func (s *Set[K, V]) wait(ctx context.Context, f *follower[V]) error {
	changed := f.changed
	f.waiting++
	s.mu.Unlock()
	var err error
	select {
	case <-changed:
	case <-ctx.Done():
		err = ctx.Err()
	}
	s.mu.Lock()
	f.waiting--
	f.asked = time.Now()
	return err
}

// start begins to follow a key. The caller holds the lock.
func (s *Set[K, V]) start(key K) *follower[V] {
	if len(s.followers) >= s.limits.Keys {
		s.crowdOut()
	}
	ctx, cancel := context.WithCancel(context.Background())
	f := &follower[V]{changed: make(chan struct{}), asked: time.Now(), cancel: cancel}
	f.idle = time.AfterFunc(s.limits.Idle, func() { s.lookIdle(key, f) })
	s.followers[key] = f
	// The set owns this goroutine: its end is the cancel of the follower, in end, and
	// Close waits for it.
	s.running.Go(func() { s.run(ctx, key, f) })
	return f
}

// crowdOut gives up the key that was asked for longest ago. The caller holds the lock.
func (s *Set[K, V]) crowdOut() {
	var oldest K
	var found *follower[V]
	for key, f := range s.followers {
		if found == nil || f.asked.Before(found.asked) {
			oldest, found = key, f
		}
	}
	s.end(oldest, found, ErrCrowded)
}

// lookIdle gives a key up if no question for it has come in the idle time, and else looks
// again later.
func (s *Set[K, V]) lookIdle(key K, f *follower[V]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.phase == ended {
		return
	}
	if left := s.limits.Idle - time.Since(f.asked); left > 0 || f.waiting > 0 {
		f.idle.Reset(max(left, s.limits.PauseMin))
		return
	}
	s.end(key, f, ErrEnded)
}

// end gives a key up. The caller holds the lock.
func (s *Set[K, V]) end(key K, f *follower[V], err error) {
	f.err = err
	f.enter(ended)
	f.idle.Stop()
	f.cancel()
	delete(s.followers, key)
}

func (f *follower[V]) enter(p phase) {
	f.phase = p
	close(f.changed)
	f.changed = make(chan struct{})
}

// run holds one conversation after the other until ctx ends. After a conversation that
// lasted longer than the longest pause, the pauses are short again.
func (s *Set[K, V]) run(ctx context.Context, key K, f *follower[V]) {
	var pause time.Duration
	for {
		began := time.Now()
		err := s.source(ctx, key, func(value V) { s.tell(f, value) })
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, ErrAgain) && time.Since(began) >= s.limits.PauseMin {
			s.retry(f)
			continue
		}
		if err == nil {
			err = ErrEnded
		}
		if pause == 0 || time.Since(began) > s.limits.PauseMax {
			pause = s.limits.PauseMin
		} else {
			pause = min(2*pause, s.limits.PauseMax)
		}
		jittered := pause + rand.N(pause/5+1)
		s.fail(f, err, time.Now().Add(jittered))
		timer := time.NewTimer(jittered)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		s.retry(f)
	}
}

func (s *Set[K, V]) tell(f *follower[V], value V) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.phase == ended {
		return
	}
	f.value = value
	f.enter(current)
}

func (s *Set[K, V]) fail(f *follower[V], err error, again time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.phase == ended {
		return
	}
	var none V
	f.value, f.err, f.again = none, err, again
	f.enter(paused)
}

func (s *Set[K, V]) retry(f *follower[V]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.phase != ended {
		f.enter(trying)
	}
}

// Close ends all conversations and waits for their goroutines. A call that waits in Latest
// returns an error that wraps [discovery.ErrClosed]. Close may be called more than once, and
// returns nil.
func (s *Set[K, V]) Close() error {
	s.mu.Lock()
	s.closed = true
	for key, f := range s.followers {
		s.end(key, f, discovery.ErrClosed)
	}
	s.mu.Unlock()
	s.running.Wait()
	return nil
}
