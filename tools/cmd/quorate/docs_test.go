// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/config"
)

// Every block of YAML on the pages about discovery is valid in the configuration of a node.
// For each method some block selects the method and has its section, and check names the
// module that a program must link for it.
func TestTheFilesOnThePagesAboutDiscoveryAreRight(t *testing.T) {
	dir := t.TempDir()
	rest := filepath.Join(dir, "rest.yaml")
	require.NoError(t, os.WriteFile(rest, []byte("cluster: {name: bank}\nnode: {address: 10.0.0.7:7946}\ntransport: {allow-insecure: true}\n"), 0o600))
	needed := map[string]bool{}
	for page, least := range map[string]int{"discovery.md": 8, "discovery-kubernetes.md": 1, "bootstrap.md": 1} {
		blocks := filesOn(t, page)
		require.GreaterOrEqual(t, len(blocks), least, "%s has lost blocks of YAML", page)
		for i, block := range blocks {
			path := filepath.Join(dir, fmt.Sprintf("%s-%d.yaml", page, i))
			require.NoError(t, os.WriteFile(path, []byte(block), 0o600))
			needs, err := check(nil, nil, rest, path)
			require.NoError(t, err, "%s:\n%s", page, block)
			for _, n := range needs {
				require.ErrorIs(t, n, config.ErrNotLinked)
				_, after, _ := strings.Cut(n.Reason, "github.com/quorate/quorate/discovery/")
				name, _, _ := strings.Cut(after, ",")
				needed[name] = needed[name] || strings.Contains(block, "discovery-"+name+":")
			}
		}
	}
	for _, name := range methodNames(t) {
		require.True(t, needed[name], "no block selects %s and has its section", name)
	}
}

// filesOn returns the blocks of YAML on a page that configure a node. Blocks that begin with
// apiVersion or env are objects of Kubernetes, or parts of them.
func filesOn(t *testing.T, page string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", page))
	require.NoError(t, err)
	blocks := strings.Split(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n```yaml\n")[1:]
	for i := range blocks {
		var ends bool
		blocks[i], _, ends = strings.Cut(blocks[i], "\n```")
		require.True(t, ends, "a block of %s has no end", page)
	}
	return slices.DeleteFunc(blocks, func(b string) bool {
		return strings.HasPrefix(b, "apiVersion:") || strings.HasPrefix(b, "env:")
	})
}
