// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"bytes"
	goruntime "runtime"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/sharding/internal/runtime"
)

// Entities that sleep, beside others that do not: how long messages to the others wait, in
// virtual time.

// The entities and the traffic: every fairTick each processor gets fairQuick messages to
// entities that take fairTakes each, which is 30 % of its time, and two sleepers get one.
const (
	fairQuickOnes = 9000
	fairSleepers  = 1000
	fairSleeps    = time.Millisecond
	fairTakes     = 10 * time.Microsecond
	fairTick      = 100 * time.Microsecond
	fairQuick     = 3
)

// sleepy is an entity that sleeps at each message for a time of its own. A message says when it
// was sent, and the entity notes how long it has waited.
type sleepy struct {
	sleeps time.Duration
	waited chan<- time.Duration
}

func (s sleepy) Receive(_ *Context, m *wrapperspb.Int64Value) error {
	s.waited <- time.Duration(time.Now().UnixNano() - m.GetValue())
	<-time.After(s.sleeps)
	return nil
}

// fairWorld is a node with entities of both sorts, and what has been sent to them so far.
type fairWorld struct {
	t              *testing.T
	region         *Region[*wrapperspb.Int64Value]
	quick, asleep  int
	waited, sleeps chan time.Duration
}

func newFairWorld(t *testing.T, s *System) *fairWorld {
	t.Helper()
	w := &fairWorld{t: t, waited: make(chan time.Duration, 1<<20), sleeps: make(chan time.Duration, 1<<20)}
	region, err := Start(s, Kind[*wrapperspb.Int64Value]{
		Name: "sleepy", Shards: 64,
		New: func(c *Context) Entity[*wrapperspb.Int64Value] {
			if c.ID()[0] == 's' {
				return sleepy{fairSleeps, w.sleeps}
			}
			return sleepy{fairTakes, w.waited}
		},
	})
	require.NoError(t, err)
	w.region = region
	return w
}

func (w *fairWorld) tell(id string) {
	require.NoError(w.t, w.region.Tell(w.t.Context(), id, wrapperspb.Int64(time.Now().UnixNano())))
}

// runs has the traffic go on for a time, with or without that to the sleepers, and returns how
// long the messages to the others and to the sleepers waited, each in order.
func (w *fairWorld) runs(d time.Duration, sleepers bool) (others, asleep []time.Duration) {
	for range d / fairTick {
		for range fairQuick * goruntime.GOMAXPROCS(0) {
			w.tell("q" + strconv.Itoa(w.quick%fairQuickOnes))
			w.quick++
		}
		for range 2 {
			if sleepers {
				w.tell("s" + strconv.Itoa(w.asleep%fairSleepers))
				w.asleep++
			}
		}
		<-time.After(fairTick) //quorate:realtime It is virtual.
	}
	<-time.After(time.Second) //quorate:realtime It is virtual.
	synctest.Wait()
	return drain(w.waited), drain(w.sleeps)
}

// drain takes what stands in a channel, and sorts it.
func drain(c chan time.Duration) (all []time.Duration) {
	for len(c) > 0 {
		all = append(all, <-c)
	}
	slices.Sort(all)
	return all
}

// p99 returns the 99th percentile of sorted times.
func p99(sorted []time.Duration) time.Duration { return sorted[len(sorted)*99/100] }

// Of 10,000 entities 1,000 sleep a millisecond at each message, 20 of them at any moment. The
// others' messages wait, in the 99th percentile, at most twice as long as without them, although
// the queue has given up the workers that it added when it did not know the sleepers yet.
// Messages to sleepers do not wait for long either.
func TestSleepersKeepNobodyWaiting(t *testing.T) {
	lone(t, func(t *testing.T, s *System, _ *Region[*wrapperspb.Int64Value], _ *bytes.Buffer) {
		w := newFairWorld(t, s)
		for i := range fairQuickOnes {
			w.tell("q" + strconv.Itoa(i))
		}
		<-time.After(30 * time.Second) // The shards have homes.
		w.runs(100*time.Millisecond, true)
		<-time.After(30 * runtime.QueueTrim)
		require.Equal(t, goruntime.GOMAXPROCS(0), s.executor.pool.Limit(runtime.ClassQuick))
		without, _ := w.runs(200*time.Millisecond, false)
		with, asleep := w.runs(200*time.Millisecond, true)
		require.True(t, len(without) == len(with), "%d and %d messages", len(without), len(with)) //nolint:testifylint // The lists are long.
		t.Logf("p99 %v without sleepers, %v beside them; longest %v and %v; that of sleepers %v and %v",
			p99(without), p99(with), without[len(without)-1], with[len(with)-1], p99(asleep), asleep[len(asleep)-1])
		require.Positive(t, p99(without))
		require.LessOrEqual(t, p99(with), 2*p99(without))
		require.Less(t, p99(asleep), 10*fairSleeps)
	})
}
