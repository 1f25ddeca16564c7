// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package ddata

import (
	"context"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/meter"
	"github.com/quorate/quorate/machine/meter/metertest"
)

// Each count of the machine shows in one metric, and in no other.
func TestEveryCountShowsInOneMetric(t *testing.T) {
	metrics := map[string]string{
		"Strangers": "messages.strangers", "Malformed": "messages.malformed", "Foreign": "changes.foreign",
		"Claims": "messages.claims", "Stale": "changes.stale", "Refused": "changes.refused", "Gaps": "gaps",
		"Unsent": "messages.unsent", "Passes": "comparisons", "Pulled": "entries.pulled", "Changes": "changes.taken",
		"Batches": "batches.sent", "Sweeps": "sweeps", "Repairs": "repairs", "StoreFailures": "store.failures",
		"Wiped": "wipes", "Aged": "store.older", "Unclean": "unclean.starts", "Restored": "unclean.restored",
		"QuorumsLost": "quorums.lost", "WentOn": "quorums.forgone",
	}
	counts := reflect.TypeFor[protocol.Counts]()
	require.Len(t, metrics, counts.NumField())
	for field := range counts.Fields() {
		t.Run(field.Name, func(t *testing.T) {
			c := new(collected)
			reflect.ValueOf(&c.machine).Elem().FieldByIndex(field.Index).SetUint(7)
			require.Equal(t, map[string]float64{"quorate.ddata." + metrics[field.Name]: 7}, shown(t, c))
		})
	}
}

// Each count of the replicator beside those of the machine shows in one metric, and in no other.
func TestEveryNumberOfTheReplicatorShowsInOneMetric(t *testing.T) {
	for metric, stats := range map[string]Stats{
		"messages.malformed": {Malformed: 7}, "messages.broken": {Broken: 7}, "messages.unsent": {Unsent: 7},
		"operations.waiting": {Waiting: 7}, "subscribers": {Subscribers: 7},
	} {
		require.Equal(t, map[string]float64{"quorate.ddata." + metric: 7}, shown(t, &collected{stats: stats}))
	}
}

// shown returns the metrics that are not zero when this was collected.
func shown(t *testing.T, c *collected) map[string]float64 {
	t.Helper()
	reader, values := metertest.New(), map[string]float64{}
	m := meter.New(reader.Provider(), "ddata", gossip.NodeID{})
	stop, err := meter.Observe(m, metricsTable(), func(context.Context) *collected { return c })
	require.NoError(t, err)
	defer stop()
	for _, i := range reader.Instruments(t) {
		for _, p := range reader.Points(t, i.Name) {
			if p.Value != 0 {
				values[i.Name] = p.Value
			}
		}
	}
	return values
}
