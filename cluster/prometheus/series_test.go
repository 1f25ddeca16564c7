// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/services/pubsub"
	"github.com/quorate/quorate/machine/meter"
	"github.com/quorate/quorate/machine/meter/metertest"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/state"
	"github.com/quorate/quorate/sharding/state/memory"
)

// idOf returns one of very many ids, of a form that differs from those of its neighbours.
func idOf(i int) string {
	forms := []string{"acct-%d", "%d", "%032x", "öre/%d", "a b\t%d", "quorate.kind=%d", "{%d}", "\u202e%d", strings.Repeat("x", 500) + "%d", "%d\"'\\"}
	return fmt.Sprintf(forms[i%len(forms)], i)
}

// deposit is what an entity with a saved state does: it fails at what is below zero.
func deposit(c *state.Context[int64], add *wrapperspb.Int64Value) error {
	if add.GetValue() < 0 {
		return fmt.Errorf("entity %s does not like %d", c.ID(), add.GetValue())
	}
	*c.State() += add.GetValue()
	return c.Reply(wrapperspb.Int64(*c.State()))
}

// seriesOf runs a cluster with so many entities, replicated keys and topics, and returns how many series each
// instrument of its last node has.
func seriesOf(t *testing.T, n int) (series map[string]int) {
	t.Helper()
	series = map[string]int{}
	synctest.Test(t, func(t *testing.T) {
		reader := metertest.New()
		c := clustertest.Start(t, 2, clustertest.WithConfig("sharding: {number-of-shards: 16}"))
		c.Add(clustertest.WithOptions(cluster.WithMeterProvider(reader.Provider())),
			clustertest.WithConfig(`gateway: {address: "127.0.0.1:7947", kinds: [account]}`))
		node := c.Node(2)
		keeper, err := state.NewKeeper(memory.New(), state.Default())
		require.NoError(t, err)
		defer keeper.Measure(reader.Provider(), node.Self())()
		var entities *sharding.Region[*wrapperspb.Int64Value]
		for _, of := range c.Nodes() {
			entities, err = sharding.Start(of, sharding.Kind[*wrapperspb.Int64Value]{
				Name: "account", New: state.Snapshots(keeper, state.JSON[int64](), deposit),
			})
			require.NoError(t, err)
		}
		topics, err := node.Topics()
		require.NoError(t, err)
		_, err = node.Registry()
		require.NoError(t, err)
		for i := range n {
			id := idOf(i)
			_, err := sharding.Ask[*wrapperspb.Int64Value](t.Context(), entities, id, wrapperspb.Int64(1))
			require.NoError(t, err)
			require.NoError(t, entities.Tell(t.Context(), id, wrapperspb.Int64(int64(i%10-1)))) // One in ten fails.
			_, err = ddata.Update(t.Context(), node.Data(), ddata.NewKey[crdt.GCounter](strconv.QuoteToASCII(id[:min(len(id), 40)]+strconv.Itoa(i))), ddata.Majority(),
				func(at crdt.Origin, v crdt.GCounter) (crdt.GCounter, error) { return v.Add(at, 1), nil })
			require.NoError(t, err)
			if i < 100 { // A node has so many topics.
				topic, err := pubsub.NewTopic(topics, "topic "+strconv.Itoa(i), pubsub.JSON[int]{})
				require.NoError(t, err)
				require.NoError(t, topic.Publish(t.Context(), i))
			}
		}
		_, _ = sharding.Ask[*wrapperspb.Int64Value](t.Context(), entities, "", wrapperspb.Int64(1))
		<-time.After(time.Minute)
		for _, i := range reader.Instruments(t) {
			require.NotEmpty(t, i.Version, i.Name)
			require.Equal(t, meter.SchemaURL, i.SchemaURL, i.Name)
			series[i.Name] = len(reader.Points(t, i.Name))
		}
	})
	return series
}

// unseen are the instruments, by what their names begin with, that have no series in this cluster: nothing is refused
// or moves in it, no client or plugin is there, and no certificate, store of leases or of remembered entities.
var unseen = []string{
	"quorate.bootstrap.", "quorate.certificate.", "quorate.membership.refused", "quorate.plugin.", "quorate.sharding.leases.",
	"quorate.sharding.messages.refused", "quorate.sharding.move.duration", "quorate.sharding.remembered.", "quorate.sharding.shards",
	"quorate.sharding.snapshots.lost", "quorate.strategy.call.duration", "quorate.transport.connections.refused",
}

// No attribute of a metric grows with what a program does: a node has as many series with 1,000 entities, replicated
// keys and topics, whatever their names, as with 10. That holds for every instrument of the catalogue that the cluster
// can see.
func TestSeriesDoNotGrowWithEntities(t *testing.T) {
	few, many := seriesOf(t, 10), seriesOf(t, 1000)
	for _, name := range []string{"quorate.node.messages", "quorate.node.io"} { // Which messages there are is chance.
		require.Less(t, many[name], 40, name)
		many[name] = few[name]
	}
	require.Equal(t, few, many)
	for _, i := range catalogue(t) {
		known := slices.ContainsFunc(unseen, func(prefix string) bool { return strings.HasPrefix(i.Name, prefix) })
		require.True(t, known || few[i.Name] > 0, "%s has no series here: extend the cluster, so that this test looks at it", i.Name)
	}
}
