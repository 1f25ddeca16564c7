// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package consumer_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A program that imports only membership links no module above it, so neither entities nor
// the reading of files: of config there are only the errors of settings, in config/field.
func TestMembershipComesWithoutWhatIsAboveIt(t *testing.T) {
	c := newConsumer(t)
	c.imports(t, "membership")
	deps := strings.Fields(c.run(t, "go", "list", "-deps", "."))
	require.Contains(t, deps, prefix+"membership")
	for _, dep := range slices.DeleteFunc(deps, func(dep string) bool { return dep == prefix+"config/field" }) {
		for _, above := range []string{prefix + "sharding", prefix + "cluster", prefix + "management", prefix + "config", "github.com/knadh/koanf"} {
			require.False(t, dep == above || strings.HasPrefix(dep, above+"/"), dep)
		}
	}
}

// The command that a user installs says which release it is, and gets an answer from
// the node that a user's program starts.
func TestCommandAndNodeOfAUserWorkTogether(t *testing.T) {
	c := newConsumer(t)
	c.run(t, "go", "install", prefix+"tools/cmd/quorate@"+version)
	quorate := filepath.Join(c.dir, "bin", "quorate")
	require.Contains(t, c.run(t, quorate, "version"), "quorate "+version)

	source, err := os.ReadFile(filepath.Join("testdata", "node.go.txt"))
	require.NoError(t, err)
	c.gets(t, string(source), "cluster", "sharding")
	c.run(t, "go", "build", "-o", "node", ".")
	answer, management := c.starts(t, "node")
	require.Equal(t, "3", answer)
	require.Contains(t, c.run(t, quorate, "members", "-node", "http://"+management), "up")
}

// The project of a plugin that an installed command writes requires the modules of the command's
// own release, and they are all that it needs to build and to pass its tests.
func TestTheProjectOfAPluginTakesTheRelease(t *testing.T) {
	c := newConsumer(t)
	c.run(t, "go", "install", prefix+"tools/cmd/quorate@"+version)
	c.run(t, filepath.Join(c.dir, "bin", "quorate"), "plugin", "new", "join-decider", "tried")
	mod, err := os.ReadFile(filepath.Join(c.dir, "tried", "go.mod"))
	require.NoError(t, err)
	require.Contains(t, string(mod), prefix+"plugins/plugintest "+version+"\n")
	c.run(t, "make", "-C", "tried")
}

// starts runs a built program with an address to listen at, and returns the two
// words of its first line. The program ends with the test.
func (c *consumer) starts(t *testing.T, program string) (first, second string) {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, free.Close())
	// The program ends when its standard input is closed, in the cleanup. The context of the
	// test ends before that, and would kill the program.
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), filepath.Join(c.dir, program), free.Addr().String())
	cmd.Dir = c.dir
	log, err := os.Create(filepath.Join(c.dir, program+".log"))
	require.NoError(t, err)
	cmd.Stderr = log // A buffer would be a data race: the test may read while the program writes.
	said := func() string {
		text, err := os.ReadFile(log.Name())
		return fmt.Sprint(string(text), err)
	}
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		require.NoError(t, stdin.Close())
		require.NoError(t, cmd.Wait(), "%s", said())
		require.NoError(t, log.Close())
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err, "%s", said())
	first, second, _ = strings.Cut(strings.TrimSpace(line), " ")
	return first, second
}
