// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/harness"
	"github.com/quorate/quorate/sharding"
)

// Every entity has a watch that notes its answers ([watch.note]). It asks it at a fixed interval, or a few
// callers ask all entities in turn, without a pause ([watches.ask]). A [summary] adds the watches up.

const (
	// watchEvery is how often each entity is asked, and so the resolution of a gap.
	watchEvery = 100 * time.Millisecond

	// watchTimeout is how long one ask may take, longer than a fail-over.
	watchTimeout = 20 * time.Second
)

// watch asks one entity again and again and notes how it answers.
type watch struct {
	name     string // Of the entity.
	seq      uint64 // Of the last question; whoever asks owns it.
	mu       sync.Mutex
	host     string        // The node that answered last.
	answered time.Time     // When it answered.
	asked    time.Time     // When the question of the last answer was asked.
	longest  time.Duration // Longest time between two answers since the last reset.
	failed   int           // Questions that failed since the last reset.
	cause    error         // The first error since the last reset.
	took     []float32     // How long each answer took since the last reset, in milliseconds.
}

// watches are the watches of many entities.
type watches struct {
	region *sharding.Region[*harness.Message]
	each   []*watch
	asking sync.WaitGroup
	cancel context.CancelFunc
}

// watchOver starts the watches: each asks its entity at an interval, or so many callers ask all entities in turn
// without a pause, each of them its own. They must be stopped.
func watchOver(ctx context.Context, region *sharding.Region[*harness.Message], entities, callers int) *watches {
	ctx, cancel := context.WithCancel(ctx)
	w := &watches{region: region, cancel: cancel, each: make([]*watch, entities)}
	for i := range w.each {
		w.each[i] = &watch{name: entityName(i)}
	}
	// Those below are owned by the watches: they end with ctx, and stop waits for them.
	for caller := range callers {
		w.asking.Go(func() {
			for ctx.Err() == nil {
				for i := caller; i < entities; i += callers {
					w.ask(ctx, w.each[i])
				}
			}
		})
	}
	if callers > 0 {
		return w
	}
	for i, one := range w.each {
		// Spread over the interval, so that the load is even.
		after := watchEvery * time.Duration(i) / time.Duration(entities)
		w.asking.Go(func() {
			if harness.Pause(ctx, after) == nil {
				w.askOn(ctx, one)
			}
		})
	}
	return w
}

// stop ends the asking.
func (w *watches) stop() {
	w.cancel()
	w.asking.Wait()
}

// askOn asks one entity at the interval until ctx ends.
func (w *watches) askOn(ctx context.Context, one *watch) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		w.ask(ctx, one)
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// ask asks one entity once, and notes the outcome unless ctx has ended. One goroutine asks it at a time.
func (w *watches) ask(ctx context.Context, one *watch) {
	one.seq++
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, watchTimeout)
	defer cancel()
	answer, err := sharding.Ask[*harness.Message](limited, w.region, one.name, &harness.Message{Seq: one.seq, Ask: true})
	if err == nil && answer.Seq != one.seq {
		err = fmt.Errorf("the answer is to question %d, want %d", answer.Seq, one.seq)
	}
	if ctx.Err() == nil {
		one.note(began, answer, err)
	}
}

// note notes the outcome of a question.
func (one *watch) note(asked time.Time, answer *harness.Message, err error) {
	one.mu.Lock()
	defer one.mu.Unlock()
	if err != nil {
		if one.failed++; one.failed == 1 {
			one.cause = err
		}
		return
	}
	now := time.Now()
	if !one.answered.IsZero() {
		one.longest = max(one.longest, now.Sub(one.answered))
	}
	one.host, one.answered, one.asked = string(answer.Payload), now, asked
	one.took = append(one.took, float32(harness.Milliseconds(now.Sub(asked))))
}

// summary is the sum of all watches since the last reset.
type summary struct {
	hosts   []string // By entity; empty if the entity has not answered yet.
	longest time.Duration
	gaps    []time.Duration // By entity, the longest of each.
	failed  []int           // By entity.
	cause   error
	p99     float64   // In milliseconds; of a baseline alone.
	slowest float64   // The longest answer of a baseline, in milliseconds.
	oldest  time.Time // When the last answered question was asked, the earliest of all; zero while an entity has answered none.
}

// summary adds up the watches. With reset the next summary begins now.
func (w *watches) summary(reset bool) summary {
	var s summary
	for i, one := range w.each {
		one.mu.Lock()
		s.hosts, s.failed = append(s.hosts, one.host), append(s.failed, one.failed)
		gap := one.longest
		if !one.answered.IsZero() {
			gap = max(gap, time.Since(one.answered)) // The present gap counts too.
		}
		s.longest, s.gaps = max(s.longest, gap), append(s.gaps, gap)
		if one.cause != nil && s.cause == nil {
			s.cause = one.cause
		}
		if i == 0 || one.asked.Before(s.oldest) {
			s.oldest = one.asked
		}
		if reset {
			one.longest, one.failed, one.cause, one.took = 0, 0, nil, nil
		}
		one.mu.Unlock()
	}
	return s
}

// allSince waits until every entity has answered a question that was asked
// after a moment.
func (w *watches) allSince(ctx context.Context, moment time.Time, limit time.Duration) (time.Duration, error) {
	_, err := harness.Poll(ctx, 5*time.Millisecond, func(time.Duration) (bool, error) {
		s := w.summary(false)
		if !s.oldest.After(moment) && time.Since(moment) > limit {
			return false, fmt.Errorf("bench: after %v some entities have not answered: %w", limit, s.cause)
		}
		return s.oldest.After(moment), nil
	})
	return time.Since(moment), err
}

// failures adds up the failed questions to entities whose host in an earlier summary
// satisfies a condition.
func (s summary) failures(hosts []string, holds func(host string) bool) (n int) {
	for i, failed := range s.failed {
		if holds(hosts[i]) {
			n += failed
		}
	}
	return n
}

// movedFrom counts the entities that answer from another node than in an earlier summary.
func (s summary) movedFrom(hosts []string) (n int) {
	for i, host := range s.hosts {
		if host != hosts[i] {
			n++
		}
	}
	return n
}

// longestOf returns the longest gap of the entities whose host in an earlier summary
// satisfies a condition.
func (s summary) longestOf(hosts []string, holds func(host string) bool) (longest time.Duration) {
	for i, gap := range s.gaps {
		if holds(hosts[i]) {
			longest = max(longest, gap)
		}
	}
	return longest
}

// percentile returns the time in milliseconds below which the part p of the answers came
// since the last reset.
func (w *watches) percentile(p float64) float64 {
	var all []time.Duration
	for _, one := range w.each {
		one.mu.Lock()
		for _, ms := range one.took {
			all = append(all, time.Duration(float64(ms)*float64(time.Millisecond)))
		}
		one.mu.Unlock()
	}
	return harness.Milliseconds(figure.Percentile(all, p))
}
