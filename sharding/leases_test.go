// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/downing/lease"
	"github.com/quorate/quorate/downing/lease/memory"
	"github.com/quorate/quorate/sharding"
)

// Shards that are hosted under leases: a store that is well, one that is down from the beginning, and one that
// goes down later.

// leaseStoreStub is a store of leases that can be down.
type leaseStoreStub struct {
	lease.Store

	down atomic.Bool
}

var errStore = errors.New("the store is down")

func (s *leaseStoreStub) Take(ctx context.Context, c lease.Claim) (lease.Answer, error) {
	if s.down.Load() {
		return lease.Answer{}, errStore
	}
	return s.Store.Take(ctx, c)
}

func (s *leaseStoreStub) Give(ctx context.Context, c lease.Claim) error {
	if s.down.Load() {
		return errStore
	}
	return s.Store.Give(ctx, c)
}

// leased has the shards of a world hosted under leases.
func (w *world) leased() *leaseStoreStub {
	s := &leaseStoreStub{Store: memory.New()}
	w.options = append(w.options, sharding.WithLeases(s, lease.Default()))
	return s
}

// Everything runs as without leases, and each entity has the token of its shard; a node that leaves gives its leases
// back, so that its shards are not away for long.
func TestShardsRunUnderLeases(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.leased()
		w.start(3)
		w.populate(40)
		require.Equal(t, "lease 1", w.nodes[0].must("e-1", "lease"))
		c, err := sharding.ShardsEverywhere(t.Context(), w.nodes[0].system, "test")
		require.NoError(t, err)
		require.Equal(t, 12, c.Hosted)
		require.NoError(t, w.nodes[2].Leave(t.Context()))
		began := time.Now()
		for i := range 40 {
			w.nodes[i%2].must(fmt.Sprintf("e-%d", i), "x")
		}
		require.Less(t, time.Since(began), time.Second)
	})
}

// While the store is down shards wait, and everybody says so; messages wait too.
func TestShardsWaitForTheirLeases(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		s := w.leased()
		s.down.Store(true)
		w.form(2)
		for _, n := range w.nodes {
			n.startKind()
		}
		asked := w.nodes[0].asked("e-1", "x")
		pass(30 * time.Second)
		x, err := w.nodes[1].system.Explain(t.Context(), "test", "e-1")
		require.NoError(t, err)
		require.Contains(t, strings.Join(x.Pending, "\n"), "waits for its lease since")
		c, err := sharding.ShardsEverywhere(t.Context(), w.nodes[0].system, "test")
		require.NoError(t, err)
		require.Equal(t, 12, c.Hosted)
		require.Contains(t, c.Nodes[0].Shards[0].Waits, "waits for its lease since")
		s.down.Store(false)
		require.NoError(t, within(t, asked))
	})
}

// What befalls many shards is a line in the log for each kind and reason, and not one for each shard and attempt.
func TestTheLogTellsOfLeasesOnceAWhile(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		s := w.leased()
		var log bytes.Buffer
		w.options = append(w.options, sharding.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		s.down.Store(true)
		w.form(1)
		w.nodes[0].startKind()
		pass(50 * time.Second)
		require.Equal(t, 1, strings.Count(log.String(), "level="), log.String())
		require.Contains(t, log.String(), `level=WARN msg="shards wait for their leases" kind=test reason="the store does not say" count=12`)
		s.down.Store(false)
		pass(10 * time.Second)
		s.down.Store(true)
		pass(25 * time.Second)
		require.Contains(t, log.String(), `level=ERROR msg="the leases of shards are lost: their entities are given up" kind=test reason="" count=12`)
		require.LessOrEqual(t, strings.Count(log.String(), "level="), 3, log.String())
	})
}

// A store that goes down ends the entities before their leases can be given to others, and they go on when it is
// well again.
func TestLeasesAreLost(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		s := w.leased()
		w.start(2)
		w.populate(10)
		s.down.Store(true)
		pass(25 * time.Second)
		for i := range 10 {
			require.Len(t, w.journal.of(fmt.Sprintf("e-%d", i), "stop replaced"), 1)
		}
		_, err := w.nodes[0].ask("e-1", "x", time.Second)
		require.Error(t, err)
		s.down.Store(false)
		for i := range 10 {
			require.NotEmpty(t, w.nodes[1].insist(fmt.Sprintf("e-%d", i), "x"))
		}
	})
}

func TestLeasesAreChecked(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.form(1)
		cfg := lease.Default()
		cfg.TTL = time.Second
		_, err := sharding.New(w.nodes[0].Node, sharding.Default(), sharding.WithLeases(memory.New(), cfg))
		require.ErrorContains(t, err, "leases: ttl: 1s is not from")
	})
}
