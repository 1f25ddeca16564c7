// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process

package examples_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/examples/attached/attachedtest"
	"github.com/quorate/quorate/internal/patience"
)

// TestTheProgramOfTheReadmeRuns builds the program from the README itself and
// runs it. Only its ports are replaced, by some that are free.
func TestTheProgramOfTheReadmeRuns(t *testing.T) {
	block := firstGoBlock(t)
	const first, each = `"127.0.0.1:7946"`, "7946+i"
	require.Contains(t, block, first, "the address of the seed node is not where the test looks for it")
	require.Contains(t, block, each, "the ports are not where the test looks for them")
	ports := attachedtest.Ports(t, 3)
	block = strings.NewReplacer(
		first, fmt.Sprintf(`"127.0.0.1:%d"`, ports[0]),
		each, fmt.Sprintf("[]int{%d, %d, %d}[i]", ports[0], ports[1], ports[2]),
	).Replace(block)
	dir := t.TempDir()
	source, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "readme")
	require.NoError(t, os.WriteFile(source, []byte(block), 0o600))
	ctx := patience.Context(t)
	out, err := exec.CommandContext(ctx, "go", "build", "-o", program, source).CombinedOutput()
	require.NoError(t, err, "%s", out)

	var stdout, stderr bytes.Buffer
	run := exec.CommandContext(ctx, program)
	run.Stdout, run.Stderr = &stdout, &stderr
	require.NoError(t, run.Run(), "%s", &stderr)
	require.Equal(t, "1\n", stdout.String(), "the counter's first answer; it logged:\n%s", &stderr)
	require.NotContains(t, stderr.String(), "level=ERROR")
	for i := 1; i <= 3; i++ {
		require.Contains(t, stderr.String(), fmt.Sprintf("up-number %d", i), "not all three nodes came up:\n%s", &stderr)
	}
}
