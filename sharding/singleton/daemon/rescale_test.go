// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package daemon_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/singleton/daemon"
)

// Instances whose number changes: every run notes its revision, and no two may run at one time
// under different ones.

// crew are the instances of a cluster whose number changes.
type crew struct {
	t *testing.T

	mu    sync.Mutex
	at    map[int]daemon.Instance // The runs under way, by number.
	wrong []string                // What was found that must not be.
	holds func(i daemon.Instance) // What a run does when its context has ended; nil: nothing.

	onStuck sharding.OnStuck // Of the instances.
}

// work is the work of each instance.
func (c *crew) work(ctx context.Context, i daemon.Instance) error {
	c.mu.Lock()
	for _, other := range c.at {
		if other.Revision != i.Revision || other.Count != i.Count {
			c.wrong = append(c.wrong, fmt.Sprintf("%+v runs beside %+v", i, other))
		}
	}
	if i.Number >= i.Count {
		c.wrong = append(c.wrong, fmt.Sprintf("%+v runs", i))
	}
	c.at[i.Number] = i
	c.mu.Unlock()
	<-ctx.Done()
	if c.onStuck == sharding.OnStuckAbandon { // What goes on now is given up.
		c.over(i)
	} else {
		defer c.over(i)
	}
	if c.holds != nil {
		c.holds(i)
	}
	return context.Cause(ctx)
}

// over notes the end of a run.
func (c *crew) over(i daemon.Instance) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.at, i.Number)
}

// requireRuns requires that as many instances run, each once, under a revision.
func (c *crew) requireRuns(revision uint64, count int) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	require.Len(c.t, slices.Collect(maps.Keys(c.at)), count)
	for _, i := range c.at {
		require.Equal(c.t, revision, i.Revision)
		require.Equal(c.t, count, i.Count)
	}
}

// join starts a node with instances whose number may change.
func (c *crew) join(w *world, instances int) {
	system := w.node()
	require.NoError(c.t, daemon.Start(system, daemon.Config{
		Name: "crew", Instances: instances, Max: 20, Work: c.work, HandOverTimeout: 5 * time.Second, OnStuck: c.onStuck, Log: slog.New(slog.DiscardHandler),
	}))
}

func inCrew(t *testing.T, f func(t *testing.T, w *world, c *crew)) {
	t.Helper()
	inCrewThat(t, "", f)
}

func inCrewThat(t *testing.T, onStuck sharding.OnStuck, f func(t *testing.T, w *world, c *crew)) {
	t.Helper()
	inBubble(t, func(t *testing.T, w *world) {
		c := &crew{t: t, at: map[int]daemon.Instance{}, onStuck: onStuck}
		for range 3 {
			c.join(w, 4)
		}
		w.pass(20 * time.Second)
		c.requireRuns(1, 4)
		f(t, w, c)
		c.mu.Lock()
		defer c.mu.Unlock()
		require.Empty(t, c.wrong)
	})
}

// The number is changed on any node, and what comes and goes later keeps it.
// covers I3.
func TestTheNumberOfInstancesIsChanged(t *testing.T) {
	inCrew(t, func(t *testing.T, w *world, c *crew) {
		now, err := daemon.Rescale(t.Context(), w.systems[2], "crew", 9)
		require.NoError(t, err)
		require.Equal(t, sharding.Scale{Revision: 2, Count: 9}, now)
		w.pass(2 * time.Second)
		c.requireRuns(2, 9)
		now, err = daemon.Rescale(t.Context(), w.systems[0], "crew", 9)
		require.NoError(t, err)
		require.Equal(t, sharding.Scale{Revision: 2, Count: 9}, now, "nothing changes")

		_, err = daemon.Rescale(t.Context(), w.systems[1], "crew", 2)
		require.NoError(t, err)
		c.join(w, 4)
		w.pass(20 * time.Second)
		c.requireRuns(3, 2)
		w.close(0) // The node of the coordinator.
		w.pass(20 * time.Second)
		c.requireRuns(3, 2)
		state, err := daemon.State(t.Context(), w.systems[3], "crew")
		require.NoError(t, err)
		require.Equal(t, sharding.ScaleState{Scale: sharding.Scale{Revision: 3, Count: 2}, Complete: true}, state)
	})
}

// A change for which an instance does not stop is called off, with an error that says so, and another one at
// the same time is refused.
func TestAChangeThatIsHeldUp(t *testing.T) {
	inCrew(t, func(t *testing.T, w *world, c *crew) {
		release := make(chan struct{})
		c.holds = func(i daemon.Instance) {
			if i.Number == 2 {
				<-release
			}
		}
		changed := make(chan error, 1)
		go func() {
			_, err := daemon.Rescale(t.Context(), w.systems[1], "crew", 6)
			changed <- err
		}()
		w.pass(2 * time.Second)
		state, err := daemon.State(t.Context(), w.systems[0], "crew")
		require.NoError(t, err)
		require.Equal(t, sharding.ScaleState{Scale: sharding.Scale{Revision: 1, Count: 4}, Next: 6}, state)
		_, err = daemon.Rescale(t.Context(), w.systems[2], "crew", 7)
		require.ErrorIs(t, err, sharding.ErrScaleBusy)
		w.pass(10 * time.Second)
		require.NotEmpty(t, changed, "the time to stop is five seconds")
		err = <-changed
		require.ErrorIs(t, err, sharding.ErrScaleStuck)
		require.ErrorContains(t, err, `kind "crew": 6 shards cannot be put into use`)
		close(release)
		w.pass(15 * time.Second)
		c.requireRuns(1, 4)
	})
}

// A change goes on without an instance that does not stop, if such instances are given up. The context of that one
// has ended before an instance of the new revision begins.
func TestAChangeThatGivesUpWhatIsStuck(t *testing.T) {
	inCrewThat(t, sharding.OnStuckAbandon, func(t *testing.T, w *world, c *crew) {
		release := make(chan struct{})
		c.holds = func(i daemon.Instance) {
			if i.Number == 2 && i.Revision == 1 {
				<-release
			}
		}
		changed := make(chan error, 1)
		go func() {
			_, err := daemon.Rescale(t.Context(), w.systems[1], "crew", 6)
			changed <- err
		}()
		w.pass(4 * time.Second)
		require.Empty(t, changed, "the limit has not passed")
		w.pass(10 * time.Second)
		require.NoError(t, <-changed)
		c.requireRuns(2, 6)
		close(release)
		w.pass(15 * time.Second)
		c.requireRuns(2, 6)
	})
}

// A coordinator that dies in the middle of a change does not take it along: its successor is asked again.
func TestAChangeOutlivesItsCoordinator(t *testing.T) {
	inCrew(t, func(t *testing.T, w *world, c *crew) {
		//quorate:realtime It is virtual.
		c.holds = func(daemon.Instance) { <-time.After(time.Second) }
		changed := make(chan error, 1)
		ctx := patience.Context(t)
		go func() {
			_, err := daemon.Rescale(ctx, w.systems[2], "crew", 6)
			changed <- err
		}()
		w.pass(500 * time.Millisecond)
		w.close(0)
		w.pass(40 * time.Second)
		require.NoError(t, <-changed)
		c.requireRuns(2, 6)
	})
}

func TestWhatAChangeRefuses(t *testing.T) {
	inCrew(t, func(t *testing.T, w *world, _ *crew) {
		for _, count := range []int{-1, 0, 21, 1 << 20} {
			_, err := daemon.Rescale(t.Context(), w.systems[0], "crew", count)
			require.ErrorIs(t, err, sharding.ErrInvalid, "%d", count)
		}
		_, err := daemon.Rescale(t.Context(), w.systems[0], "nobody", 3)
		require.ErrorIs(t, err, sharding.ErrInvalid)
		_, err = sharding.Start(w.systems[0], sharding.Kind[*sharding.Bytes]{Name: "plain", ProxyOnly: true, Codec: sharding.Raw{}})
		require.NoError(t, err)
		w.pass(10 * time.Second)
		_, err = daemon.State(t.Context(), w.systems[0], "plain")
		require.ErrorContains(t, err, `kind "plain": how many shards are in use is not to be had: `)
		_, err = daemon.State(t.Context(), w.systems[0], "nobody")
		require.ErrorIs(t, err, sharding.ErrInvalid)
		_, err = sharding.Start(w.systems[0], sharding.Kind[*sharding.Bytes]{Name: "no crew", Codec: sharding.Raw{}, New: func(*sharding.Context) sharding.Entity[*sharding.Bytes] { return nil }})
		require.NoError(t, err)
		_, err = daemon.Rescale(t.Context(), w.systems[0], "no crew", 3)
		require.EqualError(t, err, `sharding: kind "no crew": 3 shards cannot be put into use: invalid: no region has said that the number can change`)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = daemon.Rescale(ctx, w.systems[0], "crew", 3)
		require.ErrorIs(t, err, context.Canceled)
		var refused *sharding.ScaleError
		_, err = daemon.Rescale(t.Context(), w.systems[1], "crew", 21)
		require.ErrorAs(t, err, &refused)
		require.Equal(t, 21, refused.Count)
	})
}
