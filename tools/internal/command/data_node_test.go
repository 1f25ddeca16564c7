// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/management"
	"github.com/quorate/quorate/tools/internal/command"
)

// The commands that ask a running node about data, against a node that answers what the test
// says.

// lossy is a group of keys with a replica that is lost and one that lags.
func lossy() ddata.Group {
	at := time.Unix(1700000000, 0).UTC()
	return ddata.Group{
		Name: "durable", Role: "keeper", Copies: 2, Durable: true, ExpireAfter: time.Hour, Generation: 7, Phase: "joint", Since: at,
		Leader: "10.0.0.1:7946#1b0f2e3d4c5b6a79", Holds: true, Keys: 1, Tombs: 2, Bytes: 300, Waiting: 1, Store: "no space left on device",
		CatchesUp: []string{"10.0.0.1:7946#1b0f2e3d4c5b6a79"}, Refused: "the replica of 10.0.0.9:7946, which was removed, may hold the register: start it again, or accept the loss",
		Apart: "its store was put back", Unsure: at, Asides: []string{"/var/lib/bank/data/aside-7"},
		Replicas: []ddata.Replica{
			{ID: "ab", Node: "10.0.0.1:7946#1b0f2e3d4c5b6a79", Zone: "east", Sets: []string{"current", "next"}, Reachable: true, CaughtUp: true},
			{ID: "cd", Sets: []string{"current"}, Heard: at, Apart: true},
		},
	}
}

// holding serves a node with data, which counts in asked how often a loss was accepted.
func holding(t *testing.T, err error) (url string, asked *int) {
	t.Helper()
	asked = new(int)
	self := "10.0.0.1:7946#1b0f2e3d4c5b6a79"
	groups := cluster.DataGroups{Self: self, Groups: []ddata.Group{{Name: "all", Generation: 1, Phase: "stable", Quorum: true}, lossy()}}
	at := time.Unix(1700000000, 0).UTC()
	routes := []management.Route{
		{Path: "/v1/data", Answer: func(context.Context, management.Request) (any, error) { return groups, nil }},
		{Path: "/v1/data/keys", Query: []string{"prefix", "limit"}, Answer: func(_ context.Context, r management.Request) (any, error) {
			return cluster.DataKeys{Self: self, Keys: []string{r.Query("prefix") + "a", "with\x1b[31m colour"}, More: r.Query("limit") == "2"}, nil
		}},
		{Path: "/v1/data/keys/{key}", Query: []string{"consistency"}, Answer: func(_ context.Context, r management.Request) (any, error) {
			return ddata.Value{
				Key: r.Path("key"), Group: "all", State: "live", Type: "orset[string]", Text: strings.Repeat(`"word" `, 30), Encoded: r.Query("consistency"),
				Truncated: true, Bytes: 99999, Versions: []ddata.OriginVersion{{Origin: 0xab, Count: 3}, {Origin: 0xcd, Count: 1}},
			}, nil
		}},
		{Path: "/v1/data/explain", Query: []string{"key"}, Answer: func(_ context.Context, r management.Request) (any, error) {
			return ddata.Explanation{
				Key: r.Query("key"), Self: self, Group: lossy(), Here: true, State: "deleted", Kept: "the next sweep",
				Homes: []ddata.Home{
					{Replica: self, Answered: true, State: "deleted"},
					{Replica: "10.0.0.2:7946#2f3d4c5b6a790b1e", Answered: true, State: "live", Lacks: []ddata.OriginVersion{{Origin: 0xab, Count: 2}}, Since: at},
					{Replica: "10.0.0.3:7946#3f3d4c5b6a790b1e", Answered: true, State: "live", Undead: true, Since: at},
					{Replica: "replica cd", Unread: at},
				},
				Waiting: []ddata.Operation{{Kind: "delete", Level: "all", Since: at, Missing: []string{"replica cd"}}},
			}, nil
		}},
		{Path: "/v1/data/accept-loss", Query: []string{"group"}, Operation: cluster.AcceptLossOperation, Answer: func(_ context.Context, r management.Request) (any, error) {
			require.Equal(t, "durable", r.Query("group"))
			*asked++
			return groups, err
		}},
	}
	return node(t, routes...), asked
}

// A group is printed with everything that is wrong with it.
func TestGroupsOfDataForPeopleAndPrograms(t *testing.T) {
	url, _ := holding(t, nil)
	status, stdout, stderr := data("data", "groups", "-node", url)
	require.Equal(t, command.StatusOK, status, stderr)
	fits(t, stdout)
	require.Equal(t, `asked        10.0.0.1:7946#1b0f2e3d4c5b6a79

group        all
quorum       reachable
generation   1, stable, since

group        durable
role         keeper
copies       2
expires      after 1h0m0s
quorum       not reachable
refused      the replica of 10.0.0.9:7946, which was removed, may hold the
             register: start it again, or accept the loss
apart        its store was put back
unsure       since 2023-11-14T22:13:20Z
generation   7, joint, since 2023-11-14T22:13:20Z
leader       10.0.0.1:7946#1b0f2e3d4c5b6a79
holds        1 key, 2 tombstones, 300 bytes
waits        1 operation
catches up   from 10.0.0.1:7946#1b0f2e3d4c5b6a79
store        no space left on device
put aside    /var/lib/bank/data/aside-7
replica      10.0.0.1:7946#1b0f2e3d4c5b6a79, current and next, zone east
replica      number cd, current, not reachable, heard last 2023-11-14T22:13:20Z,
             does not count for now: its store is, or may be, older than it was,
             lacks something, as far as is known
`, stdout)
	status, stdout, _ = data("--json", "data", "groups", "-node", url)
	require.Equal(t, command.StatusOK, status)
	var got cluster.DataGroups
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	require.Equal(t, lossy(), got.Groups[1])
}

// Keys and values are printed as a terminal can take them.
func TestKeysAndValuesForPeopleAndPrograms(t *testing.T) {
	url, _ := holding(t, nil)
	status, stdout, stderr := data("data", "keys", "user/", "-limit", "2", "-node", url)
	require.Equal(t, command.StatusOK, status)
	fits(t, stdout)
	require.Equal(t, "user/a\nwith�[31m colour\n", stdout)
	require.Equal(t, "There are more keys: see -limit.\n", stderr)
	for _, key := range []string{"visits", "a/b c", "..", "ü?&#%"} {
		status, stdout, stderr = data("data", "get", key, "-node", url, "-majority")
		require.Equal(t, command.StatusOK, status, stderr)
		fits(t, stdout)
		require.Contains(t, stdout, "key          "+key+"\n")
	}
	require.Contains(t, stdout, "encoded      majority\n             The value is longer: it takes 99999 bytes.\nupdates      3 of ab, 1 of cd\n")
	status, stdout, _ = data("--json", "data", "get", "visits", "-node", url)
	require.Equal(t, command.StatusOK, status)
	var got ddata.Value
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	require.Equal(t, "visits", got.Key)
}

// The reasons for the state of a key are printed with each home, and whoever is waited for.
func TestWhyDataForPeopleAndPrograms(t *testing.T) {
	url, _ := holding(t, nil)
	status, stdout, stderr := data("data", "why", "visits", "-node", url)
	require.Equal(t, command.StatusOK, status, stderr)
	fits(t, stdout)
	require.True(t, strings.HasPrefix(stdout, `key          visits
state        deleted
kept         the next sweep
asked        10.0.0.1:7946#1b0f2e3d4c5b6a79

group        durable
`), stdout)
	require.True(t, strings.HasSuffix(stdout, `
homes
  10.0.0.1:7946#1b0f2e3d4c5b6a79
      deleted, lacks nothing
  10.0.0.2:7946#2f3d4c5b6a790b1e
      live, lacks 2 of ab, since 2023-11-14T22:13:20Z
  10.0.0.3:7946#3f3d4c5b6a790b1e
      live, lacks that the key was deleted, since 2023-11-14T22:13:20Z
  replica cd
      has not answered
      a batch with the key has waited for it since 2023-11-14T22:13:20Z

waits        a delete at the level all, since 2023-11-14T22:13:20Z, for replica
             cd
`), stdout)
	status, stdout, _ = data("--json", "data", "why", "visits", "-node", url)
	require.Equal(t, command.StatusOK, status)
	var got ddata.Explanation
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	require.Len(t, got.Homes, 4)
}

// No loss is accepted without a confirmation, and a refusal is told.
func TestAcceptLossWantsAConfirmation(t *testing.T) {
	url, asked := holding(t, nil)
	status, _, stderr := data("data", "accept-loss", "durable", "-node", url)
	require.Equal(t, command.StatusUsage, status)
	require.Contains(t, stderr, "say -yes if the other replicas are gone for good")
	answer := func(says string) (status int, stdout, stderr string) {
		return output(command.Program{Name: "quorate", Help: "A cluster toolkit.", Commands: []command.Command{
			{Name: "data", Help: "Data", Args: command.NewData(strings.NewReader(says), true)},
			{Name: "version", Help: "Print the version", Args: &command.Version{}},
		}}, "data", "accept-loss", "durable", "-node", url)
	}
	for _, says := range []string{"", "\n", "y\n", "no\n"} {
		status, stdout, stderr := answer(says)
		require.Equal(t, command.StatusUsage, status, says)
		require.Empty(t, stdout)
		require.Contains(t, stderr, "quorate: nothing was done")
		require.Contains(t, stderr, "holds        1 key, 2 tombstones")
		text, _, _ := strings.Cut(stderr, " Type yes")
		fits(t, text)
	}
	require.Zero(t, *asked)
	status, stdout, stderr := answer("yes\n")
	require.Equal(t, command.StatusOK, status, stderr)
	require.Contains(t, stdout, "accepted     the loss of what 10.0.0.1:7946#1b0f2e3d4c5b6a79 does not hold of\n             durable\n")
	require.Equal(t, 1, *asked)
	status, stdout, _ = data("--json", "data", "accept-loss", "durable", "-yes", "-node", url)
	require.Equal(t, command.StatusOK, status)
	require.Contains(t, stdout, `"groups"`)

	url, _ = holding(t, &management.Error{Status: http.StatusConflict, Text: "enough replicas are here"})
	status, stdout, stderr = data("data", "accept-loss", "durable", "-yes", "-node", url)
	require.Equal(t, command.StatusFailed, status)
	require.Empty(t, stdout)
	require.Equal(t, "quorate: enough replicas are here\n", stderr)
}

func TestHelpOfCommandsForData(t *testing.T) {
	for _, name := range []string{"groups", "keys", "get", "why", "accept-loss", "check", "export", "repair"} {
		status, stdout, _ := data("data", name, "-h")
		require.Equal(t, command.StatusOK, status)
		fits(t, stdout)
		require.Contains(t, stdout, "Examples:")
	}
}
