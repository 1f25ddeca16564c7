// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package consumer_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whoever wants members only does not get entities, files or the parsers of files.
func TestMembershipComesWithoutWhatIsAboveIt(t *testing.T) {
	c := newConsumer(t)
	c.imports(t, "membership")
	deps := strings.Fields(c.run(t, "list", "-deps", "."))
	require.Contains(t, deps, prefix+"membership")
	for _, dep := range deps {
		for _, above := range []string{prefix + "sharding", prefix + "cluster", prefix + "management", prefix + "config", "github.com/knadh/koanf"} {
			require.False(t, dep == above || strings.HasPrefix(dep, above+"/"), dep)
		}
	}
}

// The whole node builds from the packed modules, and so does the command line.
func TestClusterAndCommandAreBuiltFromThePackedModules(t *testing.T) {
	c := newConsumer(t)
	c.imports(t, "membership", "sharding", "cluster")
	c.run(t, "install", prefix+"tools/cmd/quorate@"+c.version)
}
