// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/sharding"
)

// What a node says of its shards and entities, and how an operator drains it.

// get asks the node for something, and decodes the answer if it is one.
func (o *operated) get(path string, into any) (status int) {
	o.t.Helper()
	r, err := http.NewRequestWithContext(o.t.Context(), http.MethodGet, "http://"+o.node.ManagementAddress()+path, http.NoBody)
	require.NoError(o.t, err)
	response, err := http.DefaultClient.Do(r)
	require.NoError(o.t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	require.NoError(o.t, err)
	if response.StatusCode == http.StatusOK {
		require.NoError(o.t, json.Unmarshal(text, into))
	}
	return response.StatusCode
}

// The only node of a cluster keeps its shards when it is drained, and says so; who asked is
// among the decisions.
func TestAnOperatorDrainsANode(t *testing.T) {
	t.Parallel()
	o := operate(t)
	region, err := sharding.Start(o.node, sharding.Kind[*wrapperspb.Int64Value]{
		Name: "counter", New: func(*sharding.Context) sharding.Entity[*wrapperspb.Int64Value] { return new(counter) },
	})
	require.NoError(t, err)
	_, err = sharding.Ask[*wrapperspb.Int64Value](t.Context(), region, "a", wrapperspb.Int64(1))
	require.NoError(t, err)

	var shards cluster.ShardList
	require.Equal(t, http.StatusOK, o.get("/v1/kinds/counter/shards", &shards))
	require.Len(t, shards.Shards, 1000)
	require.Equal(t, "serving", shards.Shards[0].State)
	require.Equal(t, http.StatusNotFound, o.get("/v1/kinds/cuonter/shards", &shards))

	var kinds, regions map[string]any // As scripts for Akka ask.
	require.Equal(t, http.StatusOK, o.get("/cluster/shards", &kinds))
	require.Equal(t, map[string]any{"entityTypeKeys": []any{"counter"}}, kinds)
	require.Equal(t, http.StatusOK, o.get("/cluster/shards/counter", &regions))
	require.Len(t, regions["regions"], 1000)
	require.Equal(t, http.StatusNotFound, o.get("/cluster/shards/cuonter", &regions))

	var entities cluster.EntityList
	require.Equal(t, http.StatusOK, o.get("/v1/kinds/counter/entities", &entities))
	require.Len(t, entities.Entities, 1)
	require.Equal(t, "a", entities.Entities[0].ID)
	require.Equal(t, http.StatusBadRequest, o.get("/v1/kinds/counter/entities?limit=0", &entities))
	require.Equal(t, http.StatusNotFound, o.get("/v1/kinds/cuonter/entities", &entities))

	status, body := o.post("/v1/drain/begin?wait=1", cluster.DrainOperation, "guess")
	require.Equal(t, http.StatusUnauthorized, status, body)
	status, body = o.post("/v1/drain/begin?wait=0", cluster.DrainOperation, "secret")
	require.Equal(t, http.StatusBadRequest, status, body)
	status, body = o.post("/v1/drain/begin?wait=1", cluster.DrainOperation, "secret")
	require.Equal(t, http.StatusOK, status, body)
	want := cluster.Draining{Self: o.node.Self().String(), Drained: true, Hosts: []cluster.HostedCount{{Kind: "counter", Shards: 1000}}}
	var got cluster.Draining
	require.NoError(t, json.Unmarshal([]byte(body), &got))
	require.Equal(t, want, got)
	require.Equal(t, "management|/v1/drain/begin|drain|asked for by token of alice, with wait=1", o.last())
	require.Equal(t, http.StatusOK, o.get("/v1/drain", &got))
	require.Equal(t, want, got)

	status, body = o.post("/v1/kinds/counter/shards/7/move?to="+o.node.Self().Address.String(), cluster.MoveShardOperation, "secret")
	require.Equal(t, http.StatusConflict, status)
	require.Contains(t, body, "shard 7 of counter does not move to "+o.node.Self().Address.String()+": it lives there")
	status, _ = o.post("/v1/kinds/counter/shards/x/move?to=y", cluster.MoveShardOperation, "secret")
	require.Equal(t, http.StatusBadRequest, status)

	status, body = o.post("/v1/kinds/counter/reshard?shards=1000", cluster.ReshardOperation, "secret")
	require.Equal(t, http.StatusConflict, status)
	require.Contains(t, body, "counter does not get 1000 shards: the kind has 1000 shards")
	status, _ = o.post("/v1/kinds/counter/reshard?shards=many", cluster.ReshardOperation, "secret")
	require.Equal(t, http.StatusBadRequest, status)

	status, body = o.post("/v1/drain/end", cluster.UndrainOperation, "secret")
	require.Equal(t, http.StatusOK, status, body)
	require.Contains(t, body, `"drained":false`)

	status, body = o.post("/v1/kinds/counter/reshard?shards=16", cluster.ReshardOperation, "secret")
	require.Equal(t, http.StatusOK, status, body)
	var change cluster.KindReshard
	require.NoError(t, json.Unmarshal([]byte(body), &change))
	require.Equal(t, 16, change.Shards)
	require.NotNil(t, change.Resharding)
	require.Equal(t, 1000, change.Resharding.From)
	require.Equal(t, http.StatusOK, o.get("/v1/kinds/counter/resharding", &change))
	require.Equal(t, http.StatusNotFound, o.get("/v1/kinds/cuonter/resharding", &change))
}

// A node asks all others what they host, and changes how many shards of a kind are in use when an operator wants it.
func TestWhatAllNodesHost(t *testing.T) {
	t.Parallel()
	o := operate(t)
	region, err := sharding.Start(o.node, sharding.Kind[*wrapperspb.Int64Value]{
		Name: "counter", Shards: 8, InUse: 8, New: func(*sharding.Context) sharding.Entity[*wrapperspb.Int64Value] { return new(counter) },
	})
	require.NoError(t, err)
	_, err = sharding.Ask[*wrapperspb.Int64Value](t.Context(), region, "a", wrapperspb.Int64(1))
	require.NoError(t, err)

	var census sharding.ShardCensus
	require.Equal(t, http.StatusOK, o.get("/v1/kinds/counter/everywhere/shards?wait=1", &census))
	require.Equal(t, []int{8, 8, 1}, []int{census.Shards, census.Hosted, census.Entities})
	require.Empty(t, census.Missing)
	require.Equal(t, http.StatusNotFound, o.get("/v1/kinds/cuonter/everywhere/shards", &census))
	require.Equal(t, http.StatusBadRequest, o.get("/v1/kinds/counter/everywhere/shards?wait=0", &census))

	var page sharding.EntityPage
	require.Equal(t, http.StatusOK, o.get("/v1/kinds/counter/everywhere/entities?limit=5", &page))
	require.Len(t, page.Entities, 1)
	require.Equal(t, "a", page.Entities[0].ID)
	require.Equal(t, o.node.Self().String(), page.Entities[0].Node)
	require.Equal(t, http.StatusNotFound, o.get("/v1/kinds/counter/everywhere/entities?after=nowhere", &page))
	require.Equal(t, http.StatusBadRequest, o.get("/v1/kinds/counter/everywhere/entities?limit=0", &page))

	var scale cluster.KindScale
	require.Equal(t, http.StatusOK, o.get("/v1/kinds/counter/scale", &scale))
	require.Equal(t, sharding.Scale{Revision: 1, Count: 8}, scale.Scale)
	require.Equal(t, http.StatusNotFound, o.get("/v1/kinds/cuonter/scale", &scale))
	status, body := o.post("/v1/kinds/counter/rescale?count=3", cluster.RescaleOperation, "guess")
	require.Equal(t, http.StatusUnauthorized, status, body)
	for _, query := range []string{"", "?count=9", "?count=0", "?count=3&wait=0"} {
		status, body = o.post("/v1/kinds/counter/rescale"+query, cluster.RescaleOperation, "secret")
		require.Equal(t, http.StatusBadRequest, status, body)
	}
	status, body = o.post("/v1/kinds/counter/rescale?count=3", cluster.RescaleOperation, "secret")
	require.Equal(t, http.StatusOK, status, body)
	require.NoError(t, json.Unmarshal([]byte(body), &scale))
	require.Equal(t, sharding.ScaleState{Scale: sharding.Scale{Revision: 2, Count: 3}, Complete: true}, scale.ScaleState)
}
