// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/management"
	"github.com/quorate/quorate/tools/internal/command"
)

// What the command why says of a cluster, and that an entity may be called cluster too.
func TestWhyOfTheClusterForPeopleAndPrograms(t *testing.T) {
	answer := management.ClusterReasons{Self: firstNode, Findings: []management.Finding{
		{About: "convergence", Is: "not all agree", Because: []string{secondNode + " is unreachable for " + firstNode}, Cure: "mend the network", Trouble: true},
		{About: strings.Repeat("a", 120), Is: "up", Because: []string{}},
	}}
	why := management.Route{Path: "/v1/why", Answer: func(context.Context, management.Request) (any, error) { return answer, nil }}
	url := node(t, append(management.Explanations(firstNode, one{}), why)...)
	status, stdout, stderr := remote("why", "cluster", "-node", url)
	require.Equal(t, command.StatusOK, status, stderr)
	fits(t, stdout)
	require.True(t, strings.HasPrefix(stdout, `asked        10.0.0.1:7946#1b0f2e3d4c5b6a79

convergence
is           not all agree
because      10.0.0.2:7946#2f3d4c5b6a790b1e is unreachable for
             10.0.0.1:7946#1b0f2e3d4c5b6a79
cure         mend the network

`), stdout)
	_, stdout, _ = remote("--json", "why", "cluster", "-node", url)
	var got management.ClusterReasons
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	require.Equal(t, answer, got)

	status, stdout, _ = remote("why", "cluster", "-kind", "account", "-node", url)
	require.Equal(t, command.StatusOK, status)
	require.Contains(t, stdout, "entity       cluster\n")
	status, _, stderr = remote("why", "cluster", "-shard", "3", "-node", url)
	require.Equal(t, command.StatusUsage, status)
	require.Contains(t, stderr, "missing flags: --kind")
}
