// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/tools/internal/akka"
	"github.com/quorate/quorate/tools/internal/command"
)

const fromAkka = `akka {
  actor.provider = cluster
  remote.artery.canonical { hostname = 10.0.0.1, port = 2551 }
  cluster { seed-nodes = ["akka://bank@10.0.0.1:2551"], roles = [a], made-up = 1 }
}
`

func TestAFileOfAkkaIsTranslated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "application.conf")
	require.NoError(t, os.WriteFile(path, []byte(fromAkka), 0o600))
	status, out, errs := run(t, &count{}, "config", "from-akka", path)
	require.Equal(t, command.StatusOK, status, errs)
	require.Contains(t, out, "# Not needed:\n#   akka.actor.provider (")
	require.Contains(t, out, "# Unknown, and not translated:\n#   akka.cluster.made-up (")
	require.Contains(t, out, "\ncluster:\n  name: bank # akka.cluster.seed-nodes\n")

	written := filepath.Join(t.TempDir(), "cluster.yaml")
	status, out, errs = run(t, &count{}, "config", "from-akka", path, "--out", written)
	require.Equal(t, command.StatusOK, status, errs)
	require.Equal(t, "written      "+written+"\nnot needed   1\nunknown      1\n"+
		"to be set    node.address: 10.0.0.1:2551 is not on the loopback interface, where\n"+
		"             alone a node listens without TLS: configure transport.tls, or set\n             transport.allow-insecure\n", out)
	status, _, errs = run(t, &count{}, "config", "from-akka", path, "--out", written)
	require.Equal(t, command.StatusFailed, status)
	require.Contains(t, errs, "exists, and is not overwritten")

	status, out, _ = run(t, &count{}, "--json", "config", "from-akka", path)
	require.Equal(t, command.StatusOK, status)
	var got akka.Translation
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	require.Equal(t, "akka.cluster.made-up", got.Unknown[0].Key)
}

// covers HOCON that is wrong, and values that are: nothing is written.
func TestAFileOfAkkaThatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"akka {":                                "application.conf:1: the end of the file, where a } is missing",
		"akka.cluster.roles = ${X}":             "application.conf:1: ${X} is neither in the file nor in the environment",
		"\nakka.cluster.gossip-interval = soon": "application.conf:2: akka.cluster.gossip-interval: \"soon\" is not a duration",
	} {
		path := filepath.Join(t.TempDir(), "application.conf")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		written := filepath.Join(t.TempDir(), "cluster.yaml")
		status, out, errs := run(t, &count{}, "config", "from-akka", path, "--out", written)
		require.Equal(t, command.StatusUsage, status)
		require.Empty(t, out)
		require.Contains(t, errs, want)
		require.NoFileExists(t, written)
	}
}
