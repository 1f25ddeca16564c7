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

	"github.com/quorate/quorate/management"
	"github.com/quorate/quorate/tools/internal/command"
)

// First what the command members prints of a node that waits for voters, or whose cluster
// has yielded; then the command form, by which an operator founds a cluster anew: its
// output, its confirmation, and refusals.

// waiting is what a node answers that waits for two of three voters.
func waiting() management.ClusterMembers {
	at := time.Unix(1700000000, 0).UTC()
	return management.ClusterMembers{
		Self: "10.0.0.1:7946#1b0f2e3d4c5b6a79", Blockers: "this node is not a member", RecordLost: true,
		Waiting: &management.Waiting{
			Reason: "1 of 3 of the voters of the last cluster are here and in no cluster; missing: 10.0.0.2:7946 (silent), 10.0.0.3:7946 (lost its memory)",
			Cure:   "start the missing nodes with the data they had; only if they are gone for good: quorate form, on one node", Remembered: true,
			Voters: []management.WaitedVoter{
				{Node: "10.0.0.1:7946#2f3d4c5b6a790b1e", Answer: "in no cluster", Since: at},
				{Node: "10.0.0.2:7946#3f3d4c5b6a790b1e", Answer: "silent", Since: at.Add(time.Minute)},
				{Node: strings.Repeat("a", 60) + ":7946#4f3d4c5b6a790b1e", Answer: "lost its memory", Since: at},
			},
		},
	}
}

// A node that waits says which voters it waits for, within the width of a terminal.
func TestMembersOfANodeThatWaits(t *testing.T) {
	url := node(t, members(waiting()))
	status, stdout, stderr := remote("members", "-node", url)
	require.Equal(t, command.StatusOK, status, stderr)
	fits(t, stdout)
	require.Equal(t, `asked        10.0.0.1:7946#1b0f2e3d4c5b6a79
standing     not held: the entities of this node are suspended
leader       none
converged    no: this node is not a member
voters       0
members      0
record       lost: after a restart this node has no vote in who starts the
             cluster again
waits        1 of 3 of the voters of the last cluster are here and in no
             cluster; missing: 10.0.0.2:7946 (silent), 10.0.0.3:7946 (lost its
             memory)
cure         start the missing nodes with the data they had; only if they are
             gone for good: quorate form, on one node

the voters of the last cluster that somebody remembers
  10.0.0.1:7946#2f3d4c5b6a790b1e
      in no cluster, since 2023-11-14T22:13:20Z
  10.0.0.2:7946#3f3d4c5b6a790b1e
      silent, since 2023-11-14T22:14:20Z
  `+strings.Repeat("a", 60)+`:7946#4f3d4c5b6a79
  0b1e
      lost its memory, since 2023-11-14T22:13:20Z

to found     quorate form -node `+url+`
`, stdout)
	_, stdout, _ = remote("--json", "members", "-node", url)
	var got management.ClusterMembers
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	require.Equal(t, waiting(), got)
}

// A node whose cluster has yielded says to which cluster.
func TestMembersOfAClusterThatHasYielded(t *testing.T) {
	of := two()
	of.Cluster, of.Yielded = "1700000000000-b", "1600000000000-a"
	status, stdout, _ := remote("members", "-node", node(t, members(of)))
	require.Equal(t, command.StatusOK, status)
	fits(t, stdout)
	require.Contains(t, stdout, `cluster      1700000000000-b
yielded      to cluster 1600000000000-a of the same name, which goes on: this
             node hosts nothing, ends shortly, and joins that when it is started
             again
`)
}

// founding serves a node that waits for voters. The node counts in asked how often it is
// told to found a cluster, and answers with err.
func founding(t *testing.T, err error) (url string, asked *int) {
	t.Helper()
	asked = new(int)
	return node(t, members(waiting()), management.Route{
		Path: "/v1/form", Operation: management.FormOperation, Answer: func(context.Context, management.Request) (any, error) {
			*asked++
			return management.Formed{Self: "10.0.0.1:7946#1b0f2e3d4c5b6a79", Cluster: "1700000000000-b", GivenUp: []string{"10.0.0.2:7946#3f3d4c5b6a790b1e", "10.0.0.3:7946#4f3d4c5b6a790b1e"}}, err
		},
	}), asked
}

// sit runs form at a terminal, where a person answers the question with says.
func sit(says, url string) (status int, stdout, stderr string) {
	return output(command.Program{Name: "quorate", Help: "A cluster toolkit.", Commands: []command.Command{
		{Name: "form", Help: "Form", Args: command.NewForm(strings.NewReader(says), true)},
		{Name: "version", Help: "Print the version", Args: &command.Version{}},
	}}, "form", "-node", url)
}

func TestFormForPeopleAndPrograms(t *testing.T) {
	url, asked := founding(t, nil)
	status, stdout, stderr := remote("form", "-yes", "-node", url)
	require.Equal(t, command.StatusOK, status, stderr)
	fits(t, stdout)
	require.Equal(t, `founded      cluster 1700000000000-b
by           10.0.0.1:7946#1b0f2e3d4c5b6a79
given up     10.0.0.2:7946#3f3d4c5b6a790b1e
given up     10.0.0.3:7946#4f3d4c5b6a790b1e
next         start the other nodes; delete the data-dir of those that were given
             up before they are started again
`, stdout)
	status, stdout, stderr = remote("--json", "form", "-yes", "-node", url)
	require.Equal(t, command.StatusOK, status, stderr)
	var got management.Formed
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	require.Equal(t, "1700000000000-b", got.Cluster)
	require.Equal(t, 2, *asked)
}

// No cluster is founded without a confirmation.
func TestFormWantsAConfirmation(t *testing.T) {
	url, asked := founding(t, nil)
	status, _, stderr := remote("form", "-node", url)
	require.Equal(t, command.StatusUsage, status)
	require.Contains(t, stderr, "say -yes")
	for _, says := range []string{"", "\n", "y\n", "no\n", "yes please\n", "no, " + strings.Repeat(" ", 100) + "yes\n"} {
		status, stdout, stderr := sit(says, url)
		require.Equal(t, command.StatusUsage, status, says)
		require.Empty(t, stdout)
		require.Contains(t, stderr, "quorate: nothing was done")
		require.Equal(t, strings.TrimSpace(says) == "", strings.Contains(stderr, "say -yes"), "it may be no terminal at all")
		require.Contains(t, stderr, "10.0.0.2:7946#3f3d4c5b6a790b1e\n      silent, since")
		require.Contains(t, stderr, "is given up")
		text, _, _ := strings.Cut(stderr, " Type yes")
		fits(t, text)
	}
	require.Zero(t, *asked)
	status, stdout, stderr := sit("yes\n", url)
	require.Equal(t, command.StatusOK, status, stderr)
	require.Contains(t, stdout, "founded      cluster 1700000000000-b\n")
	require.Equal(t, 1, *asked)
}

// When a node refuses to found a cluster, or waits for none, form fails and prints the
// reason.
func TestFormTellsARefusal(t *testing.T) {
	url, asked := founding(t, &management.Error{Status: http.StatusConflict, Text: "membership: no cluster was founded: 10.0.0.2:7946#3 is a member of a cluster that goes on"})
	status, stdout, stderr := remote("form", "-yes", "-node", url)
	require.Equal(t, command.StatusFailed, status)
	require.Empty(t, stdout)
	require.Equal(t, "quorate: membership: no cluster was founded: 10.0.0.2:7946#3 is a member of a cluster that goes on\n", stderr)
	require.Equal(t, 1, *asked)

	status, _, stderr = remote("form", "-yes", "-node", node(t, members(two())))
	require.Equal(t, command.StatusFailed, status)
	require.Contains(t, stderr, "10.0.0.1:7946#1b0f2e3d4c5b6a79 does not wait for a cluster")
}
