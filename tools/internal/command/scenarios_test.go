// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster/locations/locationssim"
	"github.com/quorate/quorate/ddata/ddatasim"
	"github.com/quorate/quorate/gateway/gatewaysim"
	"github.com/quorate/quorate/membership/membershipsim/scenario"
	"github.com/quorate/quorate/sharding/delivery/deliverysim"
	"github.com/quorate/quorate/sharding/reminder/remindersim"
	"github.com/quorate/quorate/sharding/shardingsim"
	"github.com/quorate/quorate/sharding/state/statesim"
)

// named finds where a world gets the name that stands in the command which repeats its run.
var named = regexp.MustCompile(`\bScenario(?:, [\w.]+)*(?::| =) "([^"]+)"`)

// A world whose failure prints the command that repeats it has a name that the command knows: the
// worlds of tests alone have none.
func TestCommandsThatRepeatAWorldAreTrue(t *testing.T) {
	known := map[string]bool{}
	for _, s := range scenario.All() {
		known[s.Name] = false
	}
	of := map[string]string{}
	for _, s := range slices.Concat(shardingsim.Scenarios(), statesim.Scenarios(), deliverysim.Scenarios(), remindersim.Scenarios()) {
		known[s.Name], of[s.Name] = true, "sharding"
	}
	for _, s := range ddatasim.Scenarios() {
		known[s.Name], of[s.Name] = true, "ddata"
	}
	for _, s := range gatewaysim.Scenarios() {
		known[s.Name], of[s.Name] = true, "gateway"
	}
	for _, s := range locationssim.Scenarios() {
		known[s.Name], of[s.Name] = true, "cluster"
	}
	found := map[string]bool{}
	for _, module := range []string{"sharding", "ddata", "gateway", "cluster"} {
		require.NoError(t, filepath.WalkDir(filepath.Join("..", "..", "..", module), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, name := range named.FindAllStringSubmatch(string(text), -1) {
				require.Equal(t, module, of[name[1]], "%s: quorate simulate does not know %s as a world of %s", path, name[1], module)
				found[name[1]] = true
			}
			return err
		}))
	}
	for name, component := range known {
		require.Equal(t, component, found[name], "the name of %s is found in the sources", name)
	}
}
