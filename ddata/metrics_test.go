// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package ddata_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"

	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/machine/meter/metertest"
)

// What is held, waited for and sent shows in the metrics of a node.
func TestMetrics(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var readers []*metertest.Reader
		w.options = func(int) []ddata.Option {
			readers = append(readers, metertest.New())
			return []ddata.Option{ddata.WithMeterProvider(readers[len(readers)-1].Provider())}
		}
		w.start(2)
		value := func(i int, name string, with ...attribute.KeyValue) float64 {
			return readers[i].Value(t, "quorate.ddata."+name, with...)
		}
		require.NoError(t, w.nodes[0].add("visits", 1, ddata.All()))
		require.NoError(t, w.nodes[0].add("hits", 1, ddata.All()))
		ctx := patience.Context(t)
		require.NoError(t, ddata.Delete(ctx, w.nodes[1], counter("hits"), ddata.All()))
		_, err := w.nodes[1].read("visits", ddata.Majority())
		require.NoError(t, err)
		require.ErrorIs(t, w.nodes[1].add("hits", 1, ddata.Majority()), ddata.ErrDeleted)
		s := ddata.Subscribe(w.nodes[0], counter("visits"))
		defer s.Close()
		all := attribute.String("quorate.ddata.keys", "all")
		for i := range w.nodes {
			require.InDelta(t, 1, value(i, "keys", all), 0)
			require.InDelta(t, 1, value(i, "tombstones", all), 0)
			require.Positive(t, value(i, "memory", all))
			require.Zero(t, value(i, "operations.waiting"))
			require.Zero(t, value(i, "messages.malformed"))
		}
		require.InDelta(t, 1, value(0, "subscribers"), 0)
		require.InDelta(t, 2, value(0, "batches.sent"), 0)
		require.InDelta(t, 2, value(1, "changes.taken"), 0)
		of := func(operation, level string) []attribute.KeyValue {
			return []attribute.KeyValue{attribute.String("quorate.ddata.operation", operation), attribute.String("quorate.ddata.consistency", level)}
		}
		require.InDelta(t, 2, value(0, "operation.duration", of("update", "all")...), 0)
		require.InDelta(t, 1, value(1, "operation.duration", of("delete", "all")...), 0)
		require.InDelta(t, 1, value(1, "operation.duration", of("get", "majority")...), 0)

		w.network.Cut(w.nodes[0].Self().Address, w.nodes[1].Self().Address)
		short := patience.Expiring(t, reportTimeout)
		_, err = ddata.Get(short, w.nodes[0], counter("visits"), ddata.All())
		require.Error(t, err)
		require.InDelta(t, 1, value(0, "operation.duration", attribute.String("error.type", "unanswered")), 0)
		w.network.HealAll()
	})
}
