// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"bytes"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding/internal/cell"
)

// recorder is an entity that writes its messages down, and at some of them calls a function
// of the test.
type recorder struct {
	seen *[]int64
	at   map[int64]func()
}

func (r recorder) Receive(_ *Context, m *wrapperspb.Int64Value) error {
	*r.seen = append(*r.seen, m.GetValue())
	if f := r.at[m.GetValue()]; f != nil {
		f()
	}
	return nil
}

// recorded tells one entity the numbers from 0 to 299. The entity does not return from the
// first before all are told, so that the others are handled in runs. recorded returns the
// numbers in the order in which the entity handled them.
func recorded(t *testing.T, at func(s *System) map[int64]func()) (seen []int64, stats Stats) {
	t.Helper()
	lone(t, func(t *testing.T, s *System, _ *Region[*wrapperspb.Int64Value], _ *bytes.Buffer) {
		begun, told := make(chan struct{}), make(chan struct{})
		actions := map[int64]func(){}
		if at != nil {
			actions = at(s)
		}
		actions[0] = func() { close(begun); <-told }
		r, err := Start(s, Kind[*wrapperspb.Int64Value]{
			Name: "recorder", Shards: 1,
			New: func(*Context) Entity[*wrapperspb.Int64Value] { return recorder{&seen, actions} },
		})
		require.NoError(t, err)
		for i := range int64(300) {
			require.NoError(t, r.Tell(t.Context(), "a", wrapperspb.Int64(i)))
			if i == 0 {
				<-begun
			}
		}
		close(told)
		<-time.After(time.Second)
		synctest.Wait()
		stats = s.Stats()
	})
	return seen, stats
}

// everything returns the numbers from 0 to 299.
func everything() []int64 {
	all := make([]int64, 300)
	for i := range all {
		all[i] = int64(i)
	}
	return all
}

// Messages that are handled in a run are handled once each, in their order, also when the
// entity fails, or ends its goroutine, in the middle of the run.
// covers I20.
func TestRunsKeepOrderAndLoseNothing(t *testing.T) {
	seen, stats := recorded(t, nil)
	require.Equal(t, everything(), seen)
	require.Zero(t, stats.Failed)

	seen, stats = recorded(t, func(*System) map[int64]func() { return map[int64]func(){17: func() { panic("no") }} })
	require.Equal(t, everything(), seen)
	require.EqualValues(t, 1, stats.Panics)

	seen, stats = recorded(t, func(*System) map[int64]func() { return map[int64]func(){40: runtime.Goexit} })
	require.Equal(t, everything(), seen)
	require.EqualValues(t, 1, stats.Panics)
}

// A run stops between two messages when the clock shows no standing any more. The next
// message is handled when the clock shows standing again.
// covers I14.
func TestARunEndsWithTheStanding(t *testing.T) {
	lost := make(chan int, 1)
	seen, _ := recorded(t, func(s *System) map[int64]func() {
		held := s.standing
		return map[int64]func(){25: func() {
			s.runtime.Ports.Standing = new(membership.Standing)
			r := s.router("recorder")
			time.AfterFunc(time.Millisecond, func() {
				r.region.SlotOf("a").Do(func(c *cell.Cell) {
					info, _ := c.Entity("a")
					lost <- info.Waiting
					s.runtime.Ports.Standing = held
				})
			})
		}}
	})
	require.Equal(t, everything(), seen)
	require.Equal(t, 300-26, <-lost)
}
