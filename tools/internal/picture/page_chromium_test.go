// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build chromium

package picture_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/membership/membershipsim/scenario"
)

// The page of a run, in a browser: it draws, plays, and is used by keys, at three sizes.
func TestChromiumPlaysARun(t *testing.T) {
	r, _ := paint(t, scenario.Options{Scenario: "split", Nodes: 7, Seed: 3})
	path := filepath.Join(t.TempDir(), "run.html")
	require.NoError(t, r.Write(path))
	ctx := patience.Context(t)
	arguments := []string{filepath.Join("..", "..", "..", "management", "page", "test", "picture.mjs"), "file://" + path}
	if dir := os.Getenv("QUORATE_PICTURES"); dir != "" {
		arguments = append(arguments, dir)
	}
	out, err := exec.CommandContext(ctx, "node", arguments...).CombinedOutput()
	require.NoError(t, err, string(out))
}
