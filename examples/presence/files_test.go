// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster"
)

// The program starts with its file, by which the seen keys are durable.
func TestTheFileOfTheNodes(t *testing.T) {
	require.NoError(t, cluster.Check(cluster.Extensions{Options: options("cluster.yaml")}, "cluster.yaml"))
	cfg, err := cluster.Load(options("cluster.yaml")...)
	require.NoError(t, err)
	require.Equal(t, []string{seenPrefix + "*"}, cfg.Data.Durable)
}

// TestTheCodeOfTheReadmeIsThatOfTheProgram compares the Go blocks of the README with the
// files of the program: at most forty lines, to the letter.
func TestTheCodeOfTheReadmeIsThatOfTheProgram(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	keys, err := os.ReadFile("keys.go")
	require.NoError(t, err)
	blocks := strings.Split(strings.ReplaceAll(string(readme), "\r\n", "\n"), "\n```go\n")[1:]
	require.NotEmpty(t, blocks, "README.md has no Go block")
	lines := 0
	for _, rest := range blocks {
		block, _, found := strings.Cut(rest, "\n```\n")
		require.True(t, found, "a Go block of README.md has no end")
		require.Contains(t, strings.ReplaceAll(string(keys), "\r\n", "\n"), block+"\n")
		lines += strings.Count(block, "\n") + 1
	}
	require.LessOrEqual(t, lines, 40)
}
