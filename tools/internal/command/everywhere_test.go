// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/management"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/tools/internal/command"
)

// What the commands print that have a node ask all others, and what follows when some do not answer.

// everywhere is a route with one answer, which takes what these commands send.
func everywhere(path string, value any) management.Route {
	return management.Route{Path: path, Query: []string{"wait", "limit", "after"}, Answer: func(context.Context, management.Request) (any, error) { return value, nil }}
}

func TestShardsOfAllNodes(t *testing.T) {
	census := sharding.ShardCensus{
		Self: asked, Kind: "account", Shards: 3, Hosted: 2, Entities: 12,
		Nodes: []sharding.NodeCensus{
			{Node: asked, Standing: true, Entities: 12, Shards: []sharding.HostedShard{{Shard: 0, State: "serving", Entities: 12}, {Shard: 1, State: "serving", Waits: "waits for its lease"}}},
			{Node: "10.0.0.2:7946#2f3d4c5b6a790b1e", Standing: true, Proxy: true},
		},
		Missing: []sharding.Unanswered{{Node: "10.0.0.3:7946#2f3d4c5b6a790b1f", Reason: "did not answer within 3s"}},
	}
	url := node(t, everywhere("/v1/kinds/{kind}/everywhere/shards", census))
	status, stdout, stderr := hosting("shards", "account", "-all", "-node", url)
	require.Equal(t, command.StatusFailed, status)
	require.Contains(t, stderr, "1 node did not answer: what they host is not in the list")
	fits(t, stdout)
	require.Equal(t, `asked        10.0.0.1:7946#1b0f2e3d4c5b6a79
hosted       2 of 3 shards, with 12 entities

node         10.0.0.1:7946#1b0f2e3d4c5b6a79
hosts        2 shards, with 12 entities
waits        shard 1: waits for its lease

node         10.0.0.2:7946#2f3d4c5b6a790b1e
hosts        0 shards, with 0 entities; it only sends

missing      10.0.0.3:7946#2f3d4c5b6a790b1f
reason       did not answer within 3s
`, stdout)
	census.Missing = nil
	url = node(t, everywhere("/v1/kinds/{kind}/everywhere/shards", census))
	status, stdout, stderr = hosting("--json", "shards", "account", "-all", "-wait", "1s", "-node", url)
	require.Equal(t, command.StatusOK, status, stderr)
	var got sharding.ShardCensus
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	require.Equal(t, census.Hosted, got.Hosted)
}

func TestEntitiesOfAllNodes(t *testing.T) {
	page := sharding.EntityPage{
		Self: asked, Kind: "account", Next: "2/b",
		Entities: []sharding.PlacedEntity{
			{EntityInfo: sharding.EntityInfo{ID: "a", Shard: 0, State: "busy", Since: time.Unix(1, 0), Waiting: 7, Stuck: true}, Node: asked},
			{EntityInfo: sharding.EntityInfo{ID: "b", Shard: 2, State: "idle", Since: time.Unix(1, 0)}, Node: asked},
		},
	}
	url := node(t, everywhere("/v1/kinds/{kind}/everywhere/entities", page))
	status, stdout, stderr := hosting("entities", "account", "-all", "-after", "0/0", "-node", url)
	require.Equal(t, command.StatusOK, status, stderr)
	fits(t, stdout)
	require.Equal(t, `asked        10.0.0.1:7946#1b0f2e3d4c5b6a79

 shard  state     waiting  entity, and its node
     0  stuck           7  a, at 10.0.0.1:7946#1b0f2e3d4c5b6a79
     2  idle            0  b, at 10.0.0.1:7946#1b0f2e3d4c5b6a79
more         -after "2/b"
`, stdout)
	status, stdout, _ = hosting("--json", "entities", "account", "-all", "-node", url)
	require.Equal(t, command.StatusOK, status)
	require.Contains(t, stdout, `"next"`)
}

func TestRescaleForPeopleAndPrograms(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(tokens, []byte("secret"), 0o600))
	scale := cluster.KindScale{Self: asked, Kind: "crew", ScaleState: sharding.ScaleState{Scale: sharding.Scale{Revision: 2, Count: 4}, Next: 6}}
	answer := func(context.Context, management.Request) (any, error) { return scale, nil }
	url := node(t,
		management.Route{Path: "/v1/kinds/{kind}/scale", Answer: answer},
		management.Route{Path: "/v1/kinds/{kind}/rescale", Query: []string{"count", "wait"}, Operation: cluster.RescaleOperation, Answer: answer},
	)
	status, stdout, stderr := rescaling("crew", "-node", url)
	require.Equal(t, command.StatusOK, status, stderr)
	require.Equal(t, `asked        10.0.0.1:7946#1b0f2e3d4c5b6a79
in use       4 shards of crew, revision 2
changes      to 6, when all have stopped
`, stdout)
	status, _, stderr = rescaling("crew", "6", "-node", url, "-token-file", tokens)
	require.Equal(t, command.StatusFailed, status)
	require.Contains(t, stderr, "the change to 6 has not come to its end yet")
	scale.ScaleState = sharding.ScaleState{Scale: sharding.Scale{Revision: 3, Count: 6}, Complete: true}
	status, stdout, stderr = rescaling("crew", "6", "-node", url, "-token-file", tokens)
	require.Equal(t, command.StatusOK, status, stderr)
	require.Contains(t, stdout, "6 shards of crew, revision 3")
}

func rescaling(args ...string) (status int, stdout, stderr string) {
	return output(command.Program{Name: "quorate", Help: "A cluster toolkit.", Commands: []command.Command{
		{Name: "rescale", Help: "Rescale", Args: &command.Rescale{}},
	}}, append([]string{"rescale"}, args...)...)
}
