// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package command_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/tools/internal/command"
)

// Scenarios of what runs on membership are run, repeated and traced like the others.
// covers I30.
func TestScenariosOfComponentsRepeat(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"sharding-moves", "data-chaos", "data-expiry", "data-homes", "data-older"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "trace.txt")
			args := []string{"-scenario", name, "-nodes", "5", "-seed", "3"}
			status, first, stderr := simulate(t, args...)
			require.Equal(t, command.StatusOK, status, first+stderr)
			_, again, _ := simulate(t, append(args, "-trace", path)...)
			require.Equal(t, first, again, "writing the trace changes nothing")
			require.Contains(t, first, "repeat: quorate simulate -seed 3 -scenario "+name+" -nodes 5\n")
			require.Regexp(t, `\nok seed=3 nodes=5 trace=[0-9a-f]{16}\n$`, first)
			trace, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Contains(t, first, fmt.Sprintf("the hash of its %d lines", bytes.Count(trace, []byte("\n"))))
			_, other, _ := simulate(t, "-scenario", name, "-nodes", "5", "-seed", "4")
			require.NotEqual(t, first, other)
		})
	}
}
