// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/management"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/tools/internal/command"
)

// What the commands about shards, entities and drained nodes print.

// hosting runs one of these commands.
func hosting(args ...string) (status int, stdout, stderr string) {
	return output(command.Program{Name: "quorate", Help: "A cluster toolkit.", Commands: []command.Command{
		{Name: "drain", Help: "Drain", Args: &command.Drain{}},
		{Name: "entities", Help: "Entities", Args: &command.Entities{}},
		{Name: "move", Help: "Move", Args: &command.MoveShard{}},
		{Name: "reshard", Help: "Reshard", Args: &command.Reshard{}},
		{Name: "shards", Help: "Shards", Args: &command.Shards{}},
		{Name: "undrain", Help: "Undrain", Args: &command.Undrain{}},
	}}, args...)
}

// answers is a route with one answer.
func answers(path string, value any) management.Route {
	return management.Route{Path: path, Query: []string{"limit"}, Answer: func(context.Context, management.Request) (any, error) { return value, nil }}
}

const asked = "10.0.0.1:7946#1b0f2e3d4c5b6a79"

func TestShardsForPeopleAndPrograms(t *testing.T) {
	list := cluster.ShardList{Self: asked, Kind: "account", Shards: []sharding.ShardInfo{
		{Shard: 0, State: "serving", Home: asked, Epoch: "7", Entities: 12_345, Sent: 1, Passed: 2},
		{Shard: 1, State: "hosted elsewhere", Home: "bank-1.bank.production.svc.cluster.local:7946#2f3d4c5b6a790b1e"},
		{Shard: 2, State: "unknown"},
	}}
	url := node(t, answers("/v1/kinds/{kind}/shards", list), answers("/v1/kinds", management.KindList{Self: asked, Kinds: []management.Kind{
		{Name: "account", Shards: 3, Hosted: 1, Coordinator: asked}, {Name: "audit", Shards: 1, Proxy: true},
	}}))
	status, stdout, stderr := hosting("shards", "account", "-node", url)
	require.Equal(t, command.StatusOK, status, stderr)
	fits(t, stdout)
	require.Equal(t, `asked        10.0.0.1:7946#1b0f2e3d4c5b6a79

 shard  state             entities  waiting  home
     0  serving              12345        3  10.0.0.1:7946#1b0f2e3d4c5b6a79
     1  hosted elsewhere         0        0  bank-1.bank.production.svc.cluster.
                                             local:7946#2f3d4c5b6a790b1e
     2  unknown                  0        0  none
`, stdout)
	status, stdout, _ = hosting("--json", "shards", "account", "-node", url)
	require.Equal(t, command.StatusOK, status)
	var got cluster.ShardList
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	require.Equal(t, list, got)

	status, stdout, _ = hosting("shards", "-node", url)
	require.Equal(t, command.StatusOK, status)
	require.Equal(t, `asked        10.0.0.1:7946#1b0f2e3d4c5b6a79

kind         account
hosts        1 of 3 shards
coordinator  10.0.0.1:7946#1b0f2e3d4c5b6a79

kind         audit
hosts        nothing, it only sends: 1 shard
`, stdout)
}

func TestEntitiesForPeopleAndPrograms(t *testing.T) {
	since := time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)
	list := cluster.EntityList{Self: asked, Kind: "account", More: true, Entities: []sharding.EntityInfo{
		{ID: "a\x1b[31m", Shard: 0, State: "busy", Since: since, Waiting: 7, Stuck: true},
		{ID: "b", Shard: 2, State: "failed", Since: since, Reason: "the disk is full and will be for as long as nobody looks"},
	}}
	url := node(t, answers("/v1/kinds/{kind}/entities", list))
	status, stdout, stderr := hosting("entities", "account", "-node", url)
	require.Equal(t, command.StatusOK, status, stderr)
	fits(t, stdout)
	require.Equal(t, `asked        10.0.0.1:7946#1b0f2e3d4c5b6a79

 shard  state     waiting  since                 entity
     0  stuck           7  2026-11-23T08:00:00Z  a�[31m
     2  failed          0  2026-11-23T08:00:00Z  b: the disk is full and will be
                                                 for as long as nobody looks
There are more: -limit says how many to print.
`, stdout)
	status, stdout, _ = hosting("--json", "entities", "account", "-limit", "2", "-node", url)
	require.Equal(t, command.StatusOK, status)
	var got cluster.EntityList
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	require.Equal(t, list, got)

	list.Entities, list.More = nil, false
	_, stdout, _ = hosting("entities", "account", "-node", node(t, answers("/v1/kinds/{kind}/entities", list)))
	require.Contains(t, stdout, "No entity of the kind lives on it.\n")
}

// drains returns a node that says with each request that it hosts one shard less, and the path of
// a file with a token.
func drains(t *testing.T, left int) (url, tokens string) {
	t.Helper()
	tokens = filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(tokens, []byte("secret"), 0o600))
	answer := func(context.Context, management.Request) (any, error) {
		d := cluster.Draining{Self: asked, Drained: true}
		if left > 0 {
			d.Hosts = []cluster.HostedCount{{Kind: "account", Shards: left}}
		}
		left--
		return d, nil
	}
	return node(t,
		management.Route{Path: "/v1/drain/begin", Query: []string{"wait"}, Operation: cluster.DrainOperation, Answer: answer},
		management.Route{Path: "/v1/drain/end", Operation: cluster.UndrainOperation, Answer: func(context.Context, management.Request) (any, error) {
			return cluster.Draining{Self: asked}, nil
		}},
	), tokens
}

// The command asks until the node hosts nothing, and says meanwhile what is left.
func TestDrainAsksUntilNothingIsLeft(t *testing.T) {
	url, tokens := drains(t, 2)
	status, stdout, stderr := hosting("drain", "-node", url, "-token-file", tokens)
	require.Equal(t, command.StatusOK, status, stderr)
	require.Equal(t, asked+" still hosts 2 shards of account\n"+asked+" still hosts 1 shard of account\n", stderr)
	require.Equal(t, "asked        "+asked+"\ndrained      yes\nhosts        nothing\n", stdout)

	status, stdout, _ = hosting("undrain", "-node", url, "-token-file", tokens)
	require.Equal(t, command.StatusOK, status)
	require.Equal(t, "asked        "+asked+"\ndrained      no\nhosts        nothing\n", stdout)
}

// When the time is over the exit status says that something is left.
func TestDrainThatTakesLonger(t *testing.T) {
	url, tokens := drains(t, 1<<30)
	status, stdout, stderr := hosting("--json", "drain", "-wait", "1ns", "-node", url, "-token-file", tokens)
	require.Equal(t, command.StatusFailed, status)
	require.Contains(t, stderr, "still hosts 1073741824 shards of account, and hands them over")
	var got cluster.Draining
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	require.True(t, got.Drained)
}

func TestMovesForPeopleAndPrograms(t *testing.T) {
	url := node(t, management.Route{
		Path: "/v1/kinds/{kind}/shards/{shard}/move", Query: []string{"to"}, Operation: cluster.MoveShardOperation,
		Answer: func(_ context.Context, r management.Request) (any, error) {
			if r.Path("shard") != "17" {
				return nil, &management.Error{Status: 409, Text: "shard 3 of a/b does not move to x: no member has that address"}
			}
			return cluster.ShardMove{Self: asked, Kind: r.Path("kind"), Shard: 17, To: r.Query("to")}, nil
		},
	})
	status, stdout, stderr := hosting("move", "a/b", "17", "10.0.0.7:7946", "-node", url)
	require.Equal(t, command.StatusOK, status, stderr)
	require.Equal(t, "asked        "+asked+"\nmoves        shard 17 of a/b to 10.0.0.7:7946\n", stdout)
	status, stdout, _ = hosting("--json", "move", "a/b", "17", "10.0.0.7:7946", "-node", url)
	require.Equal(t, command.StatusOK, status)
	var got cluster.ShardMove
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	require.Equal(t, cluster.ShardMove{Self: asked, Kind: "a/b", Shard: 17, To: "10.0.0.7:7946"}, got)
	status, _, stderr = hosting("move", "a/b", "3", "x", "-node", url)
	require.Equal(t, command.StatusFailed, status)
	require.Contains(t, stderr, "no member has that address")
}

func TestReshardsForPeopleAndPrograms(t *testing.T) {
	under := cluster.KindReshard{Self: asked, Kind: "a/b", Shards: 2000, Resharding: &sharding.Resharding{From: 1000, To: 2000, Retired: 17}}
	url := node(t, management.Route{
		Path: "/v1/kinds/{kind}/reshard", Query: []string{"shards"}, Operation: cluster.ReshardOperation,
		Answer: func(_ context.Context, r management.Request) (any, error) {
			if r.Query("shards") != "2000" {
				return nil, &management.Error{Status: 409, Text: "a/b does not get 3 shards: a change is under way: from 1000 to 2000 shards, and 17 of the former are retired"}
			}
			return cluster.KindReshard{Self: asked, Kind: r.Path("kind"), Shards: 2000, Resharding: &sharding.Resharding{From: 1000, To: 2000}}, nil
		},
	}, answers("/v1/kinds/{kind}/resharding", under))
	status, stdout, stderr := hosting("reshard", "a/b", "2000", "-node", url)
	require.Equal(t, command.StatusOK, status, stderr)
	require.Equal(t, "asked        "+asked+"\nshards       2000\nchange       from 1000 to 2000, and 0 of the former are retired\n", stdout)
	status, _, stderr = hosting("reshard", "a/b", "3", "-node", url)
	require.Equal(t, command.StatusFailed, status)
	require.Contains(t, stderr, "a change is under way: from 1000 to 2000 shards")
	status, stdout, stderr = hosting("--json", "reshard", "a/b", "-node", url)
	require.Equal(t, command.StatusOK, status, stderr)
	var got cluster.KindReshard
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	require.Equal(t, under, got)
	under.Resharding, under.TakingOver = nil, true
	status, stdout, stderr = hosting("reshard", "a/b", "-node", node(t, answers("/v1/kinds/{kind}/resharding", under)))
	require.Equal(t, command.StatusOK, status, stderr)
	require.Contains(t, stdout, "none is under way")
	require.Contains(t, stdout, "remembered   entities of another number of shards are being taken over\n")
}

// 0 shards are refused, and not taken for a question.
func TestZeroShardsAreNoQuestion(t *testing.T) {
	refuse := func(context.Context, management.Request) (any, error) {
		return nil, &management.Error{Status: 409, Text: "a kind has 1 to 65536 shards"}
	}
	scale := cluster.KindScale{Self: asked, Kind: "crew", ScaleState: sharding.ScaleState{Scale: sharding.Scale{Revision: 2, Count: 4}}}
	url := node(t,
		management.Route{Path: "/v1/kinds/{kind}/reshard", Query: []string{"shards"}, Operation: cluster.ReshardOperation, Answer: refuse},
		management.Route{Path: "/v1/kinds/{kind}/rescale", Query: []string{"count", "wait"}, Operation: cluster.RescaleOperation, Answer: refuse},
		answers("/v1/kinds/{kind}/resharding", cluster.KindReshard{Self: asked, Kind: "crew", Shards: 7}),
		answers("/v1/kinds/{kind}/scale", scale),
	)
	status, _, stderr := hosting("reshard", "crew", "0", "-node", url)
	require.Contains(t, stderr, "a kind has 1 to 65536 shards")
	status2, _, stderr := rescaling("crew", "0", "-node", url)
	require.Contains(t, stderr, "a kind has 1 to 65536 shards")
	require.NotEqual(t, command.StatusOK, status)
	require.NotEqual(t, command.StatusOK, status2)
}

func TestHelpAboutHosting(t *testing.T) {
	for _, name := range []string{"drain", "entities", "move", "reshard", "shards", "undrain"} {
		status, stdout, _ := hosting(name, "-h")
		require.Equal(t, command.StatusOK, status)
		fits(t, strings.TrimSpace(stdout))
		require.Contains(t, stdout, "Examples:")
	}
}
