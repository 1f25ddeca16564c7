// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process

package examples_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTheProgramOfTheReadmeRuns builds the program from the README itself and
// runs it. Only its ports are replaced, by some that are free.
func TestTheProgramOfTheReadmeRuns(t *testing.T) {
	block := firstGoBlock(t)
	require.Contains(t, block, "7946", "the ports are not where the test looks for them")
	dir := t.TempDir()
	source, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "readme")
	require.NoError(t, os.WriteFile(source, []byte(strings.ReplaceAll(block, "7946", freePorts(t))), 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
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

// freePorts returns the first of three ports that are free. They lie below the
// range from which systems take the ports of outgoing connections.
func freePorts(t *testing.T) string {
	t.Helper()
	for range 100 {
		first, free := 20_000+rand.IntN(10_000), true
		for i := range 3 {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", first+i))
			free = free && err == nil && l.Close() == nil
		}
		if free {
			return fmt.Sprint(first)
		}
	}
	require.Fail(t, "no three ports in a row are free")
	return ""
}
