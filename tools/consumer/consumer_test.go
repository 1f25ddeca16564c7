// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package consumer_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/tools/internal/publish"
)

const prefix = "github.com/quorate/quorate/"

// consumer is a module outside the repository that gets ours from a proxy.
type consumer struct {
	dir     string
	env     []string
	version string
}

func newConsumer(t *testing.T) *consumer {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	proxy := t.TempDir()
	c := &consumer{dir: t.TempDir(), version: fmt.Sprintf("v0.0.1-consumer.%d", time.Now().UnixNano())}
	_, err = publish.Tree(t.Context(), root, c.version, proxy)
	require.NoError(t, err)

	// What others published comes from the cache of this machine first, so that
	// the test needs no network when it is warm. The checksum database is asked
	// for nothing: ours are not in it, theirs were checked on the way in. Without
	// -trimpath the build cache would not know the others' packages again in the
	// fresh module cache, and compile them anew each time.
	cached := filepath.Join(goEnv(t, "GOMODCACHE"), "cache", "download")
	c.env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-modcacherw -trimpath", "GOSUMDB=off", "GOPRIVATE=", "GONOPROXY=none",
		"GOMODCACHE="+filepath.Join(c.dir, "modcache"), "GOBIN="+filepath.Join(c.dir, "bin"),
		"GOPROXY=file://"+filepath.ToSlash(proxy)+",file://"+filepath.ToSlash(cached)+","+goEnv(t, "GOPROXY"))
	require.NoError(t, os.WriteFile(filepath.Join(c.dir, "go.mod"), []byte("module example.test/consumer\n\ngo 1.26.0\n"), 0o600))
	return c
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}

func (c *consumer) run(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir, cmd.Env = c.dir, c.env
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "go %s\n%s", strings.Join(args, " "), out)
	return string(out)
}

// imports writes a program that imports the packages, gets their modules, and
// builds it.
func (c *consumer) imports(t *testing.T, packages ...string) {
	t.Helper()
	var source strings.Builder
	source.WriteString("package main\n\nimport (\n")
	get := []string{"get"}
	for _, name := range packages {
		fmt.Fprintf(&source, "\t_ %q\n", prefix+name)
		module, _, _ := strings.Cut(name, "/")
		get = append(get, prefix+module+"@"+c.version)
	}
	source.WriteString(")\n\nfunc main() {}\n")
	require.NoError(t, os.WriteFile(filepath.Join(c.dir, "main.go"), []byte(source.String()), 0o600))
	c.run(t, get...)
	c.run(t, "build", "-o", filepath.Join(c.dir, "program"), ".")
}

// Whoever imports the leaves gets the leaves and the standard library.
func TestLeavesDragNothingAlong(t *testing.T) {
	c := newConsumer(t)
	leaves := []string{"gossip", "fd", "allocation"}
	c.imports(t, leaves...)
	deps := c.run(t, "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".")
	var beyond []string
	for dep := range strings.FieldsSeq(deps) {
		module, _, _ := strings.Cut(strings.TrimPrefix(dep, prefix), "/")
		if dep != "example.test/consumer" && (!strings.HasPrefix(dep, prefix) || module != "gossip" && module != "fd" && module != "allocation") {
			beyond = append(beyond, dep)
		}
	}
	require.Empty(t, beyond)
	for _, leaf := range leaves {
		require.Contains(t, strings.Fields(deps), prefix+leaf, "the list would be empty if nothing were built")
	}
}
