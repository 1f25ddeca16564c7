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
		{Name: "account", Shards: 3, Hosted: 1, Coordinator: asked},
		{Name: "audit", Shards: 1, Proxy: true},
		{Name: "jobs", Shards: 1, Proxy: true, NoCoordinator: `no node has the role "worker"`},
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
coordinator  not known

kind         jobs
hosts        nothing, it only sends: 1 shard
coordinator  none: no node has the role "worker"
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
func drains(t *testing.T, left int, others ...management.Route) (url, tokens string) {
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
	return node(t, append(others,
		management.Route{Path: "/v1/drain/begin", Query: []string{"wait"}, Operation: cluster.DrainOperation, Answer: answer},
		management.Route{Path: "/v1/drain/end", Operation: cluster.UndrainOperation, Answer: func(context.Context, management.Request) (any, error) {
			return cluster.Draining{Self: asked}, nil
		}})...,
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

// What is left has its reasons; a node that cannot give them says why.
func TestDrainSaysWhatIsLeft(t *testing.T) {
	url, tokens := drains(t, 1<<30,
		answers("/v1/kinds/{kind}/shards", cluster.ShardList{Self: asked, Kind: "account", Shards: []sharding.ShardInfo{
			{Shard: 3, State: "serving", Home: asked}, // Of the former number of shards.
			{Shard: 3, Layout: 1, State: "stopping", Home: asked, Stuck: 1}, {Shard: 4, Layout: 1, State: "hosted elsewhere"},
		}}),
		answers("/v1/kinds/{kind}/shards/{shard}", management.Explanation{
			Kind: "account", Shard: 3, Reason: "its home was drained", Pending: []string{"the shard to stop at its home, until 8:00"},
		}))
	status, stdout, stderr := hosting("drain", url, "-wait", "1ns", "-token-file", tokens)
	require.Equal(t, command.StatusFailed, status)
	fits(t, stdout)
	require.Contains(t, stdout, `
shard 3 of account
  because its home was drained
  waits for entities that do not return: 1
  waits for the shard to stop at its home, until 8:00
`)
	require.Equal(t, 1, strings.Count(stdout, "shard 3 of account"))
	require.NotContains(t, stdout, "shard 4")
	require.NotContains(t, stderr, "not shown")

	url, tokens = drains(t, 1<<30)
	_, _, stderr = hosting("drain", url, "-wait", "1ns", "-token-file", tokens)
	require.Contains(t, stderr, "Reasons of account are not shown: ")
}

// The node may be named without the flag, by its management address and once.
func TestTheNodeThatIsDrained(t *testing.T) {
	url, tokens := drains(t, 0)
	for _, name := range []string{"drain", "undrain"} {
		status, _, stderr := hosting(name, url, "-node", url, "-token-file", tokens)
		require.Equal(t, command.StatusOK, status, stderr)
		_, _, stderr = hosting(name, "10.0.0.7:7946", "-token-file", tokens)
		require.Contains(t, stderr, `"10.0.0.7:7946" is no management address`)
		_, _, stderr = hosting(name, url, "-node", "http://127.0.0.1:1", "-token-file", tokens)
		require.Contains(t, stderr, "name one node")
	}
}

// The reasons of shards that wait are shown with them, of ten at most.
func TestShardsWithReasons(t *testing.T) {
	list := cluster.ShardList{Self: asked, Kind: "account", Shards: []sharding.ShardInfo{{Shard: 0, State: "serving", Home: asked}}}
	for shard := range 12 {
		list.Shards = append(list.Shards, sharding.ShardInfo{Shard: shard + 1, State: "unknown"})
	}
	url := node(t, answers("/v1/kinds/{kind}/shards", list), answers("/v1/kinds/{kind}/shards/{shard}", management.Explanation{
		Pending: []string{"a node that can host it: all that can are drained, or leave, which is said in a line that is too long"},
	}))
	status, stdout, stderr := hosting("shards", "account", "-why", "-node", url)
	require.Equal(t, command.StatusOK, status, stderr)
	fits(t, stdout)
	require.Contains(t, stdout, `     0  serving                  0        0  10.0.0.1:7946#1b0f2e3d4c5b6a79
     1  unknown                  0        0  none
        waits for a node that can host it: all that can are drained, or leave,
        which is said in a line that is too long
     2  unknown                  0        0  none
`)
	require.Equal(t, 10, strings.Count(stdout, "waits for"))
	require.Contains(t, stdout, "2 more wait: quorate why asks for one of them.\n")

	for _, args := range [][]string{{"shards", "-why"}, {"shards", "account", "-why", "-all"}} {
		_, _, stderr = hosting(append(args, "-node", url)...)
		require.Contains(t, stderr, "-why is for the shards of one kind")
	}
	status, stdout, stderr = hosting("--json", "shards", "account", "-why", "-node", url)
	require.Equal(t, command.StatusOK, status, stderr)
	var got struct {
		cluster.ShardList

		Why map[int]management.Explanation
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	require.Equal(t, list, got.ShardList)
	require.Len(t, got.Why, 10)
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
