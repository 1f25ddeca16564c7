// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package consumer_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a program that has a whole node links at most, see docs/versioning.md. A
// bound is raised in the commit that gains something for it, and lowered in the one
// that sheds weight.
const (
	mostModules  = 45 // of others
	mostPackages = 500
	mostBytes    = 23 << 20 // on linux/amd64, without symbols
)

// A node is a library in somebody's program: each module in it is one more that they
// have to trust and to keep up to date.
func TestWeightOfANodeIsBounded(t *testing.T) {
	c := newConsumer(t)
	c.gets(t, "package main\n\nimport (\n\t\"context\"\n\n\t\""+prefix+"cluster\"\n)\n\n"+
		"func main() { cluster.Start(context.Background(), cluster.WithFile(\"cluster.yaml\")) }\n", "cluster")
	c.env = append(c.env, "GOOS=linux", "GOARCH=amd64")
	c.run(t, "go", "build", "-ldflags=-s -w", "-o", "program", ".")

	ours, others := 0, 0
	for line := range strings.Lines(c.run(t, "go", "version", "-m", "program")) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "dep" {
			if strings.HasPrefix(fields[1], prefix) {
				ours++
			} else {
				others++
			}
		}
	}
	packages := len(strings.Fields(c.run(t, "go", "list", "-deps", ".")))
	about, err := os.Stat(filepath.Join(c.dir, "program"))
	require.NoError(t, err)
	t.Logf("a program with a node links %d modules of others and %d of ours, %d packages, %.1f MB", others, ours, packages, float64(about.Size())/1e6)
	require.Positive(t, ours, "nothing was counted")
	require.LessOrEqual(t, others, mostModules)
	require.LessOrEqual(t, packages, mostPackages)
	require.LessOrEqual(t, about.Size(), int64(mostBytes))
}
