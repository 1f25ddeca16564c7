// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// counting is a provider whose value rises, and which reports that if it can be watched.
type counting struct {
	value   atomic.Int64
	gone    atomic.Bool
	stands  atomic.Pointer[chan struct{}] // Read returns when it is closed.
	report  func(any, error)
	watched error // What Watch returns.
	ended   bool
}

func (*counting) ReadBytes() ([]byte, error) { return nil, errors.ErrUnsupported }
func (c *counting) Read() (map[string]any, error) {
	if stands := c.stands.Load(); stands != nil {
		<-*stands
	}
	if c.gone.Load() {
		return nil, errors.New("gone")
	}
	return map[string]any{"n": c.value.Load()}, nil
}

func (c *counting) Watch(report func(any, error)) error {
	c.report = report
	return c.watched
}

func (c *counting) Unwatch() error {
	c.ended = true
	return nil
}

// rise changes the value, and says so.
func (c *counting) rise() {
	c.value.Add(1)
	if c.watched == nil {
		c.report(nil, nil)
	}
}

// seen is what a watcher reported.
type seen struct {
	n   int64
	err error
	at  time.Duration
}

func watchProvider(t *testing.T, c *counting) (w *Watcher, reports func() []seen) {
	t.Helper()
	file, err := Loader{Providers: []Provider{{Name: "store", Source: c}}}.Load()
	require.NoError(t, err)
	began := time.Now()
	all := make(chan seen, 1000)
	w = watch(file, func(f *File, err error) {
		s := seen{err: err, at: time.Since(began)}
		if err == nil {
			var v struct {
				N int64 `koanf:"n"`
			}
			s.err = f.Decode("", &v)
			s.n = v.N
		}
		all <- s
	}, nil, pollInterval)
	synctest.Wait()
	return w, func() (got []seen) {
		for {
			select {
			case s := <-all:
				got = append(got, s)
			default:
				return got
			}
		}
	}
}

// A provider that changes fifty times a second is reported four times a second at most, and the last value is among
// what is reported.
func TestAProviderThatChangesWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counting{}
		w, reports := watchProvider(t, c)
		for range 500 {
			c.rise()
			<-time.After(20 * time.Millisecond)
		}
		<-time.After(time.Second)
		got := reports()
		require.LessOrEqual(t, len(got), 42)
		require.GreaterOrEqual(t, len(got), 20, "and none of the time passes without a report")
		require.EqualValues(t, 500, got[len(got)-1].n)
		require.NoError(t, w.Close())
		require.True(t, c.ended, "nobody reports to a watcher that is closed")
	})
}

// A provider that cannot be watched is read every ten seconds.
func TestAProviderThatCannotBeWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counting{watched: errors.New("not here")}
		w, reports := watchProvider(t, c)
		c.rise()
		<-time.After(11 * time.Second)
		got := reports()
		require.Len(t, got, 1)
		require.EqualValues(t, 1, got[0].n)
		require.NoError(t, w.Close())
		require.False(t, c.ended, "what was not begun is not ended")
	})
}

// A watcher is closed at once, also while a provider owes an answer.
func TestAWatcherIsClosedWhileAProviderIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counting{}
		w, reports := watchProvider(t, c)
		stands := make(chan struct{})
		c.stands.Store(&stands)
		c.rise()
		<-time.After(time.Second)
		began := time.Now()
		require.NoError(t, w.Close())
		require.Zero(t, time.Since(began))
		require.Empty(t, reports())
		close(stands)
		synctest.Wait()
	})
}

// While a provider is gone there is one error, and what it had stays; when it is back it is reported again.
func TestAProviderThatGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counting{}
		w, reports := watchProvider(t, c)
		c.gone.Store(true)
		<-time.After(time.Minute)
		got := reports()
		require.Len(t, got, 1)
		require.ErrorContains(t, got[0].err, "store: gone")
		c.gone.Store(false)
		<-time.After(11 * time.Second)
		got = reports()
		require.Len(t, got, 1)
		require.NoError(t, got[0].err)
		require.NoError(t, w.Close())
	})
}
