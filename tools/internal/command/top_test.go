// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/management"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/tools/internal/command"
)

// What quorate top prints where no terminal is.

func topOnce(args ...string) (status int, stdout, stderr string) {
	return output(command.Program{Name: "quorate", Help: "A cluster toolkit.", Commands: []command.Command{
		{Name: "top", Help: "Top", Args: command.NewTop(nil)},
		{Name: "version", Help: "Version", Args: &command.Version{}},
	}}, append([]string{"top"}, args...)...)
}

func topRoutes() []management.Route {
	return []management.Route{
		members(two()),
		answers("/v1/kinds", management.KindList{Self: asked, Kinds: []management.Kind{{Name: "account", Shards: 2, Hosted: 1, Coordinator: asked}}}),
		answers("/v1/kinds/{kind}/shards", cluster.ShardList{Self: asked, Kind: "account", Shards: []sharding.ShardInfo{
			{Shard: 0, State: "serving", Home: asked, Entities: 12, Sent: 1}, {Shard: 1, State: "unknown"},
		}}),
		answers("/v1/decisions", management.DecisionList{Self: asked}),
	}
}

func TestTopPrintsOneLookWhereNoTerminalIs(t *testing.T) {
	url := node(t, topRoutes()...)
	status, stdout, stderr := topOnce("-node", url)
	require.Equal(t, command.StatusOK, status, stderr)
	fits(t, stdout)
	for _, want := range []string{
		"standing not held", "  1  up                1  10.0.0.1:7946  asked, leader", "no rates: the node has no metrics: telemetry.metrics is not prometheus",
		"account            1 of 2        1 without a home, 12 entities here, 1 messages",
	} {
		require.Contains(t, stdout, want)
	}
	status, stdout, _ = topOnce("-json", "-node", url)
	require.Equal(t, command.StatusOK, status)
	var got struct {
		Members management.ClusterMembers
		Kinds   []struct {
			Name     string
			Homeless int
			Homes    []struct {
				Node   string
				Shards int
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	require.Equal(t, two(), got.Members)
	require.Equal(t, []any{"account", 1, asked, 1}, []any{got.Kinds[0].Name, got.Kinds[0].Homeless, got.Kinds[0].Homes[0].Node, got.Kinds[0].Homes[0].Shards})
}

func TestTopSaysWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		args   []string
		status int
		want   string
	}{
		"nobody listens": {[]string{"-node", "127.0.0.1:1"}, command.StatusFailed, "no node answers at http://127.0.0.1:1"},
		"no address":     {[]string{"-node", "ftp://x"}, command.StatusUsage, "is not the address of a node"},
		"too fast":       {[]string{"-every", "1ms"}, command.StatusUsage, "want 100ms to 1m0s"},
		"too slow":       {[]string{"-every", "2h"}, command.StatusUsage, "want 100ms to 1m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			status, stdout, stderr := topOnce(c.args...)
			require.Equal(t, c.status, status)
			require.Empty(t, stdout)
			require.Contains(t, stderr, c.want)
			require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
		})
	}
	status, stdout, _ := topOnce("-h")
	require.Equal(t, command.StatusOK, status)
	fits(t, stdout)
}
