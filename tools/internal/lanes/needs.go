// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package lanes

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// freeMin is how many MB the build cache and the directory of temporary files need at least. From an empty cache,
// all lanes together fill 12,000.
const freeMin = 3_000

// CheckNeeds looks for what would fail after minutes: the disk, and the modules of others, which it fetches. Its error
// says in one line what is missing and what to do.
func (w *Workspace) CheckNeeds(ctx context.Context) error {
	if _, err := exec.LookPath("git"); err != nil {
		return fmt.Errorf("missing: git: install it (tests make repositories, and the turns of lanes are read from the history)")
	}
	cache, err := exec.CommandContext(ctx, "go", "env", "GOCACHE").Output()
	if err != nil {
		return fmt.Errorf("go env: %w", err)
	}
	for _, dir := range []string{strings.TrimSpace(string(cache)), os.TempDir()} {
		if free, ok := freeMB(ctx, dir); ok && free < freeMin {
			return fmt.Errorf("%s has %d MB free, and %d are needed: make room, or empty the build cache (go clean -cache)", dir, free, freeMin)
		}
	}
	return w.fetch(ctx)
}

// freeMB asks df, which is not everywhere.
func freeMB(ctx context.Context, dir string) (int, bool) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, false
	}
	out, err := exec.CommandContext(ctx, "df", "-Pm", dir).Output()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	fields := strings.Fields(lines[len(lines)-1])
	if err != nil || len(fields) < 4 {
		return 0, false
	}
	free, err := strconv.Atoi(fields[3])
	return free, err == nil
}

// fetch has the go command find all packages that the tests import, which downloads what is missing.
func (w *Workspace) fetch(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-test", "-f", "{{.ImportPath}}", "work")
	cmd.Dir = w.Root
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	for line := range strings.SplitSeq(string(out), "\n") {
		if !strings.HasPrefix(line, "go: downloading") && line != "" {
			first = line
			break
		}
	}
	return fmt.Errorf("the modules of others cannot be had (%s): let GOPROXY name a proxy that is in reach", first)
}
