// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/management"
	"github.com/quorate/quorate/tools/internal/command"
)

// What the commands about locations send, and what they print.

// steers runs one of these commands.
func steers(stdin string, args ...string) (status int, stdout, stderr string) {
	return output(command.Program{Name: "quorate", Help: "A cluster toolkit.", Commands: []command.Command{
		{Name: "locations", Help: "Locations", Args: command.NewLocations(strings.NewReader(stdin))},
	}}, append([]string{"locations"}, args...)...)
}

// steered returns a node that notes what it is told.
func steered(t *testing.T) (url string, told *cluster.LocationsRequest) {
	t.Helper()
	told = new(cluster.LocationsRequest)
	return node(t,
		management.Route{
			Path: "/v1/kinds/{kind}/locations/set", Operation: cluster.SetLocationsOperation, Body: 4 << 20,
			Answer: func(_ context.Context, r management.Request) (any, error) {
				*told = cluster.LocationsRequest{}
				if err := json.Unmarshal(r.Body(), told); err != nil {
					return nil, err
				}
				return cluster.LocationsChanged{Self: asked, Kind: r.Path("kind"), Shards: len(told.Locations), Followed: true}, nil
			},
		},
		management.Route{
			Path: "/v1/kinds/{kind}/locations/clear", Operation: cluster.ClearLocationsOperation,
			Answer: func(_ context.Context, r management.Request) (any, error) {
				return cluster.LocationsChanged{Self: asked, Kind: r.Path("kind"), Shards: 1}, nil
			},
		},
	), told
}

func TestSetLocations(t *testing.T) {
	url, told := steered(t)
	status, stdout, stderr := steers("", "set", "a/b", "3-5,9", "10.0.0.7:7946", "-node", url)
	require.Equal(t, command.StatusOK, status, stderr)
	require.Equal(t, "asked        "+asked+"\nset          4 shards of a/b\nfollowed     yes\n", stdout)
	const at = "10.0.0.7:7946"
	require.Equal(t, []cluster.Location{{Shard: 3, Node: at}, {Shard: 4, Node: at}, {Shard: 5, Node: at}, {Shard: 9, Node: at}}, told.Locations)

	status, _, stderr = steers("", "set", "account", "17", "-node", url)
	require.Equal(t, command.StatusOK, status, stderr)
	require.Equal(t, []cluster.Location{{Shard: 17}}, told.Locations)

	status, stdout, stderr = steers("# the plan\n\n1 10.0.0.7:7946\n 2\t10.0.0.8:7946 \n3\n", "set", "account", "-node", url, "--", "-")
	require.Equal(t, command.StatusOK, status, stdout+stderr)
	require.Equal(t, []cluster.Location{{Shard: 1, Node: at}, {Shard: 2, Node: "10.0.0.8:7946"}, {Shard: 3}}, told.Locations)

	status, stdout, _ = steers("", "clear", "account", "-node", url)
	require.Equal(t, command.StatusOK, status)
	require.Equal(t, "asked        "+asked+"\ncleared      1 shard of account\nfollowed     no, the strategy of the node asked is not external\n", stdout)
	status, stdout, _ = output(command.Program{Name: "quorate", Help: "A cluster toolkit.", Commands: []command.Command{
		{Name: "locations", Help: "Locations", Args: command.NewLocations(nil)},
	}}, "--json", "locations", "clear", "account", "-node", url)
	require.Equal(t, command.StatusOK, status)
	require.Contains(t, stdout, `"shards": 1`)
}

// What is wrong is found before the node is asked.
func TestLocationsThatAreNone(t *testing.T) {
	url, told := steered(t)
	for _, bad := range []struct{ shards, stdin, says string }{
		{"x", "", `"x" is neither the number of a shard`},
		{"", "", `"" is neither`},
		{"5-3", "", `"5-3" is neither`},
		{"1,,2", "", `"" is neither`},
		{"65536", "", "from 0 to 65535"},
		{"0-65535,0", "", "names shards twice"},
		{"-", "", "no line names a shard"},
		{"-", "1 a:1\nx\n", "line 2 is not the number of a shard"},
		{"-", "1 a:1 b:1\n", "line 1 is not"},
		{"-", strings.Repeat("x", 1<<17), "token too long"},
	} {
		status, _, stderr := steers(bad.stdin, "set", "account", "-node", url, "--", bad.shards)
		require.Equal(t, command.StatusUsage, status, bad.shards)
		require.Contains(t, stderr, bad.says)
	}
	status, _, stderr := steers("1 a:1", "set", "account", "-node", url, "--", "-", "a:1")
	require.Equal(t, command.StatusUsage, status)
	require.Contains(t, stderr, "give no node")
	require.Empty(t, told.Locations)
}

func TestLocationsForPeopleAndPrograms(t *testing.T) {
	list := cluster.LocationList{Self: asked, Kind: "account", Followed: true, Locations: []cluster.Location{
		{Shard: 0, Node: "10.0.0.1:7946", Home: asked, Member: true},
		{Shard: 1, Node: "10.0.0.2:7946", Home: asked, Member: true},
		{Shard: 2, Node: "10.0.0.9:7946", Home: asked},
		{Shard: 3, Node: "10.0.0.2:7946", Member: true},
	}}
	url := node(t, answers("/v1/kinds/{kind}/locations", list))
	status, stdout, stderr := steers("", "list", "account", "-node", url)
	require.Equal(t, command.StatusOK, status, stderr)
	fits(t, stdout)
	require.Equal(t, `asked        10.0.0.1:7946#1b0f2e3d4c5b6a79
followed     yes

 shard  location
     0  10.0.0.1:7946
     1  10.0.0.2:7946, lives at 10.0.0.1:7946#1b0f2e3d4c5b6a79
     2  10.0.0.9:7946, no member has that address
     3  10.0.0.2:7946
`, stdout)
	list.Locations, list.Followed = nil, false
	_, stdout, _ = steers("", "list", "account", "-node", node(t, answers("/v1/kinds/{kind}/locations", list)))
	require.Contains(t, stdout, "No shard of the kind has a location.\n")

	shards := cluster.ShardList{Self: asked, Kind: "account", Locations: map[int]string{1: "10.0.0.9:7946"}, LocationsUnread: "no\x1banswer"}
	status, stdout, stderr = hosting("shards", "account", "-node", node(t, answers("/v1/kinds/{kind}/shards", shards)))
	require.Equal(t, command.StatusOK, status)
	require.NotContains(t, stdout, "10.0.0.9")
	require.Contains(t, stderr, "Locations are not shown: no")
}

func TestHelpAboutLocations(t *testing.T) {
	for _, name := range []string{"list", "set", "clear"} {
		status, stdout, _ := steers("", name, "-h")
		require.Equal(t, command.StatusOK, status)
		fits(t, strings.TrimSpace(stdout))
		require.Contains(t, stdout, "Examples:")
	}
}
