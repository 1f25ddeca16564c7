// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package consumer_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/tools/internal/release"
)

const (
	prefix = "github.com/quorate/quorate/"
	// version is the same in each run: the module cache is fresh each time, and with equal
	// versions the build cache recognises packages that have not changed.
	version = "v0.0.1-consumer.1"
)

// goEnv has the variables by which the go command of a user takes our modules from
// what the tags of the release hold.
var goEnv []string

func TestMain(m *testing.M) {
	status, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(status)
}

// run releases the tree of the repository once for all tests, then runs them.
func run(m *testing.M) (status int, err error) {
	scratch, err := os.MkdirTemp("", "quorate-consumer")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(scratch) //nolint:errcheck // A temporary directory that stays harms nothing.
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		return 1, err
	}
	ctx := context.Background()
	plan := release.Plan{
		Repo: root, Draft: version, Clone: filepath.Join(scratch, "clone"), Day: time.Now(),
		Without: release.Unreleased(),
	}
	released, err := release.Cut(ctx, plan)
	if err != nil {
		return 1, err
	}
	proxy, err := release.NewProxy(scratch)
	if err != nil {
		return 1, err
	}
	if err := released.Verify(ctx, proxy); err != nil {
		return 1, err
	}
	if goEnv, err = proxy.Env(ctx, strings.TrimSuffix(prefix, "/")); err != nil {
		return 1, err
	}
	// The program of a user has no go.sum yet. The checksum database is not asked about
	// the modules of others either, so that the tests need no network: those in the
	// cache were verified when they came in.
	goEnv = append(goEnv, "GOSUMDB=off")
	return m.Run(), nil
}

// consumer is a module outside the repository.
type consumer struct {
	dir string
	env []string
}

func newConsumer(t *testing.T) *consumer {
	t.Helper()
	c := &consumer{dir: t.TempDir()}
	c.env = append(append(os.Environ(), goEnv...), "GOBIN="+filepath.Join(c.dir, "bin"))
	require.NoError(t, os.WriteFile(filepath.Join(c.dir, "go.mod"), []byte("module example.test/consumer\n\ngo 1.26.0\n"), 0o600))
	return c
}

func (c *consumer) run(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = c.dir, c.env
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s %s\n%s", name, strings.Join(args, " "), out)
	return string(out)
}

// gets writes a program and fetches the modules that it needs.
func (c *consumer) gets(t *testing.T, source string, modules ...string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(c.dir, "main.go"), []byte(source), 0o600))
	get := []string{"get"}
	for _, module := range modules {
		get = append(get, prefix+module+"@"+version)
	}
	c.run(t, "go", get...)
}

// imports builds a program that does nothing but import modules.
func (c *consumer) imports(t *testing.T, modules ...string) {
	t.Helper()
	var source strings.Builder
	source.WriteString("package main\n\nimport (\n")
	for _, name := range modules {
		fmt.Fprintf(&source, "\t_ %q\n", prefix+name)
	}
	source.WriteString(")\n\nfunc main() {}\n")
	c.gets(t, source.String(), modules...)
	c.run(t, "go", "build", "-o", "program", ".")
}

// A program that imports the leaves gets the leaves, the errors of their settings and the
// standard library.
func TestLeavesDragNothingAlong(t *testing.T) {
	c := newConsumer(t)
	leaves := []string{"gossip", "fd", "allocation", "ddata/crdt"}
	c.imports(t, leaves...)
	deps := c.run(t, "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".")
	var beyond []string
	for dep := range strings.FieldsSeq(deps) {
		leaf := dep == prefix+"config/field" || slices.ContainsFunc(leaves, func(name string) bool {
			return dep == prefix+name || strings.HasPrefix(dep, prefix+name+"/")
		})
		if dep != "example.test/consumer" && !leaf {
			beyond = append(beyond, dep)
		}
	}
	require.Empty(t, beyond)
	for _, leaf := range leaves {
		require.Contains(t, strings.Fields(deps), prefix+leaf, "the list would be empty if nothing were built")
	}
}
