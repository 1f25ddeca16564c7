// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/dns/dnstest"
)

var errNoServer = errors.New("no server")

// The lookup that asks may give up. One of the lookups that wait for the same answer asks again.
func TestOthersGoOnWhereTheOneWhoAsksGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(time.Now)
		ctx, cancel := context.WithCancel(t.Context())
		questions := 0
		find := func(ctx context.Context) func() (answer, error) {
			return func() (answer, error) {
				questions++
				select {
				case <-ctx.Done():
					return answer{}, ctx.Err()
				case <-time.After(time.Second):
					return answer{until: time.Now().Add(time.Hour)}, nil
				}
			}
		}
		var all sync.WaitGroup
		all.Go(func() {
			_, err := m.answer(ctx, question{}, find(ctx))
			if !errors.Is(err, context.Canceled) {
				t.Errorf("error is %v, want %v", err, context.Canceled)
			}
		})
		synctest.Wait() // The first lookup asks.
		for range 5 {
			all.Go(func() {
				if _, err := m.answer(t.Context(), question{}, find(t.Context())); err != nil {
					t.Errorf("who waited got %v", err)
				}
			})
		}
		synctest.Wait() // The others wait.
		cancel()
		all.Wait()
		require.Equal(t, 2, questions)
	})
}

func TestErrorOfTheOneWhoAsksIsThatOfAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(time.Now)
		questions := 0
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				_, err := m.answer(t.Context(), question{}, func() (answer, error) {
					questions++
					<-time.After(time.Second)
					return answer{}, errNoServer
				})
				if !errors.Is(err, errNoServer) {
					t.Errorf("error is %v, want %v", err, errNoServer)
				}
			})
		}
		all.Wait()
		require.Equal(t, 1, questions)
	})
}

func TestWhoWaitsForAnAnswerMayGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(time.Now)
		over := make(chan struct{})
		var asking sync.WaitGroup
		asking.Go(func() {
			_, err := m.answer(t.Context(), question{}, func() (answer, error) { <-over; return answer{}, nil })
			if err != nil {
				t.Errorf("error is %v", err)
			}
		})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := m.answer(ctx, question{}, func() (answer, error) { return answer{}, nil })
		require.ErrorIs(t, err, context.DeadlineExceeded)
		close(over)
		asking.Wait()
	})
}

// The memory is bounded by the records, however many names there are.
func TestMemoryForgetsWhenItIsFull(t *testing.T) {
	m := newMemory(time.Now)
	later := time.Now().Add(time.Hour)
	large := answer{records: make([]record, 4000), until: later}
	for i := range 100 {
		_, err := m.answer(t.Context(), question{name: strings.Repeat("a", i)}, func() (answer, error) { return large, nil })
		require.NoError(t, err)
		require.LessOrEqual(t, m.records, maxRecords)
		require.LessOrEqual(t, len(m.kept), maxRecords/4000)
	}
	records := 0
	for _, kept := range m.kept {
		records += 1 + len(kept.records)
	}
	require.Equal(t, records, m.records)
	kept := len(m.kept)
	m.now = func() time.Time { return later }
	for name := range m.kept {
		_, err := m.answer(t.Context(), name, func() (answer, error) { return large, nil })
		require.NoError(t, err)
		break
	}
	require.Len(t, m.kept, kept, "an answer takes the place of the one before")
	require.Equal(t, records, m.records)
}

// Several lookups at a time sort the records that they get, each a copy of its own.
func TestLookupLeavesWhatIsKeptAsItIs(t *testing.T) {
	server := dnstest.Start(t)
	server.Set("_a._b.bank.", "SRV", time.Minute, "9 0 1 b.bank.", "1 0 1 a.bank.")
	server.Set("a.bank.", "A", time.Minute, "10.0.0.1")
	config := Default()
	config.Servers, config.ResolvConf = []string{server.Addr()}, ""
	d, err := New(config)
	require.NoError(t, err)
	found, err := d.Lookup(t.Context(), discovery.Query{Service: "_a._b.bank"})
	require.NoError(t, err)
	require.Len(t, found.List, 1)
	kept := d.memory.kept[question{"_a._b.bank.", dnsmessage.TypeSRV}].records
	require.Equal(t, []string{"b.bank.", "a.bank."}, []string{kept[0].target, kept[1].target})
}
