// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata/services/internal/clustertest"
	"github.com/quorate/quorate/ddata/services/registry"
	"github.com/quorate/quorate/machine/meter/metertest"
)

func TestMetrics(t *testing.T) {
	clustertest.InBubble(t, func(t *testing.T, w *clustertest.World) {
		w.Start(1)
		reader := metertest.New()
		r, err := registry.New(w.Nodes[0], registry.WithMeterProvider(reader.Provider()))
		require.NoError(t, err)
		w.Nodes[0].Ends = append(w.Nodes[0].Ends, r.AwaitEnd)
		h := &host{r, w.Nodes[0], w}
		h.register("a:1")
		h.register("a:2")
		defer r.Subscribe("mail").Close()
		for name, want := range map[string]int{
			"registrations": 2, "subscribers": 1, "entries.restored": 0, "entries.removed": 0, "entries.malformed": 0,
		} {
			require.Equal(t, want, int(reader.Value(t, "quorate.registry."+name)), name)
		}
		clustertest.Eventually(t, "the name is known", func() bool { return reader.Value(t, "quorate.registry.names") == 1 })
	})
}
