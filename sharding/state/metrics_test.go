// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package state_test

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/meter/metertest"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/state"
	"github.com/quorate/quorate/sharding/state/memory"
	"github.com/quorate/quorate/sharding/state/store"
)

// Four instances save at once with one call under way: the first makes a call alone, the others wait
// and share the next. Then one of them is replaced, and the store fails.
func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, d, release := state.Default(), &disturbed{Store: memory.New()}, make(chan struct{})
		cfg.Calls, cfg.CallTimeout, cfg.Limit = 1, 10*time.Second, 10*time.Second
		d.before = func([]store.Write) error { <-release; return nil }
		keeper, err := state.NewKeeper(d, cfg, state.WithLogger(slog.New(slog.DiscardHandler)))
		require.NoError(t, err)
		reader := metertest.New()
		stop := keeper.Measure(reader.Provider(), gossip.NodeID{})
		value := func(name string, with ...attribute.KeyValue) int {
			return int(reader.Value(t, "quorate.sharding.state."+name, with...))
		}
		load, save := attribute.String("quorate.state.operation", "load"), attribute.String("quorate.state.operation", "save")
		fault := func(word string) attribute.KeyValue { return attribute.String("error.type", word) }

		handles, over := make([]*state.Handle, 4), make(chan error, 4)
		for i := range handles {
			handles[i], _, err = keeper.Open(t.Context(), key(fmt.Sprint(i)), sharding.Epoch{N: 1})
			require.NoError(t, err)
			go func() { over <- handles[i].SaveSnapshot(t.Context(), store.Value{Form: 1, Bytes: []byte("four")}, 1) }() // The test waits for it.
			synctest.Wait()
		}
		require.Equal(t, 3, value("waiting", save))
		require.Zero(t, value("waiting", load))
		close(release)
		for range handles {
			require.NoError(t, <-over)
		}
		require.Zero(t, value("waiting"))
		require.Equal(t, 4, value("records", load))
		require.Equal(t, 4, value("records", save))
		require.Equal(t, 16, value("io", save))
		require.Zero(t, value("io", load))
		require.Equal(t, 2, value("calls", save))
		require.Equal(t, 4, value("requests", save))
		require.Equal(t, 4, value("operation.duration", save))
		require.Equal(t, 2, value("call.duration", save))

		_, _, err = keeper.Open(t.Context(), key("0"), sharding.Epoch{N: 2})
		require.NoError(t, err)
		require.Equal(t, 4, value("io", load))
		require.ErrorIs(t, handles[0].SaveSnapshot(t.Context(), store.Value{Form: 1}, 1), state.ErrFenced)
		require.Equal(t, 1, value("ended", fault("fenced")))
		require.Equal(t, 1, value("operation.duration", save, fault("fenced")))

		d.before = func([]store.Write) error { return errors.New("down") }
		require.ErrorIs(t, handles[1].SaveSnapshot(t.Context(), store.Value{Form: 1}, 1), state.ErrUnanswered)
		require.Equal(t, 1, value("ended", fault("unanswered")))
		require.Equal(t, 1, value("operation.duration", save, fault("unanswered")))
		require.Equal(t, int(keeper.Stats().FailedCalls), value("calls.failed"))
		require.Equal(t, value("calls.failed"), value("call.duration", save, fault("failed")))
		require.Greater(t, value("calls.failed"), 1)

		second := metertest.New()
		stopSecond := keeper.Measure(second.Provider(), gossip.NodeID{})
		require.Empty(t, reader.Points(t, "quorate.sharding.state.records"), "the second has ended the first")
		stop() // Has ended before, and ends nothing of the second.
		_, _, err = keeper.Open(t.Context(), key("0"), sharding.Epoch{N: 3})
		require.NoError(t, err)
		require.Equal(t, 1, int(second.Value(t, "quorate.sharding.state.operation.duration", load)))
		require.Equal(t, 6, int(second.Value(t, "quorate.sharding.state.records", load)))
		stopSecond()
		stopSecond()
		require.Empty(t, second.Points(t, "quorate.sharding.state.records"))
	})
}

// A node with several keepers shows their sum.
func TestMetricsOfKeepersAddUp(t *testing.T) {
	reader := metertest.New()
	for range 2 {
		keeper, err := state.NewKeeper(memory.New(), state.Default())
		require.NoError(t, err)
		defer keeper.Measure(reader.Provider(), gossip.NodeID{})()
		_, _, err = keeper.Open(t.Context(), key("x"), sharding.Epoch{N: 1})
		require.NoError(t, err)
	}
	for _, name := range []string{"records", "calls", "operation.duration"} {
		require.Equal(t, 2, int(reader.Value(t, "quorate.sharding.state."+name)), name)
	}
}
